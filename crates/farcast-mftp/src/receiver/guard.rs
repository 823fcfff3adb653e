//! Evidence of the sender's identity, and limits on the messages that anybody can make the receiver send.

use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Message as _, Reject};
use farcast_core::{Span, Time};

use super::control::{Action, Terms};
use super::{Receiver, Session};
use crate::message::{Announce, Body, Data, Grant, GroupModel, Message};
use crate::proof::{Proof, Secret, Token, commitment, grant, terms};

/// Time after which a sender that grants tokens, but has not granted one, gives way to another.
const GRANT_AFTER: Span = Span::from_secs(4);
/// Time after which a sender that granted a token, but has sent nothing since, gives way.
const DATA_AFTER: Span = Span::from_secs(30);
/// Time after which a sender without tokens gives way if it has neither confirmed nor sent anything, or has fallen
/// silent. A single forged datagram would look as if it sent.
const CONFIRM_AFTER: Span = Span::from_secs(10);
/// Time for which a sender that gave way is not taken up again, if other senders announce.
const SHUNNED_FOR: Span = Span::from_secs(30);
/// Number of these senders that are remembered.
const SHUNNED: usize = 64;

/// Limits on octets sent in return for octets heard from a sender: `CREDIT` for each octet, or one for `DATA_CREDIT`
/// octets of DATA, because NAKs are much shorter. `SAVED` is the maximum that accumulates.
const CREDIT: u64 = 3;
const DATA_CREDIT: u64 = 8;
const SAVED: u64 = 64 << 10;
/// Octets sent beyond that credit to all senders together that have not proved their address: at once, and per second.
const STRANGERS: (u64, u64) = (4096, 512);
/// Octets per second sent beyond that credit to a sender that has proved its address. After an outage the receiver may
/// have to request much, and another host may make requests in the sender's name.
const MEMBER: u64 = 8 << 10;

/// Evidence about the sender of a session.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// Digest of the announcement that the receiver believes.
    terms: Proof,
    /// Time since which it does.
    since: Time,
    /// `true` if receivers do not register, so that nothing is ever proved.
    unlimited: bool,
    /// Nonce that the sender must repeat; `None` if either side has no proofs.
    nonce: Option<Proof>,
    token: Option<Token>,
    /// Commitment in the announcement to the key that ends the session.
    commitment: Option<Proof>,
    /// Time at which the token came.
    granted: Time,
    /// `true` if data or a status request has come, and the time of the last data.
    engaged: bool,
    data_at: Time,
    /// Octets that may be sent for those that were heard, at most [`SAVED`].
    credit: u64,
    /// Octets sent beyond the credit in the second that began at `second`.
    said: u64,
    second: Time,
}

impl Guard {
    /// Creates the evidence of an announcement, which nothing has proved yet.
    pub(crate) fn new(now: Time, secret: Option<Secret>, of: &Terms, m: &Announce) -> Self {
        let nonce = secret.filter(|_| m.commitment.is_some());
        let nonce = nonce.map(|secret| secret.nonce(of.transmission, of.source));
        Self {
            terms: terms(of.transmission, m),
            since: now,
            unlimited: m.options.model == GroupModel::OpenUnlimited,
            nonce,
            token: None,
            commitment: m.commitment.filter(|_| nonce.is_some()),
            granted: Time::ZERO,
            engaged: false,
            data_at: now,
            credit: 0,
            said: 0,
            second: Time::ZERO,
        }
    }

    /// Returns `true` if `m`, from the same source as the session's announcement, takes its place. The two contradict
    /// each other, and no token has shown for a long time that the first one is the sender's.
    pub(super) fn is_disproved(&self, now: Time, transmission: u32, m: &Announce, proofs: bool) -> bool {
        let open = match self.nonce {
            Some(_) => self.token.is_none() && !(self.unlimited && self.engaged),
            None => proofs && m.commitment.is_some(),
        };
        open && now.since(self.since) >= GRANT_AFTER && terms(transmission, m) != self.terms
    }

    /// Returns the digest of the announcement, as long as nothing has proved it.
    pub(super) fn unproven_terms(&self) -> Option<Proof> {
        self.token.is_none().then_some(self.terms)
    }

    /// Stores the token with which all messages are proved from now on.
    pub(super) fn take_token(&mut self, now: Time, proof: Option<Proof>, token: Token) -> Result<(), Reject> {
        if !self.is_grant(proof) {
            return Err(Reject::Unproven);
        }
        (self.token, self.granted) = (Some(token), now);
        Ok(())
    }

    /// Returns `true` if `proof` shows that a token is from the host that announces this session.
    pub(crate) fn is_grant(&self, proof: Option<Proof>) -> bool {
        self.nonce.is_some_and(|nonce| proof == Some(grant(nonce, self.terms)))
    }

