//! Reactions of a sender to the messages of receivers (draft §4.4, §4.5, §4.7).

use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::engine::Reject;
use farcast_delivery::Phase;
use farcast_delivery::nack::{NodeId, Stamp};

use super::{Sender, Timer};
use crate::event::SenderEvent;
use crate::message::{Answer, Body, Flags, FromReceiver, FromSender, Message, ObjectNack};
use crate::wire;

impl Sender {
    pub(super) fn hear(&mut self, now: Time, message: &Message) -> Result<(), Reject> {
        let Body::Receiver(said) = &message.body else { return Err(Reject::Unexpected) };
        if said.server != self.config.node {
            return Err(Reject::OtherSession);
        }
        if !message.source.is_somebody() || message.source == self.config.node {
            return Err(Reject::Collision);
        }
        if !self.core.is_at_work() {
            return Err(Reject::Unexpected);
        }
        self.core.note_heard(now, message.source);
        match &said.answer {
            Answer::Nack(nacks) => self.nack(now, message.source, nacks, Self::known(now, said))?,
            Answer::Object(object) => self.acknowledged(message.source, *object)?,
            Answer::Probe => {}
        }
        self.measure(now, said);
        Ok(())
    }

    /// Returns the time at which the newest data left that the receiver could have heard when it sent this message, by
    /// its time stamp. A receiver that has heard no probe counts as knowing everything.
    fn known(now: Time, said: &FromReceiver) -> Time {
        let trip = said.response.and_then(|response| Stamp::of(now).since(response));
        trip.map_or(Time::NEVER, |trip| now - trip)
    }

    /// Takes a sample of the round trip from an answer to a probe.
    fn measure(&mut self, now: Time, said: &FromReceiver) {
        if let Some(trip) = said.response.and_then(|response| Stamp::of(now).since(response)) {
            self.grtt.sample(trip);
        }
    }

    fn nack(&mut self, now: Time, from: NodeId, nacks: &[ObjectNack], known: Time) -> Result<(), Reject> {
        // A NACK is taken as a whole or not at all. Objects that have not begun, do not exist or are withdrawn are
        // reported as not available.
        let is_there =
            |object: u32| (object as usize) < self.begun.len() && !self.withdrawn.contains(&object);
        let (there, gone): (Vec<_>, Vec<_>) = nacks.iter().partition(|nack| is_there(nack.object));
        for nack in &there {
            let one = &self.begun[nack.object as usize];
            nack.requests.iter().try_for_each(|request| one.check(request))?;
        }
        if there.is_empty() && gone.is_empty() {
            return Err(Reject::Inconsistent);
        }
        for nack in &gone {
            // This receiver will never acknowledge the object.
            if let Some(one) = self.begun.get_mut(nack.object as usize) {
                one.waiting.retain(|&waiting| waiting != from);
            }
        }
        self.squelch(now, &gone);
        let (spent, there): (Vec<_>, Vec<_>) =
            there.into_iter().partition(|nack| self.begun[nack.object as usize].repairs.are_spent());
        if !spent.is_empty() {
            // Other requests in the same message, and its time stamp, still count.
            let _ = self.core.rejects.note::<()>(Err(Reject::Limit));
        }
        let mut count = 0u32;
        for nack in &there {
            // While repairs are sent, only requests behind the current position are new.
            let (object, block) = self.position;
            let from = match nack.object.cmp(&object) {
                _ if !self.repairing => 0,
                core::cmp::Ordering::Less => u32::MAX,
                core::cmp::Ordering::Equal => block + 1,
                core::cmp::Ordering::Greater => 0,
            };
            let one = &mut self.begun[nack.object as usize];
            for request in &nack.requests {
                count = count.saturating_add(one.note(request, from, known));
            }
            if one.is_asked() {
                self.asked.insert(nack.object);
            }
        }
        self.repair_info(now);
        self.core.note_request(count > 0);
        if count == 0 {
            return Ok(());
        }
        if self.repairing {
            self.commit();
        } else if !self.timers.is_set(Timer::Aggregate) {
            self.timers.set(Timer::Aggregate, now + self.advertised().span() * 2);
        }
        self.advertise(now, &there);
        Ok(())
    }

