//! Reading a log back.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use farcast_core::Time;

use super::{PacketDirection, PacketRecord, Verdict};

mod columns;
mod lines;

/// Reason for which a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The name does not tell the format.
    #[error("\"{path}\" tells no format: name a log FILE.csv or FILE.parquet", path = .0.display())]
    Ending(PathBuf),
    /// The file cannot be read.
    #[error("cannot read the log \"{path}\": {source}", path = .path.display())]
    File {
        /// Path of the log.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a log, or is damaged.
    #[error("\"{path}\" is no log of packets: {what}", path = .path.display())]
    Content {
        /// Path of the log.
        path: PathBuf,
        /// Place and kind of the error.
        what: String,
    },
}

/// Error of a log, before its path is known.
enum Wrong {
    File(io::Error),
    Content(String),
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

/// Reads the log `path`, in the format of its extension (`.csv` or `.parquet`, in upper or lower case). Calls `each`
/// for each record, in order. Returns the facts about the run that a Parquet file has, such as `("seed", "1")`.
///
/// # Errors
/// [`ReadError::Ending`] for any other name, [`ReadError::File`] if the file cannot be read, [`ReadError::Content`] at
/// the first part that is not valid in a log; `each` has then had the records before it.
#[expect(clippy::disallowed_methods, reason = "a log is read where it is written")]
pub fn read(
    path: &Path,
    mut each: impl FnMut(&PacketRecord<&str>),
) -> Result<Vec<(String, String)>, ReadError> {
    let ending = path.extension().map(OsStr::to_ascii_lowercase);
    let in_csv = match ending.as_ref().and_then(|ending| ending.to_str()) {
        Some("csv") => true,
        Some("parquet") => false,
        _ => return Err(ReadError::Ending(path.to_path_buf())),
    };
    let mut read = || {
        let file = File::open(path)?;
        if in_csv {
            lines::read(file, &mut each).map(|()| Vec::new())
        } else {
            columns::read(file, &mut each)
        }
    };
    read().map_err(|wrong| match wrong {
        Wrong::File(source) => ReadError::File { path: path.to_path_buf(), source },
        Wrong::Content(what) => ReadError::Content { path: path.to_path_buf(), what },
    })
}

/// Returns the direction of this name.
fn way(name: &str) -> Option<PacketDirection> {
    [PacketDirection::Forward, PacketDirection::Return].into_iter().find(|way| way.name() == name)
}

/// Returns the verdict of this name.
fn verdict(name: &str) -> Option<Verdict> {
    let all = [Verdict::Delivered, Verdict::Lost, Verdict::Dropped, Verdict::Held];
    all.into_iter().find(|verdict| verdict.name() == name)
}

/// Returns a time, unless it lies before the run.
fn time(nanoseconds: i64) -> Option<Time> {
    u64::try_from(nanoseconds).ok().map(Time::from_nanos)
}

#[cfg(test)]
mod tests;
