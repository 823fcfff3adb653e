//! Delivery to receivers that cannot answer (broadcast, data diodes), as sans-I/O engines. The protocol is farcast's own.
//!
//! The object is cut into blocks of up to 8,192 segments, each with parity symbols of a code of which any as many symbols
//! as the block has segments give the block back. The symbols of a block, source and then parity, are a ring. The sender
//! goes round it as often as it is told to, in stripes: some symbols of block 0, as many of block 1, and so on, then the
//! next of block 0. So a burst of losses hits every block alike, nothing is repeated until the code is used up, and a
//! receiver that comes at any time needs about as many symbols as the object has segments, whichever they are.
//!
//! * [`Sender`] and [`Receiver`] are the engines ([`farcast_core::Engine`]).
//! * [`Message`] is what the sender says; [`wire`] turns it into bytes and back. Receivers say nothing, ever.
//! * [`SenderConfig`] and [`ReceiverConfig`] hold every setting, [`Shape`] how an object is cut and coded.
//! * [`Population`] is many like receivers, of which each is a few counts.
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
pub use message::{Description, Kind, Message, Symbols};
pub use population::Population;
pub use receiver::{Receiver, ReceiverEvent};
pub use seam::{Codec, OneWay};
pub use sender::{Sender, SenderEvent};
pub use settings::Settings;
