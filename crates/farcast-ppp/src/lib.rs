//! PPP without I/O: HDLC-like framing (RFC 1662), the link control that a running link needs (RFC 1661), multilink
//! (RFC 1990), and Van Jacobson's compression of TCP/IP headers (RFC 1144).
//!
//! | module | content |
//! |---|---|
//! | [`framing`] | length of a frame, and octets that are escaped |
//! | [`deframe`] | octets back into packets; [`Framing::encode`] is the other way |
//! | [`lcp`] | the packets of link control |
//! | [`echo`] | detection of dead links |
//! | [`multilink`] | one virtual link made of several |
//! | [`vj`] | headers of TCP over IPv4 in 3 to 19 octets |
//!
//! Nothing is negotiated: each direction has the [`Framing`] that its ends would have agreed on.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod deframe;
pub mod echo;
mod encode;
pub mod error;
mod fcs;
pub mod framing;
pub mod lcp;
pub mod multilink;
#[cfg(test)]
mod tests;
pub mod vj;

pub use deframe::{Deframer, DeframerCounters};
pub use echo::{EchoConfig, EchoMonitor};
pub use error::ConfigError;
pub use framing::{Fcs, FrameLength, Framing};
pub use vj::VjConfig;
