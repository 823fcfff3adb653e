//! Edges: entry of packets, counters, and delivery at the ends.

use std::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::stage::{Fate, Figure, Frame, Port, Totals};
use farcast_core::{Among, Losses, Span, Time};
use farcast_link::chain::{ChainOwner, Driver, Entry, follow};
use farcast_link::losses::BackLosses;

use super::shape::{EVERYONE, NEAR, Step};
use super::{Body, EdgeConfig, Event, KindCount, OnTree, Packet, Tree, TreeError};
use crate::star::Back;
use crate::traffic::End;

/// State of a far end.
struct Far {
    /// Number of the far end's first terminal.
    first: u32,
    losses: Option<Box<dyn Losses>>,
    return_losses: Option<Box<dyn Losses>>,
    /// Delay between the edge and this end's node.
    delay: Span,
}

/// State of an edge.
pub struct Edge<M> {
    name: String,
    links: Driver<Packet<M>>,
    delays: [Option<Span>; 2],
    return_losses: Back,
    far: Vec<Far>,
    /// `true` if no far end has a delay of its own.
    together: bool,
    /// Counters by direction, forward first, and by kind; flows and the seal's own datagrams come last.
    counts: [Vec<KindCount>; 2],
    /// Packets that were lost at the ends to which each direction leads, except in front of receivers.
    lost: [u64; 2],
}

impl<M: Message> Edge<M> {
    pub(super) fn new(
        number: u32,
        config: EdgeConfig<M>,
        terminals: impl Fn(u32) -> u32,
        kinds: usize,
    ) -> Result<Self, TreeError> {
        let EdgeConfig { name, near: _, far, chains, delays, return_losses, relayed: _ } = config;
        for (delay, to) in delays.iter().zip([End::Terminal, End::Hub]) {
            if delay.is_some() && chains.numbers(to).next().is_some() {
                return Err(TreeError::TwoWays { edge: number });
            }
        }
        let mut first = 0;
        let far = far.into_iter().map(|end| {
            let made = Far { first, losses: end.losses, return_losses: end.return_losses, delay: Span::ZERO };
            first += terminals(end.node);
            made
        });
        Ok(Self {
            name,
            far: far.collect(),
            links: Driver::new(chains),
            delays,
            return_losses: Back::stages(return_losses),
            together: true,
            counts: [(); 2].map(|()| vec![KindCount::default(); kinds + 2]),
            lost: [0; 2],
        })
    }

    /// Sets the delay of a far end.
    pub(super) fn delays_differ(&mut self, place: u32, delay: Span) {
        self.far[place as usize].delay = delay;
        self.together &= delay.is_zero();
    }

    /// Returns the edge's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the counters of packets that entered in the direction to `to`, by kind as the protocol names them; flows
    /// and the seal's own datagrams come last.
    pub fn counts(&self, to: End) -> &[KindCount] {
        &self.counts[to.way()]
    }

    /// Returns the number of packets that were lost behind the direction to `to`. Packets that receivers lose are not
    /// counted.
    pub fn lost(&self, to: End) -> u64 {
        self.lost[to.way()]
    }

    /// Returns the counters of the stages in the direction to `to`, in order.
    pub fn totals(&self, to: End) -> impl Iterator<Item = Totals> + '_ {
        let totals = move |stage: &farcast_link::BoxedStage<Packet<M>>| match to {
            End::Terminal => stage.totals(),
            End::Hub => stage.return_totals(),
        };
        self.links.chains().on_the_way(to).map(totals)
    }

    /// Returns the names and figures of the edge's stages that have figures to report.
    pub fn figures(&self) -> impl Iterator<Item = (&str, Vec<Figure>)> {
        let all = self.links.chains().all().map(|(name, stage)| (name, stage.figures()));
        all.filter(|(_, figures)| !figures.is_empty())
    }

    /// Calls `each` for every frame inside a stage, with the end that the frame is on its way to.
    pub(super) fn each_held(&self, each: impl FnMut(End, &Packet<M>)) {
        self.links.chains().each_held(each);
    }

    /// Returns the delay of the return direction, where it is constant.
    pub(super) fn return_delay(&self) -> Option<Span> {
        self.delays[End::Hub.way()]
    }

    /// Returns the loss process of merged NAKs; `None` where NAKs may not be merged.
    pub(super) fn merged(&mut self) -> Option<&mut (dyn Losses + 'static)> {
        match (self.return_delay(), &mut self.return_losses.losses) {
            (Some(_), BackLosses::Shared(losses)) => Some(losses.as_mut()),
            _ => None,
        }
    }

    /// Returns the terminal of a far end that has only one, or [`NEAR`] for the near end.
    pub(super) fn terminal(&self, place: u32) -> u32 {
        if place == NEAR { NEAR } else { self.far[place as usize].first }
    }

    /// Returns the far end of a terminal.
    fn place_of(&self, terminal: u32) -> u32 {
        self.far.partition_point(|far| far.first <= terminal) as u32 - 1
    }

    /// Returns `true` if a packet of `terminal` that leaves the return chain at `at` is lost.
    fn loses(&mut self, at: Time, octets: u64, terminal: u32, lost: &mut Vec<u32>) -> bool {
        let place = self.place_of(terminal);
        let loses = match &mut self.far[place as usize].return_losses {
            Some(losses) => draws(losses.as_mut(), at, octets, lost),
            None => self.return_losses.loses(at, octets, terminal),
        };
        self.lost[End::Hub.way()] += u64::from(loses);
        loses
    }
}

