//! Streams of octets: a source and a receiver that own the octets of their windows, which exist nowhere else.
//!
//! A stream is messages (APDUs) in order: as many octets as fit a TPDU each, or, where its owner says where messages end,
//! each of these, cut by `OPT_FRAGMENT` where it is longer (RFC 3208 §9.2). Nothing else is on the wire, so the other end
//! may be anybody's. Sequence numbers are of TPDUs: of what is lost it is known which numbers, and not how many octets.
//!
//! A receiver begins where an SPM lets it: with the first message while the source still has all (`OPT_JOIN`), with the
//! next one that is sent later. It takes part in one session at a time.

mod receiver;
mod sender;

pub use receiver::{StreamReceiver, StreamReceiverConfig, StreamReceiverEvent};
pub use sender::{MOST_FRAGMENTS, StreamSender, StreamSenderConfig, StreamSenderEvent};

use farcast_core::engine::Transmit;

use crate::message::Message;

/// So many TPDUs wait to leave, at most: an owner that has more is to wait.
pub(crate) const BACKLOG: u32 = 512;

/// How `transmit` leaves, whatever it is.
fn bare(transmit: &Transmit<Message>) -> Transmit<()> {
    let Transmit { destination, source, interface, ttl, router_alert, spacing, .. } = *transmit;
    Transmit { message: (), destination, source, interface, ttl, router_alert, spacing }
}
