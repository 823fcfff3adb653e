//! Receiver's side of congestion control: losses, round trip and rate of a sender, and the times of feedback.

use farcast_core::{Span, Time};

use super::equation;
use super::history::History;
use crate::message::{Feedback, NodeId, Probe, ProbedNode, cc};
use crate::quantise::{Loss, Rate, Rtt};

/// Fraction of another receiver's rate above which this receiver's feedback is suppressed.
const SUPPRESSED: f64 = 0.9;
/// Weight of each packet in the mean packet size, and the size in octets while none is known.
const SIZE_GAIN: f64 = 1.0 / 16.0;
const SIZE: f64 = 1400.0;

/// Reaction to a probe.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Due {
    /// Answer at once.
    AtOnce,
    /// Answer after a back-off, delayed by this part of it, from 0 to 1: the less the receiver can take, the sooner.
    Later(f64),
    /// No answer: others can take less.
    Nothing,
}

/// Meter of the rate at which a sender's messages arrive.
#[derive(Clone, Debug, Default)]
struct Meter {
    /// Beginning of the current stretch, with DATA, and the octets since then.
    began: Option<Time>,
    octets: u64,
    /// Last complete stretch: octets per second, and its length.
    last: Option<(f64, Span)>,
}

/// Number of stretches without DATA after which the rate counts as decreasing.
const STALE: u64 = 4;

impl Meter {
    /// Notes `octets` that have arrived at `at`. A stretch takes at least `window` and ends with DATA. Other messages
    /// between are short and do not show the rate of DATA.
    fn heard(&mut self, at: Time, octets: usize, is_data: bool, window: Span) {
        self.octets += octets as u64;
        if !is_data {
            return;
        }
        let span = self.began.map_or(Span::ZERO, |began| at.since(began));
        if self.began.is_some() && (span < window || span.is_zero()) {
            return;
        }
        if self.began.is_some() {
            self.last = Some((self.octets as f64 / span.as_secs_f64(), span));
        }
        (self.began, self.octets) = (Some(at), 0);
    }

    /// Returns the rate in octets per second; 0 while it is not known.
    fn rate(&self, now: Time) -> f64 {
        let (Some((rate, stretch)), Some(began)) = (self.last, self.began) else { return 0.0 };
        let span = now.since(began);
        if span > stretch * STALE { rate.min(self.octets as f64 / span.as_secs_f64()) } else { rate }
    }
}

/// State of congestion control at a receiver, for one sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listener {
    history: History,
    meter: Meter,
    /// Mean size of DATA messages in octets; 0 before any.
    size: f64,
    /// Round trip of this receiver, as the sender has measured it.
    trip: Option<Rtt>,
    /// Role that the sender gives this receiver: `cc::CLR`, `cc::PLR` or nothing.
    role: u8,
    /// Last probe, if it asks for feedback: its sequence number and the sender's rate.
    probe: Option<(u16, f64)>,
    /// Rate at the first loss, in octets per second.
    at_first_loss: f64,
}

impl Listener {
    /// Notes a datagram of `octets` with number `sequence` that has arrived at `at`, of DATA or another message. `grtt`
    /// is the GRTT.
    pub(crate) fn heard(&mut self, at: Time, sequence: u16, octets: usize, is_data: bool, grtt: Rtt) {
        if is_data {
            let octets = octets as f64;
            self.size += if self.size == 0.0 { octets } else { (octets - self.size) * SIZE_GAIN };
        }
        let trip = self.trip.unwrap_or(grtt).span();
        self.meter.heard(at, octets, is_data, trip);
        if self.history.heard(at, sequence, trip) {
            self.lost_first(at, trip);
        }
    }

    fn size(&self) -> f64 {
        if self.size > 0.0 { self.size } else { SIZE }
    }

    /// Sets the rate at the first loss, which ends slow start. Slow start has doubled the rate at most once too often,
    /// so the rate is half of what was sent, and no more than has arrived.
    fn lost_first(&mut self, at: Time, trip: Span) {
        let came = self.meter.rate(at);
        let sent = self.probe.map_or(0.0, |(_, rate)| rate / 2.0);
        self.at_first_loss = match (came > 0.0, sent > 0.0) {
            (true, true) => came.min(sent),
            (true, false) => came / 2.0,
            // Nothing is known except that something arrived.
            (false, _) => self.size() / trip.as_secs_f64(),
        };
        self.assume(trip);
    }

    /// Sets the loss interval before the first loss that corresponds to the rate at it (RFC 5348 §6.3.1).
    fn assume(&mut self, trip: Span) {
        let loss = equation::loss(self.size(), trip.as_secs_f64(), self.at_first_loss);
        self.history.assume(1.0 / loss);
    }

