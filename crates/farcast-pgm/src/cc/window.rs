//! Window and tokens (section 2.2).
//!
//! The draft does not say what becomes of the token of a lost packet, or of a repair that the acker does not need: no
//! acknowledgement returns it. Each such token would reduce the packets under way for good. So a lost packet returns
//! its token when the loss is found, and a repair a round trip after it left.

use alloc::collections::VecDeque;

use farcast_core::{Span, Time};

use crate::message::Sqn;
use crate::sqn::Place;

/// Number of acknowledged later packets after which an unacknowledged one counts as lost.
const BEHIND: usize = 3;
/// Number of packets that an acknowledgement covers.
const BITS: u32 = 32;
/// The most packets that are tracked.
const MOST_UNDER_WAY: usize = 1 << 16;

/// Window (packets that may be under way) and tokens (packets that may leave).
#[derive(Clone, Debug)]
pub struct Window {
    /// `W`, in packets.
    size: f64,
    /// `T`: packets that may leave at once. Below zero after a loss: that many acknowledgements release no packet.
    tokens: f64,
    /// Window size below which each acknowledged packet adds one packet to the window.
    threshold: f64,
    /// Largest window, in packets.
    most: f64,
    /// First number in `under_way`.
    base: Place,
    /// Acknowledgement of each packet from `base` on.
    under_way: VecDeque<bool>,
    /// Number of these that were neither acknowledged nor found to be lost.
    open: u32,
    /// Times of repairs whose tokens were not returned yet.
    repairs: VecDeque<Time>,
    /// The highest acknowledged numbers, highest first.
    highest: [Option<Place>; BEHIND],
    /// Place before which every packet was judged.
    judged: Place,
    /// Place at which the window was suspended by a loss. It keeps its size until a packet from there on is
    /// acknowledged.
    suspended: Option<Place>,
}

impl Window {
    /// Creates a window of one packet, whose number will be `first`; slow start up to `threshold`.
    pub(crate) fn new(first: Place, threshold: f64, most: f64) -> Self {
        Self {
            size: 1.0,
            tokens: 1.0,
            threshold,
            most,
            base: first,
            under_way: VecDeque::new(),
            open: 0,
            repairs: VecDeque::new(),
            highest: [None; BEHIND],
            judged: first,
            suspended: None,
        }
    }

    /// Returns the number of packets that may be under way.
    pub fn size(&self) -> f64 {
        self.size
    }

    /// Returns the number of packets that may leave. If it is below zero, so many acknowledgements must come first.
    pub fn tokens(&self) -> f64 {
        self.tokens
    }

    /// Returns `true` if a packet may leave.
    pub fn may_send(&self) -> bool {
        self.tokens >= 1.0
    }

    /// Returns `true` if a packet may leave and no answer is awaited.
    pub(crate) fn is_idle(&self) -> bool {
        self.open == 0 && self.may_send()
    }

    /// Notes that a packet leaves again, at `now`.
    pub(crate) fn repaired(&mut self, now: Time) {
        self.tokens -= 1.0;
        self.repairs.push_back(now);
    }

    /// Returns the tokens of repairs that left longer ago than `rtt`.
    pub(crate) fn pass(&mut self, now: Time, rtt: Span) {
        while self.repairs.pop_front_if(|at| now.since(*at) >= rtt).is_some() {
            self.tokens = (self.tokens + 1.0).min(self.size);
        }
    }

    /// Notes that `place` leaves for the first time.
    pub(crate) fn sent(&mut self, place: Place) {
        self.tokens -= 1.0;
        let end = self.base.0 + self.under_way.len() as u64;
        if place.0 < end {
            return;
        }
        if place.0 > end || self.under_way.len() >= MOST_UNDER_WAY {
            // Earlier packets are forgotten.
            self.under_way.clear();
            (self.base, self.judged, self.open) = (place, self.judged.max(place), 0);
        }
        self.under_way.push_back(false);
        self.open += 1;
    }

    /// Returns the place of the next packet that leaves for the first time.
    fn next(&self) -> Place {
        self.base.plus(self.under_way.len() as u32)
    }

