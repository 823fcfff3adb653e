//! Products below a receiving directory that are not complete: what they take, and how they are removed.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{self, Dir, FlockOperation, Mode, OFlags, Stat};
use rustix::io::{Errno, Result as SystemResult};

use crate::beneath::{Root, mtime_of, nanoseconds, size_of};
use crate::incoming::{self, Delivery, StateDir, path_of};
use crate::journal::{Journal, Stage};
use crate::manifest::STATE_DIR;
use crate::{Manifest, Options, ProductId, Quota, StoreError, Usage};

/// Bytes of a block, as `st_blocks` counts them.
const BLOCK: u64 = 512;

/// A product that is not complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partial {
    /// Which product.
    pub id: ProductId,
    /// The first name in it, bytes as they are on disk; `None` as long as its list of files is not known.
    pub name: Option<Vec<u8>>,
    /// Its bytes, if they are known.
    pub size: Option<u64>,
    /// How many of them are safely here.
    pub held: u64,
    /// What it takes on disk, without files that are complete.
    pub usage: Usage,
    /// When something of it last came.
    pub last: SystemTime,
    /// Whether a process is receiving it.
    pub in_use: bool,
    /// Whether its list of files is here and right. Without it, nothing of a product can be.
    pub verified: bool,
    /// Whether it is an object without a manifest, for which nothing vouches.
    pub plain: bool,
}

impl Partial {
    /// When it will have been kept for as long as `quota` allows.
    pub fn expires(&self, quota: &Quota) -> SystemTime {
        self.last.checked_add(quota.age).unwrap_or(self.last)
    }
}

/// The unfinished products below `dir`, the oldest first, each with what it really takes.
///
/// # Errors
/// What the file system reports.
pub fn list(dir: &Path) -> Result<Vec<Partial>, StoreError> {
    let root = open(dir)?;
    let mut known = known(&root, None)?;
    known.sort_by_key(|one| one.last_ns);
    known.iter().map(|one| examine(&root, one)).collect()
}

/// What all of `partials` take below `dir`, and the most that they may take.
///
/// # Errors
/// What the file system reports.
pub fn usage(dir: &Path, partials: &[Partial], quota: &Quota) -> Result<(Usage, Usage), StoreError> {
    let root = open(dir)?;
    let used = partials.iter().fold(Usage::default(), |sum, one| sum + one.usage);
    let free = root.free().map_err(|errno| root.error(b"", "examine", errno, 0))?;
    Ok((used, quota.limit(used, free)))
}

/// Removes what is there of the unfinished product `id`. Files that are complete stay.
///
/// # Errors
/// [`StoreError::InUse`] while a process receives it, and what the file system reports.
pub fn remove(dir: &Path, id: ProductId) -> Result<(), StoreError> {
    remove_below(&open(dir)?, id)
}

/// Removes the unfinished products of which nothing came since `quota` allows that, at the time `now`, and those whose
/// list of files never came, unless a process is receiving them; how many.
///
/// # Errors
/// What the file system reports. What could be removed was removed.
pub fn tidy(dir: &Path, quota: &Quota, now: SystemTime) -> Result<usize, StoreError> {
    let root = open(dir)?;
    let oldest = now.checked_sub(quota.age).map_or(i64::MIN, nanoseconds);
    let mut removed = 0;
    let mut failure = None;
    for one in known(&root, None)? {
        if one.in_use || (one.last_ns >= oldest && can_go_on(&root, one.id)) {
            continue;
        }
        match remove_below(&root, one.id) {
            Ok(()) => removed += 1,
            // Somebody has begun to receive it just now.
            Err(StoreError::InUse { .. }) => {}
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(removed), Err)
}

/// What is known of a product at first sight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) id: ProductId,
    /// What it takes at most, as its last receiver has recorded.
    pub(crate) usage: Usage,
    /// When something of it last came, nanoseconds since 1970.
    pub(crate) last_ns: i64,
    pub(crate) in_use: bool,
}

