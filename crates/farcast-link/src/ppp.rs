//! PPP over a serial line, as in a space-to-ground link simulator.
//!
//! Frames and link control are in [`farcast_ppp`]. The lines that carry and damage them are here.
//!
//! | module | content |
//! |---|---|
//! | [`mod@line`] | one direction of a serial line: rate, queue, delay, bit errors, cut-offs |
//! | [`stage`] | two lines as a link stage |
//!
//! Simulation negotiates nothing: each direction has the [`Framing`](farcast_ppp::Framing) that its ends would have
//! agreed on.

mod carrier;
mod damage;
pub mod error;
mod errors;
pub mod line;
pub mod stage;
mod vj;

pub use error::PppError;
pub use errors::{ErrorVector, LineErrors};
pub use line::{Information, LineConfig, LineCounters, PacketFate, SerialLine};
pub use stage::{EndCounters, Ppp, PppConfig};
pub use vj::VjCounters;

#[cfg(test)]
mod tests;
