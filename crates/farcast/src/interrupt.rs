//! Ctrl-C and its like.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether SIGHUP has come, where it has the log opened anew.
static HUNG_UP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets, so that work ends in good order; the second ends the program
/// at once. Started to ignore SIGHUP, as `nohup` does, the program goes on ignoring it.
pub(crate) fn interrupted() -> io::Result<Arc<AtomicBool>> {
    let interrupted = ends_by(&[SIGINT, SIGTERM])?;
    if !ignores_hangup() {
        end_by(SIGHUP, &interrupted)?;
    }
    Ok(interrupted)
}

/// The same for what runs until it is stopped: where it writes a log, SIGHUP has that opened anew.
pub(crate) fn interrupted_service(has_log: bool) -> io::Result<Arc<AtomicBool>> {
    if !has_log {
        return interrupted();
    }
    flag::register(SIGHUP, Arc::clone(HUNG_UP.get_or_init(Arc::default)))?;
    ends_by(&[SIGINT, SIGTERM])
}

/// Whether SIGHUP has come since this was asked, and the log is to be opened anew.
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

/// Whether this process was started to ignore SIGHUP: its bit in the set of ignored signals of proc(5).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}
