//! The link in virtual time: packets enter at the time of their arrival and leave when the link's stages release them,
//! even if the driver wakes late.
//!
//! A [`Link`] owns no clock. Its driver [advances](Link::advance) it to now before a packet enters, so that every
//! earlier event happens at its own time. The driver then writes the packets that leave. A late wake-up delays the
//! packets of that instant and shifts none behind them: release times follow from link time, never from real releases.
//!
//! # Losses
//!
//! The link loses the packets that a simulation of the same link with the same seed loses, if the same packets enter at
//! the same times. Stages and losses are those of `farcast-scenario`, and draw from [streams] of the same names. A
//! group of terminals is one channel: one process behind the last stage decides for all of them about a packet to all.
//! For packets from terminals, one process decides for all terminals if it has no memory; else each terminal has its
//! own. So a terminal's losses depend on all packets of its channel, not on its own alone.
//!
//! [streams]: farcast_scenario::streams

mod causes;
mod change;
mod counts;
mod fates;

use farcast_capture::recorder::Recorder;
use farcast_core::stage::{Figure, Frame, Port};
use farcast_core::{Among, EventQueue, Probability, Time};
use farcast_link::End;
use farcast_link::chain::{ChainOwner, Chains, Driver, Entry, follow};
use farcast_scenario::Links;
use farcast_scenario::receivers::Group;
use farcast_scenario::streams::Streams;

use causes::Causes;
pub use causes::PacketFate;
pub use change::{ChangeError, WaySettings};
pub use counts::{Counts, Sum, TerminalCounts};
use fates::{BackFates, LossChannel};

use crate::host::HostPosition;
use crate::pool::{Label, Packet, Pool};

/// Settings of a link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Stages of the link, and the losses behind them.
    pub links: Links,
    /// Receivers, in groups of equal ones; their terminals have numbers from 0.
    pub groups: Vec<Group>,
    /// Number of terminals after those of the groups. Each loses packets as the terminal of a simulated flow does.
    pub flows: u32,
    /// Seed of all random draws.
    pub seed: u64,
}

impl LinkConfig {
    /// Returns the number of terminals.
    pub fn terminals(&self) -> u32 {
        self.groups.iter().fold(self.flows, |sum, group| sum.saturating_add(group.receivers))
    }

    /// Returns the random streams of the link.
    fn streams(&self) -> Streams {
        Streams::of_emulation(self.seed)
    }
}

/// Most octets inside the link at once; a packet beyond is dropped. A queue without a limit ends here.
pub const MOST_OCTETS: u64 = 256 << 20;

/// Octets counted for each packet besides its own.
const PACKET_OCTETS: u64 = 256;

/// Event of the link.
#[derive(Debug)]
enum Event {
    /// A packet enters a stage behind the first.
    Enter(Entry<Packet>),
    /// A stage's deadline.
    Wake(u32),
    /// A packet reaches the terminals of a channel.
    FanOut { channel: u32, packet: Packet },
    /// A packet has passed the return direction.
    Reach(Packet),
}

/// A packet that leaves the link.
#[derive(Debug)]
pub struct Departure {
    /// Link time of the departure.
    pub at: Time,
    /// Host whose device gets the packet.
    pub to: HostPosition,
    /// The packet.
    pub packet: Packet,
}

/// The link, with all its terminals.
pub struct Link {
    config: LinkConfig,
    stages: Driver<Packet>,
    queue: EventQueue<Event>,
    now: Time,
    terminals: Vec<TerminalCounts>,
    channels: Vec<LossChannel>,
    back_fates: BackFates,
    pool: Pool,
    entered: u64,
    counts: [Counts; 2],
    causes: Causes,
    /// Probability of loss behind each direction, if packets are lost independently of each other.
    per: [Option<Probability>; 2],
    /// Times until which everything is lost, in each direction.
    outages: [Time; 2],
    /// Number of changes of losses: each change draws anew.
    changes: u64,
    recorder: Option<Recorder>,
    /// Kept for its memory.
    gone: Vec<Label>,
}

