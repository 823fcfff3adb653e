//! Disk space of a reception, checked against the quota before it is used.

use core::ops::Range;

use super::spool::Spool;
use super::{Happening, Incoming};
use crate::manifest::PREFIX_LEN;
use crate::partials::{self, PartialFacts};
use crate::{Quota, StoreError, Usage};

/// The largest number of bytes that are granted ahead, before the quota is checked again.
const GRANT: u64 = 16 << 20;
/// The largest number of files and directories that are granted ahead.
const GRANT_INODES: u64 = 1024;
/// Number of inodes of the state directory and the files in it.
pub(super) const STATE_INODES: u64 = 7;

/// Disk space that this reception uses and may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Room {
    /// Space in use, counted when it is written; holes in sparse files count too.
    used: Usage,
    /// Space that may be used without another check. Other receptions count it as used.
    granted: Usage,
    /// Limit on spooled bytes before the head is known; determined when it is first needed.
    spool_limit: Option<u64>,
    /// Used bytes that are not of the product: parity symbols, and files that are being decompressed.
    aside: u64,
}

impl Room {
    /// Returns the space in use.
    pub(super) fn used(&self) -> Usage {
        self.used
    }

    /// Subtracts data that is complete or removed.
    pub(super) fn give_up(&mut self, octets: u64, inodes: u64) {
        self.used = self.used - Usage { octets, inodes };
    }

    /// Adds files and directories that were made.
    pub(super) fn count_made(&mut self, inodes: u64) {
        self.used = self.used + Usage { octets: 0, inodes };
    }

    /// Subtracts bytes that were put [aside](Incoming::make_aside) and are now removed or complete.
    pub(super) fn give_up_aside(&mut self, octets: u64) {
        self.aside = self.aside.saturating_sub(octets);
        self.give_up(octets, 0);
    }

    /// Takes over `octets` bytes of parity from an earlier run, which has counted them.
    pub(super) fn resume_aside(&mut self, octets: u64) {
        self.aside = self.aside.max(octets);
    }

    /// Creates the account of a reception that an earlier run began.
    pub(super) fn resumed(used: Usage) -> Self {
        Self { used, granted: used, ..Self::default() }
    }
}

/// Incomplete products of the directory other than this one, and the limit on all of them.
struct RoomLook {
    others: Vec<PartialFacts>,
    limit: Usage,
}

impl RoomLook {
    fn taken(&self) -> Usage {
        self.others.iter().fold(Usage::default(), |sum, other| sum + other.usage)
    }

    /// Returns the space that is left for this product beside those that other processes are receiving.
    fn for_us(&self) -> Usage {
        let in_use = self.others.iter().filter(|other| other.in_use);
        self.limit - in_use.fold(Usage::default(), |sum, other| sum + other.usage)
    }
}

impl Incoming {
    /// Makes the state directory and the spool, unless they exist.
    pub(super) fn begin(&mut self) -> Result<(), StoreError> {
        if !self.state.is_made() {
            self.make_place()?;
            self.state.make(&self.root)?;
        }
        if self.spool.is_none() {
            self.new_spool()?;
        }
        Ok(())
    }

    /// Makes an empty spool, and removes the journal.
    pub(super) fn new_spool(&mut self) -> Result<(), StoreError> {
        self.spool = Some(Spool::new(self.state.new_spool(&self.root, self.geometry.size)?));
        self.spool_space = crate::transfer::Space::Fresh;
        let aside = self.room.aside;
        let used = Usage { octets: aside, inodes: STATE_INODES };
        self.room = Room { used, aside, ..Room::default() };
        Ok(())
    }

    /// Makes sure that the number of products stays within the quota. Removes others if necessary, those with the least
    /// data first.
    fn make_place(&mut self) -> Result<(), StoreError> {
        let mut others = partials::known(&self.root, Some(self.id))?;
        others.sort_by_key(|other| (other.usage.octets, other.last_ns));
        let mut count = others.len();
        let allowed = self.options.quota.products as usize;
        for other in &others {
            if count < allowed {
                break;
            }
            count -= usize::from(self.evict(other));
        }
        if count < allowed {
            return Ok(());
        }
        Err(StoreError::TooManyProducts { path: self.root.full(b""), allowed: self.options.quota.products })
    }

    /// Removes another product to make room. Returns `true` if it is gone; one in use stays.
    fn evict(&mut self, other: &PartialFacts) -> bool {
        let evicted = partials::evict(&self.root, other);
        evicted.map(|partial| self.happenings.push(Happening::Evicted(Box::new(partial)))).is_ok()
    }

