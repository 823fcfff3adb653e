//! The way back from receivers to the sender.

use farcast_core::{Among, Losses, Span, Time};

/// Who loses what on the way back, where every receiver has a link of its own.
#[derive(Debug)]
pub enum BackLosses {
    /// A memoryless process, which need not be kept apart by receiver.
    Shared(Box<dyn Losses>),
    /// A process for each receiver.
    Each(Vec<Box<dyn Losses>>),
}

/// The way back.
pub struct Back {
    /// What every message takes, where it meets nobody else's; else it passes the stages that lead to the hub.
    pub(super) delay: Option<Span>,
    losses: BackLosses,
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

    /// Whether a message of `receiver` is lost.
    pub(super) fn loses(&mut self, now: Time, octets: u64, receiver: u32) -> bool {
        self.lost.clear();
        match &mut self.losses {
            BackLosses::Shared(losses) => {
                losses.draw(now, octets, Among::These(&[receiver]), &mut self.lost);
            }
            BackLosses::Each(list) => {
                if let Some(losses) = list.get_mut(receiver as usize) {
                    losses.draw(now, octets, Among::All, &mut self.lost);
                }
            }
        }
        !self.lost.is_empty()
    }

    /// The losses of merged NAKs, where they may be merged at all.
    pub(super) fn merged(&mut self) -> Option<&mut (dyn Losses + 'static)> {
        match (self.delay, &mut self.losses) {
            (Some(_), BackLosses::Shared(losses)) => Some(losses.as_mut()),
            _ => None,
        }
    }
}
