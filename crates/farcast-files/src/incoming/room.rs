//! What a reception may take on disk, looked at before it is taken.

use core::ops::Range;

use super::spool::Spool;
use super::{Happening, Incoming};
use crate::manifest::PREFIX_LEN;
use crate::partials::{self, Known};
use crate::{Quota, StoreError, Usage};

/// The most bytes that are taken before it is looked at the quota again.
const GRANT: u64 = 16 << 20;
/// Files and directories, likewise.
const GRANT_INODES: u64 = 1024;
/// The state directory and what is in it.
pub(super) const STATE_INODES: u64 = 7;

/// What this reception takes, and may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Room {
    /// What it takes, counted as it is written: holes in sparse files too.
    used: Usage,
    /// What it may take without another look; others are told that it takes that.
    granted: Usage,
    /// How many bytes may be spooled as long as it is not known what they are; looked up when there are any.
    spool_limit: Option<u64>,
    /// Of the bytes that it takes, those that are not of the product: parity that is kept, what is decompressed.
    aside: u64,
}

impl Room {
    /// What it takes.
    pub(super) fn used(&self) -> Usage {
        self.used
    }

    /// Counts what is complete, or removed.
    pub(super) fn give_up(&mut self, octets: u64, inodes: u64) {
        self.used = self.used - Usage { octets, inodes };
    }

    /// Counts files and directories that were made.
    pub(super) fn count_made(&mut self, inodes: u64) {
        self.used = self.used + Usage { octets: 0, inodes };
    }

    /// Counts what was put [aside](Incoming::make_aside) and has gone again, or is complete.
    pub(super) fn give_up_aside(&mut self, octets: u64) {
        self.aside = self.aside.saturating_sub(octets);
        self.give_up(octets, 0);
    }

    /// An earlier run has kept so many bytes of parity, which it counted.
    pub(super) fn resume_aside(&mut self, octets: u64) {
        self.aside = self.aside.max(octets);
    }

    /// That of a reception which an earlier run began.
    pub(super) fn resumed(used: Usage) -> Self {
        Self { used, granted: used, ..Self::default() }
    }
}

/// What all unfinished products of the directory take and may take.
struct Look {
    others: Vec<Known>,
    limit: Usage,
}

impl Look {
    fn taken(&self) -> Usage {
        self.others.iter().fold(Usage::default(), |sum, other| sum + other.usage)
    }

    /// What is left for us beside products that other processes are receiving.
    fn for_us(&self) -> Usage {
        let in_use = self.others.iter().filter(|other| other.in_use);
        self.limit - in_use.fold(Usage::default(), |sum, other| sum + other.usage)
    }
}

impl Incoming {
    /// Makes the state directory, now that there is something to keep in it.
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

    /// An empty spool, and no journal.
    pub(super) fn new_spool(&mut self) -> Result<(), StoreError> {
        self.spool = Some(Spool::new(self.state.new_spool(&self.root, self.geometry.size)?));
        self.spool_space = crate::transfer::Space::Fresh;
        let aside = self.room.aside;
        let used = Usage { octets: aside, inodes: STATE_INODES };
        self.room = Room { used, aside, ..Room::default() };
        Ok(())
    }

    /// Sees to it that this is not one product too many: those go that have least.
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

    /// Removes another product to make room, unless it is in use or that fails; whether it is gone.
    fn evict(&mut self, other: &Known) -> bool {
        let evicted = partials::evict(&self.root, other);
        evicted.map(|partial| self.happenings.push(Happening::Evicted(Box::new(partial)))).is_ok()
    }

    /// Lets `len` more bytes be stored, if need be in the place of the oldest of other products.
    pub(super) fn make_room(&mut self, len: u64) -> Result<(), StoreError> {
        let mut wanted = self.room.used + Usage { octets: len, inodes: 0 };
        if self.delivery.is_some() || self.plain.is_some() {
            // What is received twice, because it was damaged, takes its place once.
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

    /// Lets `len` more bytes be stored that are not of the product, likewise.
    pub(super) fn make_aside(&mut self, len: u64) -> Result<(), StoreError> {
        self.room.aside += len;
        let made = self.make_room(len);
        if made.is_err() {
            self.room.aside -= len;
        }
        made
    }

    /// How far we may go on from `wanted`, of which `len` bytes are new.
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

    /// Refuses a product that could not be stored whole: it needs `needed`, besides what of it is `there`.
    pub(super) fn check_room(&self, needed: Usage, there: Usage) -> Result<(), StoreError> {
        let room = self.look()?.for_us() - there;
        if needed.octets > room.octets {
            return Err(match self.too_large(needed.octets, room.octets) {
                // It could never be stored, however long one waits.
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

    fn look(&self) -> Result<Look, StoreError> {
        let others = partials::known(&self.root, Some(self.id))?;
        let free = self.root.free().map_err(|errno| self.root.error(b"", "examine", errno, 0))?;
        let mut look = Look { others, limit: Usage::default() };
        look.limit = self.options.quota.limit(look.taken() + self.room.used, free);
        Ok(look)
    }

    fn too_large(&self, needed: u64, available: u64) -> StoreError {
        let path = self.root.full(b"");
        // Which of the two it was is what the user can change.
        if self.options.quota.octets.is_some() && self.root.available().is_ok_and(|free| needed <= free) {
            return StoreError::OverQuota { path, needed, available };
        }
        StoreError::DiskFull { path, needed, available }
    }

    fn too_many(&self, needed: u64, available: u64) -> StoreError {
        StoreError::TooManyFiles { path: self.root.full(b""), needed, available }
    }

    /// Whether `bytes` of the product may be spooled: the head always, the rest as long as it is not too much.
    pub(super) fn may_spool(&mut self, bytes: &Range<u64>) -> Result<bool, StoreError> {
        // There is room for all of it, or it would not have been taken up.
        if self.plain.is_some() || bytes.start < self.head_len.unwrap_or(PREFIX_LEN as u64) {
            return Ok(true);
        }
        let limit = if let Some(limit) = self.room.spool_limit {
            limit
        } else {
            let look = self.look()?;
            // What nothing vouches for yet takes nobody's place.
            let left = look.limit - look.taken();
            Quota::spool_limit(look.for_us().octets).min(left.octets)
        };
        self.room.spool_limit = Some(limit);
        Ok(self.room.used.octets + (bytes.end - bytes.start) <= limit)
    }

    /// Records what is really taken, where this run ends.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        self.state.record(&self.root, self.room.used)
    }
}
