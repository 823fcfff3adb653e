//! The store thread: opens objects, stores their content, verifies and names them.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use farcast_core::{Bitmap, Span, Time};
use farcast_delivery::{ObjectId, Offer};
use farcast_files::{Delivered, Quota, StoreError, partials};

use super::decoding::Decoding;
use super::product::{Product, vouched};
use super::room::{NoRoom, Retry};
use super::{ARENAS, Arena, ArenaStep, Opening, Pool, Removed, Reply, StoreJob};
use crate::clock::Clock;
use crate::error::NetError;
use crate::parity::DecodeJob;

/// Interval between checkpoints of what is safely on disk, if enough has come for one. It is also the longest sleep of
/// the thread.
pub(super) const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// Interval between looks for incomplete products that are too old.
const TIDY_EVERY: Duration = Duration::from_hours(1);

/// Most attempts at the end to remove the rest of state directories, and the pause between them.
const SWEEPS: u32 = 20;
const BETWEEN_SWEEPS: Duration = Duration::from_millis(10);

/// Channel for the store thread's replies about one reception.
#[derive(Clone)]
pub(super) struct AnswerChannel {
    pub(super) replies: Sender<(u64, Reply)>,
    pub(super) reception: u64,
    pub(super) wake: Arc<OwnedFd>,
}

impl AnswerChannel {
    pub(super) fn send(&self, reply: Reply) {
        let _ = self.replies.send((self.reception, reply));
        self.wake();
    }

    /// Wakes the receiving thread.
    fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

/// A step that failed, and its error.
pub(super) struct Failure {
    /// Object of the step.
    pub(super) object: ObjectId,
    /// Index of the step in the arena.
    pub(super) at: usize,
    pub(super) error: NetError,
}

/// Next thing to do for the store thread.
enum WorkerStep {
    Decoded(Option<DecodeJob>),
    Job(StoreJob),
    Nothing,
    End,
}

/// State of the store thread.
pub(super) struct Worker {
    jobs: Receiver<StoreJob>,
    free: Pool,
    /// The receiving thread waits for a free buffer.
    wanted: Arc<AtomicBool>,
    /// Channel for replies about no reception.
    answer: AnswerChannel,
    pub(super) products: BTreeMap<ObjectId, Product>,
    pub(super) decoding: Decoding,
    /// Store nothing, to measure what the network alone can do.
    discard: bool,
    /// Objects that are received and not stored in that case.
    discarded: BTreeMap<ObjectId, AnswerChannel>,
    pub(super) clock: Clock,
    /// Longest time to wait for room on a full disk.
    pub(super) wait_for_room: Span,
    /// Work that waits for room on the disk.
    pub(super) no_room: Option<NoRoom>,
    /// The directory that is kept tidy, its quota, and the time when it was last tidied.
    tidied: Option<(PathBuf, Quota, Time)>,
    /// Record of what was delivered, by directory.
    delivered: BTreeMap<PathBuf, Arc<Delivered>>,
}

/// Channels between the store thread and its owner.
pub(super) struct WorkerChannels {
    /// Orders for the thread.
    pub(super) jobs: Receiver<StoreJob>,
    /// Arenas that are free again.
    pub(super) free: Pool,
    /// Flag that is set while the owner waits for an arena.
    pub(super) wanted: Arc<AtomicBool>,
    pub(super) answer: AnswerChannel,
}

impl Worker {
    pub(super) fn new(channels: WorkerChannels, discard: bool, wait_for_room: Span) -> Self {
        let WorkerChannels { jobs, free, wanted, answer } = channels;
        Self {
            jobs,
            free,
            wanted,
            answer,
            products: BTreeMap::new(),
            decoding: Decoding::start(),
            discard,
            discarded: BTreeMap::new(),
            clock: Clock::start(),
            wait_for_room,
            no_room: None,
            tidied: None,
            delivered: BTreeMap::new(),
        }
    }

