//! Schedule of an object, the lowest first: source symbols of a block before its parity, blocks in order.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};
use farcast_delivery::Geometry;

/// Next run to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Next {
    pub(super) block: u32,
    /// Encoding symbols: all of them source symbols, or all of them parity.
    pub(super) symbols: Run,
    /// `true` if a receiver has asked for them.
    pub(super) repair: bool,
    /// `true` if exactly these symbols were requested.
    pub(super) explicit: bool,
}

/// Symbols of an object that are to be sent, and that have been.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    geometry: Geometry,
    /// Parity symbols of a block.
    parity: u32,
    /// Number of parity symbols that leave with the next completed block; and the last completed block, with its
    /// number.
    next_ahead: u32,
    ahead: (u32, u32),
    /// Segments to be sent.
    source: Bitmap,
    /// Parity symbols to be sent, counted through the object.
    repairs: Bitmap,
    /// Lowest segment and lowest parity symbol that may be due.
    low: (u32, u32),
    /// First segment that has never been sent.
    frontier: u32,
    /// Number of parity symbols of each block that have been sent or are scheduled, and number of those that have left.
    used: Vec<u16>,
    left: Vec<u16>,
    /// Blocks of which exactly the requested symbols are to be sent.
    explicit: BTreeSet<u32>,
}

impl Schedule {
    pub(super) fn new(geometry: Geometry, parity: u16, ahead: u16) -> Self {
        let blocks = geometry.blocks();
        Self {
            geometry,
            parity: parity.into(),
            next_ahead: ahead.into(),
            ahead: (0, 0),
            source: Bitmap::full(geometry.segments()),
            repairs: Bitmap::new(blocks * u32::from(parity)),
            low: (0, 0),
            frontier: 0,
            used: vec![0; blocks as usize],
            left: vec![0; blocks as usize],
            explicit: BTreeSet::new(),
        }
    }

    /// Clears the schedule, so that nothing more is sent.
    pub(super) fn clear(&mut self) {
        self.source = Bitmap::new(self.source.len());
        self.repairs = Bitmap::new(self.repairs.len());
        (self.next_ahead, self.ahead) = (0, (0, 0));
    }

