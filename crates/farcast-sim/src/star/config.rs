//! Configuration of a star.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

use farcast_core::random::RandomStream;
use farcast_core::{EventQueue, Losses, Span, Time};
use farcast_delivery::{Protocol, Routes, SenderEngine as _};
use farcast_link::chain::Driver;

use super::ears::Air;
use super::group::{Group, Kind, Station};
use super::seal::Seal;
use super::{Back, Chains, Flights, FlowConfig, FlowState, Observer, Packet, Party, SealConfig, Star, Tally};

/// Address of receiver 0; receiver n has the address that is higher by n.
pub(crate) const FIRST_RECEIVER: u32 = 0x0A40_0000;

/// Returns the hub's address, from which flows send.
pub const fn hub_address() -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))
}

/// First address behind those of terminals, where the multicast addresses begin.
const BEHIND_TERMINALS: u32 = 0xE000_0000;

/// Returns the address that receiver `n` answers from. The terminal of flow `n` has the address that lies `n` behind
/// those of all receivers. The first four million addresses lie in 10.64.0.0/10. A star with more terminals uses the
/// addresses behind it; nothing else in the star has addresses there.
pub fn receiver_address(n: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(FIRST_RECEIVER.wrapping_add(n))), 5402)
}

/// Returns the receiver at `address`, or all receivers for a multicast address; `None` where no receiver (of
/// `receivers`) is.
pub(super) fn party_at(address: IpAddr, receivers: u32) -> Option<Party> {
    if address.is_multicast() {
        return Some(Party::GROUP);
    }
    let IpAddr::V4(address) = address else { return None };
    let number = address.to_bits().checked_sub(FIRST_RECEIVER).filter(|&n| n < receivers);
    number.map(Party::receiver)
}

/// Returns the party that hears a receiver's message to `destination`. The other receivers hear a message to the group
/// that answers go to, on which receivers listen for each other. Any other message goes no further than the hub.
pub(super) fn audience(destination: IpAddr, routes: &Routes) -> Party {
    let answers = routes.answers.ip();
    if answers.is_multicast() && destination == answers { Party::GROUP } else { Party::HUB }
}

/// Rule by which the simulation cuts runs. The outcome does not depend on it (law 9); tests check that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cut {
    /// Runs as long as possible.
    #[default]
    Whole,
    /// Runs of one packet.
    One,
    /// Runs cut at random places, by this seed.
    Random(u64),
}

impl Cut {
    /// Returns the number of datagrams of a frame to hand over at once, from 1 to `most`.
    pub(crate) fn choose(self, most: NonZeroU32, cuts: &mut RandomStream) -> NonZeroU32 {
        match self {
            Self::Whole => most,
            Self::One => NonZeroU32::MIN,
            Self::Random(_) => NonZeroU32::MIN.saturating_add(cuts.below(most.get().into()) as u32),
        }
    }
}

/// Function that makes a `T`, which is one receiver or several, from the number of its first receiver.
pub type Maker<T> = Box<dyn Fn(u32) -> Result<T, StarError>>;

/// Simulation of a group of like receivers: as one population or as single engines, with the function that makes them.
pub enum Receivers<P: Protocol> {
    /// One [`Population`](farcast_delivery::Population) for all receivers.
    Population(Maker<P::Population>),
    /// One engine for each receiver.
    Engines(Maker<P::Receiver>),
}

/// Configuration of a group of like receivers.
pub struct GroupConfig<P: Protocol> {
    /// Number of receivers.
    pub receivers: u32,
    /// Population or single engines.
    pub kind: Receivers<P>,
    /// Loss process, which draws the receivers that lose each frame of the channel.
    pub losses: Box<dyn Losses>,
    /// Delay between the channel and the group's receivers.
    pub delay: Span,
    /// `true` if only data is lost.
    pub data_only: bool,
}

/// Configuration of a [`Star`].
pub struct StarConfig<P: Protocol> {
    /// The sender of the multicast transfer, if there is one. It sends from the [hub](hub_address) and knows receivers
    /// by their [addresses](receiver_address).
    pub sender: Option<P::Sender>,
    /// Groups of receivers. Receivers are numbered from 0 in the order of the groups.
    pub groups: Vec<GroupConfig<P>>,
    /// Flows beside the transfer, or alone.
    pub flows: Vec<FlowConfig>,
    /// Stages that packets pass.
    pub chains: Chains<Packet<P::Message>>,
    /// Return path. It passes stages exactly where the chains have some that lead to the hub.
    pub back: Back,
    /// Octets that the links add to the `wire_len` of each datagram of the transfer.
    pub overhead: u16,
    /// Seal of the transfer, if it is sealed. Receivers of a sealed transfer answer the sender, not the group.
    pub seal: Option<SealConfig>,
    /// `true` if receivers know of the transmission when it opens, instead of hearing announcements and registering
    /// over the links. Receivers of a sealed transfer then have all keys.
    pub given: bool,
    /// Span within which no answer to a message that leaves the hub now can reach the hub. A span that is too short
    /// only costs time.
    pub lookahead: Span,
    /// Time at which the replication stops.
    pub limit: Time,
    /// Rule by which runs are cut.
    pub cut: Cut,
}

