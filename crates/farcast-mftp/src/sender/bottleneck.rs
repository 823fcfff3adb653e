//! Estimation of the rate of the narrowest link on the path, for transfers in which receivers set the pace. A whole
//! window sent at once would overflow that link's queue, and much of it would have to be sent again.
//!
//! Each block yields a sample of the rate at which the path delivered it: the part that arrived, divided by the time
//! from the previous block's acknowledgement to its own. The best recent sample is the estimate (as of BBR,
//! draft-ietf-ccwg-bbr), and DATA is paced by it. Now and then the pace is above the estimate, to find out if the path
//! carries more. Then the pace is below the estimate by as much. Queues drain meanwhile, and the remaining losses are
//! those that the sender did not cause.
//!
//! On a long path the first DTUs, called the train, leave at once with a request behind them. The answer comes later
//! than after a round trip, and the difference is the time that the narrowest link took for the train. This gives the
//! first estimate. On a short path nothing is paced until losses exceed those by chance.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::engine::Transmit;
use farcast_core::{Run, Span, Time};

use super::delivery::SendStep;
use super::flight::{Entry, SentBlock};
use super::{Phase, Sender, Timer};
use crate::config::Pace;
use crate::message::{ClientId, Message};
use crate::wire;

/// Least round trip of a long path, and least loss, in hundredths, that shows a narrow link on a shorter path. On a
/// short path a window overflows a queue only at a narrow link, so losses show the link.
const LONG: Span = Span::from_millis(20);
const NARROW: u32 = 25;
/// Number of requests in a row that reached no receiver, which also show a narrow link.
const SKIPPED: u32 = 4;
/// Least loss, in hundredths, of a sample that shows only a failure and no rate.
const NOTHING_LEFT: u32 = 98;
/// Number of DTUs in the train, and least number of DTUs behind it in the block. The second value is the number of
/// round trips for which the train's answer is awaited.
const TRAIN: u32 = 16;
const AWAITED: u64 = 3;
/// Limit of the train's estimate, as a multiple of a block in two round trips, because some of the train may have been
/// lost.
const MOST_AT_FIRST: u64 = 8;
/// Minimum number of DTUs in a sample.
const TELLING: u64 = 32;
/// Gains over the estimate, in hundredths.
const DOUBLE: u64 = 200;
const ABOVE: u64 = 125;
const BELOW: u64 = 75;
const LEVEL: u64 = 100;
const UNPACED: u64 = 0;
/// Least values that show that a block was held up, in hundredths: the time to arrive relative to the time to leave,
/// and the loss beyond that by chance.
const HELD_UP: u64 = 112;
const LOST: u32 = 10;
/// Decrease per block of the loss by chance, in hundredths. It does not vanish at once, because a NAK may be lost too.
const FADES: u32 = 5;
/// Number of blocks in a row, above the estimate and not held up, that show that the estimate is far too low.
const CLEAR: u32 = 3;
/// Durations of the level pace between two searches, and of the validity of an estimate. Their unit is a round trip, or
/// a block if a block takes longer.
const LEVEL_TRIPS: u64 = 4;
const COUNTS: u64 = 3;
/// Bounds of an estimate, as times between two DTUs.
const SLOWEST: Span = Span::from_millis(100);
const SHORTEST: Span = Span::from_nanos(500);
/// Maximum factor by which one sample makes the estimate slower. An outage looks like a very narrow path, so the factor
/// is bounded.
const AT_ONCE: u64 = 4;
/// Time beyond four round trips by which the first losses on a short path are known at the latest.
const FIRST_STALL: Span = Span::from_millis(200);

/// State of the search for the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Search {
    /// Nothing is paced.
    #[default]
    Off,
    /// The train has left, and its acknowledgement is awaited.
    Train,
    /// Pace of twice the estimate, until a block is held up.
    Doubling,
    /// Pace above the estimate, until a block is held up.
    Above,
    Below,
    Level,
}

