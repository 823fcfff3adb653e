//! What a receiver knows of who its sender is, and how much anyone may make it say.

use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Message as _, Reject};
use farcast_core::{Span, Time};

use super::control::Terms;
use super::{Receiver, Session};
use crate::message::{Announce, Body, Data, Grant, GroupModel, Message};
use crate::proof::{Proof, Secret, Token, commitment, grant, terms};

/// A sender that grants tokens and has not granted one for this long gives way to another.
const GRANT_AFTER: Span = Span::from_secs(4);
/// So does one that granted a token and has sent nothing since.
const DATA_AFTER: Span = Span::from_secs(30);
/// And one that has no tokens and has neither confirmed nor sent anything, or has fallen silent: a single forged
/// datagram looks as if it sent.
const CONFIRM_AFTER: Span = Span::from_secs(10);
/// A sender that gave way is not taken up again before this long, if others ask.
const SHUNNED_FOR: Span = Span::from_secs(30);
/// How many of those are remembered.
const SHUNNED: usize = 64;

/// Octets that may be said for each octet heard from a sender; the part of DATA's that may, as what is missing takes
/// much less to say; and the most that is saved up so.
const CREDIT: u64 = 3;
const DATA_CREDIT: u64 = 8;
const SAVED: u64 = 64 << 10;
/// Octets said beyond that to all senders together that have not shown that they are where they say: at once, and a
/// second.
const STRANGERS: (u64, u64) = (4096, 512);
/// Octets said in a second, beyond that credit, to a sender that has shown it: it may have to ask for what an outage
/// has kept from us, and somebody else may ask in its name.
const MEMBER: u64 = 8 << 10;

/// What is known of the sender of a session.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// A digest of what it is taken to announce.
    terms: Proof,
    /// Since when.
    since: Time,
    /// Whether nobody registers, so that nothing is ever proved.
    unlimited: bool,
    /// What the sender has to repeat; `None` where one of both has no proofs.
    nonce: Option<Proof>,
    token: Option<Token>,
    /// What the announcement said of the key that ends the session.
    commitment: Option<Proof>,
    /// When the token came.
    granted: Time,
    /// Whether data or a status request has come, and when data did.
    engaged: bool,
    data_at: Time,
    /// Octets that may be said for what was heard, at most [`SAVED`].
    credit: u64,
    /// Octets said beyond the credit in the second that began then.
    said: u64,
    second: Time,
}

