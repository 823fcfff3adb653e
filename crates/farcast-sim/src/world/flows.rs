//! Flows of other protocols: their state and timers.

use farcast_core::{Among, Losses, Time};
use farcast_delivery::Protocol;

use super::{FlowPacket, FlowTimer, Layout, World, hub_address, receiver_address};
use crate::traffic::{End, Flow, FlowMessage};

/// Configuration of a flow between its hub and its terminal.
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
    /// Loss process, for one receiver, of packets to the terminal behind a star's forward chain. A tree's edges have
    /// losses of their own.
    pub forward_losses: Box<dyn Losses>,
    /// Loss process, for one receiver, of packets to the hub behind a star's return path.
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
pub(crate) struct Directed {
    pub(crate) passage: Passage,
    losses: Box<dyn Losses>,
}

impl Directed {
    /// Counts a packet of `octets` that leaves the links at `at`, and returns `true` if it is lost there.
    pub(crate) fn loses(&mut self, at: Time, octets: u64, lost: &mut Vec<u32>) -> bool {
        lost.clear();
        self.losses.draw(at, octets, Among::All, lost);
        self.passage.lost += u64::from(!lost.is_empty());
        !lost.is_empty()
    }
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
    pub(crate) directions: [Directed; 2],
    /// Time at which the flow next wants to be woken.
    pub(crate) due: Time,
    /// Time of the event that wakes the flow: at `due` or before.
    pub(crate) wake: Time,
    /// `true` if the flow has an end that it has not reached.
    pub(crate) unended: bool,
}

impl FlowState {
    pub(crate) fn new(config: FlowConfig) -> Self {
        let directed = |losses| Directed { passage: Passage::default(), losses };
        Self {
            name: config.name,
            source: config.source,
            unended: config.flow.has_end(),
            flow: config.flow,
            start: config.start,
            stop: config.stop,
            overhead: config.overhead,
            local_congestion: config.local_congestion,
            directions: [directed(config.forward_losses), directed(config.return_losses)],
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
        &self.directions[direction(end)].passage
    }

    /// Returns `true` if the flow neither has an end nor is stopped.
    pub(crate) fn is_endless(&self) -> bool {
        self.stop.is_none() && !self.flow.has_end()
    }
}

/// Returns the index of the direction that leads to `end`.
pub(crate) const fn direction(end: End) -> usize {
    match end {
        End::Terminal => 0,
        End::Hub => 1,
    }
}

impl<P: Protocol, L: Layout<P>> World<'_, P, L> {
    /// Returns the flows, in the order in which they were given.
    pub fn flows(&self) -> &[FlowState] {
        &self.flows
    }

    /// Schedules the starts and stops of flows.
    pub(super) fn schedule_flows(&mut self) {
        for number in 0..self.flows.len() as u32 {
            let FlowState { start, stop, .. } = self.flows[number as usize];
            L::schedule_flow(self, start, FlowTimer::Start(number));
            if let Some(stop) = stop {
                L::schedule_flow(self, stop, FlowTimer::Stop(number));
            }
        }
    }

    /// Handles a timer of a flow.
    pub(crate) fn expire_flow(&mut self, timer: FlowTimer) {
        match timer {
            FlowTimer::Start(number) => self.flows[number as usize].flow.start(self.now),
            FlowTimer::Stop(number) => self.flows[number as usize].flow.stop(self.now),
            FlowTimer::Wake(number) => {
                let state = &mut self.flows[number as usize];
                if state.wake != self.now {
                    return;
                }
                state.wake = Time::NEVER;
                if state.due <= self.now {
                    state.flow.handle_timeout(self.now);
                }
            }
        }
        let (FlowTimer::Start(number) | FlowTimer::Stop(number) | FlowTimer::Wake(number)) = timer;
        self.drain_flow(number);
    }

    /// Handles the timer of a flow that is due: due timers come before arrivals of the same instant.
    pub(crate) fn wake_flow_if_due(&mut self, number: u32) {
        let state = &mut self.flows[number as usize];
        if state.due <= self.now {
            state.flow.handle_timeout(self.now);
            self.drain_flow(number);
        }
    }

    /// Sends the packets that leave now, and schedules the flow's next timer.
    pub(crate) fn drain_flow(&mut self, number: u32) {
        while let Some((from, message)) = self.flows[number as usize].flow.poll_transmit(self.now) {
            self.watch_flow(number, from, &message, false);
            L::send_flow(self, number, from, &message);
        }
        let state = &mut self.flows[number as usize];
        state.due = state.flow.poll_timeout();
        // A wake that comes too early costs less than one for each time that the timer moves.
        if state.due < state.wake {
            state.wake = state.due;
            let due = state.due;
            L::schedule_flow(self, due, FlowTimer::Wake(number));
        }
        let state = &mut self.flows[number as usize];
        if state.unended && state.flow.completed().is_some() {
            state.unended = false;
            self.unended -= 1;
        }
    }

    /// Reports a packet at `end` to the observer: one that arrives there, or one that leaves.
    #[inline]
    pub(crate) fn watch_flow(&mut self, number: u32, end: End, message: &FlowMessage, arrives: bool) {
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
