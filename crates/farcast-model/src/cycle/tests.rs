use super::*;

/// Computes Q as printed, with plain powers.
fn printed_timeout_probability(p: f64, w: f64) -> f64 {
    let q: f64 = 1.0 - p;
    let factor = 1.0 + q.powi(3) * (1.0 - q.powf(w - 3.0));
    ((1.0 - q.powi(3)) * factor / (1.0 - q.powf(w))).min(1.0)
}

#[test]
fn timeout_probability_is_the_printed_one() {
    for p in [1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9] {
        for w in [1.0, 2.0, 3.5, 10.0, 34.0, 200.0] {
            let (ours, printed) = (timeout_probability(p, w), printed_timeout_probability(p, w));
            assert!((ours - printed).abs() < 1e-9, "p {p}, w {w}: {ours} and {printed}");
        }
    }
}

#[test]
fn timeout_probability_goes_to_three_over_the_window() {
    for w in [1.0_f64, 3.0, 4.0, 30.0, 1e6] {
        let limit = (3.0 / w).min(1.0);
        for p in [0.0, 5e-324, 1e-300, 1e-18, 1e-13] {
            let ours = timeout_probability(p, w);
            assert!((ours / limit - 1.0).abs() < 1e-6, "p {p:e}, w {w}: {ours} and {limit}");
        }
    }
}

/// By hand: f(1/2) = 1 + 1/2 + 2/4 + 4/8 + 8/16 + 16/32 + 32/64 = 4; twice that after division by 1 - p.
#[test]
fn timeouts_double_up_to_the_seventh() {
    assert!((timeouts_s(0.5, Span::from_secs(3)) - 24.0).abs() < 1e-12);
    assert!((timeouts_s(0.0, Span::from_secs(3)) - 3.0).abs() < 1e-12);
}

/// The length of a sequence of k timeouts is (2^k - 1) T0 up to six, and grows by 64 T0 from then on; k is geometric.
#[test]
fn timeouts_are_the_mean_over_the_length_of_a_sequence() {
    for p in [0.01_f64, 0.2, 0.6] {
        let length = |k: i32| {
            if k <= 6 { f64::from((1 << k) - 1) } else { 63.0 + 64.0 * f64::from(k - 6) }
        };
        let mean: f64 = (1..2000).map(|k| p.powi(k - 1) * (1.0 - p) * length(k)).sum();
        let ours = timeouts_s(p, Span::from_secs(1));
        assert!((ours / mean - 1.0).abs() < 1e-9, "p {p}: {ours} and {mean}");
    }
}
