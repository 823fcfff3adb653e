//! What a world is made of.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use farcast_core::random::RandomStream;
use farcast_core::{EventQueue, Losses, Span, Time};
use farcast_mftp::{
    Body, ClientId, ConfigError, Message, Population, Receiver, ReceiverConfig, Sender, SenderConfig,
};

use super::group::{Group, Kind, Station};
use super::{Back, Chains, FlowConfig, FlowState, Observer, Packet, Star, Tally};

/// The address of receiver 0; receiver n has the one n behind it.
const FIRST_RECEIVER: u32 = 0x0A40_0000;

/// The address of the hub, from which flows send.
pub const fn hub_address() -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))
}

/// The address that receiver `n` answers from, in 10.64.0.0/10; the terminal of flow `n` has the one that lies `n` behind
/// those of all receivers.
pub fn receiver_address(n: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(FIRST_RECEIVER.wrapping_add(n))), 5402)
}

/// The id of receiver `n`: its address.
pub fn receiver_id(n: u32) -> ClientId {
    ClientId(FIRST_RECEIVER.wrapping_add(n))
}

/// The receiver that a message to the sender comes from.
pub(super) fn receiver_of(message: &Message) -> Option<u32> {
    let id = match &message.body {
        Body::Registration(m) => m.entries.first()?.client,
        Body::Nak(m) => m.client,
        Body::Ack(m) => m.client,
        Body::Done(m) => m.client,
        Body::Quit(m) => m.client?,
        _ => return None,
    };
    id.0.checked_sub(FIRST_RECEIVER)
}

/// How the simulation cuts runs. The outcome does not depend on it (law 9); tests check that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cut {
    /// As long as they may be.
    #[default]
    Whole,
    /// Packet by packet.
    One,
    /// At random places, by this seed.
    Random(u64),
}

/// Receivers that are alike.
pub struct GroupConfig {
    /// How many.
    pub receivers: u32,
    /// Whether they are one [`Population`], or an engine each.
    pub population: bool,
    /// Their settings; `id` is set for each.
    pub receiver: ReceiverConfig,
    /// Who of them loses which frames of the channel.
    pub losses: Box<dyn Losses>,
    /// What their way from the channel takes longer than nothing.
    pub delay: Span,
    /// Whether only data is lost.
    pub data_only: bool,
}

/// Everything that a [`Star`] is made of.
pub struct StarConfig {
    /// The sender of the multicast transfer, if there is one.
    pub sender: Option<SenderConfig>,
    /// The receivers; those of the first group are numbered from 0, and so on.
    pub groups: Vec<GroupConfig>,
    /// Traffic beside the transfer, or alone.
    pub flows: Vec<FlowConfig>,
    /// The stages that packets pass.
    pub chains: Chains<Packet>,
    /// The way back; through stages where the chains have some that lead to the hub.
    pub back: Back,
    /// Octets of a datagram of the transfer on the links besides its `wire_len`.
    pub overhead: u16,
    /// Whether receivers know of the transmission when it opens, instead of hearing announcements and registering over
    /// the links.
    pub given: bool,
    /// No answer to what leaves the hub now can reach it before this has passed. Too short only costs time.
    pub lookahead: Span,
    /// Where the replication stops.
    pub limit: Time,
    /// How runs are cut.
    pub cut: Cut,
}

/// Why a world cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StarError {
    /// An engine's setting.
    #[error(transparent)]
    Engine(#[from] ConfigError),
    /// A population cannot do what the sender does.
    #[error("{0} is only simulated with single receivers: set engines = true")]
    Population(&'static str),
    /// There is nobody to receive.
    #[error("there are no receivers")]
    NoReceivers,
    /// There are receivers, and nobody sends to them.
    #[error("there are receivers but no sender")]
    NoSender,
    /// There is neither a transfer nor a flow.
    #[error("there is nothing to simulate: a transfer or a flow is needed")]
    Nothing,
    /// Stages lead to the hub and are not passed, or none do and they are to be.
    #[error("the way back has stages exactly if the chains have some that lead to the hub")]
    WayBack,
    /// The addresses of terminals end.
    #[error("at most 4,194,304 receivers and flows can be simulated")]
    TooMany,
}

impl<'o> Star<'o> {
    /// A world at time zero, in which the sender is about to open and the first flows to start.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn new(config: StarConfig, observer: Option<&'o mut dyn Observer>) -> Result<Self, StarError> {
        let receivers = check(&config)?;
        let groups = match &config.sender {
            Some(sender) => make_groups(config.groups, sender)?,
            None => Vec::new(),
        };
        let flows: Vec<FlowState> = config.flows.into_iter().map(FlowState::new).collect();
        let unended = flows.iter().filter(|flow| flow.flow().has_end()).count() as u32;
        let something_ends = config.sender.is_some() || unended > 0;
        let cuts = RandomStream::derive(if let Cut::Random(seed) = config.cut { seed } else { 0 }, &[]);
        Ok(Self {
            now: Time::ZERO,
            queue: EventQueue::default(),
            sender: config.sender.map(Sender::new).transpose()?,
            wake: Time::NEVER,
            overhead: config.overhead,
            given: config.given,
            groups,
            receivers,
            back: config.back,
            unended,
            stops_early: something_ends
                && (config.chains.never_rest() || flows.iter().any(FlowState::is_endless)),
            flows,
            chains: config.chains,
            under_way: 0,
            lookahead: config.lookahead,
            limit: config.limit,
            end: config.limit,
            cut: config.cut,
            cuts,
            began: None,
            tally: Tally::default(),
            lost: Vec::new(),
            observer,
        })
    }
}

/// How many receivers there are, if everyone has whom they need.
fn check(config: &StarConfig) -> Result<u32, StarError> {
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
    u32::try_from(receivers).ok().filter(|_| terminals <= 1 << 22).ok_or(StarError::TooMany)
}

fn make_groups(configs: Vec<GroupConfig>, sender: &SenderConfig) -> Result<Vec<Group>, StarError> {
    let mut first = 0;
    let mut groups = Vec::new();
    for config in configs {
        let receivers = config.receivers;
        groups.push(make_group(config, first, sender)?);
        first += receivers;
    }
    Ok(groups)
}

fn make_group(config: GroupConfig, first: u32, sender: &SenderConfig) -> Result<Group, StarError> {
    let GroupConfig { receivers, population, receiver, losses, delay, data_only } = config;
    let kind = if population {
        if sender.parity_symbols > 0 {
            return Err(StarError::Population("parity"));
        }
        if sender.response.ip().is_multicast() {
            return Err(StarError::Population("NAK suppression"));
        }
        let receiver = ReceiverConfig { id: receiver_id(first), ..receiver };
        Kind::Population { population: Box::new(Population::new(receiver, receivers)?), wake: Time::NEVER }
    } else {
        let station = |n| {
            let engine = Receiver::new(ReceiverConfig { id: receiver_id(first + n), ..receiver.clone() })?;
            Ok(Station { engine, wake: Time::NEVER, completed: Time::NEVER })
        };
        Kind::Engines((0..receivers).map(station).collect::<Result<_, ConfigError>>()?)
    };
    Ok(Group { first, receivers, kind, losses, delay, data_only, lost: Vec::new() })
}