    /// Returns the number of segments and symbols that are to be sent.
    pub(super) fn len(&self) -> u32 {
        self.source.count() + self.repairs.count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the next run, in full length.
    pub(super) fn next(&mut self) -> Option<Next> {
        let source = self.source.next_set(self.low.0);
        let repair = self.repairs.next_set(self.low.1);
        self.low = (source.unwrap_or(u32::MAX), repair.unwrap_or(u32::MAX));
        let of_source = source.map(|segment| self.geometry.block_of(segment));
        let of_repair = repair.map(|symbol| symbol / self.parity);
        match (of_source, of_repair) {
            (Some(block), other) if other.is_none_or(|other| block <= other) => self.source_run(block),
            (_, Some(block)) => self.parity_run(block),
            _ => None,
        }
    }

    fn source_run(&self, block: u32) -> Option<Next> {
        let (first, run) = (self.geometry.first_of(block), self.source.next_run(self.low.0)?);
        // Repeated and new segments do not share a run.
        let repair = run.first() < self.frontier;
        let end = first + self.geometry.block_len(block);
        let end = if repair { end.min(self.frontier) } else { end };
        let run = run.clip(run.first(), end)?;
        let symbols = Run::new(run.first() - first, run.count())?;
        Some(Next { block, symbols, repair, explicit: repair && self.explicit.contains(&block) })
    }

    fn parity_run(&self, block: u32) -> Option<Next> {
        let (first, run) = (block * self.parity, self.repairs.next_run(self.low.1)?);
        // Parity that leaves with the block and requested parity do not share a run.
        let unasked = if block == self.ahead.0 { first + self.ahead.1 } else { first };
        let end = if run.first() < unasked { unasked } else { first + self.parity };
        let run = run.clip(run.first(), end)?;
        let symbols = Run::new(self.geometry.block_len(block) + run.first() - first, run.count())?;
        let explicit = self.explicit.contains(&block);
        let repair = explicit || run.first() >= unasked;
        Some(Next { block, symbols, repair, explicit })
    }

    /// Returns `true` if the first `count` symbols of `next` complete a block for the first time.
    pub(super) fn ends_block(&self, next: &Next, count: u32) -> bool {
        !next.repair && next.symbols.first() + count == self.geometry.block_len(next.block)
    }

    /// Sets the number of parity symbols that leave with the next completed block.
    pub(super) fn protect(&mut self, ahead: u32) {
        self.next_ahead = ahead.min(self.parity);
    }

    /// Notes that the first `count` symbols of `next` have left. Returns the number of these that are parity which had
    /// never left before.
    pub(super) fn sent(&mut self, next: &Next, count: u32) -> u32 {
        let (block, len) = (next.block, self.geometry.block_len(next.block));
        let first = next.symbols.first();
        let mut fresh = 0;
        if first >= len {
            let at = block * self.parity + first - len;
            if let Some(run) = Run::new(at, count) {
                self.repairs.remove_run(run);
            }
            let (left, end) = (&mut self.left[block as usize], first - len + count);
            fresh = end.saturating_sub((*left).into()).min(count);
            *left = (*left).max(end as u16);
        } else if let Some(run) = Run::new(self.geometry.first_of(block) + first, count) {
            self.source.remove_run(run);
            if !next.repair {
                self.frontier = run.end();
            }
            if self.ends_block(next, count) {
                self.ahead = (block, self.next_ahead);
                self.use_parity(block, self.next_ahead);
            }
        }
        if self.explicit.contains(&block) && !self.has(block) {
            self.explicit.remove(&block);
        }
        fresh
    }

    /// Returns `true` if anything of `block` is to be sent.
    fn has(&self, block: u32) -> bool {
        let source = self.geometry.block_run(block).map_or(0, |run| self.source.count_in(run));
        let parity = self.parity_of(block).map_or(0, |run| self.repairs.count_in(run));
        source + parity > 0
    }

    /// Returns the parity of `block`, counted through the object.
    fn parity_of(&self, block: u32) -> Option<Run> {
        Run::new(block * self.parity, self.parity)
    }

    /// Schedules `count` parity symbols of `block` that have never been sent. The block has that many.
    fn use_parity(&mut self, block: u32, count: u32) {
        let used = &mut self.used[block as usize];
        let first = block * self.parity + u32::from(*used);
        if let Some(run) = Run::new(first, count) {
            *used += count as u16;
            self.repairs.insert_run(run);
            self.low.1 = self.low.1.min(first);
        }
    }

    /// Returns the number of parity symbols of `block` that have been sent or are scheduled.
    pub(super) fn used(&self, block: u32) -> u32 {
        self.used[block as usize].into()
    }

    /// Returns the number of parity symbols of `block` that have left.
    pub(super) fn left(&self, block: u32) -> u32 {
        self.left[block as usize].into()
    }

    /// Returns `true` if segments of `block` have left.
    pub(super) fn has_begun(&self, block: u32) -> bool {
        self.geometry.first_of(block) < self.frontier
    }

    /// Schedules the repetition of all segments that have left. Returns `true` if any of them was not scheduled yet.
    pub(super) fn again(&mut self) -> bool {
        let before = self.len();
        if let Some(run) = Run::new(0, self.frontier) {
            self.source.insert_run(run);
            self.low.0 = 0;
        }
        self.len() > before
    }

    /// Schedules parity of `block` up to its first `symbols`. Returns `true` if any of it was not scheduled yet.
    pub(super) fn send_ahead(&mut self, block: u32, symbols: u32) -> bool {
        let more = symbols.min(self.parity).saturating_sub(self.used(block));
        self.use_parity(block, more);
        more > 0
    }

    /// Schedules repairs of `block`. If the block has `symbols` parity symbols, with which the worst receiver has
    /// enough, parity up to that number is sent. Else exactly the requested symbols are sent: `source` and `parity`,
    /// counted through the object. Returns `true` if any of them was not scheduled yet.
    pub(super) fn repair(
        &mut self,
        block: u32,
        symbols: Option<u32>,
        source: &Bitmap,
        parity: &Bitmap,
    ) -> bool {
        let before = self.len();
        if let Some(symbols) = symbols.filter(|&symbols| symbols <= self.parity) {
            self.use_parity(block, symbols.saturating_sub(self.used(block)));
            return self.len() > before;
        }
        if let Some(run) = self.geometry.block_run(block) {
            // Segments that have not been sent yet will be sent anyway.
            let end = self.frontier.min(run.end());
            for asked in runs_in(source, run.first(), end) {
                self.source.insert_run(asked);
                self.low.0 = self.low.0.min(asked.first());
            }
        }
        if let Some(run) = self.parity_of(block) {
            for asked in runs_in(parity, run.first(), run.end()) {
                self.repairs.insert_run(asked);
                self.low.1 = self.low.1.min(asked.first());
                let used = &mut self.used[block as usize];
                *used = (*used).max((asked.end() - run.first()) as u16);
            }
        }
        let new = self.len() > before;
        if new {
            self.explicit.insert(block);
        }
        new
    }
}

/// Returns the runs of `set` in `first .. end`.
pub(super) fn runs_in(set: &Bitmap, first: u32, end: u32) -> impl Iterator<Item = Run> + '_ {
    let run = move |from: u32| set.next_run(from).and_then(|run| run.clip(first, end));
    core::iter::successors(run(first), move |before| run(before.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(first: u32, count: u32) -> Run {
        Run::new(first, count).expect("a run")
    }

    /// Returns a schedule of ten segments in blocks of 4, 3 and 3, with two parity symbols, of which one leaves
    /// unasked.
    fn schedule() -> Schedule {
        Schedule::new(Geometry::partitioned(1000, 100, 4).expect("valid"), 2, 1)
    }

    fn drain(schedule: &mut Schedule) -> Vec<(u32, Run, bool, bool)> {
        let mut sent = Vec::new();
        while let Some(next) = schedule.next() {
            schedule.sent(&next, next.symbols.count());
            sent.push((next.block, next.symbols, next.repair, next.explicit));
        }
        sent
    }

    #[test]
    fn each_block_is_followed_by_its_parity() {
        let mut schedule = schedule();
        let next = schedule.next().expect("the first block");
        schedule.sent(&next, 3);
        let parts = [(0, 3, 1), (0, 4, 1), (1, 0, 3), (1, 3, 1), (2, 0, 3), (2, 3, 1)];
        let expected: Vec<_> =
            parts.iter().map(|&(block, first, n)| (block, symbols(first, n), false, false)).collect();
        assert_eq!(drain(&mut schedule), expected);
    }

    #[test]
    fn repair_is_fresh_parity_while_there_is_enough_and_then_what_was_asked_for() {
        let mut schedule = schedule();
        drain(&mut schedule);
        let (mut source, mut parity) = (Bitmap::new(10), Bitmap::new(6));
        source.insert(5);
        source.insert(9);
        assert!(schedule.repair(1, Some(2), &source, &parity));
        assert!(!schedule.repair(1, Some(2), &source, &parity), "as many are on their way");
        assert_eq!(drain(&mut schedule), [(1, symbols(4, 1), true, false)]);
        // Block 1 has no fresh parity: segment 5, which is its second, and the requested parity symbol 1.
        parity.insert(3);
        assert!(schedule.repair(1, Some(4), &source, &parity));
        assert!(!schedule.repair(1, Some(4), &source, &parity), "nothing new");
        let expected = [(1, symbols(1, 1), true, true), (1, symbols(4, 1), true, true)];
        assert_eq!(drain(&mut schedule), expected);
        // Two symbols are lacking and one is fresh, so the requested segment is sent.
        assert!(schedule.repair(2, Some(3), &source, &parity));
        assert_eq!(drain(&mut schedule), [(2, symbols(2, 1), true, true)]);
    }

    #[test]
    fn what_is_sent_again_and_what_is_new_are_not_one_run() {
        let mut schedule = schedule();
        let next = schedule.next().expect("the first block");
        schedule.sent(&next, 2);
        assert!(schedule.repair(0, None, &Bitmap::full(10), &Bitmap::new(6)));
        let sent = drain(&mut schedule);
        assert_eq!(sent[..2], [(0, symbols(0, 2), true, true), (0, symbols(2, 2), false, false)]);
    }

    #[test]
    fn repair_goes_back_and_new_data_goes_on() {
        let mut schedule = schedule();
        for _ in 0..3 {
            let next = schedule.next().expect("more");
            schedule.sent(&next, next.symbols.count());
        }
        assert!(schedule.has_begun(1) && !schedule.has_begun(2));
        assert!(schedule.repair(0, None, &Bitmap::full(10), &Bitmap::new(6)));
        assert!(!schedule.repair(2, None, &Bitmap::full(10), &Bitmap::new(6)), "it will come");
        let sent = drain(&mut schedule);
        assert_eq!(sent[0], (0, symbols(0, 4), true, true));
        assert_eq!(sent[1], (1, symbols(3, 1), false, false));
        assert_eq!(sent[2], (2, symbols(0, 3), false, false));
    }
}
