//! The round-trip time and the retransmission timeout (RFC 6298).

use farcast_core::Span;

use crate::ConfigError;

/// What the least timeout is a floor of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Floor {
    /// The timeout (RFC 6298 rule 2.4).
    #[default]
    Timeout,
    /// Four times the variation, so that a timeout is never earlier than that after the smoothed round trip: as Linux does.
    Variation,
}

/// The retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RtoConfig {
    /// The timeout before any round trip was measured (rule 2.1).
    pub initial: Span,
    /// The least timeout (rule 2.4).
    pub least: Span,
    /// The most, also when doubled (rule 2.5).
    pub most: Span,
    /// The clock's granularity G, to which measured round trips are rounded too.
    pub granularity: Span,
    /// What `least` is a floor of.
    pub floor: Floor,
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
            after_lost_syn: Span::from_secs(3),
        }
    }
}

impl RtoConfig {
    /// Today's Linux: 1 s at first, the smoothed round trip and 200 ms at least, 120 s at most.
    pub const fn linux() -> Self {
        Self {
            initial: Span::from_secs(1),
            least: Span::from_millis(200),
            most: Span::from_secs(120),
            granularity: Span::from_millis(1),
            floor: Floor::Variation,
            after_lost_syn: Span::from_secs(3),
        }
    }

    /// Linux 2.4: 3 s at first, 200 ms at least, 120 s at most, in ticks of 10 ms.
    pub const fn linux_2_4() -> Self {
        Self {
            initial: Span::from_secs(3),
            granularity: Span::from_millis(10),
            floor: Floor::Timeout,
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

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Estimator {
    config: RtoConfig,
    /// Smoothed round trip and its variation, once there is a measurement.
    measured: Option<(Span, Span)>,
    /// The least round trip seen.
    least: Span,
    backoff: u32,
}

impl Estimator {
    pub(crate) const fn new(config: RtoConfig) -> Self {
        Self { config, measured: None, least: Span::MAX, backoff: 0 }
    }

    /// Takes a measured round trip (rules 2.2 and 2.3), which also ends any backing off.
    pub(crate) fn sample(&mut self, trip: Span) {
        self.least = self.least.min(trip);
        let trip = self.in_ticks(trip);
        self.measured = Some(match self.measured {
            None => (trip, Span::from_nanos(trip.as_nanos() / 2)),
            Some((smoothed, variation)) => {
                let (s, v, r) = (smoothed.as_nanos(), variation.as_nanos(), trip.as_nanos());
                let v = v - v / 4 + s.abs_diff(r) / 4;
                (Span::from_nanos(s - s / 8 + r / 8), Span::from_nanos(v))
            }
        });
        self.backoff = 0;
    }

    /// A clock with ticks measures whole ones, and at least one.
    fn in_ticks(&self, trip: Span) -> Span {
        let tick = self.config.granularity.as_nanos();
        if tick == 0 {
            return trip;
        }
        let ticks = (trip.as_nanos() / tick + u64::from(trip.as_nanos() % tick >= tick.div_ceil(2))).max(1);
        Span::from_nanos(ticks.saturating_mul(tick))
    }

    /// The timeout, doubled as often as it backed off (rules 2.1, 2.3 to 2.5, 5.5).
    pub(crate) fn timeout(&self) -> Span {
        let RtoConfig { least, most, granularity, .. } = self.config;
        let base = match self.measured {
            None => self.config.initial,
            Some((smoothed, variation)) => {
                let spread = granularity.max(variation * 4);
                match self.config.floor {
                    Floor::Timeout => (smoothed + spread).max(least),
                    Floor::Variation => smoothed + spread.max(least),
                }
            }
        };
        let doubled = base.as_nanos().saturating_mul(1u64.checked_shl(self.backoff).unwrap_or(u64::MAX));
        Span::from_nanos(doubled).min(most)
    }

    /// A timeout has passed: the next is twice as long (rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    /// Data was acknowledged, so the path works.
    pub(crate) fn stop_backing_off(&mut self) {
        self.backoff = 0;
    }

    /// A SYN was lost: data begins with a timeout that is long enough (rule 5.7).
    pub(crate) fn syn_was_lost(&mut self) {
        self.backoff = 0;
        if self.measured.is_none() {
            self.config.initial = self.config.initial.max(self.config.after_lost_syn);
        }
    }

    /// The smoothed round trip.
    pub(crate) fn smoothed(&self) -> Option<Span> {
        self.measured.map(|(smoothed, _)| smoothed)
    }

    /// The least round trip, [`Span::MAX`] before any.
    pub(crate) fn least(&self) -> Span {
        self.least
    }
}

#[cfg(test)]
mod tests;
