//! Seal of a transfer: its own datagrams, and their times.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::Message as _;
use farcast_delivery::{Delivery as _, Phase, Protocol, SenderEngine as _};
use farcast_seal::TO_ONE_KEY_OVERHEAD;

use super::seal::Seal;
use super::{Group, Layout, Party, SealCounts, SealMessage, Timer, World};

impl<P: Protocol, L: Layout<P>> World<'_, P, L> {
    /// Returns the counters of the seal, if there is one.
    pub fn seal_counts(&self) -> Option<&SealCounts> {
        self.seal.as_ref().map(|seal| &seal.counts)
    }

    /// Returns `true` if the transfer is sealed.
    pub(super) fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// Returns `true` if a receiver is to get the content key now.
    pub(crate) fn owes_key(&self) -> bool {
        self.seal.as_ref().is_some_and(|seal| seal.owed_at() <= self.now)
    }

    /// Returns the octets on the links of a datagram that only the seal sends.
    pub(crate) fn sealed_octets(&self, message: SealMessage) -> u64 {
        message.wire_len(0) as u64 + u64::from(self.overhead)
    }

    /// Handles the time of KEYS. The sender opens behind the first round.
    pub(super) fn wake_keys(&mut self) {
        let began = !self.lacks_keys();
        self.send_keys();
        if !began {
            self.open_sender();
        }
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
                self.send_sealed(keys);
            }
            if let Some(sender) = &mut self.sender {
                sender.spend(copies as u64, (copies * keys.wire_len(0)) as u64);
            }
        }
        if let Some(seal) = &self.seal {
            self.queue.push(seal.due(), Timer::Keys.into());
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
            self.send_sealed(SealMessage::Key(receiver));
        }
        if let Some(seal) = &mut self.seal
            && seal.owed_at() != Time::NEVER
            && !std::mem::replace(&mut seal.awaited, true)
        {
            self.queue.push(seal.owed_at(), Timer::Owed.into());
        }
    }

    /// Handles the turn of a receiver that lacks the content key.
    pub(super) fn wake_owed(&mut self) {
        if let Some(seal) = &mut self.seal {
            seal.awaited = false;
        }
        self.send_owed();
    }

    /// Sends a datagram of the seal from the sender.
    fn send_sealed(&mut self, message: SealMessage) {
        let octets = self.sealed_octets(message);
        if let Some(seal) = &mut self.seal {
            seal.counts.forward_octets += octets;
        }
        self.watch_sealed(message);
        L::send_sealed(self, message);
    }

    /// Reports a datagram of the seal to the observer.
    fn watch_sealed(&mut self, message: SealMessage) {
        if let Some(observer) = &mut self.observer {
            observer.sealed(self.now, message);
        }
    }

    /// Delivers a datagram of the seal to a group.
    pub(crate) fn unseal(&mut self, group: usize, message: SealMessage) {
        let octets = self.sealed_octets(message);
        let Some(seal) = &self.seal else { return };
        let mut readers = std::mem::take(&mut self.lost);
        readers.clear();
        let group = &mut self.groups[group];
        seal.readers(message, group.first..group.first + group.receivers, &mut readers);
        group.unseal(self.now, octets, &readers, matches!(message, SealMessage::Key(_)));
        self.lost = readers;
    }

    /// Returns the octets that the seal adds to a message of the sender, and the party that can open it; `None` if it
    /// cannot leave.
    pub(crate) fn seal_for(
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
    pub(crate) fn seal_answer(&mut self, receiver: u32) -> u16 {
        let Some(seal) = &mut self.seal else { return 0 };
        let of_group = |group: &mut Group<P>| {
            let member = group.member(Party::receiver(receiver))?;
            Some(group.losses.keys()?.is_stranger(member))
        };
        let grows = seal.answer(self.groups.iter_mut().find_map(of_group).unwrap_or_default());
        seal.counts.return_octets += u64::from(grows);
        grows
    }

    /// Notes that an answer of `receiver` has arrived, with `overhead` octets besides the message.
    pub(crate) fn open_answer(&mut self, receiver: u32, overhead: u16) {
        let first = Seal::is_first(overhead.saturating_sub(self.overhead));
        if let Some(seal) = &mut self.seal {
            seal.hears(self.now, receiver, first);
        }
    }

    /// Schedules the requests of a group's receivers that have heard content without its key.
    pub(super) fn schedule_key_requests(&mut self, group: usize) {
        let Group { losses, first, .. } = &mut self.groups[group];
        let Some(keys) = losses.keys() else { return };
        for (at, receiver) in keys.due.drain(..) {
            self.queue.push(at, Timer::KeyRequest(*first + receiver).into());
        }
    }

    /// Sends a receiver's request for the content key.
    pub(super) fn request_key(&mut self, receiver: u32) {
        let message = SealMessage::Ask(receiver);
        let octets = self.sealed_octets(message);
        if let Some(seal) = &mut self.seal {
            seal.counts.first_answers += 1;
            seal.counts.asks += 1;
            seal.counts.return_octets += octets;
        }
        self.watch_sealed(message);
        L::send_sealed(self, message);
    }

    /// Delivers a receiver's request for the content key to the sender.
    pub(crate) fn hear_key_request(&mut self, receiver: u32) {
        if let Some(seal) = &mut self.seal {
            seal.hears(self.now, receiver, true);
        }
        self.send_owed();
    }
}
