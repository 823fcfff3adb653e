//! What the narrowest link on the way carries, where receivers set the pace: a windowful sent at once would overflow
//! its queue, and be sent several times.
//!
//! Each block tells at which rate the way delivered it: what arrived of it, over the time from the acknowledgement of
//! the block before to its own. The best rate of late is the estimate (as of BBR, draft-ietf-ccwg-bbr), and DATA is
//! paced by it: now and then above it, to find out whether there is more; then as far below it, which lets queues drain
//! and tells which losses are not of our making.
//!
//! On a long way the first DTUs leave at once, with a request behind them. What its answer takes beyond a round trip is
//! what the narrowest link took for them, and so the first estimate. On a short way nothing is paced until more is lost
//! than happens by chance.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::engine::Transmit;
use farcast_core::{Run, Span, Time};

use super::delivery::Step;
use super::flight::Entry;
use super::{Phase, Sender, Timer};
use crate::config::Pace;
use crate::message::{ClientId, Message};
use crate::wire;

/// From this round trip on a way is long. On a shorter one, what a window holds overflows a queue only where a link is
/// narrow, and then losses tell: so many, in hundredths.
const LONG: Span = Span::from_millis(20);
const NARROW: u32 = 25;
/// Or so many requests in a row that reached nobody.
const SKIPPED: u32 = 4;
/// Where as much as this is lost, hardly anything is known but that something was wrong.
const NOTHING_LEFT: u32 = 98;
/// DTUs of the first train, with at least as many behind it; and for how many round trips it is awaited.
const TRAIN: u32 = 16;
const AWAITED: u64 = 3;
/// It is not believed beyond so many times a block in two round trips: some of it may have been lost.
const MOST_AT_FIRST: u64 = 8;
/// Fewer DTUs tell nothing.
const TELLING: u64 = 32;
/// Gains, in hundredths.
const DOUBLE: u64 = 200;
const ABOVE: u64 = 125;
const BELOW: u64 = 75;
const LEVEL: u64 = 100;
const UNPACED: u64 = 0;
/// A block was held up if it took so much more time to arrive than to leave, or if so much more was lost than is by
/// chance; in hundredths.
const HELD_UP: u64 = 112;
const LOST: u32 = 10;
/// A NAK may be lost too, so what was lost below the estimate counts on, by so much less with each block.
const FADES: u32 = 5;
/// So many blocks in a row that were not held up above the estimate say that it is far too low.
const CLEAR: u32 = 3;
/// Round trips, or blocks if those take longer: with the rate level between two searches, and for which an estimate
/// counts.
const LEVEL_TRIPS: u64 = 4;
const COUNTS: u64 = 3;
/// The slowest and the fastest that an estimate may be: times between two DTUs.
const SLOWEST: Span = Span::from_millis(100);
const SHORTEST: Span = Span::from_nanos(500);
/// No delivery makes the estimate more than so many times slower: an outage looks like a way that is far too narrow.
const AT_ONCE: u64 = 4;
/// What is lost at first on a short way is asked about again after so much more than a round trip or two.
const FIRST_STALL: Span = Span::from_millis(200);

/// How the rate is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Search {
    /// Nothing is paced.
    #[default]
    Off,
    /// The first DTUs leave at once, and their acknowledgement is awaited.
    Train,
    /// Twice what was delivered, until a block is held up.
    Doubling,
    /// Above the estimate, until a block is held up.
    Above,
    Below,
    Level,
}

/// The estimate, and the search for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Bottleneck {
    search: Search,
    since: Time,
    /// Blocks that have begun to leave since.
    blocks: u32,
    /// What a DTU takes while there is no estimate.
    first: Span,
    /// What a DTU took of late: each of these is longer, and newer, than the one before.
    estimates: VecDeque<(Time, Span)>,
    /// Blocks in a row that were not held up above the estimate.
    clear: u32,
    /// What was lost of the last block, in hundredths.
    lost: u32,
    /// What was lost, in hundredths, below the estimate: that is not of our making.
    by_chance: u32,
    /// How many members set the pace.
    paced: u32,
    /// What three quarters of them have acknowledged, and what of that was looked at, and when.
    acked: u64,
    seen: (u64, Time),
    /// What somebody has acknowledged, and since when.
    foremost: (u64, Time),
    /// The request behind the last block had to be repeated, so when it arrived cannot be told.
    repeated: bool,
    /// When the first DTU of the block at hand left.
    began: Time,
    /// How that is paced, in hundredths of the estimate; and whether its first DTUs are the train.
    block_gain: u64,
    in_train: bool,
}

/// Some blocks that enough have acknowledged.
struct Delivery {
    dtus: u64,
    /// What was lost of the last of them on the way that all share, in hundredths.
    lost: u32,
    /// How long they took to leave, and to arrive.
    left: Span,
    arrived: Span,
    /// Whether the request behind them had to be repeated.
    repeated: bool,
    /// How the slowest was paced, in hundredths of the estimate.
    gain: u64,
}

