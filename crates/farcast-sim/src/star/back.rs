//! Return path from receivers to the sender.

use farcast_core::{Among, Losses, Span, Time};

pub use farcast_link::losses::BackLosses;

/// Return path from receivers to the sender.
pub struct Back {
    /// Delay of every message, where no stage is on the return path; `None` where messages pass stages that lead to the
    /// hub.
    pub(crate) delay: Option<Span>,
    pub(crate) losses: BackLosses,
    /// Receivers that lose a message (a buffer that is reused).
    lost: Vec<u32>,
}

impl Back {
    /// Makes a return path that delays every message by `delay`, where no stage leads to the hub.
    pub fn uniform(delay: Span, losses: BackLosses) -> Self {
        Self { delay: Some(delay), losses, lost: Vec::new() }
    }

    /// Makes a return path through stages, of which there is at least one. Messages are lost behind the stages, after
    /// they have used capacity.
    pub fn stages(losses: BackLosses) -> Self {
        Self { delay: None, losses, lost: Vec::new() }
    }

    /// Returns `true` if a message of `receiver` that leaves the return path at `at` is lost.
    pub(crate) fn loses(&mut self, at: Time, octets: u64, receiver: u32) -> bool {
        self.lost.clear();
        if let Some((losses, number)) = self.losses.of(receiver) {
            losses.draw(at, octets, Among::These(&[number]), &mut self.lost);
        }
        !self.lost.is_empty()
    }

    /// Returns the loss process of merged NAKs; `None` where NAKs may not be merged.
    pub(crate) fn merged(&mut self) -> Option<&mut (dyn Losses + 'static)> {
        match (self.delay, &mut self.losses) {
            (Some(_), BackLosses::Shared(losses)) => Some(losses.as_mut()),
            _ => None,
        }
    }
}
