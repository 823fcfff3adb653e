//! Configuration of a star.

use std::net::IpAddr;

use farcast_core::{EventQueue, Span, Time};
use farcast_delivery::{Protocol, Routes};
use farcast_link::chain::Driver;

use super::{
    Back, Chains, Cut, Flights, FlowConfig, GroupConfig, Hub, Observer, Packet, Party, SealConfig, Star,
    StarError, Tally, Traffic,
};
use crate::world::{MOST_TERMINALS, Settings, check_parts, receivers_of};

/// Returns the party that hears a receiver's message to `destination`. The other receivers hear a message to the group
/// that answers go to, on which receivers listen for each other. Any other message goes no further than the hub.
pub(super) fn audience(destination: IpAddr, routes: &Routes) -> Party {
    let answers = routes.answers.ip();
    if answers.is_multicast() && destination == answers { Party::GROUP } else { Party::HUB }
}

/// Configuration of a [`Star`].
pub struct StarConfig<P: Protocol> {
    /// The sender of the multicast transfer, if there is one. It sends from the [hub](super::hub_address) and knows
    /// receivers by their [addresses](super::receiver_address).
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

impl<'o, P: Protocol> Star<'o, P> {
    /// Makes a star at time zero, in which the sender is about to open and the first flows are about to start.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn new(config: StarConfig<P>, observer: Option<&'o mut dyn Observer<P>>) -> Result<Self, StarError> {
        let receivers = check(&config)?;
        let StarConfig { sender, groups, flows, chains, back, overhead, seal, given, lookahead, limit, cut } =
            config;
        let never_rests = chains.never_rest();
        let settings = Settings {
            sender,
            groups,
            receivers,
            flows,
            overhead,
            seal,
            given,
            lookahead,
            limit,
            cut,
            never_rests,
        };
        Self::make(settings, observer, |_, routes| {
            Ok(Hub {
                flow_queue: EventQueue::default(),
                flights: Flights::default(),
                relays: routes.answers.ip().is_multicast(),
                links: Driver::new(chains),
                back,
                traffic: Traffic::default(),
            })
        })
    }

    /// Returns the counters of packets.
    pub fn tally(&self) -> Tally {
        let Traffic { forward_octets, forward_datagrams, return_octets, return_datagrams } =
            self.layout.traffic;
        Tally {
            forward_octets,
            forward_datagrams,
            return_octets,
            return_datagrams,
            naks_late: self.counts.naks_late,
            naks_used: self.counts.naks_used,
            events: self.counts.events,
        }
    }
}

/// Returns the number of receivers, after it has checked the configuration for missing senders, receivers, flows and
/// stages.
fn check<P: Protocol>(config: &StarConfig<P>) -> Result<u32, StarError> {
    let receivers = receivers_of(&config.groups);
    check_parts(config.sender.is_some(), receivers, config.flows.len())?;
    if config.back.delay.is_some() != (config.chains.returning() == 0) {
        return Err(StarError::WayBack);
    }
    let terminals = receivers.saturating_add(config.flows.len() as u64);
    u32::try_from(receivers).ok().filter(|_| terminals <= u64::from(MOST_TERMINALS)).ok_or(StarError::TooMany)
}

#[cfg(test)]
mod tests;
