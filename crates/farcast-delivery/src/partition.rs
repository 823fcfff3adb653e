//! Blocks that differ by one segment at most: the partitioning of RFC 5052 §9.1.
//!
//! With `T` segments in blocks of at most `B` there are `N = ceil(T / B)` blocks. The first `I = T - floor(T / N) N` of
//! them have `A_large = ceil(T / N)` segments, the others `A_small = floor(T / N)`.

/// Blocks of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Partition {
    /// Segments of the later blocks (`A_small`), at least 1. The first ones have one more where they are larger.
    small: u32,
    /// Number of blocks with one more segment (`I`).
    larger: u32,
    /// Number of blocks (`N`).
    blocks: u32,
}

impl Partition {
    /// Partition of an empty object.
    pub(crate) const NONE: Self = Self { small: 1, larger: 0, blocks: 0 };

    /// Divides `segments` into blocks of at most `most`, both at least 1.
    pub(crate) const fn new(segments: u32, most: u32) -> Self {
        let blocks = segments.div_ceil(most);
        Self { small: segments / blocks, larger: segments % blocks, blocks }
    }

    pub(crate) const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Returns the first segment of `block`, or the number of segments past the last block.
    pub(crate) const fn first_of(&self, block: u32) -> u32 {
        let block = if block < self.blocks { block } else { self.blocks };
        block * self.small + if block < self.larger { block } else { self.larger }
    }

    /// Returns the number of segments of `block`; 0 past the last.
    pub(crate) const fn block_len(&self, block: u32) -> u32 {
        if block >= self.blocks { 0 } else { self.small + (block < self.larger) as u32 }
    }

    /// Returns the block that contains `segment`.
    pub(crate) const fn block_of(&self, segment: u32) -> u32 {
        // The sum is below 2^30 + 2^30, because there are no more segments.
        let in_larger = self.larger * (self.small + 1);
        if segment < in_larger {
            segment / (self.small + 1)
        } else {
            self.larger + (segment - in_larger) / self.small
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_example() {
        // 20,000 octets in segments of 512 and blocks of at most 16, as NRL's library cuts them: 14, 13, 13.
        let partition = Partition::new(20_000u32.div_ceil(512), 16);
        assert_eq!(partition.blocks(), 3);
        assert_eq!([0, 1, 2, 3].map(|block| partition.block_len(block)), [14, 13, 13, 0]);
        assert_eq!([0, 1, 2, 3].map(|block| partition.first_of(block)), [0, 14, 27, 40]);
        assert_eq!([0, 13, 14, 26, 27, 39].map(|s| partition.block_of(s)), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn every_partition_is_the_rfcs() {
        for segments in 1..200u32 {
            for most in 1..60 {
                let partition = Partition::new(segments, most);
                // RFC 5052 §9.1, step by step.
                let n = segments.div_ceil(most);
                let (large, small) = (segments.div_ceil(n), segments / n);
                let i = segments - small * n;
                let lens: std::vec::Vec<u32> =
                    (0..n).map(|block| if block < i { large } else { small }).collect();
                assert_eq!((0..n).map(|b| partition.block_len(b)).collect::<std::vec::Vec<_>>(), lens);
                assert_eq!((partition.blocks(), partition.block_len(n)), (n, 0));
                assert!(large <= most);
                let blocks = (0..n).flat_map(|block| (0..lens[block as usize]).map(move |_| block));
                assert!(blocks.enumerate().all(|(s, block)| partition.block_of(s as u32) == block));
                for block in 0..=n {
                    assert_eq!(partition.first_of(block), lens[..block as usize].iter().sum::<u32>());
                }
            }
        }
    }
}
