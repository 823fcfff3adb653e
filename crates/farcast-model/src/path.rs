//! The path of a TCP transfer, and the ranges of the models.

use farcast_core::{Probability, Span};

use crate::ModelError;

/// The widest window in packets: TCP's window scale ends at 2^30 octets (RFC 7323 §2.3).
pub const MOST_WINDOW: f64 = 1_073_741_824.0;
/// The most packets for each ACK: a bound of ours, far above the 2 of RFC 5681 §4.2 and of any stretch ACK in use.
pub const MOST_PACKETS_PER_ACK: u32 = 64;

/// A path as a TCP sender sees it, and the few facts of the sender that models need.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// p: the probability that a packet is the first lost one of its round, below 1. Losses that follow it in the same
    /// round are not counted, so on a bursty path this is less than the share of packets that are lost.
    pub loss: Probability,
    /// RTT: the mean round trip, above zero. It includes the queueing that the transfer itself makes.
    pub rtt: Span,
    /// T0: the retransmission timeout before any back-off, at least the round trip.
    pub timeout: Span,
    /// b: packets that one ACK acknowledges, 1 to [`MOST_PACKETS_PER_ACK`]; 2 with delayed ACKs.
    pub packets_per_ack: u32,
    /// `W_max`: the receiver's window in packets, 1 to [`MOST_WINDOW`]; `None` if it never limits.
    pub window: Option<f64>,
}

impl Path {
    /// Refuses values outside the range of a field.
    pub fn check(&self) -> Result<(), ModelError> {
        check_loss(self.loss)?;
        check_round_trip(self.rtt)?;
        if self.timeout < self.rtt {
            let (timeout_s, rtt_s) = (self.timeout.as_secs_f64(), self.rtt.as_secs_f64());
            return Err(ModelError::Timeout { timeout_s, rtt_s });
        }
        check_packets_per_ack(self.packets_per_ack)?;
        check_window(self.window)
    }

    /// Checks like [`check`](Self::check), and refuses a path on which nothing bounds a steady state.
    pub fn check_steady(&self) -> Result<(), ModelError> {
        self.check()?;
        check_bounded(self.loss, self.window)
    }

    /// Returns the window, infinite if it never limits.
    pub(crate) fn limit(&self) -> f64 {
        self.window.unwrap_or(f64::INFINITY)
    }

    /// Returns the round trip in seconds.
    pub(crate) fn rtt_s(&self) -> f64 {
        self.rtt.as_secs_f64()
    }
}

pub(crate) fn check_loss(loss: Probability) -> Result<(), ModelError> {
    if loss.get() < 1.0 { Ok(()) } else { Err(ModelError::Loss { loss: loss.get() }) }
}

pub(crate) fn check_round_trip(rtt: Span) -> Result<(), ModelError> {
    if rtt.is_zero() { Err(ModelError::RoundTrip) } else { Ok(()) }
}

pub(crate) fn check_packets_per_ack(packets: u32) -> Result<(), ModelError> {
    let allowed = (1..=MOST_PACKETS_PER_ACK).contains(&packets);
    if allowed { Ok(()) } else { Err(ModelError::PacketsPerAck { packets }) }
}

pub(crate) fn check_window(window: Option<f64>) -> Result<(), ModelError> {
    match window {
        // Not-a-number is in no range.
        Some(packets) if !(1.0..=MOST_WINDOW).contains(&packets) => Err(ModelError::Window { packets }),
        _ => Ok(()),
    }
}

pub(crate) fn check_bounded(loss: Probability, window: Option<f64>) -> Result<(), ModelError> {
    if loss.get() > 0.0 || window.is_some() { Ok(()) } else { Err(ModelError::Unbounded) }
}