/// Reason for which a star or a tree cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StarError {
    /// An engine refuses a setting; the text is the protocol's.
    #[error("{0}")]
    Engine(String),
    /// There are no receivers.
    #[error("there are no receivers")]
    NoReceivers,
    /// There are receivers but no sender.
    #[error("there are receivers but no sender")]
    NoSender,
    /// There is neither a transfer nor a flow.
    #[error("there is nothing to simulate: a transfer or a flow is needed")]
    Nothing,
    /// The chains have stages that lead to the hub although the return path has none, or the other way round.
    #[error("the way back has stages exactly if the chains have some that lead to the hub")]
    WayBack,
    /// There are not enough addresses for the terminals.
    #[error("at most 3,586,129,920 receivers and flows can be simulated")]
    TooMany,
    /// A sealed transfer whose receivers answer the group.
    #[error(
        "what is sealed for the sender nobody else can open: receivers have to answer the sender, not the group"
    )]
    SealedForGroup,
    /// A sealed transfer in a tree.
    #[error("a sealed transfer is simulated in a star, not in a tree")]
    SealedTree,
}

impl<'o, P: Protocol> Star<'o, P> {
    /// Makes a star at time zero, in which the sender is about to open and the first flows are about to start.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn new(config: StarConfig<P>, observer: Option<&'o mut dyn Observer<P>>) -> Result<Self, StarError> {
        let receivers = check(&config)?;
        let routes = config.sender.as_ref().map(P::Sender::routes);
        let relays = routes.is_some_and(|routes| routes.answers.ip().is_multicast());
        if config.seal.is_some() && relays {
            return Err(StarError::SealedForGroup);
        }
        let mut groups = make_groups(config.groups)?;
        if let Some(seal) = &config.seal {
            for group in &mut groups {
                group.seal(seal.apart, config.given);
            }
        }
        let flows: Vec<FlowState> = config.flows.into_iter().map(FlowState::new).collect();
        let unended = flows.iter().filter(|flow| flow.flow().has_end()).count() as u32;
        let something_ends = config.sender.is_some() || unended > 0;
        let cuts = RandomStream::derive(if let Cut::Random(seed) = config.cut { seed } else { 0 }, &[]);
        Ok(Self {
            now: Time::ZERO,
            queue: EventQueue::default(),
            flow_queue: EventQueue::default(),
            flights: Flights::default(),
            sender: config.sender,
            routes: routes.unwrap_or(NOWHERE),
            relays,
            wake: Time::NEVER,
            overhead: config.overhead,
            seal: config.seal.map(|seal| Box::new(Seal::new(seal, config.given))),
            given: config.given,
            groups,
            receivers,
            back: config.back,
            unended,
            stops_early: something_ends
                && (config.chains.never_rest() || flows.iter().any(FlowState::is_endless)),
            flows,
            links: Driver::new(config.chains),
            under_way: 0,
            lookahead: config.lookahead,
            limit: config.limit,
            end: config.limit,
            cut: config.cut,
            cuts,
            began: None,
            ending: None,
            left: 0,
            tally: Tally::default(),
            lost: Vec::new(),
            observer,
        })
    }
}

/// Routes of a star without a transfer; nothing is sent there.
pub(crate) const NOWHERE: Routes = {
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    Routes { source: nowhere, announcements: nowhere, content: nowhere, answers: nowhere }
};

/// Returns the number of receivers, after it has checked the configuration for missing senders, receivers, flows and
/// stages.
fn check<P: Protocol>(config: &StarConfig<P>) -> Result<u32, StarError> {
    let receivers: u64 = config.groups.iter().map(|group| u64::from(group.receivers)).sum();
    match (&config.sender, receivers) {
        (Some(_), 0) => return Err(StarError::NoReceivers),
        (None, 1..) => return Err(StarError::NoSender),
        (None, 0) if config.flows.is_empty() => return Err(StarError::Nothing),
        _ => {}
    }
    if config.back.delay.is_some() != (config.chains.returning() == 0) {
        return Err(StarError::WayBack);
    }
    let terminals = receivers.saturating_add(config.flows.len() as u64);
    u32::try_from(receivers)
        .ok()
        .filter(|_| terminals <= u64::from(BEHIND_TERMINALS - FIRST_RECEIVER))
        .ok_or(StarError::TooMany)
}

pub(crate) fn make_groups<P: Protocol>(configs: Vec<GroupConfig<P>>) -> Result<Vec<Group<P>>, StarError> {
    let mut first = 0;
    let mut groups = Vec::new();
    for config in configs {
        let receivers = config.receivers;
        groups.push(make_group(config, first)?);
        first += receivers;
    }
    Ok(groups)
}

fn make_group<P: Protocol>(config: GroupConfig<P>, first: u32) -> Result<Group<P>, StarError> {
    let GroupConfig { receivers, kind, losses, delay, data_only } = config;
    let kind = match kind {
        Receivers::Population(make) => {
            Kind::Population { population: Box::new(make(first)?), wake: Time::NEVER }
        }
        Receivers::Engines(make) => {
            let station = |n| make(first + n).map(Station::new);
            Kind::Engines((0..receivers).map(station).collect::<Result<_, _>>()?)
        }
    };
    let air = Air::Open(losses);
    Ok(Group { first, receivers, kind, air, delay, data_only, lost: Vec::new(), touched: Vec::new() })
}

#[cfg(test)]
mod tests;
