//! The round-trip time and the retransmission timeout (RFC 6298).

mod variation;

use farcast_core::Span;

use crate::ConfigError;
use variation::{LinuxVariation, Smoothed};

/// Quantity of which the least timeout is a floor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Floor {
    /// The whole timeout (RFC 6298 rule 2.4).
    #[default]
    Timeout,
    /// Four times the variation, as in Linux: a timeout is always at least this much longer than the smoothed round
    /// trip.
    Variation,
}

/// Estimation of the variation of the round trip, four times which is added to the smoothed round trip.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Variation {
    /// Smoothed with every measurement (RFC 6298 rules 2.2 and 2.3).
    #[default]
    Rfc6298,
    /// The greatest variation of a round trip, which comes down slowly, as in Linux (Sarolahti and Kuznetsov,
    /// "Congestion Control in Linux TCP", USENIX 2002, section 3.1).
    ///
    /// * A mean deviation is smoothed as in RFC 6298, and starts at half of the first round trip. But a round trip that
    ///   is shorter than the smoothed one, and would raise the deviation, raises it by only an eighth of that amount. A
    ///   path that becomes shorter needs no longer timeout.
    /// * The variation is raised to the mean deviation at once.
    /// * Once in a round trip a round ends, when data is acknowledged that was sent after the end of the last round. If
    ///   the greatest mean deviation of the round lies below the variation, the variation falls by a fourth of the
    ///   difference. A new round begins at a fourth of the floor ([`Floor::Variation`]) or of the granularity.
    Linux,
}

/// Settings of the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RtoConfig {
    /// The timeout before any round trip was measured (rule 2.1).
    pub initial: Span,
    /// The least timeout (rule 2.4).
    pub least: Span,
    /// The greatest timeout, also when doubled (rule 2.5).
    pub most: Span,
    /// Granularity G of the clock, to which measured round trips are rounded too.
    pub granularity: Span,
    /// Quantity of which `least` is a floor.
    pub floor: Floor,
    /// Estimation of the variation.
    pub variation: Variation,
    /// The timeout when data begins after a SYN was lost, if it would be shorter (rule 5.7).
    pub after_lost_syn: Span,
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self {
            initial: Span::from_secs(1),
            least: Span::from_secs(1),
            most: Span::from_secs(60),
            granularity: Span::from_millis(1),
            floor: Floor::Timeout,
            variation: Variation::Rfc6298,
            after_lost_syn: Span::from_secs(3),
        }
    }
}

impl RtoConfig {
    /// Returns the settings of today's Linux: 1 s at first, at least 200 ms more than the smoothed round trip, at most
    /// 120 s, with the greatest variation of a round trip. It measures in microseconds. Its timers' ticks (4 ms in most
    /// kernels) are left out.
    pub const fn linux() -> Self {
        Self {
            initial: Span::from_secs(1),
            least: Span::from_millis(200),
            most: Span::from_secs(120),
            granularity: Span::from_micros(1),
            floor: Floor::Variation,
            variation: Variation::Linux,
            after_lost_syn: Span::from_secs(3),
        }
    }

    /// Returns the settings of Linux 2.4: 3 s at first, 200 ms at least, 120 s at most, in ticks of 10 ms.
    pub const fn linux_2_4() -> Self {
        Self {
            initial: Span::from_secs(3),
            granularity: Span::from_millis(10),
            floor: Floor::Timeout,
            variation: Variation::Rfc6298,
            ..Self::linux()
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let ordered = self.least >= Span::from_millis(1)
            && self.least <= self.initial
            && self.initial <= self.most
            && self.most <= Span::from_secs(1 << 20);
        if ordered && self.granularity <= Span::from_secs(1) { Ok(()) } else { Err(ConfigError::Rto) }
    }
}

/// Progress of acknowledgments and sending at the time of a round-trip measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct AckProgress {
    /// SND.UNA, after the acknowledgment that gave the measurement.
    pub acknowledged: u64,
    /// SND.NXT.
    pub next: u64,
}