    /// Sends requested INFO again at once, but only once in two round trips: without it no receiver can begin.
    fn repair_info(&mut self, now: Time) {
        let held = self.timers.is_set(Timer::Info);
        for &object in &self.asked {
            let there = self.config.objects[object as usize].has_info();
            // While INFO is held off, a receiver that lacks it asks again later.
            if self.begun[object as usize].take_info() && there && !held {
                let info = self.info(object, Flags::REPAIR);
                self.outbox.push_back(info);
                let one = &mut self.begun[object as usize];
                one.repairs.note(1);
                (one.asks, self.flushes) = (0, 0);
                self.timers.set(Timer::Info, now + self.advertised().span() * 2);
            }
        }
        let begun = &self.begun;
        self.asked.retain(|&object| begun[object as usize].is_asked());
    }

    /// Reports the objects that are not available, as many as fit a segment, once in two round trips.
    fn squelch(&mut self, now: Time, gone: &[&ObjectNack]) {
        if gone.is_empty() || self.timers.is_set(Timer::Squelch) {
            return;
        }
        let room = usize::from(self.config.segment_size) / 4;
        let mut invalid: Vec<u32> = gone.iter().map(|nack| nack.object).take(room).collect();
        invalid.sort_unstable();
        invalid.dedup();
        self.outbox.push_back(FromSender::Squelch { sync: 0, invalid });
        self.timers.set(Timer::Squelch, now + self.advertised().span() * 2);
    }

    /// Repeats a receiver's request to the group, where receivers answer to the sender alone, so that the others need
    /// not ask; once in a round trip.
    fn advertise(&mut self, now: Time, nacks: &[&ObjectNack]) {
        let wanted = self.config.unicast && self.config.group.ip().is_multicast();
        if !wanted || self.timers.is_set(Timer::Advertise) {
            return;
        }
        let mut room = usize::from(self.config.segment_size);
        let fits = |nack: &&&ObjectNack| {
            let len = wire::nack_len(nack);
            let fits = len <= room;
            room = room.saturating_sub(len);
            fits
        };
        let told: Vec<ObjectNack> = nacks.iter().take_while(fits).map(|&nack| nack.clone()).collect();
        if !told.is_empty() {
            self.outbox.push_back(FromSender::NackAdv(told));
            self.timers.set(Timer::Advertise, now + self.advertised().span());
        }
    }

    fn acknowledged(&mut self, node: NodeId, object: u32) -> Result<(), Reject> {
        let Some(one) = self.begun.get_mut(object as usize) else { return Err(Reject::OutOfRange) };
        if !self.config.ackers.contains(&node) {
            return Err(Reject::Stranger);
        }
        let before = one.waiting.len();
        one.waiting.retain(|&waiting| waiting != node);
        if one.waiting.len() == before {
            return Err(Reject::Duplicate);
        }
        if let Some(at) = self.lacking.iter().position(|(lacking, _)| *lacking == node) {
            self.lacking[at].1 -= 1;
            if self.lacking[at].1 == 0 {
                self.lacking.remove(at);
                self.core.events.push_back(SenderEvent::Acknowledged(node));
            }
        }
        if self.lacking.is_empty() && !self.core.has_dismissed() {
            self.core.events.push_back(SenderEvent::Delivered);
        }
        self.conclude_if_settled();
        Ok(())
    }

    /// Ends the transmission if everything was sent and no named receiver is waited for.
    pub(super) fn conclude_if_settled(&mut self) {
        let all_begun = self.begun.len() == self.geometries.len();
        if self.lacking.is_empty() && all_begun && self.core.phase == Phase::Waiting && self.asked.is_empty()
        {
            self.conclude();
        }
    }

    /// Sends the repairs that were gathered.
    pub(super) fn repair(&mut self, now: Time) {
        if self.commit() {
            self.repairing = true;
            self.go_on(now);
            self.begin_round();
        } else if self.core.phase == Phase::Waiting && !self.timers.is_set(Timer::Flush) {
            // The end was put off while the requests were gathered.
            self.flush(now);
        }
    }

    /// Adds the requests to what is to be sent. Returns `true` if any of them is new.
    fn commit(&mut self) -> bool {
        let mut new = false;
        while let Some(object) = self.asked.pop_first() {
            if self.begun[object as usize].commit() {
                new = true;
                self.low = self.low.min(object as usize);
            }
        }
        new
    }
}
