use super::*;
use crate::pipe::{Pipe, PipeConfig};
use crate::tests::probe::{Probe, flatten, frame, ns};
use alloc::vec::Vec;
use core::num::NonZeroU32;
use farcast_core::BitRate;
use farcast_core::random::RandomStream;
use farcast_core::stage::{Backlog, NotSettable, Setting, Stage};
use proptest::prelude::*;
use std::format;
use std::string::String;

/// One octet a nanosecond.
const OCTET_RATE: u64 = 8_000_000_000;

/// Steps of (start and delay in nanoseconds, rate).
fn timeline(steps: &[(u64, u64, u64)], period: Option<u64>) -> Arc<Timeline> {
    let seconds = |nanos: u64| format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    let line =
        |&(start, rate, delay): &(u64, u64, u64)| format!("{},{rate},{}", seconds(start), seconds(delay));
    let lines: Vec<String> = steps.iter().map(line).collect();
    let text = format!("time_s,rate_bit_per_s,delay_s\n{}", lines.join("\n"));
    Arc::new(Timeline::parse(&text, period.map(Span::from_nanos)).expect("valid"))
}

fn stage(timeline: Arc<Timeline>, queue: QueueLimit) -> TimelinePipe<Probe> {
    TimelinePipe::new(TimelinePipeConfig { timeline, queue, overhead: 0 }, Port::Hub).expect("valid")
}

/// Sends frames of (entry, octets), numbered from 0. Returns the time in nanoseconds at which each leaves.
fn send(link: &mut TimelinePipe<Probe>, frames: &[(u64, usize)]) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    for (number, &(entry, octets)) in (0..).zip(frames) {
        link.handle(ns(entry), Port::Terminal(0), frame(number, 1, octets, octets, 0));
        flatten(link, &mut out);
    }
    out.iter().map(|&(at, number)| (at.as_nanos(), number)).collect()
}

#[test]
fn a_table_worked_by_hand() {
    let steps = [(0, OCTET_RATE, 1000), (100, OCTET_RATE / 2, 1000), (200, 0, 2000), (300, OCTET_RATE, 500)];
    let mut link = stage(timeline(&steps, None), QueueLimit::Unbounded);
    // The first is sent by 50; of the second, 50 octets go until 100 and 50 at half the rate until 200, when the outage
    // and its delay begin. The third waits for 300, is there at 810, and may not overtake. The last has a clear way.
    let out = send(&mut link, &[(0, 50), (0, 100), (0, 10), (1800, 100)]);
    assert_eq!(out, [(1050, 0), (2200, 1), (2200, 2), (2400, 3)]);
    assert_eq!(link.totals().airtime, Span::from_nanos(50 + 150 + 10 + 100));
    assert_eq!((link.totals().sent, link.poll_timeout()), (4, None));
    let waits = |now| link.backlog(ns(now)).map(|backlog| (backlog.frames, backlog.octets));
    assert_eq!(waits(1899), Some((1, 100)));
    assert_eq!(waits(1900), Some((0, 0)));
}

#[test]
fn what_enters_in_an_outage_waits_in_the_queue() {
    let steps = [(0, OCTET_RATE, 0), (1000, 0, 0), (5000, OCTET_RATE, 0)];
    let mut link = stage(timeline(&steps, Some(6000)), QueueLimit::Packets(2));
    let out = send(&mut link, &[(900, 200), (1500, 100), (4999, 100), (5100, 100), (6999, 1), (6999, 1)]);
    // 100 octets of the first go before the outage, 100 behind it; the third finds two waiting. The last but one goes
    // before the next outage, the last behind it.
    assert_eq!(out, [(5100, 0), (5200, 1), (5300, 3), (7000, 4), (11_001, 5)]);
    assert_eq!(link.totals().dropped, 1);
    assert_eq!(link.totals().airtime, Span::from_nanos(200 + 100 + 100 + 1 + 1));
}

/// The link sends 3000 octets in each period of 10 us.
#[test]
fn a_long_frame_takes_as_many_periods_as_it_needs() {
    let steps = [(0, OCTET_RATE, 0), (2000, 0, 0), (9000, OCTET_RATE, 0)];
    for periods in [1, 2, 1000, 1_000_000_007] {
        let octets = 3000 * periods;
        let mut link = stage(timeline(&steps, Some(10_000)), QueueLimit::Unbounded);
        let out = send(&mut link, &[(0, octets as usize), (0, 500)]);
        assert_eq!(out, [(10_000 * periods, 0), (10_000 * periods + 500, 1)], "{periods} periods");
        assert_eq!(link.totals().airtime, Span::from_nanos(octets + 500));
        // Begun in an outage: the last octets of the same work go at the end of the last busy time.
        let mut late = stage(timeline(&steps, Some(10_000)), QueueLimit::Unbounded);
        assert_eq!(send(&mut late, &[(5000, octets as usize)]), [(10_000 * periods + 2000, 0)]);
    }
}

