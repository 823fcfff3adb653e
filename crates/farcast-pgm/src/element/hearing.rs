//! Reactions of an element to the messages that it receives (RFC 3208 §7).

use alloc::vec::Vec;

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Span, Time};
use farcast_delivery::Content;

use super::Element;
use super::parity::{Groups, on_demand};
use super::session::{Neighbour, RequestOrigin, Session};
use super::state::States;
use crate::message::{Ack, Body, Data, DataKind, Message, Nak, NakKind, Opt, Origin, Polr, Spm};
use crate::ports::Ports;
use crate::repairer::single;
use crate::sqn::Place;

/// Time in which a source is asked for an SPM only once (`SPMR_BO_IVL`, the one value that RFC 3208 gives, §13.2).
const SPMR: Span = Span::from_millis(250);

impl Element {
    pub(super) fn hear(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        if self.address(from.interface, from.destination).is_none() {
            return Err(Reject::Stranger);
        }
        if let Body::Spm(spm) = &message.body {
            return self.hear_spm(now, from, message, spm);
        }
        let at = self.sessions.iter().position(|session| session.tsi == message.tsi);
        let at = at.ok_or(Reject::Stranger)?;
        if self.sessions[at].port != message.port {
            return Err(Reject::OtherSession);
        }
        let heard = self.hear_of_known(now, at, from, message);
        let shows = matches!(
            &message.body,
            Body::Data(_) | Body::Ack(_) | Body::Nak(Nak { kind: NakKind::Confirmation, .. })
        );
        if shows
            && heard.is_ok()
            && let Some(session) = self.sessions.get_mut(at)
        {
            session.used = true;
        }
        heard
    }

    /// Handles a message other than an SPM, of a known session.
    fn hear_of_known(
        &mut self,
        now: Time,
        at: usize,
        from: &Arrival,
        message: &Message,
    ) -> Result<(), Reject> {
        match &message.body {
            Body::Spm(_) => Err(Reject::Unexpected),
            Body::Data(data) if data.kind == DataKind::Original => self.overhear(now, at, from, data),
            Body::Data(data) => self.hear_repair(now, at, from, data),
            Body::Nak(nak) => {
                self.check(at, nak)?;
                match nak.kind {
                    _ if nak.parity => self.hear_counts(now, at, from, nak),
                    NakKind::Nak => self.hear_nak(now, at, from, nak),
                    NakKind::Confirmation => self.hear_confirmation(now, at, from, nak),
                    NakKind::NullNak => self.hear_null(now, at, from, nak),
                }
            }
            Body::Poll(poll) => self.hear_poll(now, at, from, poll),
            Body::Polr(polr) => self.hear_polr(at, from, polr),
            Body::Spmr => self.hear_spmr(now, at, from),
            Body::Ack(ack) => self.hear_ack(at, from, ack),
        }
    }

    /// Handles an SPM, which tells where NAKs go, and forwards it with this element's address as the path (§7.2).
    fn hear_spm(&mut self, now: Time, from: &Arrival, message: &Message, spm: &Spm) -> Result<(), Reject> {
        let known = self.sessions.iter().position(|session| session.tsi == message.tsi);
        if let Some(session) = known.map(|at| &self.sessions[at]) {
            if session.port != message.port {
                return Err(Reject::OtherSession);
            }
            if spm.sqn.since(session.spm) <= 0 {
                return Err(Reject::Duplicate);
            }
            let (port, source) = (session.upstream.port, session.source_ip());
            let elsewhere = (port, source) != (from.interface, from.source.ip());
            if elsewhere && now.since(session.heard) < self.config.idle {
                return Err(Reject::Collision);
            }
        }
        let is_wrong = !spm.is_windowless() && spm.lead.next().since(spm.trail) < 0;
        let is_nowhere = spm.path.is_unspecified() || spm.path.is_multicast();
        if is_wrong || is_nowhere || !from.destination.ip().is_multicast() {
            return Err(Reject::Inconsistent);
        }
        let at = match known {
            Some(at) => at,
            None => self.meet(now, from, message, spm)?,
        };
        let session = &mut self.sessions[at];
        let upstream = Neighbour {
            port: from.interface,
            address: core::net::SocketAddr::new(spm.path, from.source.port()),
        };
        if session.upstream != upstream {
            session.redirected = None;
        }
        (session.upstream, session.source, session.group) = (upstream, from.source, from.destination);
        (session.spm, session.heard) = (spm.sqn, now);
        if !spm.is_windowless() {
            session.lead = session.lead.max(session.lead.near(spm.lead).next());
            session.trail = session.trail.max(session.lead.near(spm.trail));
            session.states.advance(session.trail);
            session.groups.advance(session.trail);
            self.follow(now, at);
        }
        self.sessions[at].groups.set_size(on_demand(spm));
        if !self.is_beside() {
            self.tell_path(at, spm);
        }
        Ok(())
    }

