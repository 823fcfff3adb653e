//! Reading a log back.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use farcast_core::Time;

use super::{PacketRecord, Verdict, Way};

mod columns;
mod lines;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The name does not say which format.
    #[error("\"{path}\" tells no format: name a log FILE.csv or FILE.parquet", path = .0.display())]
    Ending(PathBuf),
    /// The file cannot be read.
    #[error("cannot read the log \"{path}\": {source}", path = .path.display())]
    File {
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no log, or a broken one.
    #[error("\"{path}\" is no log of packets: {what}", path = .path.display())]
    Content {
        /// The log.
        path: PathBuf,
        /// Where, and what is wrong there.
        what: String,
    },
}

/// What is wrong with a log, before its name is known.
enum Wrong {
    File(io::Error),
    Content(String),
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

/// Reads the log `path`, in the format that its ending says (`.csv` or `.parquet`, in either case of letters), and
/// hands each record to `each`, in order; what a Parquet file says of the run, such as `("seed", "1")`.
///
/// # Errors
/// [`ReadError::Ending`] for any other name, [`ReadError::File`] if the file cannot be read, [`ReadError::Content`] at
/// the first thing that no log has; what stands before that has been handed over.
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

/// The way of this name.
fn way(name: &str) -> Option<Way> {
    [Way::Forward, Way::Return].into_iter().find(|way| way.name() == name)
}

/// The verdict of this name.
fn verdict(name: &str) -> Option<Verdict> {
    let all = [Verdict::Delivered, Verdict::Lost, Verdict::Dropped, Verdict::Held];
    all.into_iter().find(|verdict| verdict.name() == name)
}

/// A time, unless it lies before the run.
fn time(nanoseconds: i64) -> Option<Time> {
    u64::try_from(nanoseconds).ok().map(Time::from_nanos)
}

#[cfg(test)]
mod tests;
