//! The receiver's side: segments in any order become files.

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
use open::What;
use plain::Plain;
use room::Room;
use spool::Spool;
use symbols::Symbols;
use verify::MOST_DAMAGES;

/// Whether files are made durable before they are vouched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// What the journal or a final name vouches for survives a power loss.
    #[default]
    Sync,
    /// It survives the end of the process only; after a power loss the digests find out what is missing.
    NoSync,
}

/// What to do with a file that exists under the name of a received one, with other content.
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
    /// As soon as its last octet is stored.
    #[default]
    AtOnce,
    /// By [`Incoming::release`] and [`Incoming::finish`].
    WhenReleased,
}

/// How a product is received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether files are made durable.
    pub durability: Durability,
    /// What to do with existing files.
    pub overwrite: Overwrite,
    /// What it may take on disk.
    pub quota: Quota,
    /// Whether names with a leading dot are received; otherwise such a product is refused with
    /// [`StoreError::HiddenName`]. They are what programs read unasked: `.ssh`, `.profile`, `.git`.
    pub hidden: bool,
    /// Whether of objects without a manifest only those are kept for a later run for which their sender vouches. What
    /// others tell theirs by may be the same for another content, and nothing would show that the two were mixed.
    pub vouched_only: bool,
    /// Whether reception goes on however often something comes damaged: where it is proved who sends, damage is somebody
    /// else's doing, and to give up would do that one's will.
    pub enduring: bool,
    /// The moment at which a complete file gets its name.
    pub naming: Naming,
}

/// What [`Incoming::store`] made happen.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Happening {
    /// The first segments say how long the list of files is.
    ListLength {
        /// The segments that it takes.
        segments: u32,
    },
    /// The list of files is complete; [`Incoming::manifest`] gives it.
    ManifestKnown {
        /// Segments that need not be received because files below the directory already have their content, in
        /// ascending order. They count as held.
        newly_held: Vec<Run>,
    },
    /// There was no place for these segments as long as the list of files is not known: they are to be received again.
    Dropped {
        /// The segments.
        lost: Run,
    },
    /// A file has its final name, content, mode and modification time.
    FileDone {
        /// Its index in [`Manifest::entries`].
        index: usize,
    },
    /// An entry cannot have its name here, and is not delivered; everything else goes on.
    Withheld {
        /// Its path below the directory.
        path: Vec<u8>,
        /// Why, in a sentence.
        why: String,
    },
    /// Another product, which was not complete, was removed to make room for this one.
    Evicted(Box<Partial>),
    /// The file system refuses something beside the content, which is passed over; told once of each kind.
    Refused(Refusal),
    /// An object without a manifest is complete and has its final name.
    PlainDone {
        /// Its name below the directory.
        name: Vec<u8>,
        /// BLAKE3 of what was written.
        digest: [u8; 32],
        /// Whether that is what its sender vouches for; else nothing does.
        vouched: bool,
    },
    /// An object without a manifest was complete, and not what its sender vouches for: these segments have to be
    /// received again.
    PlainDamaged {
        /// The name that it would have.
        name: Vec<u8>,
        /// The segments.
        lost: Run,
    },
    /// Something was complete and wrong: these segments are not held after all, and have to be received again.
    Damaged {
        /// The file in [`Manifest::entries`] whose content it is; `None` for the head.
        index: Option<usize>,
        /// The segments.
        lost: Run,
    },
}