    /// Reserves `len` more bytes. If necessary, removes the oldest of the other incomplete products.
    pub(super) fn make_room(&mut self, len: u64) -> Result<(), StoreError> {
        let mut wanted = self.room.used + Usage { octets: len, inodes: 0 };
        if self.delivery.is_some() || self.plain.is_some() {
            // Data that is received twice, because it was damaged, takes its space once.
            wanted.octets = wanted.octets.min(self.geometry.size + self.room.aside);
        }
        let granted = self.room.granted;
        if wanted.octets > granted.octets || wanted.inodes > granted.inodes {
            self.room.granted = self.grant(wanted, len)?;
            self.state.record(&self.root, self.room.granted)?;
        }
        self.room.used = wanted;
        Ok(())
    }

    /// Reserves `len` more bytes in the same way, for data that is not of the product.
    pub(super) fn make_aside(&mut self, len: u64) -> Result<(), StoreError> {
        self.room.aside += len;
        let made = self.make_room(len);
        if made.is_err() {
            self.room.aside -= len;
        }
        made
    }

    /// Returns the space that is granted for `wanted`, of which `len` bytes are new, and for some growth beyond it.
    fn grant(&mut self, wanted: Usage, len: u64) -> Result<Usage, StoreError> {
        let mut look = self.look()?;
        look.others.sort_by_key(|other| other.last_ns);
        let mut taken = look.taken();
        let fits = |taken: Usage| {
            let all = taken + wanted;
            all.octets <= look.limit.octets && all.inodes <= look.limit.inodes
        };
        for other in &look.others {
            if fits(taken) {
                break;
            }
            if self.evict(other) {
                taken = taken - other.usage;
            }
        }
        let left = look.limit - taken;
        if !fits(taken) {
            return Err(if wanted.octets > left.octets {
                self.too_large(len, (left - self.room.used).octets)
            } else {
                self.too_many(wanted.inodes, left.inodes)
            });
        }
        let ahead = left - wanted;
        Ok(wanted
            + Usage { octets: (ahead.octets / 8).min(GRANT), inodes: (ahead.inodes / 8).min(GRANT_INODES) })
    }

    /// Refuses a product that cannot be stored whole. `needed` is the space that it still needs, `there` the space that
    /// it has taken.
    pub(super) fn check_room(&self, needed: Usage, there: Usage) -> Result<(), StoreError> {
        let room = self.look()?.for_us() - there;
        if needed.octets > room.octets {
            return Err(match self.too_large(needed.octets, room.octets) {
                // Waiting would never help.
                StoreError::DiskFull { path, needed, available } => {
                    StoreError::TooLarge { path, needed, available }
                }
                other => other,
            });
        }
        if needed.inodes > room.inodes {
            return Err(self.too_many(needed.inodes, room.inodes));
        }
        Ok(())
    }

    fn look(&self) -> Result<RoomLook, StoreError> {
        let others = partials::known(&self.root, Some(self.id))?;
        let free = self.root.free().map_err(|errno| self.root.error(b"", "examine", errno, 0))?;
        let mut look = RoomLook { others, limit: Usage::default() };
        look.limit = self.options.quota.limit(look.taken() + self.room.used, free);
        Ok(look)
    }

    fn too_large(&self, needed: u64, available: u64) -> StoreError {
        let path = self.root.full(b"");
        // Report the limit that the user can change.
        if self.options.quota.octets.is_some() && self.root.available().is_ok_and(|free| needed <= free) {
            return StoreError::OverQuota { path, needed, available };
        }
        StoreError::DiskFull { path, needed, available }
    }

    fn too_many(&self, needed: u64, available: u64) -> StoreError {
        StoreError::TooManyFiles { path: self.root.full(b""), needed, available }
    }

    /// Returns `true` if `bytes` of the product may be spooled. The head always may, other bytes only up to a limit.
    pub(super) fn may_spool(&mut self, bytes: &Range<u64>) -> Result<bool, StoreError> {
        // An object without a manifest was refused at the start if there is no room for it.
        if self.plain.is_some() || bytes.start < self.head_len.unwrap_or(PREFIX_LEN as u64) {
            return Ok(true);
        }
        let limit = if let Some(limit) = self.room.spool_limit {
            limit
        } else {
            let look = self.look()?;
            // Data that nothing vouches for yet replaces no other product.
            let left = look.limit - look.taken();
            Quota::spool_limit(look.for_us().octets).min(left.octets)
        };
        self.room.spool_limit = Some(limit);
        Ok(self.room.used.octets + (bytes.end - bytes.start) <= limit)
    }

    /// Records the space that is really in use, at the end of this run.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        self.state.record(&self.root, self.room.used)
    }
}
