//! Streams of octets: a source and a receiver that own the octets of their windows, which exist nowhere else.
//!
//! A stream is a sequence of messages (APDUs). Each holds as many octets as fit a TPDU. Where the owner sets the ends
//! of messages, each APDU is one message, cut by `OPT_FRAGMENT` if it is longer (RFC 3208 §9.2). Nothing else is on the
//! wire, so the other end may be any implementation. Sequence numbers count TPDUs: of a loss the numbers are known, and
//! not the octets.
//!
//! A receiver begins where an SPM permits: with the first message while the source can still repair everything
//! (`OPT_JOIN`), otherwise with the next one that is sent. It takes part in one session at a time.

mod receiver;
mod sender;

pub use farcast_delivery::nack::StreamSenderEvent;
pub use receiver::{StreamReceiver, StreamReceiverConfig, StreamReceiverEvent};
pub use sender::{MOST_FRAGMENTS, StreamSender, StreamSenderConfig};

use farcast_core::engine::Transmit;

use crate::message::Message;

/// The most TPDUs that wait to leave; an owner that has more waits.
pub(crate) const BACKLOG: u32 = 512;

/// Returns `transmit` without its message.
fn bare(transmit: &Transmit<Message>) -> Transmit<()> {
    let Transmit { destination, source, interface, ttl, router_alert, spacing, .. } = *transmit;
    Transmit { message: (), destination, source, interface, ttl, router_alert, spacing }
}
