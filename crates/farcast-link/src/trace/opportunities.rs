//! Rate traces in mahimahi's format.

use alloc::vec::Vec;

use farcast_core::{BitRate, Time};

use super::TraceError;
use super::error::quoted;

/// Most octets of one opportunity: mahimahi's `PACKET_SIZE`, the longest payload of its TUN device.
pub const OPPORTUNITY_OCTETS: u64 = 1504;

/// The most lines of a trace.
const MOST_LINES: usize = 10_000_000;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Moments at which a link can deliver: one a line, in whole milliseconds from the start. The time of the last line is
/// the period with which the trace repeats.
///
/// This is the format of mahimahi's `mm-link` (Netravali et al., *Mahimahi: Accurate Record-and-Replay for HTTP*,
/// USENIX ATC 2015). Each repetition of a line is one more opportunity in that millisecond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateTrace {
    /// Milliseconds, not descending; the last is above zero.
    moments: Vec<u32>,
}

/// An opportunity of a trace that repeats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct OpportunityPlace {
    /// Number of times that the trace has ended before.
    lap: u64,
    /// Number of the opportunity in the trace, from 0.
    index: usize,
}

impl RateTrace {
    /// Reads a trace: one whole number a line, 0 to 4294967295 ms, at most ten million lines.
    ///
    /// # Errors
    /// [`TraceError`], with the line. As in mahimahi a line must not be empty, times must not go back, and the last is
    /// above 0.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut moments = Vec::new();
        for (line, text) in (1..).zip(super::content(text).lines().map(str::trim)) {
            if line > MOST_LINES {
                return Err(TraceError::TooLong { most: MOST_LINES });
            }
            let at = milliseconds(text).ok_or_else(|| TraceError::NotANumber { line, text: quoted(text) })?;
            let before = moments.last().copied().unwrap_or(0);
            if at < before {
                return Err(TraceError::Backwards { line, at, before });
            }
            moments.push(at);
        }
        match moments.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoPeriod),
            Some(_) => Ok(Self { moments }),
        }
    }

    /// Returns the mean rate of all opportunities of a period at full use, rounded down to whole bit/s. `None` below 1
    /// bit/s.
    pub fn mean_rate(&self) -> Option<BitRate> {
        let bits = self.moments.len() as u64 * OPPORTUNITY_OCTETS * 8;
        BitRate::from_bps(bits * 1000 / u64::from(self.period()))
    }

    /// Returns the period in milliseconds; above zero.
    fn period(&self) -> u32 {
        self.moments.last().copied().unwrap_or(1).max(1)
    }

    /// Returns the first opportunity after `now`. A frame that enters at `now` is too late for an opportunity at `now`.
    pub(super) fn first_after(&self, now: Time) -> OpportunityPlace {
        // Times of a lap run from 0 to the period, both included; the first whole millisecond after now is 1 at least,
        // and the period belongs to the lap that ends there.
        let next = now.as_nanos() / NANOS_PER_MILLI + 1;
        let period = u64::from(self.period());
        let lap = (next - 1) / period;
        let within = next - lap * period;
        OpportunityPlace { lap, index: self.moments.partition_point(|&moment| u64::from(moment) < within) }
    }

    /// Returns the opportunity that comes `count` behind `place`.
    pub(super) fn behind(&self, place: OpportunityPlace, count: u64) -> OpportunityPlace {
        let index = (place.index as u64).saturating_add(count);
        let moments = self.moments.len() as u64;
        if index < moments {
            return OpportunityPlace { index: index as usize, ..place };
        }
        OpportunityPlace { lap: place.lap.saturating_add(index / moments), index: (index % moments) as usize }
    }

    /// Returns the time of `place`.
    pub(super) fn time(&self, place: OpportunityPlace) -> Time {
        let milliseconds = place
            .lap
            .saturating_mul(u64::from(self.period()))
            .saturating_add(u64::from(self.moments[place.index]));
        Time::from_nanos(milliseconds.saturating_mul(NANOS_PER_MILLI))
    }
}

/// Reads a line: digits alone, as mahimahi takes them.
fn milliseconds(text: &str) -> Option<u32> {
    text.bytes().all(|octet| octet.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests;