    fn tell_path(&mut self, at: usize, spm: &Spm) {
        let (group, upstream) = (self.sessions[at].group, self.sessions[at].upstream.port);
        for port in self.ports().without(Ports::one(upstream)).numbers() {
            let Some(path) = self.address(port, group) else { continue };
            let mut spm = Spm { path: path.ip(), ..spm.clone() };
            if self.store.is_some() {
                // A store holds data and no parity: receivers that ask by number can be repaired from it.
                for option in &mut spm.options {
                    if let Opt::ParityPrm { on_demand, .. } = option {
                        *on_demand = false;
                    }
                }
            }
            self.send_down(at, port, Body::Spm(spm));
        }
    }

    /// Adds an unknown session, and returns its index.
    fn meet(&mut self, now: Time, from: &Arrival, message: &Message, spm: &Spm) -> Result<usize, Reject> {
        if self.sessions.len() >= self.config.sessions {
            let idle = |session: &Session| !session.used || now.since(session.heard) >= self.config.idle;
            let yielding = self.sessions.iter().enumerate().filter(|(_, session)| idle(session));
            let oldest = yielding.min_by_key(|(_, session)| (session.used, session.heard));
            let at = oldest.map(|(at, _)| at).ok_or(Reject::Limit)?;
            self.forget(at);
        }
        let lead = Place::first(spm.lead).next();
        let trail = if spm.is_windowless() { lead } else { lead.near(spm.trail) };
        self.sessions.push(Session {
            tsi: message.tsi,
            port: message.port,
            source: from.source,
            group: from.destination,
            spm: spm.sqn,
            upstream: Neighbour { port: from.interface, address: from.source },
            redirected: None,
            beside: None,
            trail,
            lead,
            states: States::default(),
            groups: Groups::new(on_demand(spm)),
            lacking: self.begin(spm, trail, lead),
            used: false,
            heard: now,
            asked_spm: None,
            next_poll: if self.config.polls.is_some() { now } else { Time::NEVER },
            polls: 0,
            polled: None,
            told: None,
            kept: 0,
            served: 0,
        });
        Ok(self.sessions.len() - 1)
    }

    /// Checks that a message about repair names the source and the group of this session.
    fn check(&self, at: usize, nak: &Nak) -> Result<(), Reject> {
        let session = &self.sessions[at];
        // A receiver that hears this host in the source's place, as over UDP, takes it for the source.
        let is_source = nak.source == session.source_ip() || self.config.ports.contains(&nak.source);
        if is_source && nak.group == session.group.ip() { Ok(()) } else { Err(Reject::Inconsistent) }
    }

    /// Returns the places of `nak` that can be asked for or are kept in the store.
    ///
    /// # Errors
    /// [`Reject::OutOfRange`] if there is none.
    pub(crate) fn places(&self, at: usize, nak: &Nak) -> Result<Vec<Place>, Reject> {
        let session = &self.sessions[at];
        let end = session.lead.plus(self.config.ahead);
        let is_known = |place: &Place| {
            let kept = || self.store.as_ref().is_some_and(|store| store.has(session.tsi, *place));
            *place < end && (*place >= session.trail || kept())
        };
        let places: Vec<Place> = nak.sqns().map(|sqn| session.lead.near(sqn)).filter(is_known).collect();
        if places.is_empty() { Err(Reject::OutOfRange) } else { Ok(places) }
    }

