//! Star as a layout of a world: its event loop, and its links for the transfer and for flows.

use farcast_core::engine::{Arrival, Transmit};
use farcast_core::stage::{Figure, Frame, Totals};
use farcast_core::{Losses, Span, Time};
use farcast_delivery::{Merged, Protocol};
use farcast_link::chain::Entry;

use super::config::audience;
use super::links::is_sent;
use super::{Addressed, Event, FlowEvent, Group, Hub, Packet, Party, SealMessage, Star, receiver_address};
use crate::traffic::{End, FlowMessage};
use crate::world::{FlowTimer, Incoming, Layout};

impl<P: Protocol> Layout<P> for Hub<P> {
    type Event = Event<P::Message, Merged<P>>;
    type Packet = Addressed<P::Message>;

    fn merged(naks: Merged<P>) -> Self::Event {
        Event::Merged(naks)
    }

    fn next_at(star: &Star<'_, P>) -> Time {
        star.queue.next_at().min(star.layout.flow_queue.next_at())
    }

    /// Handles the next event. Flow events come last in their instant.
    fn happen_next(star: &mut Star<'_, P>) -> Option<Time> {
        if star.layout.flow_queue.next_at() < star.queue.next_at() {
            let (at, event) = star.layout.flow_queue.pop()?;
            star.now = at;
            star.happen_to_flow(event);
            return Some(at);
        }
        let (at, event) = star.queue.pop()?;
        star.now = at;
        star.happen(event);
        Some(at)
    }

    fn send(star: &mut Star<'_, P>, transmit: Transmit<P::Message>) {
        star.send(transmit);
    }

    fn answer(star: &mut Star<'_, P>, at: Time, group: usize, receiver: u32, transmit: Transmit<P::Message>) {
        let from = Party::receiver(star.groups[group].first() + receiver);
        let to = audience(transmit.destination.ip(), &star.routes);
        star.queue.push(at, Event::Answer(Addressed { from, to, message: transmit.message }));
    }

    fn merged_delay(&self, _group: usize) -> Option<Span> {
        self.back.delay
    }

    fn merged_losses(&mut self, _group: usize) -> Option<&mut (dyn Losses + 'static)> {
        self.back.merged()
    }

    /// Returns `true` unless other receivers overhear answers, which are sent one by one then.
    fn may_merge(&self, _group: usize) -> bool {
        !self.relays
    }

    fn incoming<'a>(
        star: &Star<'_, P>,
        frame: &'a Frame<Self::Packet>,
    ) -> Option<(Arrival, Incoming<'a, P::Message>)> {
        let Addressed { from, to, message } = &frame.message;
        let (source, group) = match from.as_receiver() {
            None => (star.routes.source, star.routes.content),
            Some(receiver) => (receiver_address(receiver), star.routes.answers),
        };
        let destination = to.as_receiver().map_or(group, receiver_address);
        let arrival = Arrival { spacing: frame.spacing, ..Arrival::new(source, destination) };
        let (octets, overhead) = (frame.octets(0), frame.overhead);
        Some((arrival, Incoming { from: *from, to: *to, message, octets, overhead }))
    }

    fn is_for(&self, group: &Group<P>, _number: usize, packet: &Self::Packet) -> bool {
        packet.to == Party::GROUP || group.member(packet.to).is_some()
    }

    fn arrive_later(star: &mut Star<'_, P>, at: Time, group: usize, frame: Frame<Self::Packet>) {
        star.under_way += 1;
        star.queue.push(at, Event::FanOut { group: group as u32, frame });
    }

    fn send_sealed(star: &mut Star<'_, P>, message: SealMessage) {
        star.leave_sealed(message);
    }

    fn schedule_flow(star: &mut Star<'_, P>, at: Time, timer: FlowTimer) {
        star.layout.flow_queue.push(at, FlowEvent::Timer(timer));
    }

    fn send_flow(star: &mut Star<'_, P>, flow: u32, from: End, message: &FlowMessage) {
        star.depart(flow, from, message);
    }

    fn entered(&self, to: End) -> (u64, u64) {
        match to {
            End::Terminal => (self.traffic.forward_datagrams, self.traffic.forward_octets),
            End::Hub => (self.traffic.return_datagrams, self.traffic.return_octets),
        }
    }

    fn totals(&self, to: End) -> impl Iterator<Item = Totals> + '_ {
        let stages = self.links.chains().on_the_way(to);
        stages.map(move |stage| if to == End::Hub { stage.return_totals() } else { stage.totals() })
    }

    fn figures(&self) -> impl Iterator<Item = (&str, Vec<Figure>)> {
        let all = self.links.chains().all().map(|(name, stage)| (name, stage.figures()));
        all.filter(|(_, figures)| !figures.is_empty())
    }

    fn is_held(&self) -> bool {
        let mut held = false;
        self.links
            .chains()
            .each_held(|to, packet| held |= to == End::Terminal && matches!(packet, Packet::Transfer(_)));
        held
    }

    fn count_under_way(star: &mut Star<'_, P>) {
        star.count_flows_under_way();
    }
}

impl<P: Protocol> Star<'_, P> {
    fn happen_to_flow(&mut self, event: FlowEvent) {
        match event {
            FlowEvent::Timer(timer) => self.expire_flow(timer),
            FlowEvent::Reach { flow, end, packet } => self.reach_flow(flow, end, packet),
        }
    }

    fn happen(&mut self, event: Event<P::Message, Merged<P>>) {
        match event {
            Event::Timer(timer) => self.expire(timer),
            Event::Reach(frame) => {
                let loses = |n| self.layout.back.loses(self.now, frame.octets(0), n);
                if !frame.message.from.as_receiver().is_some_and(loses) {
                    self.reach(&frame);
                }
            }
            Event::Arrive(frame) => self.reach(&frame),
            Event::Merged(naks) => self.deliver_merged(&naks),
            Event::Enter(entry) => {
                self.under_way -= u32::from(is_sent(&entry));
                self.enter(entry);
            }
            Event::StageWake(stage) => self.wake_stage(stage),
            Event::FanOut { group, frame } => {
                self.under_way -= 1;
                self.arrive_at_group(group as usize, frame);
            }
            Event::Answer(message) => self.enter_return(message),
            Event::Unseal { group, message } => self.unseal(group as usize, message),
            Event::ReachRequest(receiver) => {
                if !self.loses_request(self.now, receiver) {
                    self.hear_key_request(receiver);
                }
            }
            Event::ArriveRequest(receiver) => self.hear_key_request(receiver),
        }
    }

    /// Sends a datagram that only the seal sends, from the hub or from the receiver that asks for its key.
    fn leave_sealed(&mut self, message: SealMessage) {
        let frame = Frame::new(Packet::Seal(message), self.overhead);
        let octets = frame.octets(0);
        let SealMessage::Ask(receiver) = message else {
            self.layout.traffic.count(End::Terminal, 1, octets);
            return self.enter(Entry::new(End::Terminal, frame));
        };
        self.layout.traffic.count(End::Hub, 1, octets);
        let Some(delay) = self.layout.back.delay else { return self.enter(Entry::new(End::Hub, frame)) };
        let at = self.now + delay;
        if !self.loses_request(at, receiver) {
            self.queue.push(at, Event::ArriveRequest(receiver));
        }
    }

    /// Returns `true` if a receiver's request for the content key that leaves the return path at `at` is lost.
    fn loses_request(&mut self, at: Time, receiver: u32) -> bool {
        let octets = self.sealed_octets(SealMessage::Ask(receiver));
        self.layout.back.loses(at, octets, receiver)
    }
}
