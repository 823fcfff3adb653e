//! PFTK: TCP Reno in steady state, with timeouts.
//!
//! J. Padhye, V. Firoiu, D. Towsley and J. Kurose, "Modeling TCP Reno performance: a simple model and its empirical
//! validation", IEEE/ACM Transactions on Networking 8(2), 2000.
//!
//! # Validity
//!
//! The model describes a sender that always has data. A loss takes with it the rest of its round and is independent of
//! losses in other rounds; the round trip does not depend on the window; slow start and fast recovery take no time. The
//! measurements behind it have p up to about 0.3. The model refuses a loss of 1, a timeout shorter than the round trip
//! (the throughput would pass `W_max`/RTT), and all that [`Path::check_steady`] refuses.
//!
//! Where E\[`W_u`\] passes `W_max` the two branches of the full model meet only for b = 2: the paper's count of rounds
//! jumps there by 1/2 - b/4. So for b = 1 the throughput rises by a few per cent as the loss passes that point;
//! everywhere else it falls as losses grow.

use crate::cycle::{Cycle, timeout_probability, timeouts_s};
use crate::path::Path;
use crate::{ModelError, Throughput};

/// Result of the full model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prediction {
    /// B(p): packets sent, and the branch of equation (32) that was used.
    pub sent: Throughput,
    /// T(p): packets that arrive per second, at most those that are sent.
    pub received_packets_per_s: f64,
    /// E\[`W_u`\]: the mean window at a loss if no `W_max` bounded it, in packets; infinite without loss.
    pub unconstrained_window: f64,
    /// Q: the probability that a loss is noticed by a timeout.
    pub timeout_probability: f64,
}

/// Computes the full model.
///
/// Equation (32), with x = (1-p)/p:
///
/// ```text
/// B = (x + E[W_u] + Q/(1-p)) / (RTT (b/2 E[W_u] + 1)              + Q T0 f(p)/(1-p))   if E[W_u] <  W_max
/// B = (x + W_max  + Q/(1-p)) / (RTT (b/8 W_max + x/W_max + 2)     + Q T0 f(p)/(1-p))   otherwise
/// E[W_u] = (2+b)/(3b) + sqrt(8(1-p)/(3bp) + ((2+b)/(3b))^2)
/// ```
///
/// T(p), the paper's extension, counts packets that arrive: half of the last round, and one packet of all that timeouts
/// repeat. Its numerator is x + E\[W\]/2 + Q, as in CSA equation (22). At p = 0 both are `W_max`/RTT.
pub fn full(path: &Path) -> Result<Prediction, ModelError> {
    path.check_steady()?;
    let p = path.loss.get();
    let cycle = Cycle::of(path);
    let timeout_probability = timeout_probability(p, cycle.window);
    let waiting = cycle.odds * timeout_probability * timeouts_s(p, path.timeout);
    let period = path.rtt_s() * cycle.scaled_rounds + waiting;
    let in_timeouts = cycle.odds * timeout_probability;
    let sent = (1.0 + cycle.scaled_window + in_timeouts / (1.0 - p)) / period;
    Ok(Prediction {
        sent: Throughput { packets_per_s: sent, bound: cycle.bound },
        received_packets_per_s: (1.0 + cycle.scaled_window / 2.0 + in_timeouts) / period,
        unconstrained_window: cycle.unconstrained,
        timeout_probability,
    })
}

/// Computes the approximate model, which the paper derives from equation (32). RFC 5348 §3.1 uses the model without the
/// least of 1 and the probability of a timeout:
///
/// ```text
/// B ~ min(W_max/RTT, 1 / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2)))
/// ```
///
/// It approaches the full model as p goes to zero.
pub fn approximate(path: &Path) -> Result<Throughput, ModelError> {
    path.check_steady()?;
    let (p, b, rtt) = (path.loss.get(), f64::from(path.packets_per_ack), path.rtt_s());
    let recovering = rtt * libm::sqrt(2.0 * b / 3.0) * libm::sqrt(p);
    let timeouts = (3.0 * libm::sqrt(3.0 * b * p / 8.0)).min(1.0) * p * (1.0 + 32.0 * p * p);
    let by_loss = 1.0 / (recovering + path.timeout.as_secs_f64() * timeouts);
    Ok(Throughput::lesser(by_loss, path.limit() / rtt))
}

#[cfg(test)]
pub(crate) mod tests;
