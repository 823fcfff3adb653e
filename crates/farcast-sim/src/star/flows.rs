//! Flows in a star: their packets and timers.

use farcast_core::engine::Message;
use farcast_core::stage::{Fate, Frame, Port};
use farcast_core::{Among, Losses, Time};
use farcast_delivery::Protocol;
use farcast_link::chain::Entry;

use super::{Event, FlowEvent, FlowPacket, Flying, Packet, Star, hub_address, receiver_address};
use crate::traffic::{End, Flow, FlowMessage};

/// Configuration of a flow between the hub and a terminal of its own.
pub struct FlowConfig {
    /// Name of the flow.
    pub name: String,
    /// End that the flow's data comes from.
    pub source: End,
    /// Protocol at both ends.
    pub flow: Box<dyn Flow>,
    /// Time at which the flow starts.
    pub start: Time,
    /// Time at which the flow stops, if it does.
    pub stop: Option<Time>,
    /// Octets that the links add to the `wire_len` of each packet.
    pub overhead: u16,
    /// `true` if each host learns of packets that its own queue, the first stage's, has no room for.
    pub local_congestion: bool,
    /// Loss process, for one receiver, of packets to the terminal behind the forward chain.
    pub forward_losses: Box<dyn Losses>,
    /// Loss process, for one receiver, of packets to the hub behind the return path.
    pub return_losses: Box<dyn Losses>,
}

/// Counters of a flow's packets in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passage {
    /// Packets that entered the links.
    pub entered: u64,
    /// Packets that the loss process took behind the links.
    pub lost: u64,
    /// Packets that have left the last stage, or are between two stages.
    pub(crate) left: u64,
}

impl Passage {
    /// Returns the number of packets that stages dropped. Packets that a BGAN return link, whose terminals ask for
    /// capacity, still holds at the end of the replication count as dropped.
    pub const fn dropped(&self) -> u64 {
        self.entered.saturating_sub(self.left)
    }
}

/// Counters and loss process of one direction of a flow.
pub(crate) struct Way {
    pub(crate) passage: Passage,
    losses: Box<dyn Losses>,
}

/// State of a flow.
pub struct FlowState {
    name: String,
    source: End,
    pub(crate) flow: Box<dyn Flow>,
    start: Time,
    stop: Option<Time>,
    pub(crate) overhead: u16,
    pub(crate) local_congestion: bool,
    /// Directions: to the terminal, and to the hub.
    pub(crate) ways: [Way; 2],
    /// Time at which the flow next wants to be woken.
    pub(crate) due: Time,
    /// Time of the event that wakes the flow: at `due` or before.
    pub(crate) wake: Time,
    /// `true` if the flow has an end that it has not reached.
    pub(crate) unended: bool,
}

impl FlowState {
    pub(crate) fn new(config: FlowConfig) -> Self {
        let way = |losses| Way { passage: Passage::default(), losses };
        Self {
            name: config.name,
            source: config.source,
            unended: config.flow.has_end(),
            flow: config.flow,
            start: config.start,
            stop: config.stop,
            overhead: config.overhead,
            local_congestion: config.local_congestion,
            ways: [way(config.forward_losses), way(config.return_losses)],
            due: Time::NEVER,
            wake: Time::NEVER,
        }
    }

    /// Returns the flow's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the end that the flow's data comes from.
    pub fn source(&self) -> End {
        self.source
    }

    /// Returns the protocol at both ends.
    pub fn flow(&self) -> &dyn Flow {
        self.flow.as_ref()
    }

    /// Returns the time at which the flow starts.
    pub fn start(&self) -> Time {
        self.start
    }

    /// Returns the time at which the flow stops, if it does.
    pub fn stop(&self) -> Option<Time> {
        self.stop
    }

    /// Returns the counters of the packets that went to `end`.
    pub fn passage(&self, end: End) -> &Passage {
        &self.ways[to(end)].passage
    }

    /// Returns the frame of a packet to `end` that has just been counted.
    fn frame<M: Message>(&self, number: u32, end: End, message: FlowMessage) -> Frame<Packet<M>> {
        let identification = self.ways[to(end)].passage.entered as u16;
        Frame::new(Packet::Flow { flow: number, identification, message }, self.overhead)
    }

    /// Returns `true` if the flow neither has an end nor is stopped.
    pub(crate) fn is_endless(&self) -> bool {
        self.stop.is_none() && !self.flow.has_end()
    }
}

/// Returns the index of the direction that leads to `end`.
pub(crate) const fn to(end: End) -> usize {
    match end {
        End::Terminal => 0,
        End::Hub => 1,
    }
}

