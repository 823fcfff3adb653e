//! Schedule of DTUs to be sent again: the union of the receivers' NAKs, block by block (draft §11.2.1).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};

/// Requests for one block.
#[derive(Clone, Debug)]
pub(super) struct Repair {
    /// Union of the DTUs that receivers miss.
    pub(super) wanted: Bitmap,
    /// Maximum number of parity symbols that any one receiver needs in their place.
    pub(super) need: u32,
}

/// Parity symbols sent of a block.
#[derive(Clone, Copy, Debug)]
struct SentParity {
    sent: u32,
    /// Last pass that sent some, and their number.
    pass: u16,
    of_pass: u32,
}

/// DTUs scheduled for sending, and the pass in which each was last sent.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    repairs: BTreeMap<u32, Repair>,
    /// DTUs that the current pass has yet to send; absent if a pass also includes requests that come while it runs.
    plan: Option<BTreeMap<u32, Repair>>,
    /// Last pass of each DTU, for blocks of which DTUs were sent again. The number of a pass saturates at 16 bits.
    last_pass: BTreeMap<u32, Vec<u16>>,
    /// Parity symbols sent of each block.
    parity: BTreeMap<u32, SentParity>,
    /// Last pass of every other DTU: 1, or 0 if a restart has sent nothing yet.
    default_pass: u16,
}

impl Schedule {
    pub(super) fn new(restart: bool) -> Self {
        let default_pass = u16::from(!restart);
        Self {
            repairs: BTreeMap::new(),
            plan: None,
            last_pass: BTreeMap::new(),
            parity: BTreeMap::new(),
            default_pass,
        }
    }

    /// Drops all requests.
    pub(super) fn clear(&mut self) {
        self.repairs.clear();
        self.plan = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.repairs.is_empty()
    }

    /// Returns the requests from which the current pass takes its blocks.
    fn current(&self) -> &BTreeMap<u32, Repair> {
        self.plan.as_ref().unwrap_or(&self.repairs)
    }

    /// Returns the number of DTUs that the current pass has yet to send.
    pub(super) fn count(&self) -> u32 {
        self.current().values().map(|repair| repair.wanted.count()).sum()
    }

    /// Returns the number of parity symbols that would be enough for `block`.
    pub(super) fn need(&self, block: u32) -> u32 {
        // A receiver that claims to need none would have decoded the block, if its claim were true.
        self.current().get(&block).map_or(0, |repair| repair.need.clamp(1, repair.wanted.count().max(1)))
    }

    /// Returns the number of blocks of which the current pass has yet to send DTUs.
    pub(super) fn blocks(&self) -> u32 {
        self.current().len() as u32
    }

    /// Returns the number of parity symbols of `block` that had been sent when `pass` was over; 0 if any were sent
    /// later.
    pub(super) fn parity_sent(&self, block: u32, pass: u32) -> u32 {
        self.parity
            .get(&block)
            .filter(|parity| u32::from(parity.pass) <= pass)
            .map_or(0, |parity| parity.sent)
    }

    /// Records that parity `symbols` of `block` are sent in `pass`.
    pub(super) fn note_parity(&mut self, block: u32, symbols: Run, pass: u32) {
        let pass = u16::try_from(pass).unwrap_or(u16::MAX);
        let before = self.parity.get(&block).filter(|parity| parity.pass == pass);
        let of_pass = symbols.count() + before.map_or(0, |parity| parity.of_pass);
        self.parity.insert(block, SentParity { sent: symbols.end(), pass, of_pass });
    }

    /// Removes the DTUs `gone` of `block`, which are withdrawn.
    pub(super) fn forget(&mut self, block: u32, gone: &[Run]) {
        for repairs in [Some(&mut self.repairs), self.plan.as_mut()].into_iter().flatten() {
            let Some(repair) = repairs.get_mut(&block) else { continue };
            for &run in gone {
                repair.wanted.remove_run(run);
            }
            if repair.wanted.is_empty() {
                repairs.remove(&block);
            }
        }
    }

    /// Returns the number of DTUs in `missing` of `block` that were last sent after pass `since`, up to `pass`.
    pub(super) fn sent_of(&self, block: u32, since: u16, pass: u32, missing: &Bitmap) -> u32 {
        let sent = |last: u16| last > since && u32::from(last) <= pass;
        match self.last_pass.get(&block) {
            None if sent(self.default_pass) => missing.count(),
            None => 0,
            Some(passes) => {
                let dtus = missing.iter_runs().flat_map(Run::segments);
                dtus.filter(|&dtu| passes.get(dtu as usize).is_some_and(|&last| sent(last))).count() as u32
            }
        }
    }

