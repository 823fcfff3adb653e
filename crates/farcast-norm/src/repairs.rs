//! How much of an object is sent again, however often it is asked for.
//!
//! Requests are proved by nothing: whoever can send to a group can ask in any name, and without a bound keep a sender
//! repairing for ever.

/// Of an object so many times its segments, whoever asks: parity makes a group's need that of its worst receiver, which
/// at nine tenths of loss is about ten times, and somewhat more for each factor of receivers.
const TIMES: u64 = 64;

/// And so many on top, for objects so short that one request asks for a large part.
const ABOVE: u64 = 1024;

/// What was sent again of an object, and how much may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repairs {
    sent: u64,
    most: u64,
}

impl Repairs {
    /// Of an object of `segments`: 64 times as many symbols and INFO messages, and 1024.
    pub const fn of(segments: u32) -> Self {
        Self { sent: 0, most: segments as u64 * TIMES + ABOVE }
    }

    /// So many symbols, or INFO messages, have been sent again.
    pub const fn note(&mut self, count: u32) {
        self.sent = self.sent.saturating_add(count as u64);
    }

    /// Whether requests for the object are not heard any more. What was asked for before is still sent.
    pub const fn are_spent(&self) -> bool {
        self.sent >= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_spent_at_64_times_the_segments_and_1024() {
        for segments in [0, 1, 40, u32::MAX] {
            let mut repairs = Repairs::of(segments);
            let mut left = u64::from(segments) * 64 + 1024 - 1;
            while left > 0 {
                let count = left.min(u32::MAX.into()) as u32;
                repairs.note(count);
                left -= u64::from(count);
            }
            assert!(!repairs.are_spent(), "{segments}");
            repairs.note(1);
            assert!(repairs.are_spent(), "{segments}");
        }
    }
}
