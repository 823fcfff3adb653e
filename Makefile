# Two commands do everything: `make demo` runs the main job, `make test` passes the tests.

.PHONY: demo test lint book bench fuzz draws setup wheel

# A real file to three receivers on this machine over lossy multicast.
demo:
	@echo "building; the first time this takes five to ten minutes on two cores"
	@cargo build --quiet --release -p farcast
	@$${CARGO_TARGET_DIR:-target}/release/farcast demo

# Everything that must hold, with its own set-up; quiet when green.
test: setup
	@scripts/test

# Formatting, lints and documentation, warnings denied.
lint:
	@scripts/test lint

# The book in docs/ as HTML; says where it is, or which links lead nowhere.
book:
	@cargo run --quiet --locked -p farcast-book

# Throughput and delay beside a plain blaster, UFTP, NORM and rsync; of the last tables a quick variant.
bench:
	@scripts/setup bench
	@benches/run
	@benches/run --no-build --quick --tables defaults,changing,resend,cpu,norm

# The drawn tests of all crates with draws that nobody has seen (CASES of them).
draws:
	@scripts/draws

# Every decoder and engine, a minute each (SECONDS_EACH).
fuzz:
	@scripts/fuzz

# The Python package, in target/wheels.
wheel:
	@scripts/python wheel

# System packages, through apt as root; otherwise it names what is missing.
setup:
	@scripts/setup
