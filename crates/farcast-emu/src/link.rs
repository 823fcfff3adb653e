//! The link in virtual time: packets enter at the time of their arrival and leave when the link's stages say so, however
//! late whoever drives it comes.
//!
//! A [`Link`] owns no clock. Its driver [advances](Link::advance) it to now before a packet enters, so that everything that
//! happens before happens at its own time, and writes what leaves. A wake-up that comes late delays the packets of that
//! instant and shifts nothing behind them: release times follow from link time, never from real releases.
//!
//! # Who loses what
//!
//! What leaves the last stage of a direction passes the loss process of its terminal, which draws from the stream of
//! (seed, direction, terminal): adding a terminal, or traffic to another, changes none of its losses.

mod causes;
mod change;
mod counts;
mod fates;

use farcast_capture::recorder::Recorder;
use farcast_core::random::RandomStream;
use farcast_core::stage::{Figure, Frame, Output, Port};
use farcast_core::{EventQueue, Probability, Span, Time};
use farcast_link::{Chains, End};
use farcast_scenario::Links;
use farcast_scenario::receivers::Group;

pub use causes::Cause;
use causes::Causes;
pub use change::{ChangeError, WaySettings};
pub use counts::{Counts, Sum, TerminalCounts};
use fates::Fates;

use crate::host::Place;
use crate::pool::{Label, Packet, Pool};

/// What a link is made of.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The stages, and the losses behind them.
    pub links: Links,
    /// The terminals, in groups that are alike.
    pub groups: Vec<Group>,
    /// What all draws follow from.
    pub seed: u64,
}

impl LinkConfig {
    /// How many terminals there are.
    pub fn terminals(&self) -> u32 {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.receivers))
    }
}

/// Octets that may be inside the link at once; what enters beyond that is dropped. A queue without a limit ends here.
pub const MOST_OCTETS: u64 = 256 << 20;

/// What a packet takes besides its octets, where those are counted.
const PACKET_OCTETS: u64 = 256;

/// What happens next.
#[derive(Debug)]
enum Event {
    /// A frame enters a stage behind the first.
    Pass { to: End, stage: u32, frame: Frame<Packet> },
    /// A stage wants to be woken.
    Wake(u32),
    /// A packet leaves the last stage.
    Exit { to: End, packet: Packet },
    /// It reaches the device of an end.
    Reach { to: Place, packet: Packet },
}

/// A packet that leaves the link.
#[derive(Debug)]
pub struct Departure {
    /// When, by link time.
    pub at: Time,
    /// To which device.
    pub to: Place,
    /// What.
    pub packet: Packet,
}

/// A terminal's part of the link.
#[derive(Debug)]
struct Terminal {
    /// What it loses of what comes to it, and what is lost of what it sends.
    fates: [Fates; 2],
    delay: Span,
    counts: TerminalCounts,
}

/// The link, with all its terminals.
pub struct Link {
    config: LinkConfig,
    chains: Chains<Packet>,
    queue: EventQueue<Event>,
    now: Time,
    terminals: Vec<Terminal>,
    pool: Pool,
    entered: u64,
    counts: [Counts; 2],
    causes: Causes,
    /// The probability of loss behind each way, where packets are lost independently of each other.
    per: [Option<Probability>; 2],
    /// Until when everything is lost, each way.
    outages: [Time; 2],
    /// How often losses have been changed: each change draws anew.
    changes: u64,
    recorder: Option<Recorder>,
    /// Reused.
    lost: Vec<u32>,
    gone: Vec<Label>,
}

/// What the draws of a terminal are for; stages have numbers of their own below [`STAGES`].
const STAGES: u64 = 0;
const LOSSES: u64 = 1;

impl Link {
    /// A link at time 0, with nothing in it. What becomes of each packet is told to `recorder`.
    pub fn new(config: LinkConfig, recorder: Option<Recorder>) -> Self {
        let terminals = config.terminals();
        let stream = |number| RandomStream::derive(config.seed, &[STAGES, number]);
        let chains = config.links.chains(terminals, true, stream);
        let mut recorder = recorder;
        let causes = Causes::new(chains.all().map(|(name, _)| name), recorder.as_mut());
        let mut link = Self {
            chains,
            queue: EventQueue::default(),
            now: Time::ZERO,
            terminals: Vec::new(),
            pool: Pool::new(),
            entered: 0,
            counts: [Counts::default(); 2],
            causes,
            per: [config.links.losses.per(), config.links.back_losses.per()],
            outages: [Time::ZERO; 2],
            changes: 0,
            recorder,
            lost: Vec::new(),
            gone: Vec::new(),
            config,
        };
        link.make_terminals();
        link
    }

