//! Multicast transfer: its sender and its groups of receivers.

use std::num::NonZeroU32;

use farcast_core::engine::{Arrival, Engine as _, Transmit};
use farcast_core::stage::Frame;
use farcast_core::{Span, Time};
use farcast_delivery::{
    Ending, Feedback, Merged, Milestone, NakFate, Population as _, Protocol, RequestCounts, SenderEngine as _,
};

use super::group::{Group, Kind, TimedFeedback};
use super::{Cut, Layout, Timer, World};
use crate::traffic::End;

/// State of a sender when its replication was over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FinalState {
    /// Time and kind of the sender's end, if it has ended.
    pub(crate) ending: Option<(Time, Ending)>,
    /// Number of receivers that the sender gave up.
    pub(crate) left: u64,
    /// End of the replication.
    pub(crate) end: Time,
    /// Counters of repair requests.
    pub(crate) requests: RequestCounts,
}

impl<P: Protocol, L: Layout<P>> World<'_, P, L> {
    /// Returns the sender, if there is a transfer.
    pub fn sender(&self) -> Option<&P::Sender> {
        self.sender.as_ref()
    }

    /// Returns the groups of receivers, in the order of their numbers.
    pub fn groups(&self) -> &[Group<P>] {
        &self.groups
    }

    /// Returns the state of the sender at the end.
    pub(crate) fn final_state(&self) -> FinalState {
        FinalState { ending: self.ending, left: self.left, end: self.end(), requests: self.requests() }
    }

    /// Returns the counters of repair requests.
    pub fn requests(&self) -> RequestCounts {
        RequestCounts {
            sent: self.groups.iter().map(Group::naks).sum(),
            collided: self.layout.totals(End::Hub).map(|totals| totals.collided).sum(),
            late: self.counts.naks_late,
            used: self.counts.naks_used,
        }
    }

    /// Returns the number of receivers that the sender knows to be complete.
    pub fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Returns the time at which the sender learnt that the last receiver is complete, if it knows it of all.
    pub fn all_confirmed(&self) -> Option<Time> {
        let receivers: u64 = self.groups.iter().map(|group| u64::from(group.receivers())).sum();
        (receivers > 0 && self.confirmed >= receivers).then_some(self.confirmed_at)
    }

    /// Returns the time at which the sender began to send data, if it has.
    pub fn began(&self) -> Option<Time> {
        self.began
    }

    pub(super) fn open_transfer(&mut self) {
        for group in 0..self.groups.len() {
            self.groups[group].touch_all();
            self.schedule_wakes(group);
        }
        L::start(self);
        self.send_keys();
        self.open_sender();
    }

    /// Opens the sender, if KEYS have left for all receivers. A receiver without keys cannot read the sender's
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

    /// Handles a timer; it may have moved since it was scheduled.
    pub(crate) fn expire(&mut self, timer: Timer) {
        match timer {
            Timer::Sender => {
                if self.wake == self.now {
                    self.wake_sender();
                }
            }
            Timer::Group { group, station } => self.wake_group(group as usize, station),
            Timer::Keys => self.wake_keys(),
            Timer::Owed => self.wake_owed(),
            Timer::KeyRequest(receiver) => self.request_key(receiver),
        }
    }

    fn wake_sender(&mut self) {
        self.wake = Time::NEVER;
        if let Some(sender) = &mut self.sender {
            sender.handle_timeout(self.now);
        }
        self.drain_sender();
    }

    /// Wakes the sender if its timer is due: the sender's own events come before arrivals of the same instant.
    pub(crate) fn wake_sender_if_due(&mut self) {
        if self.wake <= self.now {
            self.wake_sender();
        }
    }

    fn drain_sender(&mut self) {
        while let Some(sender) = &mut self.sender {
            if let Some(event) = sender.poll_event() {
                match P::Sender::milestone(&event) {
                    Some(Milestone::Round { round: 1, .. }) => drop(self.began.get_or_insert(self.now)),
                    Some(Milestone::Left) => self.left += 1,
                    Some(Milestone::Done) => {
                        self.confirmed += 1;
                        self.confirmed_at = self.now;
                    }
                    _ => {}
                }
                if let Some(ending) = P::Sender::ending(&event) {
                    self.ending = Some((self.now, ending));
                }
                if let Some(observer) = &mut self.observer {
                    observer.told(self.now, &event);
                }
            } else if let Some(transmit) = self.poll_sender() {
                self.note_early_data();
                L::send(self, transmit);
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
            self.queue.push_unless_never(due, Timer::Sender.into());
        }
    }

    /// Records the time at which data began, if some has left before the first round formally does.
    fn note_early_data(&mut self) {
        if self.began.is_none() && self.sender.as_ref().is_some_and(|sender| sender.progress().sent > 0) {
            self.began = Some(self.now);
        }
    }

    fn poll_sender(&mut self) -> Option<Transmit<P::Message>> {
        let answered = self.unanswered_until();
        let beyond = self.beyond();
        let sender = self.sender.as_mut()?;
        let until = match self.cut {
            Cut::One => self.now,
            Cut::Whole | Cut::Random(_) => sender.settled_until().max(answered).min(beyond),
        };
        sender.poll_transmit(self.now, until)
    }

    /// Returns the time before which nothing else happens than the present transmission, and no answer to it can come
    /// back.
    pub(crate) fn unanswered_until(&self) -> Time {
        L::next_at(self).min(self.now + self.lookahead)
    }

    /// Returns the time before which no answer alters the sender's transmissions, if only the sender sends.
    pub(crate) fn quiet_until(&self, sole: bool) -> Time {
        let known = self.unanswered_until();
        let quiet = self.sender.as_ref().filter(|_| sole && !self.is_sealed());
        quiet.map_or(known, |sender| sender.quiet_until().max(known))
    }

    /// Returns the first instant that is no longer simulated.
    pub(crate) fn beyond(&self) -> Time {
        self.limit + Span::from_nanos(1)
    }

    /// Delivers a set-up message at once to the receivers that it is for, and schedules their answers for the same
    /// instant.
    pub(crate) fn tell(&mut self, frame: &Frame<L::Packet>) {
        let Some((from, incoming)) = L::incoming(self, frame) else { return };
        let mut feedback = Vec::new();
        for group in 0..self.groups.len() {
            if self.layout.is_for(&self.groups[group], group, &frame.message) {
                self.groups[group].tell(self.now, &from, &incoming, &mut feedback);
                self.schedule_feedback(group, &mut feedback);
            }
        }
    }

    /// Delivers the datagrams of a run to a group, up to the time at which something else can happen to the group.
    pub(crate) fn arrive_at_group(&mut self, group: usize, frame: Frame<L::Packet>) {
        let most = frame.due_before(self.now, self.beyond());
        let mut count = self.cut.choose(most, &mut self.cuts);
        if self.groups[group].losses.lacks_keys() {
            // A receiver may get the key between two datagrams.
            count = NonZeroU32::MIN;
        }
        let later = self.now + frame.spacing * u64::from(count.get());
        let (head, tail) = frame.split(count);
        if let Some(frame) = tail {
            L::arrive_later(self, later, group, frame);
        }
        let Some((from, incoming)) = L::incoming(self, &head) else { return };
        let may_merge = self.may_merge(group);
        let merged = if may_merge { self.layout.merged_losses(group) } else { None };
        let mut feedback = Vec::new();
        let taken = self.groups[group].take(self.now, &from, &incoming, merged, &mut feedback);
        self.schedule_feedback(group, &mut feedback);
        if let Some(taken) = NonZeroU32::new(taken).filter(|taken| taken.get() < head.segments()) {
            let later = self.now + head.spacing * u64::from(taken.get());
            if let (_, Some(tail)) = head.split(taken) {
                L::arrive_later(self, later, group, tail);
            }
        }
    }

    /// Returns `true` if the NAKs of a group may be merged: the sender takes them merged, and nothing else needs them
    /// one by one.
    fn may_merge(&self, group: usize) -> bool {
        let each = self.observer.as_ref().is_some_and(|observer| observer.wants_each());
        !each
            && !self.is_sealed()
            && self.layout.may_merge(group)
            && self.sender.as_ref().is_some_and(P::Sender::may_merge)
    }

    /// Schedules the messages of a group, and the timers that may have moved.
    pub(crate) fn schedule_feedback(&mut self, group: usize, feedback: &mut Vec<TimedFeedback<P>>) {
        for (at, one) in feedback.drain(..) {
            match one {
                Feedback::Merged(naks) => {
                    if let Some(delay) = self.layout.merged_delay(group) {
                        self.queue.push(at + delay, L::merged(naks));
                    }
                }
                Feedback::Each { receiver, transmit } => L::answer(self, at, group, receiver, transmit),
            }
        }
        self.schedule_key_requests(group);
        self.schedule_wakes(group);
    }

    /// Schedules the timers of a group's touched stations.
    fn schedule_wakes(&mut self, group: usize) {
        let number = group as u32;
        let Group { kind, touched, .. } = &mut self.groups[group];
        match kind {
            Kind::Population { population, wake } => {
                let due = population.poll_timeout();
                if due != *wake {
                    *wake = due;
                    self.queue.push_unless_never(due, Timer::Group { group: number, station: 0 }.into());
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
                            let timer = Timer::Group { group: number, station };
                            self.queue.push_in(due, one.place, timer.into());
                        }
                    }
                }
            }
        }
    }

    fn wake_group(&mut self, group: usize, station: u32) {
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
                    let timer = Timer::Group { group: group as u32, station };
                    self.queue.push_in(one.wake, one.place, timer.into());
                }
                return;
            }
            one.due_at = Time::NEVER;
        }
        let mut feedback = Vec::new();
        self.groups[group].wake(self.now, station, &mut feedback);
        self.schedule_feedback(group, &mut feedback);
    }

    /// Delivers a message to the sender.
    pub(crate) fn deliver_to_sender(&mut self, from: &Arrival, message: &P::Message) {
        let Some(sender) = &mut self.sender else { return };
        let taken = sender.handle(self.now, from, message).is_ok();
        self.count_request(taken);
        self.drain_sender();
        self.send_owed();
    }

    /// Delivers the merged NAKs of a population to the sender.
    pub(crate) fn deliver_merged(&mut self, naks: &Merged<P>) {
        self.wake_sender_if_due();
        let Some(sender) = &mut self.sender else { return };
        let taken = sender.handle_merged(self.now, naks).is_ok();
        self.count_request(taken);
        self.drain_sender();
    }

    /// Counts NAKs by their fate, if the sender has just taken or refused any.
    fn count_request(&mut self, taken: bool) {
        let Some(asked) = self.sender.as_ref().and_then(P::Sender::asked) else { return };
        match asked.fate {
            NakFate::Late => self.counts.naks_late += asked.count,
            NakFate::Used | NakFate::Known if taken => self.counts.naks_used += asked.count,
            NakFate::Used | NakFate::Known => {}
        }
        if let Some(observer) = &mut self.observer {
            observer.nak(self.now, &asked);
        }
    }
}
