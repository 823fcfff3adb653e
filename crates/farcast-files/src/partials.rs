//! Incomplete products below a receiving directory: list, disk usage and removal.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, Mode, OFlags, Stat};
use rustix::io::{Errno, Result as SystemResult};

use crate::beneath::{Root, mtime_of, nanoseconds, size_of};
use crate::incoming::{self, Delivery, StateDir, path_of};
use crate::journal::{Journal, Stage};
use crate::manifest::STATE_DIR;
use crate::transfer::{read_at, write_at};
use crate::{Manifest, Options, ProductId, Quota, StoreError, Usage, system};

/// Bytes of a block, as `st_blocks` counts them.
const BLOCK: u64 = 512;

/// An incomplete product.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partial {
    /// Id of the product.
    pub id: ProductId,
    /// First component of the first path in its list of files, or the name of an object without a manifest, in octets;
    /// `None` if neither is known.
    pub name: Option<Vec<u8>>,
    /// Size in bytes, if it is known.
    pub size: Option<u64>,
    /// Number of bytes that are safely on disk.
    pub held: u64,
    /// Space on disk, without files that are complete.
    pub usage: Usage,
    /// Time at which the last bytes arrived, by the host's clock at that time.
    pub last: SystemTime,
    /// Age: time since the last bytes arrived, as counted by [`tidy`].
    pub age: Duration,
    /// Time at which the age was last counted; `None` if it was not counted since the last bytes arrived.
    pub counted: Option<SystemTime>,
    /// `true` while a process receives the product.
    pub in_use: bool,
    /// `true` if its list of files is present and right. Without the list nothing of a product can be verified.
    pub verified: bool,
    /// `true` for an object without a manifest.
    pub plain: bool,
}

impl Partial {
    /// Returns the time at which `quota` has it removed, if the clock is right and a receiver runs.
    pub fn expires(&self, quota: &Quota) -> SystemTime {
        let since = self.counted.unwrap_or(self.last);
        since.checked_add(self.left(quota)).unwrap_or(since)
    }

    /// Returns the time for which `quota` still keeps it.
    pub fn left(&self, quota: &Quota) -> Duration {
        quota.age.saturating_sub(self.age)
    }
}

/// Lists the incomplete products below `dir`, the oldest first. Their disk usage is measured.
///
/// # Errors
/// Errors of the file system.
pub fn list(dir: &Path) -> Result<Vec<Partial>, StoreError> {
    let root = open(dir)?;
    let mut known = known(&root, None)?;
    known.sort_by_key(|one| one.last_ns);
    known.iter().map(|one| examine(&root, one)).collect()
}

/// Returns the space that all `partials` below `dir` take, and the most that `quota` lets them take.
///
/// # Errors
/// Errors of the file system.
pub fn usage(dir: &Path, partials: &[Partial], quota: &Quota) -> Result<(Usage, Usage), StoreError> {
    let root = open(dir)?;
    let used = partials.iter().fold(Usage::default(), |sum, one| sum + one.usage);
    let free = root.free().map_err(|errno| root.error(b"", "examine", errno, 0))?;
    Ok((used, quota.limit(used, free)))
}

/// Removes the incomplete product `id`. Files that are complete stay.
///
/// # Errors
/// [`StoreError::InUse`] while a process receives it; errors of the file system.
pub fn remove(dir: &Path, id: ProductId) -> Result<(), StoreError> {
    remove_below(&open(dir)?, id)
}

/// Removes incomplete products that are as old as `quota` allows, and those whose list of files never arrived. Products
/// that a process receives stay. Returns the removed products.
///
/// The clocks of hosts jump, so an age is counted from call to call and starts anew once bytes have arrived. From one
/// call to the next it grows by the difference of `now`, within two limits. The lower limit is `passed`, the time that
/// this process has seen pass since its last call. The upper limit is an hour more than `passed`, or one part in 14 of
/// the allowed age if that is longer.
///
/// # Errors
/// Errors of the file system. Products that could be removed are removed nevertheless.
pub fn tidy(
    dir: &Path,
    quota: &Quota,
    now: SystemTime,
    passed: Duration,
) -> Result<Vec<Partial>, StoreError> {
    let root = open(dir)?;
    sweep_below(&root);
    let mut removed = Vec::new();
    let mut failure = None;
    for one in known(&root, None)?.into_iter().filter(|one| !one.in_use) {
        let age = one.aged.grown(nanoseconds(now), passed, quota.age);
        if age.so_far < quota.age && can_go_on(&root, one.id) {
            // If the age cannot be noted, the next call counts from here again.
            let _ = age.note(&root, &one);
            continue;
        }
        match evict(&root, &one) {
            Ok(partial) => removed.push(partial),
            // Another process has just begun to receive it.
            Err(StoreError::InUse { .. }) => {}
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(removed), Err)
}

/// Removes the remains of state directories that nobody uses. Some file systems give up an open file only after its
/// directory was to be removed. Returns `true` if no remains are left.
pub fn sweep(dir: &Path) -> bool {
    open(dir).is_ok_and(|root| sweep_below(&root))
}

fn sweep_below(root: &Arc<Root>) -> bool {
    let Ok(fd) = root.open_directory(STATE_DIR) else { return true };
    let Ok(listed) = system::list(fd) else { return true };
    let mut clean = true;
    for id in listed.iter().filter_map(|name| ProductId::from_hex(name.to_bytes())) {
        let path = path_of(id);
        let locked = root.stat(&[&path, b"/lock".as_slice()].concat());
        if matches!(locked, Ok(None)) {
            let removed = incoming::remove_unlocked(root, &path);
            clean &= removed.is_ok() && matches!(root.stat(&path), Ok(None));
        }
    }
    clean
}

/// Time for which a product has been kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Age {
    so_far: Duration,
    /// Time of the last count, in nanoseconds since 1970; `None` if nothing was counted since the last bytes arrived.
    counted_ns: Option<i64>,
}