impl Bottleneck {
    /// Data begins, in blocks of `block` DTUs.
    fn begin(&mut self, round_trip: Span, block: u32, train: bool) {
        if round_trip < LONG {
            return;
        }
        self.first = (round_trip * 2 / u64::from(block.max(1))).clamp(SHORTEST, SLOWEST);
        self.search = if train { Search::Train } else { Search::Doubling };
    }

    /// What a DTU takes as far as is known.
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

    /// A block is about to leave: how long a search lasts is counted in `trips` of this.
    fn go_on(&mut self, now: Time, trip: Span) {
        let lasted = now.since(self.since);
        match self.search {
            // At least one block shows what is lost.
            Search::Below if lasted >= trip && self.blocks > 0 => self.turn(now, Search::Level),
            Search::Level if lasted >= trip * LEVEL_TRIPS => self.turn(now, Search::Above),
            _ => {}
        }
        self.blocks = self.blocks.saturating_add(1);
    }

    fn turn(&mut self, now: Time, search: Search) {
        (self.search, self.since, self.blocks, self.clear) = (search, now, 0, 0);
    }

    /// Enough have acknowledged the train, so long after a round trip of this length.
    fn train(&mut self, now: Time, late: Span, round_trip: Span) {
        if self.search != Search::Train {
            return;
        }
        if round_trip < LONG {
            // It only seemed long.
            self.search = Search::Off;
        } else {
            self.turn(now, Search::Above);
            let span = (late / u64::from(TRAIN)).max(self.first / MOST_AT_FIRST);
            self.note(now, span, Span::MAX);
        }
    }

