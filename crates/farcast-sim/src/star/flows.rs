//! Flows in a world: what they send, what reaches them, and when they are woken.

use farcast_core::engine::Message;
use farcast_core::stage::{Fate, Frame, Port};
use farcast_core::{Among, Losses, Time};
use farcast_delivery::Protocol;
use farcast_link::chain::Entry;

use super::{Event, FlowEvent, FlowPacket, Flying, Packet, Star, hub_address, receiver_address};
use crate::traffic::{End, Flow, FlowMessage};

/// A flow between the hub and a terminal of its own.
pub struct FlowConfig {
    /// What it is called.
    pub name: String,
    /// The end that its data comes from.
    pub source: End,
    /// Both ends.
    pub flow: Box<dyn Flow>,
    /// When it starts.
    pub start: Time,
    /// When it stops, if it does not go on.
    pub stop: Option<Time>,
    /// Octets of a packet on the links besides its `wire_len`.
    pub overhead: u16,
    /// Whether each of its hosts is told what its own queue, the first stage's, has no room for.
    pub local_congestion: bool,
    /// Which packets to its terminal are lost behind the forward chain: a process for one receiver.
    pub forward_losses: Box<dyn Losses>,
    /// Which packets to the hub are lost behind the way back: a process for one receiver.
    pub return_losses: Box<dyn Losses>,
}

/// What became of a flow's packets in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passage {
    /// Packets that entered the links.
    pub entered: u64,
    /// Packets that the loss process took behind them.
    pub lost: u64,
    /// Packets that have left the last stage, or are between two.
    pub(crate) left: u64,
}

impl Passage {
    /// Packets that stages dropped. What a BGAN return link, whose terminals ask for capacity, still holds when the
    /// replication is over counts as well.
    pub const fn dropped(&self) -> u64 {
        self.entered.saturating_sub(self.left)
    }
}

/// A direction of a flow.
pub(crate) struct Way {
    pub(crate) passage: Passage,
    losses: Box<dyn Losses>,
}

/// A flow as it stands.
pub struct FlowState {
    name: String,
    source: End,
    pub(crate) flow: Box<dyn Flow>,
    start: Time,
    stop: Option<Time>,
    pub(crate) overhead: u16,
    pub(crate) local_congestion: bool,
    /// To the terminal, and to the hub.
    pub(crate) ways: [Way; 2],
    /// When it next wants to be woken.
    pub(crate) due: Time,
    /// When it will be: at `due` or before.
    pub(crate) wake: Time,
    /// Whether it has an end that it has not reached.
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

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The end that its data comes from.
    pub fn source(&self) -> End {
        self.source
    }

    /// Both ends.
    pub fn flow(&self) -> &dyn Flow {
        self.flow.as_ref()
    }

    /// When it starts.
    pub fn start(&self) -> Time {
        self.start
    }

    /// When it stops, if it does.
    pub fn stop(&self) -> Option<Time> {
        self.stop
    }

    /// What became of the packets that went to `end`.
    pub fn passage(&self, end: End) -> &Passage {
        &self.ways[to(end)].passage
    }

    /// A packet of it, just counted on its way to `end`, as it is on the links.
    fn frame<M: Message>(&self, number: u32, end: End, message: FlowMessage) -> Frame<Packet<M>> {
        let identification = self.ways[to(end)].passage.entered as u16;
        Frame::new(Packet::Flow { flow: number, identification, message }, self.overhead)
    }

    /// Whether it neither has an end nor is stopped.
    pub(crate) fn is_endless(&self) -> bool {
        self.stop.is_none() && !self.flow.has_end()
    }
}

/// The place of the direction that leads to `end`.
pub(crate) const fn to(end: End) -> usize {
    match end {
        End::Terminal => 0,
        End::Hub => 1,
    }
}

impl<P: Protocol> Star<'_, P> {
    /// The flows, in the order in which they were given.
    pub fn flows(&self) -> &[FlowState] {
        &self.flows
    }

    /// Plans the beginnings and ends of flows.
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

    /// The flow was to be woken now; its timer may have moved since.
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

    /// A packet has passed the links to `end`.
    pub(super) fn reach_flow(&mut self, number: u32, end: End, packet: Flying) {
        let taken = self.reach_end(number, end, packet);
        self.flights.end(packet);
        if taken {
            self.drain_flow(number);
        }
    }

    /// A packet is taken where it was to go, unless it is lost there; whether it was.
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
            // Timers that are due go before what arrives at the same instant.
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

    /// Sends what leaves, and notes when the flow wants to be woken.
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

    /// A packet enters the links at `from`.
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

    /// Where the links begin for what leaves `from`.
    fn port_at(&self, number: u32, from: End) -> Port {
        match from {
            End::Hub => Port::Hub,
            End::Terminal => Port::Terminal(self.receivers + number),
        }
    }

    /// A packet of so many octets passes the links in one go where that is known at once, and as a frame otherwise.
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

    /// Whether the first stage would take a packet from `from`.
    fn has_room(&mut self, number: u32, from: End, octets: u64) -> bool {
        let port = self.port_at(number, from);
        self.links.has_room(self.now, port, from.other(), octets)
    }

    /// A packet leaves the last stage at `at`.
    pub(super) fn leave_links(&mut self, at: Time, flow: u32, end: End, message: &FlowMessage) {
        self.flows[flow as usize].ways[to(end)].passage.left += 1;
        let at = if end == End::Hub { at + self.back.delay.unwrap_or_default() } else { at };
        self.flow_queue.push(at, FlowEvent::Reach { flow, end, packet: self.flights.begin(*message) });
    }

    /// Counts what is in a stage, or between two, when the replication is over: it was not dropped.
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

    /// Tells the observer of a packet at `end`.
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
