//! What is asked of a sender and what it tells.

use std::net::SocketAddr;

use farcast_core::Span;
use farcast_delivery::SenderEngine;
use farcast_files::ChangedFile;

use crate::batch::Sent;
use crate::changing::Changing;
use crate::error::NetError;
use crate::seal::SealCounts;
use crate::socket::SocketOptions;

/// What to send and where to.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// The group (or the one receiver) and port that data goes to.
    pub to: SocketAddr,
    /// How sockets are made.
    pub socket: SocketOptions,
    /// How far ahead of the clock datagrams may leave together, as one burst.
    pub burst: Span,
    /// What becomes of it where a file changes meanwhile.
    pub changing: Changing,
    /// Whether files are looked at once more at the end: where receivers do not say that what they have is right.
    pub look_again: bool,
}

/// What happens while sending; `E` is what the engine tells.
#[derive(Debug)]
pub enum SendNotice<'a, E> {
    /// Something the engine tells.
    Event(&'a E),
    /// A tenth of a second has passed.
    Tick(Traffic),
    /// The interface, the address or the route is gone; nothing is sent until it comes back.
    Waiting {
        /// What is missing.
        why: &'a NetError,
    },
    /// It has come back.
    Back,
    /// Our address was another one before.
    Moved {
        /// What it is now.
        address: SocketAddr,
    },
    /// The way carries less than the datagrams have: they leave in fragments of IP.
    Fragmenting {
        /// Octets of an IP packet that it carries, as far as this host knows.
        packet: usize,
        /// Octets of a segment that would need no fragments.
        segment: usize,
    },
    /// A receiver gets no long datagram and all that are short: from now on long ones leave in pieces.
    Narrow {
        /// Its address.
        receiver: SocketAddr,
        /// Octets of datagrams that do not arrive there, without headers of UDP and IP.
        datagram: usize,
        /// Octets of the longest that leaves from now on, likewise.
        limit: usize,
        /// Octets of a segment that would need no pieces.
        segment: usize,
    },
    /// A file is not what it was: nothing of it is sent any more.
    Changed {
        /// Which.
        file: &'a ChangedFile,
        /// What it is called by receivers.
        name: &'a str,
    },
    /// This host itself would not send; told once for each reason.
    Refused {
        /// What the system says.
        why: &'a NetError,
    },
    /// A receiver is trusted no more: it opens nothing that leaves from now on, and is not heard.
    Revoked {
        /// What the list calls it.
        name: &'a str,
    },
}

/// What has passed a sender so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// What has left.
    pub sent: Sent,
    /// Octets of all that was heard, without headers of UDP and IP.
    pub heard: u64,
    /// Requests for repair that were heard and made sense.
    pub requests: u64,
    /// How much those asked for, as their protocol counts it: segments, or blocks where it asks for whole ones.
    pub asked: u64,
}

/// How a transmission went.
#[derive(Debug)]
pub struct SendReport<S: SenderEngine> {
    /// What did not pass the seal, if there is one.
    pub seal: Option<SealCounts>,
    /// What the engine told at its end.
    pub end: S::Event,
    /// The engine, for its members and counts.
    pub sender: S,
    /// Why it had to stop, if files or the network made it.
    pub error: Option<NetError>,
    /// From the first announcement to the last receiver's end.
    pub duration: Span,
    /// From the first datagram of data to the last.
    pub data_duration: Span,
    /// Datagrams that were none of the protocol's.
    pub malformed: u64,
    /// What has passed.
    pub traffic: Traffic,
    /// The files that are not what they were.
    pub changed: Vec<ChangedFile>,
}
