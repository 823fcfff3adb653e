//! Flows: traffic of any protocol between the hub and a terminal. This module has the contract of a flow and the kinds
//! of flows.
//!
//! A [`Flow`] is both ends of one conversation. Like an engine it has no clock: its owner passes it the time and the
//! packets that reach its ends, and asks it for packets to send and for its next timer. One conversation may consist of
//! several connections, such as FTP's control and data connections; the messages tell the connections apart.

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

/// Packet from one end of a flow to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowMessage {
    /// TCP segment.
    Tcp(Segment),
    /// UDP datagram.
    Datagram(Datagram),
}

/// UDP datagram whose payload holds its number and its departure time, like a probe's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Number of the datagram, from 0.
    pub number: u64,
    /// Departure time.
    pub sent: Time,
    /// Octets of the payload.
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

    /// Returns the octets of the transport's header and the data; an IPv4 header adds 20 octets.
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
/// [`handle_timeout`](Self::handle_timeout) the owner drains [`poll_transmit`](Self::poll_transmit) and then reads
/// [`poll_timeout`](Self::poll_timeout). Time never goes back.
pub trait Flow: Send {
    /// Starts the flow.
    fn start(&mut self, now: Time);

    /// Stops the flow: it sends nothing new, and what arrives from now on does not count.
    fn stop(&mut self, now: Time);

    /// Takes a packet that has reached `end`.
    fn handle(&mut self, now: Time, end: End, message: &FlowMessage);

    /// Notes that the packet that was polled last has not left `end`, because the queue of the host there had no room
    /// for it. A flow that has no use for this treats the packet as lost on the way.
    fn refused(&mut self, _now: Time, _end: End, _message: &FlowMessage) {}

    /// Acts on every timer that is due at `now`, at both ends. Called early, it does nothing.
    fn handle_timeout(&mut self, now: Time);

    /// Returns the next packet that leaves now, with the end that it leaves from.
    fn poll_transmit(&mut self, now: Time) -> Option<(End, FlowMessage)>;

    /// Returns the time at which either end wants to be woken; [`Time::NEVER`] if neither does. The time may be later
    /// after each call than after the one before: the owner reads only the latest value, so moving a timer costs
    /// nothing.
    fn poll_timeout(&self) -> Time;

    /// Returns `true` if the flow has an end of its own, as a transfer of a fixed size has. Such a flow completes at
    /// some time or fails.
    fn has_end(&self) -> bool {
        false
    }

    /// Returns the time at which the flow was complete, if it has an end and has reached it.
    fn completed(&self) -> Option<Time> {
        None
    }

    /// Returns the counters of the flow so far.
    fn report(&self) -> FlowReport;
}

/// Counters of a flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowReport {
    /// Octets of data that have arrived, in order where the protocol keeps order, until the flow was complete or
    /// stopped.
    pub octets: u64,
    /// Counters of the flow's protocol.
    pub counts: Counts,
}

/// Counters by protocol.
#[derive(Clone, PartialEq, Debug)]
pub enum Counts {
    /// TCP.
    Tcp(TcpReport),
    /// Datagrams at a constant rate.
    Cbr(CbrReport),
    /// FTP.
    Ftp(FtpReport),
}

/// Counters of the data-sending end of a TCP flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TcpReport {
    /// Segments with data, including repeated ones.
    pub segments: u64,
    /// Segments with data that were sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}
