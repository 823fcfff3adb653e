//! Crowds: groups in which so many receivers lack something of a block that their requests would fill the return
//! channel.
//!
//! Receivers do not register, so their number and their losses follow from the first requests for a block. A request
//! returns its age, so the sender knows how long its receiver has backed off. The distribution of this wait is known
//! (RFC 5401 §3.2.2). The sooner the first requests come, the more receivers wait behind them. Requests that come
//! within one GRTT of the first one could not be suppressed, so the losses in them are those of all receivers that have
//! lost anything. From then on each block takes with it the parity that nearly all receivers need.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::{Span, Time};
use farcast_delivery::binomial::enough_symbols;

use crate::message::NodeId;
use crate::quantise::GroupSize;
use crate::requests::BlockId;
use crate::settings::{FIRST, UNTOLD};

/// Number of ended blocks to remember.
const REMEMBERED: usize = 64;
/// Fewest and most receivers whose requests are a sample of all.
const SAMPLE: (usize, usize) = (FIRST as usize, 64);
/// Fewest receivers that lack something of a block in a crowd.
const CROWD: f64 = 64.0;
/// Lower bound of the share of waits that have ended, because the estimate divides by it.
const LEAST: f64 = 1e-7;
/// Number of requests for one block which show that losses have grown, and the number of blocks without any request
/// which shows that they have shrunk.
const LOUD: u32 = 8;
const QUIET: u32 = 16;
/// Number of longest waits without a request after which losses count as shrunk.
const QUIET_SPREADS: u64 = 4;
/// Longest time for which the first requests are taken to stand in the return's queue.
const LONGEST_QUEUE: Span = Span::from_secs(60);
/// Factors of the assumed loss: after many requests for one block, and after blocks without any.
const RISE: f64 = 1.25;
const FALL: f64 = 0.9;
/// Multiple of the usual losses beyond which a receiver is left to repairs.
const FAR: f64 = 8.0;
/// Least loss to assume once many ask, and greatest loss to prepare for.
const LEAST_LOSS: f64 = 1e-4;
const MOST_LOSS: f64 = 0.5;

/// Block whose last segment has left, with the terms of the waits that then began.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockEnd {
    pub(super) of: BlockId,
    pub(super) at: Time,
    /// Longest wait of a receiver before it asks.
    pub(super) spread: Span,
    pub(super) group: GroupSize,
}

impl BlockEnd {
    /// Returns the part of all waits that end within `wait`.
    fn waited(&self, wait: Span) -> f64 {
        let lambda = libm::log(self.group.receivers() as f64) + 1.0;
        let part = (wait.as_secs_f64() / self.spread.as_secs_f64()).min(1.0);
        libm::expm1(lambda * part) / libm::expm1(lambda)
    }
}

/// Request of one receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) node: NodeId,
    /// First block that it asks for.
    pub(super) first: BlockId,
    /// Number of blocks that it asks for, their segments, and the symbols that it lacks of them.
    pub(super) blocks: u32,
    pub(super) segments: u32,
    pub(super) symbols: u32,
}

impl Need {
    /// Returns the part of the segments that the receiver lacks.
    fn part(&self) -> f64 {
        f64::from(self.symbols) / f64::from(self.segments)
    }
}

/// Receivers that have asked for a block before they could hear each other.
#[derive(Clone, Debug)]
struct Sample {
    end: BlockEnd,
    /// Arrival of the first request, and the GRTT before it.
    since: Time,
    grtt: Span,
    /// Requests, one of each receiver, with the fewest symbols of a block first.
    needs: Vec<Need>,
    /// Greatest part of waits that have ended.
    waited: f64,
    /// `true` once the requests were those of a crowd. Later requests are fewer, because receivers hear each other.
    is_crowd: bool,
}

impl Sample {
    fn new(end: BlockEnd, since: Time, grtt: Span) -> Self {
        Self { end, since, grtt, needs: Vec::new(), waited: LEAST, is_crowd: false }
    }

    fn add(&mut self, need: &Need, wait: Span) {
        let place = self.needs.partition_point(|other| other.part() < need.part());
        self.needs.insert(place, *need);
        self.waited = self.waited.max(self.end.waited(wait));
        self.is_crowd |= self.needs.len() >= SAMPLE.0 && self.lacking() >= CROWD;
    }

    /// Returns the estimated number of receivers that lack something of the block: the requests before the last,
    /// divided by the share of waits that had ended by then.
    fn lacking(&self) -> f64 {
        (self.needs.len() - 1) as f64 / self.waited
    }

