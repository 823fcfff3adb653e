//! Settings that change while a pipe carries traffic, and what waits in it.

use std::string::ToString;
use std::vec;

use super::*;
use crate::outage::{Hold, Schedule};

fn rate(bps: u64) -> Setting {
    Setting::Rate(BitRate::from_bps(bps).expect("positive"))
}

fn delay(nanoseconds: u64) -> Setting {
    Setting::Delay(Span::from_nanos(nanoseconds))
}

fn waits(pipe: &Pipe<Probe>, now: u64) -> (u64, u64) {
    let Backlog { frames, octets } = pipe.backlog(ns(now)).expect("a pipe can tell");
    (frames, octets)
}

#[test]
fn a_new_rate_begins_behind_what_waits() {
    for queue in [QueueLimit::Unbounded, QueueLimit::Packets(4), QueueLimit::Octets(400)] {
        let mut pipe = pipe(config(OCTET_RATE, queue));
        pipe.handle(ns(0), Port::Hub, frame(0, 3, 100, 100, 0));
        assert_eq!(outputs(&mut pipe), [(100, 3, 100)]);
        pipe.set(ns(150), Port::Hub, rate(OCTET_RATE / 2)).expect("a pipe has a rate");
        // At 150 the second is being sent. The new one takes 200 ns from 300 on.
        assert_eq!(waits(&pipe, 150), (2, 200));
        pipe.handle(ns(150), Port::Hub, frame(3, 1, 100, 100, 0));
        assert_eq!(outputs(&mut pipe), [(500, 1, 200)]);
        let table = [(150, 3), (199, 3), (200, 2), (299, 2), (300, 1), (499, 1), (500, 0), (9000, 0)];
        for (now, frames) in table {
            assert_eq!(waits(&pipe, now), (frames, 100 * frames), "at {now} ns");
        }
        pipe.set(ns(600), Port::Hub, rate(OCTET_RATE * 2)).expect("a pipe has a rate");
        pipe.handle(ns(600), Port::Hub, frame(4, 2, 100, 100, 0));
        assert_eq!(outputs(&mut pipe), [(650, 2, 50)]);
        assert_eq!(pipe.counters().busy, Span::from_nanos(300 + 200 + 100));
    }
}

#[test]
fn a_pipe_without_a_rate_takes_one() {
    let mut pipe = pipe(PipeConfig { queue: QueueLimit::Packets(1), ..PipeConfig::default() });
    pipe.handle(ns(5), Port::Hub, frame(0, 9, 100, 100, 0));
    assert_eq!((outputs(&mut pipe), waits(&pipe, 5)), (vec![(5, 9, 0)], (0, 0)));
    pipe.set(ns(10), Port::Hub, rate(OCTET_RATE)).expect("a pipe has a rate");
    pipe.handle(ns(10), Port::Hub, frame(9, 2, 100, 100, 0));
    assert_eq!((outputs(&mut pipe), waits(&pipe, 10)), (vec![(110, 1, 100)], (1, 100)));
}

#[test]
fn nothing_overtakes_behind_a_shorter_delay() {
    let mut pipe = pipe(PipeConfig { delay: Span::from_nanos(1000), ..PipeConfig::default() });
    pipe.handle(ns(0), Port::Hub, frame(0, 1, 10, 10, 0));
    assert_eq!(outputs(&mut pipe), [(1000, 1, 0)]);
    pipe.set(ns(100), Port::Hub, delay(200)).expect("a pipe has a delay");
    pipe.handle(ns(110), Port::Hub, frame(1, 1, 10, 10, 0));
    assert_eq!(outputs(&mut pipe), [(1000, 1, 0)]);
    // Those that enter at 500, 600 and 700 would be there at 700, 800 and 900; from the fourth on nothing is in the
    // way.
    pipe.handle(ns(500), Port::Hub, frame(2, 10, 10, 10, 100));
    assert_eq!(outputs(&mut pipe), [(1000, 3, 0), (1000, 7, 100)]);
    pipe.set(ns(1500), Port::Hub, delay(5000)).expect("a pipe has a delay");
    pipe.handle(ns(1500), Port::Hub, frame(12, 2, 10, 10, 0));
    assert_eq!(outputs(&mut pipe), [(6500, 2, 0)]);
}

