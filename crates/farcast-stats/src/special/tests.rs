use core::f64::consts::PI;

use super::{Tail, beta_quantile, beta_tails, ln_beta, t_quantile};

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
