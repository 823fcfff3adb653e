use farcast_core::Span;
use proptest::prelude::*;

use super::*;

/// Returns times that lie close together here and there, some of them at the end of time.
fn times() -> impl Strategy<Value = Vec<u64>> {
    let time = prop_oneof![0..50u64, 1_000_000..1_002_000u64, any::<u64>(), Just(u64::MAX)];
    prop::collection::vec(time, 0..300)
}

fn series(times: &[u64], most: usize) -> Vec<Point> {
    let mut series = Series::new(most);
    for &at in times {
        series.add(Time::from_nanos(at), 1);
    }
    series.into_points()
}

#[test]
fn counts_saturate() {
    let mut series = Series::new(2);
    for _ in 0..2 {
        series.add(Time::ZERO, u64::MAX);
    }
    assert_eq!(series.into_points(), [Point { from: Time::ZERO, to: Time::ZERO, count: u64::MAX }]);
}

#[test]
fn what_touches_is_one_interval() {
    let mut intervals = Intervals::new(10);
    let at = |seconds| Time::ZERO + Span::from_secs(seconds);
    for (begin, end) in [(0, 2), (2, 3), (4, 5), (4, 6)] {
        intervals.add(Interval { begin: at(begin), end: at(end), count: 1 });
    }
    let expected =
        [Interval { begin: at(0), end: at(3), count: 2 }, Interval { begin: at(4), end: at(6), count: 2 }];
    assert_eq!(intervals.into_list(), expected);
}

proptest! {
    #[test]
    fn few_times_are_kept_as_they_are(times in times()) {
        let mut expected: Vec<Point> = Vec::new();
        let mut sorted = times.clone();
        sorted.sort_unstable();
        for at in sorted.into_iter().map(Time::from_nanos) {
            match expected.last_mut() {
                Some(point) if point.from == at => point.count += 1,
                _ => expected.push(Point { from: at, to: at, count: 1 }),
            }
        }
        prop_assert_eq!(series(&times, 300), expected);
    }

    #[test]
    fn many_times_are_counted_where_they_are(times in times(), most in 0usize..40) {
        let points = series(&times, most);
        prop_assert!(points.len() <= most.max(2));
        prop_assert!(points.is_sorted_by(|a, b| a.to < b.from));
        for point in &points {
            let within = times.iter().filter(|&&at| (point.from.as_nanos()..=point.to.as_nanos()).contains(&at));
            prop_assert_eq!(within.count() as u64, point.count);
            prop_assert!(times.contains(&point.from.as_nanos()) && times.contains(&point.to.as_nanos()));
        }
        prop_assert_eq!(total(&points), times.len() as u64);
    }

    #[test]
    fn intervals_cover_what_they_were_given(times in times(), most in 0usize..40, len in 0u64..100) {
        let mut begins = times;
        begins.sort_unstable();
        let span = Span::from_nanos(len);
        let mut intervals = Intervals::new(most);
        let given: Vec<(Time, Time)> =
            begins.into_iter().map(Time::from_nanos).map(|begin| (begin, begin + span)).collect();
        for &(begin, end) in &given {
            intervals.add(Interval { begin, end, count: 1 });
        }
        let list = intervals.into_list();
        prop_assert!(list.len() <= most.max(2));
        prop_assert!(list.is_sorted_by(|a, b| a.end < b.begin));
        for interval in &list {
            let within = given.iter().filter(|(begin, end)| interval.begin <= *begin && *end <= interval.end);
            prop_assert_eq!(within.count() as u64, interval.count);
        }
        prop_assert_eq!(list.iter().map(|interval| interval.count).sum::<u64>(), given.len() as u64);
    }
}
