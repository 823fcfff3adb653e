//! PGMCC: the throughput by which a sender chooses its acker.
//!
//! L. Rizzo, G. Iannaccone, L. Vicisano and M. Handley, "PGMCC single rate multicast congestion control: protocol
//! specification", draft-ietf-rmt-bb-pgmcc-03 (2004), section 2.3.
//!
//! # Validity
//!
//! PGMCC's window follows TCP's rules, so its throughput to a group is that of TCP to the acker: the
//! [approximate](crate::pftk::approximate) PFTK model with an ACK for each packet, a timeout of four round trips, and
//! without the bound on the probability of a timeout, which the draft leaves out. The two are the same up to p = 8/27;
//! above, this one is lower. It was made for comparison of receivers; as a prediction it has PFTK's limits. The model
//! refuses a loss of 1, a loss of 0 without a window, and values outside the range of a field.

use farcast_core::{Probability, Span};

use crate::path::{check_bounded, check_loss, check_round_trip, check_window};
use crate::{ModelError, Throughput};

/// Report of a receiver, and the sender's window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Input {
    /// p: the receiver's loss rate, below 1.
    pub loss: Probability,
    /// RTT: the round trip between sender and receiver, above zero.
    pub rtt: Span,
    /// Limit of the sender's window in packets, 1 to [`MOST_WINDOW`](crate::MOST_WINDOW), for example that of a bitmap
    /// of 32 packets in ACKs; `None` if there is none.
    pub window: Option<f64>,
}

/// Returns M: the measure of slowness by which receivers are compared, in seconds: RTT sqrt(p) (1 + 9p (1 + 32 p^2)).
///
/// The acker is the receiver with the greatest M. M is zero without loss.
pub fn slowness_s(input: &Input) -> Result<f64, ModelError> {
    check_loss(input.loss)?;
    check_round_trip(input.rtt)?;
    check_window(input.window)?;
    let p = input.loss.get();
    Ok(input.rtt.as_secs_f64() * libm::sqrt(p) * (1.0 + 9.0 * p * (1.0 + 32.0 * p * p)))
}

/// Returns the throughput to a group whose acker reports this: sqrt(3/2)/M packets per second, at most the window's.
///
/// The draft's M is proportional to the inverse of the throughput and omits the factor sqrt(2/3) of PFTK's first term;
/// dividing by it gives packets per second.
pub fn throughput(input: &Input) -> Result<Throughput, ModelError> {
    let slowness = slowness_s(input)?;
    check_bounded(input.loss, input.window)?;
    let by_window = input.window.unwrap_or(f64::INFINITY) / input.rtt.as_secs_f64();
    Ok(Throughput::lesser(libm::sqrt(1.5) / slowness, by_window))
}

#[cfg(test)]
mod tests;
