//! Announcements and registration (draft §11.1).

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Bitmap, Span, Time};
use farcast_delivery::Geometry;

use super::control::{State, Terms};
use super::guard::Guard;
use super::session::{Comparison, Session};
use super::{Receiver, ReceiverStats};
use crate::event::{ReceiverEvent, ReceiverOutcome};
use crate::message::{Announce, Body, DeclineReason, GroupModel, Registration, RegistrationEntry};

/// After this much silence of the transmission at hand, another one from the same host takes its place.
const SUPERSEDED_AFTER: Span = Span::from_secs(5);
/// After this much silence of its sender, the same product is taken from another, who may be the same, started again or
/// under a new address: at least, and so many times what a DTU takes at the announced rate.
const FOLLOWED_AFTER: (Span, u64) = (Span::from_secs(2), 4);

impl Session {
    /// Whether `m` announces what is received here, cut the same way.
    fn is_same(&self, m: &Announce) -> bool {
        let geometry = Geometry::new(m.product_size, m.dtu_size, m.block_size);
        m.product_id.is_some()
            && self.terms.offer.id == m.product_id
            && self.control.state != State::Offered
            && geometry.as_ref() == Ok(self.terms.geometry())
    }

    /// How long its sender may be silent before another is followed.
    pub(super) fn followed_after(&self) -> Span {
        let (least, times) = FOLLOWED_AFTER;
        let rate = farcast_core::BitRate::from_bps(self.terms.offer.rate_bps.into());
        let dtu = rate.map_or(Span::ZERO, |rate| rate.time_of_bytes(self.geometry().segment_size().into()));
        least.max(dtu * times)
    }
}

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
            let proofs = self.config.secret.is_some();
            if state != State::Offered && session.guard.is_disproved(now, transmission, m, proofs) {
                self.end(ReceiverOutcome::SenderLost);
                return self.offer(now, from, transmission, m);
            }
            self.known_announce(now, m);
            return Ok(());
        }
        let silence = now.since(session.control.last_heard);
        let gives_way = session.guard.gives_way(now, session.control.waits_since(), silence);
        if session.is_same(m) {
            // A sender that is heard is still there, so this is another, or someone who says so.
            if silence >= session.followed_after() || gives_way {
                return self.follow(now, from, transmission, m);
            }
        } else if state == State::Receiving
            && self.invites(m)
            && !self.shunned.has(now, (from.source, transmission))
        {
            // The same host sends something else and the old transmission is silent: it was started again differently.
            let superseded = silence >= SUPERSEDED_AFTER && terms.source.ip() == from.source.ip();
            if superseded || gives_way {
                self.shunned.add(now, (terms.source, terms.transmission));
                self.end(ReceiverOutcome::SenderLost);
                return self.offer(now, from, transmission, m);
            }
        }
        self.sound_out(now, from, transmission, m);
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
        session.guard = Guard::new(now, self.config.secret, &session.terms, m);
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

    /// Our address is another one now: registers anew from there, so that the sender knows our answers.
    pub fn moved(&mut self, now: Time) {
        let Some(session) = self.session.as_mut().filter(|s| s.control.state != State::Offered) else {
            return;
        };
        let act = session.control.follow(now, &session.terms, &self.config);
        self.act(now, act);
    }

    pub(super) fn invites(&self, m: &Announce) -> bool {
        let listed = m.hosts.as_ref().is_some_and(|hosts| hosts.iter().any(|(id, _)| *id == self.config.id));
        m.options.model != GroupModel::Closed || listed
    }

    pub(super) fn offer(
        &mut self,
        now: Time,
        from: &Arrival,
        transmission: u32,
        m: &Announce,
    ) -> Result<(), Reject> {
        if self.over.iter().any(|over| over.is_announced_by(from.source, transmission, m)) {
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
        let of = Terms::new(from, transmission, m, &self.config)?;
        self.stats = ReceiverStats::default();
        self.events.push_back(ReceiverEvent::Offered(of.offer.clone()));
        let guard = Guard::new(now, self.config.secret, &of, m);
        self.session = Some(Session::offered(now, of, guard));
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

    /// Takes part, with something that may be an older version of the product, and these segments of the product
    /// itself; where there are any, its list of files is known already (`listed`). Else the owner tells
    /// [how long the list of files is](Self::list_is) and [when it is there](Self::listed), and if the sender waits for
    /// that, [`ReceiverEvent::Compare`] asks for a comparison.
    pub fn accept_comparing(&mut self, now: Time, held: Bitmap, listed: bool) {
        if let Some(session) = self.session.as_mut().filter(|s| s.control.state == State::Offered) {
            session.comparison =
                if listed { Comparison::Listed } else { Comparison::Due { list: None, asked: 0 } };
        }
        self.accept(now, held);
    }

    /// Stays out of the transmission that was offered, and says why.
    pub fn decline(&mut self, reason: DeclineReason) {
        if self.session.as_ref().is_some_and(|s| s.control.state == State::Offered) {
            if let Some(session) = &self.session {
                let body = self.registration(session, Err(reason));
                self.take_leave(body, 1);
            }
            self.end(ReceiverOutcome::Stopped);
        }
    }

    pub(super) fn send_registration(&mut self, now: Time, response: Result<(), DeclineReason>) {
        if let Some(session) = &mut self.session {
            session.drop_stale_comparison();
        }
        if let Some(session) = &self.session {
            let body = self.registration(session, response);
            self.answer(now, body);
        }
    }

    pub(super) fn registration(&self, session: &Session, response: Result<(), DeclineReason>) -> Body {
        let registration = Registration {
            server: session.terms.server,
            entries: alloc::vec![RegistrationEntry { client: self.config.id, serial: None, response }],
            name: self.config.name.clone(),
            segments_held: session.claim(),
            receive_buffer_bytes: self.config.receive_buffer_bytes,
            nonce: session.guard.nonce(),
        };
        Body::Registration(registration)
    }

    /// An announcement of the transmission at hand: perhaps it confirms us.
    fn known_announce(&mut self, now: Time, m: &Announce) {
        let id = self.config.id;
        let Some(session) = self.session.as_mut().filter(|s| s.control.state != State::Offered) else {
            return;
        };
        session.control.touch(now, &self.config);
        session.restart = m.options.restart;
        if session.control.accepted {
            return;
        }
        // Who grants tokens and has not granted one has not heard us, whatever it is said to say.
        let hosts = m.hosts.as_ref().filter(|_| session.guard.is_settled());
        let standing = hosts.and_then(|hosts| hosts.iter().find(|(host, _)| *host == id));
        let act = session.control.announced(now, m, standing.map(|&(_, standing)| standing));
        self.act(now, act);
    }
}
