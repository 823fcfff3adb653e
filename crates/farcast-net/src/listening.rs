//! Options and notices of the sockets that receivers of files and of streams listen with.

use std::net::{IpAddr, SocketAddr};

use farcast_core::Probability;
use ipnet::IpNet;

use crate::error::NetError;
use crate::loss::Loss;
use crate::socket::SocketOptions;

/// Options of the sockets that a receiver listens with.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Group (or our own address) and port to listen on.
    pub from: SocketAddr,
    /// Only sender to hear, in a source-specific group.
    pub source: Option<IpAddr>,
    /// Senders to accept, by address or prefix; empty to accept all.
    pub accept: Vec<IpNet>,
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// Send nothing to senders.
    pub silent: bool,
    /// Probability with which each datagram is lost on purpose.
    pub simulate_loss: Probability,
    /// Seed of these losses.
    pub seed: u64,
}

impl ListenOptions {
    /// Returns `true` if datagrams of `source` are accepted.
    pub(crate) fn accepts(&self, source: IpAddr) -> bool {
        self.accept.is_empty() || self.accept.iter().any(|prefix| prefix.contains(&source))
    }

    /// Returns the losses on purpose.
    pub(crate) fn loss(&self) -> Loss {
        Loss::new(self.simulate_loss, self.seed)
    }
}

/// Notice about a receiver's sockets, and about datagrams that were not accepted.
#[derive(Debug)]
pub enum ListenNotice<'a> {
    /// The receiver listens.
    Listening {
        /// The address listened on.
        address: SocketAddr,
    },
    /// The interface has gone or cannot be used; the receiver waits for it.
    Waiting {
        /// Error that names the missing thing.
        why: &'a NetError,
    },
    /// The interface is there again, or another has taken its place, and the group was joined again.
    Rejoined,
    /// This host itself refused to send an answer; reported once.
    Blocked {
        /// The error of the system.
        why: &'a NetError,
    },
    /// Notes about sealed sessions cannot be saved. So nothing is accepted that could be played back.
    Forgetful {
        /// Error that says what cannot be written, and what to do.
        why: &'a NetError,
    },
    /// A datagram came from a sender that is not accepted; reported once.
    NotAccepted {
        /// Address of the sender.
        source: IpAddr,
    },
    /// A datagram was ignored that another seal opens, that has no seal, or that another protocol sent; reported once.
    Unlike {
        /// Address of its sender.
        source: IpAddr,
        /// Reason for which it is ignored.
        why: Unlike,
    },
    /// Short datagrams of a sender arrive and no long one does, so the path carries less than its first link. Reported
    /// once for each sender.
    Narrow {
        /// The sender.
        source: IpAddr,
        /// Length of the datagrams that do not arrive, octets without headers of UDP and IP.
        datagram: usize,
        /// Length of datagrams that pass everywhere, octets without headers of UDP and IP.
        passes: usize,
        /// The sender is told of it.
        told: bool,
    },
}

/// Reason for which a datagram is ignored that another receiver might accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unlike {
    /// The datagram is sealed, and we have no key.
    Sealed,
    /// The datagram is not sealed, and we have a key.
    Unsealed,
    /// The datagram is sealed by a sender that is not trusted.
    Untrusted,
    /// The datagram is sealed by a trusted sender, which has had no key for us for a while.
    NotForUs,
    /// The datagram is sealed for another protocol, or another group.
    Elsewhere,
    /// The datagram is of a session before the latest one of its sender.
    Earlier,
    /// The datagram cannot be read: its sender speaks another protocol, or it is none.
    Foreign,
}