/// A product that is being received into a directory.
///
/// Dropping it is like a crash: the next [`open`](Self::open) goes on from the last [`checkpoint`](Self::checkpoint).
/// Use [`finish`](Self::finish), [`abandon`](Self::abandon) or [`discard`](Self::discard). Keeps at most 64 partial
/// files open; memory is one bit a segment, about 100 bytes a file and the manifest.
#[derive(Debug)]
pub struct Incoming {
    root: Arc<Root>,
    state: StateDir,
    id: ProductId,
    geometry: Geometry,
    options: Options,
    /// Number of files that may get their names although they are held back.
    released: usize,
    held: Bitmap,
    /// All bytes until the head is complete, then the head; there is none before something came.
    spool: Option<Spool>,
    spool_space: Space,
    room: Room,
    /// Parity that waits for its blocks; there is none before some came.
    symbols: Option<Symbols>,
    /// What the spool is to be shortened to, if it still has more than the head, and how many bytes it loses.
    spool_excess: Option<(u64, u64)>,
    /// The bytes of the head, once its first bytes are there.
    head_len: Option<u64>,
    /// How often the head was found damaged.
    head_damages: u32,
    /// Where bytes go once the head is known.
    delivery: Option<Delivery>,
    /// What there is instead for an object without a manifest.
    plain: Option<Plain>,
    scratch: Vec<u8>,
    /// What was delivered beside, and in which session of its sender this is.
    beside: Option<(Arc<Delivered>, String)>,
    happenings: Vec<Happening>,
    /// Whether the journal would say something new.
    changed: bool,
    /// Bytes stored since the last checkpoint.
    unsaved: u64,
    /// Counts checkpoints.
    generation: u64,
    gate: Arc<Gate>,
}

impl Incoming {
    /// Goes on with, or begins, receiving the product `id` of `product_size` bytes in segments of `segment_len` bytes
    /// into `dir`, which must exist. Nothing is made there before the first [`store`](Self::store).
    ///
    /// Files that an earlier run left complete are read to check their digests, which takes its time.
    ///
    /// # Errors
    /// [`StoreError::BadGeometry`] if there would be more than `u32::MAX` segments or the size passes `i64::MAX`,
    /// [`StoreError::InUse`], [`StoreError::UnsafePath`], and what the file system reports. If the head was already
    /// there, also the errors of [`store`](Self::store).
    pub fn open(
        dir: &Path,
        id: ProductId,
        product_size: u64,
        segment_len: u32,
        options: Options,
    ) -> Result<Self, StoreError> {
        open::open(dir, What::Product(id, product_size), segment_len, options)
    }

    /// The same for an object without a manifest. It becomes one file in `dir`, under a name that is safe and that
    /// nothing else is reached by: slashes, leading dots unless [`Options::hidden`] and control characters become `_`,
    /// what is too long is cut, and without a name it is made up. A file of that name is replaced only where both the
    /// sender and [`Options::overwrite`] allow it.
    ///
    /// # Errors
    /// As of [`open`](Self::open); [`StoreError::AlreadyExists`], and [`StoreError::TooLarge`] and
    /// [`StoreError::OverQuota`] if there is no room for it.
    pub fn open_plain(
        dir: &Path,
        object: &PlainObject<'_>,
        segment_len: u32,
        options: Options,
    ) -> Result<Self, StoreError> {
        open::open(dir, What::Plain(object), segment_len, options)
    }

    /// Stores consecutive segments, the first of them number `first`; what that made happen.
    ///
    /// Each payload is one segment. Segments that are held already are passed over.
    ///
    /// # Errors
    /// [`StoreError::BadSegment`], before anything is stored. Else what the file system reports; then the segments
    /// that are held (see [`held`](Self::held)) were stored all the same. After [`StoreError::DiskFull`] the same call
    /// may succeed later. With the first segment: [`StoreError::InUse`], [`StoreError::TooManyProducts`]. When the head
    /// is complete: [`StoreError::BadManifest`], [`StoreError::WrongSize`], [`StoreError::HiddenName`],
    /// [`StoreError::UnsafePath`], [`StoreError::AlreadyExists`], [`StoreError::TooLarge`], [`StoreError::OverQuota`],
    /// [`StoreError::TooManyFiles`], [`StoreError::UnlistedDirectories`]. What is damaged is told by
    /// [`Happening::Damaged`]; the tenth time that it is the same place, it is [`StoreError::CorruptHead`] or
    /// [`StoreError::DigestMismatch`]. After an error,
    /// [`take_happenings`](Self::take_happenings) gives what did happen before it.
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

