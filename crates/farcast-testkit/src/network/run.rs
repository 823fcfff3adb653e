//! Virtual time: the next event, and its host.

use core::cmp::Reverse;
use core::fmt::Debug;
use core::num::NonZeroU32;

use farcast_core::engine::{Arrival, Message, Transmit};
use farcast_core::{Span, Time};

use super::{AgendaKey, Class, Cut, Departing, DepartureKey, Incoming, Item, Network, Wake};
use crate::host::before;
use crate::log::{Departure, Happening};

/// Number of wake-ups at one instant, or of messages and events after one change, that counts as endless.
const ENDLESS: u32 = 100_000;
const NANOSECOND: Span = Span::from_nanos(1);

impl<M: Message + Debug + PartialEq + 'static> Network<M> {
    /// Runs until no event is left.
    ///
    /// # Panics
    /// If an engine breaks a law that can be observed here, or the time limit passes.
    pub fn run(&mut self) {
        let limit = self.limit;
        self.run_until(limit);
        if let Some(next) = self.next() {
            let waiting: Vec<_> = self.places.iter().map(|place| place.deadline).collect();
            panic!("{} not at rest at {limit:?}: next at {next:?}, deadlines {waiting:?}", self.context());
        }
    }

    /// Runs all events before `end`.
    ///
    /// # Panics
    /// If an engine breaks a law that can be observed here.
    pub fn run_until(&mut self, end: Time) {
        for host in 0..self.places.len() {
            if self.places[host].wake.is_none() && self.places[host].up && !self.is_frozen(host) {
                let now = self.places[host].now;
                self.drain(host, now);
            }
        }
        while let Some(next) = self.next().filter(|&next| next < end) {
            self.steps += 1;
            assert!(self.steps <= self.most_steps, "{} at {next:?}: steps without end", self.context());
            match self.index.first() {
                Some(&(key, host)) if key.at <= next => self.step(host),
                _ => self.depart(),
            }
        }
    }

    fn next(&self) -> Option<Time> {
        let agenda = self.index.first().map(|(key, _)| key.at);
        agenda.into_iter().chain(self.departures.keys().next().map(|key| key.at)).min()
    }

    /// Returns the first time at which another event can happen at `host`, besides the present one.
    fn horizon(&self, host: usize) -> Time {
        let own = self.places[host].first.map_or(Time::NEVER, |key| key.at);
        let elsewhere = self.index.iter().find(|&&(_, other)| other != host).map(|(key, _)| key.at);
        let leaving = self.departures.keys().next().map(|key| key.at);
        let others = elsewhere.into_iter().chain(leaving).min().unwrap_or(Time::NEVER);
        own.min(others + self.shortest)
    }

    /// Handles the first entry of a host's agenda.
    fn step(&mut self, host: usize) {
        let Some((key, item)) = self.places[host].agenda.pop_first() else { return };
        self.reindex(host);
        match item {
            Item::Arrival(incoming) => self.arrive(host, key, incoming),
            Item::Command(_) => {
                if let Some(Item::Command(command)) = self.put_off(host, item)
                    && self.places[host].up
                {
                    self.expect_silence(host, key.at);
                    command(&mut *self.places[host].node, key.at);
                    self.drain(host, key.at);
                }
            }
            Item::Power(up) => self.power(host, key.at, up),
            Item::Freeze { until, room } => self.stand_still(host, key.at, until, room),
            Item::Thaw => self.go_on(host, key.at),
            Item::Early => self.wake_early(host, key.at),
            Item::Wake => self.wake(host, key.at),
        }
    }

    fn power(&mut self, host: usize, now: Time, up: bool) {
        self.places[host].up = up;
        self.places[host].frozen = None;
        if up {
            self.drain(host, now);
            return;
        }
        if let Some(wake) = self.places[host].wake.take() {
            self.places[host].agenda.remove(&wake);
        }
        self.places[host].deadline = None;
        self.departures.retain(|key, _| key.from != host);
        self.reindex(host);
    }

    /// Delivers the part of a run that may be delivered at once.
    fn arrive(&mut self, host: usize, key: AgendaKey, incoming: Incoming<M>) {
        let Incoming { message, source, destination, spacing } = incoming;
        let segments = message.segments().get();
        let most = before(self.horizon(host), key.at, spacing, segments);
        let cut = match self.setup.cut {
            Cut::Whole => most,
            Cut::One => 1,
            Cut::Random(_) => 1 + self.cuts.below(u64::from(most)) as u32,
        };
        let (head, _) = Self::head(message.clone(), cut);
        let prefix = self.places[host].node.prefix(&head).get();
        let count = cut.min(prefix);
        let (message, tail) = Self::head(message, count);
        let last = key.at + spacing * u64::from(count - 1);
        if let Some(message) = tail {
            let key = AgendaKey { at: last + spacing, number: key.number + 2 * u64::from(count), ..key };
            self.enter(host, key, Item::Arrival(Incoming { message, source, destination, spacing }));
        }
        let incoming = Incoming { message, source, destination, spacing };
        if self.is_frozen(host) {
            self.hold(host, incoming);
        } else if self.places[host].up {
            self.expect_silence(host, last);
            self.take(host, last, &incoming);
        }
    }

    /// Hands a run, or a part of one that may be taken at once, to an engine.
    pub(super) fn take(&mut self, host: usize, now: Time, incoming: &Incoming<M>) {
        let mut from = Arrival::new(incoming.source, incoming.destination);
        from.spacing = if incoming.message.segments().get() > 1 { incoming.spacing } else { Span::ZERO };
        // The result shows in the engine's later output.
        let _ = self.places[host].node.handle(now, &from, &incoming.message);
        self.drain(host, now);
    }

    fn wake(&mut self, host: usize, now: Time) {
        let place = &mut self.places[host];
        place.wake = None;
        place.wakes = if place.now == now { place.wakes + 1 } else { 0 };
        let (asked, wakes) = (place.deadline, place.wakes);
        assert!(
            wakes <= ENDLESS,
            "{} host {host} at {now:?}: woken without end by {asked:?}",
            self.context()
        );
        self.places[host].node.handle_timeout(now);
        let output = self.drain(host, now);
        let next = self.places[host].deadline;
        let progress = output > 0 || next.is_none_or(|next| next.at > now);
        assert!(
            progress,
            "{} host {host} at {now:?}: {asked:?} made no progress, next is {next:?}",
            self.context()
        );
    }

    /// Wakes a host before its deadline, and asserts that nothing changes.
    fn wake_early(&mut self, host: usize, now: Time) {
        let deadline = self.places[host].deadline;
        if !self.places[host].up || self.is_frozen(host) || deadline.is_none_or(|deadline| deadline.at <= now)
        {
            return;
        }
        self.places[host].node.handle_timeout(now);
        let event = self.places[host].node.take_event(now, true).map(|told| told.0);
        let sent = self.places[host].node.poll_transmit(now, now + NANOSECOND).map(|t| t.message);
        let after = self.places[host].node.poll_timeout();
        assert!(
            event.is_none() && sent.is_none() && after == deadline,
            "{} host {host} woken early at {now:?}, {deadline:?}: told {event:?}, sent {sent:?}, then {after:?}",
            self.context()
        );
    }

    /// Asserts that an engine sends nothing before its deadline unless an event reached it.
    fn expect_silence(&mut self, host: usize, now: Time) {
        let place = &mut self.places[host];
        if place.deadline.is_some_and(|deadline| deadline.at <= now) {
            return;
        }
        if let Some(sent) = place.node.poll_transmit(now, now + NANOSECOND) {
            let deadline = place.deadline;
            panic!(
                "{} host {host} at {now:?}: sends {:?} although nothing is due before {deadline:?}",
                self.context(),
                sent.message
            );
        }
    }

    /// Drains events and transmits after a change, and notes the deadline. Returns the number of events and transmits.
    pub(super) fn drain(&mut self, host: usize, now: Time) -> u32 {
        assert!(now >= self.places[host].now, "{} time went back at host {host}", self.context());
        self.places[host].now = now;
        let mut output = 0;
        loop {
            output += self.drain_events(host, now);
            let until = self.until(host, now);
            let transmit = self.places[host].node.poll_transmit(now, until);
            let told = self.drain_events(host, now);
            output += told + u32::from(transmit.is_some());
            self.expect_an_end(host, now, output);
            match transmit {
                Some(transmit) => self.leave(host, now, transmit),
                // The poll for a message may have caused an event, to which the owner may have answered.
                None if told == 0 => break,
                None => {}
            }
        }
        self.note_deadline(host, now);
        output
    }

    fn drain_events(&mut self, host: usize, now: Time) -> u32 {
        let mut events = 0;
        while let Some(told) = self.places[host].node.take_event(now, self.record) {
            events += 1;
            let text = told.0.filter(|_| self.record);
            self.log.events.extend(text.map(|text| Happening { at: now, host, text }));
            self.expect_an_end(host, now, events);
        }
        events
    }

    fn expect_an_end(&self, host: usize, now: Time, output: u32) {
        assert!(output < ENDLESS, "{} host {host} at {now:?}: output without end", self.context());
    }

    fn until(&mut self, host: usize, now: Time) -> Time {
        let next = now + NANOSECOND;
        let latest = self.horizon(host).max(self.places[host].node.settled_until()).max(next);
        match self.setup.cut {
            Cut::Whole => latest,
            Cut::One => next,
            // Runs take less than a minute, so a later end is useless.
            Cut::Random(_) => {
                let room = latest.since(next).min(Span::from_secs(60));
                // Most runs are much shorter than the room: the square brings more cuts into them.
                let part = self.cuts.unit();
                next + Span::from_nanos((room.as_nanos() as f64 * part * part) as u64)
            }
        }
    }

    fn leave(&mut self, host: usize, now: Time, transmit: Transmit<M>) {
        let number = self.number();
        let key = DepartureKey { at: now, from: host, polled: Reverse(now), number };
        let Transmit { message, source, destination, spacing, .. } = transmit;
        self.departures.insert(key, Departing { message, source, destination, spacing });
    }

    /// Sends the next departure: of its run, only the segments before which nothing else can happen.
    fn depart(&mut self) {
        let Some((key, departing)) = self.departures.pop_first() else { return };
        let host = key.from;
        let segments = departing.message.segments().get();
        let other = self.departures.keys().find(|other| other.from == host);
        // A reply to its first segment may come back while the rest is leaving.
        let echo = key.at + self.shortest * 2;
        let end =
            self.horizon(host).min(echo).max(key.at + NANOSECOND).min(other.map_or(Time::NEVER, |other| {
                // At one instant the order of keys decides.
                if *other > (DepartureKey { at: other.at, ..key }) { other.at + NANOSECOND } else { other.at }
            }));
        let count = before(end, key.at, departing.spacing, segments);
        let (message, tail) = Self::head(departing.message.clone(), count);
        let Departing { source, destination, spacing, .. } = departing;
        if let Some(message) = tail {
            let at = key.at + spacing * u64::from(count);
            self.departures
                .insert(DepartureKey { at, ..key }, Departing { message, source, destination, spacing });
        }
        let run = Departing { message, source, destination, spacing };
        self.note_departures(key.at, host, &run);
        for to in self.targets(host, destination) {
            self.carry(host, to, key.at, &run);
        }
    }

    fn note_departures(&mut self, first: Time, from: usize, run: &Departing<M>) {
        if !self.record {
            return;
        }
        let mut rest = Some(run.message.clone());
        let mut at = first;
        while let Some(message) = rest {
            let (message, tail) = message.split(NonZeroU32::MIN);
            self.log.departures.push(Departure { at, from, to: run.destination, message });
            (rest, at) = (tail, at + run.spacing);
        }
    }

    /// Reads a host's next deadline, and puts it on the agenda.
    fn note_deadline(&mut self, host: usize, now: Time) {
        let deadline = self.places[host].node.poll_timeout();
        if self.places[host].deadline == deadline && self.places[host].wake.is_some() {
            return;
        }
        self.places[host].deadline = deadline;
        if let Some(old) = self.places[host].wake.take() {
            self.places[host].agenda.remove(&old);
        }
        if let Some(deadline) = deadline.filter(|deadline| deadline.at != Time::NEVER) {
            let due = deadline.at.max(now);
            let at = match self.setup.wake {
                Wake::Late(most) => due + Span::from_nanos(self.wakes.below(most.as_nanos() + 1)),
                Wake::Prompt | Wake::Early => due,
            };
            let key = AgendaKey { at, class: Class::Wake, from: 0, number: 0 };
            self.places[host].wake = Some(key);
            self.places[host].agenda.insert(key, Item::Wake);
            if self.setup.wake == Wake::Early && due > now {
                let at = now + Span::from_nanos(self.wakes.below(due.since(now).as_nanos()));
                let early = AgendaKey { at, class: Class::Early, from: 0, number: 0 };
                self.places[host].agenda.insert(early, Item::Early);
            }
        }
        self.reindex(host);
    }

    fn head(message: M, count: u32) -> (M, Option<M>) {
        message.split(NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN))
    }
}
