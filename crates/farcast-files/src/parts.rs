//! The parts of a large file, each of which can be checked without the others.
//!
//! A part is an aligned subtree of the file's BLAKE3 tree, so the values of the parts merge to the digest of the file:
//! they are as trustworthy as it is, and damage is found where it is.

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// How finely files are parted. What is found damaged is received again by the part; the values of the parts are in the
/// head, which has to come before anything else can be put in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grain {
    /// Parts of 1 MiB or more, at most 256: 8 KiB of values are a handful of segments. For noise, which is rare.
    #[default]
    Coarse,
    /// Parts of 128 KiB or more, at most 4096: a quarter of a thousandth of a file. Where somebody may poison what is sent.
    Fine,
}

impl Grain {
    /// The least bytes of a part, and the most parts of a file.
    const fn limits(self) -> (u64, u64) {
        match self {
            Self::Coarse => (1 << 20, 256),
            Self::Fine => (128 << 10, 4096),
        }
    }

    /// The grain by which a file of `size` bytes has so many parts, more than one.
    pub(crate) fn of(size: u64, count: usize) -> Option<Self> {
        let has = |grain: &Self| count > 1 && part_count(size, *grain) == count as u64;
        [Self::Coarse, Self::Fine].into_iter().find(has)
    }
}

/// The digest of a file, and the values of its parts if there is more than one.
pub(crate) type Digests = ([u8; 32], Box<[ChainingValue]>);

/// The bytes of a part, except the last one, of a file of `size` bytes: a power of two.
pub(crate) fn part_len(size: u64, grain: Grain) -> u64 {
    let (least, most) = grain.limits();
    size.div_ceil(most).max(least).next_power_of_two()
}

/// How many parts a file of `size` bytes has, at least one.
pub(crate) fn part_count(size: u64, grain: Grain) -> u64 {
    size.div_ceil(part_len(size, grain)).max(1)
}

/// The digest of the file whose parts have `values`, at least two.
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

/// The left subtree is the largest that is full and leaves something to the right.
fn halves(values: &[ChainingValue]) -> Option<(&[ChainingValue], &[ChainingValue])> {
    let last = values.len().checked_sub(1).filter(|last| *last > 0)?;
    Some(values.split_at(1 << last.ilog2()))
}

/// Computes the digest of a file that is read in order, and the values of its parts on the way.
#[derive(Debug)]
pub(crate) struct PartHasher {
    part_len: u64,
    parted: bool,
    hasher: blake3::Hasher,
    /// Bytes of the part at hand.
    filled: u64,
    values: Vec<ChainingValue>,
}

impl PartHasher {
    /// For a file of `size` bytes.
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

    /// Takes the next `bytes`.
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

    /// The digest, and the values of the parts if there is more than one.
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