    /// Returns the nonce of a registration, which the answer must repeat.
    pub(crate) fn nonce(&self) -> Option<Proof> {
        self.nonce
    }

    /// Returns `true` if the receiver has its token, or needs none.
    pub(super) fn is_settled(&self) -> bool {
        self.nonce.is_none() || self.token.is_some()
    }

    /// Adds the receiver's proof to `message`, if it has a token.
    pub(super) fn prove(&self, message: Message) -> Message {
        proved(message, self.token)
    }

    /// Returns `true` if `proof` repeats the nonce, where there is one. Only a host that has seen the registration can
    /// do that.
    fn is_answer(&self, proof: Option<Proof>) -> bool {
        self.nonce.is_none() || proof == self.nonce
    }

    /// Returns `true` if `proof` is the key to which the announcement committed, if it did.
    fn is_end(&self, transmission: u32, proof: Option<Proof>) -> bool {
        let Some(committed) = self.commitment else { return true };
        proof.is_some_and(|key| commitment(transmission, key) == committed)
    }

    /// Rejects a message that ends the session, for everyone or for this receiver, unless it is proved to be the
    /// sender's.
    pub(crate) fn check_end(&self, message: &Message) -> Result<(), Reject> {
        let shown = match &message.body {
            Body::Abort(m) if m.hosts.is_some() => self.is_answer(message.proof),
            Body::Abort(_) | Body::End(_) => self.is_end(message.transmission, message.proof),
            Body::Completion(m) if m.hosts.is_none() => self.is_end(message.transmission, message.proof),
            _ => true,
        };
        if shown { Ok(()) } else { Err(Reject::Unproven) }
    }

    /// Records that the sender was heard: `message` is from its address.
    pub(super) fn hear(&mut self, now: Time, message: &Message) {
        let earned = match &message.body {
            Body::Data(Data { dtus, len, .. }) => u64::from(dtus.count()) * u64::from(*len) / DATA_CREDIT,
            _ => message.wire_len(0) as u64 * CREDIT,
        };
        self.credit = (self.credit + earned).min(SAVED);
        self.engaged |= matches!(message.body, Body::Data(_) | Body::StatusRequest(_));
        if matches!(message.body, Body::Data(_)) {
            self.data_at = now;
        }
    }

    /// Returns `true` if its announcement came longer ago than `age`.
    pub(super) fn is_older_than(&self, now: Time, age: Span) -> bool {
        now.since(self.since) >= age
    }

    /// Returns `true` if a sender that proves its presence takes the place of this one at once. This one has proved
    /// nothing itself, or has sent nothing for `patience`.
    pub(super) fn yields(&self, now: Time, silence: Span, patience: Span) -> bool {
        let flows = self.engaged && now.since(self.data_at) < patience;
        let granted = self.token.is_some() && silence < patience;
        !flows && !granted
    }

    /// Returns `true` if another sender may take the place of this one, which has proved nothing.
    pub(super) fn gives_way(&self, now: Time, waits_since: Option<Time>, silence: Span) -> bool {
        match (self.nonce, self.token) {
            // Receivers do not register there, so only data proves that there is a sender.
            _ if self.unlimited => now.since(self.data_at) >= DATA_AFTER,
            (Some(_), None) => waits_since.is_some_and(|since| now.since(since) >= GRANT_AFTER),
            (Some(_), Some(_)) => !self.engaged && now.since(self.granted) >= DATA_AFTER,
            (None, _) => {
                let waits = waits_since.is_some_and(|since| now.since(since) >= CONFIRM_AFTER);
                silence >= CONFIRM_AFTER || !self.engaged && waits
            }
        }
    }

    /// Takes the credit for `octets` to the sender. Returns `true` if they may be sent now.
    fn may_say(&mut self, now: Time, octets: u64, strangers: &mut Bucket) -> bool {
        let credit = self.credit.min(octets);
        let beyond = octets - credit;
        let said = beyond == 0
            || if self.token.is_none() { strangers.take(now, beyond) } else { self.take_own(now, beyond) };
        self.credit -= if said { credit } else { 0 };
        said
    }

    /// Takes `octets` from the allowance of this second, if enough is left.
    fn take_own(&mut self, now: Time, octets: u64) -> bool {
        if now.since(self.second) >= Span::from_secs(1) {
            (self.second, self.said) = (now, 0);
        }
        let enough = self.said + octets <= MEMBER;
        self.said += if enough { octets } else { 0 };
        enough
    }
}

/// Returns `message` with the proof of `token`, if there is one.
pub(crate) fn proved(mut message: Message, token: Option<Token>) -> Message {
    message.proof = token.map(|token| token.prove(&message));
    message
}

/// Allowance of octets to senders without credit.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    level: u64,
    at: Time,
}

impl Bucket {
    pub(super) fn new() -> Self {
        Self { level: STRANGERS.0, at: Time::ZERO }
    }

