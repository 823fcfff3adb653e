//! What the store thread does.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use farcast_core::{Bitmap, Span};
use farcast_delivery::Offer;
use farcast_files::{
    Checkpoint, EntryKind, Happening, Incoming, Manifest, Options, ProductId, Quota, StoreError, partials,
};

use super::decoding::Decoding;
use super::room::{NoRoom, Retry};
use super::{ARENAS, Arena, FileInfo, Job, Pool, Reply, Step};
use crate::clock::Clock;
use crate::error::NetError;
use crate::parity::{DecodeJob, ParityDecoder};

/// Between checkpoints of what is safely on disk, as long as enough comes for one, and between tries to write to a disk that
/// was full.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// Between looks for unfinished products that are too old.
const TIDY_EVERY: Duration = Duration::from_hours(1);

/// Where the store thread's answers go.
pub(super) struct Answer {
    pub(super) replies: Sender<(u64, Reply)>,
    pub(super) session: u64,
    pub(super) wake: Arc<OwnedFd>,
}

impl Answer {
    pub(super) fn send(&self, reply: Reply) {
        let _ = self.replies.send((self.session, reply));
        self.wake();
    }

    /// Wakes the receiving thread.
    fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

pub(super) struct Product {
    pub(super) incoming: Incoming,
    pub(super) parity: Option<ParityDecoder>,
    /// The index of each file among the entries of the manifest.
    pub(super) files: Vec<usize>,
}

/// A step that failed, and why.
pub(super) struct Failure {
    /// Its number in the arena.
    pub(super) at: usize,
    pub(super) error: NetError,
}

/// What the store thread does next.
enum Next {
    Decoded(Option<DecodeJob>),
    Job(Job),
    Nothing,
    End,
}

pub(super) struct Worker {
    jobs: Receiver<Job>,
    free: Pool,
    /// Whether a buffer that comes back is waited for.
    wanted: Arc<AtomicBool>,
    pub(super) answer: Answer,
    pub(super) product: Option<Product>,
    pub(super) decoding: Decoding,
    /// The checkpoint that is being written.
    checkpoint: Option<JoinHandle<()>>,
    failed: bool,
    /// Store nothing: to measure what the network alone can do.
    discard: bool,
    pub(super) clock: Clock,
    /// How long a full disk is waited for.
    pub(super) wait_for_room: Span,
    /// What waits for room on the disk.
    pub(super) no_room: Option<NoRoom>,
    /// Seconds since the last checkpoint was begun.
    unsaved_for: u32,
    /// The directory that is kept tidy.
    tidied: Option<(PathBuf, Quota)>,
}

impl Worker {
    pub(super) fn new(
        jobs: Receiver<Job>,
        (free, wanted): (Pool, Arc<AtomicBool>),
        answer: Answer,
        discard: bool,
        wait_for_room: Span,
    ) -> Self {
        Self {
            jobs,
            free,
            wanted,
            answer,
            product: None,
            decoding: Decoding::start(),
            checkpoint: None,
            failed: false,
            discard,
            clock: Clock::start(),
            wait_for_room,
            no_room: None,
            unsaved_for: 0,
            tidied: None,
        }
    }

    pub(super) fn run(&mut self) {
        let mut due = crossbeam_channel::tick(CHECKPOINT_EVERY);
        let untidy = crossbeam_channel::tick(TIDY_EVERY);
        loop {
            match self.next() {
                Next::Decoded(job) => self.decoded(job),
                Next::Job(job) => self.job(job),
                Next::Nothing => {}
                Next::End => break,
            }
            self.try_for_room();
            match due.try_recv() {
                Ok(_) => self.write_checkpoint(),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => due = crossbeam_channel::tick(CHECKPOINT_EVERY),
            }
            if untidy.try_recv().is_ok() {
                self.tidy();
            }
        }
        self.settle_decoding();
        self.close();
    }

