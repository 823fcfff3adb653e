//! Admission of receivers: registrations, tokens, and claims to a name that is taken (draft §11.1;
//! [`proof`](crate::proof)).
//!
//! If the sender has a secret, a registration is only a claim until it comes again with a proof. The proof uses the
//! token that the sender sent to the registration's source. Before the proof the sender serves the receiver, but an
//! open group does not wait for it, and it loses its place to a receiver with a proof. A receiver that was started
//! again is recognised by its nonce. A member that has proved itself is not replaced by a claim unless it was given up;
//! a replacement is reported.

use core::net::SocketAddr;

use farcast_core::engine::Reject;
use farcast_core::{Span, Time, Transmit};

use alloc::vec::Vec;

use super::members::{self, Member, MemberState};
use super::survey::Tallies;
use super::{Phase, Sender, Timer};
use crate::config::Group;
use crate::event::SenderEvent;
use crate::message::{
    Abort, Body, ClientId, DeclineReason, Done, Echo, Grant, Message, Registration, cancel,
};
use crate::proof::Proof;

/// Nonce for receivers without one.
const NO_NONCE: Proof = Proof([0; 8]);
/// Number of receivers without proofs that are remembered to have proved their address.
const VOUCHED: usize = 64;
/// Minimum time between two tokens for one member.
const GRANT_PAUSE: Span = Span::from_millis(100);

/// Receiver that registers, and the evidence that it gave.
#[derive(Clone, Copy)]
struct Claim {
    client: ClientId,
    source: SocketAddr,
    nonce: Option<Proof>,
    /// `true` if it has proved its address.
    shown: bool,
    /// `true` if the sender has called it, and the answer was expected.
    called: bool,
}

impl Sender {
    pub(super) fn registration(
        &mut self,
        now: Time,
        source: SocketAddr,
        m: &Registration,
        message: &Message,
    ) -> Result<(), Reject> {
        if m.server != self.config.server {
            return Err(Reject::OtherSession);
        }
        if !self.has_members() || matches!(self.phase, Phase::Completing | Phase::Aborting) {
            return Err(Reject::Unexpected);
        }
        let mut result = Ok(());
        // No receiver can prove several names at once, and one datagram must not fill the group.
        let entries = if self.config.secret.is_some() { &m.entries[..1] } else { &m.entries[..] };
        for entry in entries {
            let shown = self.has_shown(source, entry.client, m.nonce, message);
            // Only answers of one receiver are counted.
            let called = m.entries.len() == 1 && self.expects(entry.client, m.round);
            let claim = Claim { client: entry.client, source, nonce: m.nonce, shown, called };
            let one = match entry.response {
                Ok(()) => self.register(now, claim, m),
                Err(reason) => self.decline(now, claim, reason, m),
            };
            if one.is_ok()
                && let Some(member) = self.members.get_mut(entry.client)
            {
                member.heard_at = Some(now);
            }
            result = result.and(one);
        }
        if let [only] = &m.entries[..] {
            self.spoke(now, only.client, m.round);
            if self.has_shown(source, only.client, m.nonce, message) {
                self.note_losses(only.client, m.heard.as_ref());
            }
            if m.complete.is_some() && result.is_ok() {
                let (server, client, round) = (m.server, only.client, m.round);
                let done = Done { server, client, naked_dtus: 0, duration_s: 0, round };
                // A report that is repeated does not make the registration vain.
                let reported = self.done(now, source, &done, message);
                result =
                    reported.or_else(|reject| if reject == Reject::Duplicate { Ok(()) } else { Err(reject) });
            }
        }
        self.try_start(now);
        if entries.len() < m.entries.len() { result.and(Err(Reject::Limit)) } else { result }
    }

    /// Admits a listed receiver that asks for repair before its turn to register, if no proofs are asked for. Returns
    /// `true` if it is a member now.
    pub(super) fn register_by_nak(&mut self, now: Time, source: SocketAddr, client: ClientId) -> bool {
        let invited = |member: &Member| member.state == MemberState::Invited;
        if self.config.secret.is_some() || !self.members.get(&client).is_some_and(invited) {
            return false;
        }
        let registration = Registration::new(self.config.server, client, Ok(()));
        self.admit(now, Claim { client, source, nonce: None, shown: true, called: false }, &registration);
        true
    }