    /// Returns the number of parity symbols of `block` that were sent up to `pass`. If the last symbols were sent
    /// later, all earlier ones count, although some of them may have been sent after `pass` as well.
    pub(super) fn symbols_until(&self, block: u32, pass: u32) -> u32 {
        self.parity.get(&block).map_or(0, |parity| {
            if u32::from(parity.pass) <= pass { parity.sent } else { parity.sent - parity.of_pass }
        })
    }

    /// Returns the first block at or after `from` of which the current pass sends DTUs.
    pub(super) fn next_block(&self, from: u32) -> Option<u32> {
        self.current().range(from..).next().map(|(&block, _)| block)
    }

    /// Makes all scheduled DTUs the plan of `pass`; later requests are for the next pass. The DTUs count as sent
    /// already, so that a NAK of an earlier pass does not request them again.
    pub(super) fn freeze(&mut self, pass: u32, len: impl Fn(u32) -> u32) {
        let plan = core::mem::take(&mut self.repairs);
        for (&block, repair) in &plan {
            self.note_sent(block, len(block), pass, &repair.wanted);
        }
        self.plan = Some(plan);
    }

    fn note_sent(&mut self, block: u32, len: u32, pass: u32, wanted: &Bitmap) {
        let pass = u16::try_from(pass).unwrap_or(u16::MAX);
        let default = self.default_pass;
        let history = self.last_pass.entry(block).or_insert_with(|| alloc::vec![default; len as usize]);
        for dtu in wanted.iter_runs().flat_map(Run::segments) {
            history[dtu as usize] = pass;
        }
    }

    /// Schedules the DTUs that a receiver misses of `block` after `pass`. Returns the number of newly scheduled DTUs.
    ///
    /// `parity_held` is `None` for a receiver that takes no symbols.
    ///
    /// DEVIATION: the draft leaves out DTUs that were sent again in the current pass. We leave out those sent in any
    /// pass after the one that the NAK answers: the receiver cannot know of them yet, and its next request will show if
    /// they are still missing.
    pub(super) fn nak(
        &mut self,
        block: u32,
        len: u32,
        pass: u32,
        missing: &Bitmap,
        parity_held: Option<u32>,
    ) -> u32 {
        if self.parity.get(&block).is_some_and(|parity| u32::from(parity.pass) > pass) {
            return 0;
        }
        let fresh = |history: Option<&Vec<u16>>, dtu: u32| {
            let last = history.map_or(self.default_pass, |passes| passes[dtu as usize]);
            u32::from(last) <= pass || last == u16::MAX
        };
        let history = self.last_pass.get(&block);
        let asked = || {
            let dtus = missing.iter_runs().flat_map(Run::segments);
            dtus.filter(|&dtu| dtu < len && fresh(history, dtu))
        };
        let count = asked().count() as u32;
        if count == 0 {
            return 0;
        }
        let repair =
            self.repairs.entry(block).or_insert_with(|| Repair { wanted: Bitmap::new(len), need: 0 });
        // A receiver that takes no symbols needs the DTUs themselves.
        let need = parity_held.map_or(u32::MAX, |held| count.saturating_sub(held));
        repair.need = repair.need.max(need);
        asked().filter(|&dtu| repair.wanted.insert(dtu)).count() as u32
    }

    /// Schedules `more` parity symbols of `block`, which has `len` DTUs, unless more are scheduled already.
    pub(super) fn add_parity(&mut self, block: u32, len: u32, more: u32) {
        let all = || Repair { wanted: Bitmap::full(len), need: 0 };
        let repair = self.repairs.entry(block).or_insert_with(all);
        // More receivers lack some of it than have told.
        (repair.wanted, repair.need) = (Bitmap::full(len), repair.need.max(more));
    }

    /// Schedules the DTUs `run` of `block`, which has `len` DTUs.
    pub(super) fn add_run(&mut self, block: u32, len: u32, run: Run) {
        let none = || Repair { wanted: Bitmap::new(len), need: 0 };
        let repair = self.repairs.entry(block).or_insert_with(none);
        repair.wanted.insert_run(run);
        repair.need = u32::MAX;
    }

