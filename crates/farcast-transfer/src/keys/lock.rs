//! Lock of a file that several processes change, so that no process undoes the change of another.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use farcast_core::Span;
use farcast_files::{Nicety, is_running, this_process};
use farcast_net::Clock;
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;

use super::file::{cannot_write, tolerate};
use crate::Error;

/// Longest wait for another process where the file system has no locks: a change takes milliseconds.
const PATIENCE: Span = Span::from_secs(10);
/// Time between two attempts.
const STEP: Span = Span::from_millis(5);

/// Lock that is held while this lives.
#[derive(Debug)]
pub struct Lock {
    _held: File,
    _owner: Option<Owner>,
}

impl Lock {
    /// Waits for the lock of the file at `path`. The lock file lies beside that file and stays there.
    ///
    /// # Errors
    /// The lock file cannot be made, or another process does not release the lock.
    pub fn wait(path: &Path) -> Result<Self, Error> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let beside = path.with_file_name(format!(".{name}.lock"));
        let lock = || -> io::Result<Self> {
            let file =
                OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&beside)?;
            let locked = retry_on_intr(|| flock(&file, FlockOperation::LockExclusive));
            tolerate(Nicety::Lock, &beside, locked)?;
            let owner = locked.err().map(|_| Owner::wait(beside.with_extension("owner"))).transpose()?;
            Ok(Self { _held: file, _owner: owner })
        };
        lock().map_err(|error| cannot_write(&beside, &error))
    }
}

/// File with the name of the process that has a lock, where the file system has none. It is removed when this is
/// dropped.
#[derive(Debug)]
struct Owner(PathBuf);

impl Owner {
    /// Waits until no process that runs on this host has its name at `path`.
    fn wait(path: PathBuf) -> io::Result<Self> {
        let directory = path.parent().unwrap_or(Path::new("."));
        let clock = Clock::start();
        let end = clock.now() + PATIENCE;
        loop {
            // The file gets its name together with its content, so that nobody reads half of it.
            let mut staged = tempfile::Builder::new().prefix(".owner.").tempfile_in(directory)?;
            staged.write_all(this_process().as_bytes())?;
            match staged.persist_noclobber(&path) {
                Ok(_) => return Ok(Self(path)),
                Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.error),
            }
            match fs::read_to_string(&path) {
                Ok(named) if is_running(&named) => {
                    if clock.now() > end {
                        let why = format!("the process in {} does not give it back", path.display());
                        return Err(io::Error::new(ErrorKind::TimedOut, why));
                    }
                    let _ = clock.wait(&[], clock.now() + STEP);
                }
                Ok(_) => fs::remove_file(&path)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // If the file stays, others find that its process no longer runs.
        let _ = fs::remove_file(&self.0);
    }
}
