//! The log of a link: a record for each packet, with its times, length and fate.
//!
//! | column | type | what |
//! |---|---|---|
//! | `number` | unsigned 64 bits | the packet's number, as the link counts them |
//! | `way` | text | `forward` (hub to terminals) or `return` |
//! | `terminal` | unsigned 32 bits, may be absent | whose copy it is, or who sent it, from 0; of a packet to all that ended before it was copied, none |
//! | `entered_ns` | signed 64 bits | when it entered, in nanoseconds since the run began |
//! | `planned_ns` | signed 64 bits or none | when it should leave by the link's time |
//! | `left_ns` | signed 64 bits or none | when it really left |
//! | `octets` | unsigned 32 bits | its length from the IP header on |
//! | `verdict` | text | `delivered`, `lost`, `dropped` or `held` |
//! | `cause` | text, may be empty | what decided, as `forward: queue` |
//!
//! Times beyond 2^63 - 1 ns (292 years) are written as that.
//!
//! A CSV file is RFC 4180's with a header and without comments; what is absent is empty. A Parquet file has groups of
//! at most 65,536 rows, which is what a log keeps in memory, and key-value metadata: what the caller tells about the
//! run, and the unit of each column that has one as `COLUMN.unit`.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use farcast_core::Time;

use crate::output::{Output, StagedFile};

mod csv;
mod parquet;
mod read;

pub use csv::CsvLog;
pub use parquet::ParquetLog;
pub use read::{ReadError, read};

/// The columns in their order.
const COLUMNS: [&str; 9] =
    ["number", "way", "terminal", "entered_ns", "planned_ns", "left_ns", "octets", "verdict", "cause"];

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the hub to terminals.
    Forward,
    /// From a terminal to the hub.
    Return,
}

impl Way {
    /// As logs name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Return => "return",
        }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It left at the other end.
    Delivered,
    /// The channel's errors took it.
    Lost,
    /// A limit was reached, as a queue's.
    Dropped,
    /// It was still inside when the run ended.
    Held,
}

impl Verdict {
    /// As logs name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Lost => "lost",
            Self::Dropped => "dropped",
            Self::Held => "held",
        }
    }
}

/// What is logged of a packet. `C` names the cause: a text in a log, a [`CauseId`](crate::recorder::CauseId) on the way
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketRecord<C> {
    /// Its number, as the link counts them.
    pub number: u64,
    /// Which way it went.
    pub way: Way,
    /// The terminal, from 0: whose copy it is, or who sent it; absent of a packet to all that ended before it was
    /// copied.
    pub terminal: Option<u32>,
    /// When it entered the link.
    pub entered: Time,
    /// When it should leave by the link's time; absent if it was not to leave.
    pub planned: Option<Time>,
    /// When it really was handed over at the other end; absent if it was not.
    pub left: Option<Time>,
    /// Its length in octets from the IP header on.
    pub octets: u32,
    /// What became of it.
    pub verdict: Verdict,
    /// What decided that, as `forward: queue`; empty if there is nothing to say.
    pub cause: C,
}

impl<C> PacketRecord<C> {
    /// The same packet with the cause named otherwise.
    pub fn with_cause<D>(&self, cause: D) -> PacketRecord<D> {
        let &Self { number, way, terminal, entered, planned, left, octets, verdict, .. } = self;
        PacketRecord { number, way, terminal, entered, planned, left, octets, verdict, cause }
    }
}

/// Takes records, in any order. After the first error it writes nothing more, and keeps the error until it is
/// [finished](Self::finish). Dropped before that, it leaves nothing.
pub trait PacketLog: Send {
    /// Takes the next record.
    fn record(&mut self, record: &PacketRecord<&str>);

    /// Completes the log under its final name.
    ///
    /// # Errors
    /// The first that there was; nothing is left then.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Why a log cannot be begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The name does not say which format.
    #[error("\"{path}\" tells no format: name a log FILE.csv or FILE.parquet", path = .0.display())]
    Ending(PathBuf),
    /// The file cannot be written.
    #[error("cannot write the log \"{path}\": {source}", path = .path.display())]
    File {
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Begins the log `path`, in the format that its ending says (`.csv` or `.parquet`, in either case of letters). A
/// Parquet file also keeps the pairs of `about`, such as `("seed", "1")`.
///
/// # Errors
/// [`LogError::Ending`] for any other name, [`LogError::File`] if it cannot be written.
pub fn create(path: &Path, about: &[(&str, &str)]) -> Result<Box<dyn PacketLog>, LogError> {
    let ending = path.extension().map(OsStr::to_ascii_lowercase);
    let in_csv = match ending.as_ref().and_then(|ending| ending.to_str()) {
        Some("csv") => true,
        Some("parquet") => false,
        _ => return Err(LogError::Ending(path.to_path_buf())),
    };
    let failed = |source| LogError::File { path: path.to_path_buf(), source };
    let out: Box<dyn Output> = Box::new(StagedFile::create(path).map_err(failed)?);
    if in_csv {
        return Ok(Box::new(CsvLog::new(out)));
    }
    Ok(Box::new(ParquetLog::new(out, about).map_err(failed)?))
}

/// `at` as logs write it.
fn nanoseconds(at: Time) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