impl Link {
    /// Creates a link at time 0, with nothing in it. Records the fate of each packet in `recorder`.
    pub fn new(config: LinkConfig, recorder: Option<Recorder>) -> Self {
        let terminals = config.terminals();
        let chains = config.links.chains(terminals, true, config.streams());
        let mut recorder = recorder;
        let causes = Causes::new(chains.all().map(|(name, _)| name), recorder.as_mut());
        Self {
            stages: Driver::new(chains),
            queue: EventQueue::default(),
            now: Time::ZERO,
            terminals: vec![TerminalCounts::default(); terminals as usize],
            channels: fates::channels(&config),
            back_fates: BackFates::new(&config),
            pool: Pool::new(),
            entered: 0,
            counts: [Counts::default(); 2],
            causes,
            per: [config.links.losses.per(), config.links.back_losses.per()],
            outages: [Time::ZERO; 2],
            changes: 0,
            recorder,
            gone: Vec::new(),
            config,
        }
    }

    /// Returns the settings of the link.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Returns the time of the next event; [`Time::NEVER`] if none comes before a packet enters.
    pub fn next_at(&self) -> Time {
        self.queue.next_at()
    }

    /// Lets a packet of `octets` enter at `now`, to which the link has been advanced. It enters at the hub, for
    /// `terminal` or for all terminals, or at a terminal, for the hub.
    pub fn enter(&mut self, now: Time, to: End, terminal: Option<u32>, octets: &[u8]) {
        self.now = self.now.max(now);
        let label =
            Label { number: self.entered, to, terminal, entered: self.now, octets: octets.len() as u32 };
        self.entered += 1;
        self.counts[to.way()].entered.count(octets.len());
        if octets.len() > usize::from(self.config.links.mtu) {
            self.counts[to.way()].dropped.count(octets.len());
            return self.note(&label, None, None, PacketFate::MTU);
        }
        let inside: u64 = self.pool.inside().iter().map(|sum| sum.octets + PACKET_OCTETS * sum.packets).sum();
        if inside + octets.len() as u64 > MOST_OCTETS {
            self.counts[to.way()].dropped.count(octets.len());
            return self.note(&label, None, None, PacketFate::MEMORY);
        }
        let packet = self.pool.packet(label, octets);
        self.pass(Entry::new(to, Frame::new(packet, 0)));
    }

    /// Handles all events due at `now` or before, in order and each at its own time. Calls `each` at once for every
    /// packet that reaches a device.
    pub fn advance(&mut self, now: Time, mut each: impl FnMut(&mut Self, Departure)) {
        while self.queue.next_at() <= now {
            let Some((at, event)) = self.queue.pop() else { break };
            self.now = at;
            match event {
                Event::Enter(entry) => self.pass(entry),
                Event::Wake(stage) => {
                    self.stages.wake(at, stage);
                    follow(self);
                }
                Event::FanOut { channel, packet } => {
                    self.fan_out(channel, &packet, &mut each);
                    packet.leave();
                }
                Event::Reach(packet) => {
                    if let Some(departure) = self.reach(packet) {
                        each(self, departure);
                    }
                }
            }
        }
        self.now = self.now.max(now);
    }

    /// Counts a packet that left the link and was written at `left`, or that the device refused if `left` is `None`.
    pub fn delivered(&mut self, departure: Departure, left: Option<Time>) {
        let Departure { at, to, packet } = departure;
        let mut label = *packet.label();
        if let HostPosition::Terminal(terminal) = to {
            label.terminal = Some(terminal);
        }
        packet.leave();
        let (way, octets) = (label.to.way(), label.octets as usize);
        if left.is_some() {
            self.counts[way].delivered.count(octets);
            self.of_terminal(&label, |counts, way| counts.delivered[way].count(octets));
            self.note(&label, Some(at), left, PacketFate::NONE);
        } else {
            self.counts[way].not_taken.count(octets);
            self.note(&label, Some(at), None, PacketFate::DEVICE);
        }
    }