    pub(super) fn run(&mut self) {
        let mut due = crossbeam_channel::tick(CHECKPOINT_EVERY);
        let untidy = crossbeam_channel::tick(TIDY_EVERY);
        loop {
            match self.next() {
                WorkerStep::Decoded(job) => self.decoded(job),
                WorkerStep::Job(job) => self.job(job),
                WorkerStep::Nothing => {}
                WorkerStep::End => break,
            }
            self.try_for_room();
            if self.products.len() > farcast_files::capacity() {
                self.products.values_mut().for_each(|product| product.incoming.rest());
            }
            match due.try_recv() {
                Ok(_) => self.products.values_mut().for_each(Product::write_checkpoint),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => due = crossbeam_channel::tick(CHECKPOINT_EVERY),
            }
            if untidy.try_recv().is_ok() {
                self.tidy();
            }
        }
        for object in self.products.keys().copied().collect::<Vec<_>>() {
            self.settle_decoding(object);
            self.close(object);
        }
        self.sweep();
    }

    /// Returns the next thing to do, after a wait if there is nothing yet.
    fn next(&mut self) -> WorkerStep {
        // A finished job makes room for another, so it goes first.
        match self.decoding.thread.done().try_recv() {
            Ok(job) => return WorkerStep::Decoded(Some(job)),
            Err(TryRecvError::Disconnected) => return WorkerStep::Decoded(None),
            Err(TryRecvError::Empty) => {}
        }
        match self.jobs.try_recv() {
            Ok(job) => WorkerStep::Job(job),
            Err(TryRecvError::Disconnected) => WorkerStep::End,
            Err(TryRecvError::Empty) => {
                // A wait in the channel itself spins before it sleeps, which is wasted if jobs are far apart. Every
                // sender of a job unparks this thread.
                std::thread::park_timeout(CHECKPOINT_EVERY);
                WorkerStep::Nothing
            }
        }
    }

    pub(super) fn job(&mut self, job: StoreJob) {
        match job {
            StoreJob::Open { reception, opening } => {
                let answer = AnswerChannel { reception, ..self.answer.clone() };
                let object = opening.offer.object;
                self.close(object);
                if self.discard {
                    answer.send(Reply::Opened { held: Bitmap::new(0), earlier: false, listed: false });
                    self.discarded.insert(object, answer);
                } else if let Err(error) = self.open(&opening, &answer) {
                    self.failed_or_full(error, Retry::Open { opening, answer });
                }
            }
            StoreJob::Rename(offer) => self.rename(offer),
            StoreJob::Steps(arena) => match &mut self.no_room {
                Some(no_room) => {
                    no_room.drop_steps(&arena, &self.products);
                    self.give_back(arena);
                }
                None => self.go_on(arena, 0),
            },
            StoreJob::Compare(object) => self.compare(object),
            StoreJob::Release { object, count } => self.release(object, count),
            StoreJob::Finish(object) => self.finish(object),
            StoreJob::Close(object) => {
                self.settle_decoding(object);
                self.close(object);
            }
            StoreJob::Discard(object) => self.remove(object),
            StoreJob::Tidy { dir, quota } => {
                self.tidied = Some((dir, quota, self.clock.now()));
                self.tidy();
            }
        }
    }

    pub(super) fn open(&mut self, opening: &Opening, answer: &AnswerChannel) -> Result<(), NetError> {
        let delivered = Arc::clone(self.delivered.entry(opening.dir.clone()).or_default());
        let mut product = Product::open(opening, answer.clone(), delivered)?;
        product.opened(&opening.offer, &mut self.decoding);
        self.products.insert(opening.offer.object, product);
        Ok(())
    }

    /// Handles a new name of an object, which is open or has yet to be.
    fn rename(&mut self, offer: Box<Offer>) {
        let object = offer.object;
        if let Some(product) = self.products.get_mut(&object) {
            let renamed = product.incoming.rename(&offer.name, vouched(&offer));
            let happenings = product.incoming.take_happenings();
            product.tell(happenings, &mut self.decoding);
            if let Err(error) = renamed {
                self.fail(object, error.into());
            }
        } else if let Some(no_room) = &mut self.no_room {
            no_room.rename(offer);
        }
    }

    /// Takes the steps of `arena` from number `from` on. If a step fails, gives up its object and takes the steps of
    /// others. If there is only no room for the object, the rest waits.
    pub(super) fn go_on(&mut self, arena: Arena, mut from: usize) {
        while let Err(Failure { object, at, error }) = self.steps(&arena, from) {
            if self.waits_after(&error) {
                return self.failed_or_full(error, Retry::Steps { object, arena: Some(arena), from: at });
            }
            self.fail(object, error);
            from = at;
        }
        self.give_back(arena);
    }

