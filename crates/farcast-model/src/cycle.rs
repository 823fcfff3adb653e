//! The saw-tooth of congestion avoidance, which three models share.
//!
//! Between two losses that three duplicate ACKs reveal, a sender sends (1 - p)/p + E[W] packets. That number grows
//! without bound as p goes to zero, and so does the time. Both are kept here times the odds p/(1 - p), which stays
//! finite and does not change their quotient. At p = 0 the quotient is the window's, `W_max`/RTT.

use farcast_core::Span;

use crate::path::Path;
use crate::throughput::Bound;

/// The mean period between losses, times the odds of a loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Cycle {
    /// p/(1 - p).
    pub(crate) odds: f64,
    /// E\[`W_u`\]: the mean window at a loss that no `W_max` bounds, in packets; infinite at p = 0.
    pub(crate) unconstrained: f64,
    /// E\[W\]: the mean window at a loss, in packets.
    pub(crate) window: f64,
    /// Odds times E\[W\].
    pub(crate) scaled_window: f64,
    /// Odds times the round trips of the period.
    pub(crate) scaled_rounds: f64,
    /// The bound of E\[W\].
    pub(crate) bound: Bound,
}

impl Cycle {
    /// Computes the cycle on a path that was [checked](Path::check_steady).
    pub(crate) fn of(path: &Path) -> Self {
        let (p, b, limit) = (path.loss.get(), f64::from(path.packets_per_ack), path.limit());
        let odds = p / (1.0 - p);
        let offset = (2.0 + b) / (3.0 * b);
        // Roots are taken apart, and by hypot, because a product or a square under the root could leave the range of
        // numbers.
        let root = libm::sqrt(8.0 / (3.0 * b));
        let unconstrained = offset + libm::hypot(offset, root / libm::sqrt(odds));
        let (bound, window, scaled_window, scaled_rounds) = if unconstrained < limit {
            let scaled_window = odds * offset + libm::hypot(odds * offset, root * libm::sqrt(odds));
            (Bound::Loss, unconstrained, scaled_window, b / 2.0 * scaled_window + odds)
        } else {
            (Bound::Window, limit, odds * limit, 1.0 / limit + odds * (b / 8.0 * limit + 2.0))
        };
        Self { odds, unconstrained, window, scaled_window, scaled_rounds, bound }
    }
}

/// Returns Q: the probability that a loss at window `w` ends in a timeout because too few duplicate ACKs come back;
/// 3/w, at most 1, as p goes to zero.
///
/// PFTK has it in equation (32), and CSA in equation (17).
pub(crate) fn timeout_probability(p: f64, w: f64) -> f64 {
    if p <= 0.0 {
        return (3.0 / w).min(1.0);
    }
    let log_success = libm::log1p(-p);
    let any_lost = |of: f64| -libm::expm1(of * log_success);
    let all_arrive = |of: f64| libm::exp(of * log_success);
    // (1-p)^3 (1 - (1-p)^(w-3)), multiplied out so that no power is negative.
    let few = 1.0 + all_arrive(3.0) - all_arrive(w);
    (any_lost(3.0) * few / any_lost(w)).min(1.0)
}

/// Returns E\[`Z_TO`\]: the mean length in seconds of a sequence of timeouts, each twice as long as the one before up
/// to the seventh: T0 f(p)/(1 - p) with f(p) = 1 + p + 2p^2 + 4p^3 + 8p^4 + 16p^5 + 32p^6.
///
/// PFTK has it in equation (32), CSA in equations (18) and (19), and the multilink paper in equation (8).
pub(crate) fn timeouts_s(p: f64, timeout: Span) -> f64 {
    const F: [f64; 7] = [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let f = F.iter().rev().fold(0.0, |sum, coefficient| sum * p + coefficient);
    timeout.as_secs_f64() * f / (1.0 - p)
}

#[cfg(test)]
mod tests;