/// Returns `true` if a loss process for one receiver loses a packet.
pub(super) fn draws(losses: &mut dyn Losses, at: Time, octets: u64, lost: &mut Vec<u32>) -> bool {
    lost.clear();
    losses.draw(at, octets, Among::All, lost);
    !lost.is_empty()
}

/// Returns the port at which a frame enters a chain that leads to `to`. A frame to the hub enters at the terminal that
/// sent it.
fn port(to: End, entered: u32) -> Port {
    match to {
        End::Terminal => Port::Hub,
        End::Hub => Port::Terminal(entered),
    }
}

/// Owner of one edge's chains, for the chain driver.
struct Driven<'a, 'o, P: OnTree> {
    tree: &'a mut Tree<'o, P>,
    edge: u32,
}

impl<P: OnTree> ChainOwner<Packet<P::Message>> for Driven<'_, '_, P> {
    fn driver(&mut self) -> &mut Driver<Packet<P::Message>> {
        &mut self.tree.layout.edges[self.edge as usize].links
    }

    fn keep(&mut self, at: Time, entry: Entry<Packet<P::Message>>) {
        self.tree.under_way += u32::from(entry.message().is_awaited());
        self.tree.queue.push(at, Event::Enter { edge: self.edge, entry });
    }

    fn left(&mut self, at: Time, to: End, frame: Frame<Packet<P::Message>>) {
        self.tree.left(at, self.edge, to, frame);
    }

    fn drained(&mut self, stage: u32, wake: Option<Time>) {
        if let Some(due) = wake {
            self.tree.queue.push(due, Event::StageWake { edge: self.edge, stage });
        }
    }
}

