use super::{studentized_range_quantile, studentized_range_survival};
use crate::StatsError;
use crate::special::{t_quantile, t_two_sided};

fn close(value: f64, expected: f64, relative: f64) {
    assert!((value - expected).abs() <= relative * expected.abs(), "{value:e} instead of {expected:e}");
}

#[test]
fn quantiles_are_those_of_published_tables() {
    // Tables of the studentised range (E. S. Pearson and H. O. Hartley, Biometrika Tables for Statisticians):
    // level, groups, degrees of freedom.
    let table = [
        (0.95, 2, 10, 3.151),
        (0.95, 3, 10, 3.877),
        (0.95, 4, 10, 4.327),
        (0.95, 3, 20, 3.578),
        (0.95, 5, 20, 4.232),
        (0.95, 2, 30, 2.888),
        (0.95, 10, 30, 4.824),
        (0.95, 3, 60, 3.399),
        (0.95, 4, 120, 3.685),
        (0.99, 3, 10, 5.270),
        (0.99, 4, 20, 5.018),
        (0.99, 2, 30, 3.889),
    ];
    for (level, groups, freedom, q) in table {
        let ours = studentized_range_quantile(level, groups, freedom).expect("valid");
        assert!((ours - q).abs() < 0.0011, "{level} {groups} {freedom}: {ours} and {q}");
    }
}

#[test]
fn of_two_means_it_is_students() {
    for freedom in [2, 3, 5, 15, 30, 200] {
        let q = studentized_range_quantile(0.95, 2, freedom).expect("valid");
        close(q, t_quantile(freedom) * 2f64.sqrt(), 1e-9);
        for q in [1e-3, 0.7, 3.0, 20.0, 1e5] {
            let p = studentized_range_survival(q, 2, freedom).expect("valid");
            close(p, t_two_sided(q / 2f64.sqrt(), freedom as f64), 1e-11);
        }
    }
}

#[test]
fn far_out_in_the_tail_it_keeps_its_digits() {
    // mpmath 1.4.1 with 25 digits: both integrals as sums over steps of 0.1 and 0.003 to 0.08, which do not change with
    // half of them.
    for (q, groups, freedom, expected) in [
        (3.5, 4, 36, 0.081_215_869_093_576_89),
        (6.0, 2, 2, 0.051_316_701_949_486_2),
        (100.0, 3, 5, 2.548_288_900_046_71e-8),
        (8.0, 5, 5_000, 1.623_408_208_092_469_7e-7),
        (15.0, 40, 60, 1.683_181_756_276_023_2e-12),
        (12.0, 3, 40, 5.254_562_531_334_288e-10),
        (30.0, 3, 40, 6.756_870_774_183_077e-23),
    ] {
        close(studentized_range_survival(q, groups, freedom).expect("valid"), expected, 1e-12);
    }
}

#[test]
fn with_endless_freedom_it_is_the_range_of_normal_values() {
    // The range of three normal values has the mean 3 / sqrt(pi). This mean is the integral of the probability that
    // the range exceeds a value.
    let step = 1.0 / 64.0;
    let mean: f64 = (0..1_000)
        .map(|n| step * studentized_range_survival((f64::from(n) + 0.5) * step, 3, 1 << 50).expect("valid"))
        .sum();
    close(mean, 3.0 / core::f64::consts::PI.sqrt(), 1e-5);
}

#[test]
fn quantiles_are_where_the_tail_is() {
    for level in [0.01, 0.5, 0.95, 0.9999] {
        for (groups, freedom) in [(2, 2), (3, 36), (10, 7), (40, 400), (1_000, 100_000)] {
            let q = studentized_range_quantile(level, groups, freedom).expect("valid");
            close(studentized_range_survival(q, groups, freedom).expect("valid"), 1.0 - level, 1e-8);
        }
    }
}

#[test]
fn the_ends_have_an_answer() {
    for (groups, freedom) in [(2, 2), (50, 3), (1_000_000, 10), (3, u64::MAX), (u64::MAX, 100)] {
        let at = |q| studentized_range_survival(q, groups, freedom).expect("valid");
        close(at(0.0), 1.0, 1e-9);
        assert_eq!((at(f64::INFINITY), at(1e300)), (0.0, 0.0));
        let values: Vec<f64> = (0..60).map(|n| at(f64::from(n) / 4.0)).collect();
        // Near 1 but for the last digits.
        assert!(values.is_sorted_by(|a, b| *b >= 0.0 && *b <= a + 1e-13), "{groups} {freedom} {values:?}");
        assert!(studentized_range_quantile(1.0 - 1e-16, groups, freedom).expect("valid").is_finite());
    }
}

#[test]
fn what_has_no_answer_is_refused() {
    for level in [0.0, 1.0, f64::NAN] {
        assert!(matches!(studentized_range_quantile(level, 2, 10), Err(StatsError::Level { .. })));
    }
    for q in [-1e-9, f64::NAN, f64::NEG_INFINITY] {
        assert!(matches!(studentized_range_survival(q, 2, 10), Err(StatsError::Range { .. })));
    }
    let too_few = Err(StatsError::TooFew { given: 1, needed: 2 });
    assert_eq!(studentized_range_quantile(0.95, 1, 10), too_few);
    assert_eq!(studentized_range_quantile(0.95, 2, 1), too_few);
    assert_eq!(studentized_range_survival(3.0, 1, 10), too_few);
    assert_eq!(studentized_range_survival(3.0, 2, 1), too_few);
}
