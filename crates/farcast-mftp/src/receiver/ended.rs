//! Transmissions that are over for a receiver, and its later messages to their senders.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Reject, Transmit};
use farcast_core::{Span, Time};

use super::guard::Guard;
use super::{Receiver, Session};
use crate::event::ReceiverOutcome;
use crate::message::{Announce, Body, Grant, GroupModel, Message};
use crate::proof::terms;

/// Number of ended transmissions that are remembered, so that a late announcement does not begin them again.
const REMEMBERED: usize = 16;
/// Time after an end beyond which continuing data shows that the sender had not ended the transmission.
const FLOWS_ON_AFTER: Span = Span::from_secs(1);

/// Transmission that is over for this receiver.
#[derive(Clone, Debug)]
pub(super) struct EndedTransmission {
    source: SocketAddr,
    transmission: u32,
    at: Time,
    /// `true` if a message of the sender ended it.
    ended_by_sender: bool,
    /// Evidence and token for further messages.
    guard: Guard,
    /// Registration and Done that report the complete product again. The registration comes first, because a sender
    /// that no longer knows the receiver does not know its proofs. Empty if there is nothing to report.
    report: Vec<Transmit<Message>>,
}

impl EndedTransmission {
    fn is(&self, source: SocketAddr, transmission: u32) -> bool {
        (self.source, self.transmission) == (source, transmission)
    }

    /// Returns `true` if `m` announces this transmission. Another announcement may be the true one, unless a token has
    /// proved the first.
    pub(super) fn is_announced_by(&self, source: SocketAddr, transmission: u32, m: &Announce) -> bool {
        let unproven = self.guard.unproven_terms();
        self.is(source, transmission) && unproven.is_none_or(|unproven| unproven == terms(transmission, m))
    }
}

impl Receiver {
    /// Stores `session`, which has ended with `outcome`.
    pub(super) fn remember_over(&mut self, session: Session, outcome: &ReceiverOutcome) {
        if self.over.len() == REMEMBERED {
            self.over.pop_front();
        }
        let complete = matches!(outcome, ReceiverOutcome::Complete { .. });
        let ended_by_sender =
            matches!(outcome, ReceiverOutcome::Aborted { .. } | ReceiverOutcome::Incomplete);
        self.over.push_back(EndedTransmission {
            source: session.terms.source,
            transmission: session.terms.transmission,
            at: session.control.last_heard,
            ended_by_sender,
            report: if complete { self.last_report(&session) } else { Vec::new() },
            guard: session.guard,
        });
    }

    /// Returns the messages for a sender that asks again although everything was reported. Without proofs a
    /// confirmation is trusted, and there are none.
    fn last_report(&self, session: &Session) -> Vec<Transmit<Message>> {
        // Receivers that do not register do not report.
        if self.config.secret.is_none() || session.terms.model == GroupModel::OpenUnlimited {
            return Vec::new();
        }
        let at = session.control.last_heard;
        let done = session.done.clone().unwrap_or_else(|| self.report_of(at, session));
        let who = session.guard.nonce().map(|_| {
            let body = self.registration(session, Ok(()));
            let to = session.terms.answers_to(&body);
            Transmit::new(Message::new(session.terms.transmission, body), to)
        });
        who.into_iter().chain([done]).collect()
    }

    fn report_again(&mut self, now: Time, index: usize) {
        let over = &self.over[index];
        let say = |t: &Transmit<Message>| (over.guard.prove(t.message.clone()), t.destination);
        let report: Vec<_> = over.report.iter().map(say).collect();
        for (message, to) in report {
            self.say_to_stranger(now, message, to);
        }
    }

    /// Handles a message of a transmission that is over, or that never was this receiver's.
    pub(super) fn over_again(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let flows = matches!(message.body, Body::Data(_) | Body::StatusRequest(_));
        let known = |over: &EndedTransmission| over.is(from.source, message.transmission);
        let reason = if self.session.is_some() { Reject::OtherSession } else { Reject::Unexpected };
        let index = self.over.iter().position(known).filter(|_| flows).ok_or(reason)?;
        let over = &self.over[index];
        let asks = matches!(&message.body, Body::StatusRequest(m)
            if m.turn.is_none() && self.is_for_me(m.hosts.as_deref()));
        if asks && !over.report.is_empty() {
            // The sender did not get the Done, or its confirmation was forged.
            self.report_again(now, index);
        } else if over.ended_by_sender && now.since(over.at) >= FLOWS_ON_AFTER {
            // The transmission continues, so the end was not the sender's. The next announcement is accepted.
            self.over.remove(index);
        }
        Err(reason)
    }

    /// Handles a token of a transmission that is over: its sender does not know yet that the report was this
    /// receiver's.
    pub(super) fn granted_over(
        &mut self,
        now: Time,
        from: &Arrival,
        message: &Message,
        m: &Grant,
    ) -> Result<(), Reject> {
        let known =
            |over: &EndedTransmission| over.is(from.source, message.transmission) && !over.report.is_empty();
        let index = self.over.iter().position(known).ok_or(Reject::Unexpected)?;
        self.over[index].guard.take_token(now, message.proof, m.token)?;
        self.report_again(now, index);
        Ok(())
    }
}