    /// Returns `true` if a message came to the group by the session's upstream port.
    pub(crate) fn is_from_above(&self, at: usize, from: &Arrival) -> bool {
        from.interface == self.sessions[at].upstream.port && from.destination.ip().is_multicast()
    }

    /// Returns `true` if a message came from the repairer beside the tree.
    fn is_from_beside(&self, at: usize, from: &Arrival) -> bool {
        self.sessions[at]
            .beside
            .is_some_and(|beside| (beside.port, beside.address.ip()) == (from.interface, from.source.ip()))
    }

    /// Returns `true` if a message came to this element by a downstream port.
    pub(super) fn is_from_below(&self, at: usize, from: &Arrival) -> bool {
        from.interface != self.sessions[at].upstream.port && !from.destination.ip().is_multicast()
    }

    fn hear_nak(&mut self, now: Time, at: usize, from: &Arrival, nak: &Nak) -> Result<(), Reject> {
        if self.is_beside() {
            return self.hear_parent(now, at, from, nak);
        }
        if !self.is_from_below(at, from) {
            return Err(Reject::Unexpected);
        }
        let places = self.places(at, nak)?;
        if self.is_from_beside(at, from) {
            self.take_back(now, at, &places);
        }
        let lacking = self.serve(now, RequestOrigin { at, port: from.interface }, &places, &nak.options)?;
        self.counts.naks += 1;
        if lacking.is_empty()
            || self.ask(now, RequestOrigin { at, port: from.interface }, &lacking, &nak.options)
        {
            Ok(())
        } else {
            Err(Reject::Limit)
        }
    }

    /// Asks the neighbour for places that the repairer beside the tree cannot serve (§9.5.3.1).
    fn take_back(&mut self, now: Time, at: usize, places: &[Place]) {
        let Self { sessions, config, .. } = self;
        let states = &mut sessions[at].states;
        let back: Vec<Place> =
            places.iter().copied().filter(|&place| states.hand_back(now, place, config)).collect();
        if !back.is_empty() {
            self.forward(at, super::state::Way::Neighbour, &back, &[]);
        }
    }

    /// Handles the confirmation of this element's NAK, or of another's further up (§7.4, §7.5).
    fn hear_confirmation(&mut self, now: Time, at: usize, from: &Arrival, nak: &Nak) -> Result<(), Reject> {
        let is_from_above = self.is_from_above(at, from);
        if !is_from_above && !self.is_from_beside(at, from) {
            return Err(Reject::Unexpected);
        }
        let places = self.places(at, nak)?;
        let mut room = self.config.states.saturating_sub(self.states());
        let Self { sessions, config, counts, .. } = self;
        let session = &mut sessions[at];
        let mut is_news = false;
        for &place in &places {
            let is_new = !session.states.has(place);
            is_news |= !session.states.is_pending(place);
            session.lead = session.lead.max(place.next());
            // A repairer beside the tree confirms only what was asked of it, so it anticipates nothing.
            let may = is_from_above && room > 0;
            if session.states.confirmed(now, place, may, config) && is_new {
                (room, counts.anticipated) = (room - 1, counts.anticipated + 1);
            }
            if let Some(lacking) = &mut session.lacking {
                lacking.confirmed(now, place);
            }
        }
        session.heard = now;
        if is_from_above {
            self.follow(now, at);
            self.tell_of_itself(now, at, is_news);
        }
        Ok(())
    }

    /// Handles a NNAK: a repairer below serves what was asked of it (§9.5.3.2).
    fn hear_null(&mut self, now: Time, at: usize, from: &Arrival, nak: &Nak) -> Result<(), Reject> {
        if !self.is_from_below(at, from) || self.is_beside() {
            return Err(Reject::Unexpected);
        }
        let places = self.places(at, nak)?;
        let mut is_news = self.is_from_beside(at, from);
        let mut room = self.config.states.saturating_sub(self.states());
        let Self { sessions, config, .. } = self;
        for &place in &places {
            if room > 0 && sessions[at].states.null(now, place, config) {
                (is_news, room) = (true, room - 1);
            }
        }
        if !is_news {
            return Err(Reject::Duplicate);
        }
        self.counts.nulls += 1;
        let upstream = self.sessions[at].upstream;
        self.send_to(at, upstream, Body::Nak(nak.clone()));
        Ok(())
    }

