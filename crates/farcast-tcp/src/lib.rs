//! TCP (RFC 9293) and FTP (RFC 959) as state machines without I/O.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod segment;
mod sequence;

pub use segment::{Flags, Options, Payload, SackBlock, SackBlocks, Segment, Timestamps};
pub use sequence::SequenceNumber;
