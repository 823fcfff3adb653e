use super::*;
use crate::tests::probe::{Probe, flatten, frame, ns};
use alloc::vec::Vec;
use core::num::NonZeroU32;
use proptest::prelude::*;

mod live;

/// One octet a nanosecond.
const OCTET_RATE: u64 = 8_000_000_000;

fn config(bps: u64, queue: QueueLimit) -> PipeConfig {
    PipeConfig { rate: BitRate::from_bps(bps), queue, ..PipeConfig::default() }
}

fn pipe(config: PipeConfig) -> Pipe<Probe> {
    Pipe::new(config, Port::Terminals, RandomStream::derive(9, &[])).expect("valid")
}

/// Returns the outputs: the time, the number of datagrams, and their spacing in nanoseconds.
fn outputs(pipe: &mut Pipe<Probe>) -> Vec<(u64, u32, u64)> {
    let part = |o: Output<Probe>| (o.at.as_nanos(), o.frame.segments(), o.frame.spacing.as_nanos());
    core::iter::from_fn(|| pipe.poll_output()).map(part).collect()
}

fn tally(frames: u64, octets: u64) -> Tally {
    Tally { frames, octets }
}

#[test]
fn a_run_slower_than_the_server_passes_whole_but_for_a_shorter_last() {
    let delay = Span::from_nanos(1000);
    let mut pipe = pipe(PipeConfig { delay, overhead: 4, ..config(OCTET_RATE, QueueLimit::Packets(1)) });
    pipe.handle(ns(50), Port::Hub, frame(0, 1_000_000, 96, 96, 100));
    assert_eq!(outputs(&mut pipe), [(1150, 1_000_000, 100)]);
    let start = 200_000_000;
    pipe.handle(ns(start), Port::Hub, frame(0, 10, 96, 30, 150));
    // Nine of 100 octets; the last enters after nine spacings and takes 34 ns.
    assert_eq!(outputs(&mut pipe), [(start + 1100, 9, 150), (start + 9 * 150 + 34 + 1000, 1, 150)]);
    // One that begins just as the server becomes idle passes whole, too.
    pipe.handle(ns(start + 9 * 150 + 34), Port::Hub, frame(0, 5, 96, 96, 200));
    assert_eq!(outputs(&mut pipe), [(start + 9 * 150 + 34 + 1100, 5, 200)]);
    assert_eq!(pipe.poll_timeout(), None);
    let counters = *pipe.counters();
    assert_eq!(counters.entered, tally(1_000_015, 100_001_434));
    assert_eq!((counters.sent, counters.dropped), (counters.entered, tally(0, 0)));
    assert_eq!(counters.busy, Span::from_nanos(100_001_434));
    assert_eq!((counters.longest_wait, counters.longest_queue), (Span::from_nanos(100), 100));
}

#[test]
fn a_faster_run_leaves_back_to_back() {
    let mut pipe = pipe(config(OCTET_RATE, QueueLimit::Unbounded));
    pipe.handle(ns(0), Port::Hub, frame(0, 1_000_000, 100, 100, 10));
    assert_eq!(outputs(&mut pipe), [(100, 1_000_000, 100)]);
    // The last entered at 9,999,990 and left at 100,000,000.
    assert_eq!(pipe.counters().longest_wait, Span::from_nanos(90_000_010));
    assert_eq!(pipe.counters().longest_queue, 90_000_010);
    // What comes behind waits for all of it.
    pipe.handle(ns(20_000_000), Port::Hub, frame(0, 1, 60, 60, 0));
    assert_eq!(outputs(&mut pipe), [(100_000_060, 1, 100_000_000 - 99_999_940)]);
}

