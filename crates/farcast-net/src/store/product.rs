//! An object that is being received, as the store thread knows it: its files, its parity, and its replies.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use farcast_core::{Bitmap, Run};
use farcast_delivery::{ObjectId, Offer};
use farcast_files::{
    Checkpoint, Delivered, Happening, Incoming, Manifest, PlainObject, ProductId, StoreError, Vouched,
    shown_name,
};

use super::decoding::Decoding;
use super::make_directory;
use super::worker::{AnswerChannel, CHECKPOINT_EVERY};
use super::{FileInfo, Opening, PlainFile, Removed, Reply};
use crate::error::NetError;
use crate::parity::ParityDecoder;

/// Time for which the rest of an earlier run of an object without a manifest can be continued. A sender numbers its
/// objects with few bits, and the numbers repeat.
const KNOWN_FOR: Duration = Duration::from_hours(1);

/// An object that is being received.
pub(super) struct Product {
    pub(super) object: ObjectId,
    pub(super) incoming: Incoming,
    pub(super) parity: Option<ParityDecoder>,
    /// Channel for replies about the object.
    pub(super) answer: AnswerChannel,
    /// Index of each file among the entries of the manifest.
    files: Vec<usize>,
    /// Thread that writes a checkpoint.
    checkpoint: Option<JoinHandle<()>>,
    /// Seconds since the last checkpoint was begun.
    unsaved_for: u32,
    /// Number of files that are known to wait for their names.
    waiting: usize,
}

impl Product {
    pub(super) fn open(
        opening: &Opening,
        answer: AnswerChannel,
        delivered: Arc<Delivered>,
    ) -> Result<Self, NetError> {
        let Opening { offer, code, dir, options, keeps_parity } = opening;
        make_directory(dir)?;
        let (geometry, segment_len) = (offer.geometry, u32::from(offer.geometry.segment_size()));
        let mut incoming = if let Some(id) = offer.id {
            Incoming::open(dir, ProductId::from_bytes(id), geometry.size(), segment_len, *options)?
        } else {
            let origin = origin(offer, options.vouched_only);
            Incoming::open_plain(dir, &plain(offer, origin.as_deref()), segment_len, *options)?
        };
        incoming.beside(delivered, format!("{} {}", offer.sender, offer.session));
        // If the announced numbers are beyond our code, an error is better than the loss of all repairs.
        let parity = (offer.parity_symbols > 0)
            .then(|| {
                let new = if *keeps_parity { ParityDecoder::on_disk } else { ParityDecoder::new };
                new(geometry, offer.parity_symbols, *code)
            })
            .transpose()?;
        Ok(Self::new(offer.object, incoming, parity, answer))
    }

    pub(super) fn new(
        object: ObjectId,
        incoming: Incoming,
        parity: Option<ParityDecoder>,
        answer: AnswerChannel,
    ) -> Self {
        Self {
            object,
            incoming,
            parity,
            answer,
            files: Vec::new(),
            checkpoint: None,
            unsaved_for: 0,
            waiting: 0,
        }
    }

    /// Stores consecutive segments.
    pub(super) fn store(
        &mut self,
        first: u32,
        payloads: &[&[u8]],
        decoding: &mut Decoding,
    ) -> Result<(), NetError> {
        let stored = self.incoming.store(first, payloads);
        self.tell_of(stored, decoding)
    }

    /// Keeps consecutive parity symbols of `block`.
    pub(super) fn keep(&mut self, block: u32, first: u32, payloads: &[&[u8]]) -> Result<(), NetError> {
        let Some(parity) = &mut self.parity else { return Ok(()) };
        if !parity.keep_run(&mut self.incoming, block, first, payloads)? {
            // To the engine this is as if the symbols had been tried in vain.
            self.answer.send(Reply::Decoded { block, rebuilt: false });
        }
        Ok(())
    }

    /// Tells the engine that `block` could not be rebuilt, and which of its segments are missing. The engine may
    /// believe that they are here, and would ask for parity in vain for ever.
    pub(super) fn tell_unbuilt(&self, block: u32) {
        self.answer.send(Reply::Decoded { block, rebuilt: false });
        let blocks = self.parity.as_ref().map(ParityDecoder::geometry);
        let run = blocks.and_then(|geometry| geometry.block_run(block));
        let missing: Vec<Run> = run.map_or_else(Vec::new, |run| self.incoming.held().gaps_in(run).collect());
        if !missing.is_empty() {
            self.answer.send(Reply::Lost(missing));
        }
    }

