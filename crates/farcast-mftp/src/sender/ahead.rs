//! Parity sent ahead of requests, where a round of requests would take longer than the symbols.
//!
//! The number of symbols for a block follows from the reports on the blocks before it: the need of the receiver that
//! lost most. The losses of a block are one more draw of the same kind. So they seldom exceed the maximum of the last
//! few blocks, and a small margin covers the rest.

use alloc::collections::VecDeque;

use farcast_core::{Bitmap, Run};
use farcast_delivery::binomial::power;

use super::{Phase, Sender};
use crate::config::{Pace, PassWait};
use crate::message::DataKind;
use crate::wire;

/// Number of blocks with losses that are remembered, and the age in blocks up to which they count, because losses
/// change.
const REMEMBERED: usize = 8;
const RECENT: u32 = 16;
/// Number of DTUs for each further symbol beyond the first, before any report.
const ASSUMED: u32 = 50;
/// Minimum length of a block for which the loss of all DTUs counts as an outage.
const WHOLE: u32 = 3;
/// Number of receivers that may lack some of a block without further parity, where many take part.
const TOLERATED: f64 = 4.0;
/// Divisor of a round trip: the maximum time for symbols sent ahead in a pass of repairs.
const PART: u64 = 4;
/// Time that a further symbol must save on average, as a multiple of its sending time. It is more than 1 because a
/// symbol also takes capacity.
const WORTH: u64 = 4;

/// Losses of receivers in one block when it was first sent.
#[derive(Clone, Copy, Debug)]
struct Loss {
    block: u32,
    /// DTUs that the receiver with most losses lacked, and the length of the block.
    most: u32,
    len: u32,
    /// Maximum number of DTUs that a receiver lacked, leaving out receivers that lost the whole block in an outage;
    /// `None` if no other receiver reported.
    by_chance: Option<u32>,
}

/// Losses of receivers in the last blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    recent: VecDeque<Loss>,
    /// Newest block with a report.
    newest: u32,
}

impl Losses {
    /// Records that a receiver lacks `missing` DTUs of `block` after it was first sent with `len` DTUs.
    fn note(&mut self, block: u32, missing: u32, len: u32) {
        self.newest = self.newest.max(block);
        let is_outage = missing >= len && len >= WHOLE;
        let by_chance = (!is_outage).then_some(missing);
        if let Some(loss) = self.recent.iter_mut().find(|loss| loss.block == block) {
            loss.most = loss.most.max(missing);
            loss.by_chance = loss.by_chance.max(by_chance);
            return;
        }
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(Loss { block, most: missing, len, by_chance });
    }

    /// Returns the number of DTUs of `len` that a receiver may lack, judging by the recent losses.
    fn of(&self, len: u32) -> u32 {
        let recent = self.recent.iter().filter(|loss| loss.block + RECENT >= self.newest);
        let share =
            |loss: &Loss| (u64::from(len) * u64::from(loss.most)).div_ceil(u64::from(loss.len.max(1)));
        u32::try_from(recent.map(share).max().unwrap_or(0)).unwrap_or(len).min(len)
    }

    /// Returns the share of recent DTUs that the worst receiver of each block lost by chance. Losses in an outage do
    /// not count: their repair comes when the outage is over.
    fn mean_share(&self) -> f64 {
        let recent = self.recent.iter().filter(|loss| loss.block + RECENT >= self.newest);
        let (lost, sent) = recent
            .filter_map(|loss| Some((loss.by_chance?, loss.len)))
            .fold((0.0, 0.0), |(lost, sent), (most, len)| (lost + f64::from(most), sent + f64::from(len)));
        if sent > 0.0 { lost / sent } else { 0.0 }
    }
}

/// Returns the number of symbols, from 1 to `most`, to send beyond the `need` of a receiver that loses a part `loss` of
/// them. Symbols are added as long as the next one completes the receiver's block with a probability of at least
/// `worth`. For a need of more than about 1,000 this is approximate.
fn margin_for(need: u32, loss: f64, worth: f64, most: u32) -> u32 {
    // The number of symbols until `need` of them have arrived follows a negative binomial distribution.
    let need = need.max(1);
    let (mut margin, mut completes) = (0, power(1.0 - loss, need) * loss * f64::from(need));
    while margin < most {
        let grows = loss * (f64::from(need) + f64::from(margin) + 1.0) / (f64::from(margin) + 2.0);
        if completes < worth && grows < 1.0 {
            break;
        }
        completes *= grows;
        margin += 1;
    }
    margin.clamp(1, most.max(1))
}

impl Sender {
    /// Records a NAK for `block` after `pass`, with its `missing` DTUs.
    pub(super) fn note_loss(&mut self, pass: u32, block: u32, missing: &Bitmap) {
        if pass == 1 && !self.progress.restart {
            self.losses.note(block, missing.count(), self.geometry.block_len(block));
        }
    }

