//! Virtual time: what happens next, and to whom.

use std::num::NonZeroU32;

use farcast_core::engine::{Arrival, Engine, Transmit};
use farcast_core::stage::{Frame, Port, Totals};
use farcast_core::{Span, Time};
use farcast_mftp::population::Voice;
use farcast_mftp::{Body, Message, Sender, SenderEvent};

use super::back::Path;
use super::group::{Kind, Said};
use super::{Cut, Event, Group, NakFate, Star, Tally, receiver_address};

impl Star<'_> {
    /// Runs until the sender has ended and nothing is under way, or the limit.
    pub fn run(&mut self) {
        self.sender.open(Time::ZERO);
        self.drain_sender();
        while let Some((at, event)) = self.queue.pop() {
            if at > self.limit {
                break;
            }
            self.now = at;
            self.tally.events += 1;
            self.happen(event);
        }
        self.tell_completed();
    }

    /// Tells the observer who completed when, receivers of one instant in their order.
    fn tell_completed(&mut self) {
        let Some(observer) = &mut self.observer else { return };
        let each = |group: &Group| {
            (0..group.receivers).map(|n| (group.completed(n), group.first + n)).collect::<Vec<_>>()
        };
        let mut completed: Vec<(Time, u32)> = self.groups.iter().flat_map(each).collect();
        completed.retain(|&(at, _)| at != Time::NEVER);
        completed.sort_unstable();
        for (at, receiver) in completed {
            observer.completed(at, receiver);
        }
    }

    /// The sender.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// When the sender began to send data, if it has.
    pub fn began(&self) -> Option<Time> {
        self.began
    }

    /// What the stages of the forward chain have done, in order.
    pub fn forward_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        self.forward.stages.iter().map(|stage| stage.totals())
    }

    /// What the stages of the way back have done, in order.
    pub fn return_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        let stages = if let Path::Stages(stages) = &self.back.path { stages.as_slice() } else { &[] };
        stages.iter().map(|stage| stage.totals())
    }

    /// What has passed.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake => {
                if self.wake == self.now {
                    self.wake_sender();
                }
            }
            Event::Reach { receiver, frame } => {
                if !self.back.loses(self.now, frame.octets(0), receiver) {
                    self.reach(receiver, &frame.message);
                }
            }
            Event::Arrive { receiver, message } => self.reach(receiver, &message),
            Event::Merged(naks) => {
                self.wake_sender_if_due();
                let before = self.standing();
                let taken = self.sender.handle_naks(self.now, &naks).is_ok();
                self.judge(naks.pass, naks.count, before, taken);
                self.drain_sender();
            }
            Event::Forward { stage, frame } => self.enter_forward(stage, frame),
            Event::ForwardWake(stage) => {
                if self.forward.wakes[stage] == self.now {
                    self.forward.wakes[stage] = Time::NEVER;
                    self.forward.stages[stage].handle_timeout(self.now);
                    self.drain_forward(stage);
                }
            }
            Event::FanOut { group, frame } => self.fan_out(group, frame),
            Event::GroupWake { group, station } => self.wake_group(group, station),
            Event::Return { stage, receiver, frame } => self.enter_return(stage, receiver, frame),
            Event::ReturnWake(stage) => {
                if self.back_wakes[stage] == self.now {
                    self.back_wakes[stage] = Time::NEVER;
                    if let Path::Stages(stages) = &mut self.back.path {
                        stages[stage].handle_timeout(self.now);
                    }
                    self.drain_return(stage);
                }
            }
        }
    }

    fn wake_sender(&mut self) {
        self.wake = Time::NEVER;
        self.sender.handle_timeout(self.now);
        self.drain_sender();
    }

    /// What the sender itself does at an instant goes before what arrives then.
    fn wake_sender_if_due(&mut self) {
        if self.wake <= self.now {
            self.wake_sender();
        }
    }

    fn drain_sender(&mut self) {
        loop {
            if let Some(event) = self.sender.poll_event() {
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
        if let Some(observer) = &mut self.observer {
            observer.phase(self.now, self.sender.phase());
        }
        let due = self.sender.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        if due != self.wake {
            self.wake = due;
            if due != Time::NEVER {
                self.queue.push(due, Event::Wake);
            }
        }
    }

    fn poll_sender(&mut self) -> Option<Transmit<Message>> {
        let until = match self.cut {
            Cut::One => self.now,
            Cut::Whole | Cut::Random(_) => {
                self.sender.settled_until().max(self.queue.next_at()).min(self.beyond())
            }
        };
        self.sender.poll_transmit(self.now, until)
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
        self.enter_forward(0, frame);
    }

    /// Everyone hears an announcement at once, and what they say to it is heard at once.
    fn tell(&mut self, frame: &Frame<Message>) {
        let from = self.arrival(frame);
        let mut said = Vec::new();
        for group in 0..self.groups.len() {
            self.groups[group].tell(self.now, &from, frame, &mut said);
            self.say(group, &mut said);
        }
    }

    fn arrival(&self, frame: &Frame<Message>) -> Arrival {
        let config = self.sender.config();
        Arrival { spacing: frame.spacing, ..Arrival::new(config.server, config.private) }
    }

    /// How many datagrams of a frame may be handed over at once, if those at or after `before` may not.
    fn cut(&mut self, frame: &Frame<Message>, before: Time) -> NonZeroU32 {
        let most = departures(self.now, frame.spacing, frame.segments(), before);
        let count = match self.cut {
            Cut::Whole => most,
            Cut::One => 1,
            Cut::Random(_) => 1 + self.cuts.below(u64::from(most)) as u32,
        };
        NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
    }

    fn enter_forward(&mut self, stage: usize, frame: Frame<Message>) {
        // Something else may enter the first stage meanwhile; the others hear only the one before them, in order.
        let before = if stage > 0 {
            Time::NEVER
        } else {
            self.sender.quiet_until().max(self.queue.next_at().min(self.now + self.lookahead))
        };
        let count = self.cut(&frame, before);
        let later = self.now + frame.spacing * u64::from(count.get());
        let (head, tail) = frame.split(count);
        if let Some(frame) = tail {
            self.queue.push(later, Event::Forward { stage, frame });
        }
        if stage == self.forward.stages.len() {
            return self.reach_groups(self.now, head);
        }
        self.forward.stages[stage].handle(self.now, Port::Hub, head);
        self.drain_forward(stage);
    }

    fn drain_forward(&mut self, stage: usize) {
        while let Some(output) = self.forward.stages[stage].poll_output() {
            if stage + 1 == self.forward.stages.len() {
                self.reach_groups(output.at, output.frame);
            } else {
                self.queue.push(output.at, Event::Forward { stage: stage + 1, frame: output.frame });
            }
        }
        let due = self.forward.stages[stage].poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        if due != self.forward.wakes[stage] {
            self.forward.wakes[stage] = due;
            if due != Time::NEVER {
                self.queue.push(due, Event::ForwardWake(stage));
            }
        }
    }

    fn reach_groups(&mut self, at: Time, frame: Frame<Message>) {
        let last = self.groups.len() - 1;
        for group in 0..last {
            self.queue.push(at + self.groups[group].delay, Event::FanOut { group, frame: frame.clone() });
        }
        self.queue.push(at + self.groups[last].delay, Event::FanOut { group: last, frame });
    }

    fn fan_out(&mut self, group: usize, frame: Frame<Message>) {
        let count = self.cut(&frame, self.beyond());
        let later = self.now + frame.spacing * u64::from(count.get());
        let (mut head, tail) = frame.split(count);
        if let Some(frame) = tail {
            self.queue.push(later, Event::FanOut { group, frame });
        }
        let from = self.arrival(&head);
        let each = self.observer.as_ref().is_some_and(|observer| observer.wants_each());
        let merged = if !each && self.sender.may_merge() { self.back.merged() } else { None };
        let mut said = Vec::new();
        let taken = self.groups[group].take(self.now, &from, &head, merged, &mut said);
        self.say(group, &mut said);
        if let Some(taken) = NonZeroU32::new(taken).filter(|taken| taken.get() < head.segments()) {
            let later = self.now + head.spacing * u64::from(taken.get());
            let (_, tail) = head.split(taken);
            if let Some(tail) = tail {
                head = tail;
                self.queue.push(later, Event::FanOut { group, frame: head });
            }
        }
    }

    /// Sends what a group says on its way back, and notes when it wants to be woken.
    fn say(&mut self, group: usize, said: &mut Vec<Said>) {
        for (at, voice) in said.drain(..) {
            match voice {
                Voice::Naks(naks) => {
                    if let Path::Constant(delay) = self.back.path {
                        self.queue.push(at + delay, Event::Merged(naks));
                    }
                }
                Voice::Each { receiver, transmit } => {
                    let receiver = self.groups[group].first + receiver;
                    let frame = Frame::new(transmit.message, self.overhead);
                    self.queue.push(at, Event::Return { stage: 0, receiver, frame });
                }
            }
        }
        match &mut self.groups[group].kind {
            Kind::Population { population, wake } => {
                let due = population.poll_timeout();
                if due != *wake {
                    *wake = due;
                    self.queue.push_unless_never(due, Event::GroupWake { group, station: 0 });
                }
            }
            Kind::Engines(stations) => {
                for (n, station) in stations.iter_mut().enumerate() {
                    let due = station.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
                    if due != station.wake {
                        station.wake = due;
                        self.queue.push_unless_never(due, Event::GroupWake { group, station: n });
                    }
                }
            }
        }
    }

    fn wake_group(&mut self, group: usize, station: usize) {
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

    fn enter_return(&mut self, stage: usize, receiver: u32, frame: Frame<Message>) {
        if stage == 0 {
            if self.given && matches!(frame.message.body, Body::Registration(_)) {
                return self.reach(receiver, &frame.message);
            }
            self.tally.return_datagrams += 1;
            self.tally.return_octets += frame.octets(0);
            if let Some(observer) = &mut self.observer {
                observer.answered(self.now, receiver, &frame);
            }
        }
        if let Path::Constant(delay) = self.back.path {
            if !self.back.loses(self.now, frame.octets(0), receiver) {
                self.queue.push(self.now + delay, Event::Arrive { receiver, message: frame.message });
            }
        } else if let Path::Stages(stages) = &mut self.back.path {
            stages[stage].handle(self.now, Port::Terminal(receiver), frame);
            self.drain_return(stage);
        }
    }

    fn drain_return(&mut self, stage: usize) {
        let Path::Stages(stages) = &mut self.back.path else { return };
        while let Some(output) = stages[stage].poll_output() {
            let frame = output.frame;
            // Which receiver it comes from is in the message; the port is the hub's.
            let Some(receiver) = super::config::receiver_of(&frame.message) else { continue };
            if stage + 1 == stages.len() {
                self.queue.push(output.at, Event::Reach { receiver, frame });
            } else {
                self.queue.push(output.at, Event::Return { stage: stage + 1, receiver, frame });
            }
        }
        let due = stages[stage].poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        if due != self.back_wakes[stage] {
            self.back_wakes[stage] = due;
            self.queue.push_unless_never(due, Event::ReturnWake(stage));
        }
    }

    /// A receiver's message reaches the sender.
    fn reach(&mut self, receiver: u32, message: &Message) {
        self.wake_sender_if_due();
        if let Some(observer) = &mut self.observer {
            observer.reached(self.now, receiver, message);
        }
        let before = self.standing();
        let from = Arrival::new(receiver_address(receiver), self.sender.config().response);
        let taken = self.sender.handle(self.now, &from, message).is_ok();
        if let Body::Nak(nak) = &message.body {
            self.judge(nak.pass, 1, before, taken);
        }
        self.drain_sender();
    }

    /// The sender's pass, and what NAKs have made it schedule so far.
    fn standing(&self) -> (u32, u64) {
        (self.sender.pass().0, self.sender.stats().scheduled)
    }

    /// Notes what became of NAKs that the sender took or not; `before` is where it stood, for a NAK may begin a pass.
    fn judge(&mut self, pass: u32, count: u64, before: (u32, u64), taken: bool) {
        let fate = if before.0 > pass {
            self.tally.naks_late += count;
            NakFate::Late
        } else if self.sender.stats().scheduled > before.1 {
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

    /// The first instant that is no longer simulated.
    fn beyond(&self) -> Time {
        self.limit + Span::from_nanos(1)
    }
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
