//! TCP (RFC 9293) and FTP (RFC 959) as state machines without I/O.
#![no_std]
#![forbid(unsafe_code)]
#![allow(
    clippy::struct_excessive_bools,
    reason = "a TCP is a set of switches and conditions; enums for each would hide which RFC they come from"
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod config;
mod congestion;
pub mod connection;
pub mod endpoint;
pub mod event;
pub mod ftp;
mod reassembly;
pub mod rto;
mod scoreboard;
pub mod segment;
mod sequence;
pub mod wire;

pub use config::{
    AfterTimeout, Algorithm, Config, ConfigError, DelayedAck, Increase, InitialWindow, ReceiveWindow,
    Recovery, Reduction, Window, WriteSpace,
};
pub use connection::{Connection, State};
pub use event::{Event, Failure, Stats};
pub use rto::{Floor, RtoConfig, Variation};
pub use segment::{Flags, Options, Payload, SackBlock, SackBlocks, Segment, Timestamps};
pub use sequence::SequenceNumber;