    /// Lets a packet enter a stage.
    fn pass(&mut self, entry: Entry<Packet>) {
        let port = match entry.to() {
            End::Terminal => Port::Hub,
            End::Hub => Port::Terminal(entry.message().label().terminal.unwrap_or(0)),
        };
        // A packet is a single segment that cannot be cut.
        self.stages.enter(self.now, port, entry, Time::NEVER, |most| most);
        follow(self);
    }

    /// Counts and records the packets that a stage has dropped.
    fn tell_gone(&mut self, stage: u32) {
        self.pool.gone(&mut self.gone);
        if self.gone.is_empty() {
            return;
        }
        let mut gone = std::mem::take(&mut self.gone);
        let mut reasons = [End::Terminal, End::Hub].map(|to| {
            let count = gone.iter().filter(|label| label.to == to).count() as u64;
            let stage_itself = self.stages.chains().get(stage);
            let totals =
                if to == End::Terminal { stage_itself.totals() } else { stage_itself.return_totals() };
            self.causes.of_stage(stage, to.way(), totals, count)
        });
        for label in gone.drain(..) {
            let cause = reasons[label.to.way()].next(stage);
            let octets = label.octets as usize;
            let counts = &mut self.counts[label.to.way()];
            if cause.is_limit() { &mut counts.dropped } else { &mut counts.lost }.count(octets);
            if cause.is_given_up() {
                counts.given_up.count(octets);
            }
            self.note(&label, None, None, cause);
        }
        self.gone = gone;
    }

    /// Sends a packet that leaves the last stage for the terminals to the channels of its receivers.
    fn leave_forward(&mut self, at: Time, packet: Packet) {
        let count = self.channels.len();
        let of = |terminal| {
            let number =
                self.channels.partition_point(|channel| channel.first + channel.terminals <= terminal);
            number..count.min(number + 1)
        };
        for channel in packet.label().terminal.map_or(0..count, of) {
            let event = Event::FanOut { channel: channel as u32, packet: packet.clone() };
            self.queue.push(at + self.channels[channel].delay, event);
        }
        packet.leave();
    }

    /// Draws for each receiver in a channel whether it gets or loses a packet.
    fn fan_out(&mut self, channel: u32, packet: &Packet, each: &mut impl FnMut(&mut Self, Departure)) {
        let (at, label) = (self.now, *packet.label());
        let LossChannel { first, terminals, fates, .. } = &mut self.channels[channel as usize];
        let (first, all) = (*first, 0..*terminals);
        let alone = label.terminal.map(|terminal| terminal - first);
        let among = alone.as_ref().map_or(Among::All, |one| Among::These(std::slice::from_ref(one)));
        fates.draw(at, label.octets.into(), among);
        let live = (at < self.outages[End::Terminal.way()]).then_some(PacketFate::OUTAGE);
        for number in alone.map_or(all, |one| one..one + 1) {
            let terminal = first + number;
            match live.or_else(|| self.channels[channel as usize].fates.cause(number)) {
                None => {
                    each(
                        self,
                        Departure { at, to: HostPosition::Terminal(terminal), packet: packet.clone() },
                    );
                }
                Some(cause) => self.lose_at(terminal, &label, cause),
            }
        }
    }

    /// Delivers a packet that has passed the return direction to the hub, unless it is lost.
    fn reach(&mut self, packet: Packet) -> Option<Departure> {
        let (at, label) = (self.now, *packet.label());
        let terminal = label.terminal.unwrap_or(0);
        let drawn = self.back_fates.draw(at, label.octets.into(), terminal);
        let live = (at < self.outages[End::Hub.way()]).then_some(PacketFate::OUTAGE);
        let Some(cause) = live.or(drawn) else {
            return Some(Departure { at, to: HostPosition::Hub, packet });
        };
        packet.leave();
        self.lose_at(terminal, &label, cause);
        None
    }

