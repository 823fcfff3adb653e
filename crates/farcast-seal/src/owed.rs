//! Who is to get the key of content by itself, and when: one after the other, at the sender's rate.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use farcast_core::{BitRate, Span, Time};

use crate::rounds::time_of;
use crate::wire::TO_ONE_KEY_OVERHEAD;

/// With headers of UDP and IP, which count where so little is sent.
const OCTETS: u64 = TO_ONE_KEY_OVERHEAD as u64 + 28;
/// Who is owed it, or got it, is not owed it again for so long, whatever it says: what goes one after the other may take
/// that long to get there, and who asks without end takes no more than 178 octets a second.
const AGAIN: Span = Span::from_millis(500);
/// How much sending time a late driver makes up for at once.
const CREDIT: Span = Span::from_millis(2);

/// Receivers, by their numbers, that have shown to lack the key of content. When many answer at once, what is for each of
/// them leaves one by one: all together would overflow what comes first on the way, and those who miss theirs would answer
/// again.
#[derive(Clone, Debug)]
pub struct Owed {
    rate: Option<BitRate>,
    next: Time,
    /// In the order in which they answered; of these count those that still wait.
    queue: VecDeque<u32>,
    waiting: BTreeSet<u32>,
    /// When each was owed it, or got it, last.
    last: BTreeMap<u32, Time>,
}

impl Owed {
    /// At `rate`; without one receivers set it.
    pub fn new(rate: Option<BitRate>) -> Self {
        Self {
            rate,
            next: Time::ZERO,
            queue: VecDeque::new(),
            waiting: BTreeSet::new(),
            last: BTreeMap::new(),
        }
    }

    /// An answer has shown that `receiver` lacks the key. Whether that is news: who waits already waits once, and to whom
    /// it has left lately it is on its way.
    pub fn push(&mut self, now: Time, receiver: u32) -> bool {
        let lately = self.last.get(&receiver).is_some_and(|at| now.since(*at) < AGAIN);
        let news = !lately && self.waiting.insert(receiver);
        if news {
            self.last.insert(receiver, now);
            // As many are forgotten as wait, at most.
            if self.queue.len() > 2 * self.waiting.len() {
                self.queue.retain(|one| *one != receiver && self.waiting.contains(one));
            }
            self.queue.push_back(receiver);
        }
        news
    }

    /// Something has left for `receiver`, with its key, or it needs none any more.
    pub fn settle(&mut self, receiver: u32) {
        self.waiting.remove(&receiver);
    }

    /// When the next one gets its key; [`Time::NEVER`] if nobody waits.
    pub fn due(&self) -> Time {
        if self.waiting.is_empty() { Time::NEVER } else { self.next }
    }

    /// Whose key leaves now, if one is due.
    pub fn next(&mut self, now: Time) -> Option<u32> {
        if now < self.due() {
            return None;
        }
        let waiting = &mut self.waiting;
        let next = core::iter::from_fn(|| self.queue.pop_front()).find(|one| waiting.remove(one));
        self.next = self.next.max(now - CREDIT) + time_of(self.rate, OCTETS);
        if let Some(receiver) = next {
            self.last.insert(receiver, now);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn each_gets_one_at_the_rate() {
        // 89 octets in a millisecond.
        let mut owed = Owed::new(BitRate::from_bps(89 * 8 * 1000));
        let ms = |ms: u64| Time::ZERO + Span::from_millis(1000 + ms);
        assert_eq!((owed.due(), owed.next(ms(0))), (Time::NEVER, None));
        let news = [7, 3, 7, 5, 9].map(|receiver| owed.push(ms(0), receiver));
        assert_eq!(news, [true, true, false, true, true]);
        owed.settle(5);
        // Two milliseconds may be made up for.
        assert_eq!([(); 4].map(|()| owed.next(ms(0))), [Some(7), Some(3), Some(9), None]);
        assert!(!owed.push(ms(0), 7), "it is on its way");
        assert!(!owed.push(ms(0), 5), "something else may have left for it just now");
        assert!(owed.push(ms(0), 8));
        assert_eq!((owed.due(), owed.next(ms(0))), (ms(1), None));
        assert_eq!((owed.next(ms(1)), owed.due()), (Some(8), Time::NEVER));
        let news = [(499, 7), (500, 7), (500, 8), (501, 7), (501, 8)].map(|(at, one)| owed.push(ms(at), one));
        assert_eq!(news, [false, true, false, false, true]);
    }

    #[test]
    fn whoever_comes_and_goes_takes_no_room() {
        let mut owed = Owed::new(None);
        (0..10).for_each(|n| assert!(owed.push(Time::ZERO, n)));
        for n in 1..1000 {
            owed.settle(4);
            assert!(owed.push(Time::ZERO + AGAIN * n, 4));
            assert!(!owed.push(Time::ZERO + AGAIN * n, 4));
        }
        assert!(owed.queue.len() <= 21, "{}", owed.queue.len());
        let mut order = Vec::new();
        let mut now = Time::ZERO + Span::from_secs(1);
        while owed.due() != Time::NEVER {
            now = now.max(owed.due());
            order.extend(owed.next(now));
        }
        order.sort_unstable();
        assert_eq!(order, (0..10).collect::<Vec<_>>());
    }
}
