//! The settings of an endpoint, and what it tells its owner.

use core::net::{IpAddr, SocketAddr};

use super::table::ConnectionId;
use crate::{Config, Event};

/// The first port of those that are given out (RFC 6335 section 6).
pub(super) const FIRST_EPHEMERAL: u16 = 49_152;

/// Who keeps the octets of a connection's streams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carries {
    /// The endpoint.
    Octets,
    /// The owner, who is told ranges.
    Ranges,
}

/// What an endpoint tells its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointEvent {
    /// A connection to a listener is open.
    Accepted {
        /// The listener's port.
        port: u16,
        /// The connection.
        connection: ConnectionId,
        /// Who opened it.
        peer: SocketAddr,
    },
    /// Something happened on a connection. [`Event::Connected`] is told only of connections that this side opened, and
    /// [`Event::Store`] only where the owner keeps the octets.
    Of(ConnectionId, Event),
}

/// Why an endpoint does not open or listen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// There are as many connections as there may be.
    #[error("there are {0} connections already, as many as the settings allow")]
    Full(usize),
    /// Something has that port, or that pair of addresses.
    #[error("port {0} is in use")]
    InUse(u16),
    /// Every ephemeral port is in use.
    #[error("all ports from {FIRST_EPHEMERAL} on are in use")]
    NoPort,
}

/// The settings of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointConfig {
    /// Its address. Segments to others are not for it.
    pub address: IpAddr,
    /// The settings of its connections.
    pub tcp: Config,
    /// How many connections there may be, those that linger or are being opened included. When there are as many, the
    /// one that has lingered longest makes room.
    pub most_connections: usize,
    /// The seed of its port numbers and initial sequence numbers.
    pub seed: u64,
}
