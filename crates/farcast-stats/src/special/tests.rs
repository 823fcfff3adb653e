use core::f64::consts::PI;

use super::{
    Tail, beta_quantile, beta_tails, f_survival, ln_beta, normal_above, t_quantile, t_two_sided,
    t_two_sided_quantile,
};

fn close(value: f64, expected: f64, relative: f64) {
    assert!((value - expected).abs() <= relative * expected.abs(), "{value:e} instead of {expected:e}");
}

#[test]
fn t_has_its_closed_forms() {
    // One degree of freedom is Cauchy's distribution; for two, t = u sqrt(2 / (1 - u^2)) with u = 2p - 1.
    close(t_quantile(1), (PI * 0.475).tan(), 1e-12);
    close(t_quantile(2), 0.95 * (2.0 / (1.0 - 0.95_f64.powi(2))).sqrt(), 1e-12);
    assert!(t_quantile(0).is_infinite());
}

#[test]
fn t_agrees_with_scipy() {
    // SciPy 1.17.1, scipy.stats.t.ppf(0.975, freedom).
    for (freedom, expected) in [
        (3, 3.182_446_305_283_707_8),
        (9, 2.262_157_162_798_205),
        (13, 2.160_368_656_462_791_3),
        (99, 1.984_216_951_586_417_4),
        (999, 1.962_341_461_133_449_3),
        (1_000, 1.962_339_080_826_408_3),
        (1_001, 1.962_336_705_280_879_8),
        (4_999, 1.960_438_646_661_524_7),
        (99_999, 1.959_987_707_771_844_2),
        (1_000_000, 1.959_966_356_814_107),
        (1_000_000_000, 1.959_963_986_912_325),
        (1 << 62, 1.959_963_984_540_053_6),
    ] {
        close(t_quantile(freedom), expected, 1e-11);
    }
    assert!(t_quantile(u64::MAX).is_finite());
}

#[test]
fn t_falls_with_every_degree_of_freedom() {
    let values: Vec<f64> = (1..2_000).map(t_quantile).collect();
    assert!(values.is_sorted_by(|a, b| a > b));
}

#[test]
fn t_at_other_levels_agrees_with_scipy() {
    // SciPy 1.17.1, scipy.stats.t.isf((1 - level) / 2, freedom).
    for (level, freedom, expected) in [
        (0.5, 1.0, 1.000_000_000_000_000_2),
        (0.9999, 1.0, 6_366.197_671_316_637),
        (0.9999, 2.0, 99.992_499_843_750_04),
        (0.8, 2.941_176_470_588_235_5, 1.646_625_244_071_681),
        (0.99, 17.25, 2.893_044_869_100_974_5),
        (0.9999, 40.5, 4.314_898_414_479_091),
        (0.6, 999.5, 0.841_981_002_120_581_5),
        (0.9999, 1000.0, 3.906_343_736_701_408_4),
        (0.9999, 1001.0, 3.906_327_944_031_293_7),
        (0.5, 5000.25, 0.674_538_817_907_329_4),
        (0.999, 1e7, 3.290_527_704_465_221_7),
    ] {
        close(t_two_sided_quantile(level, freedom), expected, 1e-9);
    }
    // At 0.95 it is the other way to the same number.
    for freedom in [1, 2, 7, 50, 999, 1_000, 1_001, 100_000] {
        close(t_two_sided_quantile(0.95, freedom as f64), t_quantile(freedom), 1e-10);
    }
}

#[test]
fn tails_of_t_have_their_closed_forms_and_agree_with_scipy() {
    // One degree of freedom: 2 atan(1 / t) / pi. Two: 1 - t / sqrt(2 + t^2), which is 2 / (r (r + t)) with r the root.
    for t in [1e-9_f64, 0.3, 1.0, 12.7, 1e6, 1e100] {
        close(t_two_sided(t, 1.0), 2.0 / PI * (1.0 / t).atan(), 1e-13);
        let root = (2.0 + t * t).sqrt();
        close(t_two_sided(-t, 2.0), 2.0 / (root * (root + t)), 1e-13);
    }
    assert_eq!((t_two_sided(0.0, 5.5), t_two_sided(f64::INFINITY, 5.5)), (1.0, 0.0));
    // SciPy 1.17.1, 2 * scipy.stats.t.sf(t, freedom).
    for (t, freedom, expected) in [
        (0.01, 3.7, 0.992_536_927_011_859_4),
        (2.0, 3.7, 0.121_817_201_905_233_98),
        (2.5, 29.3, 0.018_260_845_709_162_248),
        (8.0, 29.3, 7.436_139_457_203_494e-9),
        (30.0, 58.0, 5.143_544_268_873_969e-37),
        (3.0, 1234.5, 0.002_753_931_607_340_369_2),
        (5.0, 1e6, 5.733_997_870_890_745e-7),
        (1.0, 1e8, 0.317_310_510_282_621_2),
    ] {
        close(t_two_sided(t, freedom), expected, 1e-9);
    }
}

