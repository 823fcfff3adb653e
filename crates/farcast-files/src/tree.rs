//! The BLAKE3 digest of a file whose parts arrive in any order.
//!
//! BLAKE3 is a binary tree over chunks of 1024 bytes. An aligned group of a power of two of chunks is a subtree of
//! its own, so its chaining value can be computed as soon as the group is there, whatever surrounds it. Siblings
//! are merged at once: what is kept is one value for each maximal finished subtree, not one for each group.

use std::collections::BTreeMap;

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// The bytes of a group, a power of two of chunks.
pub(crate) const GROUP_LEN: u64 = 128 << 10;

/// The finished subtrees of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    size: u64,
    /// By level and index: the value of the groups `index << level .. (index + 1) << level`.
    nodes: BTreeMap<(u32, u64), ChainingValue>,
}

impl Tree {
    /// The tree of a file of `size` bytes.
    pub(crate) fn new(size: u64) -> Self {
        Self { size, nodes: BTreeMap::new() }
    }

    /// How many groups the file has; one if it is empty.
    fn groups(&self) -> u64 {
        self.size.div_ceil(GROUP_LEN).max(1)
    }

    /// Takes the bytes of `group`, all of them.
    pub(crate) fn insert(&mut self, group: u64, bytes: &[u8]) {
        let mut value = self.value_of(group, bytes);
        let (mut level, mut index) = (0, group);
        // Two halves of the whole file are left apart: the root is merged in another mode.
        while 2 << level < self.groups() {
            let Some(sibling) = self.nodes.remove(&(level, index ^ 1)) else { break };
            let (left, right) = if index & 1 == 0 { (value, sibling) } else { (sibling, value) };
            value = merge_subtrees_non_root(&left, &right, Mode::Hash);
            (level, index) = (level + 1, index >> 1);
        }
        self.nodes.insert((level, index), value);
    }

    /// Forgets everything, because the content may have changed.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
    }

    /// The digest of the file; `read` gives the bytes of groups that were never inserted.
    pub(crate) fn root<E>(
        &self,
        scratch: &mut Vec<u8>,
        mut read: impl FnMut(u64, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<[u8; 32], E> {
        let mut leaf = |group: u64| {
            read(group, scratch)?;
            Ok(self.value_of(group, scratch))
        };
        let groups = self.groups();
        if groups == 1 {
            return self.subtree(0, 1, &mut leaf);
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

/// How many of `groups`, at least two, are in the left subtree: the largest power of two below.
fn left_groups(groups: u64) -> u64 {
    1 << (groups - 1).ilog2()
}

#[cfg(test)]
mod tests;
