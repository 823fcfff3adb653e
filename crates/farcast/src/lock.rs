//! One sender at a time: a lock that the kernel takes back when its process ends, however it ends.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use farcast_core::Span;
use farcast_net::Clock;
use rustix::fs::{FlockOperation, flock};

use crate::state;

/// How long who leaves a lock that others share may have it for itself.
const INSTANT: Span = Span::from_millis(2);

/// Who else may have a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beside {
    /// Nobody.
    Nobody,
    /// Who takes it in this way, too.
    Others,
}

/// Held while this lives; its file is then removed.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Absent where there is no place for it: then nobody is kept away.
    held: Option<(PathBuf, File)>,
}

impl Lock {
    /// Takes the lock of this name.
    ///
    /// # Errors
    /// Another process has it; its number, where that can be read.
    pub(crate) fn take(name: &str, beside: Beside) -> Result<Self, Option<u32>> {
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
                // Who leaves looks for others, for an instant as if nobody else might have it.
                Err(rustix::io::Errno::WOULDBLOCK) if beside == Beside::Others && tries > 0 => {
                    tries -= 1;
                    let clock = Clock::start();
                    let _ = clock.wait(&[], clock.now() + INSTANT);
                    continue;
                }
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(owner(&mut file)),
                Err(_) => return Ok(Self { held: None }),
            }
            // Its last owner may have removed it between our opening and our locking.
            let same = |there: fs::Metadata| file.metadata().is_ok_and(|ours| ours.ino() == there.ino());
            if fs::metadata(&path).is_ok_and(same) {
                // The number is for others to read, and the lock holds without it. Of several it would be that of one.
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
            // While it is still locked, and by nobody else, so that nobody's is removed but ours.
            let _ = fs::remove_file(path);
        }
    }
}

/// The process that has locked `file`.
fn owner(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
