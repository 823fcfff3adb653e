//! Cardwell: the latency of a TCP transfer of any size.
//!
//! N. Cardwell, S. Savage and T. Anderson, "Modeling TCP latency", IEEE INFOCOM 2000 (CSA). A transfer is a handshake,
//! slow start up to the first loss, that loss, and congestion avoidance at [PFTK](crate::pftk)'s rate for the rest;
//! [`Latency`] has each of them.
//!
//! # Validity
//!
//! The validity is that of [PFTK](crate::pftk). The link's rate does not limit: if it does, its queueing must be in the
//! round trip and its rate in the window. Slow start ends with the first loss, there is no threshold from former
//! connections. Windows grow as real numbers, by 1 + 1/b each round, so against a count of rounds with whole packets
//! the slow start of the model is up to one round trip off. The model refuses no segments, an initial window outside 1
//! to `W_max`, a handshake whose packets are lost with probability 1/2 or more, and all that [`Path::check`] refuses.

use farcast_core::{Probability, Span};

use crate::cycle::{timeout_probability, timeouts_s};
use crate::path::Path;
use crate::{Bound, ModelError, pftk};

/// A transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transfer {
    /// d: segments of data, at least 1.
    pub segments: u64,
    /// w1: the congestion window at the start in segments, at least 1 and at most the path's window.
    pub initial_window: u32,
    /// The path; its loss may be 0 without a window, because a transfer ends.
    pub path: Path,
    /// The mean wait of the receiver for a second segment before it sends an ACK. It counts only if the first window is
    /// too small to draw an ACK at once: less than `packets_per_ack` segments. The paper has 100 ms for the heartbeat
    /// of 200 ms in BSD, and 150 ms for Windows 95.
    pub delayed_ack: Span,
    /// The handshake before the transfer, if it counts.
    pub handshake: Option<Handshake>,
}

/// A handshake of three packets, whose SYN goes in the direction of the data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Handshake {
    /// `T_s`: the timeout of the first SYN; each further one is twice as long. 1 s in RFC 6298, 3 s before.
    pub timeout: Span,
    /// The probability that a packet of the other direction is lost, below 1/2.
    pub return_loss: Probability,
}

/// Parts of the transfer time. All times are mean values in seconds, finite and not negative.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Latency {
    /// `E[L_h]`: the handshake, zero if it does not count.
    pub handshake_s: f64,
    /// `E[T_ss]`: slow start from the first segment on, until a loss or the end.
    pub slow_start_s: f64,
    /// `E[T_loss]`: the cost of the first loss, by timeout or fast retransmission, if there is one.
    pub loss_s: f64,
    /// `E[T_ca]`: the rest, in congestion avoidance.
    pub congestion_avoidance_s: f64,
    /// The wait of the receiver before its first ACK.
    pub delayed_ack_s: f64,
    /// `E[d_ss]`: segments in slow start, at most all.
    pub slow_start_segments: f64,
    /// The window that slow start reaches, in segments, at most the path's.
    pub slow_start_window: f64,
    /// The bound of the growth of that window: a loss or the end of the data, or the path's window.
    pub slow_start_bound: Bound,
    /// `l_ss`: the probability that any segment is lost.
    pub loss_probability: f64,
}

impl Latency {
    /// Returns the whole time, equation (25) and the handshake, in seconds.
    pub fn total_s(&self) -> f64 {
        self.handshake_s + self.slow_start_s + self.loss_s + self.congestion_avoidance_s + self.delayed_ack_s
    }
}

impl Transfer {
    /// Refuses values outside the range of a field.
    pub fn check(&self) -> Result<(), ModelError> {
        self.path.check()?;
        if self.segments == 0 {
            return Err(ModelError::NoSegments);
        }
        let (segments, most) = (self.initial_window, self.path.limit());
        if segments == 0 || f64::from(segments) > most {
            return Err(ModelError::InitialWindow { segments, most });
        }
        let Some(handshake) = &self.handshake else { return Ok(()) };
        let loss = self.path.loss.get().max(handshake.return_loss.get());
        if loss < 0.5 { Ok(()) } else { Err(ModelError::HandshakeLoss { loss }) }
    }

