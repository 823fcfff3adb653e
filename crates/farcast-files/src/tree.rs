//! The BLAKE3 digest of a file whose parts arrive in any order.
//!
//! BLAKE3 is a binary tree over chunks of 1024 bytes. An aligned group of chunks whose number is a power of two is a
//! subtree of its own, so its chaining value can be computed as soon as the group is complete. Siblings are merged at
//! once, up to a [part](crate::parts) of the file. The memory needed is therefore one value for each maximal finished
//! subtree, not one for each group.

use core::ops::Range;
use std::collections::BTreeMap;

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use farcast_core::Bitmap;

use crate::parts::{Grain, part_len};

/// The length of a group in bytes: a power of two of chunks, and at most that of a part.
pub(crate) const GROUP_LEN: u64 = 128 << 10;

/// The finished subtrees of one file.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    size: u64,
    /// Number of groups in a part, a power of two; the part is the whole file if no part values are known.
    part_groups: u64,
    /// Parts that were verified.
    verified: Bitmap,
    /// Values by level and index: that of the groups `index << level .. (index + 1) << level`.
    nodes: BTreeMap<(u32, u64), ChainingValue>,
}

impl Tree {
    /// Creates the tree of a file of `size` bytes. `known` is the number of part values in the manifest: zero, or the
    /// number of parts that one of the [grains](Grain) makes.
    pub(crate) fn new(size: u64, known: usize) -> Self {
        let whole = (groups_of(size).next_power_of_two(), 1);
        let parted = Grain::of(size, known).map(|grain| (part_len(size, grain) / GROUP_LEN, known as u32));
        let (part_groups, parts) = parted.unwrap_or(whole);
        Self { size, part_groups, verified: Bitmap::new(parts), nodes: BTreeMap::new() }
    }

    /// Returns the number of groups in the file; one if the file is empty.
    fn groups(&self) -> u64 {
        groups_of(self.size)
    }

    /// Returns the number of parts that can be verified by themselves; one if no part values are known.
    pub(crate) fn parts(&self) -> u32 {
        self.verified.len()
    }

    /// Returns the part that holds the byte at `offset`.
    pub(crate) fn part_at(&self, offset: u64) -> u32 {
        (offset / GROUP_LEN / self.part_groups) as u32
    }

    /// Returns the range of bytes of `part` in the file.
    pub(crate) fn part_bytes(&self, part: u32) -> Range<u64> {
        let groups = self.part_range(part);
        groups.start * GROUP_LEN..(groups.end * GROUP_LEN).min(self.size)
    }

    fn part_range(&self, part: u32) -> Range<u64> {
        let first = u64::from(part) * self.part_groups;
        first..self.groups().min(first + self.part_groups)
    }

    /// Returns `true` if `part` was verified; further bytes for it are ignored.
    pub(crate) fn is_verified(&self, part: u32) -> bool {
        self.verified.contains(part)
    }

    /// Notes that `part` is verified.
    pub(crate) fn set_verified(&mut self, part: u32) {
        self.verified.insert(part);
        self.clear_nodes(part);
    }

    /// Adds a complete group; `bytes` are all of its bytes.
    pub(crate) fn insert(&mut self, group: u64, bytes: &[u8]) {
        let mut value = self.value_of(group, bytes);
        let (mut level, mut index) = (0, group);
        // The two halves of the whole file are not merged here: the root is merged in another mode.
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

    /// Computes the value of `part`; if it is the only part, this is the digest of the file. `read` gives the bytes of
    /// groups that were never inserted.
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

    /// Computes the value of a group; if the file has only one group, this is the digest of the file.
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

/// Returns the number of groups in the left subtree of `groups`, at least two: the largest power of two below.
fn left_groups(groups: u64) -> u64 {
    1 << (groups - 1).ilog2()
}

#[cfg(test)]
mod tests;
