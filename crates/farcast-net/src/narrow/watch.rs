//! Detection of narrow paths by a receiver: it finds senders whose marks arrive and whose long datagrams do not.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use ipnet::IpNet;

use super::wire::{Mark, digest};

/// Most senders that are watched.
const SENDERS: usize = 16;
/// Natural logarithm of a probability, 2 in 10^9. If losses that do not depend on length are less probable than this,
/// the path counts as narrow.
const CHANCE: f64 = -20.0;
/// In a group, one mark in this number is answered, so that answers spread over the receivers.
const ONE_OF: u64 = 2;
/// Least number of marks between two answers.
const REST: u32 = 32;
/// Most answers to one sender.
const ANSWERS: u32 = 64;

/// Number of a sender's long datagrams that are remembered, until a datagram that left alone has arrived.
const REMEMBERED: usize = 64;

/// Narrow path that was found, to be reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NarrowPath {
    /// Sender at its other end.
    pub(crate) sender: SocketAddr,
    /// Least length of the sender's long datagrams, octets.
    pub(crate) length: usize,
}

/// Marks and long datagrams of all senders.
#[derive(Debug)]
pub(crate) struct NarrowWatch {
    /// Prefixes of the senders that are heard; empty if all are.
    accept: Vec<IpNet>,
    /// Senders may be answered.
    answers: bool,
    /// `true` if the watched address is a group, so that other receivers may be behind the same hop.
    group: bool,
    /// Senders, in the order in which they were last heard.
    senders: Vec<SenderMarks>,
    draws: RandomState,
    drawn: u64,
    narrow: bool,
    found: Vec<NarrowPath>,
}

/// Marks and long datagrams of one sender.
#[derive(Debug)]
struct SenderMarks {
    sender: SocketAddr,
    /// The last mark.
    mark: Mark,
    /// Number of long datagrams by the mark at the time when one of them last arrived, or by the first mark.
    base: u32,
    /// Marks since then.
    marks: u32,
    /// Length of the longest mark, octets.
    longest: u16,
    answered: u32,
    /// Number of marks to pass over before the next answer.
    rest: u32,
    told: bool,
    alone: Alone,
}

/// Long datagrams of a sender that left alone. A bridge between virtual links passes a batch that is not yet cut into
/// datagrams, and drops a single datagram that is as long as each of the batch. Then batches arrive, and a datagram
/// that leaves alone never arrives.
#[derive(Clone, Debug)]
struct Alone {
    /// `true` if such a datagram has arrived, so that the path passes more than batches.
    came: bool,
    /// Number of marks that named a datagram which has not arrived.
    missed: u32,
    /// Digests of the latest long datagrams, and the index of the next one.
    heard: [u32; REMEMBERED],
    next: usize,
}

impl Alone {
    const NONE: Self = Self { came: false, missed: 0, heard: [0; REMEMBERED], next: 0 };

