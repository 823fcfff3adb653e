//! Congestion window: its growth, and its reduction after a loss (RFC 5681, RFC 9438, RFC 9406).

mod cubic;
mod hystart;

use farcast_core::{Span, Time};

use crate::config::{Algorithm, Config, Increase};
use cubic::Cubic;
use hystart::HyStart;

/// Growth of the window beyond slow start.
#[derive(Clone, Debug)]
enum Avoidance {
    /// Growth earned by acknowledgments, in octets times the window.
    Reno { earned: u64 },
    /// Growth as a function of time.
    Cubic(Cubic),
}

/// The congestion window and the slow start threshold, in octets.
#[derive(Clone, Debug)]
pub(crate) struct Congestion {
    smss: u64,
    pub window: u64,
    pub threshold: u64,
    increase: Increase,
    avoidance: Avoidance,
    hystart: Option<HyStart>,
}

/// Facts of an acknowledgment from which the window grows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub now: Time,
    /// Octets newly acknowledged.
    pub octets: u64,
    /// Octets that are newly known to have arrived.
    pub delivered: u64,
    /// The smoothed round trip.
    pub round_trip: Span,
    /// A round trip measured with this acknowledgment.
    pub sample: Option<Span>,
    /// Position that the acknowledgment reaches; `next` is the position behind the last octet sent.
    pub acknowledged: u64,
    pub next: u64,
}

/// Largest window in octets: the most that the header can express, and a margin for inflation.
const MOST: u64 = 1 << 32;

impl Congestion {
    pub(crate) fn new(config: &Config, smss: u64) -> Self {
        Self {
            smss,
            window: config.initial_window.octets(smss),
            threshold: config.initial_ssthresh.map_or(u64::MAX, |threshold| threshold.octets(smss)),
            increase: config.increase,
            avoidance: match config.congestion {
                Algorithm::Reno => Avoidance::Reno { earned: 0 },
                Algorithm::Cubic => Avoidance::Cubic(Cubic::default()),
            },
            hystart: config.hystart.then(HyStart::default),
        }
    }

    /// Returns `true` if the window grows by slow start.
    pub(crate) const fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Grows the window. The caller ensures that new data was acknowledged and that the window was what limited
    /// sending.
    pub(crate) fn grow(&mut self, growth: Growth) {
        let mut octets = if self.increase == Increase::Delivered { growth.delivered } else { growth.octets };
        if self.in_slow_start() {
            octets = self.slow_start(&growth, octets);
            if octets == 0 {
                return;
            }
        }
        let smss = self.smss;
        match &mut self.avoidance {
            Avoidance::Reno { earned } if self.increase == Increase::Delivered => {
                // RFC 3465 section 2.1: a segment for each window.
                *earned += octets;
                let windows = *earned / self.window;
                *earned %= self.window;
                self.window += windows * smss;
            }
            Avoidance::Reno { earned } => {
                *earned += smss * if self.increase == Increase::PerAcknowledgment { smss } else { octets };
                let step = *earned / self.window;
                *earned %= self.window;
                self.window += step;
            }
            Avoidance::Cubic(cubic) => {
                let segments = match self.increase {
                    Increase::Octets(_) | Increase::Delivered => octets as f64 / smss as f64,
                    Increase::PerAcknowledgment => 1.0,
                };
                let window = self.window as f64 / smss as f64;
                let grown = cubic.grow(growth.now, growth.round_trip, window, segments);
                self.window = (grown * smss as f64) as u64;
            }
        }
        self.window = self.window.min(MOST);
    }

    /// Grows the window by slow start. Returns the part of the acknowledged or delivered `octets` that is left for
    /// congestion avoidance.
    fn slow_start(&mut self, growth: &Growth, octets: u64) -> u64 {
        let limit = match self.increase {
            Increase::PerAcknowledgment => self.smss,
            Increase::Octets(segments) => u64::from(segments) * self.smss,
            Increase::Delivered => u64::MAX,
        };
        let step = octets.min(limit);
        if let Some(hystart) = &mut self.hystart {
            hystart.sample(growth.sample, growth.acknowledged, growth.next);
            self.window += hystart.step(step);
            if hystart.is_over() {
                self.threshold = self.window;
            }
            return 0;
        }
        let room = self.threshold - self.window;
        let counted = self.increase != Increase::PerAcknowledgment;
        self.window = (self.window + if counted { step.min(room) } else { step }).min(MOST);
        if counted { step.saturating_sub(room) } else { 0 }
    }

    /// Notes that the window did not limit sending until `now`: the window does not grow, and this time does not count.
    pub(crate) fn pause(&mut self, now: Time) {
        if let Avoidance::Cubic(cubic) = &mut self.avoidance {
            cubic.pause(now);
        }
    }

    /// Reacts to a loss: sets the slow start threshold from `base`, the octets in flight or the window (RFC 5681
    /// equation 4, RFC 9438 section 4.6).
    pub(crate) fn lose(&mut self, base: u64) {
        let share = match &mut self.avoidance {
            Avoidance::Reno { earned } => {
                *earned = 0;
                base / 2
            }
            Avoidance::Cubic(cubic) => {
                cubic.lose(self.window as f64 / self.smss as f64);
                (base as f64 * cubic::BETA) as u64
            }
        };
        let share = if self.increase == Increase::Delivered { share - share % self.smss } else { share };
        self.threshold = share.max(2 * self.smss);
        if let Some(hystart) = &mut self.hystart {
            hystart.end();
        }
    }

    /// Reacts to a timeout: sets the window to one segment.
    pub(crate) fn collapse(&mut self) {
        self.window = self.smss;
        if let Avoidance::Cubic(cubic) = &mut self.avoidance {
            cubic.restart();
        }
    }
}

#[cfg(test)]
mod tests;
