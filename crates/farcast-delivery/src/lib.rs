//! The seam: traits between a protocol that delivers objects to many receivers and the programs that drive it.
//!
//! A protocol is one crate of [engines](farcast_core::Engine) that implements the traits here. The network driver, the
//! simulator and the file layer know these traits and no protocol. Drivers are monomorphic over [`Protocol`], so the
//! seam costs nothing at run time. A protocol has event types of its own; the traits translate them
//! ([`SenderEngine::milestone`], [`ReceiverEngine::request`]).
//!
//! | file | contents |
//! |---|---|
//! | `protocol.rs` | [`Protocol`]: the types that make up a protocol |
//! | `object.rs` | identifiers of objects |
//! | `content.rs` | content that a message carries |
//! | `code.rs` | erasure codes that repair an object |
//! | `codec.rs` | encoding of messages as bytes |
//! | `element.rs` | network elements and repairers |
//! | `sender.rs` | interface of a sender's engine |
//! | `receiver.rs` | requests of a receiver's engine to its owner, and the answers |
//! | `population.rs` | many like receivers as one |
//! | `each.rs` | many like receivers with one engine each |
//! | `figure.rs` | figures that a protocol reports of a transfer |
//! | `words.rs` | terms of a protocol for common things |
//! | `occupancy.rs` | detection of other deliveries on a group |
//! | `octets.rs` | integers in a sequence of octets |
//! | `passage.rs` | losses, from the numbers of datagrams |
//! | `path.rs` | properties of the path |
//! | `binomial.rs` | distribution of losses |
//! | `forecast.rs` | what receivers will say, by the settings |
//! | `proved.rs` | proven origin of a sealed message |
//! | `vouched.rs` | metadata of a file without a manifest |
//! | `geometry.rs` | division of an object into blocks and segments |
//! | `pacer.rs` | departure times of datagrams |
//! | `settings.rs` | settings that several protocols have |
//! | `rate.rs` | rate control beside the pacer |
//! | `stream.rs` | streams without a known end |
//! | `nack/` | skeleton of protocols whose receivers ask for what they lack |
//! | `partition.rs` | blocks of nearly equal size |
//!
//! # Who calls whom
//!
//! ```text
//! sender's owner:    open, start, abort, moved -> SenderEngine -> Milestone
//!                    reads what Content names of the object into each datagram
//! receiver's owner:  ReceiverEngine -> Request (open, store, parity, decode, compare, verify)
//!                    -> Answer -> ReceiverEngine
//! element's owner:   routes what Transmit says; ElementEngine -> ElementRequest (keep, forget)
//! ```
//!
//! Several objects may be under way at once: every request, answer and content names its [`ObjectId`].
//!
//! A receiver reports that it has everything only after its owner has answered [`Answer::Verified`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod binomial;
mod code;
mod codec;
mod content;
mod each;
mod element;
mod figure;
mod forecast;
mod geometry;
pub mod nack;
mod object;
mod occupancy;
pub mod octets;
mod pacer;
mod partition;
mod passage;
mod path;
mod population;
mod protocol;
mod proved;
mod rate;
mod receiver;
mod sender;
pub mod settings;
mod stream;
mod vouched;
mod words;

pub use code::ErasureCode;
pub use codec::{Codec, Packet, Transport};
pub use content::{Content, Delivery, Purpose};
pub use each::{Each, lacks};
pub use element::{ElementEngine, ElementRequest};
pub use figure::{Figure, FigureValue, RequestCounts};
pub use forecast::{Change, Datagrams, Forecast, Forecasting, MoreAhead, NewValue, Order, Requests};
pub use geometry::{Geometry, GeometryError, MAX_SEGMENTS};
pub use object::ObjectId;
pub use occupancy::{Occupancy, QUIET, Silence};
pub use pacer::{Pacer, RatePace};
pub use passage::Passage;
pub use path::PathLimits;
pub use population::{Channel, Feedback, FeedbackCounts, Population, TimedFeedback};
pub use protocol::{Merged, Protocol};
pub use proved::{KeyNumber, Proved};
pub use rate::{FixedRate, RateControl};
pub use receiver::{AT_HAND, Answer, Cause, Decline, Offer, Outcome, Received, ReceiverEngine, Request};
pub use sender::{
    Ahead, Asked, Ending, Gone, Milestone, NakFate, Phase, RoundProgress, Routes, SenderEngine,
};
pub use settings::Parity;
pub use stream::{StreamEngine, StreamReceiverEngine, StreamSenderEngine, Taken};
pub use vouched::Vouched;
pub use words::{Noun, Words};
