//! Transport of runs from departure to arrival.

use core::fmt::Debug;
use core::net::SocketAddr;

use farcast_core::engine::Message;
use farcast_core::{Span, Time};

use super::{AgendaKey, Class, Departing, Incoming, Item, Network};
use crate::host::slice;
use crate::link::{LinkState, SegmentFate};
use crate::log::Leg;

/// A run on its way from one host to another.
struct Trip<'a, M> {
    from: usize,
    to: usize,
    /// Departure of its first segment.
    departure: Time,
    delay: Span,
    /// Number of segments that entered the link before.
    base: u64,
    run: &'a Departing<M>,
}

impl<M: Message> Trip<'_, M> {
    fn departure_of(&self, segment: u32) -> Time {
        self.departure + self.run.spacing * u64::from(segment)
    }

    fn slice(&self, first: u32, count: u32) -> Option<M> {
        slice(&self.run.message, first, count)
    }
}

impl<M: Message + Debug + PartialEq + 'static> Network<M> {
    /// Returns the hosts that receive a message from `from` to `destination`.
    pub(super) fn targets(&self, from: usize, destination: SocketAddr) -> Vec<usize> {
        let group = destination.ip().is_multicast();
        let hosts = if group { self.groups.get(&destination.ip()) } else { self.addresses.get(&destination) };
        // A sender does not receive its own messages.
        hosts.into_iter().flatten().copied().filter(|&host| host != from).collect()
    }

    /// Carries a run from `from` to `to`: draws the fate of each segment and puts the survivors on the agenda.
    pub(super) fn carry(&mut self, from: usize, to: usize, departure: Time, run: &Departing<M>) {
        let kept = self.links.remove(&(from, to));
        let new = || LinkState::new(self.link_between(from, to), self.setup.seed, from, to);
        let mut state = kept.unwrap_or_else(new);
        let trip = Trip { from, to, departure, delay: state.delay, base: state.entered, run };
        let segments = run.message.segments().get();
        let mut whole = 0;
        for segment in 0..segments {
            let drawn = state.draw();
            let at = trip.departure_of(segment);
            let wait = self.queue(&mut state, to, at, run.message.wire_len(segment));
            let drawn = self.suffer(at, from, to, drawn).after(wait);
            let fate = self.inspect(&trip, segment, drawn);
            if fate.is_plain() {
                whole += 1;
                continue;
            }
            self.bring(&trip, segment - whole, whole);
            whole = 0;
            self.bring_copies(&trip, segment, &fate, &mut state);
        }
        self.bring(&trip, segments - whole, whole);
        self.links.insert((from, to), state);
    }

    /// Returns the time that a segment waits for the transmitter of its link, if there is one; `None` if the queue has no
    /// room.
    fn queue(&mut self, state: &mut LinkState, to: usize, at: Time, len: usize) -> Option<Span> {
        let Some(narrow) = state.link.narrow else { return Some(Span::ZERO) };
        let free = if narrow.shared { &mut self.places[to].free } else { &mut state.free };
        narrow.queue(at, len, free)
    }

    /// Logs a segment's leg and applies the filter to it.
    fn inspect(&mut self, trip: &Trip<'_, M>, segment: u32, drawn: SegmentFate) -> SegmentFate {
        if !self.record && self.filter.is_none() {
            return drawn;
        }
        let Some(message) = trip.slice(segment, 1) else { return drawn };
        let copies = if drawn.corrupt { 0 } else { drawn.copies };
        let at = trip.departure_of(segment);
        let mut leg = Leg { at, from: trip.from, to: trip.to, message, copies };
        let dropped = self.filter.as_mut().is_some_and(|filter| filter(&leg));
        if dropped {
            leg.copies = 0;
        }
        if self.record {
            self.log.legs.push(leg);
        }
        SegmentFate { copies: if dropped { 0 } else { drawn.copies }, ..drawn }
    }

    /// Puts consecutive segments that survived on the agenda, in one run.
    fn bring(&mut self, trip: &Trip<'_, M>, first: u32, count: u32) {
        if let Some(message) = trip.slice(first, count) {
            let at = trip.departure_of(first) + trip.delay;
            self.enter_arrival(trip, at, (trip.base + u64::from(first)) * 2, message);
        }
    }

    /// Puts the copies of one segment on the agenda, each at its own time, perhaps damaged.
    fn bring_copies(&mut self, trip: &Trip<'_, M>, segment: u32, fate: &SegmentFate, state: &mut LinkState) {
        for copy in 0..fate.copies {
            let Some(message) = trip.slice(segment, 1) else { return };
            let message = match (&mut self.damage, fate.corrupt) {
                (Some(damage), true) => damage(&message, &mut state.damage),
                (None, true) => None,
                (_, false) => Some(message),
            };
            let Some(message) = message else { continue };
            let at = trip.departure_of(segment) + trip.delay + fate.late[copy as usize];
            self.enter_arrival(trip, at, (trip.base + u64::from(segment)) * 2 + u64::from(copy), message);
        }
    }

    fn enter_arrival(&mut self, trip: &Trip<'_, M>, at: Time, number: u64, message: M) {
        let key = AgendaKey { at, class: Class::Arrival, from: trip.from, number };
        let source = trip.run.source.unwrap_or(self.places[trip.from].address);
        let spacing = trip.run.spacing;
        let incoming = Incoming { message, source, destination: trip.run.destination, spacing };
        self.enter(trip.to, key, Item::Arrival(incoming));
    }
}
