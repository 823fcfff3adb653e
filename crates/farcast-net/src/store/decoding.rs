//! Rebuilding blocks from their parity, on a thread of its own, so that what comes meanwhile is stored.
//!
//! Everything that a job needs is copied into it, and what it rebuilds is stored here, as whatever else comes: what has
//! come by itself meanwhile is passed over. Where anything of its block turned out to be wrong while it was under way,
//! nothing of it is stored.

use std::collections::VecDeque;

use farcast_core::Run;
use farcast_delivery::{Geometry, ObjectId};
use farcast_files::Happening;

use super::Reply;
use super::product::Product;
use super::room::Retry;
use super::worker::Worker;
use crate::error::NetError;
use crate::parity::{CodingThread, DecodeJob};

/// The most blocks that may be under way, and the most bytes of them; a block beyond that is rebuilt by the store
/// thread.
const MOST_JOBS: usize = 4;
const MOST_BYTES: usize = 64 << 20;

/// Symbols times octets of the block up to which rebuilding it takes less than waking a thread is worth, a millisecond.
const LITTLE: usize = 4 << 20;

/// What becomes of a job that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// What it rebuilds is stored.
    Wanted,
    /// Part of its block was found damaged: nothing of it is stored, and the engine is told so.
    Spoiled,
    /// Its product is closed: nobody waits for it.
    Orphaned,
}

struct UnderWay {
    object: ObjectId,
    block: u32,
    bytes: usize,
    fate: Fate,
}

/// The blocks that are being rebuilt.
pub(super) struct Decoding {
    pub(super) thread: CodingThread<DecodeJob>,
    /// The work up to which a block is rebuilt in place.
    little: usize,
    /// In the order in which they come back.
    under_way: VecDeque<UnderWay>,
    /// Blocks with everything on disk, which wait for a place.
    waiting: VecDeque<(ObjectId, u32)>,
}