#[test]
fn without_rates_nothing_waits_and_the_delay_changes() {
    let text = "time_s,delay_s\n0,0.5\n10,0.1\n";
    let timeline = Arc::new(Timeline::parse(text, Some(Span::from_secs(20))).expect("valid"));
    let mut link = stage(timeline, QueueLimit::Octets(1));
    let second = 1_000_000_000;
    // The frame that enters at 10 s would be there at 10.1 s, before the one that entered at 9.9 s.
    let frames =
        [(0, 100), (99 * second / 10, 100), (10 * second, 100), (11 * second, 100), (20 * second, 100)];
    let tenths = [5, 104, 104, 111, 205];
    let expected: Vec<_> = (0..).zip(tenths).map(|(number, at)| (at * second / 10, number)).collect();
    assert_eq!(send(&mut link, &frames), expected);
    assert_eq!(link.totals().airtime, Span::ZERO);
}

#[test]
fn nothing_leaves_after_an_outage_for_good() {
    let mut link = stage(timeline(&[(0, OCTET_RATE, 7), (100, 0, 7)], None), QueueLimit::Packets(2));
    let never = Time::NEVER.as_nanos();
    let out = send(&mut link, &[(0, 90), (0, 20), (200, 1), (300, 1), (u64::MAX, 1)]);
    assert_eq!(out, [(97, 0), (never, 1), (never, 2), (never, 4)]);
    assert_eq!(link.totals().dropped, 1, "two wait for ever");
}

#[test]
fn settings_without_sense_are_refused_and_extremes_saturate() {
    let table = || timeline(&[(0, 1, 1), (5, 1_000_000_000_000, 0)], Some(10));
    for queue in [QueueLimit::Packets(0), QueueLimit::Octets(0)] {
        let config = TimelinePipeConfig { timeline: table(), queue, overhead: 0 };
        assert_eq!(TimelinePipe::<Probe>::new(config, Port::Hub).map(|_| ()), Err(LinkError::ZeroQueue));
    }
    let mut link = stage(table(), QueueLimit::Unbounded);
    assert_eq!(link.set(ns(0), Port::Hub, Setting::Delay(Span::ZERO)), Err(NotSettable::Absent("delay")));
    for steps in [&[(0, 1, 0)][..], &[(0, 0, 0), (1, 1, 0)], &[(0, 1_000_000_000_000, 999_999_999)]] {
        for period in [None, Some(2), Some(u64::MAX)] {
            for queue in [QueueLimit::Unbounded, QueueLimit::Packets(3), QueueLimit::Octets(u64::MAX)] {
                let mut link = stage(timeline(steps, period), queue);
                for (now, spacing) in [(0, u64::MAX), (1, 0), (u64::MAX, 1), (u64::MAX, u64::MAX), (5, 5)] {
                    link.handle(ns(now), Port::Terminal(u32::MAX), frame(0, 50, usize::MAX, 0, spacing));
                    let mut out = Vec::new();
                    flatten(&mut link, &mut out);
                    assert!(out.is_sorted());
                }
                assert_eq!(link.totals().sent + link.totals().dropped, 250);
            }
        }
    }
}

/// Sends a frame of `octets` from `at` on, nanosecond by nanosecond. Returns the time at which it has been sent.
fn naive_done(timeline: &Timeline, mut at: u64, octets: u64) -> u64 {
    let mut left = i128::from(octets) * 8_000_000_000;
    while left > 0 {
        left -= i128::from(timeline.at(ns(at)).0.rate.expect("it has rates"));
        at += 1;
    }
    at
}

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unbounded),
        (1u32..8).prop_map(QueueLimit::Packets),
        (1u64..120).prop_map(QueueLimit::Octets),
    ]
}

/// Runs as (gap behind the run before, count, spacing, octets, octets of the last).
fn runs() -> impl Strategy<Value = Vec<(u64, u32, u64, usize, usize)>> {
    proptest::collection::vec((0u64..200, 1u32..12, 0u64..60, 0usize..60, 0usize..60), 1..12)
}

