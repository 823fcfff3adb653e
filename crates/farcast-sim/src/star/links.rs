//! The chains of stages: what enters them and what leaves them.

use std::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::{Figure, Frame, Output, Port, Totals};
use farcast_core::{Span, Time};
use farcast_delivery::{Delivery as _, Protocol, SenderEngine as _};

use super::{Addressed, Cut, Event, Packet, Party, Star};
use crate::traffic::End;

impl<P: Protocol> Star<'_, P> {
    /// What the stages of the forward chain have done, in order.
    pub fn forward_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        self.chains.on_the_way(End::Terminal).map(|stage| stage.totals())
    }

    /// What the stages of the way back have done, in order.
    pub fn return_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        self.chains.on_the_way(End::Hub).map(|stage| stage.return_totals())
    }

    /// What stages have to report, with their names; of those that have something.
    pub fn figures(&self) -> impl Iterator<Item = (&str, Vec<Figure>)> {
        let all = self.chains.all().map(|(name, stage)| (name, stage.figures()));
        all.filter(|(_, figures)| !figures.is_empty())
    }

    /// How many datagrams of a frame may be handed over at once, if those at or after `before` may not.
    pub(super) fn cut<M: Message>(&mut self, frame: &Frame<M>, before: Time) -> NonZeroU32 {
        let most = departures(self.now, frame.spacing, frame.segments(), before);
        let count = match self.cut {
            Cut::Whole => most,
            Cut::One => 1,
            Cut::Random(_) => 1 + self.cuts.below(u64::from(most)) as u32,
        };
        NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
    }

    /// Before when nothing but the frame at hand enters the forward chain.
    fn alone_until(&self) -> Time {
        // What has not been handed over may be an answer to what is, but then it has come back meanwhile.
        let known = self.queue.next_at().min(self.now + self.lookahead);
        // No answer moves what the sender sends while it is quiet; of what flows send, and of answers that go on to others,
        // only the queue knows.
        let quiet = self.sender.as_ref().filter(|_| self.flows.is_empty() && !self.relays);
        quiet.map_or(known, |sender| sender.quiet_until().max(known))
    }

    /// What the hub sends of the transfer enters the forward chain, as far as nothing else does meanwhile.
    pub(super) fn enter_forward(&mut self, frame: Frame<Addressed<P::Message>>) {
        let first = self.chains.first(End::Terminal);
        let known = self.alone_until();
        let before = first.map_or(known, |stage| self.chains.alone_until(stage, self.now, known));
        let count = self.cut(&frame, before);
        let later = self.now + frame.spacing * u64::from(count.get());
        let (head, tail) = frame.split(count);
        if let Some(frame) = tail {
            self.under_way += 1;
            self.queue.push(later, Event::Send(frame));
        }
        match first {
            None => self.reach_groups(self.now, head),
            Some(stage) => {
                self.chains.stage(stage).handle(self.now, Port::Hub, on_links(head));
                self.drain_stage(stage);
            }
        }
    }

    /// A frame enters a stage behind the first on the way to the terminals. One that carries one way hears only the one
    /// before it, in order, so nothing comes between the pieces of a run.
    pub(super) fn pass_forward(&mut self, stage: u32, frame: Frame<Packet<P::Message>>) {
        let before = self.chains.alone_until(stage, self.now, Time::NEVER);
        let count = self.cut(&frame, before);
        let later = self.now + frame.spacing * u64::from(count.get());
        let (head, tail) = frame.split(count);
        if let Some(frame) = tail {
            self.under_way += 1;
            self.queue.push(later, Event::Pass { to: End::Terminal, stage, frame });
        }
        self.chains.stage(stage).handle(self.now, Port::Hub, head);
        self.drain_stage(stage);
    }

    pub(super) fn wake_stage(&mut self, stage: u32) {
        if self.chains.take_wake(stage, self.now) {
            self.chains.stage(stage).handle_timeout(self.now);
            self.drain_stage(stage);
        }
    }

    /// What leaves a stage enters the next, or has passed the links.
    pub(super) fn drain_stage(&mut self, stage: u32) {
        while let Some(Output { at, port, frame }) = self.chains.stage(stage).poll_output() {
            let to = if port == Port::Hub { End::Hub } else { End::Terminal };
            match (self.chains.next(stage, to), to) {
                (Some(stage), _) => {
                    let counts = to == End::Terminal && matches!(frame.message, Packet::Transfer(_));
                    self.under_way += u32::from(counts);
                    self.queue.push(at, Event::Pass { to, stage, frame });
                }
                (None, End::Terminal) => self.leave_forward(at, frame),
                (None, End::Hub) => self.leave_return(at, frame),
            }
        }
        if let Some(due) = self.chains.new_wake(stage) {
            self.queue.push_unless_never(due, Event::StageWake(stage));
        }
    }

    /// A frame leaves the last stage: everyone hears what is for the group, and who is alone what is for it.
    fn leave_forward(&mut self, at: Time, frame: Frame<Packet<P::Message>>) {
        let Frame { message, overhead, spacing } = frame;
        match message {
            Packet::Transfer(message) => self.reach_groups(at, Frame { message, overhead, spacing }),
            Packet::Flow { flow, message, .. } => self.leave_links(at, flow, End::Terminal, message),
        }
    }

    /// A frame of the transfer reaches the groups of those that it is for.
    fn reach_groups(&mut self, at: Time, frame: Frame<Addressed<P::Message>>) {
        let to = frame.message.to;
        let mut last = self.groups.len() - 1;
        if to == Party::GROUP {
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
            return self.reach(&Addressed { to: Party::HUB, ..message });
        }
        let Some(receiver) = message.from.as_receiver() else { return };
        let octets = message.wire_len(0) as u64 + u64::from(self.overhead);
        self.tally.return_datagrams += 1;
        self.tally.return_octets += octets;
        let message = self.watch_answer(receiver, message);
        if let Some(delay) = self.back.delay {
            if !self.back.loses(self.now, octets, receiver) {
                self.queue.push(self.now + delay, Event::Arrive(message));
            }
        } else if let Some(stage) = self.chains.first(End::Hub) {
            self.pass_return(stage, on_links(Frame::new(message, self.overhead)));
        }
    }

    /// Tells the observer of what a receiver says.
    fn watch_answer(&mut self, receiver: u32, message: Addressed<P::Message>) -> Addressed<P::Message> {
        let Some(observer) = &mut self.observer else { return message };
        let Addressed { from, to, message } = message;
        let frame = Frame::new(message, self.overhead);
        observer.answered(self.now, receiver, &frame);
        Addressed { from, to, message: frame.message }
    }

    /// A frame of a terminal enters a stage.
    pub(super) fn pass_return(&mut self, stage: u32, frame: Frame<Packet<P::Message>>) {
        if let Some(terminal) = self.terminal_of(&frame.message) {
            self.chains.stage(stage).handle(self.now, Port::Terminal(terminal), frame);
        }
        self.drain_stage(stage);
    }

    /// The terminal that a packet to the hub comes from.
    fn terminal_of(&self, packet: &Packet<P::Message>) -> Option<u32> {
        match packet {
            Packet::Transfer(message) => message.from.as_receiver(),
            Packet::Flow { flow, .. } => Some(self.receivers + flow),
        }
    }

    /// A frame leaves the last stage of the way back; the port is the hub's.
    fn leave_return(&mut self, at: Time, frame: Frame<Packet<P::Message>>) {
        let Frame { message, overhead, spacing } = frame;
        match message {
            Packet::Transfer(message) => {
                self.queue.push(at, Event::Reach(Frame { message, overhead, spacing }));
            }
            Packet::Flow { flow, message, .. } => self.leave_links(at, flow, End::Hub, message),
        }
    }

    /// The first instant that is no longer simulated.
    pub(super) fn beyond(&self) -> Time {
        self.limit + Span::from_nanos(1)
    }
}

/// What the transfer says, as it is on the links.
fn on_links<M>(frame: Frame<Addressed<M>>) -> Frame<Packet<M>> {
    let Frame { message, overhead, spacing } = frame;
    Frame { message: Packet::Transfer(message), overhead, spacing }
}

/// How many of `segments` datagrams, the first now and each `spacing` after the one before, come before `before`; at
/// least 1.
fn departures(now: Time, spacing: Span, segments: u32, before: Time) -> u32 {
    if spacing.is_zero() {
        return segments;
    }
    let room = before.since(now).as_nanos().div_ceil(spacing.as_nanos());
    u32::try_from(room).unwrap_or(u32::MAX).clamp(1, segments)
}
