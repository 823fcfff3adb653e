//! Naps of the receiving thread: times for which data is left to the kernel's buffer before it is fetched.
//!
//! If datagrams come one by one, waking for each costs several times what processing it does. A thread that sleeps
//! between two datagrams is woken for each. So once data flows, the receiving thread looks away for a moment, as
//! network cards do with their interrupts. A nap lasts as long as pays, and never so long that the buffer could
//! overflow.

use farcast_core::Span;

/// Shortest and longest nap; the answer to a block is late by that at most.
const LEAST: Span = Span::from_micros(50);
const MOST: Span = Span::from_millis(5);
/// Number of octets in a nap beyond which waking less often gains little, and the longest nap then. That is also the
/// longest nap while the sender waits for answers.
const ENOUGH: u64 = 32 << 10;
const MOST_OF_MUCH: Span = Span::from_millis(1);
/// Share of the buffer that may fill during a nap: one part in `PART`.
const PART: u64 = 16;
/// Most wake-ups without a nap after naps that brought nothing.
const LONGEST_REST: u32 = 64;

/// Decides on the next nap by what the last one has brought.
#[derive(Clone, Debug, Default)]
pub(super) struct Nap {
    span: Span,
    /// Wake-ups left without a nap, and their number after the next nap in vain.
    skip: u32,
    rest: u32,
    /// The sender waits for answers, since it has no rate.
    hurried: bool,
}

impl Nap {
    /// Notes that the sender waits for answers, from now on.
    pub(super) fn hurry(&mut self) {
        self.hurried = true;
    }

    /// Returns `true` if the sender waits for answers.
    pub(super) fn is_hurried(&self) -> bool {
        self.hurried
    }

    /// Returns the length of the next nap, after `drained` octets of data were fetched from a buffer of `buffer`
    /// octets; zero for no nap.
    pub(super) fn after(&mut self, drained: u64, buffer: u64) -> Span {
        let napped = !self.span.is_zero();
        if drained == 0 {
            if napped {
                self.rest = (self.rest * 2).clamp(1, LONGEST_REST);
                self.skip = self.rest;
            }
            self.span = Span::ZERO;
        } else if self.skip > 0 {
            self.skip -= 1;
        } else {
            self.rest = if napped { 0 } else { self.rest };
            let room = buffer / PART;
            if drained > room || (self.span > MOST_OF_MUCH && (self.hurried || drained > ENOUGH)) {
                self.span = self.span / 2;
            } else if drained < room / 4 {
                let long = drained < ENOUGH / 2 && !self.hurried;
                let most = if long { MOST } else { self.span.max(MOST_OF_MUCH) };
                self.span = (self.span * 2).clamp(LEAST, most);
            }
        }
        self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the nap that results from `rate` octets each microsecond into a buffer of `buffer` octets.
    fn settled(mut nap: Nap, rate: u64, buffer: u64) -> Span {
        let mut span = Span::ZERO;
        for _ in 0..100 {
            let micros = span.as_nanos() / 1000 + 10;
            span = nap.after(rate * micros, buffer);
            assert!(rate * span.as_nanos() / 1000 <= buffer / 4, "{span} at {rate} octets/us");
        }
        span
    }

    #[test]
    fn a_nap_never_fills_the_buffer() {
        for rate in [1, 5, 10, 100, 1000, 10_000] {
            for buffer in [100_000, 16 << 20] {
                settled(Nap::default(), rate, buffer);
            }
        }
        assert!(settled(Nap::default(), 1000, 100_000) < MOST_OF_MUCH);
    }

    #[test]
    fn a_nap_is_long_only_where_that_pays() {
        assert_eq!(settled(Nap::default(), 2, 16 << 20), MOST);
        assert_eq!(settled(Nap::default(), 100, 16 << 20), MOST_OF_MUCH);
        let mut hurried = Nap::default();
        hurried.hurry();
        assert_eq!(settled(hurried, 2, 16 << 20), MOST_OF_MUCH);
    }

    #[test]
    fn where_naps_bring_nothing_few_are_taken() {
        // A datagram comes each ten milliseconds: one is fetched, and none comes in the nap behind it.
        let mut nap = Nap::default();
        let mut naps = 0;
        for _ in 0..1000 {
            if !nap.after(1500, 1 << 20).is_zero() {
                naps += 1;
                assert!(nap.after(0, 1 << 20).is_zero());
            }
        }
        assert!(naps < 30, "{naps} naps");
    }
}
