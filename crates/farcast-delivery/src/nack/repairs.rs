//! Bound on the repairs of an object, however often they are requested.
//!
//! Requests are not authenticated: anyone who can send to a group can ask in any name. Without a bound, they could keep
//! a sender repairing for ever.

/// Repairs per segment of an object, for all receivers together. With parity a group needs as much as its worst
/// receiver: about ten times the object at nine tenths of loss, and somewhat more for each factor of receivers.
const TIMES: u64 = 64;

/// Additional repairs of an object, for objects so short that one request asks for a large part.
const ABOVE: u64 = 1024;

/// Counter and bound of an object's repairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepairLimit {
    sent: u64,
    most: u64,
}

impl RepairLimit {
    /// Returns the bound for an object of `segments`: 64 times as many symbols and INFO messages, plus 1024.
    pub const fn of(segments: u32) -> Self {
        Self { sent: 0, most: segments as u64 * TIMES + ABOVE }
    }

    /// Counts symbols or INFO messages that have been sent again.
    pub const fn note(&mut self, count: u32) {
        self.sent = self.sent.saturating_add(count as u64);
    }

    /// Returns `true` if requests for the object are no longer heard. Repairs that were requested before are still
    /// sent.
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
            let mut repairs = RepairLimit::of(segments);
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