    pub(super) fn give_back(&self, mut arena: Arena) {
        arena.clear();
        let back = {
            let mut free = self.free.lock();
            free.push(arena);
            free.len()
        };
        // Not for each buffer: a thread that is woken for one has nothing to do again at once.
        let worth = back >= ARENAS / 2 || self.jobs.is_empty();
        if worth && self.wanted.swap(false, Ordering::SeqCst) {
            self.answer.wake();
        }
    }

    /// Takes the steps of `arena` from number `from` on, as far as their objects are open.
    pub(super) fn steps(&mut self, arena: &Arena, from: usize) -> Result<(), Failure> {
        let mut payloads: Vec<&[u8]> = Vec::with_capacity(arena.steps.len());
        let mut at = from;
        let said = |step: &ArenaStep| if let ArenaStep::Of(object) = *step { Some(object) } else { None };
        let before = arena.steps[..from.min(arena.steps.len())].iter().rev().find_map(said);
        let mut object = before.unwrap_or(ObjectId::FIRST);
        while let Some(step) = arena.steps.get(at) {
            let mut taken = 1;
            let result = match *step {
                ArenaStep::Of(next) => {
                    object = next;
                    Ok(())
                }
                ArenaStep::Store { segment, .. } => {
                    payloads.clear();
                    // Consecutive segments are written by one call.
                    let consecutive = (segment..).zip(&arena.steps[at..]);
                    payloads.extend(consecutive.map_while(|(expected, step)| match *step {
                        ArenaStep::Store { segment, at, len } if segment == expected => {
                            Some(slice(&arena.buffer, at, len))
                        }
                        _ => None,
                    }));
                    taken = payloads.len();
                    let product = self.products.get_mut(&object);
                    product.map_or(Ok(()), |product| product.store(segment, &payloads, &mut self.decoding))
                }
                ArenaStep::Parity { block, symbol, .. } => {
                    payloads.clear();
                    let consecutive = (symbol..).zip(&arena.steps[at..]);
                    payloads.extend(consecutive.map_while(|(expected, step)| match *step {
                        ArenaStep::Parity { block: same, symbol, at, len }
                            if (same, symbol) == (block, expected) =>
                        {
                            Some(slice(&arena.buffer, at, len))
                        }
                        _ => None,
                    }));
                    taken = payloads.len();
                    let product = self.products.get_mut(&object);
                    product.map_or(Ok(()), |product| product.keep(block, symbol, &payloads))
                }
                ArenaStep::Decode { block } => self.decode(object, block),
            };
            if let Err(error) = result {
                return Err(Failure { object, at, error });
            }
            at += taken;
        }
        Ok(())
    }

    fn compare(&mut self, object: ObjectId) {
        let Some(product) = self.products.get_mut(&object) else { return };
        if self.no_room.is_some() {
            return product.answer.send(Reply::Compared(Bitmap::new(0)));
        }
        product.compare(&mut self.decoding);
    }

    /// Does what failed before with `object`.
    pub(super) fn retry(&mut self, object: ObjectId) -> Result<(), NetError> {
        let product = self.products.get_mut(&object);
        product.map_or(Ok(()), |product| product.retry(&mut self.decoding))
    }

    /// Gives the first `count` waiting files of `object` their names. If there is no room for that, they get them at
    /// the object's end.
    fn release(&mut self, object: ObjectId, count: usize) {
        let Some(product) = self.products.get_mut(&object).filter(|_| self.no_room.is_none()) else { return };
        if let Err(error) = product.release(count, &mut self.decoding) {
            self.failed_or_full(error, Retry::Steps { object, arena: None, from: 0 });
        }
    }

    pub(super) fn finish(&mut self, object: ObjectId) {
        if let Some(answer) = self.discarded.remove(&object) {
            return answer.send(Reply::Failed { error: NetError::Discarded, vouched: false });
        }
        if let Some(no_room) = &mut self.no_room {
            no_room.finish.insert(object);
            return;
        }
        let Some(product) = self.products.get_mut(&object) else { return };
        product.join_checkpoint();
        product.incoming.release_all();
        // The user who verifies it does not wait for its name.
        product.incoming.settle_name();
        if let Err(error) = product.retry(&mut self.decoding) {
            self.failed_or_full(error, Retry::Steps { object, arena: None, from: 0 });
            if let Some(no_room) = &mut self.no_room {
                no_room.finish.insert(object);
            }
            return;
        }
        // The engine asked for the end before it knew that segments are missing. It is told of them, and requests them
        // again.
        if let Some(product) = self.products.get(&object).filter(|product| product.lacks()) {
            let gaps = product.incoming.held().iter_gaps().collect();
            product.answer.send(Reply::Lost(gaps));
        } else if let Some(product) = self.products.remove(&object) {
            product.finish();
        }
    }