    /// Returns what the sample says of all receivers, if they are a crowd.
    fn losses(&self) -> Option<Losses> {
        if !self.is_crowd {
            return None;
        }
        let most = self.end.group.receivers() as f64 * UNTOLD;
        let usual = self.needs[self.needs.len() / 2].part() * FAR;
        let (mut blocks, mut segments, mut symbols) = (0.0, 0.0, 0.0);
        for need in self.needs.iter().filter(|need| need.part() <= usual) {
            blocks += f64::from(need.blocks);
            segments += f64::from(need.segments);
            symbols += f64::from(need.symbols);
        }
        let mean = symbols / blocks;
        // Receivers that have lost nothing do not ask. So `mean` is that of a Poisson distribution without its zeros.
        let with_zeros = (0..32).fold(mean, |losses, _| mean * -libm::expm1(-losses));
        let receivers = (self.lacking() / -libm::expm1(-with_zeros)).min(most);
        let part = with_zeros * blocks / segments;
        Some(Losses { receivers, part: part.min(MOST_LOSS) })
    }
}

/// Number and losses of a crowd's receivers.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Losses {
    receivers: f64,
    /// Part of the datagrams that each loses.
    part: f64,
}

impl Losses {
    /// Returns the number of parity symbols with a block of `segments` for which no more than `left` receivers are
    /// expected to ask, at most `most`.
    fn symbols(&self, segments: u32, most: u32, left: f64) -> u32 {
        let mean = (self.part * f64::from(segments)) as u32;
        enough_symbols(self.receivers, segments, self.part, left, most).max(mean.min(most))
    }
}

/// Answer to a crowd's first requests.
#[derive(Clone, Debug)]
pub(super) struct Remedy {
    /// Blocks of which parity leaves at once.
    pub(super) blocks: Vec<BlockId>,
    /// GRTT before the requests filled the return's queue.
    pub(super) grtt: Span,
}

/// Knowledge of a crowd.
#[derive(Clone, Debug, Default)]
pub(super) struct Crowd {
    /// Last blocks that have ended, in order.
    ends: VecDeque<BlockEnd>,
    /// Time until which receivers may be in a wait that began before the last repair. A block that ends earlier gives
    /// no sample.
    settled: Time,
    sample: Option<Sample>,
    losses: Option<Losses>,
    /// Time until which requests in the return's queue had been sent, and the latest such time that is believed.
    queued_until: Option<Time>,
    queued_at_most: Time,
    /// Last block for which receivers have asked although parity left with it, and the number of their requests.
    late: Option<(BlockId, u32)>,
    /// Time of the last such request, and the number of blocks since.
    quiet_since: Time,
    quiet: u32,
}

impl Crowd {
    /// Notes the end of a block.
    pub(super) fn note_end(&mut self, end: BlockEnd) {
        if self.ends.len() == REMEMBERED {
            self.ends.pop_front();
        }
        self.ends.push_back(end);
        self.quiet += 1;
        // Receivers have had time to ask.
        let is_quiet = self.quiet >= QUIET && end.at.since(self.quiet_since) >= end.spread * QUIET_SPREADS;
        if let Some(losses) = self.losses.as_mut().filter(|_| is_quiet) {
            (losses.part, self.quiet, self.quiet_since) = (losses.part * FALL, 0, end.at);
        }
    }

    /// Notes that parity or a repeated segment leaves. Until `settled`, receivers may be in a wait that began before
    /// it.
    pub(super) fn note_repair(&mut self, settled: Time) {
        self.settled = settled;
    }

    /// Returns the number of parity symbols to send with a block of `segments`, of which there are `most`, so that no
    /// more than about `left` receivers ask for more.
    pub(super) fn symbols(&self, segments: u32, most: u32, left: f64) -> u32 {
        self.losses.map_or(0, |losses| losses.symbols(segments, most, left))
    }

    /// Returns the size of the crowd, if there is one.
    pub(super) fn size(&self) -> Option<GroupSize> {
        self.losses.map(|losses| GroupSize::of(losses.receivers as u64))
    }

    /// Notes a request that came at `now`, whose receiver had heard all that left until `heard`. Returns the blocks to
    /// send parity for at once, if this request shows that there is a crowd.
    pub(super) fn note_request(&mut self, now: Time, grtt: Span, heard: Time, need: &Need) -> Option<Remedy> {
        let is_known = self.losses.is_some();
        self.draw(now, grtt, heard, need);
        let Sample { end, grtt, .. } = self.sample.as_ref().filter(|_| self.losses.is_some() && !is_known)?;
        (self.queued_until, self.queued_at_most) = (Some(now), now + LONGEST_QUEUE);
        let blocks = self.ends.iter().map(|end| end.of).filter(|of| *of >= end.of).collect();
        Some(Remedy { blocks, grtt: *grtt })
    }