    fn make_terminals(&mut self) {
        let links = &self.config.links;
        let back = links.back_losses.apart();
        for group in &self.config.groups {
            let forward = group.losses.as_ref().unwrap_or(&links.losses).apart();
            for _ in 0..group.receivers {
                let number = self.terminals.len() as u32;
                let stream = |way: u64| RandomStream::derive(self.config.seed, &[LOSSES, way, number.into()]);
                self.terminals.push(Terminal {
                    fates: [Fates::new(&forward, number, stream(0)), Fates::new(&back, number, stream(1))],
                    delay: group.delay,
                    counts: TerminalCounts::default(),
                });
            }
        }
    }

    /// What it was made of.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// When something happens next; [`Time::NEVER`] if nothing does before a packet enters.
    pub fn next_at(&self) -> Time {
        self.queue.next_at()
    }

    /// A packet of these octets enters at `now`, to which the link has been advanced: at the hub for `terminal` or for
    /// all, or at a terminal for the hub.
    pub fn enter(&mut self, now: Time, to: End, terminal: Option<u32>, octets: &[u8]) {
        self.now = self.now.max(now);
        let label =
            Label { number: self.entered, to, terminal, entered: self.now, octets: octets.len() as u32 };
        self.entered += 1;
        self.counts[to.way()].entered.count(octets.len());
        if octets.len() > usize::from(self.config.links.mtu) {
            self.counts[to.way()].dropped.count(octets.len());
            return self.note(&label, None, None, Cause::MTU);
        }
        let inside: u64 = self.pool.inside().iter().map(|sum| sum.octets + PACKET_OCTETS * sum.packets).sum();
        if inside + octets.len() as u64 > MOST_OCTETS {
            self.counts[to.way()].dropped.count(octets.len());
            return self.note(&label, None, None, Cause::MEMORY);
        }
        let packet = self.pool.packet(label, octets);
        let Some(first) = self.chains.first(to) else {
            return self.queue.push(self.now, Event::Exit { to, packet });
        };
        self.pass(first, to, Frame::new(packet, 0));
    }

    /// Lets everything happen that is due at `now` or before, in order and each at its own time; what reaches a device is
    /// handed to `each` at once.
    pub fn advance(&mut self, now: Time, mut each: impl FnMut(&mut Self, Departure)) {
        while self.queue.next_at() <= now {
            let Some((at, event)) = self.queue.pop() else { break };
            self.now = at;
            match event {
                Event::Pass { to, stage, frame } => self.pass(stage, to, frame),
                Event::Wake(stage) => {
                    if self.chains.take_wake(stage, at) {
                        self.chains.stage(stage).handle_timeout(at);
                        self.drain(stage);
                    }
                }
                Event::Exit { to, packet } => self.exit(to, packet),
                Event::Reach { to, packet } => each(self, Departure { at, to, packet }),
            }
        }
        self.now = self.now.max(now);
    }

    /// A packet that left at `at` by link time was written at `left`, or the device did not take it.
    pub fn delivered(&mut self, departure: Departure, left: Option<Time>) {
        let Departure { at, to, packet } = departure;
        let mut label = *packet.label();
        if let Place::Terminal(terminal) = to {
            label.terminal = Some(terminal);
        }
        packet.leave();
        let (way, octets) = (label.to.way(), label.octets as usize);
        if left.is_some() {
            self.counts[way].delivered.count(octets);
            self.of_terminal(&label, |counts, way| counts.delivered[way].count(octets));
            self.note(&label, Some(at), left, Cause::NONE);
        } else {
            self.counts[way].not_taken.count(octets);
            self.note(&label, Some(at), None, Cause::DEVICE);
        }
    }

    /// A frame enters a stage.
    fn pass(&mut self, stage: u32, to: End, frame: Frame<Packet>) {
        let port = match (to, frame.message.label().terminal) {
            (End::Terminal, _) => Port::Hub,
            (End::Hub, terminal) => Port::Terminal(terminal.unwrap_or(0)),
        };
        self.chains.stage(stage).handle(self.now, port, frame);
        self.drain(stage);
    }

    /// What leaves a stage enters the next or leaves the link; what it has dropped is told.
    fn drain(&mut self, stage: u32) {
        while let Some(Output { at, port, frame }) = self.chains.stage(stage).poll_output() {
            let to = End::of(port);
            match self.chains.next(stage, to) {
                Some(stage) => self.queue.push(at, Event::Pass { to, stage, frame }),
                None => self.queue.push(at, Event::Exit { to, packet: frame.message }),
            }
        }
        if let Some(due) = self.chains.new_wake(stage) {
            self.queue.push_unless_never(due, Event::Wake(stage));
        }
        self.tell_gone(stage);
    }

