//! Flows in a tree: their packets and timers.

use farcast_core::engine::Message as _;
use farcast_core::stage::Frame;

use super::{Body, Event, OnTree, Packet, Tree};
use crate::star::FlowState;
use crate::star::flows::to as way;
use crate::traffic::{End, FlowMessage};

/// Returns the index of an end in the list of a flow's nodes.
const fn place(end: End) -> usize {
    match end {
        End::Hub => 0,
        End::Terminal => 1,
    }
}

impl<P: OnTree> Tree<P> {
    /// Returns the flows, in the order in which they were given.
    pub fn flows(&self) -> &[FlowState] {
        &self.flows
    }

    /// Schedules the starts and stops of flows.
    pub(super) fn schedule_flows(&mut self) {
        for (number, flow) in (0..).zip(&self.flows) {
            self.queue.push_late(flow.start(), Event::FlowStart(number));
            if let Some(stop) = flow.stop() {
                self.queue.push_late(stop, Event::FlowStop(number));
            }
        }
    }

    pub(super) fn start_flow(&mut self, number: u32) {
        self.flows[number as usize].flow.start(self.now);
        self.drain_flow(number);
    }

    pub(super) fn stop_flow(&mut self, number: u32) {
        self.flows[number as usize].flow.stop(self.now);
        self.drain_flow(number);
    }

    /// Wakes the flow if its timer is due; the timer may have moved since the event was scheduled.
    pub(super) fn wake_flow(&mut self, number: u32) {
        let state = &mut self.flows[number as usize];
        if state.wake != self.now {
            return;
        }
        state.wake = farcast_core::Time::NEVER;
        if state.due <= self.now {
            state.flow.handle_timeout(self.now);
        }
        self.drain_flow(number);
    }

    /// Returns the end of a flow that a packet goes to.
    fn end_of(&self, flow: u32, packet: &Packet<P::Message>) -> End {
        let terminal = self.flow_ends[flow as usize][place(End::Terminal)];
        if packet.target() == Some(terminal) { End::Terminal } else { End::Hub }
    }

    /// Counts a packet of a flow that was lost on an edge.
    pub(super) fn flow_lost(&mut self, flow: u32, packet: &Packet<P::Message>) {
        let end = self.end_of(flow, packet);
        let passage = &mut self.flows[flow as usize].ways[way(end)].passage;
        passage.lost += 1;
        passage.left += 1;
    }

    /// Delivers a packet of a flow to a node of receivers, where it may be lost.
    pub(super) fn flow_at_group(
        &mut self,
        node: u32,
        edge: u32,
        group: usize,
        frame: Frame<Packet<P::Message>>,
    ) {
        let losses = self.groups[group].air.channel();
        let octets = frame.octets(0);
        // One channel leads to the node: the node's first receiver stands for the node.
        self.lost.clear();
        losses.draw(self.now, octets, farcast_core::Among::All, &mut self.lost);
        let lost = self.lost.first() == Some(&0);
        let _ = edge;
        if lost { self.note_lost(&frame.message) } else { self.pass_flow(node, frame) }
    }

    /// Takes a packet of a flow at its target, or forwards it at any other node.
    pub(super) fn pass_flow(&mut self, node: u32, frame: Frame<Packet<P::Message>>) {
        if frame.message.target() != Some(node) {
            return self.depart(node, 0, frame);
        }
        let Body::Flow { flow, message, .. } = &frame.message.body else { return };
        let flow = *flow;
        let end = self.end_of(flow, &frame.message);
        let state = &mut self.flows[flow as usize];
        state.ways[way(end)].passage.left += 1;
        if state.due <= self.now {
            // Due timers come before arrivals of the same instant.
            state.flow.handle_timeout(self.now);
            self.drain_flow(flow);
        }
        self.flows[flow as usize].flow.handle(self.now, end, message);
        self.drain_flow(flow);
    }

    /// Sends the packets that leave now, and schedules the flow's next timer.
    fn drain_flow(&mut self, number: u32) {
        while let Some((from, message)) = self.flows[number as usize].flow.poll_transmit(self.now) {
            self.flow_departs(number, from, message);
        }
        let state = &mut self.flows[number as usize];
        state.due = state.flow.poll_timeout();
        // A wake that comes too early costs less than one for each time that the timer moves.
        if state.due < state.wake {
            state.wake = state.due;
            self.queue.push_late(state.due, Event::FlowWake(number));
        }
        if state.unended && state.flow.completed().is_some() {
            state.unended = false;
            self.unended -= 1;
        }
    }

    /// Sends a packet from the flow's end `from`.
    fn flow_departs(&mut self, number: u32, from: End, message: FlowMessage) {
        let nodes = self.flow_ends[number as usize];
        let (here, there) = (nodes[place(from)], nodes[place(from.other())]);
        let state = &mut self.flows[number as usize];
        let passage = &mut state.ways[way(from.other())].passage;
        passage.entered += 1;
        let (identification, overhead) = (passage.entered as u16, state.overhead);
        let octets = message.wire_len(0) as u64 + u64::from(overhead);
        let step = self.shape.step(here, there);
        let refused = self.flows[number as usize].local_congestion && !self.has_room(step, octets);
        let body = Body::Flow { flow: number, identification, message: message.into() };
        self.depart(here, 0, Frame::new(Packet::new(there, body), overhead));
        if refused {
            self.flows[number as usize].flow.refused(self.now, from, &message);
        }
    }

    /// Counts packets that are under way at the end of the replication: they were not dropped.
    pub(super) fn count_under_way(&mut self) {
        let Self { queue, flows, flow_ends, edges, .. } = self;
        let mut count = |packet: &Packet<P::Message>| {
            if let Body::Flow { flow, .. } = packet.body {
                let at_terminal = packet.target() == Some(flow_ends[flow as usize][place(End::Terminal)]);
                let end = if at_terminal { End::Terminal } else { End::Hub };
                flows[flow as usize].ways[way(end)].passage.left += 1;
            }
        };
        for event in queue.iter() {
            match event {
                Event::Enter { entry, .. } => count(entry.message()),
                Event::Leave { frame, .. } | Event::Reach { frame, .. } | Event::Pass { frame, .. } => {
                    count(&frame.message);
                }
                _ => {}
            }
        }
        for edge in edges.iter() {
            edge.each_held(|_, packet| count(packet));
        }
    }
}
