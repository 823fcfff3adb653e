//! Reception of a product: segments that arrive in any order become files.

use core::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use farcast_core::{Bitmap, Run};

use crate::beneath::Root;
use crate::delivered::Delivered;
use crate::layout::Geometry;
use crate::manifest::PREFIX_LEN;
use crate::partials::Partial;
use crate::transfer::{Gather, Space, read_at};
use crate::{Manifest, ProductId, Quota, Refusal, StoreError};

mod checkpoint;
mod compare;
mod complete;
mod delivery;
mod directories;
mod finish;
mod meeting;
mod open;
mod owner;
mod place;
mod plain;
mod read;
mod room;
mod spool;
mod state;
mod symbols;
mod unpack;
mod verify;
mod withheld;

pub use checkpoint::Checkpoint;

pub(crate) use delivery::{Delivery, partial_path};
pub use plain::{PlainObject, Vouched};
pub use symbols::{Coding, ParitySymbol};

pub(crate) use open::manifest_in;
pub(crate) use unpack::unpacked_path;

pub(crate) use owner::is_owned;
pub(crate) use state::{STATE_FILES, StateDir, path_of, read_journal, remove_unlocked, usage_in};

use checkpoint::Gate;
use open::ReceptionSubject;
use plain::Plain;
use room::Room;
use spool::Spool;
use symbols::Symbols;
use verify::MOST_DAMAGES;

/// Choice whether data is synced before the journal or a final name vouches for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Data that the journal or a final name vouches for survives a power loss.
    #[default]
    Sync,
    /// Data survives the end of the process only. After a power loss the digests show which data is missing.
    NoSync,
}

/// Treatment of an existing file that has the name of a received one and other content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overwrite {
    /// Replace it once the new one is complete and its digest right.
    #[default]
    Overwrite,
    /// Keep it, and refuse the product with [`StoreError::AlreadyExists`].
    Keep,
}

/// The moment at which a complete file gets its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Naming {
    /// Immediately after its last octet is stored.
    #[default]
    AtOnce,
    /// At a call of [`Incoming::release`] or [`Incoming::finish`].
    WhenReleased,
}

/// Options of a reception.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Choice whether files are made durable.
    pub durability: Durability,
    /// Treatment of existing files.
    pub overwrite: Overwrite,
    /// Limits on the disk space of incomplete products.
    pub quota: Quota,
    /// `true` to receive names with a leading dot; otherwise a product with such a name is refused with
    /// [`StoreError::HiddenName`]. Programs read such files unasked: `.ssh`, `.profile`, `.git`.
    pub hidden: bool,
    /// `true` to keep an incomplete object without a manifest for a later run only if its sender vouches for it. The
    /// properties by which other senders identify an object may be the same for different content, and nothing would
    /// show that the two were mixed.
    pub vouched_only: bool,
    /// `true` to continue however often data arrives damaged. If the sender is authenticated, damage is the work of
    /// somebody else, who wants the receiver to give up.
    pub enduring: bool,
    /// The moment at which a complete file gets its name.
    pub naming: Naming,
}