impl<P: Protocol> Star<'_, P> {
    /// Returns the flows, in the order in which they were given.
    pub fn flows(&self) -> &[FlowState] {
        &self.flows
    }

    /// Schedules the starts and stops of flows.
    pub(super) fn schedule_flows(&mut self) {
        for (number, flow) in (0..).zip(&self.flows) {
            self.flow_queue.push(flow.start, FlowEvent::Start(number));
            if let Some(stop) = flow.stop {
                self.flow_queue.push(stop, FlowEvent::Stop(number));
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
        state.wake = Time::NEVER;
        if state.due <= self.now {
            state.flow.handle_timeout(self.now);
        }
        self.drain_flow(number);
    }

    /// Delivers a packet that has passed the links to `end`.
    pub(super) fn reach_flow(&mut self, number: u32, end: End, packet: Flying) {
        let taken = self.reach_end(number, end, packet);
        self.flights.end(packet);
        if taken {
            self.drain_flow(number);
        }
    }

    /// Delivers a packet to `end`, unless it is lost there. Returns `true` if it was delivered.
    fn reach_end(&mut self, number: u32, end: End, packet: Flying) -> bool {
        let state = &mut self.flows[number as usize];
        let message = self.flights.of(packet);
        let way = &mut state.ways[to(end)];
        let octets = message.wire_len(0) as u64 + u64::from(state.overhead);
        self.lost.clear();
        way.losses.draw(self.now, octets, Among::All, &mut self.lost);
        if !self.lost.is_empty() {
            way.passage.lost += 1;
            return false;
        }
        if state.due <= self.now {
            // Due timers come before arrivals of the same instant.
            state.flow.handle_timeout(self.now);
            self.drain_flow(number);
        }
        if self.observer.is_some() {
            let message = *self.flights.of(packet);
            self.watch(number, end, &message, true);
        }
        self.flows[number as usize].flow.handle(self.now, end, self.flights.of(packet));
        true
    }

    /// Sends the packets that leave now, and schedules the flow's next timer.
    fn drain_flow(&mut self, number: u32) {
        while let Some((from, message)) = self.flows[number as usize].flow.poll_transmit(self.now) {
            self.depart(number, from, &message);
        }
        let state = &mut self.flows[number as usize];
        state.due = state.flow.poll_timeout();
        // A wake that comes too early costs less than one for each time that the timer moves.
        if state.due < state.wake {
            state.wake = state.due;
            self.flow_queue.push(state.due, FlowEvent::Wake(number));
        }
        if state.unended && state.flow.completed().is_some() {
            state.unended = false;
            self.unended -= 1;
        }
    }

    /// Sends a packet into the links at `from`.
    fn depart(&mut self, number: u32, from: End, message: &FlowMessage) {
        if self.observer.is_some() {
            self.watch(number, from, message, false);
        }
        let state = &mut self.flows[number as usize];
        state.ways[to(from.other())].passage.entered += 1;
        let octets = message.wire_len(0) as u64 + u64::from(state.overhead);
        let refused = state.local_congestion && !self.has_room(number, from, octets);
        match from {
            End::Hub => {
                self.tally.forward_datagrams += 1;
                self.tally.forward_octets += octets;
            }
            End::Terminal => {
                self.tally.return_datagrams += 1;
                self.tally.return_octets += octets;
            }
        }
        self.enter_links(number, from, message, octets);
        if refused {
            self.flows[number as usize].flow.refused(self.now, from, message);
        }
    }

    /// Returns the port at which packets from `from` enter the links.
    fn port_at(&self, number: u32, from: End) -> Port {
        match from {
            End::Hub => Port::Hub,
            End::Terminal => Port::Terminal(self.receivers + number),
        }
    }

    /// Sends a packet of `octets` into the links. The packet passes in one go where its fate is known at once, and as a
    /// frame otherwise.
    fn enter_links(&mut self, number: u32, from: End, message: &FlowMessage, octets: u64) {
        let (port, end) = (self.port_at(number, from), from.other());
        match self.links.pass(self.now, port, end, octets) {
            Some(Fate::Leaves(at)) => self.leave_links(at, number, end, message),
            Some(Fate::Dropped) => {}
            None => {
                let frame = self.flows[number as usize].frame(number, end, *message);
                self.enter(Entry::new(end, frame));
            }
        }
    }

    /// Returns `true` if the first stage would take a packet from `from`.
    fn has_room(&mut self, number: u32, from: End, octets: u64) -> bool {
        let port = self.port_at(number, from);
        self.links.has_room(self.now, port, from.other(), octets)
    }

    /// Schedules the arrival of a packet that leaves the last stage at `at`.
    pub(super) fn leave_links(&mut self, at: Time, flow: u32, end: End, message: &FlowMessage) {
        self.flows[flow as usize].ways[to(end)].passage.left += 1;
        let at = if end == End::Hub { at + self.back.delay.unwrap_or_default() } else { at };
        self.flow_queue.push(at, FlowEvent::Reach { flow, end, packet: self.flights.begin(*message) });
    }

    /// Counts packets that are in a stage or between two at the end of the replication: they were not dropped.
    pub(super) fn count_under_way(&mut self) {
        for event in self.queue.iter() {
            let Event::Enter(entry) = event else { continue };
            if let Packet::Flow { flow, .. } = entry.message() {
                self.flows[*flow as usize].ways[to(entry.to())].passage.left += 1;
            }
        }
        let flows = &mut self.flows;
        self.links.chains().each_held(|end, packet| {
            if let Packet::Flow { flow, .. } = packet {
                flows[*flow as usize].ways[to(end)].passage.left += 1;
            }
        });
    }

    /// Reports a packet at `end` to the observer.
    fn watch(&mut self, number: u32, end: End, message: &FlowMessage, arrives: bool) {
        let Some(observer) = &mut self.observer else { return };
        let (hub, terminal) = (hub_address(), receiver_address(self.receivers + number).ip());
        let (source, destination) =
            if (end == End::Hub) == arrives { (terminal, hub) } else { (hub, terminal) };
        let packet = FlowPacket { terminal: self.receivers + number, source, destination, message };
        if arrives {
            observer.flow_reached(self.now, end, &packet);
        } else {
            observer.flow_sent(self.now, end, &packet);
        }
    }
}