    /// Returns `true` if the sender of `message` has proved that it is at `source`.
    fn has_shown(
        &self,
        source: SocketAddr,
        client: ClientId,
        nonce: Option<Proof>,
        message: &Message,
    ) -> bool {
        self.config.secret.is_none()
            || match nonce {
                Some(nonce) => self.proves(message, client, source, nonce),
                None => self.vouched.contains(&(client, source)),
            }
    }

    /// Returns `true` if `message` has the proof of the token of `client` at `address`.
    pub(super) fn proves(
        &self,
        message: &Message,
        client: ClientId,
        address: SocketAddr,
        nonce: Proof,
    ) -> bool {
        let (Some(secret), Some(proof)) = (self.config.secret, message.proof) else { return false };
        secret.token(self.config.transmission, client, address, nonce).prove(message) == proof
    }

    fn register(&mut self, now: Time, claim: Claim, m: &Registration) -> Result<(), Reject> {
        let late = self.phase != Phase::Announcing;
        let Some(member) = self.members.get_mut(claim.client) else {
            return self.register_stranger(now, claim, m);
        };
        if late && !self.config.late_entry && !member.is_active() {
            return Err(Reject::Unexpected);
        }
        let taking_part = member.is_active() || member.state == MemberState::Done;
        let known = member.address;
        match known {
            Some(address) if address == claim.source && member.nonce == claim.nonce => {
                // The receiver has missed its confirmation, or its token.
                member.confirmations = 0;
                member.validated |= claim.shown;
                self.ask_to_show(now, claim);
                if taking_part {
                    self.confirm_soon(now);
                    return Ok(());
                }
                if self.config.secret.is_some() && !claim.shown {
                    return Err(Reject::Unproven);
                }
            }
            Some(address) if self.config.secret.is_some() => {
                let proven = member.is_proven();
                let again = match claim.nonce {
                    Some(nonce) => member.nonce == Some(nonce) || address == claim.source,
                    // A receiver with proofs does not come back without.
                    None => address == claim.source && !proven,
                };
                if !claim.shown {
                    self.ask_to_show(now, claim);
                    return Err(Reject::Unproven);
                }
                if !again && member.validated {
                    if taking_part {
                        return self.probe(now, claim, m);
                    }
                    // A receiver that was given up, that declined, or that left may come back. It knows nothing of the
                    // receiver that claims its name.
                    member.replaced.get_or_insert(address);
                }
            }
            Some(address) => {
                // A member that was admitted by its NAK has no name yet.
                let same_name = member.name == m.name || member.name.is_none();
                let nameless = member.name.is_none() || m.name.is_none();
                if !same_name || (nameless && address.ip() != claim.source.ip()) {
                    return self.refuse(now, claim, true);
                }
                if taking_part {
                    return self.probe(now, claim, m);
                }
            }
            None if late && self.config.secret.is_some() && !claim.shown => {
                // Once data runs, an unproved registration must not make the sender wait. It counts as soon as the
                // receiver has proved its address, even if its next registration is lost.
                member.contender = Some((claim.source, m.clone()));
                self.ask_to_show(now, claim);
                self.expect_proof(now);
                return Err(Reject::Unproven);
            }
            None => {}
        }
        self.admit(now, claim, m);
        Ok(())
    }

    fn register_stranger(&mut self, now: Time, claim: Claim, m: &Registration) -> Result<(), Reject> {
        let Group::OpenLimited { limit } = self.config.group else { return self.refuse(now, claim, false) };
        let late = self.phase != Phase::Announcing;
        if late && !self.config.late_entry {
            return Err(Reject::Unexpected);
        }
        let full = self.members.len() >= limit as usize;
        // An unproved claim is not enough once data runs, or if the claim would displace another receiver.
        if (late || full) && self.config.secret.is_some() && !claim.shown {
            self.ask_to_show(now, claim);
            return Err(if full { Reject::Limit } else { Reject::Unproven });
        }
        if full {
            // A registration beyond the limit is ignored (draft §12.2.1).
            let claimed = |(_, m): &(&ClientId, &Member)| !m.validated && m.state != MemberState::Done;
            let claimed = self.members.iter().find(claimed).filter(|_| self.config.secret.is_some());
            let claimed = claimed.map(|(&id, _)| id).ok_or(Reject::Limit)?;
            self.members.remove(claimed);
        }
        let label = members::label(claim.client, m.name.as_ref(), claim.source);
        self.members.insert(claim.client, Member::new(label, MemberState::Invited));
        self.admit(now, claim, m);
        Ok(())
    }

