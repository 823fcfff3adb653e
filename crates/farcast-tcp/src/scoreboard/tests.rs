//! Against a model that keeps every octet by itself.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const SMSS: u64 = 10;

#[derive(Clone, Copy, Debug)]
struct Octet {
    sent_at: Time,
    sacked: bool,
    lost: bool,
    resent: bool,
    twice: bool,
}

/// Octets in flight, one by one from `first`.
#[derive(Default)]
struct NaiveScoreboard {
    first: u64,
    octets: Vec<Octet>,
}

impl NaiveScoreboard {
    fn at(&self, position: u64) -> Octet {
        self.octets[(position - self.first) as usize]
    }

    fn next(&self) -> u64 {
        self.first + self.octets.len() as u64
    }

    fn positions(&self, holds: impl Fn(&Octet) -> bool) -> impl Iterator<Item = u64> {
        (self.first..).zip(&self.octets).filter(move |(_, octet)| holds(octet)).map(|(position, _)| position)
    }

    /// RFC 6675 section 4, `SetPipe`, on the marks.
    fn pipe(&self) -> u64 {
        let unknown = self.octets.iter().filter(|octet| !octet.sacked);
        unknown.map(|octet| u64::from(!octet.lost) + u64::from(octet.resent)).sum()
    }

    /// RFC 6675 section 4, `IsLost`.
    fn is_lost(&self, position: u64) -> bool {
        let above: Vec<u64> = self.positions(|octet| octet.sacked).filter(|&one| one > position).collect();
        let begins = |&&one: &&u64| !self.at(one - 1).sacked;
        above.iter().filter(begins).count() >= 3 || above.len() as u64 > 2 * SMSS
    }

    fn arrive(&mut self, left: u64, right: u64) -> u64 {
        let range = left.max(self.first)..right.min(self.next());
        let mut fresh = 0;
        for position in range {
            let octet = &mut self.octets[(position - self.first) as usize];
            fresh += u64::from(!octet.sacked);
            (octet.sacked, octet.lost, octet.resent) = (true, false, false);
        }
        fresh
    }

    fn lose(&mut self, holds: impl Fn(u64, &Octet) -> bool) {
        for (position, octet) in (self.first..).zip(&mut self.octets) {
            octet.lost |= !octet.sacked && holds(position, octet);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(u32),
    /// Positions of blocks and acknowledgments are parts of the octets in flight, in thousandths.
    Arrive(u64, u64),
    Acknowledge(u64),
    LoseByCount,
    LoseFirst,
    LoseAll,
    LoseNothing,
    Resend,
    Doubt,
    LoseByTime(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1u32..=SMSS as u32).prop_map(Step::Push),
        6 => (0u64..1000, 1u64..200).prop_map(|(from, len)| Step::Arrive(from, len)),
        3 => (0u64..600).prop_map(Step::Acknowledge),
        4 => Just(Step::LoseByCount),
        1 => Just(Step::LoseFirst),
        1 => Just(Step::LoseAll),
        1 => Just(Step::LoseNothing),
        5 => Just(Step::Resend),
        2 => Just(Step::Doubt),
        3 => (0u64..40).prop_map(Step::LoseByTime),
    ]
}

/// The scoreboard and its model, and the latest that was delivered.
struct Both {
    board: Scoreboard,
    naive: NaiveScoreboard,
    now: Time,
    latest: Option<(Time, u64)>,
}

impl Both {
    fn new() -> Self {
        let naive = NaiveScoreboard { first: 1, ..NaiveScoreboard::default() };
        Self { board: Scoreboard::new(1, true), naive, now: Time::ZERO, latest: None }
    }

    fn heard(&mut self, delivered: &Delivered, fresh: u64) {
        assert_eq!(delivered.octets, fresh);
        let latest = delivered.latest.map(|latest| (latest.0, latest.1));
        self.latest = self.latest.max(latest);
    }

    fn take(&mut self, step: &Step) {
        // Each thing happens at its own time.
        self.now += Span::from_millis(1);
        match *step {
            Step::Push(len) => {
                self.board.push(self.now, len, false);
                let octet =
                    Octet { sent_at: self.now, sacked: false, lost: false, resent: false, twice: false };
                self.naive.octets.extend(std::iter::repeat_n(octet, len as usize));
            }
            Step::Arrive(from, len) => self.arrive(from, len),
            Step::Acknowledge(part) => self.acknowledge(part),
            Step::LoseByCount => self.lose_by_count(),
            Step::LoseFirst => self.lose_first(),
            Step::LoseAll => self.lose_all(),
            Step::LoseNothing => {
                self.board.lose_nothing();
                self.naive.octets.iter_mut().for_each(|octet| octet.lost = false);
            }
            Step::Resend => self.resend(),
            Step::Doubt => self.doubt(),
            Step::LoseByTime(patience) => self.lose_by_time(Span::from_millis(patience)),
        }
        self.compare();
    }

