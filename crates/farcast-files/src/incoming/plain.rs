//! Objects without a manifest: single files from a sender other than farcast, which announces a name and a size.
//!
//! The spool holds the content until every segment is there, and then gets the final name. Only the protocol protects
//! the content, unless the sender vouches for a digest. Therefore the digest of the delivered content is reported.

use core::ops::Range;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::SystemTime;

use farcast_core::Run;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::complete::{kept_mode, times_at};
use super::withheld::{is_impossible, is_missing_name};
use super::{Happening, Incoming, Options, Overwrite};
use crate::beneath::{Root, umask};
use crate::delivered::Name;
use crate::error::as_path;
use crate::name::safe_path;
use crate::transfer::read_at;
use crate::tree::{GROUP_LEN, Tree};
use crate::{ProductId, StoreError};

/// Prefix of the hashed data, so that these digests differ from all others.
const CONTEXT: &[u8] = b"farcast: an object without a manifest";

/// Description of a file without a manifest for which its sender vouches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vouched {
    /// BLAKE3 of the content.
    pub digest: [u8; 32],
    /// Permission bits, at most `0o777`.
    pub mode: u16,
    /// Modification time in nanoseconds since 1970-01-01 UTC.
    pub mtime_ns: i64,
}

/// An object without a manifest, as its sender describes it.
#[derive(Clone, Copy, Debug)]
pub struct PlainObject<'a> {
    /// Name at the sender: any octets, empty if it has none. The delivered file gets the same name with its directories,
    /// as far as that is safe.
    pub name: &'a [u8],
    /// `true` if the name may still change. The object then gets its final name only after [`Incoming::rename`] or
    /// [`Incoming::settle_name`].
    pub provisional: bool,
    /// Size in bytes.
    pub size: u64,
    /// Description that the sender vouches for; it may become known [later](Incoming::rename).
    pub vouched: Option<Vouched>,
    /// Identifier that tells the object from all others: two objects of the same origin and size have the same content.
    /// Without it an earlier run is never continued, because its data may belong to another object.
    pub origin: Option<&'a [u8]>,
    /// Data last written before this time is not continued either, because a sender uses its numbers again.
    pub since: SystemTime,
    /// `true` if the sender allows it to replace a file of its name; [`Overwrite::Overwrite`] is needed as well.
    pub overwrite: bool,
}

impl PlainObject<'_> {
    /// Returns the name of its state directory.
    pub(super) fn key(&self) -> ProductId {
        let mut hasher = blake3::Hasher::new();
        hasher.update(CONTEXT);
        let mut field = |octets: &[u8]| {
            hasher.update(&(octets.len() as u64).to_be_bytes());
            hasher.update(octets);
        };
        field(&self.size.to_be_bytes());
        match self.origin {
            // The name is left out, because it may become known only later.
            Some(origin) => field(origin),
            // A random key, which no later run finds.
            None => (0..4).for_each(|_| field(&RandomState::new().build_hasher().finish().to_be_bytes())),
        }
        ProductId::from_bytes(*hasher.finalize().as_bytes())
    }
}

/// State of an object without a manifest, besides the state that every [`Incoming`] has.
#[expect(clippy::struct_excessive_bools, reason = "each is known, or not, by itself")]
#[derive(Debug)]
pub(super) struct Plain {
    /// Safe final name: a path below the receiving directory.
    pub(super) name: Vec<u8>,
    /// Name at the sender.
    said: Vec<u8>,
    /// `true` if the name may still change.
    provisional: bool,
    /// `true` if an origin identifies it, so that a later run can recognise it.
    known: bool,
    /// Description that the sender vouches for, now or in an earlier run.
    pub(super) vouched: Option<Vouched>,
    replaces: bool,
    tree: Tree,
    /// Number of times that it was complete but wrong.
    damages: u32,
    /// `true` once it has its final name.
    pub(super) done: bool,
}

impl Plain {
    /// Creates the state, and refuses a name that could lead elsewhere or replace a file that is to be kept.
    pub(super) fn new(root: &Root, object: &PlainObject<'_>, options: Options) -> Result<Self, StoreError> {
        let plain = Self {
            name: safe_path(object.name, options.hidden, &object.key().tag()),
            said: object.name.to_vec(),
            provisional: object.provisional,
            known: object.origin.is_some(),
            vouched: object.vouched,
            replaces: object.overwrite && options.overwrite == Overwrite::Overwrite,
            tree: Tree::new(object.size, 0),
            damages: 0,
            done: false,
        };
        plain.check_name(root)?;
        Ok(plain)
    }

    /// Returns `true` if a later run may continue it.
    pub(super) fn resumes(&self, options: Options) -> bool {
        self.known && (self.vouched.is_some() || !options.vouched_only)
    }

    /// Returns the number of directories in which the file is put.
    pub(super) fn directories(&self) -> u64 {
        self.name.split(|octet| *octet == b'/').count() as u64 - 1
    }

    fn check_name(&self, root: &Root) -> Result<(), StoreError> {
        let there =
            root.regular(&self.name).map_err(|errno| name_error(root, &self.name, "examine", errno))?;
        if there.is_some() && !self.replaces {
            return Err(StoreError::AlreadyExists { path: root.full(&self.name) });
        }
        Ok(())
    }
}