    fn admit(&mut self, now: Time, claim: Claim, m: &Registration) {
        self.time_registration(now);
        let newest = self.flight.newest();
        let begun = self.progress.block.map_or(0, |block| block.saturating_add(1));
        let Some(member) = self.members.get_mut(claim.client) else { return };
        member.address = Some(claim.source);
        if matches!(self.config.group, Group::OpenLimited { .. }) {
            member.label = members::label(claim.client, m.name.as_ref(), claim.source);
        }
        member.name.clone_from(&m.name);
        member.receive_buffer = m.receive_buffer_bytes;
        // Early data that came in this transmission was not held before it.
        member.held = m.complete.or(m.segments_held).unwrap_or(0).min(self.geometry.segments());
        member.compares = m.segments_held == Some(0);
        (member.nonce, member.validated) = (claim.nonce, claim.shown);
        member.contender = None;
        member.forget_missing();
        member.tallies = Tallies::default();
        (member.confirmations, member.silent_rounds, member.heard, member.done_at) = (0, 0, true, None);
        (member.silent_since, member.progress_at, member.loose) = (None, now, false);
        // Blocks that left before the receiver came are not in its window.
        (member.acked, member.since_block) = (newest, begun);
        let held = member.held;
        if claim.shown || self.config.secret.is_none() {
            self.note_news();
        }
        let first =
            self.members.get(&claim.client).is_some_and(|member| member.state == MemberState::Invited);
        if first && (claim.shown || self.config.secret.is_none()) {
            self.joined_at = now;
        }
        self.members.change(claim.client, MemberState::Active);
        self.events.push_back(SenderEvent::Registered { client: claim.client, address: claim.source, held });
        self.joined(now, claim.client);
        self.ask_to_show(now, claim);
        self.confirm_soon(now);
    }

    /// Sends a receiver that has not proved its address the means to do so, at that address: a token or, for a receiver
    /// without proofs, an echo. Neither is longer than the registration.
    fn ask_to_show(&mut self, now: Time, claim: Claim) {
        if claim.shown {
            return;
        }
        let Some(secret) = self.config.secret else { return };
        let transmission = self.config.transmission;
        let token = secret.token(transmission, claim.client, claim.source, claim.nonce.unwrap_or(NO_NONCE));
        let message = if claim.nonce.is_some() {
            let body = Body::Grant(Grant { client: claim.client, token });
            Message { transmission, body, proof: claim.nonce.map(|nonce| self.grant_proof(nonce)) }
        } else {
            let data = Some(token.0.to_vec());
            Message::new(0, Body::Echo(Echo { sequence: claim.client.0, data, hosts: None }))
        };
        let ours = |m: &&mut Member| m.address == Some(claim.source) && m.nonce == claim.nonce;
        if let Some(member) = self.members.get_mut(claim.client).filter(ours) {
            // The first token of a member does not count against the limit for strangers; further ones do.
            match member.granted.replace(now) {
                None => self.outbox.push_back(Transmit::new(message, claim.source)),
                Some(at) if now.since(at) < GRANT_PAUSE => member.granted = Some(at),
                Some(_) => drop(self.reply(now, message, claim.source, claim.called)),
            }
        } else {
            self.reply(now, message, claim.source, claim.called);
        }
    }

    /// Asks the member `client`, which sent a message without a proof, to prove its identity.
    pub(super) fn ask_member_to_show(&mut self, now: Time, client: ClientId) {
        let Some(member) = self.members.get(&client).filter(|m| !m.validated) else { return };
        if let Some(source) = member.address {
            let nonce = member.nonce;
            self.ask_to_show(now, Claim { client, source, nonce, shown: false, called: false });
        }
    }

