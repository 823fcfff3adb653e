//! A history beside a log.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::History;
use crate::packets::{PacketLog, PacketRecord};

/// A history that somebody fills and somebody else reads.
pub fn shared() -> Arc<Mutex<History>> {
    Arc::default()
}

/// Takes records into a history, and into a log if there is one.
pub struct Sink {
    history: Arc<Mutex<History>>,
    log: Option<Box<dyn PacketLog>>,
}

impl Sink {
    /// Into `history`, and into `log`.
    pub fn new(history: Arc<Mutex<History>>, log: Option<Box<dyn PacketLog>>) -> Self {
        Self { history, log }
    }
}

impl PacketLog for Sink {
    fn record(&mut self, record: &PacketRecord<&str>) {
        // Should whoever reads it have panicked, it is still whole.
        self.history.lock().unwrap_or_else(PoisonError::into_inner).record(record);
        if let Some(log) = &mut self.log {
            log.record(record);
        }
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.log.map_or(Ok(()), PacketLog::finish)
    }
}