/// Estimate of the rate, and the state of the search.
#[derive(Clone, Debug, Default)]
pub(super) struct Bottleneck {
    search: Search,
    since: Time,
    /// Number of blocks that have begun to leave in this state.
    blocks: u32,
    /// Time of a DTU while there is no estimate.
    first: Span,
    /// Recent samples of the time of a DTU. Each is longer, and newer, than the sample before it.
    estimates: VecDeque<(Time, Span)>,
    /// Number of blocks in a row above the estimate that were not held up.
    clear: u32,
    /// Loss of the last block, in hundredths.
    lost: u32,
    /// Loss below the estimate, in hundredths, which the sender did not cause.
    by_chance: u32,
    /// Number of members that set the pace.
    paced: u32,
    /// Last entry that three quarters of these members have acknowledged. Then the last entry that was sampled, and the
    /// time of that sample.
    acked: u64,
    seen: (u64, Time),
    /// Last entry that any member has acknowledged, and the time.
    foremost: (u64, Time),
    /// `true` if the request behind the last block had to be repeated, so that its arrival time is unknown.
    repeated: bool,
    /// Time at which the first DTU of the current block left.
    began: Time,
    /// Pace of the current block, in hundredths of the estimate; and `true` if its first DTUs are the train.
    block_gain: u64,
    in_train: bool,
}

/// Blocks that enough members have acknowledged.
struct AcknowledgedBlocks {
    dtus: u64,
    /// Loss of the last blocks on the shared path, in hundredths.
    lost: u32,
    /// Times that the blocks took to leave and to arrive.
    left: Span,
    arrived: Span,
    /// `true` if the request behind them had to be repeated.
    repeated: bool,
    /// Pace of the slowest block, in hundredths of the estimate.
    gain: u64,
}

impl Bottleneck {
    /// Begins the search at the start of data, in blocks of `block` DTUs.
    fn begin(&mut self, round_trip: Span, block: u32, train: bool) {
        if round_trip < LONG {
            return;
        }
        self.first = (round_trip * 2 / u64::from(block.max(1))).clamp(SHORTEST, SLOWEST);
        self.search = if train { Search::Train } else { Search::Doubling };
    }

    /// Returns the estimated time of a DTU.
    fn estimate(&self) -> Span {
        self.estimates.front().map_or(self.first, |&(_, span)| span)
    }

    fn gain(&self) -> u64 {
        match self.search {
            Search::Off | Search::Train => UNPACED,
            _ if self.estimates.is_empty() => LEVEL,
            Search::Doubling => DOUBLE,
            Search::Above => ABOVE,
            Search::Below => BELOW,
            Search::Level => LEVEL,
        }
    }

    /// Advances the search before a block leaves; `trip` is the unit of the search's durations.
    fn go_on(&mut self, now: Time, trip: Span) {
        let lasted = now.since(self.since);
        match self.search {
            // At least one block shows the losses.
            Search::Below if lasted >= trip && self.blocks > 0 => self.turn(now, Search::Level),
            Search::Level if lasted >= trip * LEVEL_TRIPS => self.turn(now, Search::Above),
            _ => {}
        }
        self.blocks = self.blocks.saturating_add(1);
    }

    fn turn(&mut self, now: Time, search: Search) {
        (self.search, self.since, self.blocks, self.clear) = (search, now, 0, 0);
    }

    /// Evaluates the train when enough members have acknowledged it; `late` is the time beyond a round trip.
    fn train(&mut self, now: Time, late: Span, round_trip: Span) {
        if self.search != Search::Train {
            return;
        }
        if round_trip < LONG {
            // The path only seemed long.
            self.search = Search::Off;
        } else {
            self.turn(now, Search::Above);
            let span = (late / u64::from(TRAIN)).max(self.first / MOST_AT_FIRST);
            self.note(now, span, Span::MAX);
        }
    }