#[test]
fn a_queue_drains_into_a_slower_run() {
    let mut pipe = pipe(config(OCTET_RATE, QueueLimit::Unbounded));
    pipe.handle(ns(0), Port::Hub, frame(0, 1, 500, 500, 0));
    // Entries at 10, 160, 310, 460, ... find the server busy until 500, 600, 700, ...: it is done at 1400 = 8 × 100 +
    // 600, while entry 10 + 10 × 150 = 1510 is the first at an idle server.
    pipe.handle(ns(10), Port::Hub, frame(1, 20, 100, 100, 150));
    let out = outputs(&mut pipe);
    assert_eq!(out[0], (500, 1, 500));
    assert_eq!(out[1], (600, 10, 100));
    assert_eq!(out[2], (10 + 10 * 150 + 100, 10, 150));
    assert_eq!(out.len(), 3);
}

#[test]
fn a_full_queue_drops_what_enters() {
    // Two places, the one in service included; 100 ns each, an entry every 40 ns.
    let mut pipe = pipe(config(OCTET_RATE, QueueLimit::Packets(2)));
    pipe.handle(ns(0), Port::Hub, frame(0, 8, 100, 100, 40));
    let mut out = Vec::new();
    flatten(&mut pipe, &mut out);
    // Entries at 0 and 40 fill it until 100, those at 120 and 200 (just as a place becomes free) enter, 240 does not.
    assert_eq!(out, [(ns(100), 0), (ns(200), 1), (ns(300), 3), (ns(400), 5)]);
    assert_eq!(pipe.counters().dropped, tally(4, 400));
    assert_eq!(pipe.counters().longest_wait, Span::from_nanos(200));
    assert_eq!(pipe.counters().busy, Span::from_nanos(400));
}

#[test]
fn a_queue_in_octets_counts_the_whole_frame_in_service() {
    let mut pipe = pipe(config(OCTET_RATE, QueueLimit::Octets(250)));
    let mut out = Vec::new();
    for (at, number, octets) in
        [(0, 0, 100), (10, 1, 100), (99, 2, 51), (99, 3, 50), (100, 4, 100), (400, 5, 251), (400, 6, 250)]
    {
        pipe.handle(ns(at), Port::Hub, frame(number, 1, octets, octets, 0));
        flatten(&mut pipe, &mut out);
    }
    assert_eq!(out, [(ns(100), 0), (ns(200), 1), (ns(250), 3), (ns(350), 4), (ns(650), 6)]);
    assert_eq!(pipe.counters().dropped, tally(2, 302));
}

#[test]
fn without_a_rate_nothing_waits() {
    let delay = Span::from_millis(250);
    let mut pipe = pipe(PipeConfig { delay, queue: QueueLimit::Octets(1), ..PipeConfig::default() });
    pipe.handle(ns(7), Port::Hub, frame(0, 1000, 1500, 12, 0));
    pipe.handle(ns(7), Port::Hub, frame(0, 1, 0, 0, 0));
    assert_eq!(outputs(&mut pipe), [(250_000_007, 1000, 0), (250_000_007, 1, 0)]);
    assert_eq!(pipe.counters().sent, tally(1001, 999 * 1500 + 12));
    assert_eq!(pipe.counters().busy, Span::ZERO);
}

#[test]
fn a_run_of_a_million_keeps_no_entry_for_each() {
    for queue in [QueueLimit::Unbounded, QueueLimit::Packets(u32::MAX), QueueLimit::Octets(u64::MAX)] {
        let mut pipe = pipe(config(300_000, queue));
        pipe.handle(ns(0), Port::Hub, frame(0, 1_000_000, 1500, 700, 0));
        assert_eq!(outputs(&mut pipe).len(), 2);
        assert!(pipe.server.entries() <= 2, "{queue:?}");
    }
    // At the line's rate a run passes whole although something waits before it.
    let mut pipe = pipe(config(OCTET_RATE, QueueLimit::Packets(3)));
    pipe.handle(ns(0), Port::Hub, frame(0, 1, 100, 100, 0));
    pipe.handle(ns(50), Port::Hub, frame(1, 1_000_000, 100, 100, 100));
    assert_eq!(outputs(&mut pipe), [(100, 1, 100), (200, 1_000_000, 100)]);
    assert!(pipe.server.entries() <= 1);
}

