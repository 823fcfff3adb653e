//! Multicast transfer: its sender and its groups of receivers.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use farcast_core::engine::{Arrival, Engine as _, Transmit};
use farcast_core::stage::Frame;
use farcast_core::{Span, Time};
use farcast_delivery::{
    Delivery as _, Feedback, Merged, Milestone, NakFate, Population as _, Protocol, SenderEngine as _,
};

use super::config::{audience, party_at};
use super::group::{Kind, TimedFeedback};
use super::{Addressed, Cut, Event, Group, Party, Star, receiver_address};
use crate::outcome::Stop;

impl<P: Protocol> Star<'_, P> {
    /// Returns the sender, if there is a transfer.
    pub fn sender(&self) -> Option<&P::Sender> {
        self.sender.as_ref()
    }

    /// Returns the groups.
    pub fn groups(&self) -> &[Group<P>] {
        &self.groups
    }

    /// Returns the state of the sender at the end, with `requests`, which the caller has counted.
    pub(crate) fn stop(&self, requests: farcast_delivery::RequestCounts) -> Stop {
        Stop { ending: self.ending, left: self.left, end: self.end(), requests }
    }

    /// Returns the time at which the sender began to send data, if it has.
    pub fn began(&self) -> Option<Time> {
        self.began
    }

    pub(super) fn open_transfer(&mut self) {
        for group in 0..self.groups.len() {
            self.groups[group].touch_all();
            self.note_wakes(group);
        }
        self.send_keys();
        self.open_sender();
    }

    /// Opens the sender, if all receivers have been sent their keys; a receiver without keys can do nothing with its
    /// messages.
    pub(super) fn open_sender(&mut self) {
        if self.lacks_keys() {
            return;
        }
        if let Some(sender) = &mut self.sender {
            sender.open(self.now);
            self.drain_sender();
        }
    }

    pub(super) fn wake_sender(&mut self) {
        self.wake = Time::NEVER;
        if let Some(sender) = &mut self.sender {
            sender.handle_timeout(self.now);
        }
        self.drain_sender();
    }

    /// Wakes the sender if its timer is due: the sender's own events come before arrivals of the same instant.
    fn wake_sender_if_due(&mut self) {
        if self.wake <= self.now {
            self.wake_sender();
        }
    }

    fn drain_sender(&mut self) {
        while let Some(sender) = &mut self.sender {
            if let Some(event) = sender.poll_event() {
                match P::Sender::milestone(&event) {
                    Some(Milestone::Round { round: 1, .. }) => self.began = Some(self.now),
                    Some(Milestone::Left) => self.left += 1,
                    _ => {}
                }
                if let Some(ending) = P::Sender::ending(&event) {
                    self.ending = Some((self.now, ending));
                }
                if let Some(observer) = &mut self.observer {
                    observer.told(self.now, &event);
                }
            } else if let Some(transmit) = self.poll_sender() {
                self.send(transmit);
            } else {
                break;
            }
        }
        let Some(sender) = &self.sender else { return };
        if let Some(observer) = &mut self.observer {
            observer.phase(self.now, sender.phase());
        }
        let due = sender.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        if due != self.wake {
            self.wake = due;
            self.queue.push_unless_never(due, Event::Wake);
        }
    }

    fn poll_sender(&mut self) -> Option<Transmit<P::Message>> {
        let beyond = self.beyond();
        let next = self.next_at();
        let sender = self.sender.as_mut()?;
        let until = match self.cut {
            Cut::One => self.now,
            Cut::Whole | Cut::Random(_) => {
                // An answer to a message that leaves now may alter later messages.
                let answered = next.min(self.now + self.lookahead);
                sender.settled_until().max(answered).min(beyond)
            }
        };
        sender.poll_transmit(self.now, until)
    }

    fn send(&mut self, transmit: Transmit<P::Message>) {
        let Transmit { message, destination, spacing, .. } = transmit;
        // A message to an address outside the star is lost on links that are not simulated.
        let Some(to) = party_at(destination.ip(), self.receivers) else { return };
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
        self.tally.forward_datagrams += u64::from(frame.segments());
        let (full, last) = (frame.octets(0), frame.octets(frame.segments() - 1));
        self.tally.forward_octets += full * u64::from(frame.segments() - 1) + last;
        self.enter_forward(frame);
    }

    /// Delivers a set-up message at once to the receivers that it is for, and schedules their answers for the same
    /// instant.
    fn tell(&mut self, frame: &Frame<Addressed<P::Message>>) {
        let from = self.arrival(frame);
        let mut feedback = Vec::new();
        for group in 0..self.groups.len() {
            let to = frame.message.to;
            if to == Party::GROUP || self.groups[group].member(to).is_some() {
                self.groups[group].tell(self.now, &from, &frame.into(), &mut feedback);
                self.say(group, &mut feedback);
            }
        }
    }

    /// Returns the addresses and spacing with which a frame arrives.
    fn arrival(&self, frame: &Frame<Addressed<P::Message>>) -> Arrival {
        let Addressed { from, to, .. } = frame.message;
        let (source, group) = match from.as_receiver() {
            None => (self.routes.source, self.routes.content),
            Some(receiver) => (receiver_address(receiver), self.routes.answers),
        };
        let destination: SocketAddr = to.as_receiver().map_or(group, receiver_address);
        Arrival { spacing: frame.spacing, ..Arrival::new(source, destination) }
    }

    pub(super) fn fan_out(&mut self, group: usize, frame: Frame<Addressed<P::Message>>) {
        let most = frame.due_before(self.now, self.beyond());
        let mut count = self.cut.choose(most, &mut self.cuts);
        if self.groups[group].air.lacks() {
            // A receiver may get the key between two datagrams.
            count = NonZeroU32::MIN;
        }
        let later = self.now + frame.spacing * u64::from(count.get());
        let (mut head, tail) = frame.split(count);
        if let Some(frame) = tail {
            self.reach_later(later, group, frame);
        }
        let from = self.arrival(&head);
        let each = self.observer.as_ref().is_some_and(|observer| observer.wants_each());
        // Answers that other receivers overhear are sent one by one.
        let may_merge = !each
            && !self.relays
            && self.seal.is_none()
            && self.sender.as_ref().is_some_and(P::Sender::may_merge);
        let merged = if may_merge { self.back.merged() } else { None };
        let mut feedback = Vec::new();
        let taken = self.groups[group].take(self.now, &from, &(&head).into(), merged, &mut feedback);
        self.say(group, &mut feedback);
        if let Some(taken) = NonZeroU32::new(taken).filter(|taken| taken.get() < head.segments()) {
            let later = self.now + head.spacing * u64::from(taken.get());
            let (_, tail) = head.split(taken);
            if let Some(tail) = tail {
                head = tail;
                self.reach_later(later, group, head);
            }
        }
    }

    /// Schedules the arrival of the rest of a run at a group.
    fn reach_later(&mut self, at: Time, group: usize, frame: Frame<Addressed<P::Message>>) {
        self.under_way += 1;
        self.queue.push(at, Event::FanOut { group: group as u32, frame });
    }

    /// Schedules the messages of a group on the return path, and the timers that may have moved.
    fn say(&mut self, group: usize, feedback: &mut Vec<TimedFeedback<P>>) {
        for (at, one) in feedback.drain(..) {
            match one {
                Feedback::Merged(naks) => {
                    if let Some(delay) = self.back.delay {
                        self.queue.push(at + delay, Event::Merged(naks));
                    }
                }
                Feedback::Each { receiver, transmit } => {
                    let from = Party::receiver(self.groups[group].first + receiver);
                    let to = audience(transmit.destination.ip(), &self.routes);
                    let message = transmit.message;
                    self.queue.push(at, Event::Answer(Addressed { from, to, message }));
                }
            }
        }
        self.say_asks(group);
        self.note_wakes(group);
    }

    /// Schedules the timers of a group's touched stations.
    fn note_wakes(&mut self, group: usize) {
        let number = group as u32;
        let Group { kind, touched, .. } = &mut self.groups[group];
        match kind {
            Kind::Population { population, wake } => {
                let due = population.poll_timeout();
                if due != *wake {
                    *wake = due;
                    self.queue.push_unless_never(due, Event::GroupWake { group: number, station: 0 });
                }
            }
            Kind::Engines(stations) => {
                for station in touched.drain(..) {
                    let one = &mut stations[station as usize];
                    let due = one.due();
                    // A timer that moves later with each message, as patience does, is checked again when its event
                    // happens. Each station then has one event, not one for each message. The event's place is that of
                    // the last move.
                    if due != one.due_at {
                        (one.due_at, one.place) = (due, self.queue.take_place());
                        if due < one.wake {
                            one.wake = due;
                            self.queue.push_in(due, one.place, Event::GroupWake { group: number, station });
                        }
                    }
                }
            }
        }
    }

    pub(super) fn wake_group(&mut self, group: usize, station: u32) {
        let wake = match &mut self.groups[group].kind {
            Kind::Population { wake, .. } => wake,
            Kind::Engines(stations) => &mut stations[station as usize].wake,
        };
        if *wake != self.now {
            return;
        }
        *wake = Time::NEVER;
        if let Kind::Engines(stations) = &mut self.groups[group].kind {
            let one = &mut stations[station as usize];
            if one.due_at > self.now {
                one.wake = one.due_at;
                if one.wake != Time::NEVER {
                    self.queue.push_in(
                        one.wake,
                        one.place,
                        Event::GroupWake { group: group as u32, station },
                    );
                }
                return;
            }
            one.due_at = Time::NEVER;
        }
        let mut feedback = Vec::new();
        self.groups[group].wake(self.now, station, &mut feedback);
        self.say(group, &mut feedback);
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
        let Some(sender) = &mut self.sender else { return };
        let taken = sender.handle(self.now, &from, &message.message).is_ok();
        self.note_asked(taken);
        self.drain_sender();
        self.send_owed();
    }

    /// Delivers the merged NAKs of a population to the sender.
    pub(super) fn reach_merged(&mut self, naks: &Merged<P>) {
        self.wake_sender_if_due();
        let Some(sender) = &mut self.sender else { return };
        let taken = sender.handle_merged(self.now, naks).is_ok();
        self.note_asked(taken);
        self.drain_sender();
    }

    /// Counts NAKs by their fate, if the sender has just taken or refused any.
    fn note_asked(&mut self, taken: bool) {
        let Some(asked) = self.sender.as_ref().and_then(P::Sender::asked) else { return };
        match asked.fate {
            NakFate::Late => self.tally.naks_late += asked.count,
            NakFate::Used | NakFate::Known if taken => self.tally.naks_used += asked.count,
            NakFate::Used | NakFate::Known => {}
        }
        if let Some(observer) = &mut self.observer {
            observer.nak(self.now, &asked);
        }
    }
}
