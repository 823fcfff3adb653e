//! Tree as a layout of a world: its event loop, and its nodes and edges for the transfer and for flows.

use farcast_core::engine::{Arrival, Transmit};
use farcast_core::stage::{Figure, Frame, Totals};
use farcast_core::{Losses, Span, Time};
use farcast_delivery::Merged;

use super::shape::NEAR;
use super::{Body, Branches, Edge, Event, KindCount, OnTree, Packet, Tree};
use crate::traffic::{End, FlowMessage};
use crate::world::{FlowTimer, Group, Incoming, Layout, SealMessage};

impl<P: OnTree> Layout<P> for Branches<P> {
    type Event = Event<P::Message, Merged<P>>;
    type Packet = Packet<P::Message>;

    fn merged(naks: Merged<P>) -> Self::Event {
        Event::Merged(naks)
    }

    fn next_at(tree: &Tree<'_, P>) -> Time {
        tree.queue.next_at()
    }

    fn happen_next(tree: &mut Tree<'_, P>) -> Option<Time> {
        let (at, event) = tree.queue.pop()?;
        tree.now = at;
        tree.happen(event);
        Some(at)
    }

    fn start(tree: &mut Tree<'_, P>) {
        tree.start_elements();
    }

    fn send(tree: &mut Tree<'_, P>, transmit: Transmit<P::Message>) {
        tree.send(transmit);
    }

    fn answer(tree: &mut Tree<'_, P>, at: Time, group: usize, receiver: u32, transmit: Transmit<P::Message>) {
        tree.answer(at, group, receiver, transmit);
    }

    fn merged_delay(&self, group: usize) -> Option<Span> {
        self.edges[self.seats[group].edge as usize].return_delay()
    }

    fn merged_losses(&mut self, group: usize) -> Option<&mut (dyn Losses + 'static)> {
        self.edges[self.seats[group].edge as usize].merged()
    }

    /// Returns `true` where the group's edge leads to the sender, and nothing else sends anything outwards.
    fn may_merge(&self, group: usize) -> bool {
        self.sole && self.shape.node_at(self.seats[group].edge, NEAR) == self.seat
    }

    fn incoming<'a>(
        tree: &Tree<'_, P>,
        frame: &'a Frame<Self::Packet>,
    ) -> Option<(Arrival, Incoming<'a, P::Message>)> {
        let Body::Transfer(carried) = &frame.message.body else { return None };
        Some(tree.incoming(carried, frame.overhead, frame.spacing))
    }

    fn is_for(&self, _group: &Group<P>, number: usize, packet: &Self::Packet) -> bool {
        packet.target().is_none_or(|target| target == self.node_of(number))
    }

    fn arrive_later(tree: &mut Tree<'_, P>, at: Time, group: usize, frame: Frame<Self::Packet>) {
        let seat = tree.layout.seats[group];
        tree.plan(at, Event::Reach { edge: seat.edge, to: End::Terminal, place: seat.place, frame });
    }

    fn send_sealed(tree: &mut Tree<'_, P>, message: SealMessage) {
        tree.leave_sealed(message);
    }

    fn schedule_flow(tree: &mut Tree<'_, P>, at: Time, timer: FlowTimer) {
        tree.queue.push_late(at, Event::Flow(timer));
    }

    fn send_flow(tree: &mut Tree<'_, P>, flow: u32, from: End, message: &FlowMessage) {
        tree.flow_departs(flow, from, message);
    }

    fn entered(&self, to: End) -> (u64, u64) {
        let counts = self.edges.iter().flat_map(|edge| edge.counts(to));
        let add = |sum: KindCount, one: &KindCount| KindCount {
            packets: sum.packets + one.packets,
            octets: sum.octets + one.octets,
        };
        let KindCount { packets, octets } = counts.fold(KindCount::default(), add);
        (packets, octets)
    }

    fn totals(&self, to: End) -> impl Iterator<Item = Totals> + '_ {
        self.edges.iter().flat_map(move |edge| edge.totals(to))
    }

    fn figures(&self) -> impl Iterator<Item = (&str, Vec<Figure>)> {
        self.edges.iter().flat_map(Edge::figures)
    }

    fn is_held(&self) -> bool {
        let mut held = false;
        for edge in &self.edges {
            edge.each_held(|_, packet| held |= packet.is_awaited());
        }
        held
    }

    fn count_under_way(tree: &mut Tree<'_, P>) {
        tree.count_flows_under_way();
    }
}

impl<P: OnTree> Branches<P> {
    /// Returns the node of a group of receivers.
    pub(super) fn node_of(&self, group: usize) -> u32 {
        let seat = self.seats[group];
        self.shape.node_at(seat.edge, seat.place)
    }
}

impl<P: OnTree> Tree<'_, P> {
    fn happen(&mut self, event: Event<P::Message, Merged<P>>) {
        match event {
            Event::Timer(timer) => self.expire(timer),
            Event::Answer(answer) => self.enter_answer(answer),
            Event::Merged(naks) => self.deliver_merged(&naks),
            Event::Enter { edge, entry } => {
                self.under_way -= u32::from(entry.message().is_awaited());
                self.enter(edge, entry);
            }
            Event::StageWake { edge, stage } => self.wake_stage(edge, stage),
            Event::Leave { edge, frame } => {
                self.arrives(&frame);
                self.leave(edge, frame);
            }
            Event::Reach { edge, to, place, frame } => {
                self.arrives(&frame);
                self.reached(edge, to, place, frame);
            }
            Event::Pass { edge, place, frame } => {
                self.arrives(&frame);
                self.pass(edge, place, frame);
            }
            Event::ElementWake { node } => self.wake_element(node),
            Event::Flow(timer) => self.expire_flow(timer),
        }
    }

    /// Notes that a frame no longer waits for its event.
    fn arrives(&mut self, frame: &Frame<Packet<P::Message>>) {
        self.under_way -= u32::from(frame.message.is_awaited());
    }
}
