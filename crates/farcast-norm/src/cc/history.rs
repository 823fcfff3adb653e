//! Loss history of a receiver: gaps in a sender's sequence numbers, loss events, and the intervals between these (RFC
//! 5348 §5, which RFC 4654 §5 takes over).

use alloc::vec::Vec;

use farcast_core::{Span, Time};

/// Number of later messages after which a missing message counts as lost (RFC 5348 §5.1).
const LATER: u32 = 3;
/// Weights of closed intervals, the latest first (RFC 5348 §5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Least weight that a long open interval leaves to earlier intervals (RFC 5348 §5.5).
const LEAST_DISCOUNT: f64 = 0.25;
/// Distance behind the highest number beyond which a message is not late: its sender's numbers have wrapped around or
/// begun anew.
const LATE: i64 = 1024;
/// Number of such messages in a row after which counting continues from them.
const STRAYS: u32 = 3;
/// Maximum number of open gaps; reordering leaves a handful.
const GAPS: usize = 16;

/// Arrival of a message: its number, extended beyond 16 bits, and its time.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    number: i64,
    at: Time,
}

/// Messages that have not arrived, from `first` to before `end`.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: i64,
    end: i64,
    /// Arrivals before and behind the gap, in order of numbers. Sending times in the gap are interpolated between
    /// these.
    before: Arrival,
    behind: Arrival,
    /// Number of later messages that have arrived.
    later: u32,
}

impl Gap {
    /// Returns the time at which message `number` would have arrived (RFC 5348 §5.2).
    fn time_of(&self, number: i64) -> Time {
        self.before.at + self.spacing() * (number - self.before.number).cast_unsigned()
    }

    /// Returns the time between two messages.
    fn spacing(&self) -> Span {
        let messages = (self.behind.number - self.before.number).cast_unsigned().max(1);
        self.behind.at.since(self.before.at) / messages
    }
}

/// Closed interval between two loss events.
#[derive(Clone, Copy, Debug)]
struct Interval {
    messages: f64,
    /// Discount of the interval's weight, by later intervals while they were long.
    discount: f64,
}

/// Loss history of one sender at one receiver.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    highest: Option<Arrival>,
    /// Open gaps, in order of numbers.
    gaps: Vec<Gap>,
    strays: u32,
    /// Current loss event: its first message, and the time of that loss. `None` before the first event.
    event: Option<Arrival>,
    /// Closed intervals, the latest first, eight at most.
    intervals: Vec<Interval>,
    /// Index of the interval that was assumed and not counted, if any.
    assumed: Option<usize>,
}

impl History {
    /// Returns `true` if anything was lost.
    pub(super) fn has_lost(&self) -> bool {
        self.event.is_some()
    }

    /// Notes message `sequence`, which has arrived at `at`. Losses within `trip` of the first of them are one event.
    /// Returns `true` if this is the first event of all; then [`assume`](Self::assume) sets the interval before it.
    pub(super) fn heard(&mut self, at: Time, sequence: u16, trip: Span) -> bool {
        let (first, trip) = (!self.has_lost(), trip.max(Span::from_nanos(1)));
        let Some(highest) = self.highest else {
            self.highest = Some(Arrival { number: sequence.into(), at });
            return false;
        };
        let ahead = i64::from(sequence.wrapping_sub(highest.number as u16).cast_signed());
        let number = highest.number + ahead;
        let arrival = Arrival { number, at };
        if ahead < -LATE {
            self.stray(arrival, trip);
        } else {
            self.strays = 0;
            if ahead > 0 {
                self.highest = Some(arrival);
                self.note_gap(highest, arrival);
            }
            if ahead > 0 || self.fill(number) {
                self.note_later(number, trip);
            }
        }
        first && self.has_lost()
    }

    /// Notes the gap between two arrivals.
    fn note_gap(&mut self, before: Arrival, behind: Arrival) {
        if behind.number > before.number + 1 {
            let (first, end) = (before.number + 1, behind.number);
            self.gaps.push(Gap { first, end, before, behind, later: 0 });
        }
    }

