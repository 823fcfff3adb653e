//! PGM, Pragmatic General Multicast, as sans-I/O engines.
//!
//! Source: RFC 3208, cited by section. Where the code follows OpenPGM, which is in wide use, instead of the RFC, the
//! code says DEVIATION or gives the reason. `docs/src/pgm.md` lists the parts that are implemented and those that are
//! not.
//!
//! * [`Sender`] and [`Receiver`] are the engines ([`farcast_core::Engine`]) of the two ends. [`Element`] is the engine
//!   of a node between them: a network element or a repairer.
//! * [`stream`] has both ends of a stream of octets, which is carried as messages of these engines.
//! * [`Message`] is the type that engines exchange; [`wire`] turns it into bytes and back.
//! * [`SenderConfig`] and [`ReceiverConfig`] hold every setting; [`Settings`] holds those that a user chooses.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cc;
pub mod config;
pub mod element;
pub mod error;
pub mod event;
pub mod message;
pub mod population;
mod ports;
pub mod receiver;
pub mod repairer;
mod seam;
pub mod sender;
pub mod settings;
mod sqn;
pub mod stream;
pub mod wire;

pub use config::{
    Advance, Delivering, Grouping, Live, MOST_GROUP, Object, ReceiverConfig, SenderConfig, Sending,
};
pub use element::{Element, ElementConfig, ElementCounts};
pub use error::{ConfigError, SendError};
pub use event::{ApduId, ElementEvent, MessageEvent, ReceiverEvent, Released, SenderEvent};
pub use farcast_delivery::nack::SenderOutcome;
pub use message::{Body, Gsi, MOST_NAME, Message, NAME_OVERHEAD, NodeId, Sqn, Tsi};
pub use population::{Population, population};
pub use receiver::Receiver;
pub use repairer::{Asks, StoreConfig};
pub use seam::{Codec, IP_PROTOCOL, Pgm};
pub use sender::Sender;
pub use settings::Settings;
