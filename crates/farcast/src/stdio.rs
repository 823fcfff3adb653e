//! Standard output and standard error, which may be closed, full, or read by nobody.
//!
//! What goes to standard output is a result: where it cannot be written, the command has failed at that, and its exit
//! code says so when its work is done ([`lost`]). A reader that has seen enough, as `head` has, is no failure. What
//! goes to standard error is for whom it may concern: nobody is told where it cannot be written.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_report::text::visible;

/// Whether there was no standard output when the process began. Afterwards it cannot be told: the standard library
/// opens `/dev/null` in its place before `main`.
static MISSING: AtomicBool = AtomicBool::new(false);
/// Whether nothing more is written to standard output.
static OVER: AtomicBool = AtomicBool::new(false);
/// Whether a result or a log could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// The system runs what stands in this section before anything of ours.
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

/// Whether a result or a log could not be written, for which the command has not yet answered.
pub(crate) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Says why something could not be written, and that it could not.
pub(crate) fn lose(sentence: &str) {
    LOST.store(true, Ordering::Relaxed);
    say(&format!("farcast: {sentence}"));
}

/// Writes to standard output what `write` writes; whether anybody took it. The first time that it cannot be written,
/// that is said.
pub(crate) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> bool {
    if OVER.load(Ordering::Relaxed) {
        return false;
    }
    let mut out = BufWriter::new(Descriptor);
    let written = write(&mut out).and_then(|()| out.flush());
    // What could not be written is not tried again.
    drop(out.into_parts());
    written.map_err(|error| no_output(&error)).is_ok()
}

/// What came of writing to standard output by other means.
pub(crate) fn printed(result: io::Result<()>) {
    let missing = MISSING.load(Ordering::Relaxed).then(|| rustix::io::Errno::BADF.into());
    if let Some(error) = missing.or(result.err()) {
        no_output(&error);
    }
}

/// Standard output takes nothing more.
fn no_output(error: &io::Error) {
    if !OVER.swap(true, Ordering::Relaxed) && error.kind() != ErrorKind::BrokenPipe {
        lose(&format!("cannot write to standard output: {error}; what it should have told is lost"));
    }
}

/// A line on standard error, where anybody reads it. It stays one, whatever is in it.
pub(crate) fn say(line: &str) {
    let _ = io::stderr().write_all(format!("{}\n", visible(line)).as_bytes());
}

/// Standard output without the standard library's handle, for which one that is closed is as good as an open one.
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
