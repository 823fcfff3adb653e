//! Departure times of datagrams.

use farcast_core::{BitRate, Span, Time};

/// Rate limit that counts every bit of a datagram with its headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RatePace {
    /// Rate limit.
    pub rate: BitRate,
    /// Bytes of UDP and IP headers, added to each datagram.
    pub overhead: u16,
    /// Sending time that a late driver may make up for at once.
    pub credit: Span,
    /// Size in bytes of the link's transmission unit. Each datagram is rounded up to whole units; 1 for a link without
    /// them.
    pub granule: u16,
}

/// Schedule of departures: each datagram moves the next departure by the time that its bits take.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Rate limit; `None` where something other than a rate limits what leaves.
    pace: Option<RatePace>,
    next: Time,
    /// Sending time of control messages that left out of turn.
    debt: Span,
    /// Time for one segment where there is no rate, and its UDP payload; shorter datagrams are control messages and
    /// take no time.
    segment: (Span, usize),
}

/// Sending time that a late driver may make up for at once where there is no rate.
const CREDIT: Span = Span::from_millis(2);

impl Pacer {
    /// Creates a pacer with the rate limit `pace`. Without one, datagrams take the time set by
    /// [`pace_segments`](Self::pace_segments), initially zero.
    pub fn new(pace: Option<RatePace>) -> Self {
        Self { pace, next: Time::ZERO, debt: Span::ZERO, segment: (Span::ZERO, 0) }
    }

    /// Returns the earliest time at which something may leave.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Returns the time that a datagram with `len` bytes of UDP payload takes. Without a rate that is the time set by
    /// [`pace_segments`](Self::pace_segments), or zero.
    pub fn span(&self, len: usize) -> Span {
        match self.pace {
            Some(RatePace { rate, overhead, granule, .. }) => {
                rate.time_of_bytes((len as u64 + u64::from(overhead)).next_multiple_of(u64::from(granule)))
            }
            None if len >= self.segment.1 => self.segment.0,
            None => Span::ZERO,
        }
    }

    /// Sets the time `span` for datagrams with `len` bytes or more of UDP payload. It applies where there is no rate.
    pub fn pace_segments(&mut self, span: Span, len: usize) {
        self.segment = (span, len);
    }

    /// Discards unused sending time, except for the credit, so that it is not made up for in one burst.
    pub fn settle(&mut self, now: Time) {
        let credit = self.pace.map_or(CREDIT, |pace| pace.credit);
        self.next = self.next.max(now - credit);
    }

    /// Starts the schedule at `now` or at the planned departure, whichever is later.
    pub fn begin(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// Starts the schedule at `now`, whatever was planned.
    pub fn restart(&mut self, now: Time) {
        self.next = now;
    }

    /// Records a message that takes `span` and left out of turn. Its time is charged at the next block, so that a
    /// message that arrives while a run is in flight does not move the rest of the run.
    pub fn owe(&mut self, span: Span) {
        self.debt = self.debt + span;
    }

    /// Delays the next departure by the time of the messages that left out of turn.
    pub fn pay_debt(&mut self) {
        self.next += core::mem::take(&mut self.debt);
    }

    /// Changes the rate to `rate` at `now`. Octets that have left and are not yet paid for are charged at the new rate.
    /// A pacer without a rate stays without one.
    pub fn set_rate(&mut self, now: Time, rate: BitRate) {
        let Some(pace) = &mut self.pace else { return };
        let before = core::mem::replace(&mut pace.rate, rate);
        let owed = self.next.since(now);
        if before != rate && !owed.is_zero() {
            let owed = u128::from(owed.as_nanos()) * u128::from(before.as_bps());
            let owed = owed.div_ceil(u128::from(rate.as_bps()));
            self.next = now + Span::from_nanos(u64::try_from(owed).unwrap_or(u64::MAX));
        }
    }

    /// Returns the time that `datagrams` with `octets` of UDP payload in all take if another sender sends them under
    /// the same rate. Without a rate the time is zero. If `datagrams` is 0, the octets are additional headers of other
    /// datagrams.
    pub fn span_beside(&self, datagrams: u64, octets: u64) -> Span {
        let Some(pace) = self.pace else { return Span::ZERO };
        match octets.checked_div(datagrams) {
            Some(each) => self.span(each as usize) * datagrams,
            None => pace.rate.time_of_bytes(octets),
        }
    }

    /// Charges `span` of sending time.
    pub fn charge(&mut self, span: Span) {
        self.next += span;
    }

    /// Returns the number of datagrams of `span` each that depart before `until`; at least 1, for the datagram that is
    /// due.
    pub fn departures_before(&self, until: Time, span: Span) -> u32 {
        if span.is_zero() {
            return u32::MAX;
        }
        let count = until.since(self.next).as_nanos().div_ceil(span.as_nanos());
        u32::try_from(count).unwrap_or(u32::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bps: u64) -> BitRate {
        BitRate::from_bps(bps).expect("positive")
    }

    #[test]
    fn what_others_send_takes_its_time() {
        let ms = Span::from_millis;
        let pacer = Pacer::new(Some(RatePace { rate: rate(8000), overhead: 28, credit: ms(2), granule: 1 }));
        // 128 octets each, with their headers, at 1000 in a second.
        assert_eq!((pacer.span_beside(3, 300), pacer.span_beside(0, 0)), (ms(3 * 128), Span::ZERO));
        assert_eq!(pacer.span_beside(0, 20), ms(20));
        let mut unpaced = Pacer::new(None);
        unpaced.pace_segments(ms(1), 100);
        assert_eq!(unpaced.span_beside(1, 1400), Span::ZERO);
    }

    #[test]
    fn what_is_owed_is_paid_at_the_new_rate() {
        let (begin, ms) = (Time::ZERO + Span::from_secs(1), Span::from_millis);
        let mut pacer =
            Pacer::new(Some(RatePace { rate: rate(8000), overhead: 0, credit: ms(2), granule: 1 }));
        pacer.begin(begin);
        pacer.charge(pacer.span(1000));
        assert_eq!(pacer.next(), begin + ms(1000));
        // A quarter of a thousand octets has been paid for; the rest takes a tenth of the time.
        pacer.set_rate(begin + ms(250), rate(80_000));
        assert_eq!((pacer.next(), pacer.span(1000)), (begin + ms(325), ms(100)));
        pacer.set_rate(begin + ms(300), rate(8000));
        assert_eq!(pacer.next(), begin + ms(550));
        // Nothing is owed.
        pacer.set_rate(begin + ms(600), rate(1));
        assert_eq!(pacer.next(), begin + ms(550));
    }
}
