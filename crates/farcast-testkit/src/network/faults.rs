//! Temporary faults: outages, frozen hosts, and the end of losses.

use core::cmp::Reverse;
use core::fmt::Debug;
use core::ops::Range;
use std::collections::BTreeMap;

use farcast_core::engine::Message;
use farcast_core::{Span, Time};

use super::{DepartureKey, Incoming, Item, Network};
use crate::host::Handle;
use crate::link::SegmentFate;

/// Intervals during which nothing from one host reaches another; `None` stands for every host.
pub(super) type Outages = BTreeMap<(Option<usize>, Option<usize>), Vec<Range<Time>>>;

/// State of a frozen host: arrivals wait in its socket's buffer, as long as there is room.
pub(super) struct Frozen<M> {
    until: Time,
    /// Segments that still fit.
    room: u32,
    waiting: Vec<Incoming<M>>,
}

impl<M> Frozen<M> {
    fn hold(&mut self, incoming: Incoming<M>, segments: u32) {
        // A run that does not fit as a whole is lost as a whole: it is a burst that found the buffer full.
        if let Some(room) = self.room.checked_sub(segments) {
            self.room = room;
            self.waiting.push(incoming);
        }
    }
}

impl<M: Message + Debug + PartialEq + 'static> Network<M> {
    /// Loses everything that leaves `from` for `to` in that time; `None` stands for every host. Draws of links do not
    /// change.
    pub fn outage(&mut self, during: Range<Time>, from: Option<usize>, to: Option<usize>) {
        self.outages.entry((from, to)).or_default().push(during);
    }

    /// Makes links only delay from `at` on: they no longer lose, double, reorder or damage. Transmitters keep their rates
    /// and queues.
    pub fn calm(&mut self, at: Time) {
        self.calm = at;
    }

    /// Stops a host for `span` from `at` on, as SIGSTOP does: it neither receives nor sends, and its timers do not run.
    /// Up to `room` segments that arrive wait for it. Then everything that is due happens at once.
    pub fn freeze<E>(&mut self, at: Time, host: Handle<E>, span: Span, room: u32) {
        self.script(at, host.index, Item::Freeze { until: at + span, room });
        self.script(at + span, host.index, Item::Thaw);
    }

    /// Fails after `steps` steps (arrivals, wake-ups, departures, scripts), at any time of the clock.
    pub fn bound(&mut self, steps: u64) {
        self.most_steps = steps;
    }

    /// Returns the fate of a segment that leaves at `at`, for which a link has drawn `fate`.
    pub(super) fn suffer(&self, at: Time, from: usize, to: usize, fate: SegmentFate) -> SegmentFate {
        let (from, to) = (Some(from), Some(to));
        let of = |pair| self.outages.get(&pair).is_some_and(|times| times.iter().any(|t| t.contains(&at)));
        let hit = !self.outages.is_empty()
            && [(from, to), (from, None), (None, to), (None, None)].into_iter().any(of);
        if hit {
            SegmentFate { copies: 0, ..fate }
        } else if at >= self.calm {
            SegmentFate::PLAIN
        } else {
            fate
        }
    }

    pub(super) fn is_frozen(&self, host: usize) -> bool {
        self.places[host].frozen.is_some()
    }

    /// Buffers a run that arrives at a frozen host.
    pub(super) fn hold(&mut self, host: usize, incoming: Incoming<M>) {
        let segments = incoming.message.segments().get();
        if let Some(frozen) = &mut self.places[host].frozen {
            frozen.hold(incoming, segments);
        }
    }

    /// Postpones a command to a frozen host; returns the command if the host is not frozen.
    pub(super) fn put_off(&mut self, host: usize, item: Item<M>) -> Option<Item<M>> {
        let Some(frozen) = &self.places[host].frozen else { return Some(item) };
        let at = frozen.until + Span::from_nanos(1);
        self.script(at, host, item);
        None
    }

    pub(super) fn stand_still(&mut self, host: usize, now: Time, until: Time, room: u32) {
        let place = &mut self.places[host];
        if !place.up || place.frozen.is_some() {
            return;
        }
        place.frozen = Some(Frozen { until, room, waiting: Vec::new() });
        if let Some(wake) = place.wake.take() {
            place.agenda.remove(&wake);
        }
        // Departures that it has already scheduled are delayed.
        let late = until.since(now);
        let mine: Vec<DepartureKey> =
            self.departures.keys().filter(|key| key.from == host).copied().collect();
        for key in mine {
            if let Some(departing) = self.departures.remove(&key) {
                let (at, Reverse(polled)) = (key.at + late, key.polled);
                self.departures.insert(DepartureKey { at, polled: Reverse(polled), ..key }, departing);
            }
        }
        self.reindex(host);
    }

    pub(super) fn go_on(&mut self, host: usize, now: Time) {
        // A longer stop may have begun within this one.
        if self.places[host].frozen.as_ref().is_none_or(|frozen| frozen.until > now) {
            return;
        }
        let Some(frozen) = self.places[host].frozen.take() else { return };
        for Incoming { message, source, destination, .. } in frozen.waiting {
            let mut rest = Some(message);
            while let Some(message) = rest {
                let prefix = self.places[host].node.prefix(&message);
                let (head, tail) = message.split(prefix);
                rest = tail;
                let spacing = Span::ZERO;
                self.take(host, now, &Incoming { message: head, source, destination, spacing });
            }
        }
        self.drain(host, now);
    }
}