    /// Tells of the packets that a stage has dropped.
    fn tell_gone(&mut self, stage: u32) {
        self.pool.gone(&mut self.gone);
        if self.gone.is_empty() {
            return;
        }
        let mut gone = std::mem::take(&mut self.gone);
        let mut reasons = [End::Terminal, End::Hub].map(|to| {
            let count = gone.iter().filter(|label| label.to == to).count() as u64;
            let stage_itself = self.chains.get(stage);
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

    /// A packet has left the last stage: each terminal that it is for gets or loses it.
    fn exit(&mut self, to: End, packet: Packet) {
        let terminal = packet.label().terminal;
        match (to, terminal) {
            (End::Hub, terminal) => {
                // The delay of a group is on the way from the channel, as in simulation.
                self.reach(terminal.unwrap_or(0), Place::Hub, Span::ZERO, packet);
            }
            (End::Terminal, Some(terminal)) => {
                let delay = self.delay_of(Some(terminal));
                self.reach(terminal, Place::Terminal(terminal), delay, packet);
            }
            (End::Terminal, None) => {
                for number in 0..self.terminals.len() as u32 {
                    let delay = self.delay_of(Some(number));
                    self.reach(number, Place::Terminal(number), delay, packet.clone());
                }
                packet.leave();
            }
        }
    }

    fn delay_of(&self, terminal: Option<u32>) -> Span {
        terminal.and_then(|number| self.terminals.get(number as usize)).map_or(Span::ZERO, |it| it.delay)
    }

    /// A copy of a packet passes the losses of a terminal.
    fn reach(&mut self, terminal: u32, to: Place, delay: Span, packet: Packet) {
        let mut label = *packet.label();
        label.terminal = Some(terminal);
        let way = label.to.way();
        let octets = label.octets as usize;
        let Some(state) = self.terminals.get_mut(terminal as usize) else { return packet.leave() };
        let drawn = state.fates[way].draw(self.now, label.octets.into(), &mut self.lost);
        let live = (self.now < self.outages[way]).then_some(Cause::OUTAGE);
        let Some(cause) = live.or(drawn) else {
            return self.queue.push(self.now + delay, Event::Reach { to, packet });
        };
        state.counts.lost[way].count(octets);
        self.counts[way].lost.count(octets);
        packet.leave();
        self.note(&label, Some(self.now), None, cause);
    }

    fn of_terminal(&mut self, label: &Label, count: impl FnOnce(&mut TerminalCounts, usize)) {
        if let Some(terminal) = label.terminal.and_then(|number| self.terminals.get_mut(number as usize)) {
            count(&mut terminal.counts, label.to.way());
        }
    }

    /// Records what became of a packet.
    fn note(&mut self, label: &Label, planned: Option<Time>, left: Option<Time>, cause: Cause) {
        if let Some(recorder) = &mut self.recorder {
            self.causes.record(recorder, label, planned, left, cause);
        }
    }

    /// The recorder, for what only the driver sees.
    pub fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_mut()
    }

    /// Ends it: what is still inside is recorded as held; the recorder, to be finished.
    pub fn end(&mut self) -> Option<Recorder> {
        while let Some((_, event)) = self.queue.pop() {
            let (Event::Pass { frame: Frame { message: packet, .. }, .. }
            | Event::Exit { packet, .. }
            | Event::Reach { packet, .. }) = event
            else {
                continue;
            };
            // Copies of one packet are held once.
            drop(packet);
        }
        self.chains = Chains::new();
        self.pool.gone(&mut self.gone);
        for label in std::mem::take(&mut self.gone) {
            self.counts[label.to.way()].held.count(label.octets as usize);
            self.note(&label, None, None, Cause::HELD);
        }
        self.recorder.take()
    }

    /// What passed, to the terminals.
    pub fn forward(&self) -> &Counts {
        &self.counts[0]
    }

    /// What passed, to the hub.
    pub fn back(&self) -> &Counts {
        &self.counts[1]
    }

    /// What each terminal got and lost.
    pub fn terminals(&self) -> impl Iterator<Item = &TerminalCounts> {
        self.terminals.iter().map(|terminal| &terminal.counts)
    }

    /// What stages have to report, with their names; of those that have something.
    pub fn figures(&self) -> Vec<(String, Vec<Figure>)> {
        let all = self.chains.all().map(|(name, stage)| (name.to_owned(), stage.figures()));
        all.filter(|(_, figures)| !figures.is_empty()).collect()
    }

    /// What is inside, on the way to `to`. A packet to all terminals is one until its last copy has left.
    pub fn inside(&self, to: End) -> Sum {
        self.pool.inside()[to.way()]
    }

    /// Octets that wait in queues of the stages on the way to `to`, as far as stages can tell.
    pub fn queued(&self, to: End) -> Option<u64> {
        let of =
            |stage: &farcast_link::BoxedStage<Packet>| stage.backlog(self.now).map(|backlog| backlog.octets);
        self.chains.on_the_way(to).filter_map(of).reduce(u64::saturating_add)
    }
}

#[cfg(test)]
mod tests;