/// Event during a call such as [`Incoming::store`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Happening {
    /// The first segments have arrived, which contain the length of the list of files.
    ListLength {
        /// Number of segments that the list takes.
        segments: u32,
    },
    /// The list of files is complete; [`Incoming::manifest`] gives it.
    ManifestKnown {
        /// Segments that need not be received because files below the directory already have their content, in
        /// ascending order. They count as held.
        newly_held: Vec<Run>,
    },
    /// These segments are not held, and have to be received again. Either there was no room for them while the list of
    /// files is not known, or data that was held can no longer be used.
    Dropped {
        /// The segments that are not held.
        lost: Run,
    },
    /// A file has its final name, content, mode and modification time.
    FileDone {
        /// Index in [`Manifest::entries`].
        index: usize,
    },
    /// An entry cannot have its name here, and is not delivered; everything else goes on.
    Withheld {
        /// Path below the receiving directory.
        path: Vec<u8>,
        /// Reason, as a sentence.
        why: String,
    },
    /// Another incomplete product was removed to make room for this one.
    Evicted(Box<Partial>),
    /// The file system refuses something beside the content, which is tolerated. Each kind is reported once.
    Refused(Refusal),
    /// An object without a manifest is complete and has its final name.
    PlainDone {
        /// Name below the receiving directory.
        name: Vec<u8>,
        /// BLAKE3 of the delivered content.
        digest: [u8; 32],
        /// `true` if the sender vouches for this digest; otherwise nothing vouches for the content.
        vouched: bool,
    },
    /// An object without a manifest was complete, but not the content that its sender vouches for. These segments have
    /// to be received again.
    PlainDamaged {
        /// Name that the object would have got.
        name: Vec<u8>,
        /// The segments that are not held any more.
        lost: Run,
    },
    /// Complete data turned out wrong. These segments are no longer held, and have to be received again.
    Damaged {
        /// Index in [`Manifest::entries`] of the file to which the data belongs; `None` for the head.
        index: Option<usize>,
        /// The segments that are not held any more.
        lost: Run,
    },
}

/// A product that is being received into a directory.
///
/// Dropping it is like a crash: the next [`open`](Self::open) continues from the last [`checkpoint`](Self::checkpoint).
/// Use [`finish`](Self::finish), [`abandon`](Self::abandon) or [`discard`](Self::discard) instead. At most 64 partial
/// files are kept open. Memory is one bit a segment, about 100 bytes a file, and the manifest.
#[derive(Debug)]
pub struct Incoming {
    root: Arc<Root>,
    state: StateDir,
    id: ProductId,
    geometry: Geometry,
    options: Options,
    /// Number of files that may get their names although [`Naming::WhenReleased`] holds names back.
    released: usize,
    held: Bitmap,
    /// Spool file: all bytes until the head is complete, then the head; `None` before the first segment.
    spool: Option<Spool>,
    spool_space: Space,
    room: Room,
    /// Parity symbols that wait for their blocks; `None` before the first one.
    symbols: Option<Symbols>,
    /// Length to which the spool is to be cut, and number of bytes that this frees; `None` if it holds no more than the
    /// head.
    spool_excess: Option<(u64, u64)>,
    /// Length of the head in bytes, once its first bytes have arrived.
    head_len: Option<u64>,
    /// Number of times that the head was found damaged.
    head_damages: u32,
    /// Destination of all bytes once the head is known.
    delivery: Option<Delivery>,
    /// State of an object without a manifest; `None` for a product.
    plain: Option<Plain>,
    scratch: Vec<u8>,
    /// Names delivered into the same directory by other receptions, and the sender's session of this one.
    beside: Option<(Arc<Delivered>, String)>,
    happenings: Vec<Happening>,
    /// `true` if a new journal would differ from the last one.
    changed: bool,
    /// Bytes stored since the last checkpoint.
    unsaved: u64,
    /// Number of the next checkpoint.
    generation: u64,
    gate: Arc<Gate>,
}

impl Incoming {
    /// Begins or continues the reception of the product `id` into `dir`, which must exist. The product has
    /// `product_size` bytes, in segments of `segment_len` bytes. Nothing is written below `dir` before the first
    /// [`store`](Self::store).
    ///
    /// Complete files from an earlier run are read to check their digests, which takes time.
    ///
    /// # Errors
    /// [`StoreError::BadGeometry`] if there would be more than `u32::MAX` segments or the size passes `i64::MAX`,
    /// [`StoreError::InUse`], [`StoreError::UnsafePath`], and errors of the file system. If the head was already
    /// there, also the errors of [`store`](Self::store).
    pub fn open(
        dir: &Path,
        id: ProductId,
        product_size: u64,
        segment_len: u32,
        options: Options,
    ) -> Result<Self, StoreError> {
        open::open(dir, ReceptionSubject::Product(id, product_size), segment_len, options)
    }

