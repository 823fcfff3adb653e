//! Parity that leaves with a block before any receiver has asked for it.
//!
//! Receivers ask for no more than a block's greatest need, so waiting for requests costs the fewest octets. For the
//! last blocks it costs time: a request for them, its answer, and an idle link until then. So the last blocks take
//! parity with them: as much as earlier blocks have needed, as far as that is known, and somewhat more, because their
//! losses are drawn anew.

/// Fewest segments of a block whose need is a sample for others. In shorter blocks a single loss is a large part.
const TELLING: u32 = 16;

/// Knowledge of the needs of blocks.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    /// Parity symbols that leave with every block.
    auto: u32,
    /// Parity symbols of a block.
    most: u32,
    /// Greatest need so far, relative to its block: symbols, and segments of that block.
    worst: (u32, u32),
}

impl Ahead {
    pub(super) fn new(auto: u16, most: u16) -> Self {
        Self { auto: auto.into(), most: most.into(), worst: (0, 1) }
    }

    /// Notes that a receiver needs `symbols` of a block of `segments`, including those that left with the block. A need
    /// beyond all parity is an outage, and tells nothing about other blocks.
    pub(super) fn note(&mut self, symbols: u32, segments: u32) {
        let (worst, of) = self.worst;
        let greater = u64::from(symbols) * u64::from(of) > u64::from(worst) * u64::from(segments);
        if greater && symbols <= self.most && segments >= TELLING {
            self.worst = (symbols, segments);
        }
    }

    /// Returns the number of parity symbols to send with a block of `segments`. `closing` is `true` for a block whose
    /// repairs would leave after everything else.
    pub(super) fn of_block(&self, segments: u32, closing: bool) -> u32 {
        let (worst, of) = self.worst;
        let scaled = (u64::from(worst) * u64::from(segments)).div_ceil(u64::from(of)) as u32;
        // Losses of a block are roughly Poisson distributed, with the mean as their variance.
        let margin = if scaled == 0 { 0 } else { (scaled - 1).isqrt() + 1 };
        let closing = if closing { scaled.saturating_add(margin) } else { 0 };
        self.auto.max(closing).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_of_a_clean_line() {
        let mut ahead = Ahead::new(0, 40);
        assert_eq!(ahead.of_block(200, true), 0);
        ahead.note(41, 200);
        ahead.note(1, 2);
        assert_eq!(ahead.of_block(200, true), 0, "an outage, and a block that is too short, tell nothing");
        assert_eq!(Ahead::new(3, 40).of_block(200, false), 3);
    }

    #[test]
    fn the_last_blocks_take_the_worst_and_a_deviation() {
        let mut ahead = Ahead::new(1, 40);
        ahead.note(4, 200);
        ahead.note(9, 200);
        ahead.note(5, 200);
        assert_eq!((ahead.of_block(200, false), ahead.of_block(200, true)), (1, 12));
        assert_eq!(ahead.of_block(100, true), 5 + 3, "half as long, half as much, rounded up");
        assert_eq!(ahead.of_block(2000, true), 40, "no more than there is");
    }
}
