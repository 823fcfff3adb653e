//! The way back from receivers to the sender.

use farcast_core::{Among, Losses, Span, Time};

use super::BoxedStage;

/// Who loses what on the way back, where every receiver has a link of its own.
#[derive(Debug)]
pub enum BackLosses {
    /// A memoryless process, which need not be kept apart by receiver.
    Shared(Box<dyn Losses>),
    /// A process for each receiver.
    Each(Vec<Box<dyn Losses>>),
}

impl BackLosses {
    fn lose(&mut self, now: Time, octets: u64, receiver: u32, lost: &mut Vec<u32>) -> bool {
        lost.clear();
        match self {
            Self::Shared(losses) => losses.draw(now, octets, Among::These(&[receiver]), lost),
            Self::Each(list) => {
                if let Some(losses) = list.get_mut(receiver as usize) {
                    losses.draw(now, octets, Among::All, lost);
                }
            }
        }
        !lost.is_empty()
    }
}

/// The way back.
pub enum Back {
    /// Everyone's messages take equally long and meet nobody else's.
    Uniform {
        /// How long.
        delay: Span,
        /// Which are lost.
        losses: BackLosses,
        /// Reused.
        lost: Vec<u32>,
    },
    /// Messages pass these stages, in order; each enters at its receiver's port.
    Stages(Vec<BoxedStage>),
}

impl Back {
    /// A way that takes `delay` and loses what `losses` say.
    pub fn uniform(delay: Span, losses: BackLosses) -> Self {
        Self::Uniform { delay, losses, lost: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        if let Self::Stages(stages) = self { stages.len() } else { 0 }
    }

    /// A message of `receiver` on a uniform way: how long it takes, unless it is lost.
    pub(super) fn pass(&mut self, now: Time, octets: u64, receiver: u32) -> Option<Span> {
        let Self::Uniform { delay, losses, lost } = self else { return None };
        (!losses.lose(now, octets, receiver, lost)).then_some(*delay)
    }

    /// The losses of merged NAKs, where they may be merged at all.
    pub(super) fn merged(&mut self) -> Option<&mut (dyn Losses + 'static)> {
        match self {
            Self::Uniform { losses: BackLosses::Shared(losses), .. } => Some(losses.as_mut()),
            _ => None,
        }
    }
}
