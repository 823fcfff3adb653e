//! Delivery to receivers that cannot answer (broadcast, data diodes), as sans-I/O engines. The protocol is farcast's
//! own.
//!
//! The object is divided into blocks of up to 8,192 segments, each with parity symbols of an erasure code. Any symbols
//! of a block, as many as it has segments, are enough to rebuild it. The symbols of a block, source and then parity,
//! form a ring. The sender goes round the rings in stripes, for as long as it is told to: some symbols of block 0, as
//! many of block 1, and so on, then the next of block 0. So a burst of losses hits every block alike, and nothing is
//! repeated until the code is used up. A receiver that comes at any time needs about as many symbols as the object has
//! segments, no matter which.
//!
//! * [`Sender`] and [`Receiver`] are the engines ([`farcast_core::Engine`]).
//! * [`Message`] is the sender's message; [`wire`] encodes and decodes it. Receivers never send anything.
//! * [`SenderConfig`] and [`ReceiverConfig`] hold every setting, [`Shape`] the division and code of an object.
//! * [`Population`] is many like receivers, each represented by a few counts.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod config;
pub mod message;
mod population;
mod receiver;
mod seam;
mod sender;
pub mod settings;
mod timing;
pub mod wire;

pub use config::{ConfigError, Duration, ReceiverConfig, SenderConfig, Shape};
pub use message::{Description, Kind, Message, Symbols, Withdrawn};
pub use population::Population;
pub use receiver::{Receiver, ReceiverEvent};
pub use seam::{Codec, OneWay};
pub use sender::{Sender, SenderEvent};
pub use settings::Settings;
