//! Rebuilding of blocks from their parity, on a thread of its own, so that the store thread can store other content
//! meanwhile.
//!
//! A job has a copy of everything that it needs. The store thread stores its result like received segments, and passes
//! over segments that have arrived meanwhile. If a part of the block turns out to be wrong while the job runs, nothing
//! of the result is stored.

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

/// Most blocks that the thread has at a time, and most bytes of them. The store thread itself rebuilds a block beyond
/// that.
const MOST_JOBS: usize = 4;
const MOST_BYTES: usize = 64 << 20;

/// Work, in symbols times octets of the block, that takes less time than waking a thread is worth: a millisecond.
const LITTLE: usize = 4 << 20;

/// Use of a job's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResultUse {
    /// The result is stored.
    Wanted,
    /// A part of its block was found damaged, so nothing of the result is stored, and the engine is told.
    Spoiled,
    /// Its product is closed, so nobody waits for the result.
    Orphaned,
}

/// A job at the coding thread.
struct DecodingJob {
    object: ObjectId,
    block: u32,
    bytes: usize,
    fate: ResultUse,
}

/// Blocks that are being rebuilt.
pub(super) struct Decoding {
    pub(super) thread: CodingThread<DecodeJob>,
    /// Most work for which a block is rebuilt by the store thread itself.
    little: usize,
    /// Jobs at the thread, in the order in which they come back.
    under_way: VecDeque<DecodingJob>,
    /// Blocks whose symbols are all on disk, which wait for a place.
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

    /// Returns `true` if there is a place for another block of so many bytes. A single block may have any size: without
    /// the thread it would be rebuilt, too.
    fn has_place(&self, bytes: usize) -> bool {
        let all = self.under_way.iter().map(|one| one.bytes).sum::<usize>() + bytes;
        self.under_way.is_empty() || (self.under_way.len() < MOST_JOBS && all <= MOST_BYTES)
    }

    /// Hands `job` to the thread.
    ///
    /// # Errors
    /// The job itself, if it is little work, or the thread has enough, or has ended.
    fn begin(&mut self, object: ObjectId, job: DecodeJob) -> Result<(), DecodeJob> {
        let (block, bytes) = (job.block(), job.size());
        if job.work() <= self.little || !self.has_place(bytes) {
            return Err(job);
        }
        self.thread.begin(job)?;
        self.under_way.push_back(DecodingJob { object, block, bytes, fate: ResultUse::Wanted });
        Ok(())
    }

    /// Marks the jobs for blocks of `object` with any of `segments`: their results may come from forged segments.
    pub(super) fn spoil(&mut self, object: ObjectId, geometry: &Geometry, segments: Run) {
        let blocks = geometry.block_of(segments.first())..=geometry.block_of(segments.last());
        let spoiled = |one: &&mut DecodingJob| {
            one.fate == ResultUse::Wanted && one.object == object && blocks.contains(&one.block)
        };
        self.under_way.iter_mut().filter(spoiled).for_each(|one| one.fate = ResultUse::Spoiled);
    }

    /// Marks the jobs of `object`, which is closed.
    pub(super) fn orphan(&mut self, object: ObjectId) {
        let of_it = self.under_way.iter_mut().filter(|one| one.object == object);
        of_it.for_each(|one| one.fate = ResultUse::Orphaned);
        self.waiting.retain(|&(waiting, _)| waiting != object);
    }

    /// Returns `true` if the thread has any block of `object`.
    fn has(&self, object: ObjectId) -> bool {
        self.under_way.iter().any(|one| one.object == object)
    }
}

impl Worker {
    /// Rebuilds `block` of `object`, or has it rebuilt.
    pub(super) fn decode(&mut self, object: ObjectId, block: u32) -> Result<(), NetError> {
        let Some(product) = self.products.get_mut(&object) else { return Ok(()) };
        let Product { incoming, parity: Some(parity), .. } = product else { return Ok(()) };
        // There may be many such blocks at once, and content that arrives meanwhile is not requested again.
        if parity.is_on_disk() && !self.decoding.has_place(parity.job_bytes(block)) {
            self.decoding.waiting.push_back((object, block));
            return Ok(());
        }
        let job = match parity.gather(incoming, block) {
            Ok(Some(job)) => job,
            gathered => {
                // Segments that cannot be read may have to be sent again.
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

    /// Handles a job that has come back, or the end of the thread.
    pub(super) fn decoded(&mut self, job: Option<DecodeJob>) {
        let Some(job) = job else { return self.decode_anew() };
        let Some(DecodingJob { object, block, fate, .. }) = self.decoding.under_way.pop_front() else {
            return;
        };
        if fate == ResultUse::Wanted && self.no_room.is_none() {
            if let Err(error) = self.store_rebuilt(object, job) {
                self.failed_or_full(error, Retry::Steps { object, arena: None, from: 0 });
            }
        } else if let Some(Product { incoming, parity: Some(parity), answer, .. }) =
            self.products.get_mut(&object)
            && fate != ResultUse::Orphaned
        {
            parity.give_up(job, incoming);
            answer.send(Reply::Decoded { block, rebuilt: false });
        }
        self.decode_waiting();
    }

    /// Has waiting blocks rebuilt, as far as there are places.
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

    /// Replaces the thread, which has ended over some block. Reports all of its blocks as not rebuilt.
    fn decode_anew(&mut self) {
        let lost = std::mem::replace(&mut self.decoding, Decoding::start());
        for one in lost.under_way.into_iter().filter(|one| one.fate != ResultUse::Orphaned) {
            if let Some(product) = self.products.get_mut(&one.object) {
                product.forget_parity(one.block);
                product.answer.send(Reply::Decoded { block: one.block, rebuilt: false });
            }
        }
        self.decoding.waiting = lost.waiting;
        self.decode_waiting();
    }

    /// Waits for the jobs of `object`, so that their results are stored before it is closed.
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
            // This reply goes before others that may take back some segments.
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