impl<P: OnTree> Tree<'_, P> {
    /// Returns the edges, in the order in which they were given.
    pub fn edges(&self) -> &[Edge<P::Message>] {
        &self.layout.edges
    }

    /// Schedules an event that a frame waits for. Flow events come last in their instant.
    pub(super) fn plan(&mut self, at: Time, event: Event<P::Message, farcast_delivery::Merged<P>>) {
        let (Event::Leave { frame, .. } | Event::Reach { frame, .. } | Event::Pass { frame, .. }) = &event
        else {
            return self.queue.push(at, event);
        };
        self.under_way += u32::from(frame.message.is_awaited());
        if matches!(frame.message.body, Body::Flow { .. }) {
            self.queue.push_late(at, event);
        } else {
            self.queue.push(at, event);
        }
    }

    /// Returns the time before which only the frame at hand enters `edge` in the direction to `to`.
    fn alone_until(&self, edge: u32, to: End) -> Time {
        if self.owes_key() {
            // A key leaves behind the first datagram.
            return self.now;
        }
        // Datagrams that are not handed over yet may answer those that are, but then an answer has come back meanwhile.
        // Only the queue knows of other packets that go outwards.
        let layout = &self.layout;
        self.quiet_until(layout.sole && to == End::Terminal && layout.shape.is_outward(edge))
    }

    /// Enters a packet into an edge at one of its ends.
    pub(super) fn enter_edge(&mut self, step: Step, mut frame: Frame<Packet<P::Message>>) {
        let Step { edge, from, to: leaves } = step;
        let number = edge as usize;
        let to = if from == NEAR { End::Terminal } else { End::Hub };
        frame.message.leaves = leaves;
        self.count(edge, to, &frame);
        let Some(delay) = self.layout.edges[number].delays[to.way()] else {
            return self.enter_chain(edge, to, frame);
        };
        let at = self.now + delay;
        if to == End::Terminal {
            return self.reach(at, edge, to, frame);
        }
        // The loss of a receiver's message is drawn when it is sent, as for a population's message.
        let said = match &frame.message.body {
            Body::Transfer(carried) => !carried.header.awaited,
            Body::Seal(_) => true,
            Body::Flow { .. } => false,
        };
        if !said {
            return self.plan(at, Event::Leave { edge, frame });
        }
        let (octets, terminal) = (frame.octets(0), frame.message.entered);
        let mut lost = std::mem::take(&mut self.lost);
        let loses = self.layout.edges[number].loses(at, octets, terminal, &mut lost);
        self.lost = lost;
        if !loses {
            self.reach(at, edge, to, frame);
        }
    }

    /// Enters a packet into a chain: in one go where its fate is known at once, and as a frame otherwise.
    fn enter_chain(&mut self, edge: u32, to: End, mut frame: Frame<Packet<P::Message>>) {
        let known = if frame.segments() == 1 {
            let (port, octets) = (port(to, frame.message.entered), frame.octets(0));
            self.layout.edges[edge as usize].links.pass(self.now, port, to, octets)
        } else {
            None
        };
        match known {
            Some(Fate::Leaves(at)) => {
                frame.spacing = Span::ZERO;
                self.left(at, edge, to, frame);
            }
            Some(Fate::Dropped) => {}
            None => self.enter(edge, Entry::new(to, frame)),
        }
    }

    /// Passes on a frame that leaves the last stage of a chain.
    fn left(&mut self, at: Time, edge: u32, to: End, frame: Frame<Packet<P::Message>>) {
        match to {
            End::Terminal => self.reach(at, edge, to, frame),
            End::Hub => self.plan(at, Event::Leave { edge, frame }),
        }
    }

    fn count(&mut self, edge: u32, to: End, frame: &Frame<Packet<P::Message>>) {
        let kind = match &frame.message.body {
            Body::Transfer(carried) => P::kind(carried.message()).min(P::KINDS.len() - 1),
            Body::Flow { .. } => P::KINDS.len(),
            Body::Seal(_) => P::KINDS.len() + 1,
        };
        let segments = frame.segments();
        let full = frame.octets(0);
        let last = if segments == 1 { full } else { frame.octets(segments - 1) };
        self.layout.edges[edge as usize].counts[to.way()][kind].count(segments, full, last);
    }

    /// Enters a frame into a chain, or into a stage behind the first.
    pub(super) fn enter(&mut self, edge: u32, entry: Entry<Packet<P::Message>>) {
        let port = port(entry.to(), entry.message().entered);
        // Only a run can be cut.
        let single = entry.message().segments() == NonZeroU32::MIN;
        let known = if single { Time::NEVER } else { self.alone_until(edge, entry.to()) };
        let (cut, cuts) = (self.cut, &mut self.cuts);
        self.layout.edges[edge as usize]
            .links
            .enter(self.now, port, entry, known, |most| cut.choose(most, cuts));
        follow(&mut Driven { tree: self, edge });
    }

    pub(super) fn wake_stage(&mut self, edge: u32, stage: u32) {
        self.layout.edges[edge as usize].links.wake(self.now, stage);
        follow(&mut Driven { tree: self, edge });
    }

    /// Returns `true` if the first stage would take a packet from the node that is about to send it.
    pub(super) fn has_room(&mut self, step: Step, octets: u64) -> bool {
        let edge = &mut self.layout.edges[step.edge as usize];
        let (port, to) = match step.from {
            NEAR => (Port::Hub, End::Terminal),
            place => (Port::Terminal(edge.terminal(place)), End::Hub),
        };
        edge.links.has_room(self.now, port, to, octets)
    }

    /// Draws the losses of a frame that has passed the return chain. A frame that is not lost reaches the near end and
    /// the other ends that hear it.
    pub(super) fn leave(&mut self, edge: u32, frame: Frame<Packet<P::Message>>) {
        let terminal = frame.message.entered;
        let later = self.now + frame.spacing;
        let octets = frame.octets(0);
        let mut lost = std::mem::take(&mut self.lost);
        let loses = self.layout.edges[edge as usize].loses(self.now, octets, terminal, &mut lost);
        self.lost = lost;
        let (head, tail) = frame.split(NonZeroU32::MIN);
        if let Some(frame) = tail {
            self.plan(later, Event::Leave { edge, frame });
        }
        if loses {
            self.note_lost(&head.message);
        } else {
            self.reached(edge, End::Hub, EVERYONE, head);
        }
    }

    /// Schedules the arrival of a frame at ends of an edge: at `at`, and at far ends later by their delays.
    fn reach(&mut self, at: Time, edge: u32, to: End, frame: Frame<Packet<P::Message>>) {
        let state = &self.layout.edges[edge as usize];
        let leaves = frame.message.leaves;
        if state.together || leaves == NEAR {
            return self.plan(at, Event::Reach { edge, to, place: EVERYONE, frame });
        }
        if leaves != EVERYONE {
            let at = at + state.far[leaves as usize].delay;
            return self.plan(at, Event::Reach { edge, to, place: leaves, frame });
        }
        if to == End::Hub {
            self.plan(at, Event::Reach { edge, to, place: NEAR, frame: frame.clone() });
            if self.layout.shape.is_relayed(edge) {
                return;
            }
        }
        for place in 0..self.layout.edges[edge as usize].far.len() as u32 {
            let at = at + self.layout.edges[edge as usize].far[place as usize].delay;
            self.plan(at, Event::Reach { edge, to, place, frame: frame.clone() });
        }
    }

    /// Delivers a frame to one end of an edge, or to all ends that it is for.
    pub(super) fn reached(&mut self, edge: u32, to: End, place: u32, frame: Frame<Packet<P::Message>>) {
        let leaves = if place == EVERYONE { frame.message.leaves } else { place };
        if leaves != EVERYONE {
            return self.arrive(edge, leaves, frame);
        }
        let from = match frame.message.entered {
            NEAR => NEAR,
            terminal => self.layout.edges[edge as usize].place_of(terminal),
        };
        let ends = self.layout.edges[edge as usize].far.len() as u32;
        let (near, far) = match to {
            End::Hub => (true, !self.layout.shape.is_relayed(edge)),
            End::Terminal => (false, true),
        };
        if near && !far {
            return self.arrive(edge, NEAR, frame);
        }
        if near {
            self.arrive(edge, NEAR, frame.clone());
        }
        // A group sees to it that only the receiver that sent the message does not hear it.
        let hears = |tree: &Self, place: u32| place != from || tree.is_group(edge, place);
        let Some(last) = (0..ends).rev().find(|&place| hears(self, place)) else { return };
        for place in 0..last {
            if hears(self, place) {
                self.arrive(edge, place, frame.clone());
            }
        }
        self.arrive(edge, last, frame);
    }

    /// Returns `true` if receivers are at an end of an edge.
    fn is_group(&self, edge: u32, place: u32) -> bool {
        self.layout.nodes[self.layout.shape.node_at(edge, place) as usize].group.is_some()
    }

    /// Delivers a frame to one end of an edge.
    fn arrive(&mut self, edge: u32, place: u32, frame: Frame<Packet<P::Message>>) {
        let node = self.layout.shape.node_at(edge, place);
        if let Some(group) = self.layout.nodes[node as usize].group {
            return self.reach_receivers(node, group as usize, frame);
        }
        if place == NEAR || self.layout.edges[edge as usize].far[place as usize].losses.is_none() {
            return self.pass(edge, place, frame);
        }
        // Other frames may arrive here before the rest of a run.
        let known = if frame.segments() == 1 { Time::NEVER } else { self.alone_until(edge, End::Terminal) };
        let most = self.cut.choose(frame.due_before(self.now, known), &mut self.cuts).get();
        let octets = frame.octets(0);
        let state = &mut self.layout.edges[edge as usize];
        let Some(losses) = &mut state.far[place as usize].losses else { return };
        // The last datagram of a run may be shorter, and its loss may depend on its length.
        let alike = most.min(frame.segments() - 1);
        let spared = if alike > 1 { losses.spared(octets, alike) } else { 0 };
        let count = NonZeroU32::new(spared).unwrap_or(NonZeroU32::MIN);
        let gone = spared == 0 && draws(losses.as_mut(), self.now, octets, &mut self.lost);
        state.lost[End::Terminal.way()] += u64::from(gone);
        let later = self.now + frame.spacing * u64::from(count.get());
        let (head, tail) = frame.split(count);
        if let Some(frame) = tail {
            self.plan(later, Event::Reach { edge, to: End::Terminal, place, frame });
        }
        if gone {
            self.note_lost(&head.message);
        } else {
            self.pass(edge, place, head);
        }
    }

    /// Counts a packet that was lost on an edge, if it belongs to a flow.
    pub(super) fn note_lost(&mut self, packet: &Packet<P::Message>) {
        if let Body::Flow { flow, .. } = packet.body {
            self.flow_lost(flow, packet);
        }
    }

    /// Schedules for `at` the forwarding of a frame from an end of an edge that it has reached.
    pub(super) fn pass_later(&mut self, at: Time, edge: u32, place: u32, frame: Frame<Packet<P::Message>>) {
        self.plan(at, Event::Pass { edge, place, frame });
    }
}