    /// Forgets the parity of `block`, from which nothing is to be rebuilt.
    pub(super) fn forget_parity(&mut self, block: u32) {
        if let Some(parity) = &mut self.parity {
            parity.forget_block(&mut self.incoming, block);
        }
    }

    /// Does what failed before.
    pub(super) fn retry(&mut self, decoding: &mut Decoding) -> Result<(), NetError> {
        let tried = self.incoming.retry();
        self.tell_of(tried, decoding)
    }

    /// Gives the first `count` of the waiting files their names.
    pub(super) fn release(&mut self, count: usize, decoding: &mut Decoding) -> Result<(), NetError> {
        self.waiting = 0;
        let released = self.incoming.release(count);
        self.tell_of(released, decoding)
    }

    /// Takes content from older versions that are already here. An error is ignored: it is met again, and reported,
    /// when content arrives.
    pub(super) fn compare(&mut self, decoding: &mut Decoding) {
        let happenings = self.incoming.compare().unwrap_or_default();
        let early = self.incoming.take_happenings();
        let held = self.incoming.held().clone();
        self.tell(happenings, decoding);
        self.tell(early, decoding);
        self.answer.send(Reply::Compared(held));
    }

    /// Returns `true` if an object that is to be finished has missing segments after all.
    pub(super) fn lacks(&self) -> bool {
        !self.incoming.is_complete() && !self.incoming.held().is_full()
    }

    /// Replies that the object is open, and what was found then.
    pub(super) fn opened(&mut self, offer: &Offer, decoding: &mut Decoding) {
        let earlier = self.incoming.has_earlier(&offer.name);
        let early = self.incoming.take_happenings();
        let held: Bitmap = self.incoming.held().clone();
        let listed = self.incoming.manifest().is_some();
        // Symbols that cannot be read count as not kept.
        let kept = self.parity.as_ref().and_then(|parity| parity.kept(&mut self.incoming).ok());
        self.answer.send(Reply::Opened { held, earlier, listed });
        if let Some(kept) = kept.filter(|kept| !kept.is_empty()) {
            self.answer.send(Reply::Kept(kept));
        }
        self.tell(early, decoding);
    }

    /// Replies with the happenings of `result`, or with those before its error.
    fn tell_of(
        &mut self,
        result: Result<Vec<Happening>, StoreError>,
        decoding: &mut Decoding,
    ) -> Result<(), NetError> {
        match result {
            Ok(happenings) => {
                self.tell(happenings, decoding);
                Ok(())
            }
            Err(error) => {
                let before = self.incoming.take_happenings();
                self.tell(before, decoding);
                Err(error.into())
            }
        }
    }

    pub(super) fn tell(&mut self, happenings: Vec<Happening>, decoding: &mut Decoding) {
        let mut done = Vec::new();
        for happening in happenings {
            match happening {
                Happening::ManifestKnown { newly_held } => {
                    let Some(manifest) = self.incoming.manifest() else { continue };
                    let files = list(manifest);
                    let entries = manifest.entries().iter().enumerate();
                    self.files = entries.filter_map(|(at, one)| one.is_file().then_some(at)).collect();
                    self.answer.send(Reply::Manifest { newly_held, files });
                }
                Happening::FileDone { index } => done.extend(self.files.binary_search(&index)),
                Happening::PlainDone { name, digest, vouched } => {
                    let file = PlainFile { path: shown_name(&name), digest, vouched };
                    self.answer.send(Reply::Plain(file));
                }
                Happening::PlainDamaged { name, lost } => {
                    self.spoil(lost, decoding);
                    self.answer.send(Reply::Damaged { path: Some(shown_name(&name)), lost });
                }
                Happening::Damaged { index, lost } => {
                    self.spoil(lost, decoding);
                    let entries = self.incoming.manifest().map_or(&[][..], Manifest::entries);
                    let path = index.and_then(|index| entries.get(index));
                    let path = path.map(|entry| shown_name(&entry.path));
                    self.answer.send(Reply::Damaged { path, lost });
                }
                Happening::Withheld { path, why } => {
                    self.answer.send(Reply::Withheld { path: shown_name(&path), why });
                }
                Happening::Refused(refusal) => self.answer.send(Reply::Refused(refusal)),
                Happening::Evicted(partial) => {
                    self.answer.send(Reply::Removed { partial, why: Removed::MakesRoom });
                }
                Happening::ListLength { segments } => self.answer.send(Reply::ListLength(segments)),
                Happening::Dropped { lost } => {
                    if self.incoming.is_plain() {
                        // The content was that of another object.
                        self.spoil(lost, decoding);
                    }
                    self.answer.send(Reply::Lost(vec![lost]));
                }
                _ => {}
            }
        }
        if !done.is_empty() {
            self.answer.send(Reply::FilesDone(done));
        }
        let waiting = self.incoming.waiting();
        if waiting > self.waiting {
            self.waiting = waiting;
            self.answer.send(Reply::Waiting(waiting));
        }
    }