    fn arrive(&mut self, from: u64, len: u64) {
        let flight = self.naive.octets.len() as u64;
        // The first octet is missing, and nothing beyond the last is reported.
        let left = self.naive.first + 1 + flight * from / 1000;
        let right = left + 1 + flight * len / 1000;
        let mut delivered = Delivered::default();
        self.board.arrive(self.now, left, right, &mut delivered);
        let originals: Vec<u64> = (left..right.min(self.naive.next()))
            .filter(|&one| !self.naive.at(one).sacked && !self.naive.at(one).twice)
            .collect();
        assert_eq!(delivered.original.is_some(), !originals.is_empty());
        let fresh = self.naive.arrive(left, right);
        self.heard(&delivered, fresh);
    }

    fn acknowledge(&mut self, part: u64) {
        let position = self.naive.first + self.naive.octets.len() as u64 * part / 1000;
        let acknowledged = (position - self.naive.first) as usize;
        if acknowledged == 0 {
            return;
        }
        let mut delivered = Delivered { highest: self.board.highest_arrived(), ..Delivered::default() };
        self.board.acknowledge(self.now, position, &mut delivered);
        let gone: Vec<Octet> = self.naive.octets.drain(..acknowledged).collect();
        self.naive.first = position;
        assert_eq!(delivered.acknowledged, acknowledged as u64);
        let fresh = gone.iter().filter(|octet| !octet.sacked).count() as u64;
        self.heard(&delivered, fresh);
        // Karn: a segment that left twice gives no round trip.
        let trips = gone.iter().filter(|octet| !octet.sacked).map(|octet| self.now.since(octet.sent_at));
        let expected = if gone.iter().any(|octet| octet.twice) { None } else { trips.max() };
        assert_eq!(delivered.first_trip, expected);
    }

    fn lose_by_count(&mut self) {
        let below = self.board.lost_by_count(3, SMSS);
        for position in self.naive.positions(|octet| !octet.sacked) {
            assert_eq!(position < below, self.naive.is_lost(position), "IsLost({position}), {below}");
        }
        self.board.lose_below(below);
        self.naive.lose(|position, _| position < below);
    }

    fn lose_first(&mut self) {
        let Some(first) = self.board.records.front().copied() else { return };
        self.board.lose_first();
        let end = first.end();
        if !first.sacked {
            for octet in &mut self.naive.octets[..(end - first.start) as usize] {
                (octet.lost, octet.resent) = (true, false);
            }
        }
    }

    fn lose_all(&mut self) {
        self.board.lose_all();
        // RFC 2018 section 8: with the first octet told of, nothing is believed.
        let reneged = self.naive.octets.first().is_some_and(|octet| octet.sacked);
        self.latest = self.latest.filter(|_| !reneged);
        for octet in &mut self.naive.octets {
            octet.sacked &= !reneged;
            (octet.lost, octet.resent) = (!octet.sacked, false);
        }
    }

    fn resend(&mut self) {
        let expected = self.naive.positions(|octet| octet.lost && !octet.resent).next();
        let lost = self.board.next_lost();
        assert_eq!(lost.map(|record| record.start), expected, "NextSeg rule 1");
        let Some(lost) = lost else { return };
        self.send_again(lost.start);
    }

    /// `NextSeg` rule 3.
    fn doubt(&mut self) {
        let highest =
            self.naive.positions(|octet| octet.sacked).last().map_or(self.naive.first, |last| last + 1);
        let unclear = |octet: &Octet| !octet.sacked && !octet.lost && !octet.resent;
        let expected = self.naive.positions(unclear).next().filter(|&position| position < highest);
        let doubtful = self.board.next_doubtful(self.board.first());
        assert_eq!(doubtful.map(|record| record.start), expected);
        if let Some(start) = expected {
            self.send_again(start);
        }
    }

    fn send_again(&mut self, start: u64) {
        let sent = self.board.resend(self.now, start, SMSS as u32).expect("it is in flight");
        assert!(sent.start == start && u64::from(sent.len) <= SMSS);
        for position in sent.start..sent.end() {
            let octet = &mut self.naive.octets[(position - self.naive.first) as usize];
            (octet.resent, octet.twice, octet.sent_at) = (true, true, self.now);
        }
    }

