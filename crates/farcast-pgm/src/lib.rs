//! PGM, Pragmatic General Multicast, as sans-I/O engines.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod message;
mod sqn;
pub mod wire;

pub use message::{Body, Message};
