//! CUBIC (RFC 9438), in segments and seconds.

use farcast_core::{Span, Time};
use libm::cbrt;

/// The scaling constant C (section 5).
const C: f64 = 0.4;
/// The multiplicative decrease factor (section 4.6).
pub(super) const BETA: f64 = 0.7;
/// The growth of the Reno-friendly estimate, in segments a round trip (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The state of section 4.1.2.
#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    /// The window before the last reduction, `W_max`.
    most: f64,
    /// The window when it was last reduced, `cwnd_prior`.
    prior: f64,
    /// The window that Reno would have by now, `W_est`.
    friendly: f64,
    /// Time that the window takes to reach `most` again, in seconds, `K`.
    k: f64,
    /// Start of this stage of congestion avoidance.
    epoch: Option<Time>,
    last: Time,
}

impl Cubic {
    /// Returns the window after `segments` were acknowledged at `now`.
    pub(super) fn grow(&mut self, now: Time, round_trip: Span, window: f64, segments: f64) -> f64 {
        self.last = now;
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.friendly = window;
            if window < self.most {
                self.k = cbrt((self.most - window) / C);
            } else {
                (self.k, self.most) = (0.0, window);
            }
            now
        });
        let elapsed = now.since(epoch).as_secs_f64();
        let cube = |t: f64| C * (t - self.k) * (t - self.k) * (t - self.k) + self.most;
        // Figure 4: the estimate grows as Reno once it has caught up with the window before the reduction.
        let alpha = if self.friendly >= self.prior { 1.0 } else { ALPHA };
        self.friendly += alpha * segments / window;
        if cube(elapsed) < self.friendly {
            return window.max(self.friendly);
        }
        let target = cube(elapsed + round_trip.as_secs_f64()).clamp(window, 1.5 * window);
        window + (target - window) / window * segments
    }

    /// Leaves time out of account in which the window was not used (section 5.8).
    pub(super) fn pause(&mut self, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            *epoch = (*epoch + now.since(self.last)).min(now);
        }
        self.last = now;
    }

    /// Reacts to a loss at this window (sections 4.6 and 4.7).
    pub(super) fn lose(&mut self, window: f64) {
        self.prior = window;
        self.most = if window < self.most { window * (1.0 + BETA) / 2.0 } else { window };
        self.epoch = None;
    }

    /// Reacts to a timeout: the next stage begins at the end of its slow start (section 4.8).
    pub(super) fn restart(&mut self) {
        self.most = 0.0;
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests;
