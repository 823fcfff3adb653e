//! PPP over a serial line: HDLC-like framing (RFC 1662), the link control that a running link needs (RFC 1661), and the
//! line itself, as in a space-to-ground link simulator.
//!
//! | module | what |
//! |---|---|
//! | [`framing`] | how long a frame is, and which octets are escaped |
//! | [`deframe`] | octets back into packets; [`Framing::encode`] is the other way |
//! | [`lcp`] | the packets of link control |
//! | [`echo`] | whether a link is alive |
//! | [`mod@line`] | one direction of a serial line: rate, queue, delay, bit errors, cut-offs |
//! | [`stage`] | two lines as a link stage |
//!
//! In simulation nothing is negotiated: each direction has the [`Framing`] that its ends would have agreed on.

mod carrier;
mod damage;
pub mod deframe;
pub mod echo;
mod encode;
pub mod error;
mod errors;
mod fcs;
pub mod framing;
pub mod lcp;
pub mod line;
pub mod stage;

pub use deframe::{Deframer, DeframerCounters};
pub use echo::{EchoConfig, EchoMonitor};
pub use error::PppError;
pub use errors::{ErrorVector, LineErrors};
pub use framing::{Fcs, Framing};
pub use line::{Information, Line, LineConfig, LineCounters, Sent};
pub use stage::{Ppp, PppConfig};

#[cfg(test)]
pub(crate) mod packet;
#[cfg(test)]
mod tests;
