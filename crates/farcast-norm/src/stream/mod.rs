//! Streams (`NORM_OBJECT_STREAM`, RFC 5740 §4.2.1): a sender and a receiver as state machines without I/O.
//!
//! A stream is an object without a known end, cut into blocks of equal length. Each source symbol begins with a header
//! of eight octets: the number of the stream's octets in it, their place in the stream, and the first beginning of a
//! message in them. So a symbol may be short if its sender did not want to wait for more octets. [`StreamSender`] keeps
//! a window of blocks that it can repair. [`StreamReceiver`] has a window too; it returns octets in order, and reports
//! gaps that cannot be repaired instead of skipping them.
//!
//! Unlike with files, the engines keep the octets, because these exist nowhere else.

mod asked;
mod asking;
mod block;
mod outgoing;
mod receiver;
mod segment;
mod sender;

#[cfg(test)]
mod tests;

pub use farcast_delivery::nack::StreamSenderEvent;
pub use receiver::{StreamReceiver, StreamReceiverConfig, StreamReceiverEvent};
pub use sender::StreamSender;

use farcast_fec::BlockCode;

use crate::message::Fec;

/// Returns the code of `fec` for blocks of a stream, whose symbols have `len` octets; `None` if there is no code, or no
/// parity.
fn code(fec: Fec, block_len: u16, parity: u16, len: usize) -> Option<BlockCode> {
    let (block, parity) = (usize::from(block_len), usize::from(parity));
    match fec {
        _ if parity == 0 => None,
        Fec::ReedSolomon8 | Fec::SmallBlock | Fec::ReedSolomon(8) => {
            BlockCode::narrow(block, parity, len).ok()
        }
        Fec::ReedSolomon(16) => BlockCode::wide(block, parity, len).ok(),
        Fec::ReedSolomon(_) => None,
    }
}