    /// Handles a probe: takes this receiver's entry, and returns the reaction.
    pub(crate) fn probed(&mut self, now: Time, me: NodeId, probe: &Probe, grtt: Rtt) -> Due {
        let Some(rate) = probe.rate else {
            // The probe only measures round trips.
            (self.probe, self.role) = (None, 0);
            return Due::Nothing;
        };
        let announced = rate.bytes_per_second();
        self.probe = Some((probe.sequence, announced));
        let own = probe.nodes.iter().find(|node| node.node == me);
        self.role = own.map_or(0, |own| own.flags & (cc::CLR | cc::PLR));
        if let Some(own) = own.filter(|own| own.flags & cc::RTT != 0) {
            self.measured(own.rtt);
        }
        if self.role != 0 {
            return Due::AtOnce;
        }
        let ours = self.rate(now, grtt);
        let limiting = probe.nodes.iter().find(|node| node.flags & cc::CLR != 0);
        if limiting.is_some_and(|&ProbedNode { flags, rate, .. }| self.is_covered(ours, flags, rate)) {
            return Due::Nothing;
        }
        // By RFC 4654 §5, rates up to half of the sender's come first, and rates from nine tenths on last.
        Due::Later(((ours / announced.max(1.0)).clamp(0.5, 0.9) - 0.5) / 0.4)
    }

    /// Sets the round trip that the sender has measured. An interval that was assumed with another one is computed
    /// again.
    fn measured(&mut self, trip: Rtt) {
        let before = self.trip.replace(trip);
        if before != Some(trip) && self.history.has_assumed() {
            self.assume(trip.span());
        }
    }

    /// Returns `true` if feedback with these flags and rate limits the sender at least as much as `ours` does. A
    /// receiver without a measured round trip computes with the GRTT. It is covered only by another such receiver; a
    /// receiver with a measured round trip is covered by any.
    fn is_covered(&self, ours: f64, flags: u8, rate: Rate) -> bool {
        let theirs = rate.bytes_per_second();
        let known = flags & cc::RTT != 0;
        (self.trip.is_some() || !known) && theirs > 0.0 && ours > theirs * SUPPRESSED
    }

    /// Returns `true` if another receiver's feedback makes that of this receiver needless.
    pub(crate) fn overheard(&self, now: Time, theirs: &Feedback, grtt: Rtt) -> bool {
        self.role == 0 && self.is_covered(self.rate(now, grtt), theirs.flags, theirs.rate)
    }

    /// Returns the rate that this receiver could take, in octets per second: before any loss twice the rate of arrivals
    /// (RFC 4654 §5); 0 while nothing is known.
    pub(crate) fn rate(&self, now: Time, grtt: Rtt) -> f64 {
        let trip = self.trip.unwrap_or(grtt).span();
        if self.history.has_lost() {
            equation::rate(self.size(), trip.as_secs_f64(), self.history.loss())
        } else {
            self.meter.rate(now) * 2.0
        }
    }

    /// Returns the congestion feedback; `None` if no probe has asked for it.
    pub(crate) fn feedback(&self, now: Time, grtt: Rtt, loss: impl Fn(f64) -> Loss) -> Option<Feedback> {
        let (sequence, _) = self.probe?;
        let known = if self.trip.is_some() { cc::RTT } else { 0 };
        let start = if self.history.has_lost() { 0 } else { cc::START };
        Some(Feedback {
            sequence,
            flags: self.role | known | start,
            rtt: self.trip.unwrap_or(grtt),
            loss: loss(self.history.loss()),
            rate: Rate::of(self.rate(now, grtt)),
        })
    }

    /// Returns `true` if the sender follows this receiver's feedback.
    pub(crate) fn has_role(&self) -> bool {
        self.role != 0
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::message::Stamp;

    const ME: NodeId = NodeId(7);
    const GRTT: Rtt = Rtt(0x9D);
    const MS: Span = Span::from_millis(1);

    fn probe(rate: f64, nodes: &[(u32, u8, Span, f64)]) -> Probe {
        let node = |&(node, flags, rtt, rate): &(u32, u8, Span, f64)| ProbedNode {
            node: NodeId(node),
            flags,
            rtt: Rtt::of(rtt),
            rate: Rate::of(rate),
        };
        let sent = Stamp { seconds: 1, micros: 0 };
        let (rate, nodes) = (Some(Rate::of(rate)), nodes.iter().map(node).collect());
        Probe { flags: 0, sequence: 3, sent, rate, nodes }
    }

    /// Returns a listener that hears a thousand octets each ten milliseconds for a second, and knows its round trip of
    /// 100 ms.
    fn listener() -> (Listener, Time) {
        let (mut listener, mut now) = (Listener::default(), Time::ZERO);
        listener.probed(now, ME, &probe(150_000.0, &[(7, cc::RTT, MS * 100, 0.0)]), GRTT);
        for sequence in 0..100 {
            now += MS * 10;
            listener.heard(now, sequence, 1000, true, GRTT);
        }
        (listener, now)
    }

    fn near(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 0.01, "{value} of {expected}");
    }

