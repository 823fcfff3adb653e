//! MFTP, the StarBurst Multicast File Transfer Protocol.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod message;
pub mod wire;

pub use message::{Body, ClientId, Message};
