//! Handling of messages: of senders, and of other receivers.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Message as _, Reject};
use farcast_delivery::Outcome;
use farcast_delivery::nack::ContentState;

use super::remote::{Key, Remote, Timer};
use super::{Hearing, MOST_REMOTES, ObjectIndex, Receiver};
use crate::event::{Command, ReceiverEvent};
use crate::message::{Answer, Body, FromReceiver, FromSender, Message, Point, Probe, Terms};
use crate::timing::MOVES;

/// First type of acknowledgement that is the application's (RFC 5740 §4.2.3.6).
const APPLICATIONS: u8 = 16;

impl Receiver {
    pub(super) fn hear(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        match &message.body {
            Body::Sender(terms, said) if message.source.is_somebody() => {
                let key = Key { source: from.source, node: message.source, instance: terms.instance };
                let at = self.remote(now, from, key, *terms, said)?;
                let hearing = Hearing { now, from, at, terms: *terms };
                let octets = message.wire_len(0) as u64 * u64::from(message.segments().get());
                self.remotes[at].earn(octets);
                self.remotes[at].last_heard = now;
                self.remotes[at].passage.came_numbered_by_16_bits(message.sequence, message.segments().get());
                self.attend(&hearing, message);
                self.hear_sender(&hearing, said)
            }
            Body::Receiver(said) if message.source != self.config.node => self.hear_other(now, said),
            _ => Err(Reject::Collision),
        }
    }

    /// Returns the index of the sender of `key`. Adds an unknown sender if `said` can be the first message of a sender.
    fn remote(
        &mut self,
        now: Time,
        from: &Arrival,
        key: Key,
        terms: Terms,
        said: &FromSender,
    ) -> Result<usize, Reject> {
        if let Some(at) = self.remotes.iter().position(|remote| remote.key == key && !remote.past) {
            return Ok(at);
        }
        let begins = matches!(
            said,
            FromSender::Data(_) | FromSender::Info(_) | FromSender::Flush { .. } | FromSender::Probe(_)
        );
        if !begins {
            return Err(Reject::OtherSession);
        }
        // A node is known by its id. A node that sends from another address has moved, or was killed and started again
        // to send the same. But if it is still heard from the old address, this is another node with the same id.
        let same = |remote: &Remote| (remote.key.node, remote.key.instance) == (key.node, key.instance);
        if let Some(at) = self.remotes.iter().position(|remote| same(remote) && !remote.gone) {
            let remote = &mut self.remotes[at];
            if remote.fed.is_some() && now.since(remote.last_heard) < MOVES {
                return Err(Reject::OtherSession);
            }
            remote.former = Some(core::mem::replace(&mut remote.key.source, key.source));
            // The path is another, and perhaps the sequence numbers are.
            remote.congestion = None;
            return Ok(at);
        }
        if self.remotes.len() == MOST_REMOTES {
            let sends = matches!(said, FromSender::Data(_));
            let at = self.yielding(now, sends, |_, _| true).ok_or(Reject::Limit)?;
            self.give_up_all(at);
            self.remotes.remove(at);
        }
        // A sender that was started anew no longer knows its earlier session.
        let former = |remote: &Remote| (remote.key.source, remote.key.node) == (key.source, key.node);
        for at in 0..self.remotes.len() {
            if former(&self.remotes[at]) {
                self.gone(at);
            }
        }
        self.remotes.push(Remote::new(key, from.destination, terms, now));
        Ok(self.remotes.len() - 1)
    }

    /// Returns the `eligible` sender that is the first to lose its place to another.
    pub(super) fn yielding(
        &self,
        now: Time,
        sends: bool,
        eligible: impl Fn(usize, &Remote) -> bool,
    ) -> Option<usize> {
        let remotes = self.remotes.iter().enumerate().filter(|(at, remote)| eligible(*at, remote));
        let yielding = remotes.filter_map(|(at, remote)| Some((remote.yields(now, sends)?, at)));
        yielding.min().map(|(_, at)| at)
    }

    fn hear_sender(&mut self, hearing: &Hearing<'_>, said: &FromSender) -> Result<(), Reject> {
        let Hearing { now, at, .. } = *hearing;
        match said {
            FromSender::Data(data) => self.data(hearing, data),
            FromSender::Info(info) => self.info(hearing, info),
            FromSender::Flush { point, ackers } => {
                let named = ackers.contains(&self.config.node);
                self.flush(hearing, point, named)
            }
            FromSender::Probe(probe) => {
                self.probe(hearing, probe);
                Ok(())
            }
            FromSender::Eot if self.remotes[at].is_known() => {
                self.gone(at);
                Ok(())
            }
            FromSender::Squelch { point, invalid } => self.squelch(at, point, invalid),
            FromSender::RepairAdv { requests, feedback, .. } => {
                let remote = &mut self.remotes[at];
                remote.overhear_report(now, feedback.as_ref());
                if remote.timers.is_set(Timer::Backoff) {
                    remote.overhear(requests);
                }
                Ok(())
            }
            FromSender::AckReq { kind, id, ackers } => {
                if *kind < APPLICATIONS {
                    return Err(Reject::OutOfRange);
                }
                if ackers.contains(&self.config.node) {
                    // The content behind the header belongs to the application, which has none here.
                    let answer = Answer::Ack { kind: *kind, id: *id, content: Vec::new() };
                    self.acknowledge(now, at, answer);
                }
                Ok(())
            }
            FromSender::Application(content) => {
                let (sender, content) = (self.remotes[at].key.node, content.clone());
                self.events.push_back(ReceiverEvent::Own(Command { sender, content }));
                Ok(())
            }
            FromSender::Eot => Err(Reject::Unexpected),
        }
    }

