//! Limits on the incomplete products in a receiving directory.

use core::ops::{Add, Sub};
use core::time::Duration;

/// The share of a file system that is left free for others: 1 in 20.
const RESERVE: u64 = 20;
/// The share of the available room that may be spooled before the list of files is known: 1 in 4.
const SPOOL: u64 = 4;

/// Limits on the incomplete products in one receiving directory. Complete files do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Bytes on disk; `None`: 95 % of what the file system can give them.
    pub octets: Option<u64>,
    /// Files and directories; never more than half of what the file system can give them.
    pub inodes: u64,
    /// Number of products.
    pub products: u32,
    /// Time for which a product is kept after its last byte has arrived.
    pub age: Duration,
}

impl Default for Quota {
    fn default() -> Self {
        Self { octets: None, inodes: 1 << 21, products: 64, age: Duration::from_hours(14 * 24) }
    }
}

/// Space on disk.
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
    /// Returns the space that all incomplete products may take together. They take `used` now, and the file system has
    /// `free` left.
    pub fn limit(&self, used: Usage, free: Usage) -> Usage {
        let all = used + free;
        Usage {
            octets: self.octets.unwrap_or(u64::MAX).min(all.octets - all.octets.div_ceil(RESERVE)),
            inodes: self.inodes.min(all.inodes / 2),
        }
    }

    /// Returns the bytes that may be spooled of one product if there is room for `room` bytes.
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
