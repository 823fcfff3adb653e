//! NORM-CC: TFMCC (RFC 4654) as NORM does it (RFC 5740 §5.5.2).
//!
//! The sender keeps to the rate at which TCP would send to the receiver that can take least, the current limiting
//! receiver (CLR). Receivers count loss events, learn their round trips from probes (CMD(CC)), and say in answers to
//! probes (ACK(CC)) and in NACKs what they could take.
//!
//! | file | what |
//! |---|---|
//! | `equation.rs` | the rate of TCP at a loss and a round trip, and back |
//! | `history.rs` | loss events and the intervals between them |
//! | `listener.rs` | a receiver's side: what it measures and says, and when |
//! | `controller.rs` | the sender's side: who limits it, and its rate |
//! | `candidates.rs` | receivers that limit it, or may come to |
//!
//! Rates here are of NORM's messages in octets per second, without UDP and IP, as they are on the wire.

mod candidates;
mod controller;
mod equation;
mod history;
mod listener;

pub use controller::{Limits, NormCc, Report};
pub(crate) use listener::{Due, Listener};