impl Incoming {
    /// Sets the final name of an object without a manifest to `name`, and the description that its sender vouches for.
    /// Does nothing once the object has its final name. If an earlier run has data of other vouched content, that data
    /// has to be received again.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] if something of that name exists that must not be replaced; errors of its
    /// examination.
    pub fn rename(&mut self, name: &[u8], vouched: Option<Vouched>) -> Result<(), StoreError> {
        let tag = self.id.tag();
        let Some(plain) = self.plain.as_mut().filter(|plain| !plain.done) else { return Ok(()) };
        plain.provisional = false;
        plain.name = safe_path(name, self.options.hidden, &tag);
        plain.said = name.to_vec();
        let digest = |vouched: Option<Vouched>| vouched.map(|vouched| vouched.digest);
        let other = plain.vouched.is_some() && digest(plain.vouched) != digest(vouched);
        plain.vouched = vouched;
        self.changed = true;
        plain.check_name(&self.root)?;
        if other && let Some(lost) = self.doubt_plain() {
            self.happenings.push(Happening::Dropped { lost });
        }
        Ok(())
    }

    /// Declares that the name of an object without a manifest will not change any more. Call [`retry`](Self::retry) to
    /// complete the object if it only waited for that.
    pub fn settle_name(&mut self) {
        if let Some(plain) = &mut self.plain {
            plain.provisional = false;
        }
    }

    /// Hashes the groups of an object without a manifest that are complete after `bytes` were written.
    pub(super) fn plain_arrived(&mut self, bytes: &Range<u64>) {
        let Some(plain) = &mut self.plain else { return };
        let mut scratch = core::mem::take(&mut self.scratch);
        for group in bytes.start / GROUP_LEN..=(bytes.end - 1) / GROUP_LEN {
            let start = group * GROUP_LEN;
            let of_group = self.geometry.touching(&(start..self.geometry.size.min(start + GROUP_LEN)));
            if of_group.is_some_and(|run| self.held.count_in(run) == run.count())
                && let Some(spool) = &self.spool
                && let Ok(spool) = spool.fd(&self.root, &self.state.spool_path())
            {
                scratch.resize(self.geometry.size.saturating_sub(start).min(GROUP_LEN) as usize, 0);
                // A group that cannot be read now is read again at the end, which reports the error.
                if read_at(spool, &mut scratch, start) == Ok(scratch.len()) {
                    plain.tree.insert(group, &scratch);
                }
            }
        }
        self.scratch = scratch;
    }

    /// Gives an object without a manifest its final name, if every segment is there.
    pub(super) fn complete_plain(&mut self) -> Result<(), StoreError> {
        let Some(mut plain) = self.plain.take() else { return Ok(()) };
        if !self.held.is_full() || plain.done || plain.provisional {
            self.plain = Some(plain);
            return Ok(());
        }
        let named = self.name_plain(&mut plain);
        plain.done = matches!(named, Ok(Some(_)));
        // If everything is received again, earlier hashes are worthless.
        if !self.held.is_full() {
            plain.tree = Tree::new(self.geometry.size, 0);
        }
        let (name, vouched) = (plain.name.clone(), plain.vouched.is_some());
        self.plain = Some(plain);
        if let Some(digest) = named? {
            self.room.give_up(self.geometry.size, 1);
            self.happenings.push(Happening::PlainDone { name, digest, vouched });
        }
        Ok(())
    }

