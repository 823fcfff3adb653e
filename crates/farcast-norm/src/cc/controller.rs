//! Rate of a sender (RFC 5740 §5.5.2, RFC 4654 §4).

use alloc::vec::Vec;

use farcast_core::engine::Reject;
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::RateControl;

use super::candidates::{Candidate, Candidates};
use crate::message::{Feedback, NodeId, ProbedNode, cc};
use crate::quantise::Rate;

/// Number of probes that the limiting receiver may leave unanswered. The rate is halved for each further one.
const PATIENCE: u32 = 4;
/// Age of a probe, in probes, beyond which its answers are refused.
const OLDEST: u16 = 64;
/// Least round trip. Shorter ones are taken for this: in a millisecond a host cannot adjust its rate.
const SHORTEST: Span = Span::from_millis(1);
/// Least time for which the rate is halved once while there is nothing to send (the minimum of RFC 6298). The time is
/// two round trips if that is longer.
const TIME_OUT: Span = Span::from_secs(1);
/// Longest interval between probes while no receiver limits.
const LONGEST: Span = Span::from_secs(30);

/// Bounds of a sender's rate, counted like a fixed rate: datagrams with all their headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Lower bound.
    pub least: BitRate,
    /// Upper bound.
    pub most: BitRate,
}

/// Report of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Receiver.
    pub node: NodeId,
    /// Round trip that the same message shows; `None` if it shows none.
    pub trip: Option<Span>,
    /// Congestion feedback.
    pub feedback: Feedback,
}

/// Rate control of a sender by NORM-CC.
///
/// The rate starts with a segment a round trip, one a second at most, and doubles until a receiver loses something.
/// From then on it follows the receiver that limits it: down at once, up by a segment a round trip.
#[derive(Clone, Debug)]
pub struct NormCc {
    bounds: Limits,
    /// Bounds in octets per second of messages, as all rates in this type.
    limits: (f64, f64),
    /// Octets of a segment's message, without and with headers of UDP and IP.
    segment: (f64, f64),
    /// Longest round trip that is believed.
    longest: Span,
    robust: u32,
    grtt: Span,
    rate: f64,
    /// `true` if no receiver has lost anything yet.
    slow_start: bool,
    /// Rate up to which the rate doubles in a round trip. It is a part of the rate before answers failed or before
    /// there was nothing to send.
    known_good: f64,
    candidates: Candidates,
    /// Sequence number of the last probe.
    sequence: Option<u16>,
    /// Time at which the rate was last raised, or could have been.
    raised: Time,
    /// Beginning of the time with nothing to send; it moves on with each halving of the rate.
    idle: Option<Time>,
    /// Interval between probes while no receiver limits.
    interval: Span,
    until: Time,
}

/// Round trips that a sender begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrips {
    /// GRTT, as far as it is known.
    pub grtt: Span,
    /// Longest round trip that is believed.
    pub longest: Span,
}

impl NormCc {
    /// Makes the rate control of a sender of segments in messages of `segment` octets, with `overhead` more octets of
    /// UDP and IP. A receiver that leaves more than `robust` probes unanswered is forgotten.
    pub fn new(bounds: Limits, segment: usize, overhead: u16, trips: RoundTrips, robust: u32) -> Self {
        let (grtt, longest) = (trips.grtt, trips.longest.max(SHORTEST));
        let size = segment.max(1) as f64;
        let whole = size + f64::from(overhead);
        let octets = |rate: BitRate| rate.as_bps() as f64 / 8.0 * size / whole;
        let limits = (octets(bounds.least.min(bounds.most)), octets(bounds.most));
        let first = size / grtt.max(Span::from_secs(1)).as_secs_f64();
        Self {
            bounds: Limits { least: bounds.least.min(bounds.most), most: bounds.most },
            limits,
            segment: (size, whole),
            longest,
            robust,
            grtt,
            rate: first.clamp(limits.0, limits.1),
            slow_start: true,
            known_good: 0.0,
            candidates: Candidates::default(),
            sequence: None,
            raised: Time::ZERO,
            idle: None,
            interval: Span::ZERO,
            until: Time::ZERO,
        }
    }

