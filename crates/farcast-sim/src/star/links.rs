//! The chains of stages: what enters them and what leaves them.

use std::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::{Figure, Frame, Port, Totals};
use farcast_core::{Span, Time};
use farcast_delivery::{Delivery as _, Protocol, SenderEngine as _};
use farcast_link::chain::{Driver, Entry, Owner, follow};

use super::{Addressed, Event, Packet, Party, SealMessage, Star};
use crate::traffic::End;

impl<P: Protocol> Star<'_, P> {
    /// What the stages of the forward chain have done, in order.
    pub fn forward_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        self.links.chains().on_the_way(End::Terminal).map(|stage| stage.totals())
    }

    /// What the stages of the way back have done, in order.
    pub fn return_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        self.links.chains().on_the_way(End::Hub).map(|stage| stage.return_totals())
    }

    /// What stages have to report, with their names; of those that have something.
    pub fn figures(&self) -> impl Iterator<Item = (&str, Vec<Figure>)> {
        let all = self.links.chains().all().map(|(name, stage)| (name, stage.figures()));
        all.filter(|(_, figures)| !figures.is_empty())
    }

    /// Before when nothing but the frame at hand enters the forward chain.
    fn alone_until(&self) -> Time {
        if self.seal.as_ref().is_some_and(|seal| seal.owed_at() <= self.now) {
            // A key leaves behind the first datagram.
            return self.now;
        }
        // What has not been handed over may be an answer to what is, but then it has come back meanwhile.
        let known = self.next_at().min(self.now + self.lookahead);
        // No answer moves what the sender sends while it is quiet; of what flows send, and of answers that go on to
        // others, only the queue knows.
        let quiet =
            self.sender.as_ref().filter(|_| self.flows.is_empty() && !self.relays && self.seal.is_none());
        quiet.map_or(known, |sender| sender.quiet_until().max(known))
    }

    /// What the hub sends of the transfer enters the forward chain, as far as nothing else does meanwhile.
    pub(super) fn enter_forward(&mut self, frame: Frame<Addressed<P::Message>>) {
        self.enter(Entry::new(End::Terminal, on_links(frame)));
    }

    /// A frame enters a chain, or a stage behind the first.
    #[inline]
    pub(super) fn enter(&mut self, entry: Entry<Packet<P::Message>>) {
        let Some(port) = self.port(&entry) else { return };
        // Only a run can be cut.
        let single = entry.message().segments() == NonZeroU32::MIN;
        let known = if single { Time::NEVER } else { self.alone_until() };
        let (cut, cuts) = (self.cut, &mut self.cuts);
        self.links.enter(self.now, port, entry, known, |most| cut.choose(most, cuts));
        follow(self);
    }

    /// Where a frame enters: of what is on its way to the hub, at the terminal that it comes from.
    fn port(&self, entry: &Entry<Packet<P::Message>>) -> Option<Port> {
        match (entry.to(), entry.message()) {
            (End::Terminal, _) => Some(Port::Hub),
            (End::Hub, Packet::Transfer(message)) => message.from.as_receiver().map(Port::Terminal),
            (End::Hub, Packet::Seal(SealMessage::Ask(receiver))) => Some(Port::Terminal(*receiver)),
            (End::Hub, Packet::Seal(_)) => None,
            (End::Hub, Packet::Flow { flow, .. }) => Some(Port::Terminal(self.receivers + flow)),
        }
    }

    pub(super) fn wake_stage(&mut self, stage: u32) {
        self.links.wake(self.now, stage);
        follow(self);
    }

    /// A frame leaves the last stage: everyone hears what is for the group, and who is alone what is for it.
    fn leave_forward(&mut self, at: Time, frame: Frame<Packet<P::Message>>) {
        let Frame { message, overhead, spacing } = frame;
        match message {
            Packet::Transfer(message) => self.reach_groups(at, Frame { message, overhead, spacing }),
            Packet::Seal(message) => self.unseal_later(at, message),
            Packet::Flow { flow, message, .. } => self.leave_links(at, flow, End::Terminal, &message),
        }
    }

    /// A frame of the transfer reaches the groups of those that it is for.
    fn reach_groups(&mut self, at: Time, frame: Frame<Addressed<P::Message>>) {
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
        self.under_way += 1;
        self.queue.push(at, Event::FanOut { group: number as u32, frame });
    }

    /// What a receiver says enters the way back.
    pub(super) fn enter_return(&mut self, message: Addressed<P::Message>) {
        if self.given && message.message.is_set_up() {
            let message = Addressed { to: Party::HUB, ..message };
            return self.reach(&Frame::new(message, self.overhead));
        }
        let Some(receiver) = message.from.as_receiver() else { return };
        let overhead = self.overhead.saturating_add(self.seal_answer(receiver));
        let octets = message.wire_len(0) as u64 + u64::from(overhead);
        self.tally.return_datagrams += 1;
        self.tally.return_octets += octets;
        let frame = self.watch_answer(receiver, Frame::new(message, overhead));
        let Some(delay) = self.back.delay else {
            return self.enter(Entry::new(End::Hub, on_links(frame)));
        };
        let at = self.now + delay;
        if !self.back.loses(at, octets, receiver) {
            self.queue.push(at, Event::Arrive(frame));
        }
    }

    /// Tells the observer of what a receiver says.
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

    /// A frame leaves the last stage of the way back, or has entered it where there is no stage.
    fn leave_return(&mut self, at: Time, frame: Frame<Packet<P::Message>>) {
        let Frame { message, overhead, spacing } = frame;
        match message {
            Packet::Transfer(message) => {
                self.queue.push(at, Event::Reach(Frame { message, overhead, spacing }));
            }
            Packet::Seal(SealMessage::Ask(receiver)) => self.queue.push(at, Event::ReachAsk(receiver)),
            Packet::Seal(_) => {}
            Packet::Flow { flow, message, .. } => {
                self.leave_links(at, flow, End::Hub, &message);
            }
        }
    }

    /// The first instant that is no longer simulated.
    pub(super) fn beyond(&self) -> Time {
        self.limit + Span::from_nanos(1)
    }
}

impl<P: Protocol> Owner<Packet<P::Message>> for Star<'_, P> {
    fn driver(&mut self) -> &mut Driver<Packet<P::Message>> {
        &mut self.links
    }

    fn keep(&mut self, at: Time, entry: Entry<Packet<P::Message>>) {
        self.under_way += u32::from(is_sent(&entry));
        self.queue.push(at, Event::Enter(entry));
    }

    fn left(&mut self, at: Time, to: End, frame: Frame<Packet<P::Message>>) {
        match to {
            End::Terminal => self.leave_forward(at, frame),
            End::Hub => self.leave_return(at, frame),
        }
    }

    fn drained(&mut self, stage: u32, wake: Option<Time>) {
        if let Some(due) = wake {
            self.queue.push(due, Event::StageWake(stage));
        }
    }
}

/// What the transfer says, as it is on the links.
fn on_links<M>(frame: Frame<Addressed<M>>) -> Frame<Packet<M>> {
    let Frame { message, overhead, spacing } = frame;
    Frame { message: Packet::Transfer(message), overhead, spacing }
}

/// Whether a frame is of what the hub sends of the transfer.
pub(super) fn is_sent<M: Message>(entry: &Entry<Packet<M>>) -> bool {
    entry.to() == End::Terminal && matches!(entry.message(), Packet::Transfer(_))
}
