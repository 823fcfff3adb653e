//! The seam: what a protocol that delivers objects to many receivers is to those who drive it.
//!
//! A protocol is one crate of [engines](farcast_core::Engine) that implements the traits here; the network driver, the
//! simulator and the files know these traits and no protocol. Who drives it is monomorphic over [`Protocol`], so the
//! seam costs nothing at run time. A protocol keeps events of its own, as rich as it likes; the seam asks what they
//! mean ([`SenderEngine::milestone`], [`ReceiverEngine::request`]).
//!
//! | file | what |
//! |---|---|
//! | `protocol.rs` | [`Protocol`]: what belongs together |
//! | `object.rs` | which object |
//! | `content.rs` | what of an object a message carries |
//! | `code.rs` | by which erasure code an object is repaired |
//! | `codec.rs` | messages as bytes |
//! | `element.rs` | what stands on the way: network elements and repairers |
//! | `sender.rs` | what is asked of a sender's engine |
//! | `receiver.rs` | what a receiver's engine asks of its owner, and what that answers |
//! | `population.rs` | many like receivers as one |
//! | `each.rs` | many like receivers, an engine each |
//! | `figure.rs` | what a protocol reports of a transfer |
//! | `words.rs` | what a protocol calls what every one has |
//! | `occupancy.rs` | whether a group is another's |
//! | `geometry.rs` | how an object is cut |
//! | `pacer.rs` | when the next datagram may leave |
//! | `rate.rs` | how fast, as something beside the pacer decides |
//! | `stream.rs` | octets without a known end |
//! | `partition.rs` | blocks that are as equal as can be |
//!
//! # Who asks whom
//!
//! ```text
//! sender's owner:    open, start, abort, moved -> SenderEngine -> Milestone
//!                    reads what Content names of the object into each datagram
//! receiver's owner:  ReceiverEngine -> Request (open, store, parity, decode, compare, verify)
//!                    -> Answer -> ReceiverEngine
//! element's owner:   routes what Transmit says; ElementEngine -> ElementRequest (keep, forget)
//! ```
//!
//! Several objects may be under way at once: whatever is asked, answered or carried names its [`ObjectId`].
//!
//! A receiver reports that it has everything only after its owner has answered [`Answer::Verified`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod code;
mod codec;
mod content;
mod each;
mod element;
mod figure;
mod geometry;
mod object;
mod occupancy;
mod pacer;
mod partition;
mod passage;
mod population;
mod protocol;
mod proved;
mod rate;
mod receiver;
mod sender;
mod stream;
mod vouched;
mod words;

pub use code::ErasureCode;
pub use codec::{Codec, Packet, Transport};
pub use content::{Content, Delivery, Purpose};
pub use each::{Each, lacks};
pub use element::{ElementEngine, ElementRequest};
pub use figure::{Figure, FigureValue, RequestCounts};
pub use geometry::{Geometry, GeometryError, MAX_SEGMENTS};
pub use object::ObjectId;
pub use occupancy::Occupancy;
pub use pacer::{Pacer, RatePace};
pub use passage::Passage;
pub use population::{Channel, Feedback, FeedbackCounts, Population, TimedFeedback};
pub use protocol::{Merged, Protocol};
pub use proved::{KeyNumber, Proved};
pub use rate::{FixedRate, RateControl};
pub use receiver::{Answer, Cause, Decline, Offer, Outcome, Received, ReceiverEngine, Request};
pub use sender::{
    Ahead, Asked, Ending, Gone, Milestone, NakFate, Phase, RoundProgress, Routes, SenderEngine,
};
pub use stream::{StreamEngine, StreamReceiverEngine, StreamSenderEngine, Taken};
pub use vouched::Vouched;
pub use words::{Noun, Words};
