//! How much a receiving directory may hold of what is not complete.

use core::ops::{Add, Sub};
use core::time::Duration;

/// The share of a file system that is left to others: 1 in 20.
const RESERVE: u64 = 20;
/// The most that is spooled before the list of files is known: 1 in 4 of what there is room for.
const SPOOL: u64 = 4;

/// How much one receiving directory may hold of products that are not complete. Files that are complete are none of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Bytes on disk; `None`: 95 % of what the file system has for them.
    pub octets: Option<u64>,
    /// Files and directories; never more than half of what the file system has for them.
    pub inodes: u64,
    /// Products.
    pub products: u32,
    /// For how long a product is kept after its last byte has come.
    pub age: Duration,
}

impl Default for Quota {
    fn default() -> Self {
        Self { octets: None, inodes: 1 << 21, products: 64, age: Duration::from_hours(14 * 24) }
    }
}

/// What something takes on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Bytes.
    pub octets: u64,
    /// Files and directories.
    pub inodes: u64,
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            octets: self.octets.saturating_add(other.octets),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            octets: self.octets.saturating_sub(other.octets),
            inodes: self.inodes.saturating_sub(other.inodes),
        }
    }
}

impl Quota {
    /// The most that all unfinished products may take, where they take `used` now and the file system has `free` left.
    pub fn limit(&self, used: Usage, free: Usage) -> Usage {
        let all = used + free;
        Usage {
            octets: self.octets.unwrap_or(u64::MAX).min(all.octets - all.octets.div_ceil(RESERVE)),
            inodes: self.inodes.min(all.inodes / 2),
        }
    }

    /// The most bytes that are spooled of a product, where there is room for `room`.
    pub(crate) fn spool_limit(room: u64) -> u64 {
        room / SPOOL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_system_has_bounds_what_is_allowed() {
        let (used, free) = (Usage { octets: 100, inodes: 10 }, Usage { octets: 900, inodes: 30 });
        let quota = Quota::default();
        assert_eq!(quota.limit(used, free), Usage { octets: 950, inodes: 20 });
        let small = Quota { octets: Some(500), inodes: 7, ..quota };
        assert_eq!(small.limit(used, free), Usage { octets: 500, inodes: 7 });
        let endless = Usage { octets: u64::MAX, inodes: u64::MAX };
        assert_eq!(quota.limit(used, endless).inodes, 1 << 21);
        assert_eq!(quota.limit(Usage::default(), Usage::default()), Usage::default());
    }
}
