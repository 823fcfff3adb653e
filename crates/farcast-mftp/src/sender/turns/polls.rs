//! Requests that a part of the receivers answer, so that the answers fit the return channel.
//!
//! The part follows from the number of receivers that answered the last such request. It grows to the whole as fewer
//! lack something. Who did not answer is asked again, with other places.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use farcast_core::{Run, Span, Time};

use super::super::Sender;
use crate::turn::{PLACES, Turn};

/// Octets of a NAK without its bitmap, with its headers.
const NAK: f64 = 124.0;
/// Part of the return's rate that answers about one block take while the next one is sent.
const PART: f64 = 0.5;
/// Part of the receivers to whom a repair does not suffice.
const LEFT: f64 = 0.2;
/// Part of the receivers that lack some of a block and are not heard, because a request or a NAK is lost.
const UNHEARD: f64 = 0.05;
/// Number of NAKs that any return carries without a loss.
const FEW: f64 = 6.0;
/// Number of NAKs that are expected of the same part after none came.
const SILENT: f64 = 0.5;
/// Part of the receivers from which their answers stand for the others.
const TELLING: f64 = 0.2;
/// Sum of parts, each of them drawn anew, after which most receivers have been asked.
const ASKED: f64 = 2.0;
/// Factor by which the part that answers grows at most from one request to the next.
const WIDENS: f64 = 4.0;
/// Number of NAKs with which a receiver answers a request at most.
const MOST_NAKS: f64 = 64.0;
/// Multiple of the likely NAKs beyond which reports of losses do not tell how many come.
const FORETOLD: f64 = 4.0;
/// Number of requests of which the answers are counted.
const REMEMBERED: usize = 64;

/// Request that was sent.
#[derive(Clone, Copy, Debug)]
struct Poll {
    pass: u32,
    blocks: Run,
    at: Time,
    spread: Span,
    /// Part of the receivers that were to answer.
    share: f64,
    expected: f64,
    heard: f64,
    /// `true` if an answer needs something that can be sent.
    needed: bool,
}

/// State of the requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Polls {
    sent: VecDeque<Poll>,
    round: u16,
    /// Number of NAKs that a request about one block would bring at most, were all to answer it.
    single: Option<f64>,
    /// The same for a request about all blocks, since the last pass.
    all: Option<f64>,
    /// Part of the receivers that were to answer the last request.
    share: Option<f64>,
    /// Number of NAKs that requests about one block have brought, and of those that were likely by the reported losses.
    told: f64,
    foretold: f64,
    /// Number of receivers that lack some of each block and did not say so, from the last request about it alone.
    untold: BTreeMap<u32, f64>,
    /// Blocks that so few were asked about that their answers tell nothing.
    unknown: BTreeSet<u32>,
    /// Number of NAKs that are expected if all are asked about all blocks, besides these.
    left: f64,
    /// Sum of the parts that answered the last requests about all blocks, of which none needs anything that can be sent.
    unneeded: f64,
    /// `true` if probably all were asked about all blocks, and none needs anything that can be sent.
    quiet: bool,
    /// Number of DTUs that are sent again for receivers that have not proved themselves.
    unproved: u64,
}

impl Polls {
    /// Forgets all answers.
    pub(super) fn forget(&mut self) {
        *self = Self { unproved: self.unproved, ..Self::default() };
    }

    /// Returns `true` if the answers to all requests have come.
    pub(super) fn is_settled(&self) -> bool {
        self.sent.is_empty()
    }

    fn upper(heard: f64, share: f64) -> f64 {
        // A cautious value after silence would let the part grow too slowly.
        let more = if heard == 0.0 { SILENT } else { 2.0 + 2.0 * libm::sqrt(heard) };
        (heard + more) / share
    }
}

