//! MFTP, the `StarBurst` Multicast File Transfer Protocol, as sans-I/O engines.
//!
//! One server sends a product to many clients in passes: pass 1 sends every DTU, each later pass the union of the DTUs
//! that clients miss. Clients answer status requests with bitmaps (NAKs), one for each block.
//!
//! Source: draft-miller-mftp-spec-03 (Miller, Robertson, Tweedly, White; April 1998), cited as "draft §x". In: group
//! management, all three group models, registration, data, status requests, NAK, ACK, Done, completion, abort, quit,
//! echo, restart, response spreading and suppression. Out: aggregators (their END and aggregated registrations are
//! understood). Beyond the draft: IPv6, products above 4 GiB, a digest that commits to the product, proofs of the
//! origin of messages, named receivers, parity in place of the union of lost DTUs, sending by window instead of by
//! rate. A comment marked DEVIATION shows where the code departs from the draft.
//!
//! * [`Sender`] and [`Receiver`] are the engines ([`farcast_core::Engine`]).
//! * [`Message`] is their message type; [`wire`] encodes and decodes it.
//! * [`SenderConfig`] and [`ReceiverConfig`] hold every setting of an engine. [`Settings`] are those that a user
//!   chooses; the configuration follows from them, the same for every command.
//! * [`Population`] is many like receivers as one, for simulations.
//! * [`Mftp`] is all of them behind [`farcast_delivery`] (`seam`), whose drivers do not know MFTP. [`figures`] are the
//!   names of the figures that it reports of a transfer.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod config;
pub mod error;
pub mod event;
pub mod figures;
mod hostset;
pub mod message;
pub mod population;
pub mod proof;
pub mod receiver;
mod seam;
pub mod sender;
pub mod settings;
mod turn;
pub mod wire;

pub use config::{
    Group, Invited, NakTiming, Pace, PassWait, Product, ReceiverConfig, SenderConfig, Start, StatusRetry,
    Waits,
};
pub use error::ConfigError;
pub use event::{ReceiverEvent, ReceiverOutcome, SenderEvent, SenderOutcome};
pub use hostset::HostSet;
pub use message::{Body, ClientId, Message};
pub use population::Population;
pub use proof::{Proof, Secret, Token};
pub use receiver::Receiver;
pub use seam::{Codec, Mftp};
pub use sender::{GivenUp, Judgement, Member, MemberState, Neighbourhood, Sender, Survey, Surveyed};
pub use settings::Settings;
pub use turn::{HeardData, Turn};
