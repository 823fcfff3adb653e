//! `HyStart++` (RFC 9406): slow start that ends when the round trip grows.

use farcast_core::Span;

/// Bounds of the growth of the round trip that ends slow start.
const LEAST_GROWTH: Span = Span::from_millis(4);
const MOST_GROWTH: Span = Span::from_millis(16);
/// Samples of a round before it is judged.
const SAMPLES: u32 = 8;
/// Factor by which conservative slow start grows more slowly.
const DIVISOR: u64 = 4;
/// Number of rounds of conservative slow start.
const ROUNDS: u32 = 5;

/// The state of section 4.2.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    last: Span,
    current: Span,
    samples: u32,
    /// Position whose acknowledgment ends the round.
    round_end: u64,
    /// In conservative slow start: the round trip at its start, and the number of its rounds so far.
    conservative: Option<(Span, u32)>,
    over: bool,
}

impl Default for HyStart {
    fn default() -> Self {
        Self {
            last: Span::MAX,
            current: Span::MAX,
            samples: 0,
            round_end: 0,
            conservative: None,
            over: false,
        }
    }
}

impl HyStart {
    /// Takes the round trip measured with the acknowledgment of `acknowledged`; `next` is the next to be sent.
    pub(super) fn sample(&mut self, trip: Option<Span>, acknowledged: u64, next: u64) {
        if self.over {
            return;
        }
        if acknowledged >= self.round_end {
            self.next_round(next);
        }
        if let Some(trip) = trip {
            self.current = self.current.min(trip);
            self.samples += 1;
        }
        if self.samples < SAMPLES || self.current == Span::MAX {
            return;
        }
        match self.conservative {
            // The round trip has become short again.
            Some((baseline, _)) if self.current < baseline => self.conservative = None,
            None if self.last != Span::MAX => {
                let growth = Span::from_nanos(self.last.as_nanos() / 8).clamp(LEAST_GROWTH, MOST_GROWTH);
                if self.current >= self.last + growth {
                    self.conservative = Some((self.current, 0));
                }
            }
            _ => {}
        }
    }

    fn next_round(&mut self, next: u64) {
        self.round_end = next;
        self.last = self.current;
        self.current = Span::MAX;
        self.samples = 0;
        if let Some((_, rounds)) = &mut self.conservative {
            *rounds += 1;
            self.over = *rounds >= ROUNDS;
        }
    }

    /// Returns the growth of the window in place of the `octets` by which slow start would grow it.
    pub(super) const fn step(&self, octets: u64) -> u64 {
        if self.conservative.is_some() { octets / DIVISOR } else { octets }
    }

    /// Returns `true` if slow start is over.
    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    /// Reacts to a loss, which ends the first slow start. Later slow starts are not watched (section 4.3).
    pub(super) fn end(&mut self) {
        (self.over, self.conservative) = (false, None);
        self.round_end = u64::MAX;
        self.samples = 0;
        self.last = Span::MAX;
    }
}

#[cfg(test)]
mod tests;