    /// Returns the parity symbols that follow `block` in the first pass. A block gets some if the answers about it
    /// would come when there is nothing else left to send.
    pub(super) fn parity_behind(&self, block: u32) -> Option<Run> {
        let (most, span) = (self.symbols_ahead(), self.span_ahead()?);
        if most == 0 || !self.full_pass() {
            return None;
        }
        let len = self.geometry.block_len(block);
        if self.by_turns() {
            return Run::new(0, self.symbols_for_all(len, most));
        }
        let sent = block.saturating_mul(self.geometry.block_size()).saturating_add(len);
        let left = self.geometry.segments().saturating_sub(sent);
        if span * u64::from(left) >= self.members_trip() {
            return None;
        }
        let lost = self.losses.of(len);
        // No report can have come while the first block's answers are on their way.
        let unknown = span * u64::from(sent) < self.members_trip();
        let count = match lost {
            0 if unknown => 1 + len / ASSUMED,
            0 => 0,
            lost => lost + lost.isqrt() / 2 + 1,
        };
        // A round of requests takes less time.
        if span * u64::from(count) > self.members_trip() / 2 {
            return None;
        }
        Run::new(0, count.min(most))
    }

    /// Returns the parity symbols that follow when `again` of the `len` DTUs of `block` are sent once more, where
    /// receivers take turns. If all are sent again, earlier symbols do not count: receivers that missed the block
    /// missed them, too.
    pub(super) fn parity_behind_repair(&self, block: u32, len: u32, again: u32) -> Option<Run> {
        if !self.by_turns() {
            return None;
        }
        let sent = self.schedule.symbols_until(block, u32::MAX);
        let count = self.symbols_for_all(len, self.symbols_ahead());
        let more = if again < len { count.saturating_sub(sent) } else { count };
        Run::new(sent, more.min(self.progress.parity.saturating_sub(sent)))
    }

    /// Returns the parity symbols that are sent next, of two blocks, the soonest first, so that their owner can compute
    /// them in time. Those of the current block are certain. The number of the others may change, even to none, as
    /// requests come.
    pub fn parity_ahead(&self) -> [Option<(u32, Run)>; 2] {
        [self.parity_at_hand(), self.parity_after()]
    }

    /// Returns the parity symbols of the current block.
    fn parity_at_hand(&self) -> Option<(u32, Run)> {
        let progress = &self.progress;
        let at_once = progress.runs.front().filter(|_| progress.kind == DataKind::Parity);
        Some((progress.block?, progress.behind.or(at_once.copied())?))
    }

    /// Returns the parity symbols of the following block, as it would be taken now.
    fn parity_after(&self) -> Option<(u32, Run)> {
        let at_hand = self.progress.block.filter(|_| self.phase == Phase::Sending);
        let following = at_hand.and_then(|block| self.following(block));
        if let Some(block) = following.filter(|_| self.full_pass()) {
            return Some((block, self.parity_behind(block)?));
        }
        if self.is_listing() {
            return None;
        }
        let block = following.or_else(|| self.schedule.first_of_next_pass())?;
        // Only at the start of the next pass is it known if the pass is short enough to be sent twice.
        let twice = following.is_some() && self.sends_twice();
        let margin = self.margin_of(block, self.geometry.block_len(block));
        Some((block, self.schedule.likely_parity(block, self.progress.parity, twice, margin)?))
    }

    /// Returns the number of parity symbols beyond the need of a repaired `block` of `len` DTUs. Where receivers take
    /// turns, some have not reported their need. The number of receivers and their losses give the greatest need that
    /// one of them probably has.
    pub(super) fn margin_of(&self, block: u32, len: u32) -> u32 {
        let need = self.schedule.need(block);
        let margin = self.margin(need);
        if !self.by_turns() {
            return margin;
        }
        let sent = self.schedule.symbols_until(block, u32::MAX);
        self.symbols_for_all(len, self.symbols_ahead()).saturating_sub(sent + need).max(margin)
    }

    /// Schedules what many receivers probably lack after the first pass: the blocks that receivers missed before they
    /// came, and further parity of those that left before the number of receivers and their losses were known.
    pub(super) fn top_up(&mut self) {
        let most = self.symbols_ahead();
        if !self.by_turns() || !self.full_pass() || most == 0 {
            return;
        }
        let missed = self.take_missed();
        for block in 0..self.geometry.blocks() {
            let len = self.geometry.block_len(block);
            let sent = self.schedule.symbols_until(block, u32::MAX);
            if self.send_missed(block, len, missed, sent) {
                continue;
            }
            let more = self.symbols_for_all(len, most).saturating_sub(sent);
            if more > 0 && self.lacking_behind(len, sent) > TOLERATED && !self.is_torn(block) {
                self.schedule.add_parity(block, len, more);
                self.note_topped_up(block);
            }
        }
    }

