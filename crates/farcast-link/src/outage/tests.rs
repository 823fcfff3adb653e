use super::*;
use crate::tests::probe::{Probe, flatten};
use core::num::NonZeroU32;
use proptest::prelude::*;

fn ns(nanoseconds: u64) -> Time {
    Time::from_nanos(nanoseconds)
}

fn schedule(windows: &[(u64, u64)], period: Option<u64>) -> Result<Schedule, LinkError> {
    let window =
        |&(start, length): &(u64, u64)| Window { start: ns(start), length: Span::from_nanos(length) };
    Schedule::new(&windows.iter().map(window).collect::<Vec<_>>(), period.map(Span::from_nanos))
}

/// Returns `true` if a window, or one of its repetitions, holds `now`.
fn naive(windows: &[(u64, u64)], period: Option<u64>, now: u64) -> bool {
    windows.iter().any(|&(start, length)| {
        (0..=if period.is_some() { 100 } else { 0 })
            .map(|k| start + k * period.unwrap_or(0))
            .any(|start| (start..start + length).contains(&now))
    })
}

proptest! {
    #[test]
    fn a_phase_holds_until_it_ends(
        windows in proptest::collection::vec((0u64..60, 1u64..12), 0..6),
        period in proptest::option::of(1u64..90),
    ) {
        let Ok(schedule) = schedule(&windows, period) else {
            let first = windows.iter().map(|w| w.0).min().expect("an empty schedule is valid");
            let last = windows.iter().map(|w| w.0 + w.1).max().expect("not empty");
            prop_assert!(last >= first + period.expect("only a period can be too short"));
            return Ok(());
        };
        for now in 0..200u64 {
            let (out, until) = match schedule.at(ns(now)) {
                OutagePhase::Clear { until } => (false, until),
                OutagePhase::Outage { until } => (true, until),
            };
            prop_assert_eq!(out, naive(&windows, period, now), "at {}", now);
            let change = (now..400).find(|&then| naive(&windows, period, then) != out);
            prop_assert_eq!(until, change.map_or(Time::NEVER, ns), "from {}", now);
        }
    }

    #[test]
    fn held_runs_may_be_cut_anywhere(
        windows in proptest::collection::vec((0u64..60, 1u64..12), 0..4),
        runs in proptest::collection::vec((0u64..20, 1u32..20, 0u64..6), 1..6),
        cuts in proptest::collection::vec(1u32..8, 0..20),
    ) {
        let schedule = schedule(&windows, None).expect("no period");
        let whole = run_through(Hold::new(schedule.clone(), Port::Hub), &runs, &[]);
        let pieces = run_through(Hold::new(schedule, Port::Hub), &runs, &cuts);
        prop_assert_eq!(&whole, &pieces);
        // One by one: what enters in an outage leaves at its end, the rest at once.
        let mut expected = Vec::new();
        let (mut now, mut number) = (0, 0);
        for &(gap, count, spacing) in &runs {
            now += gap;
            for k in 0..u64::from(count) {
                let entry = now + k * spacing;
                let clear = (entry..10_000).find(|&t| !naive(&windows, None, t)).expect("windows end");
                expected.push((ns(clear), number));
                number += 1;
            }
            now += spacing * u64::from(count - 1);
        }
        prop_assert_eq!(whole, expected);
    }
}

/// Sends runs of (gap, count, spacing) through a stage, cut after each of `cuts` in turn.
fn run_through(mut stage: Hold<Probe>, runs: &[(u64, u32, u64)], cuts: &[u32]) -> Vec<(Time, u32)> {
    let mut cuts = cuts.iter();
    let (mut now, mut number, mut out) = (Time::ZERO, 0, Vec::new());
    for &(gap, count, spacing) in runs {
        now += Span::from_nanos(gap);
        let spacing = Span::from_nanos(spacing);
        let mut rest = Some(Frame { message: Probe::new(number, count, 100, 100), overhead: 28, spacing });
        let mut entry = now;
        while let Some(frame) = rest.take() {
            let cut = cuts.next().copied().unwrap_or(u32::MAX);
            let (head, tail) = frame.split(NonZeroU32::new(cut).expect("positive"));
            stage.handle(entry, Port::Terminals, head);
            flatten(&mut stage, &mut out);
            entry += spacing * u64::from(cut);
            rest = tail;
        }
        number += count;
        now += spacing * u64::from(count - 1);
    }
    assert_eq!(stage.poll_timeout(), None);
    out
}

#[test]
fn a_run_across_an_outage_leaves_in_three_parts() {
    let mut hold = Hold::new(schedule(&[(100, 50)], None).expect("valid"), Port::Terminal(3));
    let frame = Frame { message: Probe::new(0, 20, 10, 10), overhead: 0, spacing: Span::from_nanos(10) };
    hold.handle(ns(55), Port::Hub, frame);
    hold.handle_timeout(ns(55));
    let part = |output: Option<Output<Probe>>| {
        output.map(|o| (o.at, o.port, o.frame.segments(), o.frame.spacing.as_nanos()))
    };
    assert_eq!(part(hold.poll_output()), Some((ns(55), Port::Terminal(3), 5, 10)));
    assert_eq!(part(hold.poll_output()), Some((ns(150), Port::Terminal(3), 5, 0)));
    assert_eq!(part(hold.poll_output()), Some((ns(155), Port::Terminal(3), 10, 10)));
    assert_eq!(part(hold.poll_output()), None);
}

#[test]
fn schedules_without_sense_are_refused() {
    assert_eq!(schedule(&[(5, 0)], None), Err(LinkError::ZeroOutage));
    assert_eq!(schedule(&[(5, 10)], Some(10)), Err(LinkError::Period));
    assert_eq!(schedule(&[(5, 10)], Some(0)), Err(LinkError::Period));
    assert_eq!(schedule(&[(0, 2), (9, 2)], Some(10)), Err(LinkError::Period));
    assert!(schedule(&[(9, 2)], Some(10)).is_ok());
    assert_eq!(
        schedule(&[], Some(0)).map(|never| never.at(ns(7))),
        Ok(OutagePhase::Clear { until: Time::NEVER })
    );
}

#[test]
fn the_end_of_time_is_no_trouble() {
    let endless = schedule(&[(10, u64::MAX)], None).expect("valid");
    assert_eq!(endless.at(ns(11)), OutagePhase::Outage { until: Time::NEVER });
    let periodic = schedule(&[(10, 5)], Some(100)).expect("valid");
    assert!(matches!(periodic.at(Time::NEVER), OutagePhase::Clear { .. } | OutagePhase::Outage { .. }));
    let mut hold = Hold::new(endless, Port::Hub);
    hold.handle(Time::NEVER, Port::Hub, Frame::new(Probe::new(0, 3, 10, 10), 0));
    let mut out = Vec::new();
    flatten(&mut hold, &mut out);
    assert_eq!(out, [(Time::NEVER, 0), (Time::NEVER, 1), (Time::NEVER, 2)]);
}