impl Sender {
    /// Returns the receivers that answer a request about `blocks` after `pass`; `None` if all of them do at once.
    pub(in crate::sender) fn poll_turn(&mut self, now: Time, pass: u32, blocks: Run) -> Option<Turn> {
        if !self.turns.on {
            return None;
        }
        self.settle_polls(now);
        let octets = NAK + f64::from(self.geometry.block_len(blocks.first()) / 8);
        let asked = self.naks_of_all(blocks);
        let level = self.turns.level(now);
        let most = self.turns.allowance.rate() * if blocks.count() == 1 { PART } else { 1.0 };
        // At least one receiver answers, however thin the return is.
        let room = level.clamp(most / 20.0, most).max(octets);
        let share = if asked <= FEW { 1.0 } else { (room / (asked * octets)).min(1.0) };
        let share = share.min(self.widest_share(blocks));
        self.turns.polls.share = Some(share);
        // A few seldom come, and count when they do.
        let expected = if asked <= FEW { 0.0 } else { asked * share };
        self.turns.allowance.take(expected * octets);
        let likely = if asked <= FEW { asked / FEW } else { expected };
        let seconds = likely * octets / self.turns.allowance.per_second();
        let spread = if seconds < 0.05 { Span::ZERO } else { Span::from_secs_f64(seconds.min(60.0)) };
        let polls = &mut self.turns.polls;
        polls.round = polls.round.wrapping_add(1);
        if polls.sent.len() == REMEMBERED {
            polls.sent.pop_front();
        }
        polls.sent.push_back(Poll {
            pass,
            blocks,
            at: now,
            spread,
            share,
            expected,
            heard: 0.0,
            needed: false,
        });
        // Requests have places of their own, apart from those of the rounds.
        let round = polls.round | 0x8000;
        let last = ((share * PLACES as f64) as u64).clamp(1, PLACES) - 1;
        let spread_ms = u16::try_from(spread.as_millis()).unwrap_or(u16::MAX);
        Some(Turn { round, spread_ms, first: 0, last: last as u32 })
    }

    /// Returns the number of NAKs that a request about `blocks` would bring at most, were all receivers to answer it.
    fn naks_of_all(&self, blocks: Run) -> f64 {
        let polls = &self.turns.polls;
        let (size, many) = (self.group_size(), f64::from(blocks.count()));
        let naks = if blocks.count() == 1 {
            polls.single.unwrap_or(size)
        } else if let Some(all) = polls.all {
            all
        } else {
            let before = self.turns.losses.missed() * many * size
                + polls.left
                + polls.untold.values().sum::<f64>()
                + polls.unknown.iter().map(|&block| self.lacking_of(block)).sum::<f64>();
            let least = match self.progress.pass {
                // In a restart nothing has been sent yet, and each receiver may lack some of each block.
                0 => size * many.min(MOST_NAKS),
                _ if polls.left > 0.0 => 0.0,
                _ if self.foresees() => self.foreseen_naks().min(polls.single.unwrap_or(size)),
                _ => polls.single.unwrap_or(size),
            };
            (before * 2.0).max(least)
        };
        naks.min(size * many).max(1.0)
    }

    /// Returns the number of receivers that probably lack some of `block`.
    fn lacking_of(&self, block: u32) -> f64 {
        let sent = self.schedule.symbols_until(block, u32::MAX);
        self.lacking_behind(self.geometry.block_len(block), sent)
    }

    /// Returns `true` if the losses that receivers reported tell how many NAKs a request brings. They do not if far more
    /// came before than they let expect.
    fn foresees(&self) -> bool {
        let polls = &self.turns.polls;
        self.turns.losses.is_telling() && polls.told <= polls.foretold * FORETOLD + FEW
    }

    /// Returns the number of NAKs that all receivers would answer a request about all blocks with, twice as many as are
    /// likely by the losses that they reported.
    fn foreseen_naks(&self) -> f64 {
        let blocks = self.geometry.blocks();
        let far = self.turns.losses.far() * self.group_size() * f64::from(blocks).min(MOST_NAKS);
        (0..blocks).map(|block| self.lacking_of(block)).sum::<f64>() * 2.0 + far
    }

    /// Returns the part of the receivers that may answer a request about `blocks`, from the part that answered the last
    /// one: that a small part lacked nothing tells little about the whole.
    fn widest_share(&self, blocks: Run) -> f64 {
        let polls = &self.turns.polls;
        if blocks.count() > 1 && polls.all.is_none() && self.foresees() {
            return 1.0;
        }
        polls.share.map_or(1.0, |before| before * WIDENS)
    }