    /// Evaluates a sample; estimates are valid for `lasts`.
    fn take(&mut self, now: Time, delivery: &AcknowledgedBlocks, lasts: Span) {
        let before = core::mem::replace(&mut self.lost, delivery.lost);
        // After a lost NAK nothing seems to be missing, so only two in a row are believed.
        let beyond = delivery.lost.max(before).saturating_sub(self.by_chance);
        let arrived = delivery.dtus * u64::from(100 - beyond.min(99)) / 100;
        let span = delivery.arrived.max(delivery.left) / arrived.max(1);
        if self.search == Search::Off {
            if (NARROW..NOTHING_LEFT).contains(&delivery.lost) {
                self.engage(now, span);
            }
            return;
        }
        let span = span.min(self.estimate() * AT_ONCE);
        if delivery.gain < LEVEL && delivery.repeated {
            return;
        }
        if delivery.gain < LEVEL {
            self.by_chance = delivery.lost.max(self.by_chance.saturating_sub(FADES));
            return;
        }
        let surely = delivery.lost.min(before).saturating_sub(self.by_chance) > LOST;
        if delivery.gain == LEVEL && surely && self.search == Search::Level {
            // The estimate was too high.
            self.estimates.clear();
            self.turn(now, Search::Below);
        }
        self.note(now, span, lasts);
        let late = delivery.arrived * 100 > delivery.left * HELD_UP;
        let held_up = late || delivery.lost > self.by_chance + LOST;
        match self.search {
            _ if delivery.gain == LEVEL => {}
            Search::Doubling | Search::Above if held_up => self.turn(now, Search::Below),
            Search::Above if self.clear + 1 >= CLEAR => self.turn(now, Search::Doubling),
            Search::Above => self.clear += 1,
            _ => {}
        }
    }

    /// Begins to pace DATA, because the path is narrow; `span` is the first estimate of the time of a DTU.
    fn engage(&mut self, now: Time, span: Span) {
        // A sample of so few DTUs may be far too low.
        self.turn(now, Search::Above);
        self.note(now, span, Span::MAX);
    }

    fn note(&mut self, now: Time, span: Span, lasts: Span) {
        let span = span.clamp(SHORTEST, SLOWEST);
        while self.estimates.back().is_some_and(|&(_, longer)| longer >= span) {
            self.estimates.pop_back();
        }
        self.estimates.push_back((now, span));
        while self.estimates.len() > 1 && self.estimates.front().is_some_and(|&(at, _)| now.since(at) > lasts)
        {
            self.estimates.pop_front();
        }
    }
}

impl Sender {
    fn is_paced_by_way(&self) -> bool {
        matches!(self.config.pace, Pace::Window { paced: true, .. })
    }

    fn shortest_round_trip(&self) -> Span {
        self.round_trip.shortest().unwrap_or(self.config.round_trip)
    }

    /// Begins the search at the start of the first pass.
    pub(super) fn begin_search(&mut self, now: Time) {
        if self.is_paced_by_way() {
            self.bottleneck.seen.1 = now;
            self.look_whether_long();
        }
    }

    /// Begins to pace on a long path, at once or as soon as an answer tells its length.
    fn look_whether_long(&mut self) {
        if let Some(trip) = self.round_trip.shortest()
            && self.bottleneck.search == Search::Off
        {
            let enough = self.full_pass() && self.geometry.block_size() >= TRAIN * 2;
            // The train's request belongs to no pass. A member that compares would take it for the request to compare.
            let train = enough && !self.members.values().any(|m| m.is_active() && m.compares);
            self.bottleneck.begin(trip, self.geometry.block_size(), train);
        }
    }

    /// Sets the pace of a block that is about to leave.
    pub(super) fn pace_block(&mut self, now: Time, block: u32) {
        if !self.is_paced_by_way() {
            return;
        }
        let takes = self.bottleneck.estimate() * u64::from(self.geometry.block_size());
        self.bottleneck.go_on(now, takes.max(self.shortest_round_trip()));
        let bottleneck = &mut self.bottleneck;
        bottleneck.in_train = bottleneck.search == Search::Train;
        // A short block has not enough DTUs behind the train.
        if bottleneck.in_train && self.geometry.block_len(block) < TRAIN * 2 {
            (bottleneck.search, bottleneck.in_train) = (Search::Doubling, false);
        }
        (bottleneck.began, bottleneck.block_gain) = (now, bottleneck.gain());
        self.pace_dtus();
    }

    fn pace_dtus(&mut self) {
        let bottleneck = &self.bottleneck;
        let span = match bottleneck.gain() {
            UNPACED => Span::ZERO,
            gain => bottleneck.estimate() * 100 / gain,
        };
        self.pacer.pace_segments(span, wire::data_len(self.geometry.segment_size().into()));
    }