/// A queue one packet at a time, in wide integers: a second implementation.
struct NaiveQueue {
    bps: u128,
    limit: QueueLimit,
    free: u128,
    waiting: Vec<(u128, u64)>,
    counters: PipeCounters,
    out: Vec<(Time, u32)>,
}

impl NaiveQueue {
    fn new(bps: u64, limit: QueueLimit) -> Self {
        let (counters, waiting, out) = (PipeCounters::default(), Vec::new(), Vec::new());
        Self { bps: u128::from(bps), limit, free: 0, waiting, counters, out }
    }

    fn enter(&mut self, now: u64, number: u32, octets: u64) {
        let entry = u128::from(now);
        self.waiting.retain(|&(departure, _)| departure > entry);
        let full = match self.limit {
            QueueLimit::Unbounded => false,
            QueueLimit::Packets(limit) => self.waiting.len() as u64 + 1 > u64::from(limit),
            QueueLimit::Octets(limit) => self.waiting.iter().map(|w| w.1).sum::<u64>() + octets > limit,
        };
        let count = |tally: &mut Tally| {
            tally.frames += 1;
            tally.octets += octets;
        };
        count(&mut self.counters.entered);
        if full {
            return count(&mut self.counters.dropped);
        }
        count(&mut self.counters.sent);
        let bits = u128::from(octets) * 8;
        let service = (bits * 1_000_000_000).div_ceil(self.bps);
        self.free = self.free.max(entry) + service;
        self.waiting.push((self.free, octets));
        self.out.push((ns(self.free as u64), number));
        let wait = self.free - entry;
        self.counters.busy = self.counters.busy + Span::from_nanos(service as u64);
        self.counters.longest_wait = self.counters.longest_wait.max(Span::from_nanos(wait as u64));
        let queue = (wait * self.bps / 8_000_000_000) as u64;
        self.counters.longest_queue = self.counters.longest_queue.max(queue);
    }
}

/// Runs as (gap behind the run before, count, spacing, octets, octets of the last).
type Runs = Vec<(u64, u32, u64, usize, usize)>;

fn runs() -> impl Strategy<Value = Runs> {
    let run = (0u64..200, 1u32..40, 0u64..60, 0usize..40, 0usize..40);
    proptest::collection::vec(run, 1..12)
}

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unbounded),
        (1u32..8).prop_map(QueueLimit::Packets),
        (1u64..120).prop_map(QueueLimit::Octets),
    ]
}

/// Sends `runs` through, cut after each of `cuts` in turn, with `overhead` from above.
fn send(pipe: &mut Pipe<Probe>, runs: &Runs, cuts: &[u32], overhead: u16) -> Vec<(Time, u32)> {
    let mut cuts = cuts.iter();
    let (mut now, mut number, mut out) = (Time::ZERO, 0, Vec::new());
    for &(gap, count, spacing, octets, last) in runs {
        now += Span::from_nanos(gap);
        let mut rest = Some(Frame { overhead, ..frame(number, count, octets, last, spacing) });
        let mut entry = now;
        while let Some(frame) = rest.take() {
            let cut = cuts.next().copied().unwrap_or(u32::MAX);
            let (spacing, (head, tail)) =
                (frame.spacing, frame.split(NonZeroU32::new(cut).expect("positive")));
            pipe.handle(entry, Port::Hub, head);
            flatten(pipe, &mut out);
            entry += spacing * u64::from(cut);
            rest = tail;
        }
        number += count;
        now += Span::from_nanos(spacing * u64::from(count - 1));
    }
    out
}

