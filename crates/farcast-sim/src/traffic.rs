//! Traffic of any protocol between the hub and a terminal: the contract of a flow, and the kinds of flows.
//!
//! A [`Flow`] is both ends of one conversation. Like an engine it owns no clock: it is told the time and what reached
//! which of its ends, and asked what leaves and when to wake it. One conversation may be several connections, as FTP's
//! control and data connections are: what tells them apart is in the messages.

mod bulk;
mod cbr;
mod delays;
mod ftp;

use std::num::NonZeroU32;

use farcast_core::Time;
use farcast_core::engine::Message;
pub use farcast_link::End;
use farcast_tcp::Segment;
use serde::Serialize;

pub use bulk::{Bulk, BulkConfig};
pub use cbr::{Cbr, CbrConfig, CbrReport, OnOff};
pub use ftp::{Ftp, FtpConfig, FtpFile, FtpReport};

/// What the ends of a flow send each other: one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowMessage {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Datagram(Datagram),
}

/// A UDP datagram whose payload says its number and when it left, as a probe's does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Its number, from 0.
    pub number: u64,
    /// When it left.
    pub sent: Time,
    /// Octets of its payload.
    pub octets: u16,
}

impl Datagram {
    /// Octets of the UDP header (RFC 768).
    pub const HEADER_LEN: usize = 8;
}

impl Message for FlowMessage {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    fn split(self, _count: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }

    /// The transport's header and the data; an IPv4 header adds 20 octets.
    fn wire_len(&self, segment: u32) -> usize {
        match self {
            Self::Tcp(message) => message.wire_len(segment),
            Self::Datagram(message) => Datagram::HEADER_LEN + usize::from(message.octets),
        }
    }
}

/// Both ends of one conversation.
///
/// After each of [`start`](Self::start), [`stop`](Self::stop), [`handle`](Self::handle) and
/// [`handle_timeout`](Self::handle_timeout) whoever drives it drains [`poll_transmit`](Self::poll_transmit) and then
/// reads [`poll_timeout`](Self::poll_timeout). Time never goes back.
pub trait Flow: Send {
    /// Begins.
    fn start(&mut self, now: Time);

    /// Its time is over: nothing new is sent, and what arrives from now on does not count.
    fn stop(&mut self, now: Time);

    /// Takes what has reached `end`.
    fn handle(&mut self, now: Time, end: End, message: &FlowMessage);

    /// What was polled last has not left `end`: the queue of the host there had no room for it. Who has no use for that
    /// takes it for a loss on the way.
    fn refused(&mut self, _now: Time, _end: End, _message: &FlowMessage) {}

    /// Acts on every timer that is due at `now`, at both ends. Called early, it does nothing.
    fn handle_timeout(&mut self, now: Time);

    /// The next packet that leaves now, and from which end.
    fn poll_transmit(&mut self, now: Time) -> Option<(End, FlowMessage)>;

    /// When either end wants to be woken; [`Time::NEVER`] if neither does. It may be later after each call than after
    /// the one before, for nothing but this is read: a timer that is moved costs nothing.
    fn poll_timeout(&self) -> Time;

    /// Whether it has an end of its own, as a transfer of a size has: then it is complete at some time or it failed.
    fn has_end(&self) -> bool {
        false
    }

    /// When it was complete, if it has an end and has reached it.
    fn completed(&self) -> Option<Time> {
        None
    }

    /// What it has done so far.
    fn report(&self) -> FlowReport;
}

/// What a flow has done.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowReport {
    /// Octets of data that have arrived, in order where the protocol keeps order, until the flow was complete or
    /// stopped.
    pub octets: u64,
    /// What its protocol counts.
    pub counts: Counts,
}

/// What protocols count.
#[derive(Clone, PartialEq, Debug)]
pub enum Counts {
    /// Of TCP.
    Tcp(TcpReport),
    /// Of datagrams at a constant rate.
    Cbr(CbrReport),
    /// Of FTP.
    Ftp(FtpReport),
}

/// What the end that sends the data of a TCP flow has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TcpReport {
    /// Segments with data, repeated ones among them.
    pub segments: u64,
    /// Segments with data that were sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}