impl Age {
    /// Offset of the age in the lock file, in bytes: behind the disk usage.
    const AT: u64 = 16;
    /// Limits of the growth between two counts beyond the time that the process has seen pass: one part in `PARTS` of
    /// the allowed age or `AT_LEAST`, whichever is longer.
    const PARTS: u32 = 14;
    const AT_LEAST: Duration = Duration::from_hours(1);

    /// Reads the age from a lock file. An age noted for another arrival time than `last_ns` does not count.
    fn noted(lock: &OwnedFd, last_ns: i64) -> Self {
        let mut bytes = [0; 24];
        if !read_at(lock, &mut bytes, Self::AT).is_ok_and(|read| read == bytes.len()) {
            return Self::default();
        }
        let [so_far, counted, last] =
            [0, 8, 16].map(|at| bytes[at..].first_chunk().map_or(0, |octets| i64::from_be_bytes(*octets)));
        if last != last_ns {
            return Self::default();
        }
        Self { so_far: Duration::from_nanos(so_far.max(0).cast_unsigned()), counted_ns: Some(counted) }
    }

    /// Returns the age at the time `now_ns`, after this process has seen `passed` go by.
    fn grown(self, now_ns: i64, passed: Duration, allowed: Duration) -> Self {
        let grown = self.counted_ns.map_or(Duration::ZERO, |counted| {
            let by_clock = now_ns.saturating_sub(counted).max(0).cast_unsigned();
            Duration::from_nanos(by_clock).clamp(passed, passed + (allowed / Self::PARTS).max(Self::AT_LEAST))
        });
        Self { so_far: self.so_far.saturating_add(grown), counted_ns: Some(now_ns) }
    }

    /// Writes the age to the lock file for a later count.
    fn note(self, root: &Root, one: &PartialFacts) -> SystemResult<()> {
        let path = [&path_of(one.id), b"/lock".as_slice()].concat();
        let lock = root.open_at(&path, OFlags::RDWR, Mode::empty())?;
        let so_far = i64::try_from(self.so_far.as_nanos()).unwrap_or(i64::MAX);
        let usage = [one.usage.octets, one.usage.inodes].map(u64::to_be_bytes);
        let age = [so_far, self.counted_ns.unwrap_or(0), one.last_ns].map(i64::to_be_bytes);
        write_at(&lock, &[usage.as_flattened(), age.as_flattened()].concat(), 0)
    }
}

/// Facts about an incomplete product that are quick to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartialFacts {
    pub(crate) id: ProductId,
    /// Upper bound of its disk usage, as recorded by its last receiver.
    pub(crate) usage: Usage,
    /// Time at which the last bytes arrived, in nanoseconds since 1970.
    pub(crate) last_ns: i64,
    pub(crate) in_use: bool,
    aged: Age,
}

/// Returns the products that have a state directory, without `except`.
pub(crate) fn known(root: &Arc<Root>, except: Option<ProductId>) -> Result<Vec<PartialFacts>, StoreError> {
    let failed = |errno| root.error(STATE_DIR, "list", errno, 0);
    let fd = match root.open_directory(STATE_DIR) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(errno) => return Err(failed(errno)),
    };
    let mut found = Vec::new();
    for name in system::list(fd).map_err(failed)? {
        let id = ProductId::from_hex(name.to_bytes());
        if let Some(id) = id.filter(|id| Some(*id) != except)
            && let Some(one) = sight(root, id).map_err(failed)?
        {
            found.push(one);
        }
    }
    Ok(found)
}