    fn hear(&mut self, datagram: &[u8]) {
        if !self.came {
            self.heard[self.next] = digest(datagram);
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    /// Handles the digest in a mark, which is that of the datagram that left alone before the mark; 0 stands for none.
    fn mark(&mut self, alone: u32) {
        if alone != 0 && self.heard.contains(&alone) {
            (self.came, self.missed) = (true, 0);
        } else if alone != 0 && !self.came {
            self.missed = self.missed.saturating_add(1);
        }
    }

    /// Returns `true` if chance does not explain the missed datagrams. A mark has arrived for each of them.
    fn never_comes(&self) -> bool {
        is_narrow(self.missed, self.missed)
    }
}

impl NarrowWatch {
    /// Returns a watch over senders in `accept`, or over all if it is empty. `group` says that the watched address is a
    /// group, `answers` that senders may be answered.
    pub(crate) fn new(accept: &[IpNet], group: bool, answers: bool) -> Self {
        Self {
            accept: accept.to_vec(),
            answers,
            group,
            senders: Vec::new(),
            draws: RandomState::new(),
            drawn: 0,
            narrow: false,
            found: Vec::new(),
        }
    }

    /// Returns `true` if a narrow path was found.
    pub(crate) fn is_narrow(&self) -> bool {
        self.narrow
    }

    /// Returns a narrow path that was found and not reported yet.
    pub(crate) fn found(&mut self) -> Option<NarrowPath> {
        self.found.pop()
    }

    /// Takes datagrams of `stride` octets that arrived together; the last may be shorter.
    pub(crate) fn heard(&mut self, sender: SocketAddr, content: &[u8], stride: usize) {
        let seen = self.senders.iter_mut().find(|seen| seen.sender == sender);
        if let Some(seen) = seen.filter(|seen| stride.min(content.len()) >= seen.mark.length.into()) {
            (seen.base, seen.marks) = (seen.mark.long, 0);
            seen.told &= seen.alone.never_comes();
            if !seen.alone.came {
                content.chunks(stride).for_each(|one| seen.alone.hear(one));
            }
        }
    }

    /// Notes that a mark of `octets` octets has arrived from `sender`. Returns the length of its longest mark.
    pub(crate) fn marked(&mut self, sender: SocketAddr, octets: usize) -> u16 {
        let Some(seen) = self.senders.iter_mut().find(|seen| seen.sender == sender) else { return 0 };
        seen.longest = seen.longest.max(u16::try_from(octets).unwrap_or(u16::MAX));
        seen.longest
    }

    /// Takes a mark. Returns `true` if it is to be answered.
    pub(crate) fn mark(&mut self, sender: SocketAddr, mark: &Mark) -> bool {
        if !self.accept.is_empty() && !self.accept.iter().any(|prefix| prefix.contains(&sender.ip())) {
            return false;
        }
        self.drawn += 1;
        let chosen = !self.group || self.draws.hash_one(self.drawn).is_multiple_of(ONE_OF);
        let seen = Self::seen(&mut self.senders, sender, mark);
        if !is_narrow(seen.marks, mark.long.wrapping_sub(seen.base)) && !seen.alone.never_comes() {
            return false;
        }
        self.narrow = true;
        if !std::mem::replace(&mut seen.told, true) && self.found.len() < SENDERS {
            self.found.push(NarrowPath { sender, length: mark.length.into() });
        }
        if seen.rest > 0 {
            seen.rest -= 1;
            return false;
        }
        let answers = self.answers && chosen && seen.answered < ANSWERS;
        if answers {
            (seen.answered, seen.rest) = (seen.answered + 1, REST);
        }
        answers
    }

    /// Notes the mark and returns the sender's entry. A new entry takes the place of the sender heard longest ago.
    fn seen<'a>(senders: &'a mut Vec<SenderMarks>, sender: SocketAddr, mark: &Mark) -> &'a mut SenderMarks {
        let known = senders.iter().position(|seen| seen.sender == sender);
        let known = known.map(|at| senders.remove(at));
        let goes_on = |seen: &SenderMarks| {
            let more = mark.long.wrapping_sub(seen.mark.long);
            seen.mark.nonce == mark.nonce && seen.mark.length == mark.length && more < u32::MAX / 2
        };
        let seen = match known.filter(goes_on) {
            Some(mut seen) => {
                seen.alone.mark(mark.alone);
                SenderMarks { mark: *mark, marks: seen.marks.saturating_add(1), ..seen }
            }
            // Datagrams that left before this mark perhaps left before we listened.
            None => SenderMarks {
                sender,
                mark: *mark,
                base: mark.long,
                marks: 0,
                longest: 0,
                answered: 0,
                rest: 0,
                told: false,
                alone: Alone::NONE,
            },
        };
        if senders.len() == SENDERS {
            senders.remove(0);
        }
        senders.push(seen);
        let last = senders.len() - 1;
        &mut senders[last]
    }
}

