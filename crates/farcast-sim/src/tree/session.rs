//! Multicast transfer: its sender and its groups of receivers. Everything here works as in a star.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use farcast_core::engine::{Arrival, Engine as _, Transmit};
use farcast_core::stage::Frame;
use farcast_core::{Span, Time};
use farcast_delivery::{Delivery as _, Feedback, Merged, Milestone, Population as _, SenderEngine as _};

use super::nodes::carried;
use super::shape::{EVERYONE, Step};
use super::{Body, Carried, Event, OnTree, Packet, Said, Tree};
use crate::outcome::Stop;
use crate::star::config::FIRST_RECEIVER;
use crate::star::group::{Hearing, TimedFeedback};
use crate::star::{Cut, Group, Kind, Party, receiver_address};
use crate::traffic::End;

impl<P: OnTree> Tree<P> {
    /// Returns the sender, if there is a transfer.
    pub fn sender(&self) -> Option<&P::Sender> {
        self.sender.as_ref()
    }

    /// Returns the groups of receivers, in the order of their nodes.
    pub fn groups(&self) -> &[Group<P>] {
        &self.groups
    }

    /// Returns the node of a group of receivers.
    pub fn node_of(&self, group: usize) -> u32 {
        let seat = self.seats[group];
        self.shape.node_at(seat.edge, seat.place)
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
        self.start_elements();
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

    /// Wakes the sender if its timer is due: the sender's own events come before arrivals of the same instant.
    pub(super) fn wake_sender_if_due(&mut self) {
        if self.wake <= self.now {
            self.wake_sender();
        }
    }

    pub(super) fn wake_sender_now(&mut self) {
        if self.wake == self.now {
            self.wake_sender();
        }
    }

    pub(super) fn drain_sender(&mut self) {
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
            } else if let Some(transmit) = self.poll_sender() {
                self.send(transmit);
            } else {
                break;
            }
        }
        let Some(sender) = &self.sender else { return };
        let due = sender.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        if due != self.wake {
            self.wake = due;
            self.queue.push_unless_never(due, Event::Wake);
        }
    }

    fn poll_sender(&mut self) -> Option<Transmit<P::Message>> {
        let beyond = self.beyond();
        let sender = self.sender.as_mut()?;
        let until = match self.cut {
            Cut::One => self.now,
            Cut::Whole | Cut::Random(_) => {
                // An answer to a message that leaves now may alter later messages.
                let answered = self.queue.next_at().min(self.now + self.lookahead);
                sender.settled_until().max(answered).min(beyond)
            }
        };
        sender.poll_transmit(self.now, until)
    }

    fn send(&mut self, transmit: Transmit<P::Message>) {
        // A message to an address outside the tree is lost on links that are not simulated.
        let Some(to) = self.target(transmit.destination.ip(), false) else { return };
        let source = transmit.source.unwrap_or(self.routes.source);
        let interface = transmit.interface;
        let Some(frame) = self.packet(to, source, transmit, true) else { return };
        if let Body::Transfer(carried) = &frame.message.body
            && self.given
            && carried.message().is_set_up()
        {
            self.tell(to, &frame);
        } else {
            self.depart(self.seat, interface, frame);
        }
    }

    /// Delivers a set-up message at once to the receivers that it is for, and schedules their answers for the same
    /// instant.
    fn tell(&mut self, to: u32, frame: &Frame<Packet<P::Message>>) {
        let Body::Transfer(carried) = &frame.message.body else { return };
        let mut feedback = Vec::new();
        for group in 0..self.groups.len() {
            if to == EVERYONE || to == self.node_of(group) {
                let (from, hearing) = self.hearing(carried, frame.overhead, frame.spacing);
                self.groups[group].tell(self.now, &from, &hearing, &mut feedback);
                self.say(group, &mut feedback);
            }
        }
    }

    /// Returns the receiver that has an address.
    fn receiver_at(&self, address: SocketAddr) -> Option<Party> {
        let SocketAddr::V4(address) = address else { return None };
        let number = address.ip().to_bits().checked_sub(FIRST_RECEIVER);
        number.filter(|&n| n < self.receivers).map(Party::receiver)
    }

    /// Returns a message to receivers in the form in which a group of a star hears it.
    fn hearing<'a>(
        &self,
        carried: &'a Carried<P::Message>,
        overhead: u16,
        spacing: Span,
    ) -> (Arrival, Hearing<'a, P::Message>) {
        let (source, destination) = (SocketAddr::from(carried.source), SocketAddr::from(carried.destination));
        // Elements send from the address of the source, so a sender that is no receiver counts as the hub.
        let from = self.receiver_at(source).unwrap_or(Party::HUB);
        let to = self.receiver_at(destination).unwrap_or(Party::GROUP);
        let octets = carried.wire_len(0) as u64 + u64::from(overhead);
        let arrival = Arrival { spacing, interface: 1, ..Arrival::new(source, destination) };
        (arrival, Hearing { from, to, message: carried.message(), octets, overhead })
    }

    /// Delivers a frame to the node of a group.
    pub(super) fn arrive_at_group(
        &mut self,
        node: u32,
        edge: u32,
        place: u32,
        group: usize,
        frame: Frame<Packet<P::Message>>,
    ) {
        if let Body::Flow { .. } = frame.message.body {
            return self.flow_at_group(node, edge, group, frame);
        }
        let most = frame.due_before(self.now, self.beyond());
        let count = self.cut.choose(most, &mut self.cuts);
        let later = self.now + frame.spacing * u64::from(count.get());
        let (head, tail) = frame.split(count);
        if let Some(frame) = tail {
            self.reach_later(later, edge, place, frame);
        }
        let Body::Transfer(carried) = &head.message.body else { return };
        let (from, hearing) = self.hearing(carried, head.overhead, head.spacing);
        let depth_one = self.sole && self.shape.node_at(edge, super::shape::NEAR) == self.seat;
        let may_merge = depth_one && self.sender.as_ref().is_some_and(P::Sender::may_merge);
        let merged = if may_merge { self.edges[edge as usize].merged() } else { None };
        let mut feedback = Vec::new();
        let taken = self.groups[group].take(self.now, &from, &hearing, merged, &mut feedback);
        self.say(group, &mut feedback);
        if let Some(taken) = NonZeroU32::new(taken).filter(|taken| taken.get() < head.segments()) {
            let later = self.now + head.spacing * u64::from(taken.get());
            if let (_, Some(tail)) = head.split(taken) {
                self.reach_later(later, edge, place, tail);
            }
        }
    }

    /// Schedules the messages of a group, and the timers that may have moved.
    fn say(&mut self, group: usize, feedback: &mut Vec<TimedFeedback<P>>) {
        for (at, one) in feedback.drain(..) {
            match one {
                Feedback::Merged(naks) => {
                    let edge = self.seats[group].edge as usize;
                    if let Some(delay) = self.edges[edge].return_delay() {
                        self.queue.push(at + delay, Event::Merged(naks));
                    }
                }
                Feedback::Each { receiver, transmit } => self.answer(at, group, receiver, transmit),
            }
        }
        self.note_wakes(group);
    }

    /// Schedules for `at` a receiver's message.
    fn answer(&mut self, at: Time, group: usize, receiver: u32, transmit: Transmit<P::Message>) {
        let own = receiver_address(self.groups[group].first() + receiver);
        let Some(to) = self.target(transmit.destination.ip(), true) else {
            self.tally.unheard += 1;
            return;
        };
        let source = transmit.source.unwrap_or(own);
        let Some(carried) = carried(source, transmit, false) else { return };
        let said = Said { group: group as u32, receiver, to, carried };
        self.queue.push(at, Event::Answer(said));
    }

    /// Enters a receiver's message into its edge.
    pub(super) fn enter_answer(&mut self, said: Said<P::Message>) {
        let Said { group, receiver, to, carried } = said;
        if self.given && carried.message().is_set_up() {
            let from = Arrival::new(carried.source.into(), carried.destination.into());
            return self.sender_hears(&from, carried.message());
        }
        let seat = self.seats[group as usize];
        let node = self.shape.node_at(seat.edge, seat.place);
        let step = match to {
            EVERYONE => Step { edge: seat.edge, from: seat.place, to: EVERYONE },
            to if to == node => return self.among_themselves(group as usize, &carried),
            to => self.shape.step(node, to),
        };
        let mut packet = Packet::new(to, Body::Transfer(carried));
        packet.entered = self.edges[seat.edge as usize].terminal(seat.place) + receiver;
        self.enter_edge(step, Frame::new(packet, self.overhead));
    }

    /// Delivers a receiver's message to another receiver of its group. The message passes no edge, because both are at
    /// one node.
    fn among_themselves(&mut self, group: usize, carried: &Carried<P::Message>) {
        let (from, hearing) = self.hearing(carried, self.overhead, Span::ZERO);
        let mut feedback = Vec::new();
        self.groups[group].tell(self.now, &from, &hearing, &mut feedback);
        self.say(group, &mut feedback);
    }

    /// Delivers the merged NAKs of a population to the sender.
    pub(super) fn reach_merged(&mut self, naks: &Merged<P>) {
        self.wake_sender_if_due();
        let Some(sender) = &mut self.sender else { return };
        let taken = sender.handle_merged(self.now, naks).is_ok();
        self.note_asked(taken);
        self.drain_sender();
    }

    /// Schedules the timers of a group's touched receivers.
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
                    let event = Event::GroupWake { group: group as u32, station };
                    self.queue.push_in(one.wake, one.place, event);
                }
                return;
            }
            one.due_at = Time::NEVER;
        }
        let mut feedback = Vec::new();
        self.groups[group].wake(self.now, station, &mut feedback);
        self.say(group, &mut feedback);
    }

    /// Returns the counters of repair requests.
    pub fn requests(&self) -> farcast_delivery::RequestCounts {
        let collided = self.edges.iter().flat_map(|edge| edge.totals(End::Hub)).map(|totals| totals.collided);
        farcast_delivery::RequestCounts {
            sent: self.groups.iter().map(Group::naks).sum(),
            collided: collided.sum(),
            late: self.tally.naks_late,
            used: self.tally.naks_used,
        }
    }
}