    /// Takes `block` out of the schedule, to be sent in `pass`. If fewer than the union of DTUs are enough of the
    /// remaining `parity_symbols`, returns a run of these instead. The run is longer than the need by `margin`, and at
    /// least double the need if `twice` is set, as far as symbols are left. With a margin, parity also replaces an
    /// equal number of DTUs.
    pub(super) fn take(
        &mut self,
        block: u32,
        len: u32,
        pass: u32,
        parity_symbols: u32,
        twice: bool,
        margin: u32,
    ) -> Option<ScheduledWork> {
        let repair = self.plan.as_mut().unwrap_or(&mut self.repairs).remove(&block)?;
        if let Some(run) = self.parity_in_place_of(&repair, block, parity_symbols, twice, margin) {
            self.note_parity(block, run, pass);
            return Some(ScheduledWork::Parity(run));
        }
        self.note_sent(block, len, pass, &repair.wanted);
        Some(ScheduledWork::Source(repair.wanted.iter_runs().collect()))
    }

    /// Returns the parity symbols that [`take`](Self::take) would return for `block` now, if any. The block is one that
    /// the current pass sends, or else the next.
    pub(super) fn likely_parity(
        &self,
        block: u32,
        parity_symbols: u32,
        twice: bool,
        margin: u32,
    ) -> Option<Run> {
        let repair = self.current().get(&block).or_else(|| self.repairs.get(&block))?;
        self.parity_in_place_of(repair, block, parity_symbols, twice, margin)
    }

    /// Returns the first requested block that no current or earlier pass includes.
    pub(super) fn first_of_next_pass(&self) -> Option<u32> {
        self.repairs.first_key_value().map(|(&block, _)| block)
    }

    fn parity_in_place_of(
        &self,
        repair: &Repair,
        block: u32,
        parity_symbols: u32,
        twice: bool,
        margin: u32,
    ) -> Option<Run> {
        let sent = self.parity.get(&block).map_or(0, |parity| parity.sent);
        // A receiver that claims to need none would have decoded the block, if its claim were true.
        let need = repair.need.max(1);
        let left = parity_symbols.saturating_sub(sent);
        let fewer = need < repair.wanted.count().saturating_add(u32::from(margin > 0));
        if !fewer || need > left {
            return None;
        }
        let count = (need + margin).max(if twice { need * 2 } else { 0 });
        Run::new(sent, left.min(count))
    }
}