    /// Takes what a delivery tells; estimates count for `lasts`.
    fn take(&mut self, now: Time, delivery: &Delivery, lasts: Span) {
        let before = core::mem::replace(&mut self.lost, delivery.lost);
        // A NAK that is lost looks as if nothing were missing: only two in a row are believed.
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
            // It was too high.
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

    /// The way is narrow: DATA is paced from now on, by `span` for a DTU at first.
    fn engage(&mut self, now: Time, span: Span) {
        // What so few DTUs tell may be far too little.
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

    /// The first pass begins.
    pub(super) fn begin_search(&mut self, now: Time) {
        if self.is_paced_by_way() {
            self.bottleneck.seen.1 = now;
            self.look_whether_long();
        }
    }

    /// A long way is paced from the beginning, or as soon as an answer tells how long it is.
    fn look_whether_long(&mut self) {
        if let Some(trip) = self.round_trip.shortest()
            && self.bottleneck.search == Search::Off
        {
            let enough = self.full_pass() && self.geometry.block_size() >= TRAIN * 2;
            // One who compares would take the train's request, which is of no pass, for the time to do so.
            let train = enough && !self.members.values().any(|m| m.is_active() && m.compares);
            self.bottleneck.begin(trip, self.geometry.block_size(), train);
        }
    }

    /// A block is about to leave.
    pub(super) fn pace_block(&mut self, now: Time, block: u32) {
        if !self.is_paced_by_way() {
            return;
        }
        let takes = self.bottleneck.estimate() * u64::from(self.geometry.block_size());
        self.bottleneck.go_on(now, takes.max(self.shortest_round_trip()));
        let bottleneck = &mut self.bottleneck;
        bottleneck.in_train = bottleneck.search == Search::Train;
        // A short block has not enough behind the train.
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

    /// The request behind a block leaves: the block is under way.
    pub(super) fn put_under_way(&mut self, now: Time, block: u32) {
        let (began, gain) = (self.bottleneck.began, self.bottleneck.block_gain);
        self.count_paced();
        self.flight.push((self.progress.pass, block), self.progress.sent_in_block, (began, now), gain);
    }

    fn count_paced(&mut self) {
        self.bottleneck.paced = self.paced().count() as u32;
    }

    /// The request behind the last block, `block`, is repeated: the blocks that it is to ask about.
    pub(super) fn ask_again(&mut self, block: u32) -> Run {
        self.bottleneck.repeated = true;
        let from = self.bottleneck.acked;
        let first =
            self.flight.between(from, u64::MAX).next().filter(|_| self.is_paced_by_way() && self.full_pass());
        let first = first.map_or(block, |entry| entry.block.min(block));
        Run::new(first, block - first + 1).unwrap_or(Run::one(block))
    }

    /// The train's answer has come, or has not come in time: the rest of the block follows.
    pub(super) fn follow_train(&mut self, now: Time) {
        if self.progress.step == Step::Train {
            let bottleneck = &mut self.bottleneck;
            if bottleneck.search == Search::Train {
                bottleneck.search = Search::Doubling;
            }
            (bottleneck.began, bottleneck.block_gain) = (now, bottleneck.gain());
            self.progress.step = Step::Data;
            self.pacer.begin(now);
            self.pace_dtus();
        }
    }

    /// How many DTUs may leave before the request of the train.
    pub(super) fn left_of_train(&self) -> Option<u32> {
        (self.bottleneck.in_train && self.progress.step == Step::Data)
            .then(|| TRAIN.saturating_sub(self.progress.sent_in_block))
    }

    /// The request behind the train.
    pub(super) fn train_request(&mut self, now: Time) -> Transmit<Message> {
        let block = self.progress.block.unwrap_or(0);
        let dtus = core::mem::take(&mut self.progress.sent_in_block);
        self.count_paced();
        self.flight.push((0, block), dtus, (self.bottleneck.began, now), LEVEL);
        (self.progress.step, self.bottleneck.in_train) = (Step::Train, false);
        self.timers.set(Timer::Stall, now + self.shortest_round_trip() * AWAITED);
        // Of no pass, so that its answer is not taken for that of the block; it need not say what is missing.
        let request = self.request(now, (0, Run::one(block)), Run::one(0));
        Transmit::new(request, self.config.private)
    }

    /// How many DTUs may be under way, for the way's sake.
    pub(super) fn window_of_way(&self) -> u32 {
        if !self.is_paced_by_way() {
            return u32::MAX;
        }
        let (bottleneck, block) = (&self.bottleneck, self.geometry.block_size());
        let more = if bottleneck.search == Search::Off {
            // A block more for each that has come through.
            bottleneck.acked.saturating_mul(block.into())
        } else {
            // Until the farthest has answered.
            self.round_trip().as_nanos() * 2 / bottleneck.estimate().as_nanos().max(1)
        };
        block.saturating_mul(2).saturating_add(u32::try_from(more).unwrap_or(u32::MAX))
    }

    /// A member that had acknowledged entry `before` of the flight has acknowledged entry `serial`.
    pub(super) fn note_acknowledged(&mut self, now: Time, client: ClientId, (before, serial): (u64, u64)) {
        if !self.is_paced_by_way() || !self.members.get(&client).is_some_and(|m| self.sets_pace(m)) {
            return;
        }
        self.note_skipped(now, serial);
        // Three quarters will do: answers are lost too.
        let enough = (self.bottleneck.paced * 3).div_ceil(4);
        if let Some(delivered) = self.flight.acknowledge((before, serial), enough) {
            self.delivered(now, delivered);
        }
    }

    /// A member has acknowledged the entry `serial` of the flight: whether requests before that have reached nobody.
    fn note_skipped(&mut self, now: Time, serial: u64) {
        let (foremost, since) = self.bottleneck.foremost;
        if serial <= foremost {
            return;
        }
        self.bottleneck.foremost = (serial, now);
        let skipped = self.flight.between(foremost, serial - 1).count() as u32;
        let fresh = self.phase == Phase::Sending && self.full_pass();
        if fresh && skipped >= SKIPPED && self.bottleneck.search == Search::Off {
            // Of so many, one block came through since the last acknowledgement, about.
            let dtus = u64::from(self.geometry.block_size()).max(1);
            let since = now.since(since).min(self.first_stall());
            self.bottleneck.engage(now, since / dtus);
        }
    }

    /// The longest that a first loss on a short way takes until it is known.
    fn first_stall(&self) -> Span {
        self.shortest_round_trip() * 4 + FIRST_STALL
    }

    /// DTUs of a block that all but a quarter of those who set the pace lost, or more: what is lost behind the last
    /// link that they share does not count, nor does a NAK that was lost.
    fn shared_loss(&self, entry: &Entry) -> u32 {
        let mut needs: Vec<u32> = entry.needs.values().copied().collect();
        // Of the others nothing was heard: they lost nothing.
        let silent = (self.bottleneck.paced as usize).saturating_sub(needs.len());
        let Some(rank) = (self.bottleneck.paced as usize / 4).checked_sub(silent) else { return 0 };
        if rank >= needs.len() {
            return 0;
        }
        (*needs.select_nth_unstable(rank).1).min(entry.dtus)
    }

    /// Enough have acknowledged the blocks up to entry `delivered` of the flight.
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
        // What was sent of few DTUs each tells together.
        if dtus < TELLING {
            return;
        }
        let repeated = self.bottleneck.repeated;
        // Of those whose request was lost nothing is known, unless it was repeated: then all were asked about.
        let all = repeated && self.full_pass();
        let known = || entries().filter(|entry| all || core::ptr::eq(*entry, last));
        let (reported, gone) =
            known().fold((0, 0), |(dtus, lost), entry| (dtus + entry.dtus, lost + self.shared_loss(entry)));
        let arrived = now.since(seen_at.max(first.began + trip));
        let off = self.bottleneck.search == Search::Off;
        let delivery = Delivery {
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
        // What left before anything was paced says nothing about how it is paced.
        if off || delivery.gain != UNPACED {
            self.bottleneck.take(now, &delivery, block.max(trip) * COUNTS);
        }
        if self.round_trip.shortest().is_none() && !repeated {
            // Answers to the last request are all that is measured else, and while the window is open there is always a
            // later one.
            self.sample_round_trip(asked, now);
        }
        self.look_whether_long();
    }
}