    /// Counts and records a packet that is lost behind the last stage, on the way to or from a terminal.
    fn lose_at(&mut self, terminal: u32, label: &Label, cause: PacketFate) {
        let (way, octets) = (label.to.way(), label.octets as usize);
        let label = Label { terminal: Some(terminal), ..*label };
        self.of_terminal(&label, |counts, way| counts.lost[way].count(octets));
        self.counts[way].lost.count(octets);
        self.note(&label, Some(self.now), None, cause);
    }

    fn of_terminal(&mut self, label: &Label, count: impl FnOnce(&mut TerminalCounts, usize)) {
        if let Some(counts) = label.terminal.and_then(|number| self.terminals.get_mut(number as usize)) {
            count(counts, label.to.way());
        }
    }

    /// Records the fate of a packet.
    fn note(&mut self, label: &Label, planned: Option<Time>, left: Option<Time>, cause: PacketFate) {
        if let Some(recorder) = &mut self.recorder {
            self.causes.record(recorder, label, planned, left, cause);
        }
    }

    /// Returns the recorder, for events that only the driver sees.
    pub fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_mut()
    }

    /// Ends the link, and records packets still inside as held. Returns the recorder, to be finished.
    pub fn end(&mut self) -> Option<Recorder> {
        while let Some((_, event)) = self.queue.pop() {
            let packet = match event {
                Event::Enter(entry) => entry.into_message(),
                Event::FanOut { packet, .. } | Event::Reach(packet) => packet,
                Event::Wake(_) => continue,
            };
            // A packet with several copies is held once.
            drop(packet);
        }
        self.stages = Driver::new(Chains::new());
        self.pool.gone(&mut self.gone);
        for label in std::mem::take(&mut self.gone) {
            self.counts[label.to.way()].held.count(label.octets as usize);
            self.note(&label, None, None, PacketFate::HELD);
        }
        self.recorder.take()
    }

    /// Returns the counts of packets to the terminals.
    pub fn forward(&self) -> &Counts {
        &self.counts[0]
    }

    /// Returns the counts of packets to the hub.
    pub fn back(&self) -> &Counts {
        &self.counts[1]
    }

    /// Returns the counts of each terminal.
    pub fn terminals(&self) -> impl Iterator<Item = &TerminalCounts> {
        self.terminals.iter()
    }

    /// Returns the figures of the stages that have any, with the stages' names.
    pub fn figures(&self) -> Vec<(String, Vec<Figure>)> {
        let all = self.stages.chains().all().map(|(name, stage)| (name.to_owned(), stage.figures()));
        all.filter(|(_, figures)| !figures.is_empty()).collect()
    }

    /// Returns the packets inside, on the way to `to`. A packet to all terminals counts as one until its last copy has
    /// left.
    pub fn inside(&self, to: End) -> Sum {
        self.pool.inside()[to.way()]
    }

    /// Returns the octets that wait in queues of the stages on the way to `to`, if stages report any.
    pub fn queued(&self, to: End) -> Option<u64> {
        let of =
            |stage: &farcast_link::BoxedStage<Packet>| stage.backlog(self.now).map(|backlog| backlog.octets);
        self.stages.chains().on_the_way(to).filter_map(of).reduce(u64::saturating_add)
    }
}

#[cfg(test)]
mod tests;

impl ChainOwner<Packet> for Link {
    fn driver(&mut self) -> &mut Driver<Packet> {
        &mut self.stages
    }

    fn keep(&mut self, at: Time, entry: Entry<Packet>) {
        self.queue.push(at, Event::Enter(entry));
    }

    fn left(&mut self, at: Time, to: End, frame: Frame<Packet>) {
        match to {
            End::Hub => self.queue.push(at, Event::Reach(frame.message)),
            End::Terminal => self.leave_forward(at, frame.message),
        }
    }

    fn drained(&mut self, stage: u32, wake: Option<Time>) {
        if let Some(due) = wake {
            self.queue.push(due, Event::Wake(stage));
        }
        self.tell_gone(stage);
    }
}