#[test]
fn tails_of_f_have_their_closed_forms() {
    for ratio in [1e-12_f64, 0.4, 1.0, 9.0, 1e9] {
        for freedom in [1.0, 2.0, 9.0, 200.0] {
            // Two degrees of freedom above: (1 + 2 F / d)^(-d / 2). Two below: 1 - (1 + 2 / (d F))^(-d / 2).
            close(
                f_survival(ratio, 2.0, freedom),
                (-(freedom / 2.0) * (2.0 * ratio / freedom).ln_1p()).exp(),
                1e-11,
            );
            let below = -(-(freedom / 2.0) * (2.0 / (freedom * ratio)).ln_1p()).exp_m1();
            close(f_survival(ratio, freedom, 2.0), below, 1e-11);
        }
    }
    assert_eq!((f_survival(0.0, 3.0, 4.0), f_survival(f64::INFINITY, 3.0, 4.0)), (1.0, 0.0));
}

#[test]
fn normal_tails_have_their_digits() {
    // mpmath 1.4.1, erfc(z / sqrt(2)) / 2.
    for (z, expected) in [
        (-3.0, 0.998_650_101_968_369_9),
        (0.1, 0.460_172_162_722_971),
        (1.0, 0.158_655_253_931_457_07),
        (3.0, 1.349_898_031_630_095_7e-3),
        (8.0, 6.220_960_574_271_82e-16),
        (20.0, 2.753_624_118_606_331_8e-89),
    ] {
        close(normal_above(z), expected, 1e-13);
    }
}

#[test]
fn the_beta_function_keeps_its_digits() {
    // mpmath, log(beta(a, b)) with 40 digits. Below 10 the library's gamma function gives 14 of them.
    for (a, b, expected) in [
        (0.5, 20.0, -0.919_251_844_406_604),
        (3.0, 14.9, -7.601_846_763_546_682),
        (15.0, 15.0, -20.874_596_601_690_646),
        (20.0, 30.0, -33.968_820_791_977_383),
        (1.0, 1e7, -16.118_095_650_958_32),
        (16.0, 1e7, -229.990_271_031_486_03),
        (5e6, 5e6, -6_931_478.252_561_54),
    ] {
        close(ln_beta(a, b), expected, 2e-14);
        close(ln_beta(b, a), expected, 2e-14);
    }
}

#[test]
fn the_incomplete_beta_function_is_a_binomial_tail() {
    // I_x(k, n - k + 1) = P(X >= k) for X ~ Binomial(n, x) (DLMF 8.17.5).
    for (n, x) in [(5, 0.3), (14, 0.5), (14, 0.01), (30, 0.97), (60, 0.4)] {
        let mut pmf = vec![(1.0_f64 - x).powi(n)];
        for k in 0..n {
            pmf.push(pmf[k as usize] * f64::from(n - k) / f64::from(k + 1) * x / (1.0 - x));
        }
        for k in 1..=n {
            let (below, above) = beta_tails(f64::from(k), f64::from(n - k + 1), x);
            close(below, pmf[k as usize..].iter().rev().sum(), 1e-11);
            close(above, pmf[..k as usize].iter().sum(), 1e-11);
        }
    }
}

#[test]
fn beta_quantiles_have_their_closed_forms() {
    // Beta(1, b) has the distribution function 1 - (1 - x)^b, Beta(a, 1) has x^a, Beta(1/2, 1/2) is the arcsine law.
    for mass in [1e-12, 0.025, 0.5, 0.975] {
        for n in [1.0, 14.0, 1e4, 1e7] {
            close(beta_quantile(1.0, n, mass, Tail::Lower), -((-mass).ln_1p() / n).exp_m1(), 1e-9);
            close(beta_quantile(n, 1.0, mass, Tail::Lower), mass.powf(1.0 / n), 1e-9);
            close(beta_quantile(1.0, n, mass, Tail::Upper), -(mass.ln() / n).exp_m1(), 1e-9);
        }
        close(beta_quantile(0.5, 0.5, mass, Tail::Lower), (PI / 2.0 * mass).sin().powi(2), 1e-9);
    }
}
