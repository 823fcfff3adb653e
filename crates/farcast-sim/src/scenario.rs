//! Scenarios: descriptions of simulations, read from TOML.
//!
//! A scenario is read once and makes a [`StarConfig`] for each replication. Every draw of a replication comes from a
//! stream that is named by (seed, replication, entity, purpose). Therefore an additional receiver group or a longer
//! trace changes no other draw, and two settings can be compared on common random numbers.
//!
//! | table | subject |
//! |---|---|
//! | top | `name`, `receivers` or `[[groups]]`, `engines`, `time_limit` |
//! | `protocol` | the transfer: its protocol, size and rate, and the settings of that protocol |
//! | `traffic` | flows of other protocols, by `name`, beside the transfer or alone |
//! | `link.forward`, `link.return` | the links, `kind` "pipe" or "bgan", and losses |
//! | `link.stages` | further stages in a row, by `name` |

mod depth_one;
mod ftp;
mod keys;
pub mod mdp;
mod memory;
pub mod mftp;
pub mod norm;
pub mod one_way;
pub mod pgm;
mod seal;
mod tcp;
mod traffic;
mod transfer;
mod tree;

use farcast_core::engine::Message;
use farcast_core::{Span, Time};
use farcast_scenario::links::{ChannelLosses, DefaultQueue, LossSpec};
use farcast_scenario::programs;
use farcast_scenario::receivers::{self, Group as Receivers};
use farcast_scenario::streams::{Purpose, Streams};
use farcast_scenario::{Document, DocumentError, Links, Reader};

use crate::advice::{self, Naming};
use crate::outcome::Remedies;
use crate::star::{Back, Chains, Cut, GroupConfig, StarConfig, StarError};

use traffic::TrafficSpec;
use transfer::{Transfer, TransferSpec};

pub use seal::Sealed;
pub use transfer::{NAMES, Task, TreeTask};
pub use tree::TreeScenario;

/// Link that a predicted transfer has for itself, and the transfer's receivers.
#[derive(Clone, Copy, Debug)]
pub struct LinkAlone<'a> {
    /// Document that holds the link alone.
    pub document: &'a Document,
    /// Number of receivers.
    pub receivers: u32,
    /// Time at which a replication stops.
    pub time_limit: Span,
    /// Seal of the transfer, if it is sealed.
    pub sealed: Option<Sealed>,
}

/// Description of a simulation with one hub.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    /// `true` if every receiver is an engine of its own.
    engines: bool,
    time_limit: Span,
    /// Receivers of the transfer.
    groups: Vec<Receivers>,
    transfer: Option<TransferSpec>,
    traffic: Vec<TrafficSpec>,
    links: Links,
    default_queues: Vec<DefaultQueue>,
}

impl Scenario {
    /// Reads a scenario. Queues without a limit in the scenario get one by [`Links::default_queues`], as in an
    /// emulation.
    ///
    /// # Errors
    /// The first mistake in the document: file, line, key, the mistake, and allowed values.
    pub fn read(document: &Document) -> Result<Self, DocumentError> {
        let mut top = document.root();
        let name = top.text_or("name", String::new())?;
        let engines = top.flag_or("engines", false)?;
        let time_limit = top.span_or("time_limit", Span::from_secs(24 * 3600))?;
        if time_limit.is_zero() {
            return Err(top.refuse("time_limit", "nothing happens in no time", "a time above zero"));
        }
        let traffic = top.optional_tables("traffic")?;
        // Beside traffic there need be no transfer. If one key of a transfer is there, the others must be there too.
        let parts = ["receivers", "groups", "protocol"];
        let groups = if traffic.is_none() || parts.iter().any(|part| top.holds(part)) {
            Some(receivers::read(&mut top)?)
        } else {
            None
        };
        let mut links = Links::read(&mut top)?;
        let behind = groups.iter().flatten().map(|group| group.delay).max().unwrap_or_default();
        let default_queues = links.default_queues(behind);
        let read = |groups: &Vec<Receivers>| TransferSpec::read(&mut top, groups, &links);
        let transfer = groups.as_ref().map(read).transpose()?;
        let traffic = traffic::read(&top, traffic, &links)?;
        // The simulator ignores the programs that an emulation of the scenario runs.
        programs::read(&mut top)?;
        // The `tune` table is for the tuner.
        top.holds("tune");
        top.finish()?;
        let groups = groups.unwrap_or_default();
        Ok(Self { name, engines, time_limit, groups, transfer, traffic, links, default_queues })
    }

    /// Returns the scenario's name; empty if the file has none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the queues that got a default limit because the scenario has none.
    pub fn default_queues(&self) -> &[DefaultQueue] {
        &self.default_queues
    }

