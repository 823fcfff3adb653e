//! Announcements and registration (draft §11.1).

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Bitmap, Span, Time};

use super::session::{Session, State};
use super::{Receiver, ReceiverStats, Timer};
use crate::event::{Offer, ReceiverEvent, ReceiverOutcome};
use crate::geometry::Geometry;
use crate::message::{Announce, Body, DeclineReason, GroupModel, Registration, RegistrationEntry, Standing};
use crate::wire;

/// The most DTUs that a block may have: the largest datagram holds one NAK of them. A sender that claims more
/// would have its receivers build answers that cannot be sent.
const LARGEST_BLOCK: usize = wire::block_size_for(65_507, 40);

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
        if (session.source, session.transmission) == (from.source, transmission) {
            self.known_announce(now, m);
            return Ok(());
        }
        let restarted = session.source.ip() == from.source.ip()
            && m.product_id.is_some()
            && session.offer.id == m.product_id
            && session.state != State::Offered
            && Geometry::new(m.product_size, m.dtu_size, m.block_size).as_ref() == Ok(session.geometry());
        if restarted {
            return self.follow(now, from, transmission, m);
        }
        // The same host sends something else and the old transmission is silent: it was started again differently.
        let silent = now.since(session.last_heard) >= SUPERSEDED_AFTER;
        if silent && session.source.ip() == from.source.ip() && session.state == State::Receiving {
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
        let (server, response) = addresses(from, m);
        (session.source, session.server, session.response) = (from.source, server, response);
        (session.transmission, session.model, session.last_heard) = (transmission, m.options.model, now);
        session.accepted = m.options.model == GroupModel::OpenUnlimited;
        (session.registrations, session.pass, session.pending, session.register_timer) = (0, 0, None, false);
        session.offer.parity_symbols = parity_symbols(m);
        // Parity symbols are the same in every transmission of one product cut the same way, so they stay.
        self.timers.set(Timer::Patience as usize, now + self.config.patience);
        self.register_after_backoff(now);
        if let Some(session) = self.session.as_mut().filter(|s| matches!(s.state, State::Completing { .. })) {
            // The sender that was started again does not know that we have everything.
            session.dones = 0;
            self.send_done(now);
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
        let geometry =
            Geometry::new(m.product_size, m.dtu_size, m.block_size).map_err(|_| Reject::OutOfRange)?;
        if geometry.block_len(0) as usize > LARGEST_BLOCK {
            return Err(Reject::OutOfRange);
        }
        if geometry.segments() > self.config.max_segments {
            return Err(Reject::Limit);
        }
        let (server, response) = addresses(from, m);
        let offer = Offer {
            server: from.source,
            transmission,
            private: m.private,
            name: m.product_name.clone(),
            id: m.product_id,
            geometry,
            parity_symbols: parity_symbols(m),
            overwrite: m.options.overwrite,
            rate_bps: m.data_rate_bps,
        };
        self.stats = ReceiverStats::default();
        self.session = Some(Session {
            source: from.source,
            server,
            response,
            transmission,
            model: m.options.model,
            offer: offer.clone(),
            state: State::Offered,
            accepted: m.options.model == GroupModel::OpenUnlimited,
            registrations: 0,
            have: Bitmap::new(0),
            parity: BTreeMap::new(),
            parity_held: 0,
            decoding: BTreeSet::new(),
            pass: 0,
            began: now,
            last_heard: now,
            backoff: Span::from_millis(m.backoff_window_ms.unwrap_or(0).into()),
            transfer: Span::from_secs(m.transfer_duration_s.into()),
            pending: None,
            naked_dtus: 0,
            dones: 0,
            done_sent: Time::ZERO,
            register_timer: false,
        });
        self.events.push_back(ReceiverEvent::Offered(offer));
        Ok(())
    }

    /// Takes part in the transmission that was offered, with the segments that are there already (a bitmap of
    /// another length counts as empty).
    pub fn accept(&mut self, now: Time, held: Bitmap) {
        let Some(session) = self.session.as_mut().filter(|s| s.state == State::Offered) else { return };
        let segments = session.geometry().segments();
        session.have = if held.len() == segments { held } else { Bitmap::new(segments) };
        session.state = State::Receiving;
        session.began = now;
        let transfer = session.transfer;
        self.timers.set(Timer::Patience as usize, now + self.config.patience);
        self.timers.set(Timer::Transfer as usize, now + transfer);
        self.register_after_backoff(now);
        self.check_complete();
    }

    /// Stays out of the transmission that was offered, and says why.
    pub fn decline(&mut self, reason: DeclineReason) {
        if self.session.as_ref().is_some_and(|s| s.state == State::Offered) {
            self.send_registration(Err(reason));
            self.end(ReceiverOutcome::Stopped);
        }
    }

    fn register_after_backoff(&mut self, now: Time) {
        if self.session.as_ref().is_some_and(|session| !session.accepted) {
            let backoff = self.backoff();
            if backoff.is_zero() {
                self.register(now);
            } else {
                self.timers.set(Timer::Register as usize, now + backoff);
            }
        }
    }

    /// Sends the registration, or gives up after too many.
    pub(super) fn register(&mut self, now: Time) {
        let Some(session) = &mut self.session else { return };
        if session.accepted {
            return;
        }
        if session.register_timer {
            if session.registrations > self.config.register_retry_count {
                return self.end(ReceiverOutcome::NotAccepted);
            }
            self.timers.set(Timer::Register as usize, now + self.config.register_retry);
        }
        self.send_registration(Ok(()));
    }

    fn send_registration(&mut self, response: Result<(), DeclineReason>) {
        let Some(session) = &mut self.session else { return };
        session.registrations += 1;
        let registration = Registration {
            server: session.server,
            entries: alloc::vec![RegistrationEntry { client: self.config.id, serial: None, response }],
            name: self.config.name.clone(),
            segments_held: Some(session.have.count()).filter(|&held| held > 0),
            receive_buffer_bytes: self.config.receive_buffer_bytes,
        };
        self.answer(Body::Registration(registration));
    }

    /// Data runs although no confirmation came: from now on the registration is repeated by the clock.
    pub(super) fn data_before_confirmation(&mut self, now: Time) {
        if let Some(session) = self.session.as_mut().filter(|s| !s.accepted && !s.register_timer) {
            session.register_timer = true;
            self.timers.set(Timer::Register as usize, now + self.config.register_retry);
        }
    }

    /// An announcement of the transmission at hand: perhaps it confirms us.
    fn known_announce(&mut self, now: Time, m: &Announce) {
        let id = self.config.id;
        let Some(session) = self.session.as_mut().filter(|s| s.state != State::Offered) else {
            return;
        };
        session.last_heard = now;
        self.timers.set(Timer::Patience as usize, now + self.config.patience);
        if session.accepted {
            return;
        }
        let standing = m.hosts.as_ref().and_then(|hosts| hosts.iter().find(|(host, _)| *host == id));
        if let Some((_, Standing::Accepted)) = standing {
            session.accepted = true;
            self.timers.stop(Timer::Register as usize);
            self.events.push_back(ReceiverEvent::Accepted);
        } else if !self.timers.is_set(Timer::Register as usize) {
            self.register_after_backoff(now);
        }
    }
}

/// The server and response addresses of an announcement.
///
/// A sender that does not know its own address announces 0.0.0.0; answers then go where the announcement came from.
/// They go there too where the announced address could not be answered, or is another host's: nobody is to aim
/// our answers at a third.
fn addresses(from: &Arrival, m: &Announce) -> (SocketAddr, SocketAddr) {
    let sound = m.response.port() != 0 && m.response.is_ipv4() == from.source.is_ipv4();
    let own = m.response.ip() == from.source.ip() || m.response.ip().is_multicast();
    (m.server, if sound && own { m.response } else { from.source })
}

/// The parity symbols of an announcement: more than a block code can have is a claim that nothing would back.
fn parity_symbols(m: &Announce) -> u32 {
    m.parity_symbols.unwrap_or(0).min(32_768)
}