impl Guard {
    pub(super) fn new(now: Time, secret: Option<Secret>, of: &Terms, m: &Announce) -> Self {
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

    /// Whether `m`, which comes from where the session's announcement came from, takes its place: they contradict each
    /// other, and no token has shown in all this time that the first one is the sender's.
    pub(super) fn is_disproved(&self, now: Time, transmission: u32, m: &Announce, proofs: bool) -> bool {
        let open = match self.nonce {
            Some(_) => self.token.is_none() && !(self.unlimited && self.engaged),
            None => proofs && m.commitment.is_some(),
        };
        open && now.since(self.since) >= GRANT_AFTER && terms(transmission, m) != self.terms
    }

    /// What is announced, as far as nothing has shown that it is.
    pub(super) fn unproven_terms(&self) -> Option<Proof> {
        self.token.is_none().then_some(self.terms)
    }

    /// Takes the token with which everything is proved from now on.
    pub(super) fn take_token(&mut self, now: Time, proof: Option<Proof>, token: Token) -> Result<(), Reject> {
        if !self.is_grant(proof) {
            return Err(Reject::Unproven);
        }
        (self.token, self.granted) = (Some(token), now);
        Ok(())
    }

    /// Whether `proof` shows that a token is from who announces what we take part in.
    fn is_grant(&self, proof: Option<Proof>) -> bool {
        self.nonce.is_some_and(|nonce| proof == Some(grant(nonce, self.terms)))
    }

    /// What a registration asks to be repeated.
    pub(super) fn nonce(&self) -> Option<Proof> {
        self.nonce
    }

    /// Whether this receiver has what it proves itself with, or needs nothing.
    pub(super) fn is_settled(&self) -> bool {
        self.nonce.is_none() || self.token.is_some()
    }

    /// `message` with the proof that it is ours, if we can give one.
    pub(super) fn prove(&self, mut message: Message) -> Message {
        message.proof = self.token.map(|token| token.prove(&message));
        message
    }

    /// Whether `proof` repeats our nonce, where there is one: only who has seen our registration can.
    fn is_answer(&self, proof: Option<Proof>) -> bool {
        self.nonce.is_none() || proof == self.nonce
    }

    /// Whether `proof` is the key that the announcement committed to, where it did.
    fn is_end(&self, transmission: u32, proof: Option<Proof>) -> bool {
        let Some(committed) = self.commitment else { return true };
        proof.is_some_and(|key| commitment(transmission, key) == committed)
    }

    /// Refuses what ends the session, for everyone or for this receiver, unless it shows that it is the sender's word.
    pub(super) fn check_end(&self, message: &Message) -> Result<(), Reject> {
        let shown = match &message.body {
            Body::Abort(m) if m.hosts.is_some() => self.is_answer(message.proof),
            Body::Abort(_) | Body::End(_) => self.is_end(message.transmission, message.proof),
            Body::Completion(m) if m.hosts.is_none() => self.is_end(message.transmission, message.proof),
            // Nobody can have confirmed what we could not yet prove.
            Body::Completion(_) => self.is_settled(),
            _ => true,
        };
        if shown { Ok(()) } else { Err(Reject::Unproven) }
    }

    /// The sender was heard: `message` is from its address.
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

    /// Tells whether its announcement came longer ago than `age`.
    pub(super) fn is_older_than(&self, now: Time, age: Span) -> bool {
        now.since(self.since) >= age
    }

    /// Tells whether a sender that shows that it is there takes the place of this one at once: it has shown nothing itself, or
    /// nothing has come of it for `patience`.
    pub(super) fn yields(&self, now: Time, silence: Span, patience: Span) -> bool {
        let flows = self.engaged && now.since(self.data_at) < patience;
        let granted = self.token.is_some() && silence < patience;
        !flows && !granted
    }

    /// Whether another sender may take the place of this one, which has shown nothing.
    pub(super) fn gives_way(&self, now: Time, waits_since: Option<Time>, silence: Span) -> bool {
        match (self.nonce, self.token) {
            // Nobody registers there, so nothing but data shows that there is a sender.
            _ if self.unlimited => now.since(self.data_at) >= DATA_AFTER,
            (Some(_), None) => waits_since.is_some_and(|since| now.since(since) >= GRANT_AFTER),
            (Some(_), Some(_)) => !self.engaged && now.since(self.granted) >= DATA_AFTER,
            (None, _) => {
                let waits = waits_since.is_some_and(|since| now.since(since) >= CONFIRM_AFTER);
                silence >= CONFIRM_AFTER || !self.engaged && waits
            }
        }
    }

    /// Whether `octets` may be said to the sender now.
    fn may_say(&mut self, now: Time, octets: u64, strangers: &mut Bucket) -> bool {
        let credit = self.credit.min(octets);
        let beyond = octets - credit;
        let said = beyond == 0
            || if self.token.is_none() { strangers.take(now, beyond) } else { self.take_own(now, beyond) };
        self.credit -= if said { credit } else { 0 };
        said
    }

    /// Takes `octets` of this second's own, if so many are left.
    fn take_own(&mut self, now: Time, octets: u64) -> bool {
        if now.since(self.second) >= Span::from_secs(1) {
            (self.second, self.said) = (now, 0);
        }
        let enough = self.said + octets <= MEMBER;
        self.said += if enough { octets } else { 0 };
        enough
    }
}

/// Octets that may be said to whom nothing is owed.
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

/// Senders that asked for this receiver and then let it wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Shunned(alloc::collections::VecDeque<((SocketAddr, u32), Time)>);

impl Shunned {
    pub(super) fn add(&mut self, now: Time, transmission: (SocketAddr, u32)) {
        if self.0.len() == SHUNNED {
            self.0.pop_front();
        }
        self.0.push_back((transmission, now + SHUNNED_FOR));
    }

    pub(super) fn has(&self, now: Time, transmission: (SocketAddr, u32)) -> bool {
        self.0.iter().any(|&(shunned, until)| shunned == transmission && now < until)
    }
}

/// A refusal or a farewell, kept until the sender has had the time to ask for its proof.
#[derive(Clone, Debug)]
pub(super) struct Parting {
    response: SocketAddr,
    guard: Guard,
    message: Message,
    pub(super) until: Time,
}

/// How long the sender may take to ask.
const PARTING: Span = Span::from_secs(3);

impl Receiver {
    /// Sends `message` to the session's sender, with the proof that it is ours, as far as it may be made to.
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

    /// Says `message` to `to`, which is no session's sender; as far as it may be made to.
    pub(super) fn say_to_stranger(&mut self, now: Time, message: Message, to: SocketAddr) {
        let octets = message.wire_len(0) as u64;
        if self.config.secret.is_some() && !self.strangers.take(now, octets) {
            self.stats.unsaid += 1;
            return;
        }
        self.outbox.push_back(farcast_core::Transmit::new(message, to));
    }

    /// A token: from now on everything said is proved with it. What was said without is said again.
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
        // Announced elsewhere in its name, it would grant what nothing then comes of: its data is not from where it is
        // expected.
        if from.source != session.terms.source {
            return Err(Reject::OtherSession);
        }
        if session.guard.is_grant(proof) && session.guard.token == Some(m.token) {
            return Err(Reject::Duplicate);
        }
        session.guard.take_token(now, proof, m.token)?;
        session.control.touch(now, &self.config);
        self.send_registration(now, Ok(()));
        if let Some(session) = self.session.as_mut().filter(|s| s.control.is_completing()) {
            let act = session.control.report(now, &self.config);
            self.act(now, act);
        }
        Ok(())
    }

    /// Keeps `message`, which ends the session, until its proof was asked for.
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
