//! Cancellation of a transfer from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Handle by which a transfer is cancelled. Clones cancel the same transfer.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Makes a handle.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the transfer in good order: the other side is told, and what came is kept. Returns at once.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns the flag that the transfer looks at.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}