    /// What is to be done, after a wait if there is nothing yet.
    fn next(&mut self) -> Next {
        // What is done makes room for more, so it goes first.
        match self.decoding.thread.done().try_recv() {
            Ok(job) => return Next::Decoded(Some(job)),
            Err(TryRecvError::Disconnected) => return Next::Decoded(None),
            Err(TryRecvError::Empty) => {}
        }
        match self.jobs.try_recv() {
            Ok(job) => Next::Job(job),
            Err(TryRecvError::Disconnected) => Next::End,
            Err(TryRecvError::Empty) => {
                // The channel's own waiting tries for a while before it sleeps: wasted where jobs are far apart. Whoever sends
                // unparks.
                std::thread::park_timeout(CHECKPOINT_EVERY);
                Next::Nothing
            }
        }
    }

    pub(super) fn job(&mut self, job: Job) {
        match job {
            Job::Open { session, offer, dir, options } => {
                self.answer.session = session;
                self.close();
                self.failed = false;
                if self.discard {
                    return self.answer.send(Reply::Opened {
                        held: Bitmap::new(0),
                        earlier: false,
                        listed: false,
                    });
                }
                if let Err(error) = self.open(&offer, &dir, options) {
                    self.failed_or_full(error, Retry::Open { offer, dir, options });
                }
            }
            Job::Steps(arena) => self.arena(arena),
            Job::Compare => self.compare(),
            Job::Finish => self.finish(),
            Job::Close => {
                self.settle_decoding();
                self.close();
            }
            Job::Discard => self.discard(),
            Job::Tidy { dir, quota } => {
                self.tidied = Some((dir, quota));
                self.tidy();
            }
        }
    }

    pub(super) fn open(&mut self, offer: &Offer, dir: &Path, options: Options) -> Result<(), NetError> {
        let mut product = open(offer, dir, options)?;
        let earlier = product.incoming.has_earlier(&offer.name);
        let early = product.incoming.take_happenings();
        let held = product.incoming.held().clone();
        let listed = product.incoming.manifest().is_some();
        self.product = Some(product);
        self.answer.send(Reply::Opened { held, earlier, listed });
        self.tell(early);
        Ok(())
    }

    fn arena(&mut self, arena: Arena) {
        if let Some(no_room) = &mut self.no_room {
            no_room.drop_steps(&arena, &self.answer);
        } else if !self.failed
            && let Err(failure) = self.steps(&arena, 0)
        {
            let retry = Retry::Steps { arena: Some(arena), from: failure.at };
            return self.failed_or_full(failure.error, retry);
        }
        self.give_back(arena);
    }

    pub(super) fn give_back(&self, mut arena: Arena) {
        arena.steps.clear();
        let back = {
            let mut free = self.free.lock();
            free.push(arena);
            free.len()
        };
        // Not for each: who is woken for one has nothing to do again at once.
        let worth = back >= ARENAS / 2 || self.jobs.is_empty();
        if worth && self.wanted.swap(false, Ordering::SeqCst) {
            self.answer.wake();
        }
    }

    /// Does the steps of `arena` from number `from` on.
    pub(super) fn steps(&mut self, arena: &Arena, from: usize) -> Result<(), Failure> {
        let mut payloads: Vec<&[u8]> = Vec::with_capacity(arena.steps.len());
        let mut at = from;
        while let Some(step) = arena.steps.get(at) {
            let Some(product) = &mut self.product else { return Ok(()) };
            let mut taken = 1;
            let result = match *step {
                Step::Store { segment, .. } => {
                    payloads.clear();
                    // Consecutive segments are written by one call.
                    let consecutive = (segment..).zip(&arena.steps[at..]);
                    payloads.extend(consecutive.map_while(|(expected, step)| match *step {
                        Step::Store { segment, at, len } if segment == expected => {
                            Some(slice(&arena.buffer, at, len))
                        }
                        _ => None,
                    }));
                    taken = payloads.len();
                    let stored = product.incoming.store(segment, &payloads);
                    self.tell_of(stored)
                }
                Step::Parity { block, symbol, at, len } => {
                    if let Some(parity) = &mut product.parity {
                        parity.keep(&product.incoming, block, symbol, slice(&arena.buffer, at, len));
                    }
                    Ok(())
                }
                Step::Decode { block } => self.decode(block),
            };
            if let Err(error) = result {
                return Err(Failure { at, error });
            }
            at += taken;
        }
        Ok(())
    }