    /// Discards the parity, and the rebuilding, of blocks with these wrong segments: the results would be wrong too.
    fn spoil(&mut self, lost: Run, decoding: &mut Decoding) {
        if let Some(parity) = &mut self.parity {
            parity.forget(&mut self.incoming, lost);
            decoding.spoil(self.object, parity.geometry(), lost);
        }
    }

    /// Begins to write a checkpoint, if enough has come for one.
    #[expect(clippy::disallowed_methods, reason = "the driver owns its threads")]
    pub(super) fn write_checkpoint(&mut self) {
        if self.checkpoint.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        self.unsaved_for = self.unsaved_for.saturating_add(1);
        let checkpoint = self.incoming.checkpoint_if_worth(CHECKPOINT_EVERY * self.unsaved_for);
        if checkpoint.is_some() {
            self.unsaved_for = 0;
        }
        // If a journal cannot be written, the last one stays in force.
        self.checkpoint =
            checkpoint.map(|checkpoint: Checkpoint| std::thread::spawn(|| drop(checkpoint.run())));
    }

    pub(super) fn join_checkpoint(&mut self) {
        if let Some(thread) = self.checkpoint.take() {
            let _ = thread.join();
        }
    }

    /// Gives the object its final name, unless something is wrong with it.
    pub(super) fn finish(self) {
        match self.incoming.finish() {
            Ok(refusals) => {
                for refusal in refusals {
                    self.answer.send(Reply::Refused(refusal));
                }
                self.answer.send(Reply::Finished);
            }
            Err(error) => self.answer.send(Reply::Failed { error: error.into(), vouched: false }),
        }
    }
}

/// Returns the mark by which an object without a manifest is known again; `None` if the sender gives it no serial
/// number.
fn origin(offer: &Offer, vouched_only: bool) -> Option<Vec<u8>> {
    let (serial, session) = (offer.serial?, offer.session);
    // Content that a sender vouches for is the same from any address: a sender that is started again has another port.
    let sender = if vouched_only { String::new() } else { offer.sender.to_string() };
    Some(format!("{sender} {session} {serial}").into_bytes())
}

#[expect(clippy::disallowed_methods, reason = "the driver knows what time it is")]
fn plain<'a>(offer: &'a Offer, origin: Option<&'a [u8]>) -> PlainObject<'a> {
    let now = SystemTime::now();
    PlainObject {
        name: &offer.name,
        provisional: offer.provisional,
        size: offer.geometry.size(),
        vouched: vouched(offer),
        origin,
        since: now.checked_sub(KNOWN_FOR).unwrap_or(now),
        overwrite: offer.overwrite,
    }
}

/// Returns the properties that the sender vouches for.
pub(super) fn vouched(offer: &Offer) -> Option<Vouched> {
    let said = offer.vouched.as_deref()?;
    Some(Vouched { digest: said.digest, mode: said.mode, mtime_ns: said.mtime_ns })
}

/// Returns the files of `manifest`.
fn list(manifest: &Manifest) -> Arc<[FileInfo]> {
    let mut start = manifest.head_len();
    let files = manifest.entries().iter().filter(|entry| entry.is_file()).map(|entry| {
        let (size, stored) = (entry.size(), entry.stored());
        let file = FileInfo { path: shown_name(&entry.path), size, start, stored };
        start += stored;
        file
    });
    files.collect()
}