fn send_naively(naive: &mut NaiveQueue, runs: &Runs, overhead: u64) {
    let (mut now, mut number) = (0, 0);
    for &(gap, count, spacing, octets, last) in runs {
        now += gap;
        for k in 0..count {
            let octets = if k + 1 == count { last } else { octets };
            naive.enter(now + u64::from(k) * spacing, number, octets as u64 + overhead);
            number += 1;
        }
        now += spacing * u64::from(count - 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_pipe_is_a_queue_of_packets_and_cuts_change_nothing(
        runs in runs(), limit in limits(), cuts in proptest::collection::vec(1u32..10, 0..60),
        bps in 2_000_000_000u64..20_000_000_000, overhead in 0u16..6,
    ) {
        let config = PipeConfig { overhead: 2, ..config(bps, limit) };
        let (mut whole, mut pieces) = (pipe(config), pipe(config));
        let mut naive = NaiveQueue::new(bps, limit);
        send_naively(&mut naive, &runs, u64::from(overhead) + 2);
        prop_assert_eq!(&send(&mut whole, &runs, &[], overhead), &naive.out);
        prop_assert_eq!(&send(&mut pieces, &runs, &cuts, overhead), &naive.out);
        prop_assert_eq!(whole.counters(), &naive.counters);
        prop_assert_eq!(pieces.counters(), &naive.counters);
    }

    #[test]
    fn cuts_change_no_jitter(
        runs in runs(), limit in limits(), cuts in proptest::collection::vec(1u32..10, 0..60),
        reorder in any::<bool>(), normal in any::<bool>(),
    ) {
        let (deviation, limit_span) = (Span::from_nanos(40), Span::from_nanos(90));
        let shape = if normal {
            JitterShape::Normal { deviation, limit: limit_span }
        } else {
            JitterShape::Uniform { half_width: limit_span }
        };
        let jitter = Some(Jitter { shape, reorder });
        let config = PipeConfig { jitter, delay: Span::from_nanos(100), ..config(OCTET_RATE, limit) };
        let whole = send(&mut pipe(config), &runs, &[], 1);
        prop_assert_eq!(&send(&mut pipe(config), &runs, &cuts, 1), &whole);
        // Each within its limits behind the end of its sending, unless it was kept behind the one before.
        let mut naive = NaiveQueue::new(OCTET_RATE, limit);
        send_naively(&mut naive, &runs, 1);
        prop_assert_eq!(whole.len(), naive.out.len());
        let mut before = Time::ZERO;
        for (&(at, number), &(departure, same)) in whole.iter().zip(&naive.out) {
            prop_assert_eq!(number, same);
            let late = at.since(departure).as_nanos();
            prop_assert!(at >= departure + Span::from_nanos(10));
            prop_assert!(late <= 190 || (!reorder && at == before), "{late}");
            before = at;
        }
    }
}

/// M/D/1: the mean wait before service is ρ S / (2 (1 - ρ)) (Pollaczek 1930, Khinchine 1932). Within three standard
/// errors over batch means.
#[test]
fn poisson_arrivals_wait_as_pollaczek_and_khinchine_say() {
    for (load, seed) in [(0.3, 1), (0.6, 2), (0.8, 3)] {
        let service = 1_000_000.0;
        let mut pipe = pipe(config(OCTET_RATE, QueueLimit::Unbounded));
        let mut stream = RandomStream::derive(seed, &[77]);
        let mut now = 0.0;
        let mut batch = || {
            let mut sum = 0.0;
            for _ in 0..20_000 {
                now -= (1.0 - stream.unit()).ln() * service / load;
                let entry = ns(now as u64);
                pipe.handle(entry, Port::Hub, frame(0, 1, 1_000_000, 1_000_000, 0));
                let output = pipe.poll_output().expect("nothing is dropped");
                sum += output.at.since(entry).as_nanos() as f64 - service;
            }
            sum / 20_000.0
        };
        batch();
        let means: Vec<f64> = (0..40).map(|_| batch()).collect();
        let mean = means.iter().sum::<f64>() / 40.0;
        let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / 39.0;
        let expected = load * service / (2.0 * (1.0 - load));
        let error = (variance / 40.0).sqrt();
        assert!((mean - expected).abs() < 3.0 * error, "{mean} for {expected}, standard error {error}");
        assert!(error < 0.02 * expected, "the test says something");
    }
}

/// Returns the differences from the delay that jitter makes for 200,000 frames far apart, in nanoseconds.
fn jitters(shape: JitterShape) -> Vec<f64> {
    let delay = Span::from_millis(100);
    let jitter = Some(Jitter { shape, reorder: false });
    let mut pipe = pipe(PipeConfig { delay, jitter, ..PipeConfig::default() });
    let run = frame(0, 200_000, 100, 100, 1_000_000_000);
    pipe.handle(ns(0), Port::Hub, run);
    let late = |(k, o): (u64, Output<Probe>)| o.at.as_nanos() as f64 - (k as f64 * 1e9 + 1e8);
    (0u64..).zip(core::iter::from_fn(|| pipe.poll_output())).map(late).collect()
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    (values.iter().sum::<f64>() / n, values.iter().map(|v| v * v).sum::<f64>() / n)
}

#[test]
fn uniform_jitter_has_its_moments_and_bounds() {
    let width = 2e7;
    let late = jitters(JitterShape::Uniform { half_width: Span::from_millis(20) });
    assert!(late.iter().all(|j| j.abs() <= width));
    let (mean, square) = moments(&late);
    let n = late.len() as f64;
    assert!(mean.abs() < 4.0 * width / (3.0 * n).sqrt(), "{mean}");
    // E x² = w²/3, its variance w⁴ (1/5 - 1/9).
    let expected = width * width / 3.0;
    assert!((square - expected).abs() < 4.0 * width * width * (4.0 / 45.0 / n).sqrt(), "{square} {expected}");
}

#[test]
fn normal_jitter_is_cut_at_its_limit() {
    let sigma = 5e6;
    let shape =
        |limit| JitterShape::Normal { deviation: Span::from_millis(5), limit: Span::from_millis(limit) };
    // The variance of a normal number cut at ±2 deviations is 1 - 4 φ(2) / (2 Φ(2) - 1) of the whole.
    let cut = 1.0 - 4.0 * 0.053_990_966_5 / 0.954_499_736_1;
    for (limit, variance) in [(10, cut), (50, 1.0)] {
        let late = jitters(shape(limit));
        assert!(late.iter().all(|j| j.abs() <= limit as f64 * 1e6));
        let (mean, square) = moments(&late);
        let n = late.len() as f64;
        assert!(mean.abs() < 4.0 * sigma / n.sqrt(), "{mean}");
        // The fourth moment is at most that of the whole normal, 3 σ⁴.
        let ratio = square / (sigma * sigma);
        assert!((ratio - variance).abs() < 4.0 * (2.0 / n).sqrt(), "{ratio} {variance}");
        let within_one = late.iter().filter(|j| j.abs() <= sigma).count() as f64 / n;
        let expected = 0.682_689_492 / if limit == 10 { 0.954_499_736_1 } else { 1.0 };
        assert!(
            (within_one - expected).abs() < 4.0 * (expected * (1.0 - expected) / n).sqrt(),
            "{within_one}"
        );
    }
    assert!(
        jitters(JitterShape::Normal { deviation: Span::ZERO, limit: Span::ZERO })
            .iter()
            .all(|j| j.abs() < 0.5)
    );
}

#[test]
fn kept_order_is_the_running_maximum() {
    let shape = JitterShape::Uniform { half_width: Span::from_nanos(500) };
    let release = |reorder| {
        let jitter = Some(Jitter { shape, reorder });
        let mut pipe = pipe(PipeConfig { delay: Span::from_nanos(500), jitter, ..PipeConfig::default() });
        pipe.handle(ns(0), Port::Hub, frame(0, 5000, 100, 100, 100));
        core::iter::from_fn(|| pipe.poll_output()).map(|o| o.at).collect::<Vec<_>>()
    };
    let (free, kept) = (release(true), release(false));
    assert!(!free.is_sorted() && kept.is_sorted());
    let mut latest = Time::ZERO;
    for (at, kept) in free.into_iter().zip(kept) {
        latest = latest.max(at);
        assert_eq!(kept, latest);
    }
}

#[test]
fn settings_without_sense_are_refused() {
    let refuse =
        |config: PipeConfig| Pipe::<Probe>::new(config, Port::Hub, RandomStream::derive(1, &[])).map(|_| ());
    let zero = |queue| refuse(PipeConfig { queue, ..PipeConfig::default() });
    assert_eq!(zero(QueueLimit::Packets(0)), Err(LinkError::ZeroQueue));
    assert_eq!(zero(QueueLimit::Octets(0)), Err(LinkError::ZeroQueue));
    let span = Span::from_millis;
    let jittered = |shape| {
        let jitter = Some(Jitter { shape, reorder: false });
        refuse(PipeConfig { delay: span(10), jitter, ..PipeConfig::default() })
    };
    assert_eq!(jittered(JitterShape::Uniform { half_width: span(11) }), Err(LinkError::JitterBeyondDelay));
    let normal =
        |deviation, limit| jittered(JitterShape::Normal { deviation: span(deviation), limit: span(limit) });
    assert_eq!(normal(3, 11), Err(LinkError::JitterBeyondDelay));
    assert_eq!(normal(6, 5), Err(LinkError::JitterLimit));
    assert_eq!(normal(5, 5), Ok(()));
}

#[test]
fn extremes_saturate() {
    for queue in [QueueLimit::Unbounded, QueueLimit::Packets(3), QueueLimit::Octets(u64::MAX)] {
        let jitter = Some(Jitter { shape: JitterShape::Uniform { half_width: Span::MAX }, reorder: false });
        let slow = PipeConfig { delay: Span::MAX, jitter, overhead: u16::MAX, ..config(1, queue) };
        let mut pipe = pipe(slow);
        for (now, spacing) in [(0, u64::MAX), (1, 0), (u64::MAX, 1), (u64::MAX, u64::MAX), (5, 5)] {
            pipe.handle(ns(now), Port::Terminal(u32::MAX), frame(0, 50, usize::MAX, 0, spacing));
            let mut out = Vec::new();
            flatten(&mut pipe, &mut out);
            assert!(out.len() <= 50);
        }
        let PipeCounters { entered, sent, dropped, .. } = *pipe.counters();
        assert_eq!(entered.frames, 250);
        assert_eq!(sent.frames + dropped.frames, 250);
        assert_eq!(entered.octets, u64::MAX);
    }
}

proptest! {
    /// Fates agree: a datagram whose contents the pipe does not see has the fate of a frame.
    #[test]
    fn what_passes_has_the_fate_of_a_frame(
        octets in proptest::collection::vec((0u64..400, 1u32..300), 1..60),
        limit in 1u32..5,
        jitters: bool,
    ) {
        let delay = Span::from_nanos(500);
        let shape = JitterShape::Uniform { half_width: Span::from_nanos(300) };
        let jitter = jitters.then_some(Jitter { shape, reorder: false });
        let settings =
            PipeConfig { delay, jitter, overhead: 3, ..config(OCTET_RATE, QueueLimit::Packets(limit)) };
        let (mut framed, mut passed) = (pipe(settings), pipe(settings));
        let mut now = 0;
        for (number, (pause, octets)) in (0..).zip(octets) {
            now += pause;
            framed.handle(ns(now), Port::Hub, frame(number, 1, octets as usize, octets as usize, 0));
            let left: Vec<_> = outputs(&mut framed).into_iter().map(|(at, ..)| Fate::Leaves(ns(at))).collect();
            let fate = passed.pass(ns(now), Port::Hub, u64::from(octets)).expect("a pipe knows");
            prop_assert_eq!(left.first().copied().unwrap_or(Fate::Dropped), fate);
        }
        prop_assert_eq!(framed.counters(), passed.counters());
    }
}