    /// Returns the receiver that limits the sender.
    pub fn limiting(&self) -> Option<NodeId> {
        self.candidates.limiting().map(|limiting| limiting.node)
    }

    /// Returns `true` if no receiver has lost anything yet.
    pub fn is_starting(&self) -> bool {
        self.slow_start
    }

    /// Prepares probe `sequence`, which leaves at `now`: returns the rate and the receivers that it contains. `grtt` is
    /// the current GRTT.
    pub(crate) fn probe(&mut self, now: Time, sequence: u16, grtt: Span) -> (Rate, Vec<ProbedNode>) {
        self.grtt = grtt;
        self.advance(now);
        self.sequence = Some(sequence);
        (Rate::of(self.rate), self.candidates.list())
    }

    /// Notes that there is nothing to send from `now` on.
    pub(crate) fn rest(&mut self, now: Time) {
        self.idle.get_or_insert(now);
    }

    /// Notes that there is something to send again.
    pub(crate) fn resume(&mut self, now: Time) {
        if self.idle.is_some() {
            self.decay(now);
            (self.idle, self.raised) = (None, now);
            self.hasten(now);
        }
    }

    /// Returns the round trip that the rate control uses, in seconds.
    fn trip(&self) -> f64 {
        self.candidates.limiting().map_or(self.grtt.as_secs_f64(), |limiting| limiting.trip)
    }

    /// Halves the rate for each stretch in which nothing was sent, because the capacity of the path is then not known.
    ///
    /// DEVIATION: RFC 5740 §5.5.2 halves it for each round trip. A sender pauses after each round of repairs for
    /// several GRTTs, to hear requests, and would crawl through the next round. So it does as TCP, which validates its
    /// window for each time-out (RFC 2861).
    fn decay(&mut self, now: Time) {
        let Some(since) = self.idle else { return };
        let stretch = Span::from_secs_f64(self.trip() * 2.0).max(TIME_OUT);
        let stretches = now.since(since).as_nanos() / stretch.as_nanos();
        if stretches == 0 {
            return;
        }
        // The path has carried this rate once, so the rate may rise to it fast.
        self.known_good = self.known_good.max(self.rate);
        let first = (self.segment.0 / self.trip().max(1.0)).min(self.rate);
        let halved = self.rate * libm::exp2(-(stretches.min(64) as f64));
        self.rate = halved.max(first).max(self.limits.0);
        self.idle = Some(since + stretch * stretches);
    }

    /// Halves the rate because the limiting receiver does not answer: probes, data or answers are lost, and perhaps all
    /// of them.
    fn back_off(&mut self) {
        self.slow_start = false;
        self.known_good = self.known_good.max(self.rate / 2.0);
        self.rate = (self.rate / 2.0).max(self.limits.0);
    }

    /// Returns the time until the next probe: a round trip of the limiting receiver, but at least the time of a
    /// segment.
    fn pause(&mut self) -> Span {
        match self.candidates.limiting() {
            Some(limiting) if self.idle.is_none() => {
                self.interval = Span::ZERO;
                Span::from_secs_f64(limiting.trip.max(self.segment.0 / self.rate)).min(LONGEST)
            }
            _ => {
                self.interval = (self.interval * 2).clamp(self.grtt.min(LONGEST), LONGEST);
                self.interval
            }
        }
    }

    /// Brings the next probe forward, because another receiver limits since `now` or there is something to send again.
    fn hasten(&mut self, now: Time) {
        self.interval = Span::ZERO;
        let pause = self.pause();
        self.until = self.until.min(now + pause);
    }

