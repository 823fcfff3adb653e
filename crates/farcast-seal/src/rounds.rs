//! Times at which the keys of a session leave: in rounds, the first before any other datagram.

use farcast_core::{BitRate, Span, Time};

/// Intervals between rounds of keys: the first, for receivers that missed them, and the longest, for receivers that
/// begin again later.
const FIRST_AGAIN: Span = Span::from_millis(500);
const LATEST_AGAIN: Span = Span::from_secs(10);
/// Minimum time for answers to keys of many receivers, as long as nothing is known of the path. Before it has passed, a
/// slow receiver looks like one that has missed the keys. The time is at least `ANSWERS` times the duration of the
/// round.
const ANSWER: Span = Span::from_secs(1);
const ANSWERS: u64 = 2;
/// Number of copies of a short first round, and the limits of a short one: its octets, or its duration.
const COPIES: usize = 3;
const FEW: u64 = 1500;
const SHORT: Span = Span::from_millis(15);
/// Divisors of the rate for keys after the first round: a fifth for rounds to receivers without an answer, a fiftieth
/// for rounds to all.
const PART_OF_SOME: u64 = 5;
const PART_OF_ALL: u64 = 50;
/// Rate at which keys leave where receivers set the rate, in bit/s.
const WITHOUT_RATE: u64 = 100_000_000;

/// Schedule of the rounds in which the keys of a session leave. The driver asks for the time, supplies the datagrams of
/// a round, and reports those that have left.
#[derive(Clone, Debug)]
pub struct Rounds {
    rate: Option<BitRate>,
    /// Time at which the next datagram leaves.
    next: Time,
    /// Interval from this round to the next.
    again: Span,
    /// Octets of this round, and `true` if it is for all receivers.
    octets: u64,
    for_all: bool,
    /// `true` if the next round includes receivers that have answered.
    everyone: bool,
}

impl Rounds {
    /// Creates a schedule with at most `rate`; without one, receivers set the rate.
    pub fn new(rate: Option<BitRate>) -> Self {
        Self { rate, next: Time::ZERO, again: FIRST_AGAIN, octets: 0, for_all: true, everyone: true }
    }

    /// Returns the time at which the next datagram leaves, or the next round begins.
    pub fn due(&self) -> Time {
        self.next
    }

    /// Restarts at `now` with a round for all receivers, because the previous keys are obsolete.
    pub fn restart(&mut self, now: Time) {
        (self.next, self.again, self.everyone) = (now, FIRST_AGAIN, true);
    }

    /// Begins to prepare the next round. Returns `true` if it is for all receivers, `false` if only for those without
    /// an answer.
    pub fn turn(&mut self) -> bool {
        let everyone = self.everyone || self.again >= LATEST_AGAIN;
        (self.everyone, self.for_all) = (false, everyone);
        everyone
    }

    /// Begins a round of `octets` octets.
    pub fn begin(&mut self, octets: u64) {
        self.octets = octets;
        if octets == 0 {
            self.next += LATEST_AGAIN;
            self.again = LATEST_AGAIN;
        }
    }

    /// Returns the number of copies of each datagram in this round. A receiver that misses the first keys cannot use
    /// any later datagram.
    pub fn copies(&self) -> usize {
        let few = self.octets <= FEW || self.time_of(self.octets) <= SHORT;
        if self.is_first() && few { COPIES } else { 1 }
    }

    /// Returns `true` until the first round with the current keys has left; before that no other datagram is useful.
    pub fn is_first(&self) -> bool {
        self.again == FIRST_AGAIN
    }

    /// Records that a datagram of `octets` octets has left; `last` marks the last one of its round.
    pub fn left(&mut self, now: Time, octets: u64, last: bool) {
        let part = match (self.is_first(), self.for_all) {
            (true, _) => 1,
            (false, false) => PART_OF_SOME,
            (false, true) => PART_OF_ALL,
        };
        let gap = self.time_of(octets) * (part * self.copies() as u64);
        if !last {
            self.next = now + gap;
            return;
        }
        let many = self.is_first() && self.octets > FEW;
        let answers = if many { ANSWER.max(self.time_of(self.octets) * ANSWERS) } else { Span::ZERO };
        self.next = now + gap.max(self.again).max(answers);
        self.again = (self.again * 2).min(LATEST_AGAIN);
    }

    fn time_of(&self, octets: u64) -> Span {
        time_of(self.rate, octets)
    }
}

/// Returns the time that `octets` take at `rate`, or at the assumed rate where receivers set it.
pub(crate) fn time_of(rate: Option<BitRate>, octets: u64) -> Span {
    let rate = rate.or_else(|| BitRate::from_bps(WITHOUT_RATE));
    rate.map_or(Span::ZERO, |rate| rate.time_of_bytes(octets))
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Returns the start of each round, in ms, and `true` if it is for all. A round has `datagrams` of 1000 octets at
    /// 8 kbit/s.
    fn rounds(datagrams: u64, count: usize) -> Vec<(u64, bool)> {
        let mut rounds = Rounds::new(BitRate::from_bps(8000));
        let mut begun = Vec::new();
        while begun.len() < count {
            let at = rounds.due();
            begun.push((at.as_nanos() / 1_000_000, rounds.turn()));
            rounds.begin(1000 * datagrams);
            for left in 1..=datagrams {
                let now = rounds.due();
                rounds.left(now, 1000, left == datagrams);
            }
        }
        begun
    }

    #[test]
    fn rounds_are_as_the_page_has_them() {
        // A datagram takes a second: rounds for some take a fifth of the rate, those for all a fiftieth.
        let all = |at| (at, true);
        let some = |at| (at, false);
        // The first round leaves three times.
        let ours = [
            all(0),
            some(3000),
            some(8000),
            some(13_000),
            some(18_000),
            all(26_000),
            all(76_000),
            all(126_000),
        ];
        assert_eq!(rounds(1, 8), ours);
        // Three datagrams take three seconds, and the wait for answers twice as long.
        let ours = [all(0), some(2000 + 6000), some(8000 + 15_000), some(23_000 + 15_000)];
        assert_eq!(rounds(3, 4), ours);
        assert_eq!(rounds(0, 3), [all(0), all(10_000), all(20_000)], "nobody lacks keys");
    }

    #[test]
    fn few_keys_leave_three_times_at_first() {
        let copies = |octets| {
            let mut rounds = Rounds::new(None);
            rounds.turn();
            rounds.begin(octets);
            let first = rounds.copies();
            rounds.left(Time::ZERO, octets, true);
            (first, rounds.copies())
        };
        // At the assumed 100 Mbit/s, 15 ms are 187,500 octets.
        assert_eq!((copies(1410), copies(187_500), copies(187_501)), ((3, 1), (3, 1), (1, 1)));
        let mut slow = Rounds::new(BitRate::from_bps(64_000));
        slow.turn();
        slow.begin(1644);
        assert_eq!(slow.copies(), 1);
    }
}
