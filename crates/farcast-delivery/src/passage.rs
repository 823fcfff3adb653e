//! Losses between a sender and a receiver, computed from the numbers of its datagrams.

/// Counters of one sender's numbered datagrams: those that came, and those that are missing between them.
///
/// Datagrams before the first one that came are no losses. A late datagram is no loss either.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passage {
    next: Option<u64>,
    came: u64,
    lost: u64,
}

impl Passage {
    /// Records the arrival of `count` datagrams, the first of which has `number`.
    pub fn came(&mut self, number: u64, count: u32) {
        let next = self.next.unwrap_or(number);
        let end = number.saturating_add(count.into());
        // A late datagram was counted as lost.
        self.lost = match number.checked_sub(next) {
            Some(gap) => self.lost.saturating_add(gap),
            None => self.lost.saturating_sub(count.into()),
        };
        self.came = self.came.saturating_add(count.into());
        self.next = Some(next.max(end));
    }

    /// Like `came`, for datagrams with 16-bit numbers.
    pub fn came_numbered_by_16_bits(&mut self, number: u16, count: u32) {
        let Some(next) = self.next else { return self.came(number.into(), count) };
        let ahead = number.wrapping_sub(next as u16);
        let number = if ahead < 1 << 15 {
            next.saturating_add(ahead.into())
        } else {
            next.saturating_sub(ahead.wrapping_neg().into())
        };
        self.came(number, count);
    }

    /// Skips the next `count` numbers, which no datagram has.
    pub fn pass_over(&mut self, count: u64) {
        self.next = self.next.map(|next| next.saturating_add(count));
    }

    /// Returns the next expected number, once any datagram has come.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// Returns the number of datagrams that did not come.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of datagrams that were sent since the first that came.
    pub fn sent(&self) -> u64 {
        self.came.saturating_add(self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::Passage;

    fn passage(numbers: &[(u16, u32)]) -> (u64, u64) {
        let mut passage = Passage::default();
        for &(number, count) in numbers {
            passage.came_numbered_by_16_bits(number, count);
        }
        (passage.lost(), passage.sent())
    }

    #[test]
    fn gaps_are_losses_and_what_went_by_before_is_none() {
        assert_eq!(passage(&[(500, 10), (510, 1), (520, 5)]), (9, 25));
        assert_eq!(passage(&[(65_530, 4), (2, 1)]), (4, 9), "over the end of the numbers");
    }

    #[test]
    fn what_comes_late_is_no_loss() {
        assert_eq!(passage(&[(7, 1), (9, 1), (8, 1), (10, 1)]), (0, 4));
        assert_eq!(passage(&[(0, 1), (65_535, 1), (1, 1)]), (0, 3), "late before the first");
        assert_eq!(passage(&[(u16::MAX, 1), (1, 1), (0, 1)]), (0, 3));
    }

    #[test]
    fn no_number_is_too_large() {
        let mut passage = Passage::default();
        for number in [0, u64::MAX, 0, u64::MAX - 1, u64::MAX] {
            passage.came(number, u32::MAX);
        }
        assert!(passage.sent() >= passage.lost());
    }
}