    fn take(&mut self, now: Time, octets: u64) -> bool {
        let fresh = now.since(self.at).as_nanos().saturating_mul(STRANGERS.1) / 1_000_000_000;
        if fresh > 0 {
            (self.level, self.at) = ((self.level + fresh).min(STRANGERS.0), now);
        }
        let enough = self.level >= octets;
        self.level -= if enough { octets } else { 0 };
        enough
    }
}

/// Senders that announced to this receiver and then let it wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Shunned(alloc::collections::VecDeque<((SocketAddr, u32), Time)>);

impl Shunned {
    pub(super) fn add(&mut self, now: Time, source: SocketAddr, transmission: u32) {
        if self.0.len() == SHUNNED {
            self.0.pop_front();
        }
        self.0.push_back(((source, transmission), now + SHUNNED_FOR));
    }

    pub(super) fn has(&self, now: Time, source: SocketAddr, transmission: u32) -> bool {
        self.0.iter().any(|&(shunned, until)| shunned == (source, transmission) && now < until)
    }
}

/// Refusal or farewell that is kept until the sender has had the time to ask for its proof.
#[derive(Clone, Debug)]
pub(super) struct Parting {
    response: SocketAddr,
    guard: Guard,
    message: Message,
    pub(super) until: Time,
}

/// Time that the sender has to ask.
const PARTING: Span = Span::from_secs(3);

impl Receiver {
    /// Sends `message` to the session's sender with the receiver's proof, if the limits allow it.
    pub(super) fn say(&mut self, now: Time, message: Message) {
        let Some(session) = &mut self.session else { return };
        let message = session.guard.prove(message);
        let octets = message.wire_len(0) as u64;
        let bounded = self.config.secret.is_some();
        if bounded && !session.guard.may_say(now, octets, &mut self.strangers) {
            self.stats.unsaid += 1;
            return;
        }
        let to = session.terms.answers_to(&message.body);
        self.outbox.push_back(farcast_core::Transmit::new(message, to));
    }

    /// Sends `message` to `to`, which is not the session's sender, if the limits allow it.
    pub(super) fn say_to_stranger(&mut self, now: Time, message: Message, to: SocketAddr) {
        let octets = message.wire_len(0) as u64;
        if self.config.secret.is_some() && !self.strangers.take(now, octets) {
            self.stats.unsaid += 1;
            return;
        }
        self.outbox.push_back(farcast_core::Transmit::new(message, to));
    }

    /// Handles a token, with which all messages are proved from now on. Messages that were sent without it are sent
    /// again.
    pub(super) fn granted(
        &mut self,
        now: Time,
        from: &Arrival,
        message: &Message,
        m: &Grant,
    ) -> Result<(), Reject> {
        let (transmission, proof) = (message.transmission, message.proof);
        if m.client != self.config.id {
            return Err(Reject::OtherSession);
        }
        if self.granted_by_rival(now, from, message, m) {
            return Ok(());
        }
        if let Some(parting) = self.parting.take_if(|parting| parting.message.transmission == transmission) {
            return self.part(parting, m, proof);
        }
        let session = self.session.as_mut().filter(|s| s.terms.transmission == transmission);
        let Some(session): Option<&mut Session> = session else {
            return self.granted_over(now, from, message, m);
        };
        // A session announced from another address in this sender's name would grant a token, but its data would never
        // come from the expected address.
        if from.source != session.terms.source {
            return Err(Reject::OtherSession);
        }
        if session.guard.is_grant(proof) && session.guard.token == Some(m.token) {
            return Err(Reject::Duplicate);
        }
        session.guard.take_token(now, proof, m.token)?;
        session.control.touch(now, &self.config);
        let completing = session.control.is_completing();
        let act = if completing { session.control.report_proved(now, &self.config) } else { Action::Nothing };
        if act != Action::RegisterDone {
            self.send_registration(now, Ok(()));
        }
        self.act(now, act);
        Ok(())
    }

    /// Keeps `message`, which ends the session, until the sender has asked for its proof.
    pub(super) fn keep_parting(&mut self, message: Message) {
        let Some(session) = &self.session else { return };
        if session.guard.is_settled() {
            return;
        }
        let until = session.control.last_heard + PARTING;
        let (response, guard) = (session.terms.answers_to(&message.body), session.guard.clone());
        self.parting = Some(Parting { response, guard, message, until });
    }

    fn part(&mut self, mut parting: Parting, m: &Grant, proof: Option<Proof>) -> Result<(), Reject> {
        if !parting.guard.is_grant(proof) {
            self.parting = Some(parting);
            return Err(Reject::Unproven);
        }
        parting.guard.token = Some(m.token);
        let message = parting.guard.prove(parting.message);
        for _ in 0..2 {
            self.outbox.push_back(farcast_core::Transmit::new(message.clone(), parting.response));
        }
        Ok(())
    }
}
