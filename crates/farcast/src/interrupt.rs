//! Signals that end the program: Ctrl-C and its like.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Set when SIGHUP has come, where that signal has the log opened anew.
static HUNG_UP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Returns a flag that the first SIGINT, SIGTERM or SIGHUP sets, so that work ends in good order. The second signal
/// ends the program at once. A program that was started to ignore SIGHUP, as by `nohup`, goes on ignoring it.
pub(crate) fn interrupted() -> io::Result<Arc<AtomicBool>> {
    let interrupted = ends_by(&[SIGINT, SIGTERM])?;
    if !ignores_hangup() {
        end_by(SIGHUP, &interrupted)?;
    }
    Ok(interrupted)
}

/// Returns the same flag for a program that runs until it is stopped. If it writes a log, SIGHUP has the log opened
/// anew instead.
pub(crate) fn interrupted_service(has_log: bool) -> io::Result<Arc<AtomicBool>> {
    if !has_log {
        return interrupted();
    }
    flag::register(SIGHUP, Arc::clone(HUNG_UP.get_or_init(Arc::default)))?;
    ends_by(&[SIGINT, SIGTERM])
}

/// Returns `true` if SIGHUP has come since the last call, so that the log is to be opened anew.
pub(crate) fn hung_up() -> bool {
    HUNG_UP.get().is_some_and(|flag| flag.swap(false, Ordering::Relaxed))
}

fn ends_by(signals: &[i32]) -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    signals.iter().try_for_each(|&signal| end_by(signal, &interrupted))?;
    Ok(interrupted)
}

fn end_by(signal: i32, interrupted: &Arc<AtomicBool>) -> io::Result<()> {
    flag::register_conditional_shutdown(signal, 1, Arc::clone(interrupted))?;
    flag::register(signal, Arc::clone(interrupted))?;
    Ok(())
}

/// Returns `true` if this process was started to ignore SIGHUP. The set of ignored signals is in proc(5).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}
