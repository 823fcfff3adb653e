//! NORM, NACK-Oriented Reliable Multicast, as sans-I/O engines.
//!
//! Source: RFC 5740 with its building blocks RFC 5401 (timers, quantisation), RFC 5052 (blocks) and RFC 5510
//! (Reed-Solomon), cited by number and section. Where NRL's library, the implementation in common use, differs from an
//! RFC, the code says DEVIATION.
//! Comments abbreviate the group's greatest round trip as GRTT, and the information about an object as INFO.
//!
//! * [`Sender`] and [`Receiver`] are the engines ([`farcast_core::Engine`]).
//! * [`Message`] is the type that engines exchange; [`wire`] encodes and decodes it.
//! * [`SenderConfig`] and [`ReceiverConfig`] hold every setting; [`Settings`] holds those that a user chooses.
//! * [`stream`] has the engines for streams, which keep the streams' octets.
//! * [`quantise`] has the coarse numbers of header fields: round trips, group sizes, rates, losses.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cc;
pub mod config;
pub mod error;
pub mod event;
pub mod message;
pub mod population;
pub mod receiver;
mod requests;
mod seam;
pub mod sender;
pub mod settings;
pub mod stream;
mod timing;
pub mod wire;

pub use config::{Kind, Object, Pacing, ReceiverConfig, SenderConfig, Sync};
pub use error::ConfigError;
pub use event::{Command, Reached, ReceiverEvent, SenderEvent};
pub use farcast_delivery::nack::{SenderOutcome, quantise};
pub use message::{Body, Fec, FtiStyle, Message, NodeId};
pub use population::Population;
pub use receiver::Receiver;
pub use seam::{Codec, Norm};
pub use sender::Sender;
pub use settings::Settings;
pub use timing::ROBUST;
