//! Faults that tests draw into file-system calls.

use core::cell::RefCell;
use core::panic::Location;

use rustix::io::{Errno, Result};

/// Kind of a call, by what may be wrong with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Call {
    List,
    Lock,
    MakeDirectory,
    Open,
    Read,
    Rename,
    RenameNew,
    Seek,
    SetMode,
    SetTime,
    Stat,
    Statvfs,
    SyncContent,
    SyncNames,
    Truncate,
    Unlink,
    Write,
}

/// A call that a session made: its kind, and the place in the source that made it.
pub(crate) type Made = (Call, &'static Location<'static>);

/// Number of times that a fault is met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lasting {
    /// The one call.
    Once,
    /// That call and every later one of its kind: a file system that does not have it.
    FromThenOn,
}

/// Call that is to fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// Number of the call, counted from the beginning of the session.
    pub(crate) at: usize,
    pub(crate) errno: Errno,
    pub(crate) lasting: Lasting,
}

#[derive(Default)]
struct Session {
    made: Vec<Made>,
    fault: Option<Fault>,
    /// Kind of the call that failed, once it has.
    failed: Option<Call>,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Runs `session` with `fault` drawn into it; what it returns, and the calls that it made.
pub(crate) fn with<T>(fault: Option<Fault>, session: impl FnOnce() -> T) -> (T, Vec<Made>) {
    SESSION.set(Some(Session { fault, ..Session::default() }));
    let returned = session();
    (returned, SESSION.take().map_or_else(Vec::new, |session| session.made))
}

/// Returns true where this thread runs a session with faults.
pub(crate) fn are_drawn() -> bool {
    SESSION.with_borrow(Option::is_some)
}

/// Lets the call fail if that was drawn.
pub(crate) fn meet(call: Call, place: &'static Location<'static>) -> Result<()> {
    SESSION.with_borrow_mut(|session| {
        let Some(Session { made, fault, failed }) = session else { return Ok(()) };
        let number = made.len();
        made.push((call, place));
        match fault {
            Some(fault) if number == fault.at => {
                *failed = Some(call);
                Err(fault.errno)
            }
            Some(fault) if fault.lasting == Lasting::FromThenOn && *failed == Some(call) => Err(fault.errno),
            _ => Ok(()),
        }
    })
}

mod tests;
