//! Times at which single receivers get the content key: one after the other, at the sender's rate.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use farcast_core::{BitRate, Span, Time};

use crate::rounds::time_of;
use crate::wire::TO_ONE_KEY_OVERHEAD;

/// Length of the datagram in octets, with UDP and IP headers, which count for so small a datagram.
const OCTETS: u64 = TO_ONE_KEY_OVERHEAD as u64 + 28;
/// Minimum time between two grants of the key to one receiver, whatever it answers. Grants leave one by one, and may
/// take that long to arrive. The limit bounds a receiver that asks without end to 178 octets a second.
const AGAIN: Span = Span::from_millis(500);
/// Sending time that a late driver makes up for at once.
const CREDIT: Span = Span::from_millis(2);

/// Queue of receivers, by number, that have shown to lack the content key. When many answer at once, their datagrams
/// leave one by one. All together they would overflow the first queue on the path, and the receivers that miss theirs
/// would answer again.
#[derive(Clone, Debug)]
pub struct Owed {
    rate: Option<BitRate>,
    next: Time,
    /// Receivers in the order of their answers; only those in `waiting` still count.
    queue: VecDeque<u32>,
    waiting: BTreeSet<u32>,
    /// Time at which each receiver was last queued or last got the key.
    last: BTreeMap<u32, Time>,
}

impl Owed {
    /// Creates a queue with the sender's `rate`; without one, receivers set the rate.
    pub fn new(rate: Option<BitRate>) -> Self {
        Self {
            rate,
            next: Time::ZERO,
            queue: VecDeque::new(),
            waiting: BTreeSet::new(),
            last: BTreeMap::new(),
        }
    }

    /// Queues `receiver`, whose answer has shown that it lacks the key. Returns `false` if it is already queued, or if
    /// a grant has left for it lately.
    pub fn push(&mut self, now: Time, receiver: u32) -> bool {
        let lately = self.last.get(&receiver).is_some_and(|at| now.since(*at) < AGAIN);
        let news = !lately && self.waiting.insert(receiver);
        if news {
            self.last.insert(receiver, now);
            // Drop entries of receivers that no longer wait. At most as many of them accumulate as there are waiting
            // receivers.
            if self.queue.len() > 2 * self.waiting.len() {
                self.queue.retain(|one| *one != receiver && self.waiting.contains(one));
            }
            self.queue.push_back(receiver);
        }
        news
    }

    /// Removes `receiver` from the queue: a datagram with the key has left for it, or it needs no key any more.
    pub fn settle(&mut self, receiver: u32) {
        self.waiting.remove(&receiver);
    }

    /// Returns the time at which the next receiver gets its key; [`Time::NEVER`] if none waits.
    pub fn due(&self) -> Time {
        if self.waiting.is_empty() { Time::NEVER } else { self.next }
    }

    /// Returns the receiver whose key leaves now, if one is due.
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