    /// Begins or continues the reception of an object without a manifest, which becomes one file below `dir`. Its
    /// name is made safe, with its directories: control characters and, unless [`Options::hidden`], leading dots become
    /// `_`. A name that is
    /// too long is cut, and an object without a name gets one. A file of that name is replaced only if both the sender
    /// and [`Options::overwrite`] allow it.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open); [`StoreError::AlreadyExists`]; also [`StoreError::TooLarge`] and
    /// [`StoreError::OverQuota`] if there is no room for it.
    pub fn open_plain(
        dir: &Path,
        object: &PlainObject<'_>,
        segment_len: u32,
        options: Options,
    ) -> Result<Self, StoreError> {
        open::open(dir, ReceptionSubject::Plain(object), segment_len, options)
    }

    /// Stores consecutive segments, the first of them number `first`, and returns the events that follow.
    ///
    /// Each payload is one segment. Segments that are already held are ignored.
    ///
    /// # Errors
    /// [`StoreError::BadSegment`], before anything is stored. Other errors come from the file system; the segments that
    /// are [`held`](Self::held) afterwards were stored all the same. After [`StoreError::DiskFull`] the same call may
    /// succeed later.
    ///
    /// With the first segment: [`StoreError::InUse`], [`StoreError::TooManyProducts`].
    ///
    /// When the head is complete: [`StoreError::BadManifest`], [`StoreError::WrongSize`], [`StoreError::HiddenName`],
    /// [`StoreError::UnsafePath`], [`StoreError::AlreadyExists`], [`StoreError::TooLarge`], [`StoreError::OverQuota`],
    /// [`StoreError::TooManyFiles`], [`StoreError::UnlistedDirectories`].
    ///
    /// Damage is reported by [`Happening::Damaged`]. The tenth time in the same place it is an error:
    /// [`StoreError::CorruptHead`] or [`StoreError::DigestMismatch`]. After an error,
    /// [`take_happenings`](Self::take_happenings) returns the events before it.
    pub fn store(&mut self, first: u32, payloads: &[&[u8]]) -> Result<Vec<Happening>, StoreError> {
        let run = self.check_lengths(first, payloads)?;
        let mut rest = Some(run);
        while let Some(gap) = rest.and_then(|rest| self.held.next_gap_in(rest)) {
            let skip = (gap.first() - run.first()) as usize;
            self.store_gap(gap, &payloads[skip..skip + gap.count() as usize])?;
            rest = Run::new(gap.end(), run.end() - gap.end());
        }
        self.retry()
    }

    /// Repeats steps that have failed although all their data is stored, for example because the disk was full. Returns
    /// the events that follow.
    ///
    /// # Errors
    /// The same as [`store`](Self::store).
    pub fn retry(&mut self) -> Result<Vec<Happening>, StoreError> {
        self.advance()?;
        Ok(self.take_happenings())
    }

    /// Returns the number of files that have all their bytes and wait for [`release`](Self::release).
    pub fn waiting(&self) -> usize {
        let waiting = self.delivery.as_ref().map_or(0, |delivery| delivery.ready.len());
        if self.holds_back() { waiting } else { 0 }
    }

    fn holds_back(&self) -> bool {
        self.options.naming == Naming::WhenReleased
    }

    /// Gives the first `count` of the waiting files their names.
    ///
    /// # Errors
    /// The errors of [`store`](Self::store).
    pub fn release(&mut self, count: usize) -> Result<Vec<Happening>, StoreError> {
        self.released = count;
        let completed = self.complete_files();
        self.released = 0;
        completed?;
        Ok(self.take_happenings())
    }

    /// Gives every file its name as soon as it is complete, from now on.
    pub fn release_all(&mut self) {
        self.options.naming = Naming::AtOnce;
    }

