use super::*;
use crate::pipe::{Pipe, PipeConfig};
use crate::tests::probe::{Probe, flatten, frame, ns};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use farcast_core::BitRate;
use farcast_core::random::RandomStream;
use farcast_core::stage::{Backlog, NotSettable, Setting, Stage};
use proptest::prelude::*;
use std::string::{String, ToString};

const MS: u64 = 1_000_000;

fn stage(lines: &[u64], queue: QueueLimit) -> TracePipe<Probe> {
    let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
    let trace = Arc::new(RateTrace::parse(&lines.join("\n")).expect("valid"));
    let config = TracePipeConfig { trace, queue, delay: Span::ZERO, overhead: 0 };
    TracePipe::new(config, Port::Hub).expect("valid")
}

#[test]
fn a_table_worked_by_hand() {
    // Opportunities at 5, 5, 10, 15, 15, 20, 25, 25, 30, 35, 35, 40 ms, ...
    let mut link = stage(&[5, 5, 10], QueueLimit::Unbounded);
    let table = [
        (0, 1504, 5),             // all of the first
        (0, 1000, 5),             // the second leaves 504
        (0, 600, 10),             // 504 of them at 5, 96 at 10
        (0, 1408, 10),            // what is left of it
        (9 * MS, 100, 15),        // nothing is left at 10
        (9 * MS + 999, 1404, 15), // fills the first at 15
        (10 * MS, 1, 15),         // it had not entered before 10; the second at 15
        (15 * MS, 1, 20),         // nor this before 15, where 1503 octets were left
        (20 * MS + 1, 10, 25),
        (30 * MS, 4000, 40), // longer than an opportunity: 1504 twice at 35, 992 at 40
        (39 * MS, 512, 40),
        (39 * MS, 1, 45),
        (95 * MS - 1, 0, 95), // octets of nothing take nothing, but wait
        (95 * MS - 1, 1504, 95),
        (95 * MS - 1, 1505, 100),
    ];
    let mut out = Vec::new();
    for (number, &(entry, octets, _)) in (0..).zip(&table) {
        link.handle(ns(entry), Port::Terminal(0), frame(number, 1, octets, octets, 0));
        flatten(&mut link, &mut out);
    }
    let expected: Vec<_> = (0..).zip(&table).map(|(number, &(.., at))| (ns(at * MS), number)).collect();
    assert_eq!(out, expected);
    // Something waits from 0 to 20, from 20 and 1 ns to 25, from 30 to 45, and from 1 ns before 95 to 100.
    assert_eq!(link.totals().airtime, Span::from_nanos((20 + 5 + 15 + 5) * MS));
    assert_eq!((link.totals().sent, link.poll_timeout()), (15, None));
}

/// Frames of a constant length that leave 1504 octets a millisecond: number k, from 1, is through after ⌈k octets /
/// 1504⌉.
#[test]
fn one_opportunity_a_millisecond_delivers_1504_octets_in_each() {
    for octets in [1500, 1504, 64, 1, 1503, 9000] {
        let mut link = stage(&[1], QueueLimit::Unbounded);
        link.handle(ns(0), Port::Hub, frame(1, 5000, octets, octets, 0));
        let mut out = Vec::new();
        flatten(&mut link, &mut out);
        let at = |k: u64| ns((k * octets as u64).div_ceil(1504) * MS);
        assert_eq!(out, (1..=5000).map(|k| (at(u64::from(k)), k)).collect::<Vec<_>>(), "{octets}");
    }
}

