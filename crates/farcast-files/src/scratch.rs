//! Files without a name, for data that need not outlive the process.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

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
            let path = dir.join(format!(".farcast-scratch-{}", std::process::id()));
            let file = openat(CWD, &path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
            unlinkat(CWD, &path, AtFlags::empty())?;
            Ok(file.into())
        }
        opened => Ok(opened?.into()),
    }
}
