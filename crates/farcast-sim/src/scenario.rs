//! Scenarios: what is simulated, read from TOML.
//!
//! A scenario is read once and makes a [`StarConfig`] for each replication. Every draw of a replication comes from a
//! stream that is named by (seed, replication, entity, purpose), so a receiver group more or a longer trace changes no
//! other draw, and two settings can be compared on common random numbers.
//!
//! | table | what |
//! |---|---|
//! | top | `name`, `receivers` or `[[groups]]`, `engines`, `time_limit` |
//! | `protocol` | the transfer: size, pace, pass rules, Status Retry Timer |
//! | `traffic` | flows of other protocols, by `name`, beside the transfer or alone |
//! | `link.forward`, `link.return` | the links, `kind` "pipe" or "bgan", and who loses what |
//! | `link.stages` | further stages in a row, by `name` |

mod ftp;
mod memory;
mod protocol;
pub mod settings;
mod tcp;
mod traffic;

use farcast_core::{Span, Time};
use farcast_mftp::{ClientId, Group, ReceiverConfig, SenderConfig};

use farcast_scenario::links::{DefaultQueue, LossSpec};
use farcast_scenario::programs;
use farcast_scenario::receivers::{self, Group as Receivers};
use farcast_scenario::{Document, DocumentError, Links, Reader};

use crate::star::{Back, BackLosses, Chains, Cut, GroupConfig, Packet, StarConfig};

use protocol::Protocol;
use traffic::TrafficSpec;

/// Which draw of an entity a stream is for.
#[derive(Clone, Copy)]
enum Purpose {
    Losses = 1,
    Stage = 2,
    Waits = 3,
    ReturnLosses = 4,
    FlowLosses = 5,
    FlowReturnLosses = 6,
    Flow = 7,
}

/// The stream labels of one replication's entity.
#[derive(Clone, Copy, Debug)]
struct Streams {
    seed: u64,
    replication: u64,
}

impl Streams {
    fn of(self, entity: u64, purpose: Purpose) -> farcast_core::random::RandomStream {
        farcast_core::random::RandomStream::derive(self.seed, &[self.replication, entity, purpose as u64])
    }

    /// A number for an engine that derives its own streams.
    fn seed(self, entity: u64, purpose: Purpose) -> u64 {
        self.of(entity, purpose).bits()
    }
}

/// The multicast transfer.
#[derive(Clone, Debug)]
struct Transfer {
    groups: Vec<Receivers>,
    protocol: Protocol,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    /// Every receiver is an engine of its own.
    engines: bool,
    time_limit: Span,
    transfer: Option<Transfer>,
    traffic: Vec<TrafficSpec>,
    links: Links,
    default_queues: Vec<DefaultQueue>,
}

impl Scenario {
    /// Reads a scenario. Queues of which it says nothing get a limit by [`Links::default_queues`], as where it is emulated.
    ///
    /// # Errors
    /// The first thing that is wrong with it: file, line, key, what is wrong, what is allowed.
    pub fn read(document: &Document) -> Result<Self, DocumentError> {
        let mut top = document.root();
        let name = top.text_or("name", String::new())?;
        let engines = top.flag_or("engines", false)?;
        let time_limit = top.span_or("time_limit", Span::from_secs(24 * 3600))?;
        if time_limit.is_zero() {
            return Err(top.refuse("time_limit", "nothing happens in no time", "a time above zero"));
        }
        let traffic = top.optional_tables("traffic")?;
        // With traffic there need be no transfer; a part of one is one of which the rest is missing.
        let parts = ["receivers", "groups", "protocol"];
        let groups = if traffic.is_none() || parts.iter().any(|part| top.holds(part)) {
            Some(receivers::read(&mut top)?)
        } else {
            None
        };
        let mut links = Links::read(&mut top)?;
        let behind = groups.iter().flatten().map(|group| group.delay).max().unwrap_or_default();
        let default_queues = links.default_queues(behind);
        let transfer = groups.map(|groups| Transfer::read(&mut top, groups, &links)).transpose()?;
        let traffic = traffic::read(&top, traffic, &links)?;
        // What an emulation of the scenario runs is nothing to simulate.
        programs::read(&mut top)?;
        top.finish()?;
        Ok(Self { name, engines, time_limit, transfer, traffic, links, default_queues })
    }

    /// A transfer as `sender` makes it, to `receivers` receivers over the link that `document` is alone. Addresses and
    /// identities are the simulator's own. Queues of which the link says nothing get a limit, as where it is emulated.
    ///
    /// # Errors
    /// The first thing that is wrong with the link.
    pub fn over(document: &Document, sender: SenderConfig, receivers: u32) -> Result<Self, DocumentError> {
        let (links, default_queues) = Links::read_alone(document)?;
        let protocol = protocol::of_sender(sender, receivers);
        let groups = vec![Receivers { receivers, delay: Span::ZERO, losses: None }];
        Ok(Self {
            name: String::new(),
            engines: false,
            time_limit: protocol.sender.transfer_limit + Span::from_secs(3600),
            transfer: Some(Transfer { groups, protocol }),
            traffic: Vec::new(),
            links,
            default_queues,
        })
    }

    /// What the scenario is called; empty if its file does not say.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The queues that were given a limit because the scenario says nothing of one.
    pub fn default_queues(&self) -> &[DefaultQueue] {
        &self.default_queues
    }