/// Reads the facts about product `id`; `None` if its lock file is missing, because the product is being made or
/// removed.
fn sight(root: &Arc<Root>, id: ProductId) -> SystemResult<Option<PartialFacts>> {
    let at = |name: &[u8]| [&path_of(id), name].concat();
    let lock = match root.open_at(&at(b"/lock"), OFlags::RDONLY, Mode::empty()) {
        Ok(lock) => lock,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let in_use = match system::flock(&lock, FlockOperation::NonBlockingLockShared) {
        Ok(()) => false,
        Err(Errno::WOULDBLOCK) => true,
        Err(_) => incoming::is_owned(root, &path_of(id))?,
    };
    let mut last_ns = None;
    for name in [b"/journal".as_slice(), b"/spool"] {
        last_ns = last_ns.max(root.regular(&at(name))?.map(|stat| mtime_of(&stat)));
    }
    // The lock file is also written when ages are noted, so its time is the last resort.
    let last_ns = last_ns.unwrap_or(mtime_of(&system::fstat(&lock)?));
    let aged = Age::noted(&lock, last_ns);
    let recorded = incoming::usage_in(&lock);
    drop(lock);
    let usage = recorded.unwrap_or_else(|| measure(root, id, head(root, id).as_ref()));
    Ok(Some(PartialFacts { id, usage, last_ns, in_use, aged }))
}

/// Removes a product and returns its description.
pub(crate) fn evict(root: &Arc<Root>, one: &PartialFacts) -> Result<Partial, StoreError> {
    let partial = examine(root, one)?;
    remove_below(root, one.id).map(|()| partial)
}

fn remove_below(root: &Arc<Root>, id: ProductId) -> Result<(), StoreError> {
    let mut state = StateDir::find(root, id)?;
    if let Some(manifest) = head(root, id) {
        Delivery::new(Arc::clone(root), id, manifest, Options::default()).remove()?;
    }
    state.remove(root)
}

fn examine(root: &Arc<Root>, one: &PartialFacts) -> Result<Partial, StoreError> {
    let manifest = head(root, one.id);
    let journal = journal(root, one.id).map_err(|errno| root.error(STATE_DIR, "examine", errno, 0))?;
    let held = |journal: &Journal| {
        let bytes = u64::from(journal.held.count()) * u64::from(journal.segment_len);
        bytes.min(journal.product_size)
    };
    let listed = manifest.as_ref().and_then(|manifest| manifest.entries().first()).map(|entry| {
        let name = entry.path.split(|byte| *byte == b'/').next();
        name.unwrap_or_default().to_vec()
    });
    let plain = match journal.as_ref().map(|journal| &journal.stage) {
        Some(Stage::Plain { name, .. }) => Some(name.clone()),
        _ => None,
    };
    let time = |ns: i64| SystemTime::UNIX_EPOCH + Duration::from_nanos(ns.max(0).cast_unsigned());
    Ok(Partial {
        id: one.id,
        plain: plain.is_some(),
        name: listed.or(plain),
        size: journal.as_ref().map(|journal| journal.product_size),
        held: journal.as_ref().map_or(0, held),
        usage: measure(root, one.id, manifest.as_ref()),
        last: time(one.last_ns),
        age: one.aged.so_far,
        counted: one.aged.counted_ns.map(time),
        in_use: one.in_use,
        verified: manifest.is_some(),
    })
}

/// Measures the space that the product takes, as the file system counts it.
fn measure(root: &Arc<Root>, id: ProductId, manifest: Option<&Manifest>) -> Usage {
    let of = |stat: &Stat| Usage { octets: stat.st_blocks.max(0).cast_unsigned() * BLOCK, inodes: 1 };
    // An entry that cannot be examined is missing, or not ours.
    let at = |path: &[u8]| root.stat(path).ok().flatten().map_or(Usage::default(), |stat| of(&stat));
    let state = path_of(id);
    let mut usage = at(&state);
    for name in incoming::STATE_FILES {
        usage = usage + at(&[&state, name].concat());
    }
    for (file, entry) in manifest.iter().flat_map(|all| all.entries()).filter(|e| e.is_file()).enumerate() {
        usage = usage + at(&incoming::partial_path(&entry.path, &id.tag(), file));
        if entry.is_compressed() {
            usage = usage + at(&incoming::unpacked_path(&entry.path, &id.tag(), file));
        }
    }
    usage
}

/// Reads the list of files of the product; `None` if it is missing or wrong.
fn head(root: &Root, id: ProductId) -> Option<Manifest> {
    let spool = [&path_of(id), b"/spool".as_slice()].concat();
    let len = size_of(&root.regular(&spool).ok()??);
    let fd = root.open_at(&spool, OFlags::RDONLY, Mode::empty()).ok()?;
    incoming::manifest_in(&fd, len, id).ok()?.ok()?
}

fn journal(root: &Root, id: ProductId) -> SystemResult<Option<Journal>> {
    incoming::read_journal(root, &[&path_of(id), b"/journal".as_slice()].concat())
}

/// Returns `true` if a later run can continue the product: the journal says that the list of files was present and
/// right, or for an object without a manifest, the spool is present.
fn can_go_on(root: &Root, id: ProductId) -> bool {
    let spool =
        || root.regular(&[&path_of(id), b"/spool".as_slice()].concat()).is_ok_and(|stat| stat.is_some());
    match journal(root, id).ok().flatten().map(|journal| journal.stage) {
        Some(Stage::Placed) => true,
        Some(Stage::Plain { .. }) => spool(),
        Some(Stage::Spooling) | None => false,
    }
}

fn open(dir: &Path) -> Result<Arc<Root>, StoreError> {
    let root = Root::open(dir).map_err(|errno| StoreError::new(dir.to_owned(), "open", errno, 0, 0))?;
    Ok(Arc::new(root))
}
