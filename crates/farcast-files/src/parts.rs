//! The parts of a large file, each of which can be checked without the others.
//!
//! A part is an aligned subtree of the file's BLAKE3 tree, so the values of the parts merge to the digest of the file.
//! The values are therefore as trustworthy as the digest, and a wrong value shows which part is damaged.

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// Size of the parts into which files are divided. A damaged part is received again as a whole. The values of all parts
/// are in the head, which has to arrive before files can be written in their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grain {
    /// Parts of 1 MiB or more, at most 256 to a file. Their values take 8 KiB, a handful of segments. Suits damage by
    /// noise, which is rare.
    #[default]
    Coarse,
    /// Parts of 128 KiB or more, at most 4096 to a file. Their values take at most a quarter of a thousandth of a file.
    /// Suits networks on which somebody may inject false data.
    Fine,
}

impl Grain {
    /// Returns the smallest length of a part in bytes, and the largest number of parts in a file.
    const fn limits(self) -> (u64, u64) {
        match self {
            Self::Coarse => (1 << 20, 256),
            Self::Fine => (128 << 10, 4096),
        }
    }

    /// Returns the grain that divides a file of `size` bytes into `count` parts; `None` if no grain does or `count` is
    /// below two.
    pub(crate) fn of(size: u64, count: usize) -> Option<Self> {
        let has = |grain: &Self| count > 1 && part_count(size, *grain) == count as u64;
        [Self::Coarse, Self::Fine].into_iter().find(has)
    }
}

/// Digest of a file, and the values of its parts; the values are empty if the file has one part only.
pub(crate) type Digests = ([u8; 32], Box<[ChainingValue]>);

/// Returns the length in bytes of each part but the last in a file of `size` bytes: a power of two.
pub(crate) fn part_len(size: u64, grain: Grain) -> u64 {
    let (least, most) = grain.limits();
    size.div_ceil(most).max(least).next_power_of_two()
}

/// Returns the number of parts of a file of `size` bytes, at least one.
pub(crate) fn part_count(size: u64, grain: Grain) -> u64 {
    size.div_ceil(part_len(size, grain)).max(1)
}

/// Returns the digest of the file whose parts have `values`; `None` for fewer than two values.
pub(crate) fn digest_of(values: &[ChainingValue]) -> Option<[u8; 32]> {
    let (left, right) = halves(values)?;
    Some(*merge_subtrees_root(&merged(left)?, &merged(right)?, Mode::Hash).as_bytes())
}

fn merged(values: &[ChainingValue]) -> Option<ChainingValue> {
    match values {
        [] => None,
        [value] => Some(*value),
        _ => {
            let (left, right) = halves(values)?;
            Some(merge_subtrees_non_root(&merged(left)?, &merged(right)?, Mode::Hash))
        }
    }
}

/// Splits `values` between the left and the right subtree. The left one is the largest full subtree that leaves at
/// least one value to the right.
fn halves(values: &[ChainingValue]) -> Option<(&[ChainingValue], &[ChainingValue])> {
    let last = values.len().checked_sub(1).filter(|last| *last > 0)?;
    Some(values.split_at(1 << last.ilog2()))
}

/// Hasher that computes the digest of a file read in order, and the values of its parts.
#[derive(Debug)]
pub(crate) struct PartHasher {
    part_len: u64,
    parted: bool,
    hasher: blake3::Hasher,
    /// Bytes of the current part that were hashed so far.
    filled: u64,
    values: Vec<ChainingValue>,
}

impl PartHasher {
    /// Creates a hasher for a file of `size` bytes.
    pub(crate) fn new(size: u64, grain: Grain) -> Self {
        let parted = part_count(size, grain) > 1;
        Self {
            part_len: part_len(size, grain),
            parted,
            hasher: blake3::Hasher::new(),
            filled: 0,
            values: Vec::new(),
        }
    }

    /// Hashes the next `bytes` of the file.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while self.parted && self.filled + bytes.len() as u64 >= self.part_len {
            let (now, later) = bytes.split_at((self.part_len - self.filled) as usize);
            self.hasher.update(now);
            self.end_part();
            bytes = later;
        }
        self.hasher.update(bytes);
        self.filled += bytes.len() as u64;
    }

    fn end_part(&mut self) {
        self.values.push(self.hasher.finalize_non_root());
        self.hasher = blake3::Hasher::new();
        self.hasher.set_input_offset(self.values.len() as u64 * self.part_len);
        self.filled = 0;
    }

    /// Returns the digest, and the values of the parts if there is more than one.
    pub(crate) fn finish(mut self) -> Digests {
        if self.parted && self.filled > 0 {
            self.end_part();
        }
        let digest = digest_of(&self.values).unwrap_or_else(|| *self.hasher.finalize().as_bytes());
        (digest, self.values.into_boxed_slice())
    }
}

#[cfg(test)]
mod tests;
