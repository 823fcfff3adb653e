//! Configuration that all worlds have in common.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

use farcast_core::random::RandomStream;
use farcast_core::{EventQueue, Losses, Span, Time};
use farcast_delivery::{Protocol, Routes, SenderEngine as _};

use super::group::{Group, Kind, Station};
use super::keys::GroupLosses;
use super::seal::Seal;
use super::{Counts, FlowConfig, FlowState, Layout, Observer, SealConfig, World};

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
    /// A sealed transfer with elements on the way.
    #[error("elements on the way cannot read what is sealed: a tree with elements has no sealed transfer")]
    SealedElements,
}

/// Settings of a world apart from its links.
pub(crate) struct Settings<P: Protocol> {
    pub(crate) sender: Option<P::Sender>,
    pub(crate) groups: Vec<GroupConfig<P>>,
    /// Number of receivers in all groups.
    pub(crate) receivers: u32,
    pub(crate) flows: Vec<FlowConfig>,
    pub(crate) overhead: u16,
    pub(crate) seal: Option<SealConfig>,
    pub(crate) given: bool,
    pub(crate) lookahead: Span,
    pub(crate) limit: Time,
    pub(crate) cut: Cut,
    /// `true` if the timers of a stage never end.
    pub(crate) never_rests: bool,
}

impl<'o, P: Protocol, L: Layout<P>> World<'o, P, L> {
    /// Makes a world at time zero, in which the sender is about to open and the first flows are about to start. `lay`
    /// makes its layout for the groups, and for the routes of the transfer.
    pub(crate) fn make<E: From<StarError>>(
        settings: Settings<P>,
        observer: Option<&'o mut dyn Observer<P>>,
        lay: impl FnOnce(&mut [Group<P>], &mut Routes) -> Result<L, E>,
    ) -> Result<Self, E> {
        let Settings { sender, seal, given, cut, receivers, .. } = settings;
        let mut routes = sender.as_ref().map_or(NOWHERE, P::Sender::routes);
        if seal.is_some() && routes.answers.ip().is_multicast() {
            return Err(StarError::SealedForGroup.into());
        }
        let mut groups = make_groups(settings.groups)?;
        if let Some(seal) = &seal {
            for group in &mut groups {
                group.seal(seal.apart, given);
            }
        }
        let layout = lay(&mut groups, &mut routes)?;
        let flows: Vec<FlowState> = settings.flows.into_iter().map(FlowState::new).collect();
        let unended = flows.iter().filter(|flow| flow.flow().has_end()).count() as u32;
        let something_ends = sender.is_some() || unended > 0;
        let endless = settings.never_rests || flows.iter().any(FlowState::is_endless);
        Ok(Self {
            now: Time::ZERO,
            queue: EventQueue::default(),
            layout,
            sender,
            routes,
            wake: Time::NEVER,
            overhead: settings.overhead,
            seal: seal.map(|seal| Box::new(Seal::new(seal, given))),
            given,
            groups,
            receivers,
            unended,
            stops_early: something_ends && endless,
            flows,
            under_way: 0,
            lookahead: settings.lookahead,
            limit: settings.limit,
            end: settings.limit,
            cut,
            cuts: RandomStream::derive(if let Cut::Random(seed) = cut { seed } else { 0 }, &[]),
            began: None,
            ending: None,
            left: 0,
            confirmed: 0,
            confirmed_at: Time::ZERO,
            counts: Counts::default(),
            lost: Vec::new(),
            observer,
        })
    }
}

/// Routes of a world without a transfer; nothing is sent there.
const NOWHERE: Routes = {
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    Routes { source: nowhere, announcements: nowhere, content: nowhere, answers: nowhere }
};

/// Returns the number of receivers in all groups.
pub(crate) fn receivers_of<'a, P: Protocol>(groups: impl IntoIterator<Item = &'a GroupConfig<P>>) -> u64 {
    groups.into_iter().map(|group| u64::from(group.receivers)).sum()
}

/// Checks that a world has something to simulate, and receivers exactly if it has a sender.
pub(crate) fn check_parts(has_sender: bool, receivers: u64, flows: usize) -> Result<(), StarError> {
    match (has_sender, receivers) {
        (true, 0) => Err(StarError::NoReceivers),
        (false, 1..) => Err(StarError::NoSender),
        (false, 0) if flows == 0 => Err(StarError::Nothing),
        _ => Ok(()),
    }
}

fn make_groups<P: Protocol>(configs: Vec<GroupConfig<P>>) -> Result<Vec<Group<P>>, StarError> {
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
    let losses = GroupLosses::Open(losses);
    Ok(Group { first, receivers, kind, losses, delay, data_only, lost: Vec::new(), touched: Vec::new() })
}
