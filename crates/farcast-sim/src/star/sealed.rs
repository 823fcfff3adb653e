//! Seal in a star: its own datagrams on the links, and their times.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::Message as _;
use farcast_core::stage::Frame;
use farcast_delivery::{Delivery as _, Phase, Protocol, SenderEngine as _};
use farcast_link::chain::Entry;
use farcast_seal::TO_ONE_KEY_OVERHEAD;

use super::seal::Seal;
use super::{Event, Group, Packet, Party, SealCounts, SealMessage, Star};
use crate::traffic::End;

impl<P: Protocol> Star<'_, P> {
    /// Returns the counters of the seal, if there is one.
    pub fn seal_counts(&self) -> Option<&SealCounts> {
        self.seal.as_ref().map(|seal| &seal.counts)
    }

    /// Sends the KEYS that are due, until the transfer is over.
    pub(super) fn send_keys(&mut self) {
        let over = self.sender.as_ref().is_none_or(|sender| sender.phase() == Phase::Ended);
        // Receivers that are given the set-up are given the keys.
        if self.seal.is_none() || self.given || over {
            return;
        }
        while let Some((keys, copies)) = self.seal.as_mut().and_then(|seal| seal.next_keys(self.now)) {
            for _ in 0..copies {
                self.leave_hub_sealed(keys);
            }
            if let Some(sender) = &mut self.sender {
                sender.spend(copies as u64, (copies * keys.wire_len(0)) as u64);
            }
        }
        if let Some(seal) = &self.seal {
            self.queue.push(seal.due(), Event::Keys);
        }
    }

    /// Returns `true` if the first round of KEYS is not over, so that a receiver may not have been sent any keys yet.
    pub(super) fn lacks_keys(&self) -> bool {
        !self.given && self.seal.as_ref().is_some_and(|seal| seal.begins())
    }

    /// Sends the content key alone to receivers that lack it, whose turn it is, and for which nothing else has left.
    pub(super) fn send_owed(&mut self) {
        let Some(seal) = &mut self.seal else { return };
        let owed = seal.newly_owed();
        if let Some(sender) = &mut self.sender {
            // Content also waits for the keys that have yet to leave.
            sender.spend(owed, owed * TO_ONE_KEY_OVERHEAD as u64);
        }
        while let Some(receiver) = self.seal.as_mut().and_then(|seal| seal.next_owed(self.now)) {
            self.leave_hub_sealed(SealMessage::Key(receiver));
        }
        if let Some(seal) = &mut self.seal
            && seal.owed_at() != Time::NEVER
            && !std::mem::replace(&mut seal.awaited, true)
        {
            self.queue.push(seal.owed_at(), Event::Owed);
        }
    }

    /// Handles the turn of a receiver that lacks the content key.
    pub(super) fn wake_owed(&mut self) {
        if let Some(seal) = &mut self.seal {
            seal.awaited = false;
        }
        self.send_owed();
    }

    fn leave_hub_sealed(&mut self, message: SealMessage) {
        self.watch_sealed(message);
        let frame = Frame::new(Packet::Seal(message), self.overhead);
        self.tally.forward_datagrams += 1;
        self.tally.forward_octets += frame.octets(0);
        if let Some(seal) = &mut self.seal {
            seal.counts.forward_octets += frame.octets(0);
        }
        self.enter(Entry::new(End::Terminal, frame));
    }

    /// Reports a datagram of the seal to the observer.
    fn watch_sealed(&mut self, message: SealMessage) {
        if let Some(observer) = &mut self.observer {
            observer.sealed(self.now, message);
        }
    }

    /// Schedules the arrival at groups of a datagram of the seal that leaves the last stage at `at`.
    pub(super) fn unseal_later(&mut self, at: Time, message: SealMessage) {
        for (number, group) in (0..).zip(&self.groups) {
            let alone = if let SealMessage::Key(receiver) = message { Some(receiver) } else { None };
            if alone.is_none_or(|one| group.member(Party::receiver(one)).is_some()) {
                self.queue.push(at + group.delay, Event::Unseal { group: number, message });
            }
        }
    }

    /// Delivers a datagram of the seal to a group.
    pub(super) fn unseal(&mut self, group: usize, message: SealMessage) {
        let Some(seal) = &self.seal else { return };
        let mut readers = std::mem::take(&mut self.lost);
        readers.clear();
        let group = &mut self.groups[group];
        seal.readers(message, (group.first, group.receivers), &mut readers);
        let octets = message.wire_len(0) as u64 + u64::from(self.overhead);
        group.unseal(self.now, octets, &readers, matches!(message, SealMessage::Key(_)));
        self.lost = readers;
    }

    /// Returns the octets that the seal adds to a message of the sender, and the party that can open it; `None` if it
    /// cannot leave.
    pub(super) fn seal_for(
        &mut self,
        message: &P::Message,
        destination: SocketAddr,
        to: Party,
    ) -> Option<(u16, Party)> {
        let Some(seal) = &mut self.seal else { return Some((0, to)) };
        let early = self.sender.as_ref().is_some_and(|sender| sender.phase() == Phase::Announcing);
        let for_all = [self.routes.content, self.routes.announcements].contains(&destination);
        let alone = to.as_receiver().filter(|_| !for_all);
        let sealed = seal.seals(message.content().is_some().then_some(early), alone);
        let (grows, _) = sealed?;
        if !(self.given && message.is_set_up()) {
            seal.counts.forward_octets += u64::from(grows) * u64::from(message.segments().get());
        }
        sealed
    }

    /// Returns the octets that the seal adds to an answer of `receiver` that leaves now.
    pub(super) fn seal_answer(&mut self, receiver: u32) -> u16 {
        let Some(seal) = &mut self.seal else { return 0 };
        let of_group = |group: &mut Group<P>| {
            let member = group.member(Party::receiver(receiver))?;
            Some(group.air.ears()?.is_stranger(member))
        };
        let grows = seal.answer(self.groups.iter_mut().find_map(of_group).unwrap_or_default());
        seal.counts.return_octets += u64::from(grows);
        grows
    }

    /// Notes that an answer of `receiver` has arrived, with `overhead` octets besides the message.
    pub(super) fn open_answer(&mut self, receiver: u32, overhead: u16) {
        let first = Seal::is_first(overhead.saturating_sub(self.overhead));
        if let Some(seal) = &mut self.seal {
            seal.hears(self.now, receiver, first);
        }
    }

    /// Schedules the requests of a group's receivers that have heard content without its key.
    pub(super) fn say_asks(&mut self, group: usize) {
        let Group { air, first, .. } = &mut self.groups[group];
        let Some(ears) = air.ears() else { return };
        for (at, receiver) in ears.asking.drain(..) {
            self.queue.push(at, Event::Ask(*first + receiver));
        }
    }

    /// Sends a receiver's request for the content key.
    pub(super) fn ask(&mut self, receiver: u32) {
        self.watch_sealed(SealMessage::Ask(receiver));
        let frame = Frame::new(Packet::Seal(SealMessage::Ask(receiver)), self.overhead);
        let octets = frame.octets(0);
        self.tally.return_datagrams += 1;
        self.tally.return_octets += octets;
        if let Some(seal) = &mut self.seal {
            seal.counts.first_answers += 1;
            seal.counts.asks += 1;
            seal.counts.return_octets += octets;
        }
        let Some(delay) = self.back.delay else { return self.enter(Entry::new(End::Hub, frame)) };
        let at = self.now + delay;
        if !self.loses_ask(at, receiver) {
            self.queue.push(at, Event::ArriveAsk(receiver));
        }
    }

    /// Returns `true` if a receiver's request for the content key that leaves the return path at `at` is lost.
    pub(super) fn loses_ask(&mut self, at: Time, receiver: u32) -> bool {
        let octets = SealMessage::Ask(receiver).wire_len(0) as u64 + u64::from(self.overhead);
        self.back.loses(at, octets, receiver)
    }

    /// Delivers a receiver's request for the content key to the sender.
    pub(super) fn reach_ask(&mut self, receiver: u32) {
        if let Some(seal) = &mut self.seal {
            seal.hears(self.now, receiver, true);
        }
        self.send_owed();
    }
}
