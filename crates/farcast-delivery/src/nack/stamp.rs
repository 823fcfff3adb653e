//! Time stamps of probes.

use farcast_core::{Span, Time};

/// Time of a sender's clock, which receivers return.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp {
    /// Seconds.
    pub seconds: u32,
    /// Microseconds of the second, below 1,000,000.
    pub micros: u32,
}

impl Stamp {
    /// Returns the stamp of an instant, to the microsecond, with seconds modulo 2^32.
    pub const fn of(time: Time) -> Self {
        let micros = time.as_nanos() / 1000;
        Self { seconds: (micros / 1_000_000) as u32, micros: (micros % 1_000_000) as u32 }
    }

    /// Returns the stamp that is `span` later.
    #[must_use]
    pub fn later(self, span: Span) -> Self {
        let micros = u64::from(self.micros) + span.as_nanos() / 1000;
        let seconds = self.seconds.wrapping_add((micros / 1_000_000) as u32);
        Self { seconds, micros: (micros % 1_000_000) as u32 }
    }

    /// Returns the span since `earlier`; `None` if that lies ahead, by comparison modulo 2^32 seconds.
    pub fn since(self, earlier: Self) -> Option<Span> {
        let seconds = self.seconds.wrapping_sub(earlier.seconds).cast_signed();
        let micros = i64::from(seconds) * 1_000_000 + i64::from(self.micros) - i64::from(earlier.micros);
        u64::try_from(micros).ok().map(Span::from_micros)
    }
}
