//! Flows in a tree: their packets and timers.

use farcast_core::engine::Message as _;
use farcast_core::stage::Frame;

use super::{Body, Branches, Event, OnTree, Packet, Tree};
use crate::traffic::{End, FlowMessage};
use crate::world::direction;

/// Returns the index of an end in the list of a flow's nodes.
const fn place(end: End) -> usize {
    match end {
        End::Hub => 0,
        End::Terminal => 1,
    }
}

impl<P: OnTree> Tree<'_, P> {
    /// Returns the end of a flow that a packet goes to.
    fn end_of(&self, flow: u32, packet: &Packet<P::Message>) -> End {
        let terminal = self.layout.flow_ends[flow as usize][place(End::Terminal)];
        if packet.target() == Some(terminal) { End::Terminal } else { End::Hub }
    }

    /// Counts a packet of a flow that was lost on an edge.
    pub(super) fn flow_lost(&mut self, flow: u32, packet: &Packet<P::Message>) {
        let end = self.end_of(flow, packet);
        let passage = &mut self.flows[flow as usize].directions[direction(end)].passage;
        passage.lost += 1;
        passage.left += 1;
    }

    /// Delivers a packet of a flow to a node of receivers, where it may be lost.
    pub(super) fn flow_at_group(&mut self, node: u32, group: usize, frame: Frame<Packet<P::Message>>) {
        let losses = self.groups[group].losses.channel();
        let octets = frame.octets(0);
        // One channel leads to the node: the node's first receiver stands for the node.
        self.lost.clear();
        losses.draw(self.now, octets, farcast_core::Among::All, &mut self.lost);
        let lost = self.lost.first() == Some(&0);
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
        self.flows[flow as usize].directions[direction(end)].passage.left += 1;
        self.wake_flow_if_due(flow);
        self.watch_flow(flow, end, message, true);
        self.flows[flow as usize].flow.handle(self.now, end, message);
        self.drain_flow(flow);
    }

    /// Sends a packet from the flow's end `from`.
    pub(super) fn flow_departs(&mut self, number: u32, from: End, message: &FlowMessage) {
        let nodes = self.layout.flow_ends[number as usize];
        let (here, there) = (nodes[place(from)], nodes[place(from.other())]);
        let state = &mut self.flows[number as usize];
        let passage = &mut state.directions[direction(from.other())].passage;
        passage.entered += 1;
        let (identification, overhead) = (passage.entered as u16, state.overhead);
        let octets = message.wire_len(0) as u64 + u64::from(overhead);
        let step = self.layout.shape.step(here, there);
        let refused = self.flows[number as usize].local_congestion && !self.has_room(step, octets);
        let body = Body::Flow { flow: number, identification, message: (*message).into() };
        self.depart(here, 0, Frame::new(Packet::new(there, body), overhead));
        if refused {
            self.flows[number as usize].flow.refused(self.now, from, message);
        }
    }

    /// Counts packets that are under way at the end of the replication: they were not dropped.
    pub(super) fn count_flows_under_way(&mut self) {
        let Self { queue, flows, layout, .. } = self;
        let Branches { flow_ends, edges, .. } = layout;
        let mut count = |packet: &Packet<P::Message>| {
            if let Body::Flow { flow, .. } = packet.body {
                let at_terminal = packet.target() == Some(flow_ends[flow as usize][place(End::Terminal)]);
                let end = if at_terminal { End::Terminal } else { End::Hub };
                flows[flow as usize].directions[direction(end)].passage.left += 1;
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
