//! Settings of an endpoint, and its events.

use core::net::{IpAddr, SocketAddr};

use super::table::ConnectionId;
use crate::{Config, Event};

/// First ephemeral port (RFC 6335 section 6).
pub(super) const FIRST_EPHEMERAL: u16 = 49_152;

/// Keeper of the octets of a connection's streams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carries {
    /// The endpoint.
    Octets,
    /// The owner, to whom the endpoint reports ranges.
    Ranges,
}

/// Event of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointEvent {
    /// A connection to a listener is open.
    Accepted {
        /// The listener's port.
        port: u16,
        /// The connection.
        connection: ConnectionId,
        /// Address of the peer that opened the connection.
        peer: SocketAddr,
    },
    /// Something happened on a connection. [`Event::Connected`] is reported only of connections that this side opened,
    /// and [`Event::Store`] only if the owner keeps the octets.
    Of(ConnectionId, Event),
}

/// Reason for which an endpoint does not open or listen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The number of connections is at its limit.
    #[error("there are {0} connections already, as many as the settings allow")]
    Full(usize),
    /// The port, or the pair of addresses, is in use.
    #[error("port {0} is in use")]
    InUse(u16),
    /// Every ephemeral port is in use.
    #[error("all ports from {FIRST_EPHEMERAL} on are in use")]
    NoPort,
}

/// The settings of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointConfig {
    /// Address of the endpoint. Segments to other addresses are turned down.
    pub address: IpAddr,
    /// Settings of the endpoint's connections.
    pub tcp: Config,
    /// Most connections, lingering and opening ones included. At the limit, the oldest released connection in TIME-WAIT
    /// makes room.
    pub most_connections: usize,
    /// Seed of port numbers and initial sequence numbers.
    pub seed: u64,
}
