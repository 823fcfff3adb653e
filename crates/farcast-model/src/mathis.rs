//! Mathis: TCP in congestion avoidance, without timeouts.
//!
//! M. Mathis, J. Semke, J. Mahdavi and T. Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm",
//! ACM Computer Communication Review 27(3), 1997.
//!
//! # Validity
//!
//! Periodic losses that are repaired without timeouts: p up to about 0.02, and windows of more than a few packets.
//! Above that the result is too high, for timeouts are missing; the formula is an upper bound there. The model refuses
//! a loss of 1, a loss of 0 without a window, and values outside the range of a field.

use farcast_core::{Probability, Span};

use crate::path::{check_bounded, check_loss, check_packets_per_ack, check_round_trip, check_window};
use crate::{ModelError, Throughput};

/// Inputs of the formula.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Input {
    /// p: the probability that a packet begins a loss event, below 1.
    pub loss: Probability,
    /// RTT: the mean round trip with its queueing, above zero.
    pub rtt: Span,
    /// Packets that one ACK acknowledges, 1 to [`MOST_PACKETS_PER_ACK`](crate::MOST_PACKETS_PER_ACK).
    pub packets_per_ack: u32,
    /// The receiver's window in packets, 1 to [`MOST_WINDOW`](crate::MOST_WINDOW); `None` if it never limits.
    pub window: Option<f64>,
}

/// Returns C of the formula: `sqrt(3/(2b))`, that is 1.2247 with an ACK for each packet and 0.8660 with one for two.
///
/// These are the paper's values for periodic loss; with random loss it has 1.31 and 0.93.
pub fn constant(packets_per_ack: u32) -> Result<f64, ModelError> {
    check_packets_per_ack(packets_per_ack)?;
    Ok(libm::sqrt(1.5 / f64::from(packets_per_ack)))
}

/// Returns the throughput C/(RTT sqrt(p)) in packets, at most the window's `W_max`/RTT, which the paper names as a
/// limit and does not model.
pub fn throughput(input: &Input) -> Result<Throughput, ModelError> {
    check_loss(input.loss)?;
    check_round_trip(input.rtt)?;
    check_window(input.window)?;
    let constant = constant(input.packets_per_ack)?;
    check_bounded(input.loss, input.window)?;
    let rtt = input.rtt.as_secs_f64();
    let by_loss = constant / (rtt * libm::sqrt(input.loss.get()));
    Ok(Throughput::lesser(by_loss, input.window.unwrap_or(f64::INFINITY) / rtt))
}

#[cfg(test)]
mod tests;
