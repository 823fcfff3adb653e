//! Logs and captures written by a thread of their own, so that a real-time thread never waits for a file.
//!
//! The real-time side copies entries into a batch with preallocated memory, and exchanges a full batch for an empty
//! one. It never waits for a file or a lock, and allocates nothing: batches pass through rings between one writer and
//! one reader each. If the writer has all batches, new entries are dropped, and counted as missed.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use farcast_capture::output::{Output, StagedFile};
//! use farcast_capture::packets::{self, PacketRecord, Verdict, PacketDirection};
//! use farcast_capture::pcapng::{Direction, Writer};
//! use farcast_capture::recorder::{Recorder, RecorderConfig};
//! use farcast_core::{Span, Time};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let log = packets::create(Path::new("link.parquet"), &[("seed", "1"), ("link", "geo")])?;
//! let out: Box<dyn Output> = Box::new(StagedFile::create(Path::new("link.pcapng"))?);
//! let mut capture = Writer::starting_at(out, 1_795_262_400_000_000_000);
//! capture.section("farcast", "geo, seed 1");
//! let near = capture.interface("near", "the terminal's end");
//! let mut recorder = Recorder::start(&RecorderConfig::default(), Some(log), Some(capture))?;
//! let queue = recorder.cause("forward: queue");
//! # let packet = [0x45; 1500];
//! recorder.capture(near, Time::ZERO + Span::from_millis(5), Direction::Outbound, &packet);
//! recorder.packet(&PacketRecord {
//!     number: 0,
//!     way: PacketDirection::Forward,
//!     terminal: Some(0),
//!     entered: Time::ZERO + Span::from_millis(5),
//!     planned: None,
//!     left: None,
//!     octets: 1500,
//!     verdict: Verdict::Dropped,
//!     cause: queue,
//! });
//! let summary = recorder.finish()?;
//! assert_eq!(summary.missed, 0);
//! # Ok(())
//! # }
//! ```

use std::io;
use std::mem;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use farcast_core::{Span, Time};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::output::Output;
use crate::packets::{PacketLog, PacketRecord};
use crate::pcapng::{self, Direction};

mod batch;
mod writer;

use batch::{Batch, Captured};
use writer::{Ending, RecordWriter, SharedEnding};

/// Most names in the table of causes.
const MOST_CAUSES: usize = u16::MAX as usize;

/// Capacity of a recorder. All its memory is allocated at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecorderConfig {
    /// Number of batches, one of which is being filled; fewer than 2 count as 2.
    pub batches: usize,
    /// Records and captured packets of a batch; 0 counts as 1.
    pub entries: usize,
    /// Octets of captured packets of a batch, if there is a capture. A larger packet is missed.
    pub octets: usize,
}

/// Capacity of 26 MB: enough for a writer that stops for half a second at 50,000 packets a second that are logged and
/// captured at both ends, or at 100 Mbit/s.
impl Default for RecorderConfig {
    fn default() -> Self {
        Self { batches: 16, entries: 8192, octets: 1 << 20 }
    }
}

/// Number of a cause in the table of the recorder that [assigned it](Recorder::cause). Another recorder's table has
/// another cause at this number, or none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CauseId(u16);

impl CauseId {
    /// No cause.
    pub const NONE: Self = Self(0);
}

/// Counts of entries written and missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Records in the log.
    pub records: u64,
    /// Packets in the capture.
    pub captured: u64,
    /// Records and packets that were not written, because the writer could not keep up.
    pub missed: u64,
}

/// The real-time side of a recording. If dropped without [`finish`](Self::finish), it leaves no files.
#[derive(Debug)]
pub struct Recorder {
    logs: bool,
    captures: bool,
    batch: Batch,
    /// The causes by their numbers, from 1.
    causes: Vec<String>,
    missed: u64,
    /// Lower bound of the age of the current batch: no entry in it is older than this time.
    waiting_since: Time,
    /// Ring of full batches, to the writer.
    full: Producer<Batch>,
    /// Ring of empty batches, from the writer.
    empty: Consumer<Batch>,
    ending: Arc<SharedEnding>,
    thread: Option<JoinHandle<io::Result<Summary>>>,
}