/// State once there is a measurement.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// The smoothed round trip in nanoseconds.
    smoothed: u64,
    variation: VariationState,
}

/// Variation, by the estimation that is set.
#[derive(Clone, Copy, Debug)]
enum VariationState {
    Rfc6298(Smoothed),
    Linux(LinuxVariation),
}

/// Round-trip estimator of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Estimator {
    config: RtoConfig,
    measured: Option<Measured>,
    /// The least round trip seen.
    least: Span,
    backoff: u32,
}

impl Estimator {
    pub(crate) const fn new(config: RtoConfig) -> Self {
        Self { config, measured: None, least: Span::MAX, backoff: 0 }
    }

    /// Takes a measured round trip (rules 2.2 and 2.3), which also ends any backoff.
    pub(crate) fn sample(&mut self, trip: Span, progress: AckProgress) {
        self.least = self.least.min(trip);
        let trip = self.in_ticks(trip).as_nanos();
        let floor = self.least_spread().as_nanos();
        match &mut self.measured {
            None => {
                let variation = match self.config.variation {
                    Variation::Rfc6298 => VariationState::Rfc6298(Smoothed::first(trip)),
                    Variation::Linux => VariationState::Linux(LinuxVariation::first(trip, floor, progress)),
                };
                self.measured = Some(Measured { smoothed: trip, variation });
            }
            Some(Measured { smoothed, variation }) => {
                match variation {
                    VariationState::Rfc6298(kept) => kept.sample(*smoothed, trip),
                    VariationState::Linux(kept) => kept.sample(*smoothed, trip, floor, progress),
                }
                *smoothed = *smoothed - *smoothed / 8 + trip / 8;
            }
        }
        self.backoff = 0;
    }

    /// Returns the least time that is added to the smoothed round trip.
    fn least_spread(&self) -> Span {
        match self.config.floor {
            Floor::Timeout => self.config.granularity,
            Floor::Variation => self.config.granularity.max(self.config.least),
        }
    }

    /// Rounds a round trip to whole ticks of the clock, at least one.
    fn in_ticks(&self, trip: Span) -> Span {
        let tick = self.config.granularity.as_nanos();
        if tick == 0 {
            return trip;
        }
        let ticks = (trip.as_nanos() / tick + u64::from(trip.as_nanos() % tick >= tick.div_ceil(2))).max(1);
        Span::from_nanos(ticks.saturating_mul(tick))
    }

    /// Returns the timeout, doubled once for each backoff (rules 2.1, 2.3 to 2.5, 5.5).
    pub(crate) fn timeout(&self) -> Span {
        let RtoConfig { initial, least, most, .. } = self.config;
        let base = self.measured.map_or(initial, |Measured { smoothed, variation }| {
            let spread = Span::from_nanos(match variation {
                VariationState::Rfc6298(kept) => kept.spread(),
                VariationState::Linux(kept) => kept.spread(),
            });
            (Span::from_nanos(smoothed) + spread.max(self.least_spread())).max(least)
        });
        let doubled = base.as_nanos().saturating_mul(1u64.checked_shl(self.backoff).unwrap_or(u64::MAX));
        Span::from_nanos(doubled).min(most)
    }

    /// Doubles the timeout after it has expired (rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    /// Ends backoff after data was acknowledged: the path works.
    pub(crate) fn stop_backing_off(&mut self) {
        self.backoff = 0;
    }

    /// Lengthens the initial timeout after a SYN was lost, before data begins (rule 5.7).
    pub(crate) fn syn_was_lost(&mut self) {
        self.backoff = 0;
        if self.measured.is_none() {
            self.config.initial = self.config.initial.max(self.config.after_lost_syn);
        }
    }

    /// Returns the smoothed round trip.
    pub(crate) fn smoothed(&self) -> Option<Span> {
        self.measured.map(|measured| Span::from_nanos(measured.smoothed))
    }

    /// Returns the least round trip, [`Span::MAX`] before any.
    pub(crate) fn least(&self) -> Span {
        self.least
    }
}

#[cfg(test)]
mod tests;
