//! Lock by which only one sender runs at a time. The kernel releases it when its process ends, however that ends.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use farcast_core::Span;
use farcast_net::Clock;
use rustix::fs::{FlockOperation, flock};

use crate::state;

/// Longest time for which a process that leaves a shared lock may hold it exclusively.
const INSTANT: Span = Span::from_millis(2);

/// Other processes that may have a lock at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beside {
    /// No other process.
    Nobody,
    /// Processes that also take the lock with this value.
    Others,
}

/// Lock that is held while this lives. Its file is then removed.
#[derive(Debug)]
pub struct Lock {
    /// Path and file of the lock. `None` if there is no place for it: then nobody is kept away.
    held: Option<(PathBuf, File)>,
}

impl Lock {
    /// Takes the lock of this name. Where no lock file can be made, the caller goes on without a lock.
    ///
    /// # Errors
    /// Another process has the lock. The error is its process id, if that can be read.
    pub fn take(name: &str, beside: Beside) -> Result<Self, Option<u32>> {
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).collect();
        let Some(directory) = state::directory().filter(|directory| fs::create_dir_all(directory).is_ok())
        else {
            return Ok(Self { held: None });
        };
        let path = directory.join(format!("{name}.lock"));
        let mut tries = 3;
        loop {
            let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let Ok(mut file) = opened else { return Ok(Self { held: None }) };
            let how = match beside {
                Beside::Nobody => FlockOperation::NonBlockingLockExclusive,
                Beside::Others => FlockOperation::NonBlockingLockShared,
            };
            match flock(&file, how) {
                Ok(()) => {}
                // A process that leaves checks for others, and holds the lock exclusively for an instant.
                Err(rustix::io::Errno::WOULDBLOCK) if beside == Beside::Others && tries > 0 => {
                    tries -= 1;
                    let clock = Clock::start();
                    let _ = clock.wait(&[], clock.now() + INSTANT);
                    continue;
                }
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(owner(&mut file)),
                Err(_) => return Ok(Self { held: None }),
            }
            // Its last owner may have removed the file between our opening and our locking.
            let same = |there: fs::Metadata| file.metadata().is_ok_and(|ours| ours.ino() == there.ino());
            if fs::metadata(&path).is_ok_and(same) {
                // The number is for others to read, and the lock holds without it. Of several processes it would name
                // only one.
                let number =
                    if beside == Beside::Nobody { std::process::id().to_string() } else { String::new() };
                let _ = file.set_len(0).and_then(|()| file.write_all(number.as_bytes()));
                return Ok(Self { held: Some((path, file)) });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some((path, file)) = &self.held
            && flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            // The lock is still held, and by nobody else, so that only our own file is removed.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the id of the process that has locked `file`.
fn owner(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