    /// Takes what is there already from older versions. What that meets is met again, and told, when it is received.
    fn compare(&mut self) {
        let Some(product) = self.product.as_mut().filter(|_| self.no_room.is_none()) else {
            return self.answer.send(Reply::Compared(Bitmap::new(0)));
        };
        let happenings = product.incoming.compare().unwrap_or_default();
        let early = product.incoming.take_happenings();
        let held = product.incoming.held().clone();
        self.tell(happenings);
        self.tell(early);
        self.answer.send(Reply::Compared(held));
    }

    /// Does what was not possible before.
    pub(super) fn retry(&mut self) -> Result<(), NetError> {
        let Some(product) = &mut self.product else { return Ok(()) };
        let tried = product.incoming.retry();
        self.tell_of(tried)
    }

    /// Tells what happened, also what did before an error.
    fn tell_of(&mut self, result: Result<Vec<Happening>, StoreError>) -> Result<(), NetError> {
        match result {
            Ok(happenings) => {
                self.tell(happenings);
                Ok(())
            }
            Err(error) => {
                let before = self.product.as_mut().map(|product| product.incoming.take_happenings());
                self.tell(before.unwrap_or_default());
                Err(error.into())
            }
        }
    }

    pub(super) fn tell(&mut self, happenings: Vec<Happening>) {
        let Some(product) = &mut self.product else { return };
        let mut done = Vec::new();
        for happening in happenings {
            match happening {
                Happening::ManifestKnown { newly_held } => {
                    let Some(manifest) = product.incoming.manifest() else { continue };
                    let files = list(manifest);
                    let entries = manifest.entries().iter().enumerate();
                    product.files = entries.filter_map(|(at, one)| one.is_file().then_some(at)).collect();
                    self.answer.send(Reply::Manifest { newly_held, files });
                }
                Happening::FileDone { index } => done.extend(product.files.binary_search(&index)),
                Happening::Damaged { index, lost } => {
                    if let Some(parity) = &mut product.parity {
                        parity.forget(lost);
                        self.decoding.spoil(parity.geometry(), lost);
                    }
                    let entries = product.incoming.manifest().map_or(&[][..], Manifest::entries);
                    let path = index.and_then(|index| entries.get(index)).map(|entry| text(&entry.path));
                    self.answer.send(Reply::Damaged { path, lost });
                }
                Happening::ListLength { segments } => self.answer.send(Reply::ListLength(segments)),
                Happening::Dropped { lost } => self.answer.send(Reply::Lost(vec![lost])),
                _ => {}
            }
        }
        if !done.is_empty() {
            self.answer.send(Reply::FilesDone(done));
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some(no_room) = &mut self.no_room {
            no_room.finish = true;
            return;
        }
        self.join_checkpoint();
        if self.discard {
            return self.fail(NetError::Discarded);
        }
        if let Err(error) = self.retry() {
            self.failed_or_full(error, Retry::Steps { arena: None, from: 0 });
            if let Some(no_room) = &mut self.no_room {
                no_room.finish = true;
            }
            return;
        }
        let lost = |product: &Product| !product.incoming.is_complete() && !product.incoming.held().is_full();
        if self.product.as_ref().is_some_and(lost) {
            // The engine asked before it knew of what was lost; it has been told, and will ask again.
            return;
        }
        let Some(product) = self.product.take() else { return };
        match product.incoming.finish() {
            Ok(()) => self.answer.send(Reply::Finished),
            Err(error) => self.fail(error.into()),
        }
    }

    /// Waits for room if that is what is wanting, and gives up otherwise.
    pub(super) fn failed_or_full(&mut self, error: NetError, retry: Retry) {
        let full = matches!(error, NetError::Store(StoreError::DiskFull { .. }));
        if !full || self.wait_for_room.is_zero() {
            if let Retry::Steps { arena: Some(arena), .. } = retry {
                self.give_back(arena);
            }
            return self.fail(error);
        }
        let segments = self.product.as_ref().map_or(0, |product| product.incoming.held().len());
        self.no_room = Some(NoRoom::new(self.clock.now(), retry, segments));
        self.answer.send(Reply::NoRoom(error));
    }

    #[expect(clippy::disallowed_methods, reason = "the driver knows what time it is")]
    fn tidy(&self) {
        if let Some((dir, quota)) = &self.tidied {
            // What cannot be removed is litter, and seen in the list of partials.
            let _ = partials::tidy(dir, quota, SystemTime::now());
        }
    }

    pub(super) fn fail(&mut self, error: NetError) {
        self.failed = true;
        let bogus =
            matches!(error, NetError::Store(StoreError::BadManifest(_) | StoreError::WrongSize { .. }));
        let vouched = !bogus && self.product.as_ref().is_some_and(|product| product.incoming.has_head());
        self.close();
        self.answer.send(Reply::Failed { error, vouched });
    }

    /// Keeps what is there for a later run, if anything vouches for it.
    fn close(&mut self) {
        self.join_checkpoint();
        self.wait_no_more();
        self.decoding.orphan();
        if let Some(product) = self.product.take() {
            // The journal of the last checkpoint stays valid if this one cannot be written.
            let _ = product.incoming.abandon();
        }
    }

    /// Removes what is there: it can never be completed.
    pub(super) fn discard(&mut self) {
        self.join_checkpoint();
        self.wait_no_more();
        self.decoding.orphan();
        if let Some(product) = self.product.take() {
            // What cannot be removed is only litter.
            let _ = product.incoming.discard();
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the driver owns its threads")]
    fn write_checkpoint(&mut self) {
        if self.checkpoint.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        self.unsaved_for = self.unsaved_for.saturating_add(1);
        let elapsed = CHECKPOINT_EVERY * self.unsaved_for;
        let checkpoint =
            self.product.as_mut().and_then(|product| product.incoming.checkpoint_if_worth(elapsed));
        if checkpoint.is_some() {
            self.unsaved_for = 0;
        }
        // A journal that could not be written leaves the last one in force.
        self.checkpoint =
            checkpoint.map(|checkpoint: Checkpoint| std::thread::spawn(|| drop(checkpoint.run())));
    }

    fn join_checkpoint(&mut self) {
        if let Some(thread) = self.checkpoint.take() {
            let _ = thread.join();
        }
    }
}

fn open(offer: &Offer, dir: &Path, options: Options) -> Result<Product, NetError> {
    std::fs::create_dir_all(dir).map_err(|source| NetError::Directory { path: dir.into(), source })?;
    let id = ProductId::from_bytes(offer.id.unwrap_or_default());
    let geometry = offer.geometry;
    let incoming = Incoming::open(dir, id, geometry.size(), u32::from(geometry.segment_size()), options)?;
    // Where the announced numbers are beyond our code, it is better to say so than to lose the repairs.
    let parity =
        (offer.parity_symbols > 0).then(|| ParityDecoder::new(geometry, offer.parity_symbols)).transpose()?;
    Ok(Product { incoming, parity, files: Vec::new() })
}

/// The files of `manifest`.
fn list(manifest: &Manifest) -> Arc<[FileInfo]> {
    let mut start = manifest.head_len();
    let files = manifest.entries().iter().filter_map(|entry| {
        let EntryKind::File { size, .. } = entry.kind else { return None };
        let file = FileInfo { path: text(&entry.path), size, start };
        start += size;
        Some(file)
    });
    files.collect()
}

fn slice(buffer: &[u8], at: u32, len: u16) -> &[u8] {
    &buffer[at as usize..at as usize + usize::from(len)]
}

fn text(path: &[u8]) -> String {
    farcast_files::shown_name(path)
}
