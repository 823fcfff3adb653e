//! The event queue of a simulation.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::Time;

/// Events in the order of their times. Events of one instant keep the order in which they were pushed; those pushed as
/// late come behind all others. So a simulation is the same every time.
///
/// Most events that a simulation pushes come behind those that it pushed before: packets leave a link in order. So
/// there is a sorted lane beside the heap. An event that belongs near the lane's end goes there, past a few later ones
/// (timers, the end of a flow); the heap has the rest. A pop takes the earlier of the first of each.
///
/// The events themselves lie in a store and do not move. Only their places of 24 bytes move, for events of any size.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<EventPosition>>,
    lane: VecDeque<EventPosition>,
    events: Vec<Option<E>>,
    free: Vec<u32>,
    pushed: u64,
}

/// Time of an event, its place among the events of that instant, and its slot in the store.
type EventPosition = (Time, u64, u32);

/// Most events of the lane that a new event may pass.
const NEAR: usize = 4;

/// Offset of the place of an event that comes behind the others of its instant.
const LATE: u64 = 1 << 63;

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            lane: VecDeque::new(),
            events: Vec::new(),
            free: Vec::new(),
            pushed: 0,
        }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event at `at`.
    ///
    /// # Panics
    /// If more than 2^32 - 1 events wait.
    pub fn push(&mut self, at: Time, event: E) {
        let place = self.take_place();
        self.push_in(at, place, event);
    }

    /// Adds an event at `at`, behind everything of that instant that is not late.
    ///
    /// # Panics
    /// As [`push`](Self::push).
    pub fn push_late(&mut self, at: Time, event: E) {
        let place = LATE | self.take_place();
        self.push_in(at, place, event);
    }

    /// Takes a place among the events of an instant, as pushing takes one, for an event that is pushed
    /// [later](Self::push_in). A timer that moves with each message keeps one event in the queue and takes a place each
    /// time.
    pub fn take_place(&mut self) -> u64 {
        self.pushed += 1;
        self.pushed - 1
    }

    /// Adds an event at `at`, in a place that was [taken](Self::take_place) before.
    ///
    /// # Panics
    /// As [`push`](Self::push).
    pub fn push_in(&mut self, at: Time, place: u64, event: E) {
        let slot = if let Some(slot) = self.free.pop() {
            self.events[slot as usize] = Some(event);
            slot
        } else {
            self.events.push(Some(event));
            u32::try_from(self.events.len() - 1).expect("fewer than 2^32 events wait")
        };
        let one = (at, place, slot);
        let behind = self.lane.iter().rev().take(NEAR + 1).take_while(|other| **other > one).count();
        if behind > NEAR {
            self.heap.push(Reverse(one));
        } else if behind == 0 {
            self.lane.push_back(one);
        } else {
            self.lane.insert(self.lane.len() - behind, one);
        }
    }

    /// Adds an event at `at`, unless `at` is [`Time::NEVER`].
    pub fn push_unless_never(&mut self, at: Time, event: E) {
        if at != Time::NEVER {
            self.push(at, event);
        }
    }

    /// Takes the first event, with its time.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let in_heap = match (self.lane.front(), self.heap.peek()) {
            (Some(lane), Some(Reverse(heap))) => heap < lane,
            (lane, _) => lane.is_none(),
        };
        let (at, _, slot) =
            if in_heap { self.heap.pop().map(|Reverse(one)| one) } else { self.lane.pop_front() }?;
        self.free.push(slot);
        self.events[slot as usize].take().map(|event| (at, event))
    }

    /// Returns the time of the first event; [`Time::NEVER`] if none waits.
    pub fn next_at(&self) -> Time {
        let in_lane = self.lane.front().map_or(Time::NEVER, |one| one.0);
        self.heap.peek().map_or(in_lane, |Reverse(one)| in_lane.min(one.0))
    }

    /// Returns the number of events that wait.
    pub fn len(&self) -> usize {
        self.heap.len() + self.lane.len()
    }

    /// Returns the events that wait, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.events.iter().flatten()
    }

    /// Returns `true` if no event waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of places ever taken, by pushing or ahead of it.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn times_are_in_order_and_ties_in_the_order_of_pushing() {
        let mut queue = EventQueue::default();
        let mut random = RandomStream::derive(1, &[]);
        let mut expected = Vec::new();
        for number in 0..10_000u32 {
            let at = Time::from_nanos(random.below(500));
            queue.push(at, number);
            expected.push((at, number));
        }
        expected.sort();
        let popped: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(popped, expected);
    }

    #[test]
    fn what_is_late_comes_behind_all_others_of_its_instant() {
        let mut queue = EventQueue::default();
        let mut random = RandomStream::derive(2, &[]);
        let mut expected = Vec::new();
        for number in 0..10_000u32 {
            let (at, late) = (Time::from_nanos(random.below(500)), random.chance(0.5));
            if late {
                queue.push_late(at, (late, number));
            } else {
                queue.push(at, (late, number));
            }
            expected.push((at, (late, number)));
        }
        expected.sort();
        let mut waiting: Vec<_> = queue.iter().copied().collect();
        waiting.sort_by_key(|(_, number)| *number);
        assert!(waiting.iter().map(|(_, number)| *number).eq(0..10_000));
        let popped: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(popped, expected);
        assert_eq!(queue.iter().count(), 0);
    }

    #[test]
    fn a_place_that_was_taken_ahead_keeps_its_order() {
        let mut queue = EventQueue::default();
        let at = Time::from_nanos(5);
        queue.push(at, "first");
        let place = queue.take_place();
        queue.push(at, "third");
        queue.push_in(at, place, "second");
        assert!(core::iter::from_fn(|| queue.pop()).map(|(_, event)| event).eq(["first", "second", "third"]));
    }

    #[test]
    fn slots_are_used_again() {
        let mut queue = EventQueue::default();
        for number in 0..1000u64 {
            queue.push(Time::from_nanos(number), number);
            queue.push(Time::from_nanos(number), number);
            assert!(queue.pop().is_some() && queue.pop().is_some());
        }
        assert_eq!((queue.events.len(), queue.pushed()), (2, 2000));
    }

    /// Pushes two streams of packets in order, one of them far ahead of the other, and timers that lie still farther
    /// ahead. The order is the same for events in the lane and in the heap.
    #[test]
    fn streams_and_timers_between_them_keep_their_order() {
        let mut queue = EventQueue::default();
        let mut random = RandomStream::derive(3, &[]);
        let mut waiting = alloc::collections::BTreeSet::new();
        let (mut now, mut lanes, mut heaps) = (0, 0, 0);
        for number in 0..50_000u64 {
            let ahead = [10, 500, 90_000][random.below(3) as usize] + random.below(5);
            queue.push(Time::from_nanos(now + ahead), number);
            waiting.insert((Time::from_nanos(now + ahead), number));
            lanes += usize::from(!queue.lane.is_empty());
            heaps += usize::from(!queue.heap.is_empty());
            while queue.len() > 60 || random.chance(0.4) {
                assert_eq!(queue.next_at(), waiting.first().map_or(Time::NEVER, |first| first.0));
                assert_eq!(queue.pop(), waiting.pop_first());
                assert_eq!(queue.len(), waiting.len());
                let Some(&(at, _)) = waiting.first() else { break };
                now = now.max(at.as_nanos() - 10);
            }
        }
        assert!(lanes > 10_000 && heaps > 10_000, "both were used: {lanes} and {heaps}");
    }
}