    /// Removes a late message from its gap. Returns `false` if it has arrived before.
    fn fill(&mut self, number: i64) -> bool {
        let at = self.gaps.iter().position(|gap| (gap.first..gap.end).contains(&number));
        let Some(at) = at else { return false };
        let gap = self.gaps[at];
        // The rests lie before and behind the message; their times are interpolated as before.
        let left = [Gap { end: number, ..gap }, Gap { first: number + 1, ..gap }];
        self.gaps.splice(at..=at, left.into_iter().filter(|gap| gap.first < gap.end));
        true
    }

    /// Counts message `number` for the gaps before it. Gaps with enough later messages are lost.
    fn note_later(&mut self, number: i64, trip: Span) {
        for gap in self.gaps.iter_mut().filter(|gap| gap.end <= number) {
            gap.later += 1;
        }
        while self.gaps.first().is_some_and(|gap| gap.later >= LATER) || self.gaps.len() > GAPS {
            let gap = self.gaps.remove(0);
            self.lose(gap, trip);
        }
    }

    /// Continues counting from `arrival` after several strays in a row. Losses before it are not known.
    fn stray(&mut self, arrival: Arrival, trip: Span) {
        self.strays += 1;
        if self.strays < STRAYS {
            return;
        }
        self.strays = 0;
        self.gaps.clear();
        if self.event.is_none_or(|event| arrival.at >= event.at + trip) {
            let since = self.highest.map_or(0, |highest| highest.number - self.event.map_or(0, |e| e.number));
            self.begin_event(arrival, since);
        } else if let Some(event) = &mut self.event {
            event.number = arrival.number;
        }
        self.highest = Some(arrival);
    }

    /// Counts all of `gap` as lost. A loss event begins with each message that was lost a round trip or more after the
    /// last event began.
    fn lose(&mut self, gap: Gap, trip: Span) {
        let mut number = gap.first;
        let spacing = gap.spacing().as_nanos();
        while number < gap.end {
            match self.event {
                Some(event) if gap.time_of(number) < event.at + trip => {
                    // First message that no longer belongs to this event.
                    let rest = (event.at + trip).since(gap.time_of(number)).as_nanos();
                    let step = if spacing == 0 { u64::MAX } else { rest.div_ceil(spacing).max(1) };
                    number = number.saturating_add(i64::try_from(step).unwrap_or(i64::MAX));
                }
                event => {
                    // Of more events than intervals are kept, only the last make a difference.
                    let since = event.map_or(0, |event| number - event.number);
                    let at = gap.time_of(number);
                    self.begin_event(Arrival { number, at }, since);
                    let step = if spacing == 0 { u64::MAX } else { trip.as_nanos().div_ceil(spacing).max(1) };
                    let left = (gap.end - number).cast_unsigned() / step;
                    let skipped = left.saturating_sub(WEIGHTS.len() as u64 + 1);
                    number += (step * skipped).cast_signed();
                    if skipped > 0
                        && let Some(event) = &mut self.event
                    {
                        *event = Arrival { number, at: gap.time_of(number) };
                    }
                }
            }
        }
    }

    /// Begins a loss event, `since` messages after the last one. The first event closes no interval.
    fn begin_event(&mut self, event: Arrival, since: i64) {
        if self.event.is_some() {
            let messages = since.max(1) as f64;
            let discount = self.discount(messages);
            for interval in &mut self.intervals {
                interval.discount *= discount;
            }
            self.push(Interval { messages, discount: 1.0 });
        }
        self.event = Some(event);
    }

    fn push(&mut self, interval: Interval) {
        self.intervals.truncate(WEIGHTS.len() - 1);
        self.intervals.insert(0, interval);
        self.assumed = self.assumed.map(|at| at + 1).filter(|&at| at < WEIGHTS.len());
    }

    /// Sets the interval before the first loss event to `messages` (RFC 5348 §6.3.1). A further call replaces it, as
    /// long as this interval still counts.
    pub(super) fn assume(&mut self, messages: f64) {
        let messages = messages.max(1.0);
        match self.assumed {
            Some(at) => self.intervals[at].messages = messages,
            None if self.intervals.is_empty() => {
                self.push(Interval { messages, discount: 1.0 });
                self.assumed = Some(0);
            }
            None => {}
        }
    }

