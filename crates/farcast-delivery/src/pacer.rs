//! When the next datagram may leave.

use farcast_core::{BitRate, Span, Time};

/// A rate that counts every bit of a datagram with its headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RatePace {
    /// The rate.
    pub rate: BitRate,
    /// Bytes of UDP and IP headers counted with each datagram.
    pub overhead: u16,
    /// How much sending time a late driver may make up for at once.
    pub credit: Span,
    /// Bytes that the link sends as one: each datagram is counted in whole ones. 1 for a link without them.
    pub granule: u16,
}

/// Keeps the rate: each datagram moves the next departure by the time that its bits take.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// None where something else than a rate limits what leaves.
    pace: Option<RatePace>,
    next: Time,
    /// Sending time of control messages that left out of turn.
    debt: Span,
    /// What a segment takes where there is no rate, and its UDP payload: control messages are not counted there.
    segment: (Span, usize),
}

/// How much sending time a late driver may make up for at once where there is no rate.
const CREDIT: Span = Span::from_millis(2);

impl Pacer {
    /// Keeps `pace`; without one, segments take what [`pace_segments`](Self::pace_segments) says, and at first no time.
    pub fn new(pace: Option<RatePace>) -> Self {
        Self { pace, next: Time::ZERO, debt: Span::ZERO, segment: (Span::ZERO, 0) }
    }

    /// The first time that something may leave.
    pub fn next(&self) -> Time {
        self.next
    }

    /// The time that a datagram with `len` bytes of UDP payload takes; zero without a rate.
    pub fn span(&self, len: usize) -> Span {
        match self.pace {
            Some(RatePace { rate, overhead, granule, .. }) => {
                rate.time_of_bytes((len as u64 + u64::from(overhead)).next_multiple_of(u64::from(granule)))
            }
            None if len >= self.segment.1 => self.segment.0,
            None => Span::ZERO,
        }
    }

    /// Lets datagrams of `len` bytes or more of UDP payload take `span`, where there is no rate.
    pub fn pace_segments(&mut self, span: Span, len: usize) {
        self.segment = (span, len);
    }

    /// Forgets sending time that passed unused, but for the credit: it is not made up for in one burst.
    pub fn settle(&mut self, now: Time) {
        let credit = self.pace.map_or(CREDIT, |pace| pace.credit);
        self.next = self.next.max(now - credit);
    }

    /// Begins to send: nothing is owed for the time before `now`.
    pub fn begin(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// Begins to send at `now`, whatever was planned.
    pub fn restart(&mut self, now: Time) {
        self.next = now;
    }

    /// Notes that something that takes `span` left out of turn; it counts at the next block, so that what arrives
    /// while a run is in flight does not move the rest of the run.
    pub fn owe(&mut self, span: Span) {
        self.debt = self.debt + span;
    }

    /// Makes the next departure wait for what left out of turn.
    pub fn pay_debt(&mut self) {
        self.next += core::mem::take(&mut self.debt);
    }

    /// Keeps `rate` from `now` on; what has left already and is not paid for yet is paid for at it. Where there is no
    /// rate there is none afterwards either.
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

    /// The time that so many datagrams of so many octets of UDP payload in all take that somebody else sends under the
    /// same rate; none without one. Octets of no datagram are headers of others.
    pub fn span_beside(&self, datagrams: u64, octets: u64) -> Span {
        let Some(pace) = self.pace else { return Span::ZERO };
        match octets.checked_div(datagrams) {
            Some(each) => self.span(each as usize) * datagrams,
            None => pace.rate.time_of_bytes(octets),
        }
    }

    /// Accounts for something that takes `span` to send.
    pub fn charge(&mut self, span: Span) {
        self.next += span;
    }

    /// How many datagrams that take `span` each depart before `until`; at least 1, the one that is due.
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