/// Content of one block in one pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ScheduledWork {
    /// DTUs of the block.
    Source(Vec<Run>),
    /// Parity symbols of the block.
    Parity(Run),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(len: u32, members: &[u32]) -> Bitmap {
        let mut map = Bitmap::new(len);
        for &member in members {
            map.insert(member);
        }
        map
    }

    #[test]
    fn naks_are_united() {
        let mut schedule = Schedule::new(false);
        assert_eq!(schedule.nak(2, 10, 1, &map(16, &[1, 2, 7]), Some(0)), 3);
        assert_eq!(schedule.nak(2, 10, 1, &map(16, &[2, 3]), Some(0)), 1);
        assert_eq!(schedule.count(), 4);
        let runs = [Run::new(1, 3).expect("run"), Run::one(7)].to_vec();
        assert_eq!(schedule.take(2, 10, 2, 0, false, 0), Some(ScheduledWork::Source(runs)));
        assert!(schedule.is_empty());
    }

    #[test]
    fn a_nak_older_than_the_repair_asks_for_nothing() {
        let mut schedule = Schedule::new(false);
        schedule.nak(0, 8, 1, &map(8, &[4]), Some(0));
        schedule.take(0, 8, 2, 0, false, 0);
        assert_eq!(schedule.nak(0, 8, 1, &map(8, &[4, 5]), Some(0)), 1, "5 was last sent in pass 1");
        assert_eq!(schedule.nak(0, 8, 2, &map(8, &[4]), Some(0)), 1, "4 was lost again in pass 2");
    }

    #[test]
    fn parity_replaces_the_union_when_it_is_fewer() {
        let mut schedule = Schedule::new(false);
        schedule.nak(0, 8, 1, &map(8, &[1, 2]), Some(0));
        schedule.nak(0, 8, 1, &map(8, &[5]), Some(0));
        assert_eq!(
            schedule.take(0, 8, 2, 4, false, 0),
            Some(ScheduledWork::Parity(Run::new(0, 2).expect("run")))
        );
        // One of the two parity symbols was lost; a stale NAK counts for nothing.
        assert_eq!(schedule.nak(0, 8, 1, &map(8, &[1, 2]), Some(0)), 0);
        schedule.nak(0, 8, 2, &map(8, &[1, 2]), Some(1));
        assert_eq!(
            schedule.take(0, 8, 3, 4, false, 0),
            Some(ScheduledWork::Parity(Run::new(2, 1).expect("run")))
        );
        // Only one of four symbols is left, and two are needed, so the DTUs themselves are sent.
        schedule.nak(0, 8, 3, &map(8, &[1, 2, 3]), Some(1));
        assert_eq!(
            schedule.take(0, 8, 4, 4, false, 0),
            Some(ScheduledWork::Source([Run::new(1, 3).expect("run")].to_vec()))
        );
    }

    #[test]
    fn a_pass_that_is_sent_twice_sends_other_symbols() {
        let mut schedule = Schedule::new(false);
        schedule.nak(0, 8, 1, &map(8, &[1, 2]), Some(0));
        schedule.nak(0, 8, 1, &map(8, &[5]), Some(0));
        assert_eq!(
            schedule.take(0, 8, 2, 9, true, 0),
            Some(ScheduledWork::Parity(Run::new(0, 4).expect("run")))
        );
        schedule.nak(0, 8, 2, &map(8, &[1, 2, 6]), Some(0));
        schedule.nak(0, 8, 2, &map(8, &[0, 1, 2]), Some(0));
        assert_eq!(
            schedule.take(0, 8, 3, 9, true, 0),
            Some(ScheduledWork::Parity(Run::new(4, 5).expect("run"))),
            "all that is left"
        );
    }

    #[test]
    fn a_margin_is_sent_with_what_is_needed() {
        let mut schedule = Schedule::new(false);
        schedule.note_parity(3, Run::new(0, 2).expect("run"), 1);
        schedule.nak(3, 8, 1, &map(8, &[1, 2, 5]), Some(1));
        // Two are needed, as one of the first two came. The third and the fourth are sent, and one more.
        let run = Run::new(2, 3).expect("run");
        assert_eq!(schedule.take(3, 8, 2, 9, false, 1), Some(ScheduledWork::Parity(run)));
        // For one receiver parity has no advantage without a margin.
        schedule.nak(4, 8, 1, &map(8, &[1, 2]), Some(0));
        assert!(matches!(schedule.take(4, 8, 2, 9, false, 0), Some(ScheduledWork::Source(_))));
        schedule.nak(5, 8, 1, &map(8, &[1, 2]), Some(0));
        assert_eq!(
            schedule.take(5, 8, 2, 9, false, 1),
            Some(ScheduledWork::Parity(Run::new(0, 3).expect("run")))
        );
    }

    #[test]
    fn who_takes_no_parity_gets_what_it_lacks() {
        let mut schedule = Schedule::new(false);
        schedule.nak(0, 8, 1, &map(8, &[1, 2, 3, 5, 6]), Some(0));
        schedule.nak(0, 8, 1, &map(8, &[0, 1, 2, 3]), Some(0));
        let run = Run::new(0, 8).expect("run");
        assert_eq!(schedule.take(0, 8, 2, 99, false, 3), Some(ScheduledWork::Parity(run)));
        assert_eq!((schedule.parity_sent(0, 1), schedule.parity_sent(0, 2)), (0, 8));
        schedule.nak(0, 8, 2, &map(8, &[0, 1, 2, 3]), None);
        schedule.nak(0, 8, 2, &map(8, &[1, 2, 3, 5, 6]), Some(4));
        assert_eq!(schedule.need(0), 6);
        let union = [Run::new(0, 4).expect("run"), Run::new(5, 2).expect("run")].to_vec();
        assert_eq!(schedule.take(0, 8, 3, 99, false, 2), Some(ScheduledWork::Source(union)));
    }

    #[test]
    fn a_false_claim_of_parity_gets_no_symbol_that_is_not_there() {
        let mut schedule = Schedule::new(false);
        for pass in 1..20 {
            schedule.nak(0, 8, pass, &map(8, &[4, 5]), Some(2));
            if let Some(ScheduledWork::Parity(run)) = schedule.take(0, 8, pass + 1, 3, false, 0) {
                assert!(run.end() <= 3, "{run:?}");
            }
        }
    }

    #[test]
    fn before_a_restart_nothing_counts_as_sent() {
        let mut schedule = Schedule::new(true);
        assert_eq!(schedule.nak(0, 8, 0, &map(8, &[3]), Some(0)), 1);
    }
}
