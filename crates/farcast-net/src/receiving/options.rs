//! What a receiver is asked to do.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use farcast_core::{Probability, Span};
use farcast_files::Options;
use ipnet::IpNet;

use crate::socket::SocketOptions;

/// What to receive and where to put it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct ReceiveOptions {
    /// The group (or our own address) and port to listen on.
    pub from: SocketAddr,
    /// The only sender to hear, in a source-specific group.
    pub source: Option<IpAddr>,
    /// The senders to hear, by address or prefix; everybody where there are none.
    pub accept: Vec<IpNet>,
    /// Where files go; made if it is not there.
    pub into: PathBuf,
    /// How files are stored.
    pub files: Options,
    /// Whether objects that come without a manifest of ours are received too, each as a plain file: nothing vouches for
    /// its content but the protocol. They are declined otherwise.
    pub plain: bool,
    /// How sockets are made.
    pub socket: SocketOptions,
    /// End after the first transmission that [counts](crate::ReceiveReport::counts).
    pub once: bool,
    /// Drop what arrives instead of storing it; the end is [`Discarded`](crate::NetError::Discarded), never a success.
    pub discard: bool,
    /// Whether nothing is said to senders.
    pub silent: bool,
    /// Datagrams to lose on purpose.
    pub simulate_loss: Probability,
    /// The seed of those losses.
    pub seed: u64,
    /// How long a full disk is waited for before the transmission is given up.
    pub wait_for_room: Span,
}
