//! Announcements and registration (draft §11.1).

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Bitmap, Span, Time};
use farcast_delivery::Geometry;

use super::control::{State, Terms};
use super::guard::Guard;
use super::session::{Comparison, Session};
use super::{Receiver, ReceiverStats};
use crate::config::{ReceiverConfig, Waiter};
use crate::event::{ReceiverEvent, ReceiverOutcome};
use crate::message::{Announce, Body, DeclineReason, GroupModel, Registration};
use crate::turn::{HeardData, Turn};

/// Silence of the current transmission after which another one from the same host takes its place.
const SUPERSEDED_AFTER: Span = Span::from_secs(5);
/// Silence of the sender after which the same product is received from another sender, which may be the same one
/// restarted or at a new address. It is at least this long, and at least this many times the time of a DTU at the
/// announced rate.
const FOLLOWED_AFTER: (Span, u64) = (Span::from_secs(2), 4);

/// Age up to which an answer to a call that came before the owner took part tells how long answers take.
const FRESH: Span = Span::from_millis(500);

impl Session {
    /// Returns `true` if `m` announces the current product with the same blocks.
    fn is_same(&self, m: &Announce) -> bool {
        let geometry = Geometry::new(m.product_size, m.dtu_size, m.block_size);
        m.product_id.is_some()
            && self.terms.offer.id == m.product_id
            && self.control.state != State::Offered
            && geometry.as_ref() == Ok(self.terms.geometry())
    }

