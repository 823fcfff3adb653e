//! What lies between a sender and its receivers, as state machines without I/O.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod losses;

pub use losses::{Among, Losses};
