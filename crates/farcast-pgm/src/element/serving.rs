//! Further functions of an element with a store: it stores data, requests what it lacks, and repairs.

use alloc::vec::Vec;

use farcast_core::engine::{Arrival, Message as _, Reject, Transmit};
use farcast_core::{Span, Time};

use super::{Element, RequestOrigin, about};
use crate::message::{Body, Data, MOST_LISTED, Message, Nak, NakKind, Opt, Polr, Spm, Sqn};
use crate::ports::Ports;
use crate::receiver::{Intervals, Lacking};
use crate::repairer::{Asks, Served, TpduId, Waiting};
use crate::sqn::Place;

/// Limit of repairs as a multiple of the TPDUs stored, and a constant added to it; as for a source.
const REPAIRS: (u64, u64) = (64, 1024);

/// Reception of data.
impl Element {
    /// Returns the set of missing numbers of a new session, which begins where the repairer begins to receive.
    pub(crate) fn begin(&self, spm: &Spm, trail: Place, lead: Place) -> Option<Lacking> {
        let store = self.config.store.as_ref().filter(|store| store.asks != Asks::Nothing)?;
        let join = spm.options.iter().find_map(|option| match option {
            Opt::Join(sqn) => Some(lead.near(*sqn)),
            _ => None,
        });
        let join = join.filter(|join| store.asks == Asks::FromJoin && (trail..=lead).contains(join));
        let most = Place(lead.0.saturating_sub(store.tpdus as u64));
        let intervals = Intervals {
            confirm: store.confirm,
            adapts: false,
            repair: store.repair,
            confirm_retries: store.retries,
            repair_retries: store.retries,
        };
        Some(Lacking::new(join.unwrap_or(lead).max(most), intervals))
    }

    /// Starts the back-offs of missing numbers, as far as they are known.
    pub(crate) fn follow(&mut self, now: Time, at: usize) {
        let Self { sessions, random, config, .. } = self;
        let session = &mut sessions[at];
        let (Some(lacking), Some(store)) = (&mut session.lacking, &config.store) else { return };
        let interval = store.backoff.as_nanos();
        lacking.know(session.trail, session.lead, || now + Span::from_nanos(1 + random.below(interval)));
    }

    /// Stores passing data.
    pub(crate) fn overhear(
        &mut self,
        now: Time,
        at: usize,
        from: &Arrival,
        data: &Data,
    ) -> Result<(), Reject> {
        if !self.is_from_above(at, from) || self.store.is_none() {
            return Err(Reject::Unexpected);
        }
        let session = &self.sessions[at];
        let first = session.lead.near(data.sqn);
        if first < session.trail || first >= session.lead.plus(self.config.ahead) {
            return Err(Reject::OutOfRange);
        }
        if !self.keep(now, at, first, data) {
            return Err(Reject::Duplicate);
        }
        self.sessions[at].heard = now;
        Ok(())
    }

    /// Stores the new part of `data`, which begin at `first`. Returns `true` if anything was new.
    pub(crate) fn keep(&mut self, now: Time, at: usize, first: Place, data: &Data) -> bool {
        let Self { sessions, store: Some(store), events, counts, .. } = self else { return false };
        let session = &mut sessions[at];
        let mut taken = 0;
        for index in 0..data.count.get() {
            let place = first.plus(index);
            if store.keep(TpduId { tsi: session.tsi, place }, data, index, events) {
                taken += 1;
                session.lead = session.lead.max(place.next());
                if let Some(lacking) = &mut session.lacking {
                    lacking.came(place);
                }
            }
        }
        session.kept += taken;
        counts.kept += taken;
        if taken > 0 {
            self.follow(now, at);
        }
        taken > 0
    }

    /// Requests what the repairer itself lacks, if it is time for that.
    pub(crate) fn ask_for_own(&mut self, now: Time, at: usize) {
        let Self { sessions, random, config, .. } = self;
        let (Some(lacking), Some(store)) = (&mut sessions[at].lacking, &config.store) else { return };
        if lacking.next().is_none_or(|due| due > now) {
            return;
        }
        let interval = store.backoff.as_nanos();
        let places = lacking.expire(now, || now + Span::from_nanos(1 + random.below(interval)));
        if !places.is_empty() {
            self.ask(now, RequestOrigin { at, port: 0 }, &places, &[]);
        }
    }
}

/// Service of requests.
impl Element {
    /// Serves the stored part of `places` to those below `port`: confirms it at once, and repairs it in its turn.
    /// Returns the rest.
    ///
    /// # Errors
    /// [`Reject::Limit`] if the repairer has sent so many repairs that it accepts no more requests.
    pub(crate) fn serve(
        &mut self,
        now: Time,
        from: RequestOrigin,
        places: &[Place],
        options: &[Opt],
    ) -> Result<Vec<Place>, Reject> {
        let RequestOrigin { at, port } = from;
        let (held, lacking) = self.part(at, places);
        let fresh = self.enqueue(now, at, &held, Served::Ports(Ports::one(port)))?;
        self.confirm(at, port, &fresh);
        self.tell_served(at, &fresh, options);
        Ok(lacking)
    }

    /// Divides `places` into those that are stored and those that are not.
    fn part(&self, at: usize, places: &[Place]) -> (Vec<Place>, Vec<Place>) {
        let tsi = self.sessions[at].tsi;
        let Some(store) = &self.store else { return (Vec::new(), places.to_vec()) };
        places.iter().partition(|&&place| store.has(tsi, place))
    }