    /// Takes an acknowledgement: the highest number that came, and a bitmap of the 32 numbers up to it. Returns `true`
    /// if it has news.
    pub(crate) fn acknowledged(&mut self, highest: Sqn, bitmap: u32) -> bool {
        let highest = self.next().near(highest);
        if highest >= self.next() {
            return false;
        }
        let (mut new, mut is_news) = (0, false);
        for bit in (0..BITS).rev().filter(|bit| bitmap & 1 << bit != 0) {
            let place = Place(highest.0 - u64::from(bit));
            let index = place.0.checked_sub(self.base.0);
            let Some(known) = index.and_then(|index| self.under_way.get_mut(index as usize)) else {
                continue;
            };
            if !core::mem::replace(known, true) {
                // A packet that was thought to be lost has already returned its token.
                new += u32::from(place >= self.judged);
                is_news = true;
                self.note_highest(place);
            }
        }
        self.open -= new;
        let lost = self.judge(highest);
        self.forget(highest);
        if self.suspended.is_some_and(|from| highest >= from) {
            self.suspended = None;
        }
        self.credit(new, lost);
        is_news
    }

    fn note_highest(&mut self, place: Place) {
        let mut place = Some(place);
        for kept in &mut self.highest {
            if place > *kept {
                core::mem::swap(kept, &mut place);
            }
        }
    }

    /// Returns the number of newly lost packets. A packet is lost if three later ones are acknowledged, or if no
    /// acknowledgement can cover it any more.
    fn judge(&mut self, highest: Place) -> u32 {
        let old = Place((highest.0 + 1).saturating_sub(BITS.into()));
        let before = self.highest[BEHIND - 1].unwrap_or(self.judged).max(old).min(self.next());
        let before_open = self.open;
        while self.judged < before {
            let index = self.judged.0.checked_sub(self.base.0);
            let lost = index.and_then(|index| self.under_way.get(index as usize)) == Some(&false);
            self.open -= u32::from(lost);
            self.judged = self.judged.next();
        }
        before_open - self.open
    }

    /// Forgets packets that are too old for any acknowledgement.
    fn forget(&mut self, highest: Place) {
        while self.base.0 + u64::from(BITS) <= highest.0 && self.under_way.pop_front().is_some() {
            self.base = self.base.next();
        }
    }

    fn credit(&mut self, new: u32, lost: u32) {
        let mut new = f64::from(new);
        self.tokens += f64::from(lost);
        if self.suspended.is_some() {
            // The window keeps its size, but each packet that has left the network lets another in.
            self.tokens += new;
        } else if lost > 0 {
            self.tokens += new - self.size / 2.0;
            self.size = (self.size / 2.0).max(1.0);
            self.suspended = Some(self.next());
        } else {
            if self.size < self.threshold {
                let fast = new.min(self.threshold - self.size);
                new -= fast;
                self.tokens += 2.0 * fast;
                self.size += fast;
            }
            self.tokens += new * (1.0 + 1.0 / self.size);
            self.size += new / self.size;
        }
        // Growth beyond the ceiling releases nothing; otherwise more and more packets would be under way.
        let beyond = (self.size - self.most).max(0.0);
        self.size -= beyond;
        self.tokens = (self.tokens - beyond).min(self.size);
    }

    /// Takes the first answer of a receiver: one packet may leave, so that it can be acknowledged.
    pub(crate) fn begin(&mut self) {
        self.tokens = (self.tokens + 1.0).min(self.size);
    }

