//! What is said of congestion, and when (RFC 5740 §5.5.2.2).

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Message as _};
use farcast_core::{Span, Time};

use super::session::Key;
use super::{Receiver, Timer, silence};
use crate::cc::{Due, Listener};
use crate::message::{Answer, Feedback, Message, NodeId, Probe, Terms, cc};
use crate::quantise::Loss;
use crate::timing::random_backoff;

/// The acknowledgement type of a probe.
const CC: u8 = 1;
/// Answers are spread over so many of the group's round trips, at least, where NACKs are not.
const SPREAD: u64 = 4;

/// The sender whose congestion it looks at: one that asks.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    source: SocketAddr,
    sender: NodeId,
    instance: u16,
    terms: Terms,
    heard: Time,
    listener: Listener,
}

impl Congestion {
    fn is_of(&self, source: SocketAddr, sender: NodeId, instance: u16) -> bool {
        (self.source, self.sender, self.instance) == (source, sender, instance)
    }
}

impl Receiver {
    /// A message of a sender has come, of whatever it is: each counts, and each that is missing.
    pub(super) fn attend(&mut self, now: Time, from: &Arrival, message: &Message, terms: Terms) {
        let Some(congestion) = &mut self.congestion else { return };
        if !congestion.is_of(from.source, message.source, terms.instance) {
            return;
        }
        (congestion.terms, congestion.heard) = (terms, now);
        let (count, is_data) = (message.segments().get(), message.data().is_some());
        let (each, last) = (message.wire_len(0), message.wire_len(count - 1));
        for segment in 0..count {
            let behind = u64::from(count - 1 - segment);
            let at = now - from.spacing * behind;
            let octets = if behind == 0 { last } else { each };
            let sequence = message.sequence.wrapping_add(segment as u16);
            congestion.listener.heard(at, sequence, octets, is_data, terms.grtt);
        }
    }

    /// A probe has come, of the sender at hand if there is one.
    pub(super) fn consider_probe(&mut self, now: Time, (key, terms): (Key, Terms), probe: &Probe) {
        let Key { source, sender, instance, .. } = key;
        if probe.rate.is_some() && !self.config.silent {
            self.take_up(now, key, terms);
        }
        let Some(congestion) = &mut self.congestion else { return };
        if !congestion.is_of(source, sender, instance) {
            return;
        }
        match congestion.listener.probed(now, self.config.node, probe, terms.grtt) {
            Due::AtOnce => self.report(now),
            Due::Later(part) => {
                if !self.timers.is_set(Timer::Report) && !self.timers.is_set(Timer::Rest) {
                    let most = spread(terms);
                    let drawn = random_backoff(most, terms.group, &mut self.chance);
                    // RFC 4654 §5: a quarter of it by what we can take.
                    let wait = most.as_secs_f64() * 0.25 * part + drawn.as_secs_f64() * 0.75;
                    self.timers.set(Timer::Report, now + Span::from_secs_f64(wait));
                }
            }
            Due::Nothing => self.timers.stop(Timer::Report),
        }
    }

    /// Looks at the congestion of the sender of `key`, if at nobody's, or at that of one who is not the sender at hand
    /// or has fallen silent.
    fn take_up(&mut self, now: Time, key: Key, terms: Terms) {
        let Key { source, sender, instance, .. } = key;
        let stays = self.congestion.as_ref().is_some_and(|congestion| {
            let fresh = now.since(congestion.heard) < silence(congestion.terms, self.config.robust);
            congestion.is_of(source, sender, instance) || (self.session.is_none() && fresh)
        });
        if !stays {
            let listener = Listener::default();
            self.congestion = Some(Congestion { source, sender, instance, terms, heard: now, listener });
            self.timers.stop(Timer::Report);
            self.timers.stop(Timer::Rest);
        }
    }

    /// What an answer to `sender` says of congestion, if it asks.
    pub(super) fn feedback(&self, now: Time, sender: NodeId, instance: u16) -> Option<Feedback> {
        let congestion = self.congestion.as_ref()?;
        if (congestion.sender, congestion.instance) != (sender, instance) {
            return None;
        }
        let loss = |part| Loss::of_style(part, self.config.loss);
        congestion.listener.feedback(now, congestion.terms.grtt, loss)
    }

    /// Says what is to be said of congestion.
    pub(super) fn report(&mut self, now: Time) {
        let Some(congestion) = &self.congestion else { return };
        let (source, of) = (congestion.source, (congestion.sender, congestion.instance));
        self.say(now, source, of, Answer::Ack { kind: CC, id: 0, content: Vec::new() });
    }

    /// Something was said that had it in it: for some time it need not be said again.
    pub(super) fn reported(&mut self, now: Time) {
        self.timers.stop(Timer::Report);
        let rest = self.congestion.as_ref().map(|congestion| spread(congestion.terms));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            self.timers.set(Timer::Rest, now + rest);
        }
    }

    /// Another receiver says this of congestion, or the sender says that one does.
    pub(super) fn overhear_report(&mut self, now: Time, theirs: Option<&Feedback>) {
        if let (Some(congestion), Some(theirs)) = (&self.congestion, theirs)
            && congestion.listener.overheard(now, theirs, congestion.terms.grtt)
        {
            self.timers.stop(Timer::Report);
        }
    }

    /// Goes: a sender that goes by what we say need not wait for us.
    pub(super) fn leave(&mut self) {
        let Some(congestion) = self.congestion.take() else { return };
        self.timers.stop(Timer::Report);
        self.timers.stop(Timer::Rest);
        let Congestion { source, sender, instance, terms, heard, listener } = congestion;
        let loss = |part| Loss::of_style(part, self.config.loss);
        let feedback = listener.feedback(heard, terms.grtt, loss).filter(|_| listener.has_role());
        if let Some(feedback) = feedback {
            let feedback = Feedback { flags: feedback.flags | cc::LEAVE, ..feedback };
            let answer = Answer::Ack { kind: CC, id: 0, content: Vec::new() };
            self.send(source, (sender, instance), (None, Some(feedback)), answer);
        }
    }
}

/// Over how long answers are spread (RFC 5740 §5.5.2.2); not at all where receivers are not to wait.
fn spread(terms: Terms) -> Span {
    let trips = if terms.backoff == 0 { 0 } else { u64::from(terms.backoff).max(SPREAD) };
    terms.grtt.span() * trips
}