/// Returns `true` if chance does not explain that `marks` marks arrived and none of the `long` long datagrams between
/// them.
///
/// Loss that does not depend on length passes all the marks and none of the long datagrams with probability `(1 -
/// p)^marks * p^long`. This is largest at `p = long / (marks + long)`.
fn is_narrow(marks: u32, long: u32) -> bool {
    let (marks, long) = (f64::from(marks), f64::from(long));
    let all = marks + long;
    marks > 0.0 && long > 0.0 && marks * (marks / all).ln() + long * (long / all).ln() < CHANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn mark(long: u32) -> Mark {
        Mark { nonce: 7, long, length: 1400, alone: 0 }
    }

    #[test]
    fn marks_alone_say_that_the_way_is_narrow() {
        let mut watch = NarrowWatch::new(&[], false, true);
        let answered: Vec<u32> = (1..=100).filter(|&long| watch.mark(from(1), &mark(long))).collect();
        // Counting begins at the first mark.
        assert_eq!(answered, [16, 49, 82]);
        assert_eq!(watch.found(), Some(NarrowPath { sender: from(1), length: 1400 }));
        assert_eq!(watch.found(), None, "it is told once");
    }

    #[test]
    fn a_long_datagram_now_and_then_is_enough() {
        let mut watch = NarrowWatch::new(&[], false, true);
        for long in 1..1000 {
            if long % 14 == 0 {
                watch.heard(from(1), &[0; 1400], 1400);
            }
            watch.heard(from(1), &[0; 1399], 1399);
            watch.heard(from(2), &[0; 1400], 1400);
            assert!(!watch.mark(from(1), &mark(long)), "{long}");
        }
        assert!(!watch.is_narrow());
    }

    #[test]
    fn a_way_that_becomes_narrow_is_found_too() {
        let mut watch = NarrowWatch::new(&[], false, true);
        for long in 1..1000 {
            watch.heard(from(1), &[0; 1400], 1400);
            assert!(!watch.mark(from(1), &mark(long)));
        }
        let found = (1000..2000).find(|&long| watch.mark(from(1), &mark(long)));
        assert_eq!(found, Some(1013));
    }

    #[test]
    fn who_comes_late_or_hears_nothing_sent_finds_nothing() {
        let mut watch = NarrowWatch::new(&[], false, true);
        for _ in 0..1000 {
            assert!(!watch.mark(from(1), &mark(500)), "nothing is sent");
        }
        assert!(!watch.mark(from(2), &mark(1_000_000)), "the first mark");
        let foreign = NarrowWatch::new(&["10.9.0.0/16".parse().expect("a prefix")], false, true);
        let mut watch = foreign;
        assert!((1..1000).all(|long| !watch.mark(from(1), &mark(long))), "it is not to be heard");
    }

    #[test]
    fn one_in_a_group_answers_some_marks_and_a_silent_one_none() {
        let answered = |group, answers| {
            let mut watch = NarrowWatch::new(&[], group, answers);
            let count = (1..=1000).filter(|&long| watch.mark(from(1), &mark(long))).count();
            assert!(watch.is_narrow());
            count
        };
        assert!((24..=30).contains(&answered(true, true)));
        assert_eq!(answered(false, false), 0);
    }

    #[test]
    fn no_loss_is_taken_for_a_narrow_way() {
        // A hundred receivers at each loss rate wait for ten thousand long datagrams each.
        let mut draws = 1_u64;
        let mut lost = |percent: u64| {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (draws >> 33) % 100 < percent
        };
        for percent in [1, 10, 30, 50, 70] {
            for _ in 0..100 {
                let mut watch = NarrowWatch::new(&[], false, true);
                for long in 1..10_000 {
                    if !lost(percent) {
                        watch.heard(from(1), &[0; 1400], 1400);
                    }
                    let marked = long <= 20 || long <= 340 && long % 8 == 0 || long % 64 == 0;
                    assert!(!(marked && !lost(percent) && watch.mark(from(1), &mark(long))), "{percent} %");
                }
            }
        }
    }

    #[test]
    fn senders_are_bounded() {
        let mut watch = NarrowWatch::new(&[], false, true);
        for port in 0..1000 {
            for long in 1..50 {
                let _ = watch.mark(from(port), &mark(long));
            }
        }
        assert!(watch.senders.len() <= SENDERS && watch.found.len() <= SENDERS);
    }

    #[test]
    fn batches_that_pass_hide_no_hop_that_drops_what_leaves_by_itself() {
        let (mut watch, batch) = (NarrowWatch::new(&[], false, true), vec![1; 20 * 1400]);
        let alone = |n: u32| [&n.to_be_bytes()[..], &[0; 1396]].concat();
        let mut answered = Vec::new();
        for n in 1..=40 {
            watch.heard(from(1), &batch, 1400);
            let mark = Mark { alone: digest(&alone(n)), ..mark(n * 21) };
            if watch.mark(from(1), &mark) {
                answered.push(n);
            }
        }
        // Counting begins at the first mark; the path is reported once.
        assert_eq!(answered, [16]);
        assert_eq!((watch.found().is_some(), watch.found()), (true, None));
        // Once a datagram that left alone has arrived, none counts as missed any more.
        let mut watch = NarrowWatch::new(&[], false, true);
        for n in 1..=1000 {
            watch.heard(from(1), &batch, 1400);
            if n == 10 {
                watch.heard(from(1), &alone(n), 1400);
            }
            assert!(!watch.mark(from(1), &Mark { alone: digest(&alone(n)), ..mark(n * 21) }), "{n}");
        }
    }
}