    /// RFC 8985 section 6.2 step 5.
    fn lose_by_time(&mut self, patience: Span) {
        let Some(latest) = self.latest else { return };
        let now = self.now;
        let eligible = |position: u64, octet: &Octet| {
            let before = octet.sent_at < latest.0 || (octet.sent_at == latest.0 && position < latest.1);
            before && !octet.sacked && (!octet.lost || octet.resent)
        };
        let all = (self.naive.first..).zip(&self.naive.octets);
        let candidates: Vec<Time> = all
            .filter(|(position, octet)| eligible(*position, octet))
            .map(|(_, octet)| octet.sent_at)
            .collect();
        let LostByTime { any: more, rest_at: next } =
            self.board.lose_by_time(now, latest.0, latest.1, patience);
        assert_eq!(more, candidates.iter().any(|&sent| sent + patience <= now));
        let waiting = candidates.iter().map(|&sent| sent + patience).filter(|&due| due > now).max();
        assert_eq!(next, waiting);
        for (position, octet) in (self.naive.first..).zip(&mut self.naive.octets) {
            if eligible(position, octet) && octet.sent_at + patience <= now {
                (octet.lost, octet.resent) = (true, false);
            }
        }
    }

    fn compare(&self) {
        let (board, naive) = (&self.board, &self.naive);
        board.check();
        assert_eq!((board.first(), board.next()), (naive.first, naive.next()));
        assert_eq!(board.flight(), naive.octets.len() as u64);
        assert_eq!(board.pipe(), naive.pipe());
        assert_eq!(board.sacked(), naive.positions(|octet| octet.sacked).count() as u64);
        assert_eq!(board.has_copies(), naive.octets.iter().any(|octet| octet.resent));
        let highest = naive.positions(|octet| octet.sacked).last().map_or(naive.first, |last| last + 1);
        assert_eq!(board.highest_arrived(), highest);
        for record in &board.records {
            for position in record.start..record.end() {
                let octet = naive.at(position);
                assert_eq!(
                    (record.sacked, record.lost, record.resent, record.sent_at, record.transmissions > 1),
                    (octet.sacked, octet.lost, octet.resent, octet.sent_at, octet.twice),
                    "{position}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn it_does_as_the_octets_do(steps in prop::collection::vec(step(), 1..120)) {
        let mut both = Both::new();
        for step in &steps {
            both.take(step);
        }
    }
}

/// A FIN counts as an octet, and leaves again with the data that it came with, even where they fill a segment.
#[test]
fn a_fin_stays_with_its_data() {
    let mut board = Scoreboard::new(1, false);
    board.push(Time::ZERO, SMSS as u32 + 1, true);
    board.lose_all();
    let again = board.resend(Time::ZERO, 1, SMSS as u32).expect("it is in flight");
    assert_eq!((again.len, again.fin), (SMSS as u32 + 1, true));
    // A part that is acknowledged leaves the FIN with the rest.
    board.acknowledge(Time::ZERO, 8, &mut Delivered::default());
    board.lose_all();
    let again = board.resend(Time::ZERO, 8, SMSS as u32).expect("it is in flight");
    assert_eq!((again.len, again.fin), (4, true));
    // A smaller segment takes its octets first.
    board.lose_all();
    let again = board.resend(Time::ZERO, 8, 2).expect("it is in flight");
    assert_eq!((again.len, again.fin), (2, false));
    assert_eq!(board.last().map(|last| (last.start, last.len, last.fin)), Some((10, 2, true)));
    board.check();
}

/// Of segments sent at one instant, the first is lost if the last has arrived, not the other way round (RFC 8985
/// section 6.2).
#[test]
fn at_one_instant_the_order_is_that_of_positions() {
    for (arrived, lost) in [((11, 21), 10), ((21, 31), 20), ((1, 11), 0)] {
        let mut board = Scoreboard::new(1, true);
        for _ in 0..3 {
            board.push(Time::ZERO, 10, false);
        }
        let now = Time::ZERO + Span::from_millis(100);
        let mut delivered = Delivered::default();
        board.arrive(now, arrived.0, arrived.1, &mut delivered);
        let (sent, end, _) = delivered.latest.expect("something arrived");
        board.lose_by_time(now, sent, end, Span::from_millis(100));
        assert_eq!(board.flight() - board.sacked() - board.pipe(), lost);
        board.check();
    }
}
