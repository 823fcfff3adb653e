//! MDP version 2, the Multicast Dissemination Protocol, as sans-I/O engines.
//!
//! Sources: draft-macker-rmt-mdp-00 (J. Macker and B. Adamson, 1999), cited by section, and where they differ the
//! layout of the toolkit's later packets (protocol version 9), as traffic analysers know it. What neither says is our
//! choice, and is marked so. No running peer is known, so that nothing but consistency can be tested. What MDP and
//! NORM, which grew out of it, have in common is NORM's: quantised round trips, node ids, time stamps and random
//! waits.
//!
//! * [`Sender`] and [`Receiver`] are the engines ([`farcast_core::Engine`]).
//! * [`Message`] is what engines speak; [`wire`] turns it into bytes and back.
//! * [`SenderConfig`] and [`ReceiverConfig`] hold every setting.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod config;
pub mod error;
pub mod event;
pub mod message;
pub mod population;
pub mod receiver;
mod seam;
pub mod sender;
pub mod settings;
pub mod wire;

pub use config::{Counted, Object, ReceiverConfig, SenderConfig, Sync};
pub use error::ConfigError;
pub use event::{ReceiverEvent, ReceiverOutcome, SenderEvent, SenderOutcome};
pub use farcast_norm::NodeId;
pub use message::{Body, Message};
pub use population::{Population, population};
pub use receiver::Receiver;
pub use seam::{Codec, Mdp};
pub use sender::Sender;
pub use settings::{Preset, Settings};
pub use wire::VOUCHED_LEN;
