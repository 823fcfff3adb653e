//! What is to be repaired, and what was a moment ago (RFC 3208 §5.2, §5.3).

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use farcast_core::{Span, Time};

use crate::sqn::Place;

/// Of so many numbers it is known when they were confirmed or repaired last.
const REMEMBERED: usize = 1 << 16;

#[derive(Clone, Debug, Default)]
pub(super) struct Repairs {
    /// Asked for, and not yet to be sent.
    gathered: BTreeSet<Place>,
    /// To be sent.
    ready: BTreeSet<Place>,
    /// When one was confirmed or repaired last, for so long as that keeps others away.
    recent: BTreeMap<Place, Time>,
    order: VecDeque<(Time, Place)>,
}

impl Repairs {
    /// Whether anything is to be sent.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether anything is to be sent, or gathered.
    pub(super) fn is_any(&self) -> bool {
        self.is_ready() || !self.gathered.is_empty()
    }

    pub(super) fn len(&self) -> u32 {
        self.ready.len() as u32
    }

    /// The oldest that is wanted.
    pub(super) fn oldest(&self) -> Option<Place> {
        self.ready.first().into_iter().chain(self.gathered.first()).min().copied()
    }

    /// `place` is asked for; whether that is news.
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

    /// `place` is sent once more, unasked.
    pub(super) fn repeat(&mut self, place: Place) {
        self.ready.insert(place);
    }

    fn note(&mut self, at: Time, place: Place) {
        self.recent.insert(place, at);
        self.order.push_back((at, place));
    }

    /// What was gathered is to be sent.
    pub(super) fn commit(&mut self) {
        self.ready.append(&mut self.gathered);
    }

    /// The next to be sent, and how many follow it.
    pub(super) fn next(&self) -> Option<(Place, u32)> {
        let first = *self.ready.first()?;
        let follow = self.ready.range(first..).zip(0u32..).take_while(|&(place, n)| *place == first.plus(n));
        Some((first, follow.count() as u32))
    }

    /// `place` was sent at `at`.
    pub(super) fn sent(&mut self, at: Time, place: Place) {
        self.ready.remove(&place);
        self.note(at, place);
    }

    /// Nothing before `trail` is repaired any more.
    pub(super) fn advance(&mut self, trail: Place) {
        for set in [&mut self.gathered, &mut self.ready] {
            *set = set.split_off(&trail);
        }
    }
}