    /// Queues the places that were not repaired a moment ago, and returns them.
    fn enqueue(&mut self, now: Time, at: usize, held: &[Place], to: Served) -> Result<Vec<Place>, Reject> {
        let Self { sessions, store: Some(store), config, .. } = self else { return Ok(Vec::new()) };
        let (session, mut fresh) = (&mut sessions[at], Vec::new());
        if held.is_empty() {
            return Ok(fresh);
        }
        if session.served > session.kept * REPAIRS.0 + REPAIRS.1 {
            return Err(Reject::Limit);
        }
        let holdoff = config.store.as_ref().map_or(Span::ZERO, |store| store.holdoff);
        let port = match to {
            Served::Ports(port) => port,
            Served::Parent => Ports::one(1),
        };
        for &place in held {
            if store.serve(now, TpduId { tsi: session.tsi, place }, port, holdoff) {
                store.queue.push_back(Waiting { tsi: session.tsi, place, to });
                session.served += 1;
                fresh.push(place);
            }
        }
        Ok(fresh)
    }

    /// Tells the source what is repaired here (§9.5.1).
    fn tell_served(&mut self, at: usize, places: &[Place], options: &[Opt]) {
        let feedback = self.config.store.as_ref().is_some_and(|store| store.feedback);
        let is_told = |option: &&Opt| feedback && matches!(option, Opt::Feedback(_));
        let options: Vec<Opt> = options.iter().filter(is_told).cloned().collect();
        for places in places.chunks(1 + MOST_LISTED) {
            let session = &self.sessions[at];
            let body = Body::Nak(about(session, NakKind::NullNak, places, options.clone()));
            let upstream = session.upstream;
            self.counts.nulls += 1;
            self.send_to(at, upstream, body);
        }
    }

    /// Handles a NAK of the parent, for a repairer beside the tree (§9.5.2.2). NAKs back what is not stored, so that
    /// the parent asks elsewhere.
    pub(crate) fn hear_parent(
        &mut self,
        now: Time,
        at: usize,
        from: &Arrival,
        nak: &Nak,
    ) -> Result<(), Reject> {
        let parent = self.sessions[at].upstream;
        let is_parent = (from.interface, from.source.ip()) == (parent.port, parent.address.ip());
        if !is_parent || from.destination.ip().is_multicast() {
            return Err(Reject::Unexpected);
        }
        let places = self.places(at, nak)?;
        let (held, lacking) = self.part(at, &places);
        let fresh = self.enqueue(now, at, &held, Served::Parent)?;
        self.counts.naks += 1;
        self.tell_served(at, &fresh, &nak.options);
        let heard: Vec<Place> = fresh.iter().chain(&lacking).copied().collect();
        for places in heard.chunks(1 + MOST_LISTED) {
            let body = Body::Nak(about(&self.sessions[at], NakKind::Confirmation, places, Vec::new()));
            self.counts.confirmations += 1;
            self.send_to(at, parent, body);
        }
        for places in lacking.chunks(1 + MOST_LISTED) {
            let body = Body::Nak(about(&self.sessions[at], NakKind::Nak, places, Vec::new()));
            self.counts.forwarded += 1;
            self.send_to(at, parent, body);
        }
        Ok(())
    }

    /// Returns the next repair, if it is time for one.
    pub(crate) fn repair(&mut self, now: Time) -> Option<Transmit<Message>> {
        let Self { sessions, store, counts, config, .. } = self;
        let store = store.as_mut()?;
        loop {
            let Waiting { tsi, place, to } = *store.queue.front()?;
            if store.pacer.next() > now {
                return None;
            }
            let session = sessions.iter().find(|session| session.tsi == tsi);
            let (Some(session), Some(data)) = (session, store.get(tsi, place)) else {
                // The data had to make room meanwhile: the receiver will ask again, and another node will answer.
                store.queue.pop_front();
                continue;
            };
            let trail = session.trail.min(place).sqn();
            let body = Body::Data(Data { trail, ..data.clone() });
            let message = Message { tsi, port: session.port, body };
            store.queue.pop_front();
            counts.served += 1;
            store.pacer.settle(now);
            store.pacer.charge(store.pacer.span(message.wire_len(0)));
            return Some(match to {
                Served::Ports(port) => Transmit {
                    source: Some(session.source),
                    interface: port.numbers().next().unwrap_or(0),
                    router_alert: config.router_alert,
                    ..Transmit::new(message, session.group)
                },
                Served::Parent => Transmit {
                    interface: session.upstream.port,
                    ..Transmit::new(message, session.upstream.address)
                },
            });
        }
    }
}

/// Announcement of the repairer.
impl Element {
    /// Announces a repairer on the tree to those below, unless it did so a moment ago. The reason is that its parent
    /// confirmed something that was not asked for here (§9.5.2.1).
    pub(crate) fn tell_of_itself(&mut self, now: Time, at: usize, is_news: bool) {
        let tells = self.config.store.as_ref().filter(|store| !store.beside).and_then(|store| store.tells);
        let session = &mut self.sessions[at];
        let Some(interval) = tells.filter(|_| is_news) else { return };
        if session.told.is_some_and(|told| now.since(told) < interval) {
            return;
        }
        session.told = Some(now);
        let (upstream, group) = (session.upstream.port, session.group);
        for port in self.ports().without(Ports::one(upstream)).numbers() {
            if let Some(own) = self.address(port, group) {
                let options = alloc::vec![Opt::Redirect(own.ip())];
                let polr = Polr { sqn: Sqn(0), round: 0, parity: false, options };
                self.send_down(at, port, Body::Polr(polr));
            }
        }
    }
}