    /// Notes a request that came at `now` from a receiver that had heard all that left until `heard`. Returns `true` if it stood
    /// in the return's queue, which a crowd's first requests have filled. Then its round trip, long beside `grtt`, says
    /// nothing about the path.
    pub(super) fn note_queued(&mut self, now: Time, heard: Time, grtt: Span) -> bool {
        // A request that was sent before an earlier one had come stood behind it.
        let is_queued = self.queued_until.is_some_and(|until| heard <= until);
        self.queued_until = self.queued_until.filter(|_| is_queued);
        if is_queued && now.since(heard) > grtt * 2 {
            self.queued_until = Some(now.min(self.queued_at_most));
        }
        is_queued
    }

    fn draw(&mut self, now: Time, grtt: Span, heard: Time, need: &Need) {
        let Some(end) = self.ends.iter().rev().find(|end| end.of == need.first).copied() else { return };
        if heard < end.at || end.spread.is_zero() {
            return;
        }
        let is_early = |sample: &Sample| heard <= sample.since + sample.grtt.max(sample.end.spread / 4);
        let is_known = self.losses.is_some();
        let goes_on = |sample: &Sample| is_early(sample) || !is_known && sample.end.of == end.of;
        if !self.sample.as_ref().is_some_and(goes_on) {
            if is_known || end.at < self.settled {
                return;
            }
            self.sample = Some(Sample::new(end, now, grtt));
        }
        let Some(sample) = self.sample.as_mut().filter(|sample| sample.end.of == need.first) else { return };
        let is_new = sample.needs.iter().all(|other| other.node != need.node);
        if sample.needs.len() < SAMPLE.1 && is_new {
            sample.add(need, heard.since(end.at));
            self.losses = sample.losses().or(self.losses);
        }
    }