    /// Adjusts the rate to a report of the limiting receiver.
    fn follow(&mut self, now: Time) {
        let Some(&Candidate { rate, start, trip, .. }) = self.candidates.limiting() else { return };
        let target = rate.clamp(self.limits.0, self.limits.1);
        if self.slow_start && start {
            // Once a GRTT, so that the answers of all receivers are to this rate.
            if now.since(self.raised) >= self.grtt {
                self.raised = now;
                self.rate = target.clamp(self.rate / 2.0, self.rate * 2.0).max(self.limits.0);
            }
            return;
        }
        self.slow_start = false;
        if target <= self.rate {
            // A lower rate shows the capacity of the path.
            (self.rate, self.raised, self.known_good) = (target, now, 0.0);
            return;
        }
        if self.idle.is_some() {
            return;
        }
        let trips = (now.since(self.raised).as_secs_f64() / trip).min(1.0);
        let step = self.segment.0 / trip * trips;
        let doubled = (self.rate * (1.0 + trips)).min(self.known_good);
        self.rate = (self.rate + step).max(doubled).min(target);
        self.raised = now;
    }

    /// Returns the rate that a receiver with this feedback can take, in octets per second.
    fn borne(&self, trip: Span, feedback: &Feedback) -> f64 {
        let said = feedback.rate.bytes_per_second();
        if feedback.flags & (cc::RTT | cc::START) != 0 {
            return said;
        }
        // The receiver has used the GRTT; by the equation the rate is inverse to the round trip.
        let scaled = said * feedback.rtt.span().as_secs_f64() / trip.as_secs_f64();
        scaled.min(said.max(self.rate))
    }
}

impl RateControl for NormCc {
    type Report = Report;

    fn report(&mut self, now: Time, report: &Report) -> Result<(), Reject> {
        let Report { node, trip, feedback } = *report;
        let behind = self.sequence.map(|sequence| sequence.wrapping_sub(feedback.sequence));
        if behind.is_none_or(|behind| behind > OLDEST) {
            return Err(Reject::OutOfRange);
        }
        if feedback.flags & cc::LEAVE != 0 {
            self.candidates.remove(node);
            self.hasten(now);
            return Ok(());
        }
        let known = self.candidates.known(node);
        if known.is_some_and(|known| feedback.sequence.wrapping_sub(known.sequence).cast_signed() < 0) {
            return Err(Reject::Duplicate);
        }
        let trip = trip.or(known.map(|known| Span::from_secs_f64(known.trip))).ok_or(Reject::Inconsistent)?;
        let trip = trip.clamp(SHORTEST, self.longest);
        let candidate = Candidate {
            node,
            trip: trip.as_secs_f64(),
            rate: self.borne(trip, &feedback),
            start: feedback.flags & cc::START != 0,
            sequence: feedback.sequence,
            unanswered: 0,
        };
        if candidate.start && candidate.rate < 1.0 {
            // The receiver has not measured anything yet, but is to learn its round trip.
            self.candidates.tell(&candidate);
            return Ok(());
        }
        let before = self.limiting();
        if self.candidates.heard(&candidate) {
            self.follow(now);
        }
        if self.limiting() != before && self.idle.is_none() {
            self.hasten(now);
        }
        Ok(())
    }

    fn advance(&mut self, now: Time) {
        if now < self.until {
            return;
        }
        self.decay(now);
        if self.candidates.age(self.robust) {
            self.interval = Span::ZERO;
        }
        let unanswered = self.candidates.limiting().map_or(0, |limiting| limiting.unanswered);
        if unanswered > PATIENCE && self.idle.is_none() {
            self.back_off();
        }
        self.until = now + self.pause();
    }

    fn rate(&self) -> BitRate {
        let (size, whole) = self.segment;
        let Limits { least, most } = self.bounds;
        let rate = BitRate::from_bps(libm::round(self.rate * whole / size * 8.0) as u64);
        rate.map_or(least, |rate| rate.clamp(least, most))
    }

