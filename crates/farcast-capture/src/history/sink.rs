//! A log that also feeds a history.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::History;
use crate::packets::{PacketLog, PacketRecord};

/// Creates a history to share between a writer and a reader.
pub fn shared() -> Arc<Mutex<History>> {
    Arc::default()
}

/// Log that takes records into a history, and into another log if there is one.
pub struct HistorySink {
    history: Arc<Mutex<History>>,
    log: Option<Box<dyn PacketLog>>,
}

impl HistorySink {
    /// Creates a sink into `history` and `log`.
    pub fn new(history: Arc<Mutex<History>>, log: Option<Box<dyn PacketLog>>) -> Self {
        Self { history, log }
    }
}

impl PacketLog for HistorySink {
    fn record(&mut self, record: &PacketRecord<&str>) {
        // If a reader has panicked, the history is still whole.
        self.history.lock().unwrap_or_else(PoisonError::into_inner).record(record);
        if let Some(log) = &mut self.log {
            log.record(record);
        }
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.log.map_or(Ok(()), PacketLog::finish)
    }
}
