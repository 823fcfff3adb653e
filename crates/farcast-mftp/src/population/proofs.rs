//! Proofs of a population's receivers: their tokens, and what they say when they get one.

use alloc::vec::Vec;

use farcast_core::engine::Arrival;
use farcast_core::{Among, Message as _, Time};
use farcast_delivery::Channel;

use super::Population;
use super::cohorts::FINISHED;
use crate::message::{Announce, Body, Done, Grant, GroupModel, Message};
use crate::proof::{Proof, Secret, Token};
use crate::receiver::control::{Action, Control, Terms};
use crate::receiver::guard::{Guard, proved};

/// Grant, with the message that contains it.
#[derive(Clone, Copy)]
pub(super) struct ReceivedGrant<'a> {
    pub(super) message: &'a Message,
    pub(super) grant: &'a Grant,
}

/// Last Done of a receiver, as far as it differs from others.
#[derive(Clone, Copy, Debug)]
struct Report {
    duration_s: u32,
    round: Option<u16>,
}

/// Proof of one receiver.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    token: Option<Token>,
    /// Last Done, which the receiver repeats if the sender asks although the transmission is over.
    report: Option<Report>,
    /// `true` if the receiver took turns when the transmission was over for it.
    by_turns: bool,
}

/// Evidence about the sender, and the proofs of all receivers.
#[derive(Clone, Debug)]
pub(super) struct PopulationProofs {
    /// Evidence about the sender, which is the same for all receivers. They have one secret, so they have one nonce.
    guard: Guard,
    members: Vec<Member>,
    /// `true` if a sender that asks again gets the reports again.
    reports: bool,
}

impl PopulationProofs {
    /// Creates the proofs of receivers that have just heard `m`; `None` if either side has none.
    pub(super) fn new(
        now: Time,
        receivers: u32,
        secret: Option<Secret>,
        of: &Terms,
        m: &Announce,
    ) -> Option<Self> {
        let guard = Guard::new(now, secret, of, m);
        guard.nonce()?;
        // Receivers that do not register do not report.
        let reports = of.model != GroupModel::OpenUnlimited;
        Some(Self { guard, members: alloc::vec![Member::default(); receivers as usize], reports })
    }

    pub(super) fn nonce(&self) -> Option<Proof> {
        self.guard.nonce()
    }

    /// Returns `false` if `message` ends the transmission and does not prove that it is the sender's.
    pub(super) fn believes_end(&self, message: &Message) -> bool {
        self.guard.check_end(message).is_ok()
    }

    /// Adds the proof of `receiver` to `message`, if it has a token.
    pub(super) fn prove(&self, receiver: u32, message: Message) -> Message {
        proved(message, self.members[receiver as usize].token)
    }

    /// Records a Done of `receiver`.
    pub(super) fn note_report(&mut self, receiver: u32, done: &Done) {
        let report = Report { duration_s: done.duration_s, round: done.round };
        self.members[receiver as usize].report = Some(report);
    }

    /// Returns `true` if `receiver` took turns when the transmission was over for it.
    pub(super) fn finished_by_turns(&self, receiver: u32) -> bool {
        self.members[receiver as usize].by_turns
    }
}

impl Population {
    /// Returns `true` if `receiver` has its token, or needs none.
    pub(super) fn is_settled(&self, receiver: u32) -> bool {
        self.proofs.as_ref().is_none_or(|proofs| proofs.members[receiver as usize].token.is_some())
    }

    /// Handles a grant at the fan-out, which concerns one receiver.
    pub(super) fn grant(
        &mut self,
        now: Time,
        from: &Arrival,
        heard: ReceivedGrant<'_>,
        channel: &mut Channel<'_>,
    ) {
        let ReceivedGrant { message, grant } = heard;
        let receiver = self.index(grant.client);
        let among = receiver.filter(|_| !channel.data_only);
        let octets = message.wire_len(0) as u64 + u64::from(channel.overhead);
        self.draw(now, octets, Among::These(among.as_slice()), channel);
        let ours = |terms: &Terms| message.transmission == terms.transmission && from.source == terms.source;
        if let Some(receiver) = receiver.filter(|_| self.lost.is_empty())
            && self.terms.as_ref().is_some_and(ours)
        {
            self.granted(now, receiver, message.proof, grant);
        }
    }

    /// Handles the grant that `receiver` has heard. It says again, with a proof, what it said without.
    fn granted(&mut self, now: Time, receiver: u32, proof: Option<Proof>, grant: &Grant) {
        let Some(proofs) = self.proofs.as_mut().filter(|proofs| proofs.guard.is_grant(proof)) else { return };
        let cohort = self.cohorts.of(receiver);
        let control = self.cohorts.control(cohort).cloned();
        let token = &mut proofs.members[receiver as usize].token;
        let known = *token == Some(grant.token);
        let Some(mut control) = control.filter(|_| !known) else {
            if cohort == FINISHED {
                *token = Some(grant.token);
                self.report_again(now, receiver);
            }
            return;
        };
        *token = Some(grant.token);
        self.last_heard = now;
        let completing = control.is_completing();
        let act = if completing { control.report_proved(now, &self.config) } else { Action::Nothing };
        if self.cohorts.control(cohort) != Some(&control) {
            let own = self.cohorts.found(Some(control));
            self.cohorts.shift(receiver, own);
        }
        if act != Action::RegisterDone {
            self.say_registration(now, receiver);
        }
        self.say_to_sender(now, receiver, &act);
    }

    /// Ends the transmission for `receiver`, which has the whole product.
    pub(super) fn finish(&mut self, now: Time, receiver: u32) {
        let round = self.round_of(receiver);
        let control = self.cohorts.control(self.cohorts.of(receiver));
        if let (Some(proofs), Some(control)) = (&mut self.proofs, control) {
            let member = &mut proofs.members[receiver as usize];
            member.by_turns = control.speaks_by_turns();
            // A receiver that reported with its registration has sent no Done.
            member.report.get_or_insert(Report { duration_s: seconds(now, control), round });
        }
        self.cohorts.shift(receiver, FINISHED);
    }

    /// Lets the receivers for which the transmission is over, and that hear a status request, report again.
    pub(super) fn report_again_all(&mut self, now: Time) {
        if !self.proofs.as_ref().is_some_and(|proofs| proofs.reports) || self.cohorts.count(FINISHED) == 0 {
            return;
        }
        let mut members = Vec::new();
        self.cohorts.members(FINISHED, &mut members);
        members.retain(|receiver| self.lost.binary_search(receiver).is_err());
        for receiver in members {
            self.report_again(now, receiver);
        }
    }

    /// Registers and reports for a receiver for which the transmission is over. The registration comes first, because
    /// a sender that no longer knows the receiver does not know its proofs.
    fn report_again(&mut self, now: Time, receiver: u32) {
        let Some(proofs) = self.proofs.as_ref().filter(|proofs| proofs.reports) else { return };
        let (Some(terms), Some(report)) = (&self.terms, proofs.members[receiver as usize].report) else {
            return;
        };
        let done = Done {
            server: terms.server,
            client: self.id(receiver),
            naked_dtus: self.naked[receiver as usize],
            duration_s: report.duration_s,
            round: report.round,
        };
        self.say_registration(now, receiver);
        self.say(now, receiver, Body::Done(done));
    }
}

/// Returns the seconds for which a receiver in the state `control` has taken part.
pub(super) fn seconds(now: Time, control: &Control) -> u32 {
    u32::try_from(now.since(control.began).as_nanos() / 1_000_000_000).unwrap_or(u32::MAX)
}
