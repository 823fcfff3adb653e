//! The chains of stages: what enters them and what leaves them.

use std::num::NonZeroU32;

use farcast_core::engine::Message as Run;
use farcast_core::stage::{Frame, Port, Totals};
use farcast_core::{Span, Time};
use farcast_mftp::{Body, Message};

use super::back::Path;
use super::{Cut, Event, Packet, Star};
use crate::traffic::End;

impl Star<'_> {
    /// What the stages of the forward chain have done, in order.
    pub fn forward_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        self.forward.stages.iter().map(|stage| stage.totals())
    }

    /// What the stages of the way back have done, in order.
    pub fn return_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        let stages = if let Path::Stages(stages) = &self.back.path { stages.as_slice() } else { &[] };
        stages.iter().map(|stage| stage.totals())
    }

    /// How many datagrams of a frame may be handed over at once, if those at or after `before` may not.
    pub(super) fn cut<M: Run>(&mut self, frame: &Frame<M>, before: Time) -> NonZeroU32 {
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
        // No answer moves what the sender sends while it is quiet; of what flows send, only the queue knows.
        let quiet = self.sender.as_ref().filter(|_| self.flows.is_empty());
        quiet.map_or(known, |sender| sender.quiet_until().max(known))
    }

    /// What the sender sends enters the forward chain, as far as nothing else does meanwhile.
    pub(super) fn enter_forward(&mut self, frame: Frame<Message>) {
        let count = self.cut(&frame, self.alone_until());
        let later = self.now + frame.spacing * u64::from(count.get());
        let (head, tail) = frame.split(count);
        if let Some(frame) = tail {
            self.under_way += 1;
            self.queue.push(later, Event::Send(frame));
        }
        match self.forward.stages.first_mut() {
            None => self.reach_groups(self.now, head),
            Some(stage) => {
                stage.handle(self.now, Port::Hub, on_links(head));
                self.drain_forward(0);
            }
        }
    }

    /// A frame enters a stage behind the first: that hears only the one before it, in order, so nothing comes between the
    /// pieces of a run.
    pub(super) fn pass_forward(&mut self, stage: u32, frame: Frame<Packet>) {
        let (head, tail) = self.cut_between(frame);
        if let Some((later, frame)) = tail {
            self.under_way += 1;
            self.queue.push(later, Event::Pass { to: End::Terminal, stage, frame });
        }
        self.forward.stages[stage as usize].handle(self.now, Port::Hub, head);
        self.drain_forward(stage);
    }

    /// A frame between two stages as it is handed over: all of it, unless runs are cut to test that it makes no difference.
    fn cut_between(&mut self, frame: Frame<Packet>) -> (Frame<Packet>, Option<(Time, Frame<Packet>)>) {
        let count = self.cut(&frame, Time::NEVER);
        let later = self.now + frame.spacing * u64::from(count.get());
        let (head, tail) = frame.split(count);
        (head, tail.map(|tail| (later, tail)))
    }

    pub(super) fn wake_forward(&mut self, stage: u32) {
        let wake = &mut self.forward.wakes[stage as usize];
        if *wake == self.now {
            *wake = Time::NEVER;
            self.forward.stages[stage as usize].handle_timeout(self.now);
            self.drain_forward(stage);
        }
    }

    pub(super) fn drain_forward(&mut self, stage: u32) {
        let index = stage as usize;
        while let Some(output) = self.forward.stages[index].poll_output() {
            if index + 1 == self.forward.stages.len() {
                self.leave_forward(output.at, output.frame);
            } else {
                let frame = output.frame;
                self.under_way += u32::from(matches!(frame.message, Packet::Mftp(_)));
                let stage = stage + 1;
                self.queue.push(output.at, Event::Pass { to: End::Terminal, stage, frame });
            }
        }
        let due = self.forward.stages[index].poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        if due != self.forward.wakes[index] {
            self.forward.wakes[index] = due;
            self.queue.push_unless_never(due, Event::ForwardWake(stage));
        }
    }

    /// A frame leaves the last stage: everyone hears what the sender says, and a flow's terminal what is for it.
    fn leave_forward(&mut self, at: Time, frame: Frame<Packet>) {
        let Frame { message, overhead, spacing } = frame;
        match message {
            Packet::Mftp(message) => self.reach_groups(at, Frame { message, overhead, spacing }),
            Packet::Flow { flow, message } => self.leave_links(at, flow, End::Terminal, message),
        }
    }

    fn reach_groups(&mut self, at: Time, frame: Frame<Message>) {
        self.under_way += self.groups.len() as u32;
        let last = self.groups.len() - 1;
        for (number, group) in (0..).zip(&self.groups[..last]) {
            self.queue.push(at + group.delay, Event::FanOut { group: number, frame: frame.clone() });
        }
        self.queue.push(at + self.groups[last].delay, Event::FanOut { group: last as u32, frame });
    }

    /// What a receiver says enters the way back.
    pub(super) fn enter_return(&mut self, receiver: u32, frame: Frame<Message>) {
        if self.given && matches!(frame.message.body, Body::Registration(_)) {
            return self.reach(receiver, &frame.message);
        }
        self.tally.return_datagrams += 1;
        self.tally.return_octets += frame.octets(0);
        if let Some(observer) = &mut self.observer {
            observer.answered(self.now, receiver, &frame);
        }
        if let Path::Constant(delay) = self.back.path {
            if !self.back.loses(self.now, frame.octets(0), receiver) {
                self.queue.push(self.now + delay, Event::Arrive { receiver, message: frame.message });
            }
        } else {
            self.pass_return(0, on_links(frame));
        }
    }

    /// A frame of a terminal enters a stage.
    pub(super) fn pass_return(&mut self, stage: u32, frame: Frame<Packet>) {
        let terminal = self.terminal_of(&frame.message);
        if let (Path::Stages(stages), Some(terminal)) = (&mut self.back.path, terminal) {
            stages[stage as usize].handle(self.now, Port::Terminal(terminal), frame);
        }
        self.drain_return(stage);
    }

    pub(super) fn wake_return(&mut self, stage: u32) {
        let wake = &mut self.back_wakes[stage as usize];
        if *wake == self.now {
            *wake = Time::NEVER;
            if let Path::Stages(stages) = &mut self.back.path {
                stages[stage as usize].handle_timeout(self.now);
            }
            self.drain_return(stage);
        }
    }

    pub(super) fn drain_return(&mut self, stage: u32) {
        let index = stage as usize;
        while let Some(output) = self.back.poll_output(index) {
            if index + 1 == self.back.len() {
                self.leave_return(output.at, output.frame);
            } else {
                let (stage, frame) = (stage + 1, output.frame);
                self.queue.push(output.at, Event::Pass { to: End::Hub, stage, frame });
            }
        }
        let due = self.back.poll_timeout(index);
        if due != self.back_wakes[index] {
            self.back_wakes[index] = due;
            self.queue.push_unless_never(due, Event::ReturnWake(stage));
        }
    }

    /// The terminal that a packet to the hub comes from.
    fn terminal_of(&self, packet: &Packet) -> Option<u32> {
        match packet {
            Packet::Mftp(message) => super::config::receiver_of(message),
            Packet::Flow { flow, .. } => Some(self.receivers + flow),
        }
    }

    /// A frame leaves the last stage of the way back. Whom it comes from is in the message; the port is the hub's.
    fn leave_return(&mut self, at: Time, frame: Frame<Packet>) {
        let Frame { message, overhead, spacing } = frame;
        match message {
            Packet::Mftp(message) => {
                let Some(receiver) = super::config::receiver_of(&message) else { return };
                let frame = Frame { message, overhead, spacing };
                self.queue.push(at, Event::Reach { receiver, frame });
            }
            Packet::Flow { flow, message } => self.leave_links(at, flow, End::Hub, message),
        }
    }

    /// The first instant that is no longer simulated.
    pub(super) fn beyond(&self) -> Time {
        self.limit + Span::from_nanos(1)
    }
}

/// What the transfer says, as it is on the links.
fn on_links(frame: Frame<Message>) -> Frame<Packet> {
    let Frame { message, overhead, spacing } = frame;
    Frame { message: Packet::Mftp(message), overhead, spacing }
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
