use farcast_core::random::RandomStream;
use proptest::prelude::*;

use super::{kolmogorov_survival, ks_two_sample};
use crate::StatsError;

fn close(value: f64, expected: f64, relative: f64) {
    assert!((value - expected).abs() <= relative * expected.abs(), "{value:e} instead of {expected:e}");
}

/// Returns the distance by its definition: both empirical distribution functions at every value.
fn naive_distance(a: &[f64], b: &[f64]) -> f64 {
    let share = |sample: &[f64], x: f64| {
        sample.iter().filter(|value| **value <= x).count() as f64 / sample.len() as f64
    };
    a.iter().chain(b).map(|&x| (share(a, x) - share(b, x)).abs()).fold(0.0, f64::max)
}

#[test]
fn the_kolmogorov_distribution_agrees_with_scipy_and_with_tables() {
    // SciPy 1.17.1, scipy.special.kolmogorov; 1.3581 and 1.6276 are the 5 % and 1 % points of Smirnov's table (1948).
    for (x, expected) in [
        (0.2, 0.999_999_999_999_495),
        (0.3, 0.999_990_694_198_665_5),
        (0.5, 0.963_945_243_664_875_1),
        (0.8, 0.544_142_411_574_198_1),
        (0.99, 0.280_873_839_225_548_9),
        (1.0, 0.269_999_671_677_354_56),
        (1.01, 0.259_434_169_093_597_46),
        (1.3581, 0.049_999_630_431_667_4),
        (1.6276, 0.010_001_537_333_060_776),
        (2.0, 0.000_670_925_255_779_695_3),
        (3.0, 3.045_995_948_942_526e-8),
        (5.0, 3.857_499_695_927_835_6e-22),
    ] {
        close(kolmogorov_survival(x), expected, 1e-12);
    }
    assert_eq!(kolmogorov_survival(0.0).total_cmp(&1.0), core::cmp::Ordering::Equal);
}

#[test]
fn agrees_with_scipy_with_and_without_ties() {
    // SciPy 1.17.1: the statistic of scipy.stats.ks_2samp, and scipy.special.kolmogorov(sqrt(nm/(n+m)) * statistic).
    let sample = |n: u64, f: &dyn Fn(u64) -> u64| (0..n).map(|i| f(i) as f64).collect::<Vec<_>>();
    let a = sample(50, &|i| (i * i * 7919) % 1000);
    let b = sample(60, &|i| (i * i * i * 104_729 + 37) % 1200);
    let test = ks_two_sample(&a, &b).expect("values");
    close(test.statistic, 0.22, 1e-12);
    close(test.p_value, 0.142_670_673_505_997_9, 1e-9);

    let a = sample(80, &|i| (i * i * 7919) % 7);
    let b = sample(45, &|i| (i * i * i * 104_729 + 3) % 9);
    let test = ks_two_sample(&a, &b).expect("values");
    close(test.statistic, 0.725, 1e-12);
    close(test.p_value, 1.420_137_061_988_864_7e-13, 1e-9);

    let test = ks_two_sample(&[1.0, 2.0, 2.0, 3.0, 5.0], &[2.0, 3.0, 3.0, 4.0]).expect("values");
    close(test.statistic, 0.35, 1e-12);
}

#[test]
fn is_as_good_as_documented_from_forty_values_on() {
    // The exact p-values for 40 against 40 values by counting lattice paths: SciPy 1.17.1, ks_2samp(method='exact').
    for (steps, exact) in [
        (10, 0.164_972_699_502_241_94),
        (12, 0.054_141_077_480_362_725),
        (13, 0.028_603_070_280_233_43),
        (14, 0.014_301_548_047_706_46),
        (15, 0.006_760_732_303_569_208),
    ] {
        let a: Vec<f64> = (0..40).map(f64::from).collect();
        let b: Vec<f64> = a.iter().map(|value| value + f64::from(steps) - 0.5).collect();
        let test = ks_two_sample(&a, &b).expect("values");
        close(test.statistic, f64::from(steps) / 40.0, 1e-12);
        close(test.p_value, exact, 0.07);
    }
}

#[test]
fn equal_and_disjoint_samples_are_the_ends() {
    let a: Vec<f64> = (0..50).map(f64::from).collect();
    let same = ks_two_sample(&a, &a).expect("values");
    assert!(same.statistic.abs() < 1e-15 && same.p_value >= 1.0, "{same:?}");
    let far: Vec<f64> = a.iter().map(|value| value + 100.0).collect();
    let disjoint = ks_two_sample(&a, &far).expect("values");
    assert!(disjoint.statistic >= 1.0 && disjoint.p_value < 1e-20, "{disjoint:?}");
}

#[test]
fn zeros_of_either_sign_are_ties_and_infinities_rank() {
    let test = ks_two_sample(&[0.0, -0.0, 1.0], &[-0.0, 0.0, f64::INFINITY]).expect("values");
    close(test.statistic, 1.0 / 3.0, 1e-12);
    let test = ks_two_sample(&[f64::INFINITY], &[f64::INFINITY]).expect("values");
    assert!(test.statistic.abs() < 1e-15);
}

#[test]
fn refuses_what_cannot_be_ranked() {
    assert_eq!(ks_two_sample(&[], &[1.0]), Err(StatsError::Empty));
    assert_eq!(ks_two_sample(&[1.0], &[]), Err(StatsError::Empty));
    assert!(matches!(ks_two_sample(&[1.0], &[f64::NAN]), Err(StatsError::Unordered { .. })));
    assert!(matches!(ks_two_sample(&[f64::NEG_INFINITY], &[1.0]), Err(StatsError::Unordered { .. })));
}

#[test]
fn cries_wolf_as_often_as_it_says() {
    // Both samples uniform: p < 0.05 must come in at most 5 % of trials, and in not many fewer at this size.
    let mut stream = RandomStream::derive(6, &[]);
    let (trials, mut alarms) = (4_000, 0);
    for _ in 0..trials {
        let mut sample = |n: usize| (0..n).map(|_| stream.unit()).collect::<Vec<_>>();
        let (a, b) = (sample(100), sample(100));
        alarms += u32::from(ks_two_sample(&a, &b).expect("values").p_value < 0.05);
    }
    // The exact size here is P(D >= 0.20) = 0.03638 (SciPy 1.17.1, exact), 145.5 alarms; four standard deviations
    // are 4 sqrt(4,000 * 0.03638 * 0.96362) = 47.
    assert!(alarms.abs_diff(146) < 47, "{alarms}");
}

proptest! {
    #[test]
    fn the_distance_is_its_definition(
        a in prop::collection::vec(0..12_i32, 1..40usize),
        b in prop::collection::vec(0..12_i32, 1..40usize),
    ) {
        let float = |values: Vec<i32>| values.into_iter().map(f64::from).collect::<Vec<_>>();
        let (a, b) = (float(a), float(b));
        let forth = ks_two_sample(&a, &b).expect("values");
        let back = ks_two_sample(&b, &a).expect("values");
        prop_assert!((forth.statistic - naive_distance(&a, &b)).abs() < 1e-12);
        prop_assert_eq!(forth.statistic.to_bits(), back.statistic.to_bits());
        prop_assert!((0.0..=1.0).contains(&forth.p_value));
    }
}
