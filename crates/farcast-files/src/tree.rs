//! The BLAKE3 digest of a file whose parts arrive in any order.
//!
//! BLAKE3 is a binary tree over chunks of 1024 bytes. An aligned group of a power of two of chunks is a subtree of
//! its own, so its chaining value can be computed as soon as the group is there, whatever surrounds it. Siblings
//! are merged at once, up to a [part](crate::parts) of the file: what is kept is one value for each maximal finished
//! subtree, not one for each group.

use core::ops::Range;
use std::collections::BTreeMap;

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use farcast_core::Bitmap;

use crate::parts::{Grain, part_len};

/// The bytes of a group, a power of two of chunks, and no more than a part has.
pub(crate) const GROUP_LEN: u64 = 128 << 10;

/// The finished subtrees of one file.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    size: u64,
    /// Groups of a part, a power of two; of the whole file if nothing is known of its parts.
    part_groups: u64,
    /// The parts that have the right value.
    verified: Bitmap,
    /// By level and index: the value of the groups `index << level .. (index + 1) << level`.
    nodes: BTreeMap<(u32, u64), ChainingValue>,
}

impl Tree {
    /// The tree of a file of `size` bytes, of whose parts so many are known; none, or as many as one of the
    /// [grains](Grain) makes.
    pub(crate) fn new(size: u64, known: usize) -> Self {
        let whole = (groups_of(size).next_power_of_two(), 1);
        let parted = Grain::of(size, known).map(|grain| (part_len(size, grain) / GROUP_LEN, known as u32));
        let (part_groups, parts) = parted.unwrap_or(whole);
        Self { size, part_groups, verified: Bitmap::new(parts), nodes: BTreeMap::new() }
    }

    /// How many groups the file has; one if it is empty.
    fn groups(&self) -> u64 {
        groups_of(self.size)
    }

    /// How many parts are told apart: one if nothing is known of them.
    pub(crate) fn parts(&self) -> u32 {
        self.verified.len()
    }

    /// The part that has the byte at `offset`.
    pub(crate) fn part_at(&self, offset: u64) -> u32 {
        (offset / GROUP_LEN / self.part_groups) as u32
    }

    /// The bytes of `part` in the file.
    pub(crate) fn part_bytes(&self, part: u32) -> Range<u64> {
        let groups = self.part_range(part);
        groups.start * GROUP_LEN..(groups.end * GROUP_LEN).min(self.size)
    }

    fn part_range(&self, part: u32) -> Range<u64> {
        let first = u64::from(part) * self.part_groups;
        first..self.groups().min(first + self.part_groups)
    }

    /// Whether `part` was found right; what comes for it is of no interest any more.
    pub(crate) fn is_verified(&self, part: u32) -> bool {
        self.verified.contains(part)
    }

    /// Notes that `part` is right.
    pub(crate) fn set_verified(&mut self, part: u32) {
        self.verified.insert(part);
        self.clear_nodes(part);
    }

    /// Takes the bytes of `group`, all of them.
    pub(crate) fn insert(&mut self, group: u64, bytes: &[u8]) {
        let mut value = self.value_of(group, bytes);
        let (mut level, mut index) = (0, group);
        // Two halves of the whole file are left apart: the root is merged in another mode.
        while 1 << level < self.part_groups && 2 << level < self.groups() {
            let Some(sibling) = self.nodes.remove(&(level, index ^ 1)) else { break };
            let (left, right) = if index & 1 == 0 { (value, sibling) } else { (sibling, value) };
            value = merge_subtrees_non_root(&left, &right, Mode::Hash);
            (level, index) = (level + 1, index >> 1);
        }
        self.nodes.insert((level, index), value);
    }

    /// Forgets `part`, because its content may have changed.
    pub(crate) fn clear(&mut self, part: u32) {
        self.verified.remove(part);
        self.clear_nodes(part);
    }

    fn clear_nodes(&mut self, part: u32) {
        let groups = self.part_range(part);
        self.nodes.retain(|(level, index), _| !groups.contains(&(index << level)));
    }

    /// The value of `part`: of the only one it is the digest of the file. `read` gives the bytes of groups that were
    /// never inserted.
    pub(crate) fn value<E>(
        &self,
        part: u32,
        scratch: &mut Vec<u8>,
        mut read: impl FnMut(u64, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<[u8; 32], E> {
        let mut leaf = |group: u64| {
            read(group, scratch)?;
            Ok(self.value_of(group, scratch))
        };
        let range = self.part_range(part);
        let groups = range.end - range.start;
        if self.parts() > 1 || groups == 1 {
            return self.subtree(range.start, groups, &mut leaf);
        }
        let left = left_groups(groups);
        let (a, b) = (self.subtree(0, left, &mut leaf)?, self.subtree(left, groups - left, &mut leaf)?);
        Ok(*merge_subtrees_root(&a, &b, Mode::Hash).as_bytes())
    }

    /// The value of a group; of an only group it is the digest itself.
    fn value_of(&self, group: u64, bytes: &[u8]) -> ChainingValue {
        if self.groups() == 1 {
            return *blake3::hash(bytes).as_bytes();
        }
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(group * GROUP_LEN).update(bytes).finalize_non_root()
    }

    fn subtree<E>(
        &self,
        first: u64,
        count: u64,
        leaf: &mut impl FnMut(u64) -> Result<ChainingValue, E>,
    ) -> Result<ChainingValue, E> {
        if count.is_power_of_two()
            && let Some(value) = self.nodes.get(&(count.ilog2(), first / count))
        {
            return Ok(*value);
        }
        if count == 1 {
            return leaf(first);
        }
        let left = left_groups(count);
        let (a, b) = (self.subtree(first, left, leaf)?, self.subtree(first + left, count - left, leaf)?);
        Ok(merge_subtrees_non_root(&a, &b, Mode::Hash))
    }
}

fn groups_of(size: u64) -> u64 {
    size.div_ceil(GROUP_LEN).max(1)
}

/// How many of `groups`, at least two, are in the left subtree: the largest power of two below.
fn left_groups(groups: u64) -> u64 {
    1 << (groups - 1).ilog2()
}

#[cfg(test)]
mod tests;
