//! Announcements and registration (draft §11.1).

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Bitmap, Span, Time};

use super::control::{State, Terms};
use super::session::Session;
use super::{Receiver, ReceiverStats};
use crate::event::{ReceiverEvent, ReceiverOutcome};
use crate::geometry::Geometry;
use crate::message::{Announce, Body, DeclineReason, GroupModel, Registration, RegistrationEntry};

/// After this much silence of the transmission at hand, another one from the same host takes its place.
const SUPERSEDED_AFTER: Span = Span::from_secs(5);

impl Receiver {
    pub(super) fn announce(
        &mut self,
        now: Time,
        from: &Arrival,
        transmission: u32,
        m: &Announce,
    ) -> Result<(), Reject> {
        if m.application != self.config.application {
            return Err(Reject::OtherSession);
        }
        let Some(session) = &self.session else { return self.offer(now, from, transmission, m) };
        let (terms, state) = (&session.terms, session.control.state);
        if (terms.source, terms.transmission) == (from.source, transmission) {
            self.known_announce(now, m);
            return Ok(());
        }
        let same_host = terms.source.ip() == from.source.ip();
        let restarted = same_host
            && m.product_id.is_some()
            && terms.offer.id == m.product_id
            && state != State::Offered
            && Geometry::new(m.product_size, m.dtu_size, m.block_size).as_ref() == Ok(terms.geometry());
        if restarted {
            return self.follow(now, from, transmission, m);
        }
        // The same host sends something else and the old transmission is silent: it was started again differently.
        let silent = now.since(session.control.last_heard) >= SUPERSEDED_AFTER;
        if silent && same_host && state == State::Receiving {
            self.end(ReceiverOutcome::SenderLost);
            return self.offer(now, from, transmission, m);
        }
        if self.busy_with != Some(from.source) {
            self.busy_with = Some(from.source);
            self.events.push_back(ReceiverEvent::Busy { server: from.source });
        }
        Err(Reject::OtherSession)
    }

    /// The same sender was started again and sends the same product under a new identifier: go on with what is
    /// here.
    fn follow(&mut self, now: Time, from: &Arrival, transmission: u32, m: &Announce) -> Result<(), Reject> {
        if !self.invites(m) {
            return Err(Reject::Stranger);
        }
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        session.terms.follow(from, transmission, m);
        (session.pass, session.pending) = (0, None);
        let act = session.control.follow(now, &session.terms, &self.config);
        self.act(now, act);
        if let Some(session) = &mut self.session
            && matches!(session.control.state, State::Completing { .. })
        {
            let act = session.control.report(now, &self.config);
            self.act(now, act);
        }
        Ok(())
    }

    fn invites(&self, m: &Announce) -> bool {
        let listed = m.hosts.as_ref().is_some_and(|hosts| hosts.iter().any(|(id, _)| *id == self.config.id));
        m.options.model != GroupModel::Closed || listed
    }

    fn offer(&mut self, now: Time, from: &Arrival, transmission: u32, m: &Announce) -> Result<(), Reject> {
        if self.ended.contains(&(from.source, transmission)) {
            return Err(Reject::Duplicate);
        }
        if !self.invites(m) {
            // A client that is not in the list of a closed group stays out silently (draft §6); its owner is told.
            if self.uninvited_by != Some(from.source) {
                self.uninvited_by = Some(from.source);
                self.events.push_back(ReceiverEvent::NotInvited { server: from.source });
            }
            return Err(Reject::Stranger);
        }
        let terms = Terms::new(from, transmission, m, &self.config)?;
        self.stats = ReceiverStats::default();
        self.events.push_back(ReceiverEvent::Offered(terms.offer.clone()));
        self.session = Some(Session::offered(now, terms));
        Ok(())
    }

    /// Takes part in the transmission that was offered, with the segments that are there already (a bitmap of
    /// another length counts as empty).
    pub fn accept(&mut self, now: Time, held: Bitmap) {
        let Some(session) = self.session.as_mut().filter(|s| s.control.state == State::Offered) else {
            return;
        };
        let segments = session.geometry().segments();
        session.have = if held.len() == segments { held } else { Bitmap::new(segments) };
        let act = session.control.accept(now, &session.terms, &self.config);
        self.act(now, act);
        self.check_complete();
    }

    /// Stays out of the transmission that was offered, and says why.
    pub fn decline(&mut self, reason: DeclineReason) {
        if self.session.as_ref().is_some_and(|s| s.control.state == State::Offered) {
            self.send_registration(Err(reason));
            self.end(ReceiverOutcome::Stopped);
        }
    }

    pub(super) fn send_registration(&mut self, response: Result<(), DeclineReason>) {
        let Some(session) = &self.session else { return };
        let registration = Registration {
            server: session.terms.server,
            entries: alloc::vec![RegistrationEntry { client: self.config.id, serial: None, response }],
            name: self.config.name.clone(),
            segments_held: Some(session.have.count()).filter(|&held| held > 0),
            receive_buffer_bytes: self.config.receive_buffer_bytes,
        };
        self.answer(Body::Registration(registration));
    }

    /// An announcement of the transmission at hand: perhaps it confirms us.
    fn known_announce(&mut self, now: Time, m: &Announce) {
        let id = self.config.id;
        let Some(session) = self.session.as_mut().filter(|s| s.control.state != State::Offered) else {
            return;
        };
        session.control.touch(now, &self.config);
        if session.control.accepted {
            return;
        }
        let standing = m.hosts.as_ref().and_then(|hosts| hosts.iter().find(|(host, _)| *host == id));
        let act = session.control.announced(standing.map(|&(_, standing)| standing));
        self.act(now, act);
    }
}