    /// Records that the request behind a block leaves, so that the block is in flight.
    pub(super) fn put_under_way(&mut self, now: Time, block: u32) {
        let (began, gain) = (self.bottleneck.began, self.bottleneck.block_gain);
        self.count_paced();
        let (pass, dtus) = (self.progress.pass, self.progress.sent_in_block);
        self.flight.push(SentBlock { pass, block, dtus, began, asked: now, gain });
    }

    fn count_paced(&mut self) {
        self.bottleneck.paced = self.paced().count() as u32;
    }

    /// Prepares to repeat the request behind the last block, `block`. Returns the blocks that it asks about.
    pub(super) fn ask_again(&mut self, block: u32) -> Run {
        self.bottleneck.repeated = true;
        let from = self.bottleneck.acked;
        let first =
            self.flight.between(from, u64::MAX).next().filter(|_| self.is_paced_by_way() && self.full_pass());
        let first = first.map_or(block, |entry| entry.block.min(block));
        Run::new(first, block - first + 1).unwrap_or(Run::one(block))
    }

    /// Sends the rest of the block after the train's answer has come, or has not come in time.
    pub(super) fn follow_train(&mut self, now: Time) {
        if self.progress.step == SendStep::Train {
            let bottleneck = &mut self.bottleneck;
            if bottleneck.search == Search::Train {
                bottleneck.search = Search::Doubling;
            }
            (bottleneck.began, bottleneck.block_gain) = (now, bottleneck.gain());
            self.progress.step = SendStep::Data;
            self.pacer.begin(now);
            self.pace_dtus();
        }
    }

    /// Returns the number of DTUs that may leave before the train's request.
    pub(super) fn left_of_train(&self) -> Option<u32> {
        (self.bottleneck.in_train && self.progress.step == SendStep::Data)
            .then(|| TRAIN.saturating_sub(self.progress.sent_in_block))
    }

    /// Returns the request behind the train.
    pub(super) fn train_request(&mut self, now: Time) -> Transmit<Message> {
        let block = self.progress.block.unwrap_or(0);
        let dtus = core::mem::take(&mut self.progress.sent_in_block);
        self.count_paced();
        let began = self.bottleneck.began;
        self.flight.push(SentBlock { pass: 0, block, dtus, began, asked: now, gain: LEVEL });
        (self.progress.step, self.bottleneck.in_train) = (SendStep::Train, false);
        self.timers.set(Timer::Stall, now + self.shortest_round_trip() * AWAITED);
        // The request belongs to no pass, so that its answer is not mistaken for that of the block. It need not list
        // missing DTUs.
        let request = self.request(now, 0, Run::one(block), Run::one(0));
        Transmit::new(request, self.config.private)
    }

    /// Returns the maximum number of DTUs in flight on account of the path.
    pub(super) fn window_of_way(&self) -> u32 {
        if !self.is_paced_by_way() {
            return u32::MAX;
        }
        let (bottleneck, block) = (&self.bottleneck, self.geometry.block_size());
        let more = if bottleneck.search == Search::Off {
            // Each block that came through allows one more.
            bottleneck.acked.saturating_mul(block.into())
        } else {
            // Enough until the farthest receiver has answered.
            self.round_trip().as_nanos() * 2 / bottleneck.estimate().as_nanos().max(1)
        };
        block.saturating_mul(2).saturating_add(u32::try_from(more).unwrap_or(u32::MAX))
    }

    /// Records that a member that had acknowledged entry `before` of the flight has acknowledged entry `serial`.
    pub(super) fn note_acknowledged(&mut self, now: Time, client: ClientId, before: u64, serial: u64) {
        if !self.is_paced_by_way() || !self.members.get(&client).is_some_and(|m| self.sets_pace(m)) {
            return;
        }
        self.note_skipped(now, serial);
        // Three quarters are enough, because answers are lost too.
        let enough = (self.bottleneck.paced * 3).div_ceil(4);
        if let Some(delivered) = self.flight.acknowledge(before, serial, enough) {
            self.delivered(now, delivered);
        }
    }