    /// Counts a NAK for `block` after `pass`, of a receiver that `needs` something that can be sent.
    pub(in crate::sender) fn count_answer(&mut self, pass: u32, block: u32, needs: bool) {
        if !self.turns.on {
            return;
        }
        let polls = &mut self.turns.polls;
        polls.quiet &= !needs;
        polls.unneeded *= f64::from(u8::from(!needs));
        let of = |poll: &&mut Poll| poll.pass == pass && poll.blocks.contains(block);
        if let Some(poll) = polls.sent.iter_mut().rev().find(of) {
            poll.heard += 1.0;
            poll.needed |= needs;
            if poll.heard > poll.expected {
                self.turns.allowance.take(NAK);
            }
        }
    }

    /// Returns the time until the answers to the last request have come.
    pub(in crate::sender) fn poll_wait(&self) -> Span {
        let spread = self.turns.polls.sent.back().map_or(Span::ZERO, |poll| poll.spread);
        self.turns.settles_in(spread)
    }

    /// Returns the number of DTUs that are sent again for receivers that have not proved themselves.
    pub(in crate::sender) fn unproved_repairs(&self) -> u64 {
        self.turns.polls.unproved
    }

    /// Records that `dtus` are sent again for a receiver that has not proved itself.
    pub(in crate::sender) fn note_unproved_repairs(&mut self, dtus: u32) {
        self.turns.polls.unproved += u64::from(dtus);
    }

    /// Returns `true` if all receivers were asked about all blocks, and none needs anything that can be sent.
    pub(in crate::sender) fn is_quiet(&self) -> bool {
        self.turns.polls.quiet
    }

    /// Records that further parity of `block` is sent for those that have not told what they lack.
    pub(in crate::sender) fn note_topped_up(&mut self, block: u32) {
        self.turns.polls.untold.remove(&block);
        self.turns.polls.unknown.remove(&block);
    }

    /// Forgets what was answered about all blocks, because a pass begins.
    pub(in crate::sender) fn forget_poll_of_all(&mut self) {
        let polls = &mut self.turns.polls;
        if let Some(all) = polls.all {
            polls.left = all * LEFT;
            polls.untold.clear();
            polls.unknown.clear();
        }
        (polls.all, polls.quiet, polls.unneeded) = (None, false, 0.0);
    }

    pub(in crate::sender) fn settle_polls(&mut self, now: Time) {
        while let Some(&poll) = self.turns.polls.sent.front()
            && now >= poll.at + self.turns.settles_in(poll.spread)
        {
            self.turns.polls.sent.pop_front();
            self.turns.allowance.give_back(now, (poll.expected - poll.heard).max(0.0) * NAK);
            if poll.blocks.count() == 1 {
                self.settle_poll_of_one(&poll);
            }
            let upper = Polls::upper(poll.heard, poll.share);
            let polls = &mut self.turns.polls;
            if poll.blocks.count() == self.geometry.blocks() && poll.pass == self.progress.pass {
                polls.all = Some(upper);
                polls.unneeded = if poll.needed { 0.0 } else { polls.unneeded + poll.share };
                polls.quiet = !poll.needed && (poll.share >= 1.0 || polls.unneeded >= ASKED);
            }
        }
    }

    /// Records the answers to a request about one block.
    fn settle_poll_of_one(&mut self, poll: &Poll) {
        let block = poll.blocks.first();
        let far = self.turns.losses.far() * self.group_size();
        let foretold = (self.lacking_of(block) + far) * poll.share;
        let polls = &mut self.turns.polls;
        (polls.told, polls.foretold) = (polls.told + poll.heard, polls.foretold + foretold);
        let upper = Polls::upper(poll.heard, poll.share);
        polls.single = Some(upper.max(polls.single.map_or(0.0, |before| before / 8.0)));
        if poll.share < TELLING {
            polls.unknown.insert(block);
        } else {
            polls.untold.insert(block, poll.heard * (1.0 / poll.share - 1.0 + UNHEARD));
            polls.unknown.remove(&block);
        }
    }
}
