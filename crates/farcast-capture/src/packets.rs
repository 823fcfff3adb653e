//! The log of a link: a record for each packet, with its times, length and fate.
//!
//! | column | type | contents |
//! |---|---|---|
//! | `number` | unsigned 64 bits | the packet's number, as the link counts them |
//! | `way` | text | direction: `forward` (hub to terminals) or `return` |
//! | `terminal` | unsigned 32 bits, may be absent | terminal of the copy, or of the sender, from 0; absent for a packet to all that ended before it was copied |
//! | `entered_ns` | signed 64 bits | entry, in nanoseconds since the run began |
//! | `planned_ns` | signed 64 bits or none | planned departure by the link's time |
//! | `left_ns` | signed 64 bits or none | real departure |
//! | `octets` | unsigned 32 bits | length from the IP header on |
//! | `verdict` | text | `delivered`, `lost`, `dropped` or `held` |
//! | `cause` | text, may be empty | cause of the verdict, as `forward: queue` |
//!
//! Times beyond 2^63 - 1 ns (292 years) are written as this value.
//!
//! A CSV file follows RFC 4180, with a header and without comments; absent values are empty. A Parquet file has groups
//! of at most 65,536 rows, which is also the number that a log keeps in memory. It has key-value metadata: the caller's
//! facts about the run, and the unit of each column that has one as `COLUMN.unit`.

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

/// Names of the columns in order.
const COLUMNS: [&str; 9] =
    ["number", "way", "terminal", "entered_ns", "planned_ns", "left_ns", "octets", "verdict", "cause"];

/// Direction of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketDirection {
    /// Forward: from the hub to terminals.
    Forward,
    /// Return: from a terminal to the hub.
    Return,
}

impl PacketDirection {
    /// Returns the name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Return => "return",
        }
    }
}

/// Fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The packet left at the other end.
    Delivered,
    /// The channel's errors took the packet.
    Lost,
    /// The packet met a limit, for example that of a queue.
    Dropped,
    /// The packet was still inside when the run ended.
    Held,
}

impl Verdict {
    /// Returns the name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Lost => "lost",
            Self::Dropped => "dropped",
            Self::Held => "held",
        }
    }
}

/// Log record of a packet. `C` is the type of the cause: a text in a log, or a [`CauseId`](crate::recorder::CauseId) on
/// the way there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketRecord<C> {
    /// Number of the packet, as the link counts them.
    pub number: u64,
    /// Direction of the packet.
    pub way: PacketDirection,
    /// Terminal of the copy, or of the sender, from 0; absent for a packet to all that ended before it was copied.
    pub terminal: Option<u32>,
    /// Time of entry to the link.
    pub entered: Time,
    /// Planned departure by the link's time; absent if it was not to leave.
    pub planned: Option<Time>,
    /// Real departure at the other end; absent if it did not leave.
    pub left: Option<Time>,
    /// Length in octets from the IP header on.
    pub octets: u32,
    /// Fate of the packet.
    pub verdict: Verdict,
    /// Cause of the verdict, as `forward: queue`; empty if there is none.
    pub cause: C,
}

impl<C> PacketRecord<C> {
    /// Returns the record with another cause.
    pub fn with_cause<D>(&self, cause: D) -> PacketRecord<D> {
        let &Self { number, way, terminal, entered, planned, left, octets, verdict, .. } = self;
        PacketRecord { number, way, terminal, entered, planned, left, octets, verdict, cause }
    }
}

/// Log that takes records, in any order. After the first error it writes nothing more, and keeps the error until it is
/// [finished](Self::finish). If dropped before that, it leaves nothing.
pub trait PacketLog: Send {
    /// Takes the next record.
    fn record(&mut self, record: &PacketRecord<&str>);

    /// Completes the log under its final name.
    ///
    /// # Errors
    /// The first error of the log; nothing is left then.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Reason for which a log cannot be begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The name does not tell the format.
    #[error("\"{path}\" tells no format: name a log FILE.csv or FILE.parquet", path = .0.display())]
    Ending(PathBuf),
    /// The file cannot be written.
    #[error("cannot write the log \"{path}\": {source}", path = .path.display())]
    File {
        /// Path of the log.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Begins the log `path`, in the format of its extension (`.csv` or `.parquet`, in upper or lower case). A Parquet file
/// also keeps the pairs of `about`, such as `("seed", "1")`.
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

/// Returns `at` in the form of logs, in nanoseconds.
fn nanoseconds(at: Time) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
