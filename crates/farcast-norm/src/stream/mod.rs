//! Streams (`NORM_OBJECT_STREAM`, RFC 5740 §4.2.1): a sender and a receiver as state machines without I/O.
//!
//! A stream is an object without a known end, cut into blocks of equal length that go on for ever. Each source symbol
//! says in eight octets how many octets of the stream it has, where they belong, and where in them a message begins;
//! so a symbol may be short where its sender did not want to wait for more. What the sender still keeps can be
//! repaired: [`StreamSender`] has a window of blocks, and so has [`StreamReceiver`], which gives octets in order, and
//! says what cannot be had instead of passing over it.
//!
//! Other than of files, the octets are here: they exist nowhere else.

mod asked;
mod asking;
mod block;
mod outgoing;
mod receiver;
mod segment;
mod sender;

#[cfg(test)]
mod tests;

pub use receiver::{StreamReceiver, StreamReceiverConfig, StreamReceiverEvent};
pub use sender::{StreamSender, StreamSenderEvent};

use farcast_fec::BlockCode;

use crate::message::Fec;

/// The code of `fec` for blocks of a stream, whose symbols have `len` octets; `None` where there is none, or no parity.
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
