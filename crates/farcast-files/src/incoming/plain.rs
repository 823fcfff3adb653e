//! An object without a manifest: one file, of which a sender that is not farcast tells a name and a size.
//!
//! The spool is the file until every segment is there, and gets its final name then. Nothing vouches for its content
//! but the protocol that brought it, so the digest of what was written is told.

use core::ops::Range;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::SystemTime;

use rustix::fs::{self, Mode};

use super::complete::kept_mode;
use super::{Happening, Incoming, Options, Overwrite};
use crate::beneath::{Root, umask};
use crate::name::safe_name;
use crate::transfer::read_at;
use crate::tree::{GROUP_LEN, Tree};
use crate::{ProductId, StoreError};

/// What separates the hashes made here from all others.
const CONTEXT: &[u8] = b"farcast: an object without a manifest";

/// An object without a manifest, as its sender describes it.
#[derive(Clone, Copy, Debug)]
pub struct PlainObject<'a> {
    /// What it is called: any octets, and none if it has no name. The file is called alike, as far as that is safe.
    pub name: &'a [u8],
    /// Bytes, at least one.
    pub size: u64,
    /// What no other object has: of two of the same origin and size, the content is the same. Without it what an earlier
    /// run has left is never gone on with, for it may be of something else.
    pub origin: Option<&'a [u8]>,
    /// What was last written before this is not gone on with either: the numbers of a sender come round.
    pub since: SystemTime,
    /// Whether the sender allows that a file of its name is replaced; it also takes [`Overwrite::Overwrite`].
    pub overwrite: bool,
}

impl PlainObject<'_> {
    /// The name of its state directory.
    pub(super) fn key(&self) -> ProductId {
        let mut hasher = blake3::Hasher::new();
        hasher.update(CONTEXT);
        let mut field = |octets: &[u8]| {
            hasher.update(&(octets.len() as u64).to_be_bytes());
            hasher.update(octets);
        };
        field(&self.size.to_be_bytes());
        match self.origin {
            // What it is called may have become known only later.
            Some(origin) => field(origin),
            // One that nobody finds again.
            None => (0..4).for_each(|_| field(&RandomState::new().build_hasher().finish().to_be_bytes())),
        }
        ProductId::from_bytes(*hasher.finalize().as_bytes())
    }
}

/// What is known of an object without a manifest besides what every [`Incoming`] knows.
#[derive(Debug)]
pub(super) struct Plain {
    /// The final name, one that is safe.
    pub(super) name: Vec<u8>,
    /// Whether a later run may go on with what is there.
    pub(super) resumes: bool,
    replaces: bool,
    tree: Tree,
    /// It has its final name.
    pub(super) done: bool,
}

impl Plain {
    /// Refuses what could lead elsewhere or destroy something.
    pub(super) fn new(root: &Root, object: &PlainObject<'_>, options: Options) -> Result<Self, StoreError> {
        let plain = Self {
            name: safe_name(object.name, options.hidden, &object.key().tag()),
            resumes: object.origin.is_some(),
            replaces: object.overwrite && options.overwrite == Overwrite::Overwrite,
            tree: Tree::new(object.size, false),
            done: false,
        };
        plain.check_name(root)?;
        Ok(plain)
    }

    fn check_name(&self, root: &Root) -> Result<(), StoreError> {
        let there = root.regular(&self.name).map_err(|errno| root.error(&self.name, "examine", errno, 0))?;
        if there.is_some() && !self.replaces {
            return Err(StoreError::AlreadyExists { path: root.full(&self.name) });
        }
        Ok(())
    }
}

impl Incoming {
    /// An object without a manifest that has not got its final name is called `name` after all.
    ///
    /// # Errors
    /// If something of that name is there that is not to be replaced, or cannot be examined.
    pub fn rename(&mut self, name: &[u8]) -> Result<(), StoreError> {
        let tag = self.id.tag();
        let Some(plain) = self.plain.as_mut().filter(|plain| !plain.done) else { return Ok(()) };
        plain.name = safe_name(name, self.options.hidden, &tag);
        self.changed = true;
        plain.check_name(&self.root)
    }