/// Steps of (length, rate, delay); the last has a rate.
fn steps() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let rate = prop_oneof![1 => Just(0u64), 3 => 100_000_000u64..20_000_000_000];
    (proptest::collection::vec((1u64..150, rate, 0u64..400), 0..8), 100_000_000u64..20_000_000_000).prop_map(
        |(mut steps, rate)| {
            steps.push((50, rate, 20));
            steps
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_timeline_is_a_queue_nanosecond_by_nanosecond_and_cuts_change_nothing(
        steps in steps(), repeats in any::<bool>(), runs in runs(), limit in limits(), cut in 1u32..6,
    ) {
        let mut start = 0;
        let starts: Vec<_> = steps.iter().map(|&(length, rate, delay)| {
            let step = (start, rate, delay);
            start += length;
            step
        }).collect();
        let table = timeline(&starts, repeats.then_some(start));
        let (mut whole, mut pieces) = (stage(table.clone(), limit), stage(table.clone(), limit));
        let (mut waiting, mut naive, mut dropped) = (Vec::new(), Vec::new(), 0);
        let (mut free, mut latest) = (0, Time::ZERO);
        let (mut now, mut number, mut at_once, mut in_pieces) = (0, 0, Vec::new(), Vec::new());
        for (gap, count, spacing, octets, last) in runs {
            now += gap;
            let run = || frame(number, count, octets, last, spacing);
            whole.handle(ns(now), Port::Hub, run());
            flatten(&mut whole, &mut at_once);
            let (mut rest, mut entry) = (Some(run()), now);
            while let Some(frame) = rest.take() {
                let (head, tail) = frame.split(NonZeroU32::new(cut).expect("positive"));
                pieces.handle(ns(entry), Port::Hub, head);
                flatten(&mut pieces, &mut in_pieces);
                (entry, rest) = (entry + spacing * u64::from(cut), tail);
            }
            for k in 0..count {
                let octets = if k + 1 == count { last } else { octets } as u64;
                let entry = now + u64::from(k) * spacing;
                waiting.retain(|&(done, _): &(u64, u64)| done > entry);
                let full = match limit {
                    QueueLimit::Unbounded => false,
                    QueueLimit::Packets(limit) => waiting.len() as u64 + 1 > u64::from(limit),
                    QueueLimit::Octets(limit) => waiting.iter().map(|w| w.1).sum::<u64>() + octets > limit,
                };
                if full {
                    dropped += 1;
                    continue;
                }
                free = naive_done(&table, free.max(entry), octets);
                waiting.push((free, octets));
                latest = latest.max(ns(free) + table.at(ns(free)).0.delay);
                naive.push((latest, number + k));
            }
            number += count;
            now += spacing * u64::from(count - 1);
        }
        prop_assert_eq!(&at_once, &naive);
        prop_assert_eq!(&in_pieces, &naive);
        prop_assert_eq!(whole.totals().dropped, dropped);
        prop_assert_eq!(whole.totals(), pieces.totals());
        waiting.retain(|&(done, _)| done > now);
        let backlog = Backlog { frames: waiting.len() as u64, octets: waiting.iter().map(|w| w.1).sum() };
        prop_assert_eq!((whole.backlog(ns(now)), pieces.backlog(ns(now))), (Some(backlog), Some(backlog)));
    }

    #[test]
    fn a_constant_timeline_is_a_pipe(
        runs in runs(), limit in limits(), bps in 1_000_000_000u64..20_000_000_000, delay in 0u64..500,
        repeats in proptest::option::of(20u64..100),
    ) {
        let config = PipeConfig {
            rate: BitRate::from_bps(bps), queue: limit, delay: Span::from_nanos(delay), ..PipeConfig::default()
        };
        let mut pipe = Pipe::new(config, Port::Hub, RandomStream::derive(1, &[])).expect("valid");
        // With one rate in two steps nothing is rounded where the step changes.
        let mut link = stage(timeline(&[(0, bps, delay), (13, bps, delay)], repeats), limit);
        let (mut now, mut number, mut of_pipe, mut of_link) = (0, 0, Vec::new(), Vec::new());
        for (gap, count, spacing, octets, last) in runs {
            now += gap;
            pipe.handle(ns(now), Port::Hub, frame(number, count, octets, last, spacing));
            flatten(&mut pipe, &mut of_pipe);
            link.handle(ns(now), Port::Hub, frame(number, count, octets, last, spacing));
            flatten(&mut link, &mut of_link);
            number += count;
            now += spacing * u64::from(count - 1);
        }
        prop_assert_eq!(of_link, of_pipe);
        prop_assert_eq!(link.totals(), pipe.totals());
    }
}
