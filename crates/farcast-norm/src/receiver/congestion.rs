//! What is said of congestion, and when (RFC 5740 §5.5.2.2).

use alloc::boxed::Box;
use alloc::vec::Vec;

use farcast_core::engine::{Arrival, Message as _};
use farcast_core::{Span, Time};

use super::Receiver;
use super::remote::{Remote, Timer};
use crate::cc::{Due, Listener};
use crate::message::{Answer, Feedback, Message, Probe, Terms, cc};
use crate::quantise::{Loss, Rtt};
use crate::timing::random_backoff;

/// The acknowledgement type of a probe.
const CC: u8 = 1;
/// Answers are spread over so many of the group's round trips, at least, where NACKs are not.
const SPREAD: u64 = 4;

/// What is known of the congestion on the way from a sender that asks.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    terms: Terms,
    /// The group's round trip, as far as it is believed.
    grtt: Rtt,
    listener: Box<Listener>,
}

impl Congestion {
    /// Over how long answers are spread; not at all where receivers are not to wait.
    fn spread(&self) -> Span {
        let trips = if self.terms.backoff == 0 { 0 } else { u64::from(self.terms.backoff).max(SPREAD) };
        self.grtt.span() * trips
    }
}

impl Receiver {
    /// A message of a sender has come, of whatever it is: each counts, and each that is missing.
    pub(super) fn attend(
        &mut self,
        now: Time,
        from: &Arrival,
        (at, terms): (usize, Terms),
        message: &Message,
    ) {
        let grtt = terms.grtt.min(Rtt::of(self.config.grtt_most));
        let Some(congestion) = &mut self.remotes[at].congestion else { return };
        (congestion.terms, congestion.grtt) = (terms, grtt);
        let (count, is_data) = (message.segments().get(), message.data().is_some());
        let (each, last) = (message.wire_len(0), message.wire_len(count - 1));
        for segment in 0..count {
            let behind = u64::from(count - 1 - segment);
            let at = now - from.spacing * behind;
            let octets = if behind == 0 { last } else { each };
            let sequence = message.sequence.wrapping_add(segment as u16);
            congestion.listener.heard(at, sequence, octets, is_data, grtt);
        }
    }

    /// A probe has come.
    pub(super) fn consider_probe(&mut self, now: Time, (at, terms): (usize, Terms), probe: &Probe) {
        let remote = &mut self.remotes[at];
        if remote.congestion.is_none() && (probe.rate.is_none() || self.config.silent) {
            return;
        }
        let grtt = terms.grtt.min(Rtt::of(self.config.grtt_most));
        let congestion =
            remote.congestion.get_or_insert_with(|| Congestion { terms, grtt, listener: Box::default() });
        match congestion.listener.probed(now, self.config.node, probe, congestion.grtt) {
            Due::AtOnce => self.report(now, at),
            Due::Later(part) => {
                if !remote.timers.is_set(Timer::Report) && !remote.timers.is_set(Timer::Rest) {
                    let most = congestion.spread();
                    let drawn = random_backoff(most, terms.group, &mut self.chance);
                    // RFC 4654 §5: a quarter of it by what we can take.
                    let wait = most.as_secs_f64() * 0.25 * part + drawn.as_secs_f64() * 0.75;
                    remote.timers.set(Timer::Report, now + Span::from_secs_f64(wait));
                }
            }
            Due::Nothing => remote.timers.stop(Timer::Report),
        }
    }

    /// What an answer to the sender at `at` says of congestion, if it asks; for some time that need not be said again.
    pub(super) fn feedback(&mut self, now: Time, at: usize) -> Option<Feedback> {
        let remote = &mut self.remotes[at];
        let congestion = remote.congestion.as_ref()?;
        let loss = |part| Loss::of_style(part, self.config.loss);
        let feedback = congestion.listener.feedback(now, congestion.grtt, loss)?;
        let rest = congestion.spread();
        remote.timers.stop(Timer::Report);
        if !rest.is_zero() {
            remote.timers.set(Timer::Rest, now + rest);
        }
        Some(feedback)
    }

    /// Says what is to be said of congestion.
    pub(super) fn report(&mut self, now: Time, at: usize) {
        self.say(now, at, Answer::Ack { kind: CC, id: 0, content: Vec::new() });
    }

    /// Goes: a sender that goes by what we say need not wait for us.
    pub(super) fn leave(&mut self, at: usize) {
        let remote = &mut self.remotes[at];
        let Some(congestion) = remote.congestion.take() else { return };
        remote.timers.stop(Timer::Report);
        remote.timers.stop(Timer::Rest);
        let loss = |part| Loss::of_style(part, self.config.loss);
        let feedback = congestion.listener.feedback(remote.last_heard, congestion.grtt, loss);
        if let Some(feedback) = feedback.filter(|_| congestion.listener.has_role()) {
            let feedback = Feedback { flags: feedback.flags | cc::LEAVE, ..feedback };
            let answer = Answer::Ack { kind: CC, id: 0, content: Vec::new() };
            self.send(at, (None, Some(feedback)), answer);
        }
    }
}

impl Remote {
    /// Another receiver says this of congestion, or the sender says that one does.
    pub(super) fn overhear_report(&mut self, now: Time, theirs: Option<&Feedback>) {
        if let (Some(congestion), Some(theirs)) = (&self.congestion, theirs)
            && congestion.listener.overheard(now, theirs, congestion.grtt)
        {
            self.timers.stop(Timer::Report);
        }
    }
}