impl Recorder {
    /// Starts the writer. Records go to `log`, octets to `capture`, whose section and interfaces are already described.
    /// An absent output is not recorded, and without both there is no thread.
    ///
    /// A thread inherits the priority of the thread that starts it: start the recorder before raising one's own
    /// priority.
    ///
    /// # Errors
    /// The system's error, if it refuses a thread.
    pub fn start(
        config: &RecorderConfig,
        log: Option<Box<dyn PacketLog>>,
        capture: Option<pcapng::Writer<Box<dyn Output>>>,
    ) -> io::Result<Self> {
        let (logs, captures) = (log.is_some(), capture.is_some());
        let entries = if logs || captures { config.entries.max(1) } else { 0 };
        let octets = if captures { config.octets } else { 0 };
        let batches = config.batches.max(2);
        let (full, to_write) = RingBuffer::new(batches);
        let (mut emptied, empty) = RingBuffer::new(batches);
        // Each ring has room for all batches, so that a push never fails.
        (1..batches).for_each(|_| drop(emptied.push(Batch::new(entries, octets))));
        let ending = Arc::new(SharedEnding::default());
        let writer = RecordWriter::new(to_write, emptied, Arc::clone(&ending), log, capture);
        let builder = thread::Builder::new().name("recorder".to_string());
        let thread = (logs || captures).then(|| builder.spawn(|| writer.run())).transpose()?;
        Ok(Self {
            logs,
            captures,
            batch: Batch::new(entries, octets),
            causes: Vec::new(),
            missed: 0,
            waiting_since: Time::ZERO,
            full,
            empty,
            ending,
            thread,
        })
    }

    /// Returns the number of the cause `name`. Call once and keep the number: this may allocate. After 65,534 names
    /// every other name is recorded as "other".
    pub fn cause(&mut self, name: &str) -> CauseId {
        if name.is_empty() {
            return CauseId::NONE;
        }
        let known = self.causes.iter().position(|cause| cause == name);
        let index = known.unwrap_or_else(|| {
            if self.causes.len() < MOST_CAUSES {
                let last = self.causes.len() + 1 == MOST_CAUSES;
                let name = if last { "other" } else { name };
                self.causes.push(name.to_string());
                self.batch.push_cause(name.to_string());
            }
            self.causes.len() - 1
        });
        CauseId(index as u16 + 1)
    }

    /// Records the fate of a packet.
    pub fn packet(&mut self, record: &PacketRecord<CauseId>) {
        if self.logs && !self.batch.push_record(record) {
            self.miss_unless(|batch| batch.push_record(record));
        }
    }

    /// Records that `octets`, from the IP header on, passed `interface` at `at`. Calls must be in the order of time.
    pub fn capture(&mut self, interface: u32, at: Time, direction: Direction, octets: &[u8]) {
        let captured = Captured { interface, at, direction };
        if self.captures && !self.batch.push_captured(captured, octets) {
            self.miss_unless(|batch| batch.push_captured(captured, octets));
        }
    }

    /// Hands the current batch over if an entry in it may have waited for `age` or longer at `now`. Call it in idle
    /// moments, so that files are not far behind a slow link.
    pub fn flush_if_older(&mut self, now: Time, age: Span) {
        let due = now.since(self.waiting_since) >= age;
        if self.batch.is_empty() || (due && self.hand_over()) {
            self.waiting_since = now;
        }
    }

    /// Returns the number of records and packets missed so far, because the writer could not keep up.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Waits until everything is written and the files have their names.
    ///
    /// # Errors
    /// The first error of the log or the capture. An incomplete file is not left; the other file is completed.
    pub fn finish(mut self) -> io::Result<Summary> {
        let written = self.close(Ending::Finish)?;
        Ok(Summary { missed: self.missed, ..written })
    }

    /// Hands the batch over and tries again; an entry that finds no room even then is missed.
    fn miss_unless(&mut self, push: impl FnOnce(&mut Batch) -> bool) {
        if !(self.hand_over() && push(&mut self.batch)) {
            self.missed = self.missed.saturating_add(1);
        }
    }

    /// Exchanges the current batch for an empty one. Returns `false` if there is none.
    fn hand_over(&mut self) -> bool {
        let Ok(empty) = self.empty.pop() else { return false };
        let full = mem::replace(&mut self.batch, empty);
        self.send(full);
        true
    }

    /// Sends `batch` to the writer, whose ring has room for all batches.
    fn send(&mut self, batch: Batch) {
        drop(self.full.push(batch));
        self.wake();
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Sends the last batch to the writer and waits for its end.
    fn close(&mut self, ending: Ending) -> io::Result<Summary> {
        let last = mem::take(&mut self.batch);
        self.send(last);
        self.ending.set(ending);
        self.wake();
        let written = self.thread.take().map_or(Ok(Ok(Summary::default())), JoinHandle::join);
        written.unwrap_or_else(|_| {
            Err(io::Error::other("the thread that writes the log and the capture panicked"))
        })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Nothing is kept, so no error matters.
            let _ = self.close(Ending::Abandon);
        }
    }
}

#[cfg(test)]
mod tests;
