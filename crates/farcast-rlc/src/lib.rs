//! UMTS Radio Link Control (RLC) in Acknowledged Mode: 3GPP TS 25.322, without I/O.
//!
//! An [`Entity`] is one end of a link: SDUs into PDUs and back, with polls, status reports, retransmissions, discard
//! with signalling and reset, as [`config`] sets them. Not in it: the other modes, ciphering, and stopping or
//! re-establishing by the layers above.
//!
//! [`pdu`] has the PDUs that entities send each other, [`wire`] their encoding. [`mod@format`] has the sizes of PDUs
//! and the content that fits into them, [`report`] the reports of a receiver, [`status`] their meaning.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod common;
pub mod config;
pub mod entity;
pub mod error;
pub mod event;
pub mod format;
pub mod pdu;
mod receiver;
pub mod report;
mod sender;
pub mod status;
#[cfg(test)]
mod tests;
pub mod wire;

pub use config::Config;
pub use entity::Entity;
pub use error::{ConfigError, Reject};
pub use event::{Counters, Event};
