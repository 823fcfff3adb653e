//! Frames that wait for a decision, cut piece by piece.

use alloc::collections::VecDeque;
use core::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::Frame;
use farcast_core::{Span, Time};

/// Frames in order, each with the time of its first datagram. A driver that drains a stage leaves it empty.
#[derive(Clone, Debug)]
pub(crate) struct Inbox<M>(VecDeque<(Time, Frame<M>)>);

impl<M> Inbox<M> {
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(crate) fn push(&mut self, at: Time, frame: Frame<M>) {
        self.0.push_back((at, frame));
    }

    pub(crate) fn front(&self) -> Option<(Time, &Frame<M>)> {
        self.0.front().map(|(at, frame)| (*at, frame))
    }
}

impl<M: Message> Inbox<M> {
    /// Takes the first `count` datagrams of the first frame; the rest of it stays.
    pub(crate) fn take(&mut self, count: NonZeroU32) -> Option<Frame<M>> {
        let (at, frame) = self.0.pop_front()?;
        if count >= frame.message.segments() {
            return Some(frame);
        }
        let spacing = frame.spacing;
        let (head, tail) = frame.split(count);
        if let Some(tail) = tail {
            self.0.push_front((at + spacing * u64::from(count.get()), tail));
        }
        Some(head)
    }
}

/// Returns the number of datagrams that enter before `until`, of at most `most`: the first at `from`, each `spacing`
/// after the one before. The first counts in any case.
pub(crate) fn entering_before(from: Time, spacing: Span, until: Time, most: NonZeroU32) -> NonZeroU32 {
    if spacing.is_zero() {
        return most;
    }
    let count = until.since(from).as_nanos().div_ceil(spacing.as_nanos());
    NonZeroU32::new(u32::try_from(count).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN).min(most)
}
