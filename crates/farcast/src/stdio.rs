//! Standard output and standard error, which may be closed or full, or have no reader.
//!
//! Standard output is for results. If a result cannot be written, the command fails, and its exit code tells that when
//! its work is done ([`lost`]). A reader that stops early, as `head` does, is no failure. Standard error is for
//! messages, and a message that cannot be written there is dropped.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_report::text::visible;

/// Set if there was no standard output when the process began. That cannot be found out later: the standard library
/// opens `/dev/null` in its place before `main`.
static MISSING: AtomicBool = AtomicBool::new(false);
/// Set once nothing more is written to standard output.
static OVER: AtomicBool = AtomicBool::new(false);
/// Set once a result or a log could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// Function in the section that the system runs before any of our code.
#[expect(
    unsafe_code,
    reason = "the function needs nothing of what is set up later: one system call and an atomic"
)]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    let missing = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    MISSING.store(missing, Ordering::Relaxed);
}

/// Returns `true` if a result or a log could not be written. The command's exit code must then tell a failure.
pub(crate) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Records that something could not be written, and prints the reason.
pub(crate) fn lose(sentence: &str) {
    LOST.store(true, Ordering::Relaxed);
    say(&format!("farcast: {sentence}"));
}

/// Writes to standard output by `write`. Returns `false` if nobody took it. The first failure is reported.
pub(crate) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> bool {
    if OVER.load(Ordering::Relaxed) {
        return false;
    }
    let mut out = BufWriter::new(Descriptor);
    let written = write(&mut out).and_then(|()| out.flush());
    // Output that could not be written is not tried again.
    drop(out.into_parts());
    written.map_err(|error| no_output(&error)).is_ok()
}

/// Takes the result of writing to standard output by other means.
pub(crate) fn printed(result: io::Result<()>) {
    let missing = MISSING.load(Ordering::Relaxed).then(|| rustix::io::Errno::BADF.into());
    if let Some(error) = missing.or(result.err()) {
        no_output(&error);
    }
}

/// Ends standard output after an error, and reports the error unless the reader has left.
fn no_output(error: &io::Error) {
    if !OVER.swap(true, Ordering::Relaxed) && error.kind() != ErrorKind::BrokenPipe {
        lose(&format!("cannot write to standard output: {error}; what it should have told is lost"));
    }
}

/// Prints one line on standard error. Nothing in it makes another line.
pub(crate) fn say(line: &str) {
    let _ = io::stderr().write_all(format!("{}\n", visible(line)).as_bytes());
}

/// Standard output without the standard library's handle, which treats a closed output like an open one.
struct Descriptor;

impl Write for Descriptor {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if MISSING.load(Ordering::Relaxed) {
            return Err(io::Error::from(rustix::io::Errno::BADF));
        }
        Ok(rustix::io::write(rustix::stdio::stdout(), octets)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