    fn flush(&mut self, hearing: &Hearing<'_>, point: &Point, named: bool) -> Result<(), Reject> {
        let Hearing { now, at, .. } = *hearing;
        let number = self.know(at, point.object).ok_or(Reject::Unexpected)?;
        let block = point.symbol.block;
        let remote = &mut self.remotes[at];
        // An object without blocks has no last block, so the number of the point does not matter.
        let blocks = remote.objects.get(&number).map_or(0, |object| object.content.geometry.blocks());
        if blocks > 0 && block >= blocks {
            return Err(Reject::OutOfRange);
        }
        if remote.segment_size == 0 {
            remote.fec = point.fec;
        }
        // If a sender has left and nothing of it is lacking, a repeated message does not make the receiver wait for it
        // again.
        if !remote.gone || remote.is_lacking() {
            self.note_sender(hearing);
            let remote = &mut self.remotes[at];
            remote.position = (number, block.saturating_add(1));
            remote.advance(number);
            self.consider(now, at);
        }
        if named {
            self.remotes[at].owed = Some((number, *point));
            self.pay(now, at);
        }
        Ok(())
    }

    /// Acknowledges the point that a flush has asked for, if everything up to it is there.
    pub(super) fn pay(&mut self, now: Time, at: usize) {
        let remote = &mut self.remotes[at];
        let Some((number, point)) = remote.owed else { return };
        if remote.has_up_to(number) {
            remote.owed = None;
            self.acknowledge(now, at, Answer::Flushed { id: 0, point });
        }
    }

    /// Schedules `answer` within a GRTT (RFC 5740 §5.5.3).
    fn acknowledge(&mut self, now: Time, at: usize, answer: Answer) {
        if self.config.silent {
            return;
        }
        let remote = &mut self.remotes[at];
        if !remote.timers.is_set(Timer::Ack) {
            let spread = self.waits.acknowledgement(self.config.node, now, remote.grtt);
            remote.timers.set(Timer::Ack, now + spread);
        }
        remote.ack = Some(answer);
    }

    fn probe(&mut self, hearing: &Hearing<'_>, probe: &Probe) {
        let Hearing { now, at, .. } = *hearing;
        self.remotes[at].probed = Some((probe.sent, now));
        if self.remotes[at].numbers.is_some() && !self.remotes[at].gone {
            self.note_sender(hearing);
        }
        self.consider_probe(hearing, probe);
    }

    /// Handles a squelch: objects before `point`, and the `invalid` ones, cannot be repaired any more.
    fn squelch(&mut self, at: usize, point: &Point, invalid: &[u16]) -> Result<(), Reject> {
        let remote = &mut self.remotes[at];
        let numbers = remote.numbers.as_mut().ok_or(Reject::Unexpected)?;
        let from = numbers.of(point.object).unwrap_or(0);
        let listed: BTreeSet<u32> = invalid.iter().filter_map(|&id| numbers.of(id)).collect();
        // An object that is being verified still counts.
        let mut gone: Vec<u32> = remote
            .objects
            .iter()
            .filter(|(_, object)| object.content.state != ContentState::Verifying)
            .map(|(&number, _)| number)
            .filter(|number| *number < from || listed.contains(number))
            .collect();
        // An object that was sent before this receiver listened does not count as failed.
        let mut failed = None;
        for &number in &listed {
            if numbers.is_unheard(number) && !numbers.refuse(number) {
                failed = failed.or(Some(number));
            }
        }
        failed = numbers.let_go(from).or(failed);
        if let Some(number) = failed {
            remote.note_failed(number);
        }
        gone.sort_unstable();
        for number in gone {
            self.remotes[at].note_failed(number);
            let is_listed = listed.contains(&number);
            let outcome = if is_listed { Outcome::Missed } else { Outcome::Lost };
            self.end(ObjectIndex { at, number }, outcome);
        }
        Ok(())
    }

    fn hear_other(&mut self, now: Time, said: &FromReceiver) -> Result<(), Reject> {
        let of = |remote: &Remote| (remote.key.node, remote.key.instance) == (said.sender, said.instance);
        let mut known = false;
        for remote in self.remotes.iter_mut().filter(|remote| of(remote)) {
            known = true;
            remote.overhear_report(now, said.feedback.as_ref());
            if let Answer::Nack(requests) = &said.answer
                && remote.timers.is_set(Timer::Backoff)
            {
                remote.overhear(requests);
            }
        }
        if known { Ok(()) } else { Err(Reject::OtherSession) }
    }
}