    #[test]
    fn before_any_loss_it_can_take_twice_what_comes() {
        let (listener, now) = listener();
        near(listener.rate(now, GRTT), 200_000.0);
        // Hardly anything arrives any more.
        assert!(listener.rate(now + MS * 5000, GRTT) < 200_000.0 / 8.0);
        let said = listener.feedback(now, GRTT, Loss::of).expect("it was asked");
        assert_eq!((said.sequence, said.flags, said.rtt), (3, cc::START | cc::RTT, Rtt::of(MS * 100)));
        assert_eq!((said.loss, said.rate), (Loss(0), Rate::of(200_000.0)));
    }

    #[test]
    fn what_is_not_data_does_not_end_a_stretch() {
        let mut meter = Meter::default();
        for step in 0..10u64 {
            meter.heard(Time::ZERO + MS * (1000 * step), 1000, true, MS * 50);
            // Short messages, right behind DATA, and just before the next.
            meter.heard(Time::ZERO + MS * (1000 * step + 1), 20, false, MS * 50);
            meter.heard(Time::ZERO + MS * (1000 * step + 999), 20, false, MS * 50);
        }
        near(meter.rate(Time::ZERO + MS * 9001), 1040.0);
    }

    #[test]
    fn the_first_loss_leaves_half_of_what_was_sent() {
        let (mut listener, now) = listener();
        for sequence in 101..104 {
            listener.heard(now + MS * 20, sequence, 1000, true, GRTT);
        }
        let said = listener.feedback(now, GRTT, Loss::of).expect("it was asked");
        assert_eq!(said.flags, cc::RTT);
        near(listener.rate(now, GRTT), 75_000.0);
        // With another round trip, the rate is still that of the first loss.
        listener.probed(now, ME, &probe(150_000.0, &[(7, cc::RTT, MS * 400, 0.0)]), GRTT);
        near(listener.rate(now, GRTT), 75_000.0);
    }

    #[test]
    fn who_limits_answers_at_once_and_others_if_they_can_take_less() {
        let limiting = |rate| (9, cc::CLR | cc::RTT, MS * 100, rate);
        let known = |flags| (7, flags | cc::RTT, MS * 100, 0.0);
        for (nodes, expected) in [
            (vec![known(cc::CLR)], Due::AtOnce),
            (vec![limiting(50_000.0), known(cc::PLR)], Due::AtOnce),
            (vec![limiting(50_000.0)], Due::Nothing),
            (vec![limiting(220_000.0)], Due::Nothing),
            (vec![limiting(240_000.0)], Due::Later(1.0)),
            (vec![], Due::Later(1.0)),
        ] {
            let (mut listener, now) = listener();
            assert_eq!(listener.probed(now, ME, &probe(150_000.0, &nodes), GRTT), expected, "{nodes:?}");
        }
        // The less the receiver can take, the sooner it answers.
        let (mut listener, now) = listener();
        assert_eq!(listener.probed(now, ME, &probe(1e6, &[]), GRTT), Due::Later(0.0));
        let Due::Later(part) = listener.probed(now, ME, &probe(285_714.0, &[]), GRTT) else {
            panic!("later")
        };
        assert!((part - 0.5).abs() < 0.01, "{part}");
        // A probe without a rate is not answered.
        let silent = Probe { rate: None, ..probe(1.0, &[]) };
        assert_eq!(listener.probed(now, ME, &silent, GRTT), Due::Nothing);
        assert_eq!(listener.feedback(now, GRTT, Loss::of), None);
    }

    #[test]
    fn who_knows_its_round_trip_does_not_silence_who_does_not() {
        let (known, now) = listener();
        let unknown = Listener { trip: None, ..known.clone() };
        let said =
            |flags, rate| Feedback { sequence: 3, flags, rtt: Rtt(100), loss: Loss(0), rate: Rate::of(rate) };
        for (flags, rate, silences) in [
            (cc::RTT, 100_000.0, [true, false]),
            (0, 100_000.0, [true, true]),
            (cc::RTT, 300_000.0, [false, false]),
            (0, 300_000.0, [false, false]),
            (0, 0.0, [false, false]),
        ] {
            let heard = [&known, &unknown].map(|listener| listener.overheard(now, &said(flags, rate), GRTT));
            assert_eq!(heard, silences, "{flags} {rate}");
        }
    }
}