    fn decline(
        &mut self,
        now: Time,
        claim: Claim,
        reason: DeclineReason,
        m: &Registration,
    ) -> Result<(), Reject> {
        let other = |m: &Member| m.nonce.is_some() || m.address.is_some_and(|a| a.ip() != claim.source.ip());
        if claim.nonce.is_none() && self.members.get(&claim.client).is_some_and(other) {
            return Err(Reject::Stranger);
        }
        if !claim.shown {
            self.ask_to_show(now, claim);
            // A receiver without proofs declines once: this counts as soon as it has proved its address.
            if let Some(member) = self.members.get_mut(claim.client).filter(|_| claim.nonce.is_none()) {
                member.refusal = Some((claim.source, reason));
            }
            return Err(Reject::Unproven);
        }
        if let (false, Group::OpenLimited { limit }) =
            (self.members.contains_key(&claim.client), &self.config.group)
        {
            // The sender does not wait for this receiver, but the user sees the reason for which it stays out.
            if self.members.len() >= *limit as usize {
                return Err(Reject::Limit);
            }
            let label = members::label(claim.client, m.name.as_ref(), claim.source);
            self.members.insert(claim.client, Member::new(label, MemberState::Invited));
        }
        let member = self.members.get_mut(claim.client).ok_or(Reject::Stranger)?;
        // Only the host that has registered may withdraw the registration.
        let other = member.nonce.is_some() && member.nonce != claim.nonce;
        if other || member.address.is_some_and(|address| address.ip() != claim.source.ip()) {
            return Err(Reject::Stranger);
        }
        match member.state {
            MemberState::Invited | MemberState::Active => {
                member.validated |= claim.shown;
                // A later receiver with this name is the same one, or its nonce distinguishes it.
                if claim.shown && claim.nonce.is_some() {
                    (member.address, member.nonce) = (Some(claim.source), claim.nonce);
                }
                self.members.change(claim.client, MemberState::Declined(reason));
                self.events.push_back(SenderEvent::Declined { client: claim.client, reason });
                Ok(())
            }
            _ => Err(Reject::Duplicate),
        }
    }

    /// Tells a registered host the reason for which it is not served. The message is shorter than the registration: the
    /// receiver adds the text itself.
    fn refuse(&mut self, now: Time, claim: Claim, collision: bool) -> Result<(), Reject> {
        let reason = if collision { cancel::ABORT_COLLISION } else { cancel::ABORT_NOT_INVITED };
        let body = Body::Abort(Abort { reason, hosts: Some(alloc::vec![claim.client]), text: None });
        let message = Message { transmission: self.config.transmission, body, proof: claim.nonce };
        if self.reply(now, message, claim.source, claim.called) {
            let (client, address) = (claim.client, claim.source);
            self.events.push_back(SenderEvent::Refused { client, address, collision });
        }
        Err(if collision { Reject::Collision } else { Reject::Stranger })
    }

    /// Asks a member's old address for a sign of life, because a new address claims its name. Either the same receiver
    /// was started again with a new port, or a second receiver has the same name.
    fn probe(&mut self, now: Time, claim: Claim, m: &Registration) -> Result<(), Reject> {
        let wait = self.round_trip() * 2 + Span::from_millis(200);
        let Some(member) = self.members.get_mut(claim.client) else { return Err(Reject::Stranger) };
        if member.contender.as_ref().is_some_and(|(contender, _)| *contender != claim.source) {
            return Err(Reject::Collision);
        }
        let first = member.contender.is_none();
        member.contender = Some((claim.source, m.clone()));
        if let (true, Some(address)) = (first, member.address) {
            for _ in 0..2 {
                self.queue(Body::Echo(Echo { sequence: claim.client.0, data: None, hosts: None }), address);
            }
            self.timers.set(Timer::Probe, now + wait);
        }
        Ok(())
    }

    /// Decides the claims to names after no old address has answered. If there are no proofs, the new addresses take
    /// over. A member that has proved itself keeps its name.
    pub(super) fn probe_expired(&mut self, now: Time) {
        let contended = self.members.iter_mut().filter_map(|(&id, m)| m.contender.take().map(|c| (id, c)));
        let contended: Vec<_> = contended.collect();
        if self.config.secret.is_some() {
            return;
        }
        for (client, (source, m)) in contended {
            let all = m.complete.is_some() || m.segments_held == Some(self.geometry.segments());
            let done = |member: &&mut Member| all && member.state == MemberState::Done;
            if let Some(member) = self.members.get_mut(client).filter(done) {
                // The receiver was complete before it was started again, and still is.
                (member.address, member.confirmations) = (Some(source), 0);
                self.confirm_done(now, client);
                continue;
            }
            let claim = Claim { client, source, nonce: m.nonce, shown: true, called: false };
            self.admit(now, claim, &m);
        }
        // The claims may have been all that the sender waited for.
        self.one_less(now);
    }

