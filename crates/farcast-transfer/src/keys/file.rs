//! Files of keys: their places, the other users who may read or write them, and their replacement.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use farcast_files::{Nicety, Refusals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fsync, open};
use rustix::io::retry_on_intr;
use zeroize::Zeroizing;

use crate::{Error, state};

/// Longest silence of a pipe in seconds.
const PIPE_PATIENCE_S: i64 = 10;

/// Kind of content of a file, which decides who must be kept from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Care {
    /// Secret, which nobody else may read.
    Secret,
    /// List, which nobody else may write.
    List,
}

impl Care {
    /// Returns the length of the longest file that is read. A secret has room for a key and people's comments beside
    /// it. A list has room for tens of thousands of keys, hybrid keys included.
    fn limit(self) -> usize {
        match self {
            Self::Secret => 16 << 10,
            Self::List => 64 << 20,
        }
    }

    /// Returns the mode bits that must not be set, the reason, and the remedy.
    fn against(self) -> (u32, &'static str, &'static str) {
        match self {
            Self::Secret => (0o077, "others may read or write it, and it holds a secret", "chmod 600"),
            Self::List => (0o022, "others may write it, and would say whom you trust", "chmod go-w"),
        }
    }
}

/// Returns the directory of keys: `$XDG_CONFIG_HOME/farcast`, or `~/.config/farcast`.
pub fn directory() -> Option<PathBuf> {
    state::base("XDG_CONFIG_HOME", ".config")
}

/// Returns the value of the environment variable `variable`.
///
/// # Errors
/// The variable is empty: whoever set it meant something.
pub fn variable(variable: &str) -> Result<Option<OsString>, Error> {
    match std::env::var_os(variable) {
        Some(value) if value.is_empty() => {
            Err(Error::usage(format!("{variable} is set and empty: give it a value, or unset it")))
        }
        value => Ok(value),
    }
}

/// Returns the content of a file, or `None` if there is no such file.
pub fn read(path: &Path, care: Care) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
    let cannot = |error: io::Error| Error::usage(format!("cannot read {}: {error}", path.display()));
    // A pipe without a writer would block us for ever.
    let nonblock = OFlags::NONBLOCK.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(nonblock).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return nothing(path),
        Err(error) => return Err(cannot(error)),
    };
    let there = file.metadata().map_err(cannot)?;
    // A shell gives a pipe for <(command). The mode of a directory or device is not to be changed.
    if !there.is_file() && !there.file_type().is_fifo() {
        return Err(Error::usage(format!(
            "{} is a directory or a device, and no file of keys",
            path.display()
        )));
    }
    let mode = there.permissions().mode() & 0o777;
    let (forbidden, why, remedy) = care.against();
    if mode & forbidden != 0 {
        let path = path.display();
        return Err(Error::usage(format!("{path} has mode {mode:04o}: {why}; {remedy} {path}")));
    }
    let limit = care.limit();
    // The buffer of a secret has room from the start: a buffer that grows leaves copies behind.
    let room = if care == Care::Secret { limit + 64 } else { 0 };
    let mut octets = Zeroizing::new(Vec::with_capacity(room));
    if there.is_file() {
        file.take(limit as u64 + 1).read_to_end(&mut octets).map_err(cannot)?;
    } else {
        read_pipe(&file, limit + 1, &mut octets).map_err(cannot)?;
    }
    if octets.len() > limit {
        return Err(Error::usage(format!(
            "{} has more than {limit} bytes: that is no file of keys",
            path.display()
        )));
    }
    Ok(Some(octets))
}

/// Makes sure that the file does not exist, after it could not be opened.
///
/// # Errors
/// A dangling link is in the place of the file or of one of its directories: it was meant to lead to one.
fn nothing<T>(path: &Path) -> Result<Option<T>, Error> {
    for part in path.ancestors().filter(|part| *part != Path::new("")) {
        let Ok(there) = fs::symlink_metadata(part) else { continue };
        if there.is_symlink() && fs::metadata(part).is_err() {
            return Err(Error::usage(format!(
                "cannot read {}: {} is a link that leads nowhere; mend it, or remove it",
                path.display(),
                part.display()
            )));
        }
        break;
    }
    Ok(None)
}