    /// Returns the silence of the sender after which another is followed.
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
            // A sender that is heard is still there. So this announcement is from another one, or forged.
            if silence >= session.followed_after() || gives_way {
                return self.follow(now, from, transmission, m);
            }
        } else if state == State::Receiving
            && self.invites(m)
            && !self.shunned.has(now, from.source, transmission)
        {
            // The same host sends another product and the old transmission is silent: the sender was started again.
            let superseded = silence >= SUPERSEDED_AFTER && terms.source.ip() == from.source.ip();
            if superseded || gives_way {
                self.shunned.add(now, terms.source, terms.transmission);
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

    /// Follows the sender of the same product, started again under a new identifier, and keeps the stored segments.
    fn follow(&mut self, now: Time, from: &Arrival, transmission: u32, m: &Announce) -> Result<(), Reject> {
        if !self.invites(m) {
            return Err(Reject::Stranger);
        }
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        session.terms.follow(from, transmission, m);
        session.guard = Guard::new(now, self.config.secret, &session.terms, m);
        (session.pass, session.pending, session.spoke) = (0, None, None);
        session.heard = HeardData::default();
        session.note_held();
        let act = session.control.follow(now, &session.terms, m.turn.is_some(), &self.config);
        self.act(now, act);
        self.called(now, m.turn);
        if let Some(session) = &mut self.session
            && matches!(session.control.state, State::Completing { .. })
            && !session.control.speaks_by_turns()
        {
            let act = session.control.report(now, &self.config);
            self.act(now, act);
        }
        Ok(())
    }

    /// Registers again after a change of the receiver's own address, so that the sender recognises its answers.
    pub fn moved(&mut self, now: Time) {
        let Some(session) = self.session.as_mut().filter(|s| s.control.state != State::Offered) else {
            return;
        };
        let by_turns = session.control.speaks_by_turns();
        let act = session.control.follow(now, &session.terms, by_turns, &self.config);
        // It speaks again when its turn comes.
        session.spoke = None;
        self.act(now, act);
    }

    pub(super) fn invites(&self, m: &Announce) -> bool {
        m.options.model != GroupModel::Closed || m.standing(self.config.id).is_some()
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
            // A client that is not in the list of a closed group stays out silently (draft §6); only its owner learns
            // of it.
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
        let restart = m.options.restart;
        self.session = Some(Session { restart, ..Session::offered(now, of, guard, m.turn) });
        Ok(())
    }

    /// Takes part in the offered transmission, with the segments that are stored already. A bitmap of another length
    /// counts as empty.
    pub fn accept(&mut self, now: Time, held: Bitmap) {
        let Some(session) = self.session.as_mut().filter(|s| s.control.state == State::Offered) else {
            return;
        };
        let segments = session.geometry().segments();
        session.have = if held.len() == segments { held } else { Bitmap::new(segments) };
        session.note_held();
        let act = session.control.accept(now, &session.terms, &self.config);
        let called = session.called.take();
        self.act(now, act);
        self.check_complete();
        let Some((at, turn)) = called else { return };
        self.called(now, Some(turn));
        if let Some(session) = self.session.as_mut().filter(|_| now.since(at) >= FRESH) {
            // The answer does not name the round: it would seem to have waited in a queue.
            session.spoke = None;
        }
    }

    /// Takes part with a possible older version of the product, and with these segments of the product itself. `listed`
    /// is `true` if segments are stored and the list of files is known already. Otherwise the owner reports [the list's
    /// length](Self::list_is) and [its completion](Self::listed). If the sender waits for the comparison,
    /// [`ReceiverEvent::Compare`] requests it.
    pub fn accept_comparing(&mut self, now: Time, held: Bitmap, listed: bool) {
        if let Some(session) = self.session.as_mut().filter(|s| s.control.state == State::Offered) {
            session.comparison =
                if listed { Comparison::Listed } else { Comparison::Due { list: None, asked: 0 } };
        }
        self.accept(now, held);
    }

    /// Declines the offered transmission with a reason.
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
        let by_turns = session.control.speaks_by_turns();
        Body::Registration(Registration {
            name: self.config.name.clone(),
            segments_held: session.claim(),
            receive_buffer_bytes: self.config.receive_buffer_bytes,
            nonce: session.guard.nonce(),
            heard: by_turns.then_some(session.heard),
            round: session.spoke.filter(|_| by_turns),
            ..Registration::new(session.terms.server, self.config.id, response)
        })
    }

    /// Registers and reports the complete product by one message. A sender that asks for proofs believes a report only
    /// with its token, so the message does not report before a token has come.
    pub(super) fn register_complete(&mut self, now: Time) {
        let Some(session) = &self.session else { return };
        let mut body = self.registration(session, Ok(()));
        if let Body::Registration(registration) = &mut body {
            registration.complete = session.guard.is_settled().then(|| session.held_before.count());
            (registration.heard, registration.segments_held) = (None, None);
            registration.receive_buffer_bytes = None;
        }
        self.answer(now, body);
    }

    /// Handles an announcement of the current transmission, which may confirm the registration.
    fn known_announce(&mut self, now: Time, m: &Announce) {
        let id = self.config.id;
        let Some(session) = self.session.as_mut().filter(|s| s.control.state != State::Offered) else {
            return;
        };
        session.control.touch(now, &self.config);
        session.restart = m.options.restart;
        // A sender that grants tokens and has not granted one has not heard this receiver, whatever its list says.
        let standing = m.standing(id).filter(|_| session.guard.is_settled());
        let act = session.control.announced(now, m, standing, &self.config);
        self.act(now, act);
        self.called(now, m.turn);
    }

    /// Speaks after a part of the turn's time, if `turn` calls this receiver for the first time in its round.
    pub(super) fn called(&mut self, now: Time, turn: Option<Turn>) {
        let ReceiverConfig { waits, seed, id, .. } = self.config;
        let Some((session, turn)) = self.session.as_mut().zip(turn) else { return };
        let calls = session.spoke != Some(turn.round) && turn.calls(session.terms.transmission, id);
        if calls && session.control.has_to_speak() {
            session.spoke = Some(turn.round);
            let wait = waits.draw(Waiter { seed, id }, now, turn.spread(), &mut self.random);
            session.control.speak_after(now, wait);
        }
    }
}