    /// Returns the number of receivers in all groups.
    pub fn receivers(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.receivers)).sum()
    }

    /// Returns `true` if there is a multicast transfer.
    pub fn has_transfer(&self) -> bool {
        self.transfer.is_some()
    }

    /// Returns the keys that help against an incomplete transfer; `None` if there is no transfer.
    pub fn remedies(&self) -> Option<&'static Remedies> {
        self.transfer.as_ref().map(TransferSpec::remedies)
    }

    /// Returns advice on settings that cannot work over the links, one sentence each, with settings named like that.
    pub fn advice(&self, naming: Naming) -> Vec<String> {
        let forecast = self.transfer.as_ref().map(TransferSpec::forecast);
        forecast.map_or_else(Vec::new, |forecast| {
            advice::over_links(&forecast, &self.links, &self.groups, naming)
        })
    }

    /// Returns the number of flows beside the transfer.
    pub fn flows(&self) -> usize {
        self.traffic.len()
    }

    /// Returns the time at which a replication stops.
    pub fn time_limit(&self) -> Time {
        Time::ZERO + self.time_limit
    }

    /// Returns the scenario with an engine for each receiver, packet by packet. It is slower, and nothing is merged.
    #[must_use]
    pub fn with_engines(self) -> Self {
        Self { engines: true, ..self }
    }

    /// Makes a scenario of a transfer over a link alone. Queues without a limit in the link get one, as in an emulation.
    fn over_link(link: &LinkAlone<'_>, transfer: TransferSpec) -> Result<Self, DocumentError> {
        let LinkAlone { document, receivers, time_limit, .. } = *link;
        let (links, default_queues) = Links::read_alone(document)?;
        Ok(Self {
            name: String::new(),
            engines: false,
            time_limit,
            groups: vec![Receivers { receivers, delay: Span::ZERO, losses: None }],
            transfer: Some(transfer),
            traffic: Vec::new(),
            links,
            default_queues,
        })
    }

    /// Returns the configuration of replication number `replication` with this transfer. Its random numbers follow from
    /// `seed`.
    fn world<T: Transfer>(
        &self,
        transfer: Option<&T>,
        seed: u64,
        replication: u64,
    ) -> Result<StarConfig<T::Protocol>, StarError> {
        let streams = Streams::new(seed, replication);
        let receivers = u32::try_from(self.receivers()).unwrap_or(u32::MAX);
        let terminals = receivers.saturating_add(self.traffic.len() as u32);
        let links = &self.links;
        let chains = links.chains(terminals, false, streams);
        let flows = (0..).zip(&self.traffic).map(|(n, flow)| flow.make(n, receivers, links, streams));
        Ok(StarConfig {
            sender: transfer.map(Transfer::sender).transpose()?,
            groups: transfer.map_or_else(Vec::new, |transfer| self.groups(transfer, streams)),
            flows: flows.collect(),
            lookahead: links.back.least_delay(),
            back: way_back(links, &chains, receivers, streams),
            chains,
            overhead: transfer.map_or(0, Transfer::overhead),
            seal: transfer.and_then(Transfer::seal),
            given: transfer.is_some_and(Transfer::given),
            limit: self.time_limit(),
            cut: Cut::Whole,
        })
    }

    fn groups<T: Transfer>(&self, transfer: &T, streams: Streams) -> Vec<GroupConfig<T::Protocol>> {
        let group = |(number, group): (u64, &Receivers)| {
            let seed = streams.seed(number, Purpose::Waits);
            GroupConfig {
                receivers: group.receivers,
                kind: transfer.receivers(group.receivers, seed, self.engines),
                losses: self.links.forward_losses(number, group, streams).make(),
                delay: group.delay,
                data_only: self.links.data_only,
            }
        };
        (0..).zip(&self.groups).map(group).collect()
    }
}

/// Returns the return path to the sender.
fn way_back<M: Message>(links: &Links, chains: &Chains<M>, receivers: u32, streams: Streams) -> Back {
    let losses = links.return_losses(receivers, streams).map(ChannelLosses::make);
    match links.back.constant_delay() {
        Some(delay) if chains.returning() == 0 => Back::uniform(delay, losses),
        _ => Back::stages(losses),
    }
}

/// Refuses error vectors with more losses than fit in memory.
fn check_marks(top: &Reader<'_>, groups: &[Receivers], links: &Links) -> Result<(), DocumentError> {
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
    Ok(())
}

/// Maximum number of losses that error vectors may have in all; each takes four octets.
const MOST_MARKS: u64 = 50_000_000;