    /// How many receivers there are in all.
    pub fn receivers(&self) -> u64 {
        let groups = self.transfer.as_ref().map_or(&[][..], |transfer| &transfer.groups);
        groups.iter().map(|group| u64::from(group.receivers)).sum()
    }

    /// The sender's settings, if there is a transfer.
    pub fn sender(&self) -> Option<&SenderConfig> {
        self.transfer.as_ref().map(|transfer| &transfer.protocol.sender)
    }

    /// How many flows there are beside the transfer.
    pub fn flows(&self) -> usize {
        self.traffic.len()
    }

    /// Where a replication stops.
    pub fn time_limit(&self) -> Time {
        Time::ZERO + self.time_limit
    }

    /// The same with an engine for each receiver, packet by packet: slower, with nothing merged.
    #[must_use]
    pub fn with_engines(self) -> Self {
        Self { engines: true, ..self }
    }

    /// Whether every receiver is an engine of its own: as wished, or because a population knows nothing of parity.
    fn has_engines(&self) -> bool {
        self.engines || self.sender().is_some_and(|sender| sender.parity_symbols > 0)
    }

    /// The world of replication number `replication`, whose random numbers follow from `seed`.
    pub fn star(&self, seed: u64, replication: u64) -> StarConfig {
        let streams = Streams { seed, replication };
        let receivers = u32::try_from(self.receivers()).unwrap_or(u32::MAX);
        let terminals = receivers.saturating_add(self.traffic.len() as u32);
        let links = &self.links;
        let chains = links.chains(terminals, false, |number| streams.of(number, Purpose::Stage));
        let flows = (0..).zip(&self.traffic).map(|(n, flow)| flow.make(n, receivers, links, streams));
        StarConfig {
            sender: self.sender().cloned(),
            groups: self.groups(streams),
            flows: flows.collect(),
            lookahead: links.back.least_delay(),
            back: way_back(links, &chains, receivers, streams),
            chains,
            overhead: self.transfer.as_ref().map_or(0, |transfer| transfer.protocol.overhead),
            given: self.transfer.as_ref().is_some_and(|transfer| transfer.protocol.given),
            limit: self.time_limit(),
            cut: Cut::Whole,
        }
    }

    fn groups(&self, streams: Streams) -> Vec<GroupConfig> {
        let Some(transfer) = &self.transfer else { return Vec::new() };
        let engines = self.has_engines();
        let group = |(number, group): (u64, &Receivers)| {
            let stream = streams.of(number, Purpose::Losses);
            let losses = group.losses.as_ref().unwrap_or(&self.links.losses);
            let seed = streams.seed(number, Purpose::Waits);
            GroupConfig {
                receivers: group.receivers,
                population: !engines,
                receiver: ReceiverConfig { seed, ..transfer.protocol.receiver.clone() },
                losses: losses.make(0, group.receivers, stream),
                delay: group.delay,
                data_only: self.links.data_only,
            }
        };
        (0..).zip(&transfer.groups).map(group).collect()
    }
}

/// The way back to the sender.
fn way_back(links: &Links, chains: &Chains<Packet>, receivers: u32, streams: Streams) -> Back {
    let lose = |entity| streams.of(entity, Purpose::ReturnLosses);
    let losses = if links.back_losses.is_memoryless() {
        BackLosses::Shared(links.back_losses.make(0, receivers, lose(0)))
    } else {
        // Each receiver has a link of its own, so each has a process of its own.
        BackLosses::Each((0..receivers).map(|n| links.back_losses.make(n, 1, lose(n.into()))).collect())
    };
    match links.back.constant_delay() {
        Some(delay) if chains.returning() == 0 => Back::uniform(delay, losses),
        _ => Back::stages(losses),
    }
}

impl Transfer {
    /// Reads `[protocol]` for these groups.
    fn read(top: &mut Reader<'_>, groups: Vec<Receivers>, links: &Links) -> Result<Self, DocumentError> {
        let mut protocol = protocol::read(top, &links.forward)?;
        let total: u32 = groups.iter().map(|group| group.receivers).sum();
        if let Group::Closed(invited) = &mut protocol.sender.group {
            *invited = (0..total).map(protocol::invited).collect();
        }
        if protocol.given && protocol.sender.group != Group::OpenUnlimited {
            // They have joined before: data begins with all of them.
            (protocol.sender.start.receivers, protocol.sender.start.after) = (Some(total), None);
        }
        let most = groups.iter().map(|group| u64::from(group.receivers)).max().unwrap_or(0);
        let own = groups.iter().filter_map(|group| group.losses.as_ref());
        let marks = own.chain([&links.losses]).map(LossSpec::marks).max().unwrap_or(0);
        if most.saturating_mul(marks) > MOST_MARKS {
            return Err(top.refuse(
                "receivers",
                "the error vectors have too many losses for so many receivers",
                format!("at most {MOST_MARKS} in all"),
            ));
        }
        Ok(Self { groups, protocol })
    }
}

/// Losses that error vectors may have in all; each takes four octets.
const MOST_MARKS: u64 = 50_000_000;

/// The id that settings carry before each receiver is given its own.
const NOBODY: ClientId = ClientId(1);