    /// Schedules the first `missed` segments of the product, as far as they lie in `block`, which has `len` DTUs. Returns
    /// `false` if the `sent` parity symbols can bring them back.
    fn send_missed(&mut self, block: u32, len: u32, missed: u32, sent: u32) -> bool {
        let first = block.saturating_mul(self.geometry.block_size());
        let Some(run) = Run::new(0, missed.saturating_sub(first).min(len)).filter(|run| run.count() > sent)
        else {
            return false;
        };
        for kept in self.still_sent(block, len) {
            if let Some(kept) = kept.clip(0, run.end()) {
                self.schedule.add_run(block, len, kept);
            }
        }
        true
    }

    /// Returns the number of parity symbols beyond the `need` of a repaired block, so that lost symbols seldom cost a
    /// further round. The margins of all blocks together take at most a quarter of a round trip.
    pub(super) fn margin(&self, need: u32) -> u32 {
        let most = self.symbols_ahead();
        let Some(span) = self.span_ahead().filter(|_| most > 0) else { return 0 };
        if self.by_turns() {
            // Expected losses among the symbols themselves, rounded down, plus a little.
            let lost = self.losses.of(need).saturating_sub(1);
            return 1 + lost + lost.isqrt();
        }
        let worth = (span * WORTH).as_secs_f64() / self.members_trip().as_secs_f64();
        let margin = margin_for(need, self.losses.mean_share(), worth, most);
        let blocks = self.schedule.blocks() + 1;
        let each = (span * u64::from(blocks)).as_nanos().max(1);
        let most = (self.members_trip() / PART).as_nanos() / each;
        margin.min(u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// Returns the maximum number of parity symbols of a block that may be sent ahead of requests.
    fn symbols_ahead(&self) -> u32 {
        let ahead =
            self.config.parity_ahead && self.has_members() && self.config.pass_wait == PassWait::Draft;
        if ahead { self.progress.parity } else { 0 }
    }

    /// Returns the time that a symbol takes to send, where it is known.
    fn span_ahead(&self) -> Option<farcast_core::Span> {
        let Pace::Rate { .. } = self.config.pace else { return None };
        Some(self.pacer.span(wire::data_len(self.geometry.segment_size().into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_leaves_few_blocks_incomplete() {
        // Probability that more than `margin` of `need + margin` symbols are lost.
        let fails = |need: u32, margin: u32, loss: f64| {
            1.0 - farcast_delivery::binomial::at_most(need + margin, loss, margin)
        };
        for (need, loss, worth) in [(1, 0.05, 0.005), (20, 0.07, 0.005), (100, 0.3, 0.001), (5, 0.01, 0.01)] {
            let margin = margin_for(need, loss, worth, 1000);
            let saves = |margin| fails(need, margin, loss) - fails(need, margin + 1, loss);
            assert!(saves(margin) < worth, "{margin} for {need}: one more would be worth it");
            assert!(margin == 1 || saves(margin - 1) >= worth, "{margin} for {need}: the last is worth it");
        }
        assert_eq!(margin_for(20, 0.0, 0.005, 1000), 1);
        assert_eq!(margin_for(200, 0.9, 0.005, 30), 30, "there are no more symbols");
    }

    #[test]
    fn the_worst_of_the_last_blocks_counts() {
        let mut losses = Losses::default();
        assert_eq!(losses.of(100), 0);
        losses.note(0, 3, 100);
        losses.note(0, 7, 100);
        losses.note(1, 5, 100);
        assert_eq!((losses.of(100), losses.of(10), losses.of(1000)), (7, 1, 70));
        losses.note(17, 1, 100);
        assert_eq!(losses.of(100), 5, "what was lost long ago does not");
        losses.note(40, 100, 100);
        assert_eq!(losses.of(10), 10);
    }

    #[test]
    fn an_outage_brings_no_margin() {
        let mut losses = Losses::default();
        let is_share = |losses: &Losses, share: f64| (losses.mean_share() - share).abs() < 1e-9;
        losses.note(0, 8, 8);
        losses.note(1, 3, 3);
        assert!(is_share(&losses, 0.0));
        losses.note(2, 4, 8);
        assert!(is_share(&losses, 0.5));
        losses.note(3, 2, 2);
        assert!(is_share(&losses, 0.6), "two are lost by chance, too");
        losses.note(3, 0, 2);
        losses.note(0, 2, 8);
        assert!(is_share(&losses, 8.0 / 18.0), "one in an outage hides nothing that another lost");
    }
}
