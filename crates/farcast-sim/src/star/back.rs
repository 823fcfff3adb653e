//! The way back from receivers to the sender.

use farcast_core::{Among, Losses, Span, Time};

pub use farcast_link::losses::BackLosses;

/// The way back.
pub struct Back {
    /// What every message takes, where it meets nobody else's; else it passes the stages that lead to the hub.
    pub(crate) delay: Option<Span>,
    pub(crate) losses: BackLosses,
    /// Reused.
    lost: Vec<u32>,
}

impl Back {
    /// A way that takes everyone's messages `delay`, where no stage leads to the hub.
    pub fn uniform(delay: Span, losses: BackLosses) -> Self {
        Self { delay: Some(delay), losses, lost: Vec::new() }
    }

    /// A way through stages, of which there is at least one; what is lost is lost behind them, with their capacity
    /// used.
    pub fn stages(losses: BackLosses) -> Self {
        Self { delay: None, losses, lost: Vec::new() }
    }

    /// Whether a message of `receiver` is lost that leaves the way back at `at`.
    pub(crate) fn loses(&mut self, at: Time, octets: u64, receiver: u32) -> bool {
        self.lost.clear();
        if let Some((losses, number)) = self.losses.of(receiver) {
            losses.draw(at, octets, Among::These(&[number]), &mut self.lost);
        }
        !self.lost.is_empty()
    }

    /// The losses of merged NAKs, where they may be merged at all.
    pub(crate) fn merged(&mut self) -> Option<&mut (dyn Losses + 'static)> {
        match (self.delay, &mut self.losses) {
            (Some(_), BackLosses::Shared(losses)) => Some(losses.as_mut()),
            _ => None,
        }
    }
}
