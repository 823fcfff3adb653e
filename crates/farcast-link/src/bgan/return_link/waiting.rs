//! The packets that wait at all terminals, in one store.

use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::stage::Frame;

/// Mark of an absent packet or place.
const NONE: u32 = u32::MAX;

/// A packet that waits for its slots.
#[derive(Clone, Debug)]
pub(super) struct Packet<M> {
    pub(super) entered: Time,
    /// The reservation slots that it takes.
    pub(super) r_slots: u64,
    pub(super) frame: Frame<M>,
}

/// Packets in numbered places, chained to queues. A free place is used again: a terminal costs two numbers, and a
/// packet costs no allocation once the store has grown.
#[derive(Clone, Debug)]
pub(super) struct Store<M> {
    places: Vec<StoreSlot<M>>,
    free: u32,
}

#[derive(Clone, Debug)]
struct StoreSlot<M> {
    packet: Option<Packet<M>>,
    /// The place behind this one in its queue, or the next free one.
    next: u32,
}

/// A queue of packets in a [`Store`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    head: u32,
    tail: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

impl Queue {
    /// Returns `true` if the queue is empty.
    pub(super) fn is_empty(self) -> bool {
        self.head == NONE
    }
}

impl<M> Default for Store<M> {
    fn default() -> Self {
        Self { places: Vec::new(), free: NONE }
    }
}

impl<M> Store<M> {
    /// Puts `packet` at the end of `queue`.
    pub(super) fn push(&mut self, queue: &mut Queue, packet: Packet<M>) {
        let place = self.put(packet);
        if queue.is_empty() {
            queue.head = place;
        } else {
            self.places[queue.tail as usize].next = place;
        }
        queue.tail = place;
    }

    /// Unchains the first place of `queue`; the packet stays in its place.
    pub(super) fn unchain(&mut self, queue: &mut Queue) -> Option<u32> {
        let place = (!queue.is_empty()).then_some(queue.head)?;
        queue.head = self.places[place as usize].next;
        Some(place)
    }

    /// Takes the first packet of `queue` if it entered by `by`.
    pub(super) fn pop_entered(&mut self, queue: &mut Queue, by: Time) -> Option<Packet<M>> {
        let first = self.places.get(queue.head as usize)?.packet.as_ref()?;
        let place = (first.entered <= by).then(|| self.unchain(queue))??;
        self.take(place)
    }

    /// Takes the packet at `place`, which is in no queue.
    pub(super) fn take(&mut self, place: u32) -> Option<Packet<M>> {
        let slot = &mut self.places[place as usize];
        slot.next = core::mem::replace(&mut self.free, place);
        slot.packet.take()
    }

    fn put(&mut self, packet: Packet<M>) -> u32 {
        let filled = StoreSlot { packet: Some(packet), next: NONE };
        if self.free == NONE {
            self.places.push(filled);
            return self.places.len() as u32 - 1;
        }
        let place = self.free;
        let slot = &mut self.places[place as usize];
        self.free = slot.next;
        *slot = filled;
        place
    }
}
