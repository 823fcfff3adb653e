//! The packets of one direction: those that wait for the bundle, and those whose fragments it has sent.

use alloc::collections::VecDeque;

use farcast_core::Message;
use farcast_core::stage::Frame;

use crate::pipe::QueueLimit;

/// Packets that wait for the bundle.
#[derive(Clone, Debug)]
pub(super) struct WaitingPackets<M> {
    limit: QueueLimit,
    frames: VecDeque<Frame<M>>,
    octets: u64,
}

impl<M: Message> WaitingPackets<M> {
    pub(super) const fn new(limit: QueueLimit) -> Self {
        Self { limit, frames: VecDeque::new(), octets: 0 }
    }

    /// Takes a packet unless the queue is full. Returns `true` if it took the packet.
    pub(super) fn push(&mut self, frame: Frame<M>) -> bool {
        let octets = self.octets.saturating_add(frame.octets(0));
        let fits = match self.limit {
            QueueLimit::Unbounded => true,
            QueueLimit::Packets(limit) => self.frames.len() < limit as usize,
            QueueLimit::Octets(limit) => octets <= limit,
        };
        if fits {
            self.octets = octets;
            self.frames.push_back(frame);
        }
        fits
    }

    pub(super) const fn limit(&self) -> QueueLimit {
        self.limit
    }

    /// Sets the limit for packets that enter from now on; packets that wait stay.
    pub(super) const fn set_limit(&mut self, limit: QueueLimit) {
        self.limit = limit;
    }

    pub(super) fn front(&self) -> Option<&Frame<M>> {
        self.frames.front()
    }

    pub(super) fn pop(&mut self) -> Option<Frame<M>> {
        let frame = self.frames.pop_front()?;
        self.octets = self.octets.saturating_sub(frame.octets(0));
        Some(frame)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Frame<M>> {
        self.frames.iter()
    }
}

/// A packet that the bundle has cut into fragments.
#[derive(Clone, Debug)]
struct Packet<M> {
    /// `None` once the packet has arrived or is known to be lost.
    frame: Option<Frame<M>>,
    /// One past its last sequence number.
    end: u64,
}

/// Packets by number, from the first that may still arrive.
#[derive(Clone, Debug)]
pub(super) struct Packets<M> {
    entries: VecDeque<Packet<M>>,
    first: u64,
    /// Number of packets that may still arrive.
    alive: usize,
}

impl<M> Packets<M> {
    pub(super) const fn new() -> Self {
        Self { entries: VecDeque::new(), first: 0, alive: 0 }
    }

    /// Returns the number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(super) const fn alive(&self) -> usize {
        self.alive
    }

    /// Returns the packets that may still arrive.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Frame<M>> {
        self.entries.iter().filter_map(|packet| packet.frame.as_ref())
    }

    /// Adds the packet whose fragments have numbers below `end`.
    pub(super) fn push(&mut self, frame: Frame<M>, end: u64) {
        self.entries.push_back(Packet { frame: Some(frame), end });
        self.alive += 1;
    }

    /// Takes packet `number`, if it may still arrive.
    pub(super) fn take(&mut self, number: u64) -> Option<Frame<M>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let frame = self.entries.get_mut(index)?.frame.take()?;
        self.alive -= 1;
        while self.entries.pop_front_if(|packet| packet.frame.is_none()).is_some() {
            self.first += 1;
        }
        Some(frame)
    }

    /// Forgets the packets that end at or below `decided` and have not arrived. Returns their number.
    pub(super) fn settle(&mut self, decided: u64) -> u64 {
        let mut lost = 0;
        while let Some(packet) =
            self.entries.pop_front_if(|packet| packet.frame.is_none() || packet.end <= decided)
        {
            self.first += 1;
            lost += u64::from(packet.frame.is_some());
        }
        self.alive -= lost as usize;
        lost
    }
}