    /// Starts anew, since no acknowledgement came in time. Packets under way no longer count.
    pub(crate) fn restart(&mut self) {
        let next = self.next();
        (self.size, self.tokens) = (1.0, 1.0);
        (self.base, self.judged) = (next, next);
        self.under_way.clear();
        self.open = 0;
        self.repairs.clear();
        self.highest = [None; BEHIND];
        self.suspended = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Place = Place(1 << 32);

    /// Returns a window of `size` whose packets, numbered from 0, are all under way.
    fn full(size: u32) -> Window {
        let mut window = Window::new(FIRST, 4.0, 1000.0);
        (window.size, window.tokens) = (size.into(), size.into());
        (0..size).for_each(|n| window.sent(FIRST.plus(n)));
        assert!(window.tokens.abs() < 1e-9 && !window.may_send());
        window
    }

    /// Acknowledges everything up to `highest` except `without`.
    fn ack(window: &mut Window, highest: u32, without: &[u32]) -> bool {
        let is_there = |bit: u32| highest < bit || !without.contains(&(highest - bit));
        let bitmap = (0..32).filter(|&bit| is_there(bit)).fold(0, |map, bit| map | 1 << bit);
        window.acknowledged(Sqn(highest), bitmap)
    }

    #[test]
    fn it_grows_by_one_a_packet_and_then_by_one_a_window() {
        let mut window = Window::new(FIRST, 4.0, 1000.0);
        let mut next = 0;
        let mut sizes = std::vec::Vec::new();
        // Rounds: everything that may leave does, and is acknowledged one by one.
        for _ in 0..6 {
            let first = next;
            while window.may_send() {
                window.sent(FIRST.plus(next));
                next += 1;
            }
            sizes.push(next - first);
            (first..next).for_each(|sqn| assert!(ack(&mut window, sqn, &[])));
        }
        assert_eq!(sizes, [1, 2, 4, 4, 5, 6]);
    }

    #[test]
    fn a_loss_halves_it_once_a_round_trip_and_lets_half_of_the_acknowledgements_let_something_leave() {
        let mut window = full(16);
        assert!(ack(&mut window, 0, &[]));
        window.sent(FIRST.plus(16));
        let before = window.size;
        // 1 is lost: two behind it do not say so yet, the third does.
        ack(&mut window, 2, &[1]);
        ack(&mut window, 3, &[1]);
        assert!(window.size > before);
        let (size, tokens) = (window.size, window.tokens);
        ack(&mut window, 4, &[1]);
        assert!((window.size - size / 2.0).abs() < 1e-9);
        assert!(
            (window.tokens - (tokens + 2.0 - size / 2.0)).abs() < 1e-9,
            "for what came and what was lost"
        );
        // Another loss of the same round trip changes nothing but that it is not acknowledged.
        for sqn in 6..=16 {
            ack(&mut window, sqn, &[1, 5]);
        }
        assert!((window.size - size / 2.0).abs() < 1e-9);
        // Eleven came since, and one more was lost: half a window may leave.
        assert!((window.tokens - (tokens + 2.0 - size / 2.0 + 12.0).min(size / 2.0)).abs() < 1e-9);
        // What left afterwards is acknowledged: it grows again.
        window.sent(FIRST.plus(17));
        ack(&mut window, 17, &[1, 5]);
        assert!(window.size > size / 2.0);
    }

    #[test]
    fn acknowledgements_that_are_lost_cost_nothing_within_32_packets() {
        let (mut one, mut other) = (full(20), full(20));
        for sqn in 0..20 {
            ack(&mut one, sqn, &[]);
        }
        ack(&mut other, 19, &[]);
        assert!((one.tokens - other.tokens).abs() < 1.0 && (one.size - other.size).abs() < 0.1);
        // And are counted once.
        assert!(!ack(&mut other, 19, &[]));
        // Beyond that nobody can tell: it counts as lost.
        let mut long = full(60);
        ack(&mut long, 59, &[]);
        assert!((long.size - 30.0).abs() < 1e-9, "{}", long.size);
    }

    #[test]
    fn what_was_never_sent_cannot_be_acknowledged() {
        let mut window = full(4);
        let before = (window.size, window.tokens);
        assert!(
            !ack(&mut window, 4, &[]) && !ack(&mut window, 1 << 31, &[]) && !ack(&mut window, u32::MAX, &[])
        );
        assert_eq!((window.size, window.tokens), before);
    }

    #[test]
    fn no_more_is_under_way_than_the_ceiling_however_long_it_goes_on() {
        let mut window = full(8);
        window.most = 8.0;
        let mut next = 8;
        for sqn in 0..1000 {
            ack(&mut window, sqn, &[]);
            while window.may_send() {
                window.sent(FIRST.plus(next));
                next += 1;
            }
            assert!(next - (sqn + 1) <= 8, "{} under way at {sqn}", next - (sqn + 1));
        }
        assert!(next > 1000);
    }

    #[test]
    fn it_has_a_ceiling_and_begins_anew() {
        let mut window = full(8);
        window.most = 8.0;
        for sqn in 0..8 {
            ack(&mut window, sqn, &[]);
        }
        assert!(window.size <= 8.0 && window.tokens <= 8.0);
        window.restart();
        assert!((window.size - 1.0).abs() < 1e-9 && window.may_send());
        assert!(!ack(&mut window, 7, &[]), "late answers are not counted");
    }
}
