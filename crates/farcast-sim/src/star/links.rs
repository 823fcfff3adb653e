//! Entry of frames into the chains of stages, and their exit.

use std::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::{Figure, Frame, Port, Totals};
use farcast_core::{Span, Time};
use farcast_delivery::{Delivery as _, Protocol, SenderEngine as _};
use farcast_link::chain::{ChainOwner, Driver, Entry, follow};

use super::{Addressed, Event, Packet, Party, SealMessage, Star};
use crate::traffic::End;

impl<P: Protocol> Star<'_, P> {
    /// Returns the counters of the stages of the forward chain, in order.
    pub fn forward_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        self.links.chains().on_the_way(End::Terminal).map(|stage| stage.totals())
    }

    /// Returns the counters of the stages of the return path, in order.
    pub fn return_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        self.links.chains().on_the_way(End::Hub).map(|stage| stage.return_totals())
    }

    /// Returns the names and figures of stages that have figures to report.
    pub fn figures(&self) -> impl Iterator<Item = (&str, Vec<Figure>)> {
        let all = self.links.chains().all().map(|(name, stage)| (name, stage.figures()));
        all.filter(|(_, figures)| !figures.is_empty())
    }

    /// Returns the time before which only the frame at hand enters the forward chain.
    fn alone_until(&self) -> Time {
        if self.seal.as_ref().is_some_and(|seal| seal.owed_at() <= self.now) {
            // A key leaves behind the first datagram.
            return self.now;
        }
        // Datagrams that are not handed over yet may answer those that are, but then an answer has come back meanwhile.
        let known = self.next_at().min(self.now + self.lookahead);
        // While the sender is quiet, no answer changes its transmissions. Only the queue knows of packets of flows and
        // of answers that the hub forwards to other receivers.
        let quiet =
            self.sender.as_ref().filter(|_| self.flows.is_empty() && !self.relays && self.seal.is_none());
        quiet.map_or(known, |sender| sender.quiet_until().max(known))
    }

    /// Enters a frame of the transfer from the hub into the forward chain, as far as nothing else enters meanwhile.
    pub(super) fn enter_forward(&mut self, frame: Frame<Addressed<P::Message>>) {
        self.enter(Entry::new(End::Terminal, on_links(frame)));
    }

    /// Enters a frame into a chain, or into a stage behind the first.
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

    /// Returns the port at which a frame enters. A frame to the hub enters at the terminal that sent it.
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

    /// Passes on a frame that leaves the last stage of the forward chain, by its kind.
    fn leave_forward(&mut self, at: Time, frame: Frame<Packet<P::Message>>) {
        let Frame { message, overhead, spacing } = frame;
        match message {
            Packet::Transfer(message) => self.reach_groups(at, Frame { message, overhead, spacing }),
            Packet::Seal(message) => self.unseal_later(at, message),
            Packet::Flow { flow, message, .. } => self.leave_links(at, flow, End::Terminal, &message),
        }
    }

    /// Passes a frame of the transfer to the groups that it is for.
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

    /// Enters a receiver's message into the return path.
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

    /// Schedules the arrival of a frame that leaves the last stage of the return path.
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

    /// Returns the first instant that is no longer simulated.
    pub(super) fn beyond(&self) -> Time {
        self.limit + Span::from_nanos(1)
    }
}

impl<P: Protocol> ChainOwner<Packet<P::Message>> for Star<'_, P> {
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

/// Wraps a frame of the transfer as a packet on the links.
fn on_links<M>(frame: Frame<Addressed<M>>) -> Frame<Packet<M>> {
    let Frame { message, overhead, spacing } = frame;
    Frame { message: Packet::Transfer(message), overhead, spacing }
}

/// Returns `true` if an entry is a frame of the transfer that the hub has sent.
pub(super) fn is_sent<M: Message>(entry: &Entry<Packet<M>>) -> bool {
    entry.to() == End::Terminal && matches!(entry.message(), Packet::Transfer(_))
}