#[test]
fn delay_and_backlog_follow_and_the_rate_is_the_traces() {
    let mut link = stage(&[10], QueueLimit::Octets(3000));
    link.set(ns(0), Port::Hub, Setting::Delay(Span::from_millis(100))).expect("it has a delay");
    link.handle(ns(0), Port::Hub, frame(0, 3, 1500, 1500, 0));
    let mut out = Vec::new();
    flatten(&mut link, &mut out);
    assert_eq!(out, [(ns(110 * MS), 0), (ns(120 * MS), 1)]);
    assert_eq!(link.totals().dropped, 1);
    let waits = |link: &TracePipe<Probe>, now| link.backlog(ns(now)).map(|b| (b.frames, b.octets));
    let table = [(0, 2), (10 * MS - 1, 2), (10 * MS, 1), (20 * MS - 1, 1), (20 * MS, 0)];
    for (now, frames) in table {
        assert_eq!(waits(&link, now), Some((frames, 1500 * frames)), "at {now} ns");
    }
    // A shorter delay lets nothing overtake.
    link.set(ns(20 * MS), Port::Hub, Setting::Delay(Span::ZERO)).expect("it has a delay");
    link.handle(ns(20 * MS), Port::Hub, frame(3, 1, 1500, 1500, 0));
    link.handle(ns(120 * MS), Port::Hub, frame(4, 1, 1500, 1500, 0));
    out.clear();
    flatten(&mut link, &mut out);
    assert_eq!(out, [(ns(120 * MS), 3), (ns(130 * MS), 4)]);
    let rate = Setting::Rate(BitRate::from_bps(1).expect("positive"));
    assert_eq!(link.set(ns(130 * MS), Port::Hub, rate), Err(NotSettable::Absent("rate")));
}

#[test]
fn settings_without_sense_are_refused_and_extremes_saturate() {
    let trace = Arc::new(RateTrace::parse("1\n7").expect("valid"));
    let make = |queue, delay, overhead| {
        TracePipe::<Probe>::new(TracePipeConfig { trace: trace.clone(), queue, delay, overhead }, Port::Hub)
    };
    for zero in [QueueLimit::Packets(0), QueueLimit::Octets(0)] {
        assert_eq!(make(zero, Span::ZERO, 0).map(|_| ()), Err(LinkError::ZeroQueue));
    }
    for queue in [QueueLimit::Unbounded, QueueLimit::Packets(3), QueueLimit::Octets(u64::MAX)] {
        let mut link = make(queue, Span::MAX, u16::MAX).expect("valid");
        for (now, spacing) in [(0, u64::MAX), (1, 0), (u64::MAX, 1), (u64::MAX, u64::MAX), (5, 5)] {
            link.handle(ns(now), Port::Terminal(u32::MAX), frame(0, 50, usize::MAX, 0, spacing));
            let mut out = Vec::new();
            flatten(&mut link, &mut out);
            assert!(out.iter().all(|&(at, _)| at == Time::NEVER));
        }
        assert_eq!(link.totals().sent + link.totals().dropped, 250);
    }
}

/// A naive link, millisecond by millisecond, in mahimahi's order: due opportunities are used up before a packet is
/// taken in.
struct NaiveReplay {
    lines: Vec<u64>,
    limit: QueueLimit,
    /// The next millisecond to be worked off.
    next: u64,
    /// Number, length, and what is still to be delivered.
    queue: VecDeque<(u32, u64, u64)>,
    out: Vec<(Time, u32)>,
    dropped: u64,
}

impl NaiveReplay {
    fn opportunities(&self, millisecond: u64) -> u64 {
        let period = self.lines[self.lines.len() - 1];
        let due = |line: &&u64| millisecond >= **line && (millisecond - **line).is_multiple_of(period);
        self.lines.iter().filter(due).count() as u64
    }

    fn work_off(&mut self) {
        for _ in 0..self.opportunities(self.next) {
            let mut left = 1504;
            while let Some((number, _, rest)) = self.queue.front_mut().filter(|_| left > 0) {
                let now = left.min(*rest);
                (*rest, left) = (*rest - now, left - now);
                if *rest == 0 {
                    self.out.push((ns(self.next * MS), *number));
                    self.queue.pop_front();
                }
            }
        }
        self.next += 1;
    }

    fn enter(&mut self, now: u64, number: u32, octets: u64) {
        while self.next * MS <= now {
            self.work_off();
        }
        let full = match self.limit {
            QueueLimit::Unbounded => false,
            QueueLimit::Packets(limit) => self.queue.len() as u64 + 1 > u64::from(limit),
            QueueLimit::Octets(limit) => self.queue.iter().map(|f| f.1).sum::<u64>() + octets > limit,
        };
        if full {
            self.dropped += 1;
        } else {
            self.queue.push_back((number, octets, octets));
        }
    }
}

