//! MDP version 2, the Multicast Dissemination Protocol, as sans-I/O engines.
//!
//! Sources: draft-macker-rmt-mdp-00 (J. Macker and B. Adamson, 1999), cited by section. Where they differ from it, the
//! packets of the later toolkit (protocol version 9) count, as traffic analysers know them. Choices that neither source
//! makes are ours and marked so. No running peer is known, so the tests can only check consistency. NORM grew out of
//! MDP; [`farcast_delivery::nack`] has what both have in common.
//!
//! * [`Sender`] and [`Receiver`] are the engines ([`farcast_core::Engine`]).
//! * [`Message`] is the type that engines exchange; [`wire`] turns it into bytes and back.
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
pub use event::{ObjectBegun, ReceiverEvent, SenderEvent};
pub use farcast_delivery::nack::{NodeId, SenderOutcome};
pub use message::{Body, Message};
pub use population::{Population, population};
pub use receiver::Receiver;
pub use seam::{Codec, Mdp};
pub use sender::Sender;
pub use settings::{Preset, Settings};
pub use wire::VOUCHED_LEN;
