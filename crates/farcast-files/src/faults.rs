//! Faults that tests inject into file-system calls.

use core::cell::RefCell;
use core::panic::Location;

use rustix::io::{Errno, Result};

/// Kind of a call; calls of one kind can fail in the same ways.
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

/// A call made during a session: its kind, and its place in the source.
pub(crate) type Made = (Call, &'static Location<'static>);

/// Duration of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lasting {
    /// Only the chosen call fails.
    Once,
    /// The chosen call and every later one of its kind fail, as on a file system that lacks it.
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
    /// Kind of the call that has failed, once one has.
    failed: Option<Call>,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Runs `session` with `fault` injected. Returns the result of `session` and the calls that it made.
pub(crate) fn with<T>(fault: Option<Fault>, session: impl FnOnce() -> T) -> (T, Vec<Made>) {
    SESSION.set(Some(Session { fault, ..Session::default() }));
    let returned = session();
    (returned, SESSION.take().map_or_else(Vec::new, |session| session.made))
}

/// Returns `true` while this thread runs a session with faults.
pub(crate) fn are_drawn() -> bool {
    SESSION.with_borrow(Option::is_some)
}

/// Records a call, and makes it fail if the fault says so.
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
