//! NORM-CC: TFMCC (RFC 4654) as NORM uses it (RFC 5740 §5.5.2).
//!
//! The sender keeps to the rate at which TCP would send to the receiver that can take least, the current limiting
//! receiver (CLR). Receivers count loss events and learn their round trips from probes (CMD(CC)). They report the rate
//! that they could take in answers to probes (ACK(CC)) and in NACKs.
//!
//! | file | subject |
//! |---|---|
//! | `equation.rs` | rate of TCP at a loss and a round trip, and its inverse |
//! | `history.rs` | loss events and the intervals between them |
//! | `listener.rs` | receiver's side: measurements, feedback, and its times |
//! | `controller.rs` | sender's side: limiting receiver and rate |
//! | `candidates.rs` | receivers that limit the sender, or may come to do so |
//!
//! Rates here are of NORM's messages in octets per second, without UDP and IP, as they are on the wire.

mod candidates;
mod controller;
mod equation;
mod history;
mod listener;

pub use controller::{Limits, NormCc, Report, RoundTrips};
pub(crate) use listener::{Due, Listener};
