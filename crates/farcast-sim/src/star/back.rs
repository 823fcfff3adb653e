//! The way back from receivers to the sender.

use farcast_core::stage::Output;
use farcast_core::{Among, Losses, Span, Time};

use super::{BoxedStage, Packet};

/// Who loses what on the way back, where every receiver has a link of its own.
#[derive(Debug)]
pub enum BackLosses {
    /// A memoryless process, which need not be kept apart by receiver.
    Shared(Box<dyn Losses>),
    /// A process for each receiver.
    Each(Vec<Box<dyn Losses>>),
}

/// How messages come back.
pub(super) enum Path {
    /// Everyone's take equally long and meet nobody else's.
    Constant(Span),
    /// They pass these stages, in order; each enters at its receiver's port.
    Stages(Vec<BoxedStage>),
}

/// The way back.
pub struct Back {
    pub(super) path: Path,
    losses: BackLosses,
    /// Reused.
    lost: Vec<u32>,
}

impl Back {
    /// A way that takes everyone's messages `delay`.
    pub fn uniform(delay: Span, losses: BackLosses) -> Self {
        Self { path: Path::Constant(delay), losses, lost: Vec::new() }
    }

    /// A way through `stages`, of which there is at least one; what is lost is lost behind them, with their capacity
    /// used.
    pub fn stages(stages: Vec<BoxedStage>, losses: BackLosses) -> Self {
        Self { path: Path::Stages(stages), losses, lost: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        if let Path::Stages(stages) = &self.path { stages.len() } else { 0 }
    }

    /// The next frame that leaves a stage.
    pub(super) fn poll_output(&mut self, stage: usize) -> Option<Output<Packet>> {
        match &mut self.path {
            Path::Constant(_) => None,
            Path::Stages(stages) => stages[stage].poll_output(),
        }
    }

    /// When a stage wants to be woken.
    pub(super) fn poll_timeout(&self, stage: usize) -> Time {
        match &self.path {
            Path::Constant(_) => Time::NEVER,
            Path::Stages(stages) => stages[stage].poll_timeout().map_or(Time::NEVER, |deadline| deadline.at),
        }
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
        match (&self.path, &mut self.losses) {
            (Path::Constant(_), BackLosses::Shared(losses)) => Some(losses.as_mut()),
            _ => None,
        }
    }
}