    /// Takes the events that were not yet reported, such as complete files found by [`open`](Self::open).
    pub fn take_happenings(&mut self) -> Vec<Happening> {
        let withheld = self.delivery.as_mut().map_or_else(Vec::new, Delivery::tell_withheld);
        let entries = self.manifest().map_or(&[][..], Manifest::entries);
        let told = withheld.into_iter().filter_map(|(at, why)| {
            Some(Happening::Withheld { path: entries.get(at)?.path.clone(), why: why.to_string() })
        });
        let told: Vec<_> =
            told.chain(self.root.take_refusals().into_iter().map(Happening::Refused)).collect();
        self.happenings.extend(told);
        core::mem::take(&mut self.happenings)
    }

    /// Makes sure that no file of this reception replaces another file that was `delivered` into the same directory.
    /// Two cases are handled: the file system may take two different names for the same, or the sender may use two
    /// names in one `session` that become the same safe name here.
    pub fn beside(&mut self, delivered: Arc<Delivered>, session: String) {
        self.beside = Some((delivered, session));
        self.note_recognised();
    }

    /// Returns the segments that need not be received any more.
    pub fn held(&self) -> &Bitmap {
        &self.held
    }

    /// Returns the id of the product.
    pub fn id(&self) -> ProductId {
        self.id
    }