    /// Returns the latency of the transfer, equations (4) to (25).
    ///
    /// In the paper E\[`d_ss`\] counts the lost segment even if none is lost, and so passes d by up to one segment;
    /// here it is at most d, its value at p = 0. The window that a loss meets is at most `W_max`, as it is in slow
    /// start.
    pub fn latency(&self) -> Result<Latency, ModelError> {
        self.check()?;
        let data = self.segments as f64;
        let (p, gamma) = (self.path.loss.get(), 1.0 + 1.0 / f64::from(self.path.packets_per_ack));
        let loss_probability = any_lost(p, data);
        let slow = slow_start_segments(p, data, loss_probability);
        // Equation (11).
        let grown = (slow * (gamma - 1.0) + f64::from(self.initial_window)) / gamma;
        let slow_start_window = grown.min(self.path.limit());
        let waits = self.initial_window < self.path.packets_per_ack;
        Ok(Latency {
            handshake_s: self.handshake.map_or(0.0, |handshake| self.handshake_s(&handshake)),
            slow_start_s: self.slow_start_s(slow, grown),
            loss_s: loss_probability * self.first_loss_s(slow_start_window),
            congestion_avoidance_s: self.congestion_avoidance_s(data - slow)?,
            delayed_ack_s: if waits { self.delayed_ack.as_secs_f64() } else { 0.0 },
            slow_start_segments: slow,
            slow_start_window,
            slow_start_bound: if grown > self.path.limit() { Bound::Window } else { Bound::Loss },
            loss_probability,
        })
    }

    /// Returns the time of the handshake, equation (4): RTT + `T_s` (p_r/(1-2p_r) + p_f/(1-2p_f)).
    fn handshake_s(&self, handshake: &Handshake) -> f64 {
        // (1-p)/(1-2p) - 1, without the difference.
        let retries = |p: f64| p / (1.0 - 2.0 * p);
        let retries = retries(handshake.return_loss.get()) + retries(self.path.loss.get());
        self.path.rtt_s() + handshake.timeout.as_secs_f64() * retries
    }

    /// Returns the time of slow start, equation (15), for `segments` that leave the window at `grown`, if `W_max`
    /// allows.
    fn slow_start_s(&self, segments: f64, grown: f64) -> f64 {
        let (initial, limit) = (f64::from(self.initial_window), self.path.limit());
        let growth = 1.0 / f64::from(self.path.packets_per_ack);
        let log_gamma = libm::log1p(growth);
        let rounds = if grown > limit {
            let growing = ((1.0 + growth) * limit - initial) / growth;
            libm::log(limit / initial) / log_gamma + 1.0 + (segments - growing) / limit
        } else {
            libm::log1p(segments * growth / initial) / log_gamma
        };
        self.path.rtt_s() * rounds
    }

    /// Returns the cost of a loss that has happened, equation (20): a sequence of timeouts, or a round trip of fast
    /// retransmission.
    fn first_loss_s(&self, window: f64) -> f64 {
        let p = self.path.loss.get();
        let by_timeout = timeout_probability(p, window);
        by_timeout * timeouts_s(p, self.path.timeout) + (1.0 - by_timeout) * self.path.rtt_s()
    }

    /// Returns the time of the remaining segments, equation (24), at the rate at which PFTK's segments arrive, equation
    /// (22).
    fn congestion_avoidance_s(&self, segments: f64) -> Result<f64, ModelError> {
        // Nothing is left without loss, and then a path without a window has no rate.
        if segments <= 0.0 {
            return Ok(0.0);
        }
        Ok(segments / pftk::full(&self.path)?.received_packets_per_s)
    }
}

/// Returns the probability that any of `segments` is lost, equation (16).
fn any_lost(p: f64, segments: f64) -> f64 {
    -libm::expm1(segments * libm::log1p(-p))
}

/// Returns the segments before the first loss and the lost one, equation (5); all if there is no loss.
fn slow_start_segments(p: f64, segments: f64, any_lost: f64) -> f64 {
    if p <= 0.0 { segments } else { (any_lost * (1.0 - p) / p + 1.0).min(segments) }
}

#[cfg(test)]
mod tests;
