//! Numbers that are to be repaired, and those that were repaired recently (RFC 3208 §5.2, §5.3).

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use farcast_core::{Span, Time};

use crate::sqn::Place;

/// Number of sequence numbers whose last confirmation or repair is remembered.
const REMEMBERED: usize = 1 << 16;

#[derive(Clone, Debug, Default)]
pub(super) struct Repairs {
    /// Places that were asked for and are still being gathered.
    gathered: BTreeSet<Place>,
    /// Places that are to be sent.
    ready: BTreeSet<Place>,
    /// Time of the last confirmation or repair, by place, while later requests are held off.
    recent: BTreeMap<Place, Time>,
    order: VecDeque<(Time, Place)>,
}

impl Repairs {
    /// Returns `true` if anything is to be sent.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns `true` if anything is to be sent or is being gathered.
    pub(super) fn is_any(&self) -> bool {
        self.is_ready() || !self.gathered.is_empty()
    }

    pub(super) fn len(&self) -> u32 {
        self.ready.len() as u32
    }

    /// Returns the oldest place that is wanted.
    pub(super) fn oldest(&self) -> Option<Place> {
        self.ready.first().into_iter().chain(self.gathered.first()).min().copied()
    }

    /// Notes a request for `place`. Returns `true` if it is not held off by a recent one.
    pub(super) fn ask(&mut self, now: Time, place: Place, holdoff: Span) -> bool {
        while let Some((at, old)) = self
            .order
            .front()
            .copied()
            .filter(|&(at, _)| now.since(at) >= holdoff || self.order.len() > REMEMBERED)
        {
            self.order.pop_front();
            if self.recent.get(&old) == Some(&at) {
                self.recent.remove(&old);
            }
        }
        if self.recent.contains_key(&place) {
            return false;
        }
        self.note(now, place);
        if self.ready.contains(&place) {
            return true;
        }
        self.gathered.insert(place);
        true
    }

    /// Adds `place` to be sent once more, unasked.
    pub(super) fn repeat(&mut self, place: Place) {
        self.ready.insert(place);
    }

    fn note(&mut self, at: Time, place: Place) {
        self.recent.insert(place, at);
        self.order.push_back((at, place));
    }

    /// Moves the gathered places to those that are to be sent.
    pub(super) fn commit(&mut self) {
        self.ready.append(&mut self.gathered);
    }

    /// Returns the next place to send, and the number of consecutive places that are to be sent from there on.
    pub(super) fn next(&self) -> Option<(Place, u32)> {
        let first = *self.ready.first()?;
        let follow = self.ready.range(first..).zip(0u32..).take_while(|&(place, n)| *place == first.plus(n));
        Some((first, follow.count() as u32))
    }

    /// Notes that `place` was sent at `at`.
    pub(super) fn sent(&mut self, at: Time, place: Place) {
        self.ready.remove(&place);
        self.note(at, place);
    }

    /// Removes the requests for places that `is_taken` names, and returns these places in order.
    pub(super) fn take(&mut self, is_taken: impl Fn(Place) -> bool) -> BTreeSet<Place> {
        let mut taken = BTreeSet::new();
        for set in [&mut self.gathered, &mut self.ready] {
            set.retain(|&place| !is_taken(place) || !taken.insert(place));
        }
        taken
    }

    /// Forgets the requests for everything before `trail`.
    pub(super) fn advance(&mut self, trail: Place) {
        for set in [&mut self.gathered, &mut self.ready] {
            *set = set.split_off(&trail);
        }
    }
}
