//! The variation of the round trip, as it enters the timeout: four times, in nanoseconds.

use super::AckProgress;

/// RFC 6298's RTTVAR.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smoothed {
    variation: u64,
}

impl Smoothed {
    /// Starts with the first round trip (rule 2.2).
    pub(super) const fn first(trip: u64) -> Self {
        Self { variation: trip / 2 }
    }

    /// Takes a round trip (rule 2.3), with the smoothed round trip from before.
    pub(super) const fn sample(&mut self, smoothed: u64, trip: u64) {
        self.variation = self.variation - self.variation / 4 + smoothed.abs_diff(trip) / 4;
    }

    pub(super) const fn spread(self) -> u64 {
        self.variation.saturating_mul(4)
    }
}

/// Linux's variation: see [`Variation::Linux`](super::Variation::Linux). Each value is four times the quantity of its
/// name.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinuxVariation {
    /// The mean deviation.
    deviation: u64,
    /// The greatest mean deviation of this round.
    greatest: u64,
    /// Value that enters the timeout.
    spread: u64,
    /// Position beyond which an acknowledgment ends the round.
    round_end: u64,
}

impl LinuxVariation {
    pub(super) fn first(trip: u64, floor: u64, progress: AckProgress) -> Self {
        let deviation = trip.saturating_mul(2);
        let spread = deviation.max(floor);
        Self { deviation, greatest: spread, spread, round_end: progress.next }
    }

    pub(super) fn sample(&mut self, smoothed: u64, trip: u64, floor: u64, progress: AckProgress) {
        let (error, mean) = (smoothed.abs_diff(trip), self.deviation / 4);
        let raise = error.saturating_sub(mean);
        let raise = if trip < smoothed { raise / 8 } else { raise };
        self.deviation = (self.deviation - mean.saturating_sub(error)).saturating_add(raise);
        self.greatest = self.greatest.max(self.deviation);
        self.spread = self.spread.max(self.greatest);
        if progress.acknowledged > self.round_end {
            self.spread -= (self.spread - self.greatest) / 4;
            self.greatest = floor;
            self.round_end = progress.next;
        }
    }

    pub(super) const fn spread(self) -> u64 {
        self.spread
    }

    #[cfg(test)]
    pub(super) const fn mean_deviation(self) -> u64 {
        self.deviation / 4
    }
}
