//! NORM, NACK-Oriented Reliable Multicast, as sans-I/O engines.
//!
//! Source: RFC 5740 with its building blocks RFC 5401 (timers, quantisation), RFC 5052 (blocks) and RFC 5510 (Reed-Solomon),
//! cited by number and section. Where NRL's library, which everybody runs, does otherwise, the code says DEVIATION.
//!
//! * [`Message`] is what engines speak; [`wire`] turns it into bytes and back.
//! * [`quantise`] has the field's coarse numbers: round trips, group sizes, rates, losses.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod message;
pub mod quantise;
pub mod wire;

pub use message::{Body, Message, NodeId};