#[test]
fn jitter_keeps_its_room_and_its_order() {
    let shape = JitterShape::Uniform { half_width: Span::from_nanos(50) };
    for reorder in [false, true] {
        let jitter = Some(Jitter { shape, reorder });
        let mut pipe = pipe(PipeConfig { delay: Span::from_nanos(1000), jitter, ..PipeConfig::default() });
        let refused =
            pipe.set(ns(0), Port::Hub, delay(49)).expect_err("a frame would leave before it was sent");
        assert_eq!(refused, NotSettable::DelayBelowJitter { least: Span::from_nanos(50) });
        assert_eq!(
            refused.to_string(),
            "the delay is less than the jitter around it; it must be at least 0.000000050 s"
        );
        let mut enter = |now| {
            pipe.handle(ns(now), Port::Hub, frame(0, 1, 10, 10, 0));
            let at = outputs(&mut pipe)[0].0;
            pipe.set(ns(now), Port::Hub, delay(50)).expect("just enough");
            at
        };
        let (first, second) = (enter(0), enter(10));
        assert!((950..=1050).contains(&first), "the refused delay changed nothing: {first}");
        assert!(if reorder { (10..=110).contains(&second) } else { second == first }, "{second}");
    }
}

#[test]
fn a_stage_without_settings_says_so() {
    let mut hold = Hold::<Probe>::new(Schedule::default(), Port::Hub);
    assert_eq!(hold.set(ns(0), Port::Hub, rate(1)), Err(NotSettable::Absent("rate")));
    let refused = hold.set(ns(0), Port::Hub, delay(1)).expect_err("it has no delay").to_string();
    assert_eq!(refused, "this stage has no delay that can change while it runs; name a stage that has one");
    assert_eq!(hold.backlog(ns(0)), None);
}

/// A change before each run, or none: the rate in bit/s, the delay in nanoseconds.
fn changes() -> impl Strategy<Value = Vec<(Option<u64>, Option<u64>)>> {
    let rate = proptest::option::of(1_000_000_000u64..20_000_000_000);
    proptest::collection::vec((rate, proptest::option::of(0u64..500)), 12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The pipe agrees with a queue of one packet at a time whose rate and delay change, and from which no packet
    /// leaves before an earlier one.
    #[test]
    fn a_pipe_whose_settings_change_is_a_queue_of_packets(
        runs in runs(), changes in changes(), limit in limits(),
        cuts in proptest::collection::vec(1u32..10, 0..60),
    ) {
        let (mut whole, mut pieces) = (pipe(config(OCTET_RATE, limit)), pipe(config(OCTET_RATE, limit)));
        let mut naive = NaiveQueue::new(OCTET_RATE, limit);
        let (mut now, mut number, mut late, mut latest) = (0, 0, Span::ZERO, Time::ZERO);
        let mut cuts = cuts.iter();
        for (&(gap, count, spacing, octets, last), &(bps, changed)) in runs.iter().zip(&changes) {
            now += gap;
            for pipe in [&mut whole, &mut pieces] {
                for setting in [bps.map(rate), changed.map(delay)].into_iter().flatten() {
                    pipe.set(ns(now), Port::Hub, setting).expect("a pipe has both");
                }
            }
            naive.bps = bps.map_or(naive.bps, u128::from);
            late = changed.map_or(late, Span::from_nanos);
            let before = naive.out.len();
            for k in 0..count {
                let octets = if k + 1 == count { last } else { octets };
                naive.enter(now + u64::from(k) * spacing, number + k, octets as u64);
            }
            for (at, _) in &mut naive.out[before..] {
                latest = latest.max(*at + late);
                *at = latest;
            }
            let (mut at_once, mut in_pieces) = (Vec::new(), Vec::new());
            whole.handle(ns(now), Port::Hub, frame(number, count, octets, last, spacing));
            flatten(&mut whole, &mut at_once);
            let (mut rest, mut entry) = (Some(frame(number, count, octets, last, spacing)), now);
            while let Some(frame) = rest.take() {
                let cut = cuts.next().copied().unwrap_or(u32::MAX);
                let (head, tail) = frame.split(NonZeroU32::new(cut).expect("positive"));
                pieces.handle(ns(entry), Port::Hub, head);
                flatten(&mut pieces, &mut in_pieces);
                entry += spacing * u64::from(cut);
                rest = tail;
            }
            prop_assert_eq!(&at_once, &naive.out[before..]);
            prop_assert_eq!(&in_pieces, &naive.out[before..]);
            number += count;
            now += spacing * u64::from(count - 1);
            // What the naive queue still has, without what is done at this instant.
            let left: Vec<_> = naive.waiting.iter().filter(|w| w.0 > u128::from(now)).map(|w| w.1).collect();
            prop_assert_eq!(waits(&whole, now), (left.len() as u64, left.iter().sum()));
            prop_assert_eq!(waits(&pieces, now), (left.len() as u64, left.iter().sum()));
        }
        prop_assert_eq!(whole.counters(), &naive.counters);
        prop_assert_eq!(pieces.counters(), &naive.counters);
    }
}