    fn until(&self) -> Time {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantise::{Loss, Rtt};

    const MS: Span = Span::from_millis(1);

    fn bits(bps: u64) -> BitRate {
        BitRate::from_bps(bps).expect("positive")
    }

    /// Controller without headers, whose probes leave when they are due.
    struct Desk {
        cc: NormCc,
        now: Time,
        probe: u16,
    }

    impl Desk {
        fn new() -> Self {
            let limits = Limits { least: bits(8000), most: bits(80_000_000) };
            let cc = NormCc::new(limits, 1000, 0, RoundTrips { grtt: MS * 500, longest: MS * 10_000 }, 20);
            let mut desk = Self { cc, now: Time::ZERO, probe: 0 };
            desk.cc.probe(desk.now, 0, MS * 500);
            desk
        }

        /// Sends the next probe when it is due.
        fn next(&mut self) -> Vec<ProbedNode> {
            self.now = self.cc.until();
            self.probe += 1;
            self.cc.probe(self.now, self.probe, MS * 500).1
        }

        /// Reports an answer of `node` to the last probe with a rate in octets per second; its round trip is 100 ms.
        fn hear(&mut self, node: u32, flags: u8, rate: f64) {
            let feedback = Feedback {
                sequence: self.probe,
                flags,
                rtt: Rtt::of(MS * 500),
                loss: Loss(0),
                rate: Rate::of(rate),
            };
            let report = Report { node: NodeId(node), trip: Some(MS * 100), feedback };
            self.cc.report(self.now, &report).expect("it makes sense");
        }

        fn rate(&self) -> u64 {
            self.cc.rate().as_bps() / 8
        }
    }

    fn near(value: u64, expected: u64) {
        assert!(value.abs_diff(expected) * 200 < expected, "{value} of {expected}");
    }

    #[test]
    fn it_starts_with_a_segment_a_second_and_doubles_once_a_round_trip_of_the_group() {
        let mut desk = Desk::new();
        assert_eq!(desk.rate(), 1000);
        desk.now += MS * 600;
        desk.hear(1, cc::START, 1e6);
        near(desk.rate(), 2000);
        desk.now += MS * 100;
        desk.hear(1, cc::START, 1e6);
        near(desk.rate(), 2000);
        desk.now += MS * 500;
        desk.hear(1, cc::START, 3000.0);
        near(desk.rate(), 3000);
        assert!(desk.cc.is_starting());
        desk.hear(1, cc::RTT, 2500.0);
        near(desk.rate(), 2500);
        assert!(!desk.cc.is_starting());
    }

    #[test]
    fn it_goes_down_at_once_and_up_by_a_segment_a_round_trip() {
        let mut desk = Desk::new();
        desk.cc.rate = 1e6;
        desk.hear(1, cc::RTT, 200_000.0);
        near(desk.rate(), 200_000);
        for step in 1..=5 {
            desk.now += MS * 100;
            desk.hear(1, cc::RTT, 1e9);
            near(desk.rate(), 200_000 + step * 10_000);
        }
        // A time without answers is not made up for.
        desk.now += MS * 5000;
        desk.hear(1, cc::RTT, 1e9);
        near(desk.rate(), 260_000);
        desk.now += MS * 50;
        desk.hear(1, cc::RTT, 1e9);
        near(desk.rate(), 265_000);
    }

    #[test]
    fn who_does_not_know_its_round_trip_is_reckoned_with_it() {
        let mut desk = Desk::new();
        desk.cc.rate = 1e6;
        // The receiver computes with 0.5 s, but its round trip is 0.1 s.
        desk.hear(1, 0, 10_000.0);
        near(desk.rate(), (10_000.0 * Rtt::of(MS * 500).span().as_secs_f64() / 0.1) as u64);
        // A receiver that has heard nothing yet only learns its round trip.
        desk.hear(2, cc::START, 0.0);
        assert_eq!(desk.cc.limiting(), Some(NodeId(1)));
        let told: Vec<(u32, u8)> = desk.next().iter().map(|node| (node.node.0, node.flags)).collect();
        assert_eq!(told, [(1, cc::CLR | cc::RTT), (2, cc::RTT | cc::START)]);
        assert_eq!(desk.next().len(), 1, "told once");
    }

    #[test]
    fn silence_halves_the_rate_and_in_the_end_another_limits() {
        let mut desk = Desk::new();
        desk.cc.rate = 1e6;
        desk.hear(1, cc::RTT, 800_000.0);
        desk.hear(2, cc::RTT, 900_000.0);
        for _ in 0..4 {
            desk.next();
        }
        near(desk.rate(), 800_000);
        desk.next();
        near(desk.rate(), 400_000);
        desk.next();
        near(desk.rate(), 200_000);
        // After an answer the rate returns to half of what it was in few round trips, then rises step by step.
        desk.hear(1, cc::RTT, 800_000.0);
        near(desk.rate(), 400_000);
        for expected in [410_000, 420_000] {
            desk.now += MS * 100;
            desk.hear(1, cc::RTT, 800_000.0);
            near(desk.rate(), expected);
        }
        // A lower rate shows the capacity of the path: from there on the rate rises step by step, too.
        for (heard, expected) in [(100_000.0, 100_000), (800_000.0, 110_000)] {
            desk.now += MS * 100;
            desk.hear(1, cc::RTT, heard);
            near(desk.rate(), expected);
        }
        for _ in 0..20 {
            desk.next();
            desk.hear(2, cc::RTT, 900_000.0);
        }
        assert_eq!(desk.cc.limiting(), Some(NodeId(1)));
        desk.next();
        assert_eq!((desk.cc.limiting(), desk.rate()), (Some(NodeId(2)), 1000), "no less than the least");
    }

    #[test]
    fn probes_are_a_round_trip_apart_while_somebody_limits() {
        let mut desk = Desk::new();
        let mut before = desk.now;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            desk.next();
            pauses.push(desk.now.since(before).as_millis());
            before = desk.now;
        }
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        desk.cc.rate = 1e6;
        desk.hear(1, cc::RTT, 1e6);
        assert_eq!(desk.cc.until(), desk.now + MS * 100);
        // There is at most one probe for each segment.
        desk.hear(1, cc::RTT, 2000.0);
        desk.next();
        assert_eq!(desk.cc.until().since(desk.now).as_millis(), 500);
        // With nothing to send, probes become rare, even if receivers answer.
        desk.cc.rest(desk.now);
        before = desk.now;
        pauses.clear();
        for _ in 0..4 {
            desk.next();
            pauses.push(desk.now.since(before).as_millis());
            before = desk.now;
            desk.hear(1, cc::RTT, 2000.0);
        }
        assert_eq!(pauses, [500, 500, 1000, 2000]);
    }

