//! Begin of a reception, or continuation of an earlier run.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use farcast_core::Bitmap;
use rustix::io::Result as SystemResult;

use super::checkpoint::Gate;
use super::delivery::Delivery;
use super::place::hold_done;
use super::plain::{Plain, PlainObject};
use super::room::{Room, STATE_INODES};
use super::spool::Spool;
use super::state::StateDir;
use super::{Happening, Incoming, Options};
use crate::beneath::{Root, mtime_of, nanoseconds, size_of};
use crate::journal::{Journal, Stage};
use crate::layout::Geometry;
use crate::manifest::PREFIX_LEN;
use crate::transfer::{Space, read_at};
use crate::{Manifest, ManifestError, ProductId, StoreError, Usage, system};

pub(super) fn open(
    dir: &Path,
    what: ReceptionSubject<'_>,
    segment_len: u32,
    options: Options,
) -> Result<Incoming, StoreError> {
    let (id, product_size) = what.identity();
    let geometry = Geometry::new(product_size, segment_len);
    let geometry = geometry.ok_or(StoreError::BadGeometry { product_size, segment_len })?;
    let root = Root::open(dir).map_err(|errno| StoreError::new(dir.to_owned(), "open", errno, 0, 0))?;
    let root = Arc::new(root);
    let plain = match what {
        ReceptionSubject::Product(..) => None,
        ReceptionSubject::Plain(object) => Some(Plain::new(&root, object, options)?),
    };
    let state = StateDir::find(&root, id)?;
    let (spool, journal) = earlier(&root, &state, what)?.unzip();
    let taken = state.recorded().unwrap_or_default();
    let mut incoming = Incoming {
        root,
        state,
        id,
        geometry,
        options,
        released: 0,
        held: Bitmap::new(geometry.count),
        spool: spool.map(Spool::new),
        spool_space: Space::Unknown,
        spool_excess: None,
        room: Room::resumed(taken),
        symbols: None,
        head_len: None,
        head_damages: 0,
        delivery: None,
        plain,
        scratch: Vec::new(),
        beside: None,
        happenings: Vec::new(),
        changed: false,
        unsaved: 0,
        generation: 1,
        gate: Arc::new(Gate::default()),
    };
    if let Some(journal) = journal {
        if let (Some(plain), Stage::Plain { vouched, .. }) = (&mut incoming.plain, &journal.stage) {
            // The earlier description holds until the sender repeats or replaces it.
            plain.vouched = plain.vouched.or(*vouched);
        }
        incoming.resume(&journal)?;
    }
    incoming.check_plain_room()?;
    Ok(incoming)
}

/// Returns the spool and the journal of an earlier run, if they are of this subject and can be used.
fn earlier(
    root: &Root,
    state: &StateDir,
    what: ReceptionSubject<'_>,
) -> Result<Option<(OwnedFd, Journal)>, StoreError> {
    let (id, product_size) = what.identity();
    let is_plain = matches!(what, ReceptionSubject::Plain(_));
    let ours = |journal: &Journal| {
        let kind = matches!(journal.stage, Stage::Plain { .. }) == is_plain;
        kind && journal.id == id && journal.product_size == product_size && vouches_alike(what, journal)
    };
    let fresh_enough = |spool: &OwnedFd| match what {
        ReceptionSubject::Product(..) => true,
        ReceptionSubject::Plain(object) => {
            system::fstat(spool).is_ok_and(|stat| mtime_of(&stat) >= nanoseconds(object.since))
        }
    };
    let Some(journal) = state.journal(root)?.filter(ours) else { return Ok(None) };
    let usable =
        |len: u64| len == product_size || (journal.stage == Stage::Placed && len >= PREFIX_LEN as u64);
    let old = state.old_spool(root)?.filter(|(spool, len)| usable(*len) && fresh_enough(spool));
    Ok(old.map(|(spool, _)| (spool, journal)))
}

/// Subject of a reception.
#[derive(Clone, Copy)]
pub(super) enum ReceptionSubject<'a> {
    /// A product, with its id and its size in bytes.
    Product(ProductId, u64),
    /// An object without a manifest.
    Plain(&'a PlainObject<'a>),
}

impl ReceptionSubject<'_> {
    /// Returns its id and its size in bytes.
    fn identity(self) -> (ProductId, u64) {
        match self {
            Self::Product(id, size) => (id, size),
            Self::Plain(object) => (object.key(), object.size),
        }
    }
}

/// Returns `false` if the sender now vouches for content for which it did not vouch in the earlier run.
fn vouches_alike(what: ReceptionSubject<'_>, journal: &Journal) -> bool {
    let (ReceptionSubject::Plain(object), Stage::Plain { vouched, .. }) = (what, &journal.stage) else {
        return true;
    };
    match (object.vouched, vouched) {
        (Some(now), Some(then)) => now.digest == then.digest,
        (Some(_), None) => false,
        (None, _) => true,
    }
}

