//! Whether packets come so fast that going to sleep between them costs more than carrying them.
//!
//! A real-time thread that sleeps after each packet takes the processor from the sender for the next one, twice for
//! each packet. Where work follows work within [`CLOSE`], again and again, it is better not to sleep but to look; a
//! pause of that length ends it. So it never looks in vain for longer than that, and does not look at all at rates that
//! links have.

use farcast_core::{Span, Time};

/// Work that begins so soon after the last is close behind it.
const CLOSE: Span = Span::from_micros(40);
/// So often in a row, and packets come fast.
const IN_A_ROW: u32 = 16;

/// When there was work.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Pace {
    /// When the last ended.
    ended: Time,
    /// How often in a row it began close behind the one before.
    close: u32,
}

impl Pace {
    /// Whether to look for work at `now` and not to sleep.
    pub(super) fn is_fast(&self, now: Time) -> bool {
        self.close >= IN_A_ROW && now.since(self.ended) < CLOSE
    }

    /// Work begins.
    pub(super) fn begin(&mut self, now: Time) {
        let is_close = now.since(self.ended) < CLOSE;
        self.close = if is_close { self.close.saturating_add(1) } else { 0 };
    }

    /// Work has ended.
    pub(super) fn end(&mut self, now: Time) {
        self.ended = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of 5 us every `gap`; whether it then looks, directly after and `later`.
    fn after(works: u64, gap: Span, later: Span) -> [bool; 2] {
        let (mut pace, mut now) = (Pace::default(), Time::ZERO + Span::from_secs(1));
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