    /// Returns the list of files in the product, once it is known.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.delivery.as_ref().map(|delivery| &delivery.manifest)
    }

    /// Returns `true` for an object without a manifest.
    pub fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// Returns `true` if the head is complete and has the product's id. Its manifest may still be refused.
    pub fn has_head(&self) -> bool {
        self.delivery.is_some() || self.head_len.is_some_and(|len| self.holds(len))
    }

    /// Returns `true` if every file has its final name. [`finish`](Self::finish) still has to be called.
    pub fn is_complete(&self) -> bool {
        self.plain
            .as_ref()
            .map_or_else(|| self.delivery.as_ref().is_some_and(Delivery::is_complete), |plain| plain.done)
    }

    fn syncs(&self) -> bool {
        self.options.durability == Durability::Sync
    }

    fn check_lengths(&self, first: u32, payloads: &[&[u8]]) -> Result<Run, StoreError> {
        let mut expected_at = self.geometry.start(first);
        for (segment, payload) in (u64::from(first)..).zip(payloads) {
            let end = u32::try_from(segment + 1).map_or(self.geometry.size, |next| self.geometry.start(next));
            let (expected, actual) = (end - expected_at, payload.len() as u64);
            if expected != actual || expected == 0 {
                return Err(StoreError::BadSegment { segment, expected, actual });
            }
            expected_at = end;
        }
        let nothing = StoreError::BadSegment { segment: first.into(), expected: 0, actual: 0 };
        Run::new(first, payloads.len() as u32).ok_or(nothing)
    }

    /// Stores a run of segments, none of which is held.
    fn store_gap(&mut self, run: Run, payloads: &[&[u8]]) -> Result<(), StoreError> {
        let bytes = self.geometry.bytes(run);
        let len = bytes.end - bytes.start;
        self.begin()?;
        if self.delivery.is_none() && !self.may_spool(&bytes)? {
            self.happenings.push(Happening::Dropped { lost: run });
            return Ok(());
        }
        self.make_room(len)?;
        if let Err(error) = self.write(&bytes, payloads) {
            self.room.give_up(len, 0);
            return Err(error);
        }
        self.held.insert_run(run);
        self.changed = true;
        self.unsaved += len;
        if let Some(delivery) = &mut self.delivery {
            delivery.arrived(bytes, &self.held, &self.geometry);
        } else {
            self.plain_arrived(&bytes);
        }
        Ok(())
    }

    /// Writes `bytes` of the product to the partial files or the spool.
    fn write(&mut self, bytes: &Range<u64>, payloads: &[&[u8]]) -> Result<(), StoreError> {
        let mut gather = Gather::new(payloads);
        if let Some(delivery) = &mut self.delivery {
            let written = delivery.write(bytes.clone(), &mut gather, self.generation);
            self.room.count_made(delivery.take_made());
            return written;
        }
        let Some(spool) = self.spool()? else { return Ok(()) };
        let len = bytes.end - bytes.start;
        let written = gather.write(spool.as_fd(), self.spool_space, bytes.start, len);
        written.map_err(|errno| self.root.error(&self.state.spool_path(), "write", errno, len))
    }

    /// Takes the next possible steps: reads the head, and gives complete files their names.
    fn advance(&mut self) -> Result<(), StoreError> {
        if self.plain.is_some() {
            return if self.holds_back() { Ok(()) } else { self.complete_plain() };
        }
        if self.delivery.is_none() && self.head_is_complete()? {
            self.place()?;
        }
        if self.delivery.is_some() {
            self.shorten_spool()?;
        }
        self.complete_files()
    }

    /// Returns `true` if every byte of the head is held. Reads its length from the first bytes.
    fn head_is_complete(&mut self) -> Result<bool, StoreError> {
        if self.head_len.is_none() && self.holds(PREFIX_LEN as u64) {
            let mut prefix = [0; PREFIX_LEN];
            self.read_spool(&mut prefix, 0)?;
            match Manifest::head_len_of(&prefix) {
                Ok(len) if len <= self.geometry.size => {
                    self.head_len = Some(len);
                    let segments = self.geometry.touching(&(0..len)).map_or(0, Run::count);
                    self.happenings.push(Happening::ListLength { segments });
                }
                _ => self.refuse_head(PREFIX_LEN as u64)?,
            }
        }
        Ok(self.head_len.is_some_and(|len| self.holds(len)))
    }

    /// Returns the descriptor of the spool, if there is a spool.
    fn spool(&self) -> Result<Option<&OwnedFd>, StoreError> {
        let Some(spool) = &self.spool else { return Ok(None) };
        let path = self.state.spool_path();
        spool.fd(&self.root, &path).map(Some).map_err(|errno| self.root.error(&path, "open", errno, 0))
    }

    /// Closes files that can be opened again later: of many receptions at once, only a few can keep files open.
    pub fn rest(&mut self) {
        if let Some(spool) = &mut self.spool {
            spool.close();
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.open.close_all();
        }
    }

    /// Fills `buffer` from `offset` of the spool; bytes past its end read as zeros.
    fn read_spool(&self, buffer: &mut [u8], offset: u64) -> Result<(), StoreError> {
        let read = self.spool()?.map_or(Ok(0), |spool| read_at(spool, buffer, offset));
        let read = read.map_err(|errno| self.root.error(&self.state.spool_path(), "read", errno, 0))?;
        buffer[read..].fill(0);
        Ok(())
    }

    /// Returns `true` if the first `len` bytes of the product are held.
    fn holds(&self, len: u64) -> bool {
        self.geometry.touching(&(0..len)).is_some_and(|run| self.held.count_in(run) == run.count())
    }

    /// Discards the first `len` bytes, which turned out not to be those of the product.
    fn refuse_head(&mut self, len: u64) -> Result<(), StoreError> {
        let lost = self.geometry.touching(&(0..len));
        // Zeros received from now on must replace the wrong bytes in the spool.
        self.spool_space = Space::Unknown;
        self.room.give_up(len, 0);
        self.head_len = None;
        self.changed = true;
        self.head_damages += 1;
        if let Some(lost) = lost {
            self.held.remove_run(lost);
            self.happenings.push(Happening::Damaged { index: None, lost });
        }
        let again = self.options.enduring || self.head_damages < MOST_DAMAGES;
        if again { Ok(()) } else { Err(StoreError::CorruptHead { id: self.id }) }
    }
}