    /// Returns `true` if the thread waits for room after this error.
    pub(super) fn waits_after(&self, error: &NetError) -> bool {
        let full = matches!(error, NetError::Store(StoreError::DiskFull { .. }));
        full && !self.wait_for_room.is_zero()
    }

    /// Waits for room if the disk is full, and gives up otherwise.
    pub(super) fn failed_or_full(&mut self, error: NetError, retry: Retry) {
        if !self.waits_after(&error) {
            return self.give_up(error, retry);
        }
        if let Some(no_room) = &mut self.no_room {
            return no_room.add(retry);
        }
        let answer = retry.answer(&self.products).unwrap_or(&self.answer).clone();
        self.no_room = Some(NoRoom::new(self.clock.now(), answer.clone(), retry));
        answer.send(Reply::NoRoom(error));
    }

    /// Gives up work that cannot be done, and does the work behind it.
    pub(super) fn give_up(&mut self, error: NetError, retry: Retry) {
        match retry {
            Retry::Open { answer, .. } => answer.send(Reply::Failed { error, vouched: false }),
            Retry::Steps { object, arena, from } => {
                self.fail(object, error);
                if let Some(arena) = arena {
                    self.go_on(arena, from);
                }
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the driver knows what time it is")]
    fn tidy(&mut self) {
        let now = self.clock.now();
        let Some((dir, quota, last)) = &mut self.tidied else { return };
        let passed = Duration::from_nanos(now.since(core::mem::replace(last, now)).as_nanos());
        // A product that cannot be removed is litter, which the list of partials shows.
        for partial in partials::tidy(dir, quota, SystemTime::now(), passed).unwrap_or_default() {
            let why = if partial.verified || partial.plain { Removed::TooOld } else { Removed::Useless };
            self.answer.send(Reply::Removed { partial: Box::new(partial), why });
        }
    }

    /// Removes files that a file system releases only after the product was complete.
    #[expect(clippy::disallowed_methods, reason = "the driver owns its threads")]
    fn sweep(&self) {
        for dir in self.delivered.keys() {
            for _ in 0..SWEEPS {
                if partials::sweep(dir) {
                    break;
                }
                std::thread::sleep(BETWEEN_SWEEPS);
            }
        }
    }

    fn fail(&mut self, object: ObjectId, error: NetError) {
        let Some(product) = self.products.get(&object) else { return };
        let bogus =
            matches!(error, NetError::Store(StoreError::BadManifest(_) | StoreError::WrongSize { .. }));
        let (vouched, answer) = (!bogus && product.incoming.has_head(), product.answer.clone());
        if is_final(&error) {
            self.remove(object);
        } else {
            self.close(object);
        }
        answer.send(Reply::Failed { error, vouched });
    }

    /// Closes `object`. Keeps its content for a later run, if anything vouches for it.
    fn close(&mut self, object: ObjectId) {
        if let Some(product) = self.take(object) {
            // The journal of the last checkpoint stays valid if this one cannot be written.
            let _ = product.incoming.abandon();
        }
        self.wait_no_more(object);
    }

    /// Removes the content of `object`, which can never be completed.
    fn remove(&mut self, object: ObjectId) {
        if let Some(product) = self.take(object) {
            // A file that cannot be removed is only litter.
            let _ = product.incoming.discard();
        }
        self.wait_no_more(object);
    }

    fn take(&mut self, object: ObjectId) -> Option<Product> {
        self.discarded.remove(&object);
        self.decoding.orphan(object);
        let mut product = self.products.remove(&object)?;
        product.join_checkpoint();
        Some(product)
    }
}

/// Returns `true` if an object that fails with this error can never be completed here.
pub(crate) fn is_final(error: &NetError) -> bool {
    use StoreError as E;
    matches!(
        error,
        NetError::Store(
            E::BadCompression { .. } | E::NamesMeet { .. } | E::ImpossibleName { .. } | E::Withheld { .. }
        )
    )
}

fn slice(buffer: &[u8], at: u32, len: u16) -> &[u8] {
    &buffer[at as usize..at as usize + usize::from(len)]
}
