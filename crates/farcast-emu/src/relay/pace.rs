//! Choice between sleeping and busy polling while packets come fast.
//!
//! A real-time thread that sleeps after each packet takes the processor from the sender for the next one, twice for
//! each packet. If work follows work within [`CLOSE`], again and again, the thread polls without sleeping; a pause of
//! that length ends the polling. So it never polls in vain for longer than that, and does not poll at all at the rates
//! of links.

use farcast_core::{Span, Time};

/// Longest pause between two pieces of work that counts as close.
const CLOSE: Span = Span::from_micros(40);
/// Number of close pieces in a row after which packets come fast.
const IN_A_ROW: u32 = 16;

/// History of work.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RelayPace {
    /// End of the last piece of work.
    ended: Time,
    /// Number of pieces in a row that began close behind the one before.
    close: u32,
}

impl RelayPace {
    /// Returns `true` if the thread should poll at `now` instead of sleeping.
    pub(super) fn is_fast(&self, now: Time) -> bool {
        self.close >= IN_A_ROW && now.since(self.ended) < CLOSE
    }

    /// Notes the begin of work.
    pub(super) fn begin(&mut self, now: Time) {
        let is_close = now.since(self.ended) < CLOSE;
        self.close = if is_close { self.close.saturating_add(1) } else { 0 };
    }

    /// Notes the end of work.
    pub(super) fn end(&mut self, now: Time) {
        self.ended = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does work of 5 us every `gap`. Tells whether it then polls without sleep, at once and `later`.
    fn after(works: u64, gap: Span, later: Span) -> [bool; 2] {
        let (mut pace, mut now) = (RelayPace::default(), Time::ZERO + Span::from_secs(1));
        for _ in 0..works {
            pace.begin(now);
            now += Span::from_micros(5);
            pace.end(now);
            now += gap;
        }
        let ended = now - gap;
        [pace.is_fast(ended), pace.is_fast(ended + later)]
    }

    #[test]
    fn it_looks_only_where_work_follows_work() {
        let micros = Span::from_micros;
        assert_eq!(after(16, micros(10), micros(39)), [false, false]);
        assert_eq!(after(17, micros(10), micros(39)), [true, true]);
        assert_eq!(after(100, micros(10), micros(40)), [true, false]);
        // 20,000 packets a second are no hurry.
        assert_eq!(after(1000, micros(45), micros(1)), [false, false]);
    }
}