    /// Verifies the object and gives it its final name. Returns its digest. Returns `None` if the sender vouches for
    /// another digest, and everything has to be received again.
    fn name_plain(&mut self, plain: &mut Plain) -> Result<Option<[u8; 32]>, StoreError> {
        let path = self.state.spool_path();
        if self.geometry.size == 0 {
            // No segment has arrived for which the state directory would have been made.
            self.begin()?;
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        let Some(spool) = self.spool()? else { return Ok(None) };
        let digest = plain.tree.value(0, &mut scratch, |group, buffer: &mut Vec<u8>| {
            let start = group * GROUP_LEN;
            buffer.resize(self.geometry.size.saturating_sub(start).min(GROUP_LEN) as usize, 0);
            read_at(spool, buffer, start).map(|read| buffer[read..].fill(0))
        });
        self.scratch = scratch;
        let digest = digest.map_err(|errno| self.root.error(&path, "read", errno, 0))?;
        if plain.vouched.is_some_and(|vouched| vouched.digest != digest) {
            return self.damaged_plain(plain).map(|()| None);
        }
        let Some(spool) = self.spool()? else { return Ok(None) };
        let name = &plain.name;
        let there =
            self.root.regular(name).map_err(|errno| name_error(&self.root, name, "examine", errno))?;
        self.check_beside(plain, there.is_some())?;
        let mode = there.map_or_else(|| new_mode(plain.vouched), |stat| kept_mode(&stat));
        let set = self.root.set_mode(name, spool, mode);
        set.map_err(|errno| self.root.error(name, "set the mode of", errno, 0))?;
        if let Some(vouched) = &plain.vouched {
            let set = self.root.set_times(name, spool, &times_at(vouched.mtime_ns));
            set.map_err(|errno| self.root.error(name, "set the time of", errno, 0))?;
        }
        if self.syncs()
            && let Err(errno) = self.root.sync_content(name, spool)
        {
            // The kernel may have dropped data that it could not write, and reports that only once.
            let lost = self.doubt_plain();
            self.happenings.extend(lost.map(|lost| Happening::Dropped { lost }));
            return Err(self.root.error(&path, "complete", errno, self.geometry.size));
        }
        let parents = self.make_parents(name)?;
        if let Err(errno) = self.root.rename(&path, name, plain.replaces) {
            remove_made(&self.root, name, &parents);
            let errno = if is_missing_name(&self.root, &path, errno) { Errno::INVAL } else { errno };
            return Err(name_error(&self.root, name, "rename a complete file to", errno));
        }
        self.note_delivered(name, &plain.said);
        if self.syncs() {
            let synced = self.root.sync_parent(name);
            synced.map_err(|errno| self.root.error(name, "make durable the name", errno, 0))?;
        }
        Ok(Some(digest))
    }

    /// Makes the directories that `path` lies in. Returns the lengths of the paths of those that were made.
    fn make_parents(&self, path: &[u8]) -> Result<Vec<usize>, StoreError> {
        let mut made = Vec::new();
        let ends = path.iter().enumerate().filter(|(_, octet)| **octet == b'/').map(|(at, _)| at);
        for end in ends {
            let directory = &path[..end];
            let result = self.root.make_directory(directory, Mode::RWXU | Mode::RWXG | Mode::RWXO);
            let synced = match result {
                Ok(true) => {
                    made.push(end);
                    if self.syncs() { self.root.sync_parent(directory) } else { Ok(()) }
                }
                other => other.map(drop),
            };
            if let Err(errno) = synced {
                remove_made(&self.root, path, &made);
                return Err(name_error(&self.root, path, "make the directory for", errno));
            }
        }
        Ok(made)
    }

    /// Refuses a name if another file delivered into the directory would be lost by it.
    fn check_beside(&self, plain: &Plain, is_there: bool) -> Result<(), StoreError> {
        let Some((delivered, session)) = self.beside.as_ref().filter(|_| is_there) else { return Ok(()) };
        let (path, said) = (plain.name.clone(), plain.said.clone());
        let meets = |first: &[u8], second: &[u8]| StoreError::NamesMeet {
            first: as_path(first).to_owned(),
            second: as_path(second).to_owned(),
            dir: self.root.full(b""),
        };
        let name = Name { path, said, session: session.clone() };
        if let Some(first) = delivered.same(&name) {
            return Err(meets(&first, &name.said));
        }
        match self.meets_delivered(&name.path)? {
            Some(first) => Err(meets(&first, &name.path)),
            None => Ok(()),
        }
    }

    /// Handles a complete object whose digest differs from the one that its sender vouches for. It is received again,
    /// until it was wrong `MOST_DAMAGES` times.
    fn damaged_plain(&mut self, plain: &mut Plain) -> Result<(), StoreError> {
        plain.damages += 1;
        let lost = self.doubt_plain();
        let name = plain.name.clone();
        let Some(lost) = lost.filter(|_| plain.damages < MOST_DAMAGES) else {
            return Err(StoreError::DigestMismatch { path: self.root.full(&name) });
        };
        self.happenings.push(Happening::PlainDamaged { name, lost });
        Ok(())
    }

    /// Discards everything that was received, and returns the segments.
    fn doubt_plain(&mut self) -> Option<Run> {
        let all = self.held.iter_runs().next();
        self.held.clear();
        self.spool_space = crate::transfer::Space::Unknown;
        self.room.give_up(self.geometry.size, 0);
        self.changed = true;
        all
    }
}

/// Removes the directories on the way to `path` that were made for it, by the lengths of their paths. One that another
/// file has been put into stays.
fn remove_made(root: &Root, path: &[u8], made: &[usize]) {
    for &end in made.iter().rev() {
        // The error that is reported says more than one of the tidying.
        let _ = root.remove_directory(&path[..end]);
    }
}

/// Returns the typed error for `errno` from a call with the final name of an object.
fn name_error(root: &Root, name: &[u8], action: &'static str, errno: Errno) -> StoreError {
    if is_impossible(errno) {
        let (path, dir) = (as_path(name).to_owned(), root.full(b""));
        return StoreError::ImpossibleName { path, dir, source: errno.into() };
    }
    root.error(name, action, errno, 0)
}

/// Number of times that an object may be complete but wrong.
const MOST_DAMAGES: u32 = 3;

/// Returns the mode of a file that did not exist: the sender's mode without the bits of the umask. If the sender
/// vouches for a mode, the owner keeps its rights and may always read.
fn new_mode(vouched: Option<Vouched>) -> Mode {
    let wanted = Mode::from_raw_mode(vouched.map_or(0o666, |vouched| vouched.mode.into()));
    let given = wanted & !umask();
    if vouched.is_some() { given | (wanted & Mode::RWXU) | Mode::RUSR } else { given }
}