impl Decoding {
    pub(super) fn start() -> Self {
        Self {
            thread: CodingThread::start(DecodeJob::run),
            little: LITTLE,
            under_way: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Whether there is a place for another block of so many bytes. One may be as large as it likes: without the thread
    /// it would be, too.
    fn has_place(&self, bytes: usize) -> bool {
        let all = self.under_way.iter().map(|one| one.bytes).sum::<usize>() + bytes;
        self.under_way.is_empty() || (self.under_way.len() < MOST_JOBS && all <= MOST_BYTES)
    }

    /// Hands `job` to the thread; it comes back at once where it is little, or enough is under way.
    fn begin(&mut self, object: ObjectId, job: DecodeJob) -> Result<(), DecodeJob> {
        let (block, bytes) = (job.block(), job.size());
        if job.work() <= self.little || !self.has_place(bytes) {
            return Err(job);
        }
        self.thread.begin(job)?;
        self.under_way.push_back(UnderWay { object, block, bytes, fate: Fate::Wanted });
        Ok(())
    }

    /// What is under way of the blocks of `object` that have any of `segments` may come of lies.
    pub(super) fn spoil(&mut self, object: ObjectId, geometry: &Geometry, segments: Run) {
        let blocks = geometry.block_of(segments.first())..=geometry.block_of(segments.last());
        let spoiled = |one: &&mut UnderWay| {
            one.fate == Fate::Wanted && one.object == object && blocks.contains(&one.block)
        };
        self.under_way.iter_mut().filter(spoiled).for_each(|one| one.fate = Fate::Spoiled);
    }

    /// `object` is closed.
    pub(super) fn orphan(&mut self, object: ObjectId) {
        let of_it = self.under_way.iter_mut().filter(|one| one.object == object);
        of_it.for_each(|one| one.fate = Fate::Orphaned);
        self.waiting.retain(|&(waiting, _)| waiting != object);
    }

    /// Whether any block of `object` is under way.
    fn has(&self, object: ObjectId) -> bool {
        self.under_way.iter().any(|one| one.object == object)
    }
}

impl Worker {
    /// Has `block` of `object` rebuilt.
    pub(super) fn decode(&mut self, object: ObjectId, block: u32) -> Result<(), NetError> {
        let Some(product) = self.products.get_mut(&object) else { return Ok(()) };
        let Product { incoming, parity: Some(parity), .. } = product else { return Ok(()) };
        // Of these there may be many at once, and what comes meanwhile is not asked for again.
        if parity.is_on_disk() && !self.decoding.has_place(parity.job_bytes(block)) {
            self.decoding.waiting.push_back((object, block));
            return Ok(());
        }
        let job = match parity.gather(incoming, block) {
            Ok(Some(job)) => job,
            gathered => {
                // What had to be read may have to be received again.
                let happenings = incoming.take_happenings();
                product.tell(happenings, &mut self.decoding);
                product.tell_unbuilt(block);
                return gathered.map(drop);
            }
        };
        let Err(mut job) = self.decoding.begin(object, job) else { return Ok(()) };
        job.run();
        self.store_rebuilt(object, job)
    }

    /// A job has come back, or the thread has ended.
    pub(super) fn decoded(&mut self, job: Option<DecodeJob>) {
        let Some(job) = job else { return self.decode_anew() };
        let Some(UnderWay { object, block, fate, .. }) = self.decoding.under_way.pop_front() else { return };
        if fate == Fate::Wanted && self.no_room.is_none() {
            if let Err(error) = self.store_rebuilt(object, job) {
                self.failed_or_full(error, Retry::Steps { object, arena: None, from: 0 });
            }
        } else if let Some(Product { incoming, parity: Some(parity), answer, .. }) =
            self.products.get_mut(&object)
            && fate != Fate::Orphaned
        {
            parity.give_up(job, incoming);
            answer.send(Reply::Decoded { block, rebuilt: false });
        }
        self.decode_waiting();
    }

    /// Has rebuilt what waits for a place, as far as there is one.
    fn decode_waiting(&mut self) {
        while let Some(&(object, block)) = self.decoding.waiting.front() {
            let parity = self.products.get(&object).and_then(|product| product.parity.as_ref());
            if parity.is_some_and(|parity| !self.decoding.has_place(parity.job_bytes(block))) {
                return;
            }
            self.decoding.waiting.pop_front();
            if let Err(error) = self.decode(object, block) {
                self.failed_or_full(error, Retry::Steps { object, arena: None, from: 0 });
            }
        }
    }

    /// The thread has ended over some block: says so of all that it had, and begins another.
    fn decode_anew(&mut self) {
        let lost = std::mem::replace(&mut self.decoding, Decoding::start());
        for one in lost.under_way.into_iter().filter(|one| one.fate != Fate::Orphaned) {
            if let Some(product) = self.products.get_mut(&one.object) {
                product.forget_parity(one.block);
                product.answer.send(Reply::Decoded { block: one.block, rebuilt: false });
            }
        }
        self.decoding.waiting = lost.waiting;
        self.decode_waiting();
    }

    /// Waits for what is under way of `object`, so that it is stored before it is closed.
    pub(super) fn settle_decoding(&mut self, object: ObjectId) {
        while self.products.contains_key(&object) && self.decoding.has(object) {
            let job = self.decoding.thread.done().recv().ok();
            self.decoded(job);
        }
    }

    fn store_rebuilt(&mut self, object: ObjectId, job: DecodeJob) -> Result<(), NetError> {
        let Some(product) = self.products.get_mut(&object) else { return Ok(()) };
        let Product { incoming, parity: Some(parity), answer, .. } = product else { return Ok(()) };
        let (block, mut happenings) = (job.block(), Vec::<Happening>::new());
        let stored = parity.store(job, incoming, &mut happenings);
        happenings.extend(incoming.take_happenings());
        if matches!(stored, Ok(true)) {
            // Before what may take back some of it.
            answer.send(Reply::Decoded { block, rebuilt: true });
        } else {
            product.tell_unbuilt(block);
        }
        product.tell(happenings, &mut self.decoding);
        stored.map(drop)
    }
}

#[cfg(test)]
mod tests;