    /// Forwards repair to the ports that asked for it (§7.6).
    fn hear_repair(&mut self, now: Time, at: usize, from: &Arrival, data: &Data) -> Result<(), Reject> {
        let is_from_above = self.is_from_above(at, from);
        if !is_from_above && !self.is_from_beside(at, from) {
            return Err(Reject::Unexpected);
        }
        let first = self.sessions[at].lead.near(data.sqn);
        if first >= self.sessions[at].lead.plus(self.config.ahead) {
            return Err(Reject::OutOfRange);
        }
        if data.parity.is_some() {
            return self.hear_parity(now, at, from, data);
        }
        let mut result = if self.keep(now, at, first, data) { Ok(()) } else { Err(Reject::Unexpected) };
        for index in 0..data.count.get() {
            let repaired = self.sessions[at].states.repaired(first.plus(index));
            let back = if is_from_above { Ports::one(from.interface) } else { Ports::NONE };
            let ports = repaired.unwrap_or_default().without(back);
            if repaired.is_some() {
                result = Ok(());
            }
            if ports == Ports::NONE {
                self.counts.unasked += 1;
            }
            for port in ports.numbers() {
                let mut one = single(data, index);
                one.options.cc = data.options.cc;
                one.origin = Origin(Content::Passing { datagram: index });
                self.counts.repairs += 1;
                self.send_down(at, port, Body::Data(one));
            }
        }
        if result.is_ok() {
            self.sessions[at].heard = now;
        }
        result
    }

    /// Handles the announcement of a repairer: one further up, sent to all (§9.5.2.1), or one beside the tree, sent to
    /// the element that sought it (§9.5.2.2).
    fn hear_polr(&mut self, at: usize, from: &Arrival, polr: &Polr) -> Result<(), Reject> {
        let redirect = polr.options.iter().find_map(|option| match option {
            Opt::Redirect(to) => Some(*to),
            _ => None,
        });
        let to = redirect.ok_or(Reject::Unexpected)?;
        if to.is_unspecified() || to.is_multicast() {
            return Err(Reject::Inconsistent);
        }
        let address = core::net::SocketAddr::new(to, from.source.port());
        let above = self.is_from_above(at, from);
        let below = self.is_from_below(at, from) && self.config.polls.is_some();
        let session = &mut self.sessions[at];
        if above && !from.destination.ip().is_unspecified() {
            session.redirected = Some(address).filter(|&address| address != session.upstream.address);
            Ok(())
        } else if below && polr.sqn.0 == session.polls && to == from.source.ip() {
            session.beside = Some(Neighbour { port: from.interface, address });
            Ok(())
        } else {
            Err(Reject::Unexpected)
        }
    }

    /// Forwards a request for an SPM towards the source (§13).
    fn hear_spmr(&mut self, now: Time, at: usize, from: &Arrival) -> Result<(), Reject> {
        if !self.is_from_below(at, from) {
            return Err(Reject::Unexpected);
        }
        let session = &mut self.sessions[at];
        if session.asked_spm.is_some_and(|asked| now.since(asked) < SPMR) {
            return Err(Reject::Duplicate);
        }
        session.asked_spm = Some(now);
        let upstream = session.upstream;
        self.send_to(at, upstream, Body::Spmr);
        Ok(())
    }

    /// Forwards an acknowledgement towards the source.
    fn hear_ack(&mut self, at: usize, from: &Arrival, ack: &Ack) -> Result<(), Reject> {
        if !self.is_from_below(at, from) || self.is_beside() {
            return Err(Reject::Unexpected);
        }
        let upstream = self.sessions[at].upstream;
        self.send_to(at, upstream, Body::Ack(ack.clone()));
        Ok(())
    }
}