    /// Notes that `bytes` of an object without a manifest have been written and are held: hashes what is complete.
    pub(super) fn plain_arrived(&mut self, bytes: &Range<u64>) {
        let Some(plain) = &mut self.plain else { return };
        let mut scratch = core::mem::take(&mut self.scratch);
        for group in bytes.start / GROUP_LEN..=(bytes.end - 1) / GROUP_LEN {
            let start = group * GROUP_LEN;
            let of_group = self.geometry.touching(&(start..self.geometry.size.min(start + GROUP_LEN)));
            if of_group.is_some_and(|run| self.held.count_in(run) == run.count())
                && let Some(spool) = &self.spool
            {
                scratch.resize(self.geometry.size.saturating_sub(start).min(GROUP_LEN) as usize, 0);
                // One that cannot be read now is read again in the end, and the error told then.
                if read_at(spool, &mut scratch, start) == Ok(scratch.len()) {
                    plain.tree.insert(group, &scratch);
                }
            }
        }
        self.scratch = scratch;
    }

    /// Gives an object without a manifest its final name, if every segment is there.
    pub(super) fn complete_plain(&mut self) -> Result<(), StoreError> {
        let Some(plain) = self.plain.take() else { return Ok(()) };
        if !self.held.is_full() {
            self.plain = Some(plain);
            return Ok(());
        }
        let named = if plain.done { Ok(None) } else { self.name_plain(&plain) };
        let done = plain.done || matches!(named, Ok(Some(_)));
        // Where all is to come again, nothing that was hashed counts.
        let tree = if self.held.is_full() { plain.tree } else { Tree::new(self.geometry.size, false) };
        let name = plain.name.clone();
        self.plain = Some(Plain { tree, done, ..plain });
        if let Some(digest) = named? {
            self.room.give_up(self.geometry.size, 1);
            self.happenings.push(Happening::PlainDone { name, digest });
        }
        Ok(())
    }

    /// The digest of what now has its final name.
    fn name_plain(&mut self, plain: &Plain) -> Result<Option<[u8; 32]>, StoreError> {
        let (path, name) = (self.state.spool_path(), &plain.name);
        let Some(spool) = &self.spool else { return Ok(None) };
        let mut scratch = core::mem::take(&mut self.scratch);
        let digest = plain.tree.value(0, &mut scratch, |group, buffer: &mut Vec<u8>| {
            let start = group * GROUP_LEN;
            buffer.resize(self.geometry.size.saturating_sub(start).min(GROUP_LEN) as usize, 0);
            read_at(spool, buffer, start).map(|read| buffer[read..].fill(0))
        });
        self.scratch = scratch;
        let digest = digest.map_err(|errno| self.root.error(&path, "read", errno, 0))?;
        let there = self.root.regular(name).map_err(|errno| self.root.error(name, "examine", errno, 0))?;
        let mode = there.map_or(Mode::from_raw_mode(0o666) & !umask(), |stat| kept_mode(&stat));
        fs::fchmod(spool, mode).map_err(|errno| self.root.error(&path, "complete", errno, 0))?;
        if self.syncs()
            && let Err(errno) = fs::fdatasync(spool)
        {
            // The kernel may have dropped what it could not write, and says so only once.
            self.doubt_plain();
            return Err(self.root.error(&path, "complete", errno, self.geometry.size));
        }
        let renamed = self.root.rename(&path, name, plain.replaces);
        renamed.map_err(|errno| self.root.error(name, "rename a complete file to", errno, 0))?;
        if self.syncs() {
            let synced = self.root.sync_parent(name);
            synced.map_err(|errno| self.root.error(name, "make durable the name", errno, 0))?;
        }
        Ok(Some(digest))
    }

    /// Nothing of it can be relied on: all of it is to be received again.
    fn doubt_plain(&mut self) {
        let all = self.held.iter_runs().next();
        self.held.clear();
        self.spool_space = crate::transfer::Space::Unknown;
        self.room.give_up(self.geometry.size, 0);
        self.changed = true;
        self.happenings.extend(all.map(|lost| Happening::Dropped { lost }));
    }
}