fn traces() -> impl Strategy<Value = Vec<u64>> {
    let gap = prop_oneof![3 => Just(0u64), 2 => Just(1), 1 => 2u64..9];
    (proptest::collection::vec(gap, 1..12), 1u64..4).prop_map(|(gaps, end)| {
        let mut at = 0;
        let mut lines: Vec<u64> = gaps
            .iter()
            .map(|gap| {
                at += gap;
                at
            })
            .collect();
        lines.push(at + end);
        lines
    })
}

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unbounded),
        (1u32..8).prop_map(QueueLimit::Packets),
        (1u64..9000).prop_map(QueueLimit::Octets),
    ]
}

/// Runs as (gap behind the run before in eighths of a millisecond, count, spacing likewise, octets, octets of the
/// last).
fn runs() -> impl Strategy<Value = Vec<(u64, u32, u64, usize, usize)>> {
    let octets = || prop_oneof![1usize..200, Just(1500), Just(1504), 1usize..4000];
    proptest::collection::vec((0u64..60, 1u32..12, 0u64..12, octets(), octets()), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_trace_is_a_queue_millisecond_by_millisecond_and_cuts_change_nothing(
        lines in traces(), runs in runs(), limit in limits(), cut in 1u32..6,
    ) {
        let (mut whole, mut pieces) = (stage(&lines, limit), stage(&lines, limit));
        let (queue, out) = (VecDeque::new(), Vec::new());
        let mut naive = NaiveReplay { lines, limit, next: 0, queue, out, dropped: 0 };
        let (mut now, mut number, mut at_once, mut in_pieces) = (0, 0, Vec::new(), Vec::new());
        let mut lengths = Vec::new();
        for (gap, count, spacing, octets, last) in runs {
            now += gap * MS / 8;
            let spacing = spacing * MS / 8;
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
                naive.enter(now + u64::from(k) * spacing, number + k, octets);
                lengths.push(octets);
            }
            number += count;
            now += spacing * u64::from(count - 1);
        }
        let waiting: u64 = naive.queue.iter().map(|frame| frame.1).sum();
        let backlog = Backlog { frames: naive.queue.len() as u64, octets: waiting };
        prop_assert_eq!((whole.backlog(ns(now)), pieces.backlog(ns(now))), (Some(backlog), Some(backlog)));
        while !naive.queue.is_empty() {
            naive.work_off();
        }
        prop_assert_eq!(&at_once, &naive.out);
        prop_assert_eq!(&in_pieces, &naive.out);
        prop_assert_eq!((whole.totals().dropped, pieces.totals().dropped), (naive.dropped, naive.dropped));
        prop_assert_eq!(whole.totals(), pieces.totals());
        // No more has been delivered at any time than all opportunities up to then can deliver.
        let (mut room, mut delivered, mut leaving) = (0, 0, at_once.iter().peekable());
        for millisecond in 0..naive.next {
            room += 1504 * naive.opportunities(millisecond);
            while let Some((_, number)) = leaving.next_if(|(at, _)| *at == ns(millisecond * MS)) {
                delivered += lengths[*number as usize];
            }
            prop_assert!(delivered <= room, "{delivered} octets by {millisecond} ms, {room} at most");
        }
        prop_assert!(leaving.next().is_none(), "all leave at whole milliseconds");
    }

    /// One opportunity a millisecond, frames of its size that enter at whole milliseconds: a pipe of 12.032 Mbit/s.
    #[test]
    fn a_constant_trace_is_a_pipe(
        gaps in proptest::collection::vec((0u64..4, 1u32..6), 1..40), limit in limits(),
    ) {
        let rate = BitRate::from_bps(1504 * 8 * 1000);
        let config = PipeConfig { rate, queue: limit, ..PipeConfig::default() };
        let mut pipe = Pipe::new(config, Port::Hub, RandomStream::derive(1, &[])).expect("valid");
        let mut link = stage(&[1], limit);
        let (mut now, mut number, mut of_pipe, mut of_link) = (0, 0, Vec::new(), Vec::new());
        for (gap, count) in gaps {
            now += gap * MS;
            pipe.handle(ns(now), Port::Hub, frame(number, count, 1504, 1504, 0));
            flatten(&mut pipe, &mut of_pipe);
            link.handle(ns(now), Port::Hub, frame(number, count, 1504, 1504, 0));
            flatten(&mut link, &mut of_link);
            number += count;
            prop_assert_eq!(pipe.backlog(ns(now)), link.backlog(ns(now)));
        }
        prop_assert_eq!(of_link, of_pipe);
        prop_assert_eq!(link.totals(), pipe.totals());
    }
}
