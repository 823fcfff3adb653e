//! Thread of the writer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use rtrb::{Consumer, Producer};

use super::batch::{Batch, Captured, Entry};
use super::{CauseId, Summary};
use crate::output::Output;
use crate::packets::PacketLog;
use crate::pcapng::{self, Packet};

/// Manner in which a recording ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// Everything is written, and the files take their names.
    Finish = 1,
    /// Nothing is kept.
    Abandon = 2,
}

/// Manner in which the recording ends, once known.
#[derive(Debug, Default)]
pub(super) struct SharedEnding(AtomicU8);

impl SharedEnding {
    /// Sets the ending, after the last batch was sent.
    pub(super) fn set(&self, ending: Ending) {
        self.0.store(ending as u8, Ordering::Release);
    }

    /// Returns the ending. A thread that sees one also sees the last batch.
    fn get(&self) -> Option<Ending> {
        let ending = self.0.load(Ordering::Acquire);
        [Ending::Finish, Ending::Abandon].into_iter().find(|&known| known as u8 == ending)
    }
}

/// The writer's side of a recorder.
pub(super) struct RecordWriter {
    full: Consumer<Batch>,
    empty: Producer<Batch>,
    ending: Arc<SharedEnding>,
    log: Option<Box<dyn PacketLog>>,
    capture: Option<pcapng::Writer<Box<dyn Output>>>,
    /// The causes by their numbers, from 1.
    causes: Vec<String>,
    written: Summary,
}

impl RecordWriter {
    pub(super) fn new(
        full: Consumer<Batch>,
        empty: Producer<Batch>,
        ending: Arc<SharedEnding>,
        log: Option<Box<dyn PacketLog>>,
        capture: Option<pcapng::Writer<Box<dyn Output>>>,
    ) -> Self {
        Self { full, empty, ending, log, capture, causes: Vec::new(), written: Summary::default() }
    }

    /// Writes batches until the end. Returns the counts of entries written.
    pub(super) fn run(mut self) -> io::Result<Summary> {
        loop {
            // The ending is read first: a batch that came before it is then seen below.
            let ending = self.ending.get();
            if ending == Some(Ending::Abandon) {
                return Ok(self.written);
            }
            match self.full.pop() {
                Ok(batch) => self.take(batch),
                Err(_) if ending.is_some() => return self.complete(),
                // An unpark before the park makes the park return at once.
                Err(_) => thread::park(),
            }
        }
    }

    /// Writes `batch` and returns it empty to the ring.
    fn take(&mut self, mut batch: Batch) {
        self.causes.extend(batch.causes());
        self.write(&batch);
        batch.clear();
        // The ring has room for all batches.
        drop(self.empty.push(batch));
    }

    fn write(&mut self, batch: &Batch) {
        let Self { log, capture, causes, written, .. } = self;
        batch.each(|entry, octets| match entry {
            Entry::Record(record) => {
                if let Some(log) = log {
                    log.record(&record.with_cause(name(causes, record.cause)));
                    written.records += 1;
                }
            }
            &Entry::Captured(Captured { interface, at, direction }, len) => {
                if let Some(capture) = capture {
                    let octets_on_the_wire = u32::try_from(len).unwrap_or(u32::MAX);
                    capture.packet(&Packet {
                        interface,
                        at,
                        octets: octets_on_the_wire,
                        direction,
                        captured: octets,
                        comment: "",
                    });
                    written.captured += 1;
                }
            }
        });
    }

    /// Gives both files their names, one even if the other failed.
    fn complete(self) -> io::Result<Summary> {
        let log = self.log.map_or(Ok(()), PacketLog::finish);
        let capture = self.capture.map_or(Ok(()), |capture| capture.finish()?.commit());
        log.and(capture).map(|()| self.written)
    }
}

/// Returns the name of the cause `id`.
fn name(causes: &[String], id: CauseId) -> &str {
    usize::from(id.0).checked_sub(1).and_then(|index| causes.get(index)).map_or("", String::as_str)
}