    pub(super) fn echo_response(&mut self, now: Time, source: SocketAddr, m: &Echo) -> Result<(), Reject> {
        let client = ClientId(m.sequence);
        if let Some(data) = &m.data {
            return self.echo_shows(now, source, client, data);
        }
        let member = self.members.get_mut(client).ok_or(Reject::Stranger)?;
        if member.address != Some(source) {
            return Err(Reject::Stranger);
        }
        let (contender, registration) = member.contender.take().ok_or(Reject::Unexpected)?;
        (member.heard, member.heard_at) = (true, Some(now));
        let claim =
            Claim { client, source: contender, nonce: registration.nonce, shown: false, called: false };
        // The answer is not to blame for the claim.
        let _ = self.refuse(now, claim, true);
        self.one_less(now);
        Ok(())
    }

    /// Handles an echo from a receiver without proofs, which returns the data sent to the address that it claims.
    fn echo_shows(
        &mut self,
        now: Time,
        source: SocketAddr,
        client: ClientId,
        data: &[u8],
    ) -> Result<(), Reject> {
        let secret = self.config.secret.ok_or(Reject::Unexpected)?;
        if secret.token(self.config.transmission, client, source, NO_NONCE).0 != *data {
            return Err(Reject::Unproven);
        }
        if self.vouched.contains(&(client, source)) {
            return Err(Reject::Duplicate);
        }
        if self.vouched.len() == VOUCHED {
            self.vouched.pop_front();
        }
        self.vouched.push_back((client, source));
        let ours = |m: &&mut Member| m.address == Some(source) && m.nonce.is_none();
        if let Some(member) = self.members.get_mut(client).filter(ours) {
            member.validated = true;
            self.confirm_soon(now);
        }
        self.refused(now, source, client);
        self.admit_pending(now, source, client, |_, registration| registration.nonce.is_none());
        Ok(())
    }

    /// Admits the invited receiver `client`, whose registration from `source` was not proved, if `shows` is `true` for
    /// that registration now. Returns `true` if it was admitted.
    fn admit_pending(
        &mut self,
        now: Time,
        source: SocketAddr,
        client: ClientId,
        shows: impl Fn(&Self, &Registration) -> bool,
    ) -> bool {
        let waits = |m: &&Member| m.state == MemberState::Invited && m.address.is_none();
        let pending = self.members.get(&client).filter(waits).and_then(|member| member.contender.as_ref());
        let Some((_, registration)) = pending.filter(|(from, one)| *from == source && shows(self, one))
        else {
            return false;
        };
        let registration = registration.clone();
        let claim = Claim { client, source, nonce: registration.nonce, shown: true, called: false };
        self.admit(now, claim, &registration);
        true
    }

    /// Admits the invited receiver `client` if `message` from `source` proves its pending registration. Returns `true`
    /// if it was admitted.
    pub(super) fn admit_by(
        &mut self,
        now: Time,
        source: SocketAddr,
        client: ClientId,
        message: &Message,
    ) -> bool {
        let shows = |sender: &Self, one: &Registration| {
            one.nonce.is_some_and(|nonce| sender.proves(message, client, source, nonce))
        };
        self.admit_pending(now, source, client, shows)
    }

    /// Carries out a pending refusal of a receiver without proofs, which has proved its address now.
    fn refused(&mut self, now: Time, source: SocketAddr, client: ClientId) {
        let declines = |m: &&mut Member| m.refusal.is_some_and(|(from, _)| from == source);
        let Some(member) = self.members.get_mut(client).filter(declines) else { return };
        let free = member.nonce.is_none()
            && member.address.is_none_or(|address| address.ip() == source.ip())
            && matches!(member.state, MemberState::Invited | MemberState::Active);
        if let (Some((_, reason)), true) = (member.refusal.take(), free) {
            member.validated = true;
            self.members.change(client, MemberState::Declined(reason));
            self.events.push_back(SenderEvent::Declined { client, reason });
            self.one_less(now);
        }
    }
}
