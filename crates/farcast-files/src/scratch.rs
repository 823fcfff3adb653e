//! Files without a name, for data that need not outlive the process.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

/// Number of names that are tried.
const TRIES: u32 = 100;

/// Opens a new file in `dir` that vanishes when its last descriptor is closed.
///
/// # Errors
/// Errors of the file system.
pub fn nameless(dir: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match openat(CWD, dir, flags | OFlags::TMPFILE, mode) {
        // The file system has no such files.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
            let process = std::process::id();
            // Another thread may have its file at a name for an instant.
            for number in 0..TRIES {
                let path = dir.join(format!(".farcast-scratch-{process}-{number}"));
                match openat(CWD, &path, flags | OFlags::CREATE | OFlags::EXCL, mode) {
                    Err(Errno::EXIST) => {}
                    opened => {
                        let file = opened?;
                        unlinkat(CWD, &path, AtFlags::empty())?;
                        return Ok(file.into());
                    }
                }
            }
            Err(Errno::EXIST.into())
        }
        opened => Ok(opened?.into()),
    }
}