    /// Checks, when a member has acknowledged the entry `serial` of the flight, for earlier requests that reached no
    /// receiver.
    fn note_skipped(&mut self, now: Time, serial: u64) {
        let (foremost, since) = self.bottleneck.foremost;
        if serial <= foremost {
            return;
        }
        self.bottleneck.foremost = (serial, now);
        let skipped = self.flight.between(foremost, serial - 1).count() as u32;
        let fresh = self.phase == Phase::Sending && self.full_pass();
        if fresh && skipped >= SKIPPED && self.bottleneck.search == Search::Off {
            // About one block of those came through since the last acknowledgement.
            let dtus = u64::from(self.geometry.block_size()).max(1);
            let since = now.since(since).min(self.first_stall());
            self.bottleneck.engage(now, since / dtus);
        }
    }

    /// Returns the longest time until a first loss on a short path is known.
    fn first_stall(&self) -> Span {
        self.shortest_round_trip() * 4 + FIRST_STALL
    }

    /// Returns the number of DTUs of a block lost by all but a quarter of the members that set the pace. This leaves
    /// out losses behind the last shared link, and lost NAKs.
    fn shared_loss(&self, entry: &Entry) -> u32 {
        let mut needs: Vec<u32> = entry.needs.values().copied().collect();
        // The others have reported nothing, so they lost nothing.
        let silent = (self.bottleneck.paced as usize).saturating_sub(needs.len());
        let Some(rank) = (self.bottleneck.paced as usize / 4).checked_sub(silent) else { return 0 };
        if rank >= needs.len() {
            return 0;
        }
        (*needs.select_nth_unstable(rank).1).min(entry.dtus)
    }

    /// Handles the delivery of the blocks up to entry `delivered` of the flight, which enough members have
    /// acknowledged.
    fn delivered(&mut self, now: Time, delivered: u64) {
        if delivered <= self.bottleneck.acked {
            return;
        }
        self.bottleneck.acked = delivered;
        let (trip, block_size) = (self.shortest_round_trip(), self.geometry.block_size());
        let (seen, seen_at) = self.bottleneck.seen;
        if let Some(train) = self.flight.between(seen, delivered).last().filter(|entry| entry.pass == 0) {
            let late = now.since(train.asked).saturating_sub(trip);
            self.bottleneck.seen = (delivered, now);
            self.bottleneck.train(now, late, trip);
            return self.follow_train(now);
        }
        let entries = || self.flight.between(seen, delivered).filter(|entry| entry.pass > 0);
        let dtus = entries().map(|entry| u64::from(entry.dtus)).sum();
        let (Some(first), Some(last)) = (entries().next(), entries().last()) else { return };
        let asked = last.asked;
        // Entries with few DTUs are sampled together.
        if dtus < TELLING {
            return;
        }
        let repeated = self.bottleneck.repeated;
        // Losses of an entry whose request was lost are unknown, unless the request was repeated and asked about all.
        let all = repeated && self.full_pass();
        let known = || entries().filter(|entry| all || core::ptr::eq(*entry, last));
        let (reported, gone) =
            known().fold((0, 0), |(dtus, lost), entry| (dtus + entry.dtus, lost + self.shared_loss(entry)));
        let arrived = now.since(seen_at.max(first.began + trip));
        let off = self.bottleneck.search == Search::Off;
        let delivery = AcknowledgedBlocks {
            dtus,
            lost: (u64::from(gone) * 100 / u64::from(reported.max(1))) as u32,
            left: entries().fold(Span::ZERO, |sum, entry| sum + entry.asked.since(entry.began)),
            arrived: match repeated {
                _ if off => arrived.min(self.first_stall()),
                true => Span::ZERO,
                false => arrived,
            },
            repeated,
            gain: entries().map(|entry| entry.gain).min().unwrap_or(UNPACED),
        };
        (self.bottleneck.seen, self.bottleneck.repeated) = ((delivered, now), false);
        let block = self.bottleneck.estimate() * u64::from(block_size);
        // A block that left before any pacing tells nothing about the pace.
        if off || delivery.gain != UNPACED {
            self.bottleneck.take(now, &delivery, block.max(trip) * COUNTS);
        }
        if self.round_trip.shortest().is_none() && !repeated {
            // Otherwise only answers to the last request are measured, and while the window is open there is always a
            // later one.
            self.sample_round_trip(asked, now);
        }
        self.look_whether_long();
    }
}