/// Reads from a pipe until its end, at most `limit` octets.
fn read_pipe(mut pipe: &File, limit: usize, octets: &mut Zeroizing<Vec<u8>>) -> io::Result<()> {
    let patience = Timespec { tv_sec: PIPE_PATIENCE_S, tv_nsec: 0 };
    let mut part = Zeroizing::new([0; 4096]);
    while octets.len() < limit {
        let ready = retry_on_intr(|| poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&patience)))?;
        if ready == 0 {
            let why = format!("it is a pipe to which nothing was written for {PIPE_PATIENCE_S} s");
            return Err(io::Error::new(ErrorKind::TimedOut, why));
        }
        match pipe.read(&mut part[..]) {
            Ok(0) => return Ok(()),
            Ok(len) => octets.extend_from_slice(&part[..len]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes the user's directory, for nobody else, if `path` lies in it. Other directories must exist.
pub fn make_directory(path: &Path) -> Result<(), Error> {
    let Some(own) = directory().filter(|own| path.parent() == Some(own)) else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(&own).map_err(|error| cannot_write(&own, &error))
}

/// Replaces or makes a file, at once and whole. A link in its place stays, and its target is replaced. Without a
/// `mode`, the file has the mode that its file system gives to a private file.
pub fn replace(path: &Path, octets: &[u8], mode: Option<u32>) -> Result<(), Error> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let stage = || -> io::Result<()> {
        let (staged, directory) = staged(&path, octets, mode)?;
        staged.persist(&path)?;
        keep_name(&directory)
    };
    stage().map_err(|error| cannot_write(&path, &error))
}

/// Makes a file of mode 0600 if `path` is free. Returns `false` if something is there already.
pub fn make(path: &Path, octets: &[u8]) -> Result<bool, Error> {
    let stage = || -> io::Result<()> {
        let (staged, directory) = staged(path, octets, Some(0o600))?;
        staged.persist_noclobber(path)?;
        keep_name(&directory)
    };
    match stage() {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(cannot_write(path, &error)),
    }
}

/// Writes a file beside `path`, safely to disk. Returns the file and the directory of both.
fn staged(path: &Path, octets: &[u8], mode: Option<u32>) -> io::Result<(tempfile::NamedTempFile, PathBuf)> {
    let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory"));
    };
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let prefix = format!(".{}.", name.to_string_lossy());
    let mut staged = tempfile::Builder::new().prefix(&prefix).tempfile_in(&directory)?;
    staged.write_all(octets)?;
    let file = staged.as_file();
    // A file system without modes may refuse to set the one that a file has already.
    if let Some(mode) = mode
        && file.metadata()?.permissions().mode() & 0o777 != mode
    {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    tolerate(Nicety::DurableContent, path, fsync(file))?;
    Ok((staged, directory))
}

/// Makes sure that the name of a new file survives a power loss.
fn keep_name(directory: &Path) -> io::Result<()> {
    let synced =
        open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).and_then(fsync);
    tolerate(Nicety::DurableNames, directory, synced)
}

/// Ignores a file system's refusal of a nicety, and prints the first refusal of each kind.
pub fn tolerate(nicety: Nicety, path: &Path, result: rustix::io::Result<()>) -> io::Result<()> {
    static REFUSALS: Mutex<Refusals> = Mutex::new(Refusals::new());
    let mut refusals = REFUSALS.lock().unwrap_or_else(PoisonError::into_inner);
    refusals.tolerate(nicety, path.to_owned(), result)?;
    for refusal in refusals.take() {
        log::warn!("{refusal}");
    }
    Ok(())
}

/// Returns the mode of the file at `path`, or that of a new one.
pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).map_or(0o600, |there| there.permissions().mode() & 0o777)
}

/// Returns the error for a file that cannot be written.
pub fn cannot_write(path: &Path, error: &io::Error) -> Error {
    Error::failed(format!("cannot write {}: {error}", path.display()))
}
