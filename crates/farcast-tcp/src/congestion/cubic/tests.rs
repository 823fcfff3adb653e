//! RFC 9438's formulas, evaluated separately.

use super::*;

/// A round trip so long that Reno is slower than the curve.
const ROUND_TRIP: Span = Span::from_millis(400);

fn at(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds)
}

/// Equations 1 and 2 with C = 0.4, by the standard library.
fn w_cubic(t: f64, w_max: f64, cwnd_epoch: f64) -> f64 {
    let k = ((w_max - cwnd_epoch) / 0.4).powf(1.0 / 3.0);
    0.4 * (t - k).powi(3) + w_max
}

/// Acknowledges a window's worth of segments evenly in each round trip from `begin` on, until `seconds` later; `check`
/// sees the time since and the window after each round trip.
fn run(cubic: &mut Cubic, begin: f64, mut window: f64, seconds: f64, mut check: impl FnMut(f64, f64)) -> f64 {
    let trip = ROUND_TRIP.as_secs_f64();
    let mut t = 0.0;
    while t < seconds {
        let count = window as u32;
        for n in 0..count {
            let now = begin + t + trip * f64::from(n) / f64::from(count);
            window = cubic.grow(at(now), ROUND_TRIP, window, 1.0);
        }
        t += trip;
        check(t, window);
    }
    window
}

/// A loss at 100 segments, and 70 from there: K = cbrt(30 / 0.4) = 4.217 s. The window follows the curve by a round
/// trip: it is below where the curve is in a round trip, and above where it was one before.
#[test]
fn the_window_follows_the_curve() {
    let mut cubic = Cubic::default();
    cubic.lose(100.0);
    let mut compared = 0;
    run(&mut cubic, 10.0, 70.0, 9.0, |t, window| {
        let trip = ROUND_TRIP.as_secs_f64();
        let (before, behind) = (w_cubic(t - 2.0 * trip, 100.0, 70.0), w_cubic(t + trip, 100.0, 70.0));
        assert!(
            window >= before.max(70.0) - 0.5 && window <= behind + 0.5,
            "{t}: {before} {window} {behind}"
        );
        compared += 1;
    });
    assert!((cubic.k - 4.217_163_326).abs() < 1e-6 && compared >= 22);
}

/// Acknowledgment by acknowledgment: section 4.4's step towards the target of section 4.2, which is not above 1.5
/// windows.
#[test]
fn one_step() {
    for (w_max, cwnd, t, trip) in
        [(100.0, 70.0, 0.5, 0.1), (100.0, 70.0, 3.0, 0.6), (40.0, 28.0, 5.0, 0.5), (500.0, 350.0, 60.0, 2.0)]
    {
        let mut cubic = Cubic::default();
        cubic.lose(w_max);
        let round_trip = Span::from_secs_f64(trip);
        // The first acknowledgment begins the stage, where Reno's estimate is ahead by its step.
        let first = cubic.grow(at(100.0), round_trip, cwnd, 1.0);
        assert!((first - (cwnd + 9.0 / 17.0 / cwnd)).abs() < 1e-9);
        let step = |t: f64, window: f64| {
            (w_cubic(t + trip, w_max, cwnd).clamp(window, 1.5 * window) - window) / window + window
        };
        let next = cubic.grow(at(100.0 + t), round_trip, first, 1.0);
        assert!((next - step(t, first)).abs() < 1e-6, "{w_max} {t}: {next} {}", step(t, first));
    }
}

/// Section 4.7: a loss below the last maximum gives way: `W_max` is 0.85 of the window.
#[test]
fn fast_convergence() {
    let mut cubic = Cubic::default();
    cubic.lose(100.0);
    assert!((cubic.most - 100.0).abs() < 1e-12);
    cubic.lose(80.0);
    assert!((cubic.most - 68.0).abs() < 1e-12);
    cubic.lose(90.0);
    assert!((cubic.most - 90.0).abs() < 1e-12);
    assert!((cubic.prior - 90.0).abs() < 1e-12);
}

/// Section 4.3: over a short round trip the estimate of Reno is ahead of the curve; it grows by 3 (1 - 0.7) / (1 + 0.7)
/// = 0.529 a round trip up to the window before the loss, and by one from there.
#[test]
fn the_reno_friendly_region() {
    let mut cubic = Cubic::default();
    cubic.lose(10.0);
    let trip = Span::from_millis(10);
    let (mut window, mut estimate, mut seconds) = (7.0, 7.0, 0.0);
    let mut fast = 0;
    for _ in 0..200 {
        seconds += 0.001;
        let alpha = if estimate < 10.0 { 9.0 / 17.0 } else { 1.0 };
        fast += u32::from(estimate >= 10.0);
        estimate += alpha / window;
        window = cubic.grow(at(seconds), trip, window, 1.0);
        assert!((window - estimate).abs() < 1e-9, "{window} {estimate}");
    }
    assert!(fast > 20, "both slopes are seen");
}

/// Section 4.8 and section 4.2's end: without a loss before, and after a timeout, the curve begins at the window: K =
/// 0.
#[test]
fn without_a_maximum_it_probes_at_once() {
    for timeout in [false, true] {
        let mut cubic = Cubic::default();
        if timeout {
            cubic.lose(80.0);
            cubic.restart();
        }
        let trip = Span::from_millis(600);
        let first = cubic.grow(at(5.0), trip, 50.0, 1.0);
        // Reno's estimate is ahead at first: up to the 80 before the loss by 9/17 in a round trip, else by one.
        let alpha = if timeout { 9.0 / 17.0 } else { 1.0 };
        assert!((first - (50.0 + alpha / 50.0)).abs() < 1e-9, "{first}");
        let later = cubic.grow(at(15.0), trip, 50.0, 1.0);
        assert!(cubic.k.abs() < 1e-12 && (cubic.most - 50.0).abs() < 1e-12);
        // C * 10.6^3 = 476 above 50: more than half a window is not asked for.
        assert!((later - (50.0 + 25.0 / 50.0)).abs() < 1e-9, "{later}");
    }
}

/// Section 5.8: time in which the window is not used is not counted.
#[test]
fn time_pauses_while_the_window_is_not_used() {
    let start = || {
        let mut cubic = Cubic::default();
        cubic.lose(100.0);
        let window = run(&mut cubic, 10.0, 70.0, 2.0, |_, _| ());
        (cubic, window)
    };
    let ((mut with, window), (mut without, same)) = (start(), start());
    assert!((window - same).abs() < 1e-12);
    let last = with.last.as_secs_f64();
    for pause in [1.0, 5.0, 60.0] {
        with.pause(at(last + pause));
    }
    let after_pause = with.grow(at(last + 60.5), ROUND_TRIP, window, 1.0);
    let at_once = without.grow(at(last + 0.5), ROUND_TRIP, window, 1.0);
    assert!((after_pause - at_once).abs() < 1e-6, "{after_pause} {at_once}");
    assert!(after_pause > window);
}