/// The products with a state directory, without `except`.
pub(crate) fn known(root: &Arc<Root>, except: Option<ProductId>) -> Result<Vec<Known>, StoreError> {
    let failed = |errno| root.error(STATE_DIR, "list", errno, 0);
    let fd = match root.open_directory(STATE_DIR) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(errno) => return Err(failed(errno)),
    };
    let mut found = Vec::new();
    for entry in Dir::new(fd).map_err(failed)? {
        let id = ProductId::from_hex(entry.map_err(failed)?.file_name().to_bytes());
        if let Some(id) = id.filter(|id| Some(*id) != except)
            && let Some(one) = sight(root, id).map_err(failed)?
        {
            found.push(one);
        }
    }
    Ok(found)
}

/// `None` if nobody has left it: it is being made or removed.
fn sight(root: &Arc<Root>, id: ProductId) -> SystemResult<Option<Known>> {
    let at = |name: &[u8]| [&path_of(id), name].concat();
    let lock = match root.open_at(&at(b"/lock"), OFlags::RDONLY, Mode::empty()) {
        Ok(lock) => lock,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let in_use = fs::flock(&lock, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
    let mut last_ns = mtime_of(&fs::fstat(&lock)?);
    for name in [b"/journal".as_slice(), b"/spool"] {
        last_ns = last_ns.max(root.regular(&at(name))?.map_or(i64::MIN, |stat| mtime_of(&stat)));
    }
    let recorded = incoming::usage_in(&lock);
    drop(lock);
    let usage = recorded.unwrap_or_else(|| measure(root, id, head(root, id).as_ref()));
    Ok(Some(Known { id, usage, last_ns, in_use }))
}

/// Removes the product `id` to make room, unless it is in use or that fails; whether it is gone.
pub(crate) fn evict(root: &Arc<Root>, id: ProductId) -> bool {
    remove_below(root, id).is_ok()
}

fn remove_below(root: &Arc<Root>, id: ProductId) -> Result<(), StoreError> {
    let state = StateDir::find(root, id)?;
    if let Some(manifest) = head(root, id) {
        Delivery::new(Arc::clone(root), id, manifest, Options::default()).remove()?;
    }
    state.remove(root)
}

fn examine(root: &Arc<Root>, one: &Known) -> Result<Partial, StoreError> {
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
    let since_1970 = core::time::Duration::from_nanos(one.last_ns.max(0).cast_unsigned());
    Ok(Partial {
        id: one.id,
        plain: plain.is_some(),
        name: listed.or(plain),
        size: journal.as_ref().map(|journal| journal.product_size),
        held: journal.as_ref().map_or(0, held),
        usage: measure(root, one.id, manifest.as_ref()),
        last: SystemTime::UNIX_EPOCH + since_1970,
        in_use: one.in_use,
        verified: manifest.is_some(),
    })
}

/// What the product takes by the file system's own account.
fn measure(root: &Arc<Root>, id: ProductId, manifest: Option<&Manifest>) -> Usage {
    let of = |stat: &Stat| Usage { octets: stat.st_blocks.max(0).cast_unsigned() * BLOCK, inodes: 1 };
    // What cannot be looked at is not there, or not ours.
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

/// The list of files of the product, if it is there and right.
fn head(root: &Root, id: ProductId) -> Option<Manifest> {
    let spool = [&path_of(id), b"/spool".as_slice()].concat();
    let len = size_of(&root.regular(&spool).ok()??);
    let fd = root.open_at(&spool, OFlags::RDONLY, Mode::empty()).ok()?;
    incoming::manifest_in(&fd, len, id).ok()?.ok()?
}

fn journal(root: &Root, id: ProductId) -> SystemResult<Option<Journal>> {
    incoming::read_journal(root, &[&path_of(id), b"/journal".as_slice()].concat())
}

/// Whether the journal says that the list of files was there, and right; or of an object without one, that it can be
/// gone on with.
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