    /// Returns `true` if an assumed interval still counts.
    pub(super) fn has_assumed(&self) -> bool {
        self.assumed.is_some()
    }

    /// Returns the discount that an open interval of `open` messages leaves to earlier intervals (RFC 5348 §5.5).
    fn discount(&self, open: f64) -> f64 {
        let (sum, weights) = self.sum(|_| 1.0);
        let mean = sum / weights;
        if weights > 0.0 && open > 2.0 * mean { (2.0 * mean / open).max(LEAST_DISCOUNT) } else { 1.0 }
    }

    /// Returns the weighted sum of the closed intervals, and the sum of their weights. Each weight is multiplied by
    /// `more`.
    fn sum(&self, more: impl Fn(usize) -> f64) -> (f64, f64) {
        let weighted = self.intervals.iter().zip(WEIGHTS).enumerate().map(|(at, (interval, weight))| {
            let weight = weight * interval.discount * more(at);
            (interval.messages * weight, weight)
        });
        weighted.fold((0.0, 0.0), |(sum, weights), (value, weight)| (sum + value, weights + weight))
    }

    /// Returns the fraction of messages that begin a loss event (RFC 5348 §5.4): the inverse of the mean interval,
    /// including the open interval where that makes the mean longer. 0 before the first event.
    pub(super) fn loss(&self) -> f64 {
        let (Some(event), Some(highest)) = (self.event, self.highest) else { return 0.0 };
        let open = (highest.number - event.number).max(0) as f64;
        let discount = self.discount(open);
        let (closed, closed_weights) = self.sum(|_| 1.0);
        // With the open interval at the head, each other interval counts as the next older one, and the oldest does not
        // count.
        let mut with = (open * WEIGHTS[0], WEIGHTS[0]);
        for (interval, weight) in self.intervals.iter().zip(&WEIGHTS[1..]) {
            let weight = weight * interval.discount * discount;
            with = (with.0 + interval.messages * weight, with.1 + weight);
        }
        let closed = if closed_weights > 0.0 { closed / closed_weights } else { 1.0 };
        1.0 / closed.max(with.0 / with.1).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use farcast_core::random::RandomStream;

    use super::*;

    const MS: Span = Span::from_millis(1);

    /// Sender of a message each millisecond, and a receiver with a round trip.
    struct Line {
        history: History,
        next: u16,
        now: Time,
        trip: Span,
    }

    impl Line {
        fn new(trip: Span) -> Self {
            Self { history: History::default(), next: 65_000, now: Time::ZERO, trip }
        }

        /// Sends the next message, which arrives or is lost. Returns `true` if its arrival shows the first loss event.
        fn say(&mut self, comes: bool) -> bool {
            let (now, sequence) = (self.now, self.next);
            (self.now, self.next) = (now + MS, sequence.wrapping_add(1));
            comes && self.history.heard(now, sequence, self.trip)
        }

        /// Loses one message, and delivers `come` more.
        fn lose_then(&mut self, come: u32) {
            self.say(false);
            for _ in 0..come {
                if self.say(true) {
                    self.history.assume(40.0);
                }
            }
        }
    }

    fn close(loss: f64, expected: f64) {
        assert!((loss / expected - 1.0).abs() < 1e-12, "{loss} of {expected}");
    }

    #[test]
    fn the_mean_interval_is_weighted_and_discounted_as_published() {
        // Intervals of 40 (assumed), 60 .. 50, and an open one. The expected values come from another program, by RFC
        // 5348 §5.4 and §5.5.
        let mut line = Line::new(MS);
        line.say(true);
        for interval in [60, 20, 110, 90, 30, 70, 50] {
            line.lose_then(interval - 1);
        }
        line.lose_then(10);
        let open = |line: &mut Line, come: u32| {
            (0..come).for_each(|_| assert!(!line.say(true)));
            line.history.loss()
        };
        close(open(&mut line, 0), 0.015_757_575_757_575_76);
        close(open(&mut line, 90), 0.014_498_644_986_449_863);
        close(open(&mut line, 200), 0.007_117_181_883_537_024);
        close(open(&mut line, 1699), 0.001_064_808_728_802_418_8);
        assert!(line.history.has_assumed());
        // The open interval closes; earlier intervals keep the discount.
        line.lose_then(90);
        close(line.history.loss(), 0.001_064_295_725_297_827_7);
        assert!(!line.history.has_assumed(), "eight newer ones");
    }

    #[test]
    fn what_is_lost_within_a_round_trip_is_one_event() {
        // Two of a hundred messages are lost, five apart.
        for (trip, expected) in [(MS, [95, 5, 95, 5]), (MS * 10, [100; 4])] {
            let mut line = Line::new(trip);
            line.say(true);
            for _ in 0..40 {
                line.lose_then(4);
                line.lose_then(94);
            }
            let latest = line.history.intervals[..4].iter().map(|interval| interval.messages as u32);
            let mut latest: Vec<u32> = latest.collect();
            let first = usize::from(latest[0] == 5);
            latest.rotate_left(first);
            assert_eq!(latest, expected, "{trip}");
        }
    }

    #[test]
    fn reordering_is_no_loss_and_a_third_later_message_is() {
        let mut history = History::default();
        let mut hear = |sequences: &[u16]| {
            for &sequence in sequences {
                history.heard(Time::ZERO + MS * u64::from(sequence), sequence, MS);
            }
            history.has_lost()
        };
        assert!(!hear(&[0, 1, 4, 5, 2, 3, 6, 6, 6, 6]), "two later ones");
        assert!(!hear(&[8, 9, 9, 9]), "one that comes twice is not two");
        assert!(!hear(&[7, 10]));
        assert!(hear(&[12, 13, 14]));
    }

    #[test]
    fn the_first_event_is_told_once_and_its_interval_may_be_set_again() {
        let mut line = Line::new(MS);
        line.say(true);
        line.say(false);
        let told: Vec<bool> = (0..6).map(|_| line.say(true)).collect();
        assert_eq!(told, [false, false, true, false, false, false]);
        line.history.assume(100.0);
        close(line.history.loss(), 0.01);
        line.history.assume(400.0);
        close(line.history.loss(), 0.0025);
        line.history.assume(0.0);
        assert!(line.history.loss() <= 1.0);
    }

    #[test]
    fn an_outage_is_a_loss_event_for_each_round_trip() {
        let mut line = Line::new(MS * 10);
        for _ in 0..50 {
            line.say(true);
        }
        for _ in 0..500 {
            line.say(false);
        }
        for _ in 0..5 {
            line.say(true);
        }
        let intervals: Vec<u32> =
            line.history.intervals.iter().map(|interval| interval.messages as u32).collect();
        assert_eq!(intervals, [10; 8]);
        // The open interval of fourteen messages counts as well.
        close(line.history.loss(), 6.0 / 64.0);
    }

    #[test]
    fn a_sender_that_goes_round_unheard_is_heard_again() {
        let mut line = Line::new(MS * 10);
        for _ in 0..50 {
            line.say(true);
        }
        for _ in 0..40_000 {
            line.say(false);
        }
        assert!(!line.say(true) && !line.say(true) && line.say(true), "this is lost");
        line.history.assume(100.0);
        for _ in 0..1000 {
            line.say(true);
        }
        assert_eq!(line.history.highest.expect("heard").number as u16, line.next.wrapping_sub(1));
        assert!(line.history.loss() < 0.01);
    }

    #[test]
    fn whatever_numbers_come_it_stays_small_and_within_bounds() {
        let mut random = RandomStream::derive(12, &[]);
        let mut history = History::default();
        let mut now = Time::ZERO;
        for step in 0..200_000u32 {
            now += Span::from_nanos(random.below(2_000_000));
            let near = history.highest.map_or(0, |highest| highest.number as u16);
            let sequence = match random.below(4) {
                0 => random.bits() as u16,
                1 => near.wrapping_sub(random.below(40) as u16),
                _ => near.wrapping_add(random.below(1 + u64::from(step % 97)) as u16),
            };
            let trip = Span::from_nanos(random.below(20_000_000));
            if history.heard(now, sequence, trip) {
                history.assume(random.unit() * 1000.0);
            }
            let loss = history.loss();
            assert!((0.0..=1.0).contains(&loss), "{loss}");
            assert!(history.gaps.len() <= GAPS && history.intervals.len() <= WEIGHTS.len());
        }
    }
}
