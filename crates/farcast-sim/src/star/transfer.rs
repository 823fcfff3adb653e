//! Messages of the transfer in a star: from the hub to the groups, and back.

use farcast_core::engine::{Arrival, Message as _, Transmit};
use farcast_core::stage::Frame;
use farcast_core::{Span, Time};
use farcast_delivery::{Delivery as _, Protocol};
use farcast_link::chain::Entry;

use super::links::on_links;
use super::{Addressed, Event, Party, SealMessage, Star, receiver_address};
use crate::traffic::End;
use crate::world::Layout as _;

impl<P: Protocol> Star<'_, P> {
    pub(super) fn send(&mut self, transmit: Transmit<P::Message>) {
        let Transmit { message, destination, spacing, .. } = transmit;
        let address = destination.ip();
        let group = address.is_multicast().then_some(Party::GROUP);
        // A message to an address outside the star is lost on links that are not simulated.
        let Some(to) = group.or_else(|| Party::at(address, self.receivers)) else { return };
        let Some((grows, to)) = self.seal_for(&message, destination, to) else { return };
        let overhead = self.overhead.saturating_add(grows);
        let frame = Frame { message, overhead, spacing };
        let set_up = self.given && frame.message.is_set_up();
        if !set_up && let Some(observer) = &mut self.observer {
            observer.sent(self.now, destination, &frame);
        }
        let message = Addressed { from: Party::HUB, to, message: frame.message };
        let frame = Frame { message, overhead, spacing };
        if set_up {
            self.tell(&frame);
        } else {
            self.leave_hub(frame);
        }
    }

    /// Counts a frame of the transfer that leaves the hub, and enters it into the forward chain.
    fn leave_hub(&mut self, frame: Frame<Addressed<P::Message>>) {
        let segments = u64::from(frame.segments());
        let (full, last) = (frame.octets(0), frame.octets(frame.segments() - 1));
        self.layout.traffic.count(End::Terminal, segments, full * (segments - 1) + last);
        self.enter(Entry::new(End::Terminal, on_links(frame)));
    }

    /// Passes a frame of the transfer to the groups that it is for.
    pub(super) fn reach_groups(&mut self, at: Time, frame: Frame<Addressed<P::Message>>) {
        let to = frame.message.to;
        let mut last = self.groups.len() - 1;
        if to.is_group() {
            for number in 0..last {
                self.reach_group(at, number, frame.clone());
            }
        } else {
            let Some(number) = self.groups.iter().position(|group| group.member(to).is_some()) else {
                return;
            };
            last = number;
        }
        self.reach_group(at, last, frame);
    }

    fn reach_group(&mut self, at: Time, number: usize, frame: Frame<Addressed<P::Message>>) {
        let at = at + self.groups[number].delay;
        super::Hub::arrive_later(self, at, number, frame);
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

    /// Enters a receiver's message into the return path.
    pub(super) fn enter_return(&mut self, message: Addressed<P::Message>) {
        if self.given && message.message.is_set_up() {
            let message = Addressed { to: Party::HUB, ..message };
            return self.reach(&Frame::new(message, self.overhead));
        }
        let Some(receiver) = message.from.as_receiver() else { return };
        let overhead = self.overhead.saturating_add(self.seal_answer(receiver));
        let octets = message.wire_len(0) as u64 + u64::from(overhead);
        self.layout.traffic.count(End::Hub, 1, octets);
        let frame = self.watch_answer(receiver, Frame::new(message, overhead));
        let Some(delay) = self.layout.back.delay else {
            return self.enter(Entry::new(End::Hub, on_links(frame)));
        };
        let at = self.now + delay;
        if !self.layout.back.loses(at, octets, receiver) {
            self.queue.push(at, Event::Arrive(frame));
        }
    }

    /// Reports a receiver's message to the observer, and returns it.
    fn watch_answer(
        &mut self,
        receiver: u32,
        frame: Frame<Addressed<P::Message>>,
    ) -> Frame<Addressed<P::Message>> {
        let Some(observer) = &mut self.observer else { return frame };
        let Frame { message: Addressed { from, to, message }, overhead, spacing } = frame;
        let frame = Frame { message, overhead, spacing };
        observer.answered(self.now, receiver, &frame);
        Frame { message: Addressed { from, to, message: frame.message }, overhead, spacing }
    }

    /// Delivers a receiver's message to the sender, and forwards it to the other receivers if it is for the group.
    pub(super) fn reach(&mut self, frame: &Frame<Addressed<P::Message>>) {
        let message = &frame.message;
        let Some(receiver) = message.from.as_receiver() else { return };
        self.wake_sender_if_due();
        if let Some(observer) = &mut self.observer {
            observer.reached(self.now, receiver, &message.message);
        }
        self.open_answer(receiver, frame.overhead);
        let from = Arrival::new(receiver_address(receiver), self.routes.answers);
        if message.to == Party::GROUP {
            self.leave_hub(Frame { message: message.clone(), overhead: self.overhead, spacing: Span::ZERO });
        }
        self.deliver_to_sender(&from, &message.message);
    }
}