impl Incoming {
    fn resume(&mut self, journal: &Journal) -> Result<(), StoreError> {
        self.held = convert(journal, &self.geometry);
        if journal.stage == Stage::Placed {
            match self.placed_head()? {
                Some(manifest) => self.resume_files(manifest, journal)?,
                None => self.start_afresh()?,
            }
        }
        // Once missing data is replaced by new partial files, the old journal must not vouch for them.
        self.changed = self.held != journal.held || self.geometry.segment_len != journal.segment_len;
        self.write_journal()?;
        self.advance()
    }

    /// Refuses an object without a manifest if there is no room for all of it.
    fn check_plain_room(&self) -> Result<(), StoreError> {
        let Some(plain) = self.plain.as_ref().filter(|plain| !plain.done) else { return Ok(()) };
        let gaps = self.held.iter_gaps();
        let octets = gaps.map(|gap| self.geometry.bytes(gap)).map(|bytes| bytes.end - bytes.start).sum();
        let inodes = plain.directories() + if self.spool.is_some() { 0 } else { STATE_INODES };
        self.check_room(Usage { octets, inodes }, self.room.used())
    }

    fn start_afresh(&mut self) -> Result<(), StoreError> {
        self.held.clear();
        self.new_spool()
    }

    /// Reads the manifest from a spool that holds only the head; `None` if it is not that of the product.
    pub(super) fn placed_head(&mut self) -> Result<Option<Manifest>, StoreError> {
        let Some(spool) = self.spool()? else { return Ok(None) };
        let found = system::fstat(spool).and_then(|stat| manifest_in(spool, size_of(&stat), self.id));
        let found = found.map_err(|errno| self.root.error(&self.state.spool_path(), "read", errno, 0))?;
        Ok(found?.filter(|manifest| manifest.product_size() == self.geometry.size))
    }

    /// Determines which files are in the state that the journal describes.
    fn resume_files(&mut self, manifest: Manifest, journal: &Journal) -> Result<(), StoreError> {
        let mut delivery = Delivery::new(self.root.clone(), self.id, manifest, self.options);
        delivery.check_paths()?;
        delivery.find_meetings(self.state.path())?;
        for file in 0..delivery.files.len() {
            let finished = journal.finished.contains(file as u32);
            // A finished file may still have its partial's name, if a power loss undid the renaming.
            let found = (finished && delivery.recognise(file)?)
                || delivery.adopt_partial(file)?
                || (!finished && delivery.recognise(file)?);
            if found {
                continue;
            }
            let bytes = delivery.layout.spans()[file].bytes();
            if let Some(run) = self.geometry.touching(&bytes) {
                self.held.remove_run(run);
            }
        }
        let newly_held = hold_done(&delivery, &mut self.held, &self.geometry);
        delivery.count_missing(&self.held, &self.geometry);
        delivery.count_inodes()?;
        let octets = delivery.missing_bytes() + delivery.unpacked_bytes();
        let needed = Usage { octets, inodes: 0 };
        self.check_room(needed, self.room.used())?;
        self.happenings.push(Happening::ManifestKnown { newly_held });
        self.happenings.extend(delivery.tell_done());
        self.delivery = Some(delivery);
        Ok(())
    }
}

/// Reads the manifest from a spool of `len` bytes; `None` if it is not that of the product `id`.
pub(crate) fn manifest_in(
    spool: &OwnedFd,
    len: u64,
    id: ProductId,
) -> SystemResult<Result<Option<Manifest>, ManifestError>> {
    let mut prefix = [0; PREFIX_LEN];
    read_at(spool, &mut prefix, 0)?;
    let Some(head_len) = Manifest::head_len_of(&prefix).ok().filter(|head_len| *head_len <= len) else {
        return Ok(Ok(None));
    };
    let mut head = vec![0; head_len as usize];
    read_at(spool, &mut head, 0)?;
    if ProductId::of_head(&head) != id {
        return Ok(Ok(None));
    }
    Ok(Manifest::decode(&head[PREFIX_LEN..]).map(Some))
}

/// Returns the segments of `geometry` whose bytes the journal lists as held, all of them.
fn convert(journal: &Journal, geometry: &Geometry) -> Bitmap {
    let mut held = Bitmap::new(geometry.count);
    let Some(old) = Geometry::new(journal.product_size, journal.segment_len) else { return held };
    for run in journal.held.iter_runs().filter_map(|run| geometry.covered(&old.bytes(run))) {
        held.insert_run(run);
    }
    held
}
