//! Congestion feedback of a receiver, and its times (RFC 5740 §5.5.2.2).

use alloc::boxed::Box;
use alloc::vec::Vec;

use farcast_core::engine::Message as _;
use farcast_core::{Span, Time};
use farcast_delivery::nack::random_backoff;

use super::remote::{Remote, Timer};
use super::{Hearing, Receiver};
use crate::cc::{Due, Listener};
use crate::message::{Answer, Feedback, Message, Probe, Terms, cc};
use crate::quantise::{Loss, Rtt};

/// Acknowledgement type of a probe's answer.
const CC: u8 = 1;
/// Least number of GRTTs over which answers to probes are spread.
const SPREAD: u64 = 4;

/// State of congestion control, for a sender that asks for feedback.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    terms: Terms,
    /// GRTT, limited to what is believed.
    grtt: Rtt,
    listener: Box<Listener>,
}

impl Congestion {
    /// Returns the time over which answers are spread; zero where receivers are not to wait.
    fn spread(&self) -> Span {
        let trips = if self.terms.backoff == 0 { 0 } else { u64::from(self.terms.backoff).max(SPREAD) };
        self.grtt.span() * trips
    }
}

impl Receiver {
    /// Passes a message of a sender to congestion control. Every message counts, and every missing one.
    pub(super) fn attend(&mut self, hearing: &Hearing<'_>, message: &Message) {
        let Hearing { now, from, at, terms } = *hearing;
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

    /// Handles a probe: answers at once, later or not at all.
    pub(super) fn consider_probe(&mut self, hearing: &Hearing<'_>, probe: &Probe) {
        let Hearing { now, at, terms, .. } = *hearing;
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
                    // By RFC 4654 §5, a quarter of the wait depends on the rate that this receiver can take.
                    let wait = most.as_secs_f64() * 0.25 * part + drawn.as_secs_f64() * 0.75;
                    remote.timers.set(Timer::Report, now + Span::from_secs_f64(wait));
                }
            }
            Due::Nothing => remote.timers.stop(Timer::Report),
        }
    }

    /// Returns the congestion feedback for a message to the sender at index `at`, if the sender asks for it. It need
    /// not be repeated for some time.
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

    /// Sends congestion feedback.
    pub(super) fn report(&mut self, now: Time, at: usize) {
        self.say(now, at, Answer::Ack { kind: CC, id: 0, content: Vec::new() });
    }

    /// Reports that this receiver leaves, so that a sender that follows its feedback need not wait for it.
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
            self.send(at, None, Some(feedback), answer);
        }
    }
}

impl Remote {
    /// Handles another receiver's feedback, heard from that receiver or repeated by the sender.
    pub(super) fn overhear_report(&mut self, now: Time, theirs: Option<&Feedback>) {
        if let (Some(congestion), Some(theirs)) = (&self.congestion, theirs)
            && congestion.listener.overheard(now, theirs, congestion.grtt)
        {
            self.timers.stop(Timer::Report);
        }
    }
}