    #[test]
    fn with_nothing_to_send_the_rate_is_halved_each_second() {
        let mut desk = Desk::new();
        desk.cc.rate = 1e6;
        desk.hear(1, cc::RTT, 800_000.0);
        desk.cc.rest(desk.now);
        desk.now += MS * 3500;
        desk.cc.resume(desk.now);
        near(desk.rate(), 100_000);
        for expected in [200_000, 400_000, 800_000] {
            desk.now += MS * 100;
            desk.hear(1, cc::RTT, 1e6);
            near(desk.rate(), expected);
        }
        desk.cc.rest(desk.now);
        desk.now += MS * 1_000_000;
        desk.cc.resume(desk.now);
        assert_eq!(desk.rate(), 1000, "as at the beginning");
    }

    #[test]
    fn answers_to_probes_that_were_not_sent_are_refused() {
        let mut desk = Desk::new();
        desk.next();
        for (sequence, result) in
            [(1, Ok(())), (0, Err(Reject::Duplicate)), (2, Err(Reject::OutOfRange)), (1, Ok(()))]
        {
            let feedback =
                Feedback { sequence, flags: cc::RTT, rtt: Rtt(9), loss: Loss(0), rate: Rate::of(1e4) };
            let report = Report { node: NodeId(1), trip: Some(MS), feedback };
            assert_eq!(desk.cc.report(desk.now, &report), result, "{sequence}");
        }
        let feedback = Feedback { sequence: 1, flags: 0, rtt: Rtt(9), loss: Loss(0), rate: Rate(0) };
        let report = Report { node: NodeId(2), trip: None, feedback };
        assert_eq!(desk.cc.report(desk.now, &report), Err(Reject::Inconsistent), "no round trip");
    }

    #[test]
    fn the_least_is_never_more_than_the_most() {
        let limits = Limits { least: bits(2_000_000), most: bits(1_000_000) };
        let cc = NormCc::new(limits, 1000, 28, RoundTrips { grtt: MS * 500, longest: MS * 500 }, 20);
        assert_eq!(cc.rate(), bits(1_000_000));
    }
}
