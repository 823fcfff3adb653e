//! Options of a receiver.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use farcast_core::{Probability, Span};
use farcast_files::Options;
use ipnet::IpNet;

use crate::socket::SocketOptions;

/// Options of a receiver: addresses to listen on, and the place of the files.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct ReceiveOptions {
    /// The group (or our own address) and port to listen on.
    pub from: SocketAddr,
    /// Only sender to hear, in a source-specific group.
    pub source: Option<IpAddr>,
    /// Senders to accept, by address or prefix; empty to accept all.
    pub accept: Vec<IpNet>,
    /// Directory for the files; made if it is missing.
    pub into: PathBuf,
    /// Options for storing files.
    pub files: Options,
    /// Receive objects without a manifest of ours too, each as a plain file. Only the protocol then vouches for the
    /// content. Without this option they are declined.
    pub plain: bool,
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// End after the first transmission that [counts](crate::ReceiveReport::counts).
    pub once: bool,
    /// Drop what arrives instead of storing it; the end is [`Discarded`](crate::NetError::Discarded), never a success.
    pub discard: bool,
    /// Send nothing to senders.
    pub silent: bool,
    /// Probability with which each datagram is lost on purpose.
    pub simulate_loss: Probability,
    /// Seed of these losses.
    pub seed: u64,
    /// Longest time to wait for room on a full disk before the transmission is given up.
    pub wait_for_room: Span,
}
