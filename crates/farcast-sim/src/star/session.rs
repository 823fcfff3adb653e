//! The multicast transfer: its sender, and its groups of receivers.

use std::num::NonZeroU32;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine, Transmit};
use farcast_core::stage::Frame;
use farcast_delivery::Feedback;
use farcast_mftp::message::Naks;
use farcast_mftp::{Body, Message, Sender, SenderEvent};

use super::group::{Kind, Said};
use super::{Cut, Event, Group, NakFate, Star, receiver_address};

impl Star<'_> {
    /// The sender, if there is a transfer.
    pub fn sender(&self) -> Option<&Sender> {
        self.sender.as_ref()
    }

    /// The groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// When the sender began to send data, if it has.
    pub fn began(&self) -> Option<Time> {
        self.began
    }

    pub(super) fn open_sender(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.open(Time::ZERO);
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

    /// What the sender itself does at an instant goes before what arrives then.
    fn wake_sender_if_due(&mut self) {
        if self.wake <= self.now {
            self.wake_sender();
        }
    }

    fn drain_sender(&mut self) {
        while let Some(sender) = &mut self.sender {
            if let Some(event) = sender.poll_event() {
                if matches!(event, SenderEvent::Pass { pass: 1, .. }) {
                    self.began = Some(self.now);
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

    fn poll_sender(&mut self) -> Option<Transmit<Message>> {
        let beyond = self.beyond();
        let sender = self.sender.as_mut()?;
        let until = match self.cut {
            Cut::One => self.now,
            Cut::Whole | Cut::Random(_) => sender.settled_until().max(self.queue.next_at()).min(beyond),
        };
        sender.poll_transmit(self.now, until)
    }

    fn send(&mut self, transmit: Transmit<Message>) {
        // Only groups are simulated: a sender speaks to one host where identities collide, and here they do not.
        if !transmit.destination.ip().is_multicast() {
            return;
        }
        let frame = Frame { message: transmit.message, overhead: self.overhead, spacing: transmit.spacing };
        if self.given && matches!(frame.message.body, Body::Announce(_)) {
            return self.tell(&frame);
        }
        self.tally.forward_datagrams += u64::from(frame.segments());
        let (full, last) = (frame.octets(0), frame.octets(frame.segments() - 1));
        self.tally.forward_octets += full * u64::from(frame.segments() - 1) + last;
        if let Some(observer) = &mut self.observer {
            observer.sent_to(self.now, transmit.destination, &frame);
        }
        self.enter_forward(frame);
    }

    /// Everyone hears an announcement at once, and what they say to it is heard at once.
    fn tell(&mut self, frame: &Frame<Message>) {
        let Some(from) = self.arrival(frame) else { return };
        let mut said = Vec::new();
        for group in 0..self.groups.len() {
            self.groups[group].tell(self.now, &from, frame, &mut said);
            self.say(group, &mut said);
        }
    }

    fn arrival(&self, frame: &Frame<Message>) -> Option<Arrival> {
        let config = self.sender.as_ref()?.config();
        Some(Arrival { spacing: frame.spacing, ..Arrival::new(config.server, config.private) })
    }

    pub(super) fn fan_out(&mut self, group: usize, frame: Frame<Message>) {
        let count = self.cut(&frame, self.beyond());
        let later = self.now + frame.spacing * u64::from(count.get());
        let (mut head, tail) = frame.split(count);
        if let Some(frame) = tail {
            self.reach_later(later, group, frame);
        }
        let Some(from) = self.arrival(&head) else { return };
        let each = self.observer.as_ref().is_some_and(|observer| observer.wants_each());
        let may_merge = !each && self.sender.as_ref().is_some_and(Sender::may_merge);
        let merged = if may_merge { self.back.merged() } else { None };
        let mut said = Vec::new();
        let taken = self.groups[group].take(self.now, &from, &head, merged, &mut said);
        self.say(group, &mut said);
        if let Some(taken) = NonZeroU32::new(taken).filter(|taken| taken.get() < head.segments()) {
            let later = self.now + head.spacing * u64::from(taken.get());
            let (_, tail) = head.split(taken);
            if let Some(tail) = tail {
                head = tail;
                self.reach_later(later, group, head);
            }
        }
    }

    /// The rest of a run reaches a group.
    fn reach_later(&mut self, at: Time, group: usize, frame: Frame<Message>) {
        self.under_way += 1;
        self.queue.push(at, Event::FanOut { group: group as u32, frame });
    }

    /// Sends what a group says on its way back, and notes when it wants to be woken.
    fn say(&mut self, group: usize, said: &mut Vec<Said>) {
        for (at, voice) in said.drain(..) {
            match voice {
                Feedback::Merged(naks) => {
                    if let Some(delay) = self.back.delay {
                        self.queue.push(at + delay, Event::Merged(naks));
                    }
                }
                Feedback::Each { receiver, transmit } => {
                    let receiver = self.groups[group].first + receiver;
                    let frame = Frame::new(transmit.message, self.overhead);
                    self.queue.push(at, Event::Answer { receiver, frame });
                }
            }
        }
        let number = group as u32;
        match &mut self.groups[group].kind {
            Kind::Population { population, wake } => {
                let due = population.poll_timeout();
                if due != *wake {
                    *wake = due;
                    self.queue.push_unless_never(due, Event::GroupWake { group: number, station: 0 });
                }
            }
            Kind::Engines(stations) => {
                for (station, one) in (0..).zip(stations) {
                    let due = one.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
                    if due != one.wake {
                        one.wake = due;
                        self.queue.push_unless_never(due, Event::GroupWake { group: number, station });
                    }
                }
            }
        }
    }

    pub(super) fn wake_group(&mut self, group: usize, station: usize) {
        let wake = match &mut self.groups[group].kind {
            Kind::Population { wake, .. } => wake,
            Kind::Engines(stations) => &mut stations[station].wake,
        };
        if *wake != self.now {
            return;
        }
        *wake = Time::NEVER;
        let mut said = Vec::new();
        self.groups[group].wake(self.now, station, &mut said);
        self.say(group, &mut said);
    }

    /// A receiver's message reaches the sender.
    pub(super) fn reach(&mut self, receiver: u32, message: &Message) {
        self.wake_sender_if_due();
        if let Some(observer) = &mut self.observer {
            observer.reached(self.now, receiver, message);
        }
        let before = self.standing();
        let Some(sender) = &mut self.sender else { return };
        let from = Arrival::new(receiver_address(receiver), sender.config().response);
        let taken = sender.handle(self.now, &from, message).is_ok();
        if let Body::Nak(nak) = &message.body {
            self.judge(nak.pass, 1, before, taken);
        }
        self.drain_sender();
    }

    /// The merged NAKs of a population reach the sender.
    pub(super) fn reach_merged(&mut self, naks: &Naks) {
        self.wake_sender_if_due();
        let before = self.standing();
        let Some(sender) = &mut self.sender else { return };
        let taken = sender.handle_naks(self.now, naks).is_ok();
        self.judge(naks.pass, naks.count, before, taken);
        self.drain_sender();
    }

    /// The sender's pass, and what NAKs have made it schedule so far.
    fn standing(&self) -> (u32, u64) {
        self.sender.as_ref().map_or((0, 0), |sender| (sender.pass().round, sender.stats().scheduled))
    }

    /// Notes what became of NAKs that the sender took or not; `before` is where it stood, for a NAK may begin a pass.
    fn judge(&mut self, pass: u32, count: u64, before: (u32, u64), taken: bool) {
        let fate = if before.0 > pass {
            self.tally.naks_late += count;
            NakFate::Late
        } else if self.standing().1 > before.1 {
            NakFate::Used
        } else {
            NakFate::Known
        };
        if taken && fate != NakFate::Late {
            self.tally.naks_used += count;
        }
        if let Some(observer) = &mut self.observer {
            observer.nak(self.now, pass, count, fate);
        }
    }
}