    /// Notes a request for `block`, with which parity had left.
    pub(super) fn note_late(&mut self, now: Time, block: BlockId) {
        (self.quiet, self.quiet_since) = (0, now);
        let Some(losses) = &mut self.losses else { return };
        match &mut self.late {
            Some((of, count)) if *of == block => {
                *count += 1;
                if *count == LOUD {
                    losses.part = (losses.part * RISE).clamp(LEAST_LOSS, MOST_LOSS);
                }
            }
            Some((of, _)) if *of > block => {}
            late => *late = Some((block, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use farcast_core::random::RandomStream;
    use farcast_delivery::nack::random_backoff;

    use super::*;

    const GRTT: Span = Span::from_millis(540);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn block(block: u32) -> BlockId {
        BlockId { object: 0, block }
    }

    fn end_of(number: u32, ms: u64) -> BlockEnd {
        BlockEnd { of: block(number), at: at(ms), spread: GRTT * 4, group: GroupSize::of(10_000) }
    }

    fn need(node: u32, symbols: u32) -> Need {
        Need { node: NodeId(node), first: block(0), blocks: 1, segments: 200, symbols }
    }

    /// Has `receivers`, which lose a fraction `part` of block 0, ask for it after their waits. Returns the crowd's state
    /// after the first `most` requests, and the first remedy.
    fn asked(receivers: u32, part: f64, most: usize) -> (Crowd, Option<Remedy>) {
        let (mut crowd, mut remedy) = (Crowd::default(), None);
        crowd.note_end(end_of(0, 1000));
        crowd.note_end(end_of(1, 2300));
        let mut random = RandomStream::derive(7, &[u64::from(receivers)]);
        let mut waits = BTreeMap::new();
        for node in 0..receivers {
            let wait = random_backoff(GRTT * 4, GroupSize::of(10_000), &mut random);
            let symbols = (0..200).filter(|_| random.chance(part)).count() as u32;
            if symbols > 0 {
                waits.insert((wait, node), symbols);
            }
        }
        for ((wait, node), symbols) in waits.into_iter().take(most) {
            let heard = at(1000) + wait;
            remedy = remedy.or(crowd.note_request(heard + GRTT, GRTT, heard, &need(node, symbols)));
        }
        (crowd, remedy)
    }

    #[test]
    fn number_and_losses_follow_from_the_first_requests() {
        for (receivers, part) in [(300, 0.01), (10_000, 0.01), (10_000, 0.05), (100_000, 0.01)] {
            let (crowd, remedy) = asked(receivers, part, 30);
            let losses = crowd.losses.expect("a crowd");
            let times = losses.receivers / f64::from(receivers);
            assert!((0.4..2.5).contains(&times), "{receivers}: {losses:?}");
            assert!((0.7..1.4).contains(&(losses.part / part)), "{part}: {losses:?}");
            // Six requests show it, and blocks that had ended by then are protected.
            assert_eq!(remedy.expect("a remedy").blocks, [block(0), block(1)]);
        }
        assert!(asked(10_000, 0.01, 5).0.losses.is_none() && asked(10_000, 0.01, 6).0.losses.is_some());
    }

    #[test]
    fn a_small_group_is_no_crowd() {
        for receivers in 1..=32 {
            let (crowd, remedy) = asked(receivers, 0.02, 64);
            assert!(crowd.losses.is_none() && remedy.is_none(), "{receivers}");
            assert_eq!((crowd.symbols(200, 40, 1.0), crowd.size()), (0, None));
        }
    }

    #[test]
    fn the_same_receiver_counts_once() {
        let mut crowd = Crowd::default();
        crowd.note_end(end_of(0, 1000));
        for _ in 0..20 {
            assert!(crowd.note_request(at(1600), GRTT, at(1010), &need(3, 2)).is_none());
        }
        for node in 4..9 {
            crowd.note_request(at(1600), GRTT, at(1010), &need(node, 2));
        }
        assert!(crowd.size().is_some());
    }

    #[test]
    fn waits_that_may_have_begun_earlier_tell_nothing() {
        let mut crowd = Crowd::default();
        crowd.note_repair(at(1001));
        crowd.note_end(end_of(0, 1000));
        for node in 0..20 {
            // Some requests are older than the block, too.
            crowd.note_request(at(1600), GRTT, at(995 + u64::from(node)), &need(node, 2));
        }
        assert!(crowd.losses.is_none());
        crowd.note_repair(at(1000));
        for node in 0..10 {
            crowd.note_request(at(1600), GRTT, at(995), &need(node, 2));
        }
        assert!(crowd.losses.is_none(), "these had not heard the block's end");
    }

    #[test]
    fn a_receiver_that_loses_far_more_than_others_does_not_count() {
        let mut crowd = Crowd::default();
        crowd.note_end(end_of(0, 1000));
        for node in 0..10 {
            let symbols = if node == 4 { 40 } else { 2 };
            crowd.note_request(at(1600), GRTT, at(1010 + u64::from(node)), &need(node, symbols));
        }
        let part = crowd.losses.expect("a crowd").part;
        assert!(part < 0.01, "{part}");
    }

    #[test]
    fn parity_leaves_as_few_receivers_as_may_ask() {
        let losses = Losses { receivers: 10_000.0, part: 0.01 };
        // The tail of the binomial distribution beyond k of 200 + k symbols: 2.8 receivers for k = 8, 0.58 for 9, 0.11
        // for 10 and 0.019 for 11.
        assert_eq!([3.0, 1.0, 0.05].map(|left| losses.symbols(200, 40, left)), [8, 9, 11]);
        assert_eq!(losses.symbols(200, 5, 1.0), 5, "no more than there is");
        let few = Losses { receivers: 100.0, ..losses };
        assert!(few.symbols(200, 40, 1.0) < 8);
    }

    #[test]
    fn losses_are_adjusted_to_later_requests() {
        let (mut crowd, _) = asked(10_000, 0.01, 30);
        let before = crowd.losses.expect("a crowd").part;
        let part = |crowd: &Crowd| crowd.losses.expect("a crowd").part / before;
        for _ in 0..LOUD - 1 {
            crowd.note_late(at(5000), block(3));
        }
        crowd.note_late(at(5000), block(2));
        assert!((part(&crowd) - 1.0).abs() < 1e-9, "a few requests are expected");
        for _ in 0..20 {
            crowd.note_late(at(5000), block(3));
        }
        assert!((part(&crowd) - RISE).abs() < 1e-9, "many requests for one block raise it once");
        for number in 4..4 + QUIET {
            crowd.note_end(end_of(number, 13_600));
        }
        assert!((part(&crowd) - RISE).abs() < 1e-9, "receivers may still wait");
        crowd.note_end(end_of(40, 13_700));
        assert!((part(&crowd) - RISE * FALL).abs() < 1e-9);
        crowd.note_end(end_of(41, 33_000));
        assert!((part(&crowd) - RISE * FALL).abs() < 1e-9, "a block tells little");
    }

    #[test]
    fn round_trips_through_a_full_queue_do_not_count() {
        let (mut crowd, _) = asked(10_000, 0.01, 6);
        let remedied = crowd.queued_until.expect("a remedy");
        let mut queued = |sent: Time, trip: u64| {
            let trip = Span::from_millis(trip);
            crowd.note_queued(sent + trip, sent, GRTT)
        };
        assert!(queued(remedied, 5000));
        assert!(
            queued(remedied + Span::from_millis(4000), 2000),
            "it was sent before the one ahead had come"
        );
        assert!(queued(remedied + Span::from_millis(5900), 600), "it was the last in the queue");
        assert!(!queued(remedied + Span::from_millis(6100), 3000));
        assert!(!queued(remedied + Span::from_millis(6200), 3000), "the queue was empty");
        assert!(!Crowd::default().note_queued(at(9000), at(1000), GRTT), "no crowd");
    }
}
