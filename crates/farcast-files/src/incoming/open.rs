//! Goes on where an earlier run stopped.

use std::path::Path;
use std::sync::Arc;

use farcast_core::Bitmap;

use super::checkpoint::Gate;
use super::delivery::Delivery;
use super::place::hold_done;
use super::state::StateDir;
use super::{Happening, Incoming, Options};
use crate::beneath::Root;
use crate::journal::Journal;
use crate::layout::Geometry;
use crate::manifest::PREFIX_LEN;
use crate::transfer::{Space, read_at};
use crate::{Manifest, ProductId, StoreError};

pub(super) fn open(
    dir: &Path,
    id: ProductId,
    product_size: u64,
    segment_len: u32,
    options: Options,
) -> Result<Incoming, StoreError> {
    let geometry = Geometry::new(product_size, segment_len);
    let geometry = geometry.ok_or(StoreError::BadGeometry { product_size, segment_len })?;
    let root = Root::open(dir).map_err(|errno| StoreError::new(dir.to_owned(), "open", errno, 0, 0))?;
    let root = Arc::new(root);
    let state = StateDir::lock(&root, id)?;
    let journal =
        state.journal(&root)?.filter(|journal| journal.id == id && journal.product_size == product_size);
    let old = match &journal {
        Some(_) => state.old_spool(&root)?,
        None => None,
    };
    let usable =
        |journal: &Journal, len: u64| len == product_size || (journal.placed && len >= PREFIX_LEN as u64);
    let (spool, spool_space, journal) = match (old, journal) {
        (Some((spool, len)), Some(journal)) if usable(&journal, len) => {
            (spool, Space::Unknown, Some(journal))
        }
        _ => (state.new_spool(&root, product_size)?, Space::Fresh, None),
    };
    let mut incoming = Incoming {
        root,
        state,
        id,
        geometry,
        options,
        held: Bitmap::new(geometry.count),
        spool,
        spool_space,
        head_len: None,
        delivery: None,
        happenings: Vec::new(),
        changed: false,
        generation: 1,
        gate: Arc::new(Gate::default()),
    };
    if let Some(journal) = journal {
        incoming.resume(&journal)?;
    }
    Ok(incoming)
}

impl Incoming {
    fn resume(&mut self, journal: &Journal) -> Result<(), StoreError> {
        self.held = convert(journal, &self.geometry);
        if journal.placed {
            match self.placed_head()? {
                Some(manifest) => self.resume_files(manifest, journal)?,
                None => self.start_afresh()?,
            }
        }
        // What was found missing must not be vouched for any longer once there are new partials in its place.
        self.changed = true;
        self.write_journal()?;
        match self.advance() {
            // What is damaged counts as not held any more; that is all that the caller has to know.
            Err(StoreError::CorruptHead { .. } | StoreError::DigestMismatch { .. }) => Ok(()),
            other => other,
        }
    }

    fn start_afresh(&mut self) -> Result<(), StoreError> {
        self.held.clear();
        self.spool = self.state.new_spool(&self.root, self.geometry.size)?;
        self.spool_space = Space::Fresh;
        Ok(())
    }

    /// The manifest in a spool that holds only the head; `None` if it is not that of the product.
    fn placed_head(&mut self) -> Result<Option<Manifest>, StoreError> {
        let failed = |errno| self.root.error(&self.state.spool_path(), "read", errno, 0);
        let mut prefix = [0; PREFIX_LEN];
        read_at(&self.spool, &mut prefix, 0).map_err(failed)?;
        let Ok(len) = Manifest::head_len_of(&prefix) else { return Ok(None) };
        let mut head = vec![0; len as usize];
        read_at(&self.spool, &mut head, 0).map_err(failed)?;
        if ProductId::of_head(&head) != self.id {
            return Ok(None);
        }
        let manifest = Manifest::decode(&head[PREFIX_LEN..])?;
        Ok(Some(manifest).filter(|manifest| manifest.product_size() == self.geometry.size))
    }

    /// Finds out which files are as the journal says.
    fn resume_files(&mut self, manifest: Manifest, journal: &Journal) -> Result<(), StoreError> {
        let mut delivery = Delivery::new(self.root.clone(), self.id, manifest, self.options);
        delivery.check_paths()?;
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
        delivery.check_space()?;
        delivery.make_directories()?;
        self.happenings.push(Happening::ManifestKnown { newly_held });
        let done = (0..delivery.files.len()).filter(|file| delivery.is_done(*file));
        self.happenings
            .extend(done.map(|file| Happening::FileDone { index: delivery.layout.spans()[file].entry }));
        self.delivery = Some(delivery);
        self.changed = true;
        Ok(())
    }
}

/// The segments of `geometry` that hold no byte outside of those that the journal says are held.
fn convert(journal: &Journal, geometry: &Geometry) -> Bitmap {
    let mut held = Bitmap::new(geometry.count);
    let Some(old) = Geometry::new(journal.product_size, journal.segment_len) else { return held };
    for run in journal.held.iter_runs().filter_map(|run| geometry.covered(&old.bytes(run))) {
        held.insert_run(run);
    }
    held
}