    /// Does what could not be done when all that it needs was stored, as when the disk was full; what that made happen.
    ///
    /// # Errors
    /// The same as [`store`](Self::store).
    pub fn retry(&mut self) -> Result<Vec<Happening>, StoreError> {
        self.advance()?;
        Ok(self.take_happenings())
    }

    /// Number of files that have all their bytes and wait for [`release`](Self::release).
    pub fn waiting(&self) -> usize {
        let waiting = self.delivery.as_ref().map_or(0, |delivery| delivery.ready.len());
        if self.holds_back() { waiting } else { 0 }
    }

    fn holds_back(&self) -> bool {
        self.options.naming == Naming::WhenReleased
    }

    /// Gives the first `count` of the files that wait their names.
    ///
    /// # Errors
    /// As of [`store`](Self::store).
    pub fn release(&mut self, count: usize) -> Result<Vec<Happening>, StoreError> {
        self.released = count;
        let completed = self.complete_files();
        self.released = 0;
        completed?;
        Ok(self.take_happenings())
    }

    /// Gives all that is complete its name from now on.
    pub fn release_all(&mut self) {
        self.options.naming = Naming::AtOnce;
    }

    /// What happened and was not yet reported, such as files that [`open`](Self::open) found complete.
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

    /// Sees to it that no file takes the place of another that was `delivered` into the same directory under a name that is
    /// one with its own: by another file system's rules, or because `session`, in which its sender delivers it, calls two
    /// files so that they have one name here.
    pub fn beside(&mut self, delivered: Arc<Delivered>, session: String) {
        self.beside = Some((delivered, session));
        self.note_recognised();
    }

    /// The segments that need not be received any more.
    pub fn held(&self) -> &Bitmap {
        &self.held
    }

    /// The id of the product.
    pub fn id(&self) -> ProductId {
        self.id
    }

    /// What the product contains, once that is known.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.delivery.as_ref().map(|delivery| &delivery.manifest)
    }

    /// Whether it is an object without a manifest.
    pub fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// Whether the head is there and has the product's id, whatever is in it.
    pub fn has_head(&self) -> bool {
        self.delivery.is_some() || self.head_len.is_some_and(|len| self.holds(len))
    }

    /// Whether every file has its final name. [`finish`](Self::finish) is still to be called.
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

    /// Stores segments of which none is held.
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

    /// Writes `bytes` of the product where they belong.
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

    /// Does what has become possible: reads the head, gives files their names.
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

    /// Whether every byte of the head is there.
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

    /// The descriptor of the spool, if there is one.
    fn spool(&self) -> Result<Option<&OwnedFd>, StoreError> {
        let Some(spool) = &self.spool else { return Ok(None) };
        let path = self.state.spool_path();
        spool.fd(&self.root, &path).map(Some).map_err(|errno| self.root.error(&path, "open", errno, 0))
    }

    /// Closes what can be opened again when more comes: of many receptions at once, few can keep files open.
    pub fn rest(&mut self) {
        if let Some(spool) = &mut self.spool {
            spool.close();
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.open.close_all();
        }
    }

    /// Fills `buffer` from `offset` of the spool; what is not there reads as zeros.
    fn read_spool(&self, buffer: &mut [u8], offset: u64) -> Result<(), StoreError> {
        let read = self.spool()?.map_or(Ok(0), |spool| read_at(spool, buffer, offset));
        let read = read.map_err(|errno| self.root.error(&self.state.spool_path(), "read", errno, 0))?;
        buffer[read..].fill(0);
        Ok(())
    }

    /// Whether the first `len` bytes of the product are held.
    fn holds(&self, len: u64) -> bool {
        self.geometry.touching(&(0..len)).is_some_and(|run| self.held.count_in(run) == run.count())
    }

    /// Forgets the first `len` bytes, which are not those of the product.
    fn refuse_head(&mut self, len: u64) -> Result<(), StoreError> {
        let lost = self.geometry.touching(&(0..len));
        // What is written there now has to replace what was.
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
