//! Output files that take their names only once they are complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tempfile::NamedTempFile;

/// Octets that are gathered before a write.
const BUFFER: usize = 1 << 18;

/// Destination of the octets of a log or a capture. If it is dropped before [`commit`](Self::commit), it leaves
/// nothing.
pub trait Output: Write + Send {
    /// Completes the output, which then keeps everything written.
    ///
    /// # Errors
    /// The system's error; nothing is left then.
    fn commit(self: Box<Self>) -> io::Result<()>;
}

/// A file that is written under no name and takes its final name when it is [committed](Output::commit).
///
/// Until then it has no name (`O_TMPFILE`, open(2)), so that nothing is left however the process ends. If the file
/// system does not support such files, it has a hidden name in the same directory. The hidden file vanishes with this
/// object, but not with a process that is killed. An earlier file of the final name is replaced at once and whole.
#[derive(Debug)]
pub struct StagedFile {
    file: BufWriter<Staged>,
    directory: PathBuf,
    prefix: String,
    path: PathBuf,
}

/// A file without its final name.
#[derive(Debug)]
enum Staged {
    Nameless(File),
    Hidden(NamedTempFile),
}

impl Write for Staged {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Nameless(file) => file.write(octets),
            Self::Hidden(file) => file.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Nameless(file) => file.flush(),
            Self::Hidden(file) => file.flush(),
        }
    }
}

impl StagedFile {
    /// Creates a file that will be `path`. A symbolic link there stays, and its target is replaced.
    ///
    /// # Errors
    /// An error if `path` is not a file, such as a directory or a device, or the system's error of writing in its
    /// directory.
    pub fn create(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let Some(name) = path.file_name().filter(|_| path.is_file() || !path.exists()) else {
            let what =
                format!("{} is no file: name a file that may be replaced, or a new one", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        };
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let prefix = format!(".{}.", name.to_string_lossy());
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        // File systems without such files report this in several ways; any other error also shows in the fallback.
        let file = if let Ok(file) = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666)) {
            Staged::Nameless(file.into())
        } else {
            let mut builder = tempfile::Builder::new();
            builder.prefix(&prefix).suffix(".part").permissions(permissions());
            Staged::Hidden(builder.tempfile_in(directory)?)
        };
        let directory = directory.to_path_buf();
        Ok(Self { file: BufWriter::with_capacity(BUFFER, file), directory, prefix, path })
    }
}

impl Write for StagedFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.file.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for StagedFile {
    fn commit(self: Box<Self>) -> io::Result<()> {
        let Self { file, directory, prefix, path } = *self;
        match file.into_inner().map_err(io::IntoInnerError::into_error)? {
            Staged::Hidden(file) => file.persist(&path).map(drop).map_err(|error| error.error),
            Staged::Nameless(file) => {
                // A link cannot replace a name, so the file takes a hidden name before it replaces another.
                let of = format!("/proc/self/fd/{}", file.as_raw_fd());
                let link = |hidden: &Path| {
                    rustix::fs::linkat(CWD, &of, CWD, hidden, AtFlags::SYMLINK_FOLLOW)
                        .map_err(io::Error::from)
                };
                let named =
                    tempfile::Builder::new().prefix(&prefix).suffix(".part").make_in(directory, link)?;
                named.persist(&path).map(drop).map_err(|error| error.error)
            }
        }
    }
}

/// Returns the permissions of any new file, which the system reduces by the user's mask.
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

#[cfg(test)]
mod tests;
