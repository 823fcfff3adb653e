use proptest::prelude::*;

use super::*;
use crate::Bound;
use farcast_core::{Probability, Span};

pub(crate) fn probability(p: f64) -> Probability {
    Probability::new(p).expect("a probability")
}

fn path(p: f64, rtt_s: f64, timeout_s: f64, b: u32, window: Option<f64>) -> Path {
    Path {
        loss: probability(p),
        rtt: Span::from_secs_f64(rtt_s),
        timeout: Span::from_secs_f64(timeout_s),
        packets_per_ack: b,
        window,
    }
}

/// Equation (32) as printed, with plain powers: B(p) and T(p).
fn printed(path: &Path) -> (f64, f64) {
    let (p, b) = (path.loss.get(), f64::from(path.packets_per_ack));
    let (rtt, timeout) = (path.rtt.as_secs_f64(), path.timeout.as_secs_f64());
    let (q, limit) = (1.0 - p, path.window.unwrap_or(f64::INFINITY));
    let before_loss = q / p;
    let backoff =
        1.0 + p + 2.0 * p.powi(2) + 4.0 * p.powi(3) + 8.0 * p.powi(4) + 16.0 * p.powi(5) + 32.0 * p.powi(6);
    let offset = (2.0 + b) / (3.0 * b);
    let free = offset + (8.0 * q / (3.0 * b * p) + offset * offset).sqrt();
    let (w, rounds) = if free < limit {
        let sixth = (2.0 + b) / 6.0;
        (free, sixth + (2.0 * b * q / (3.0 * p) + sixth * sixth).sqrt() + 1.0)
    } else {
        (limit, b / 8.0 * limit + before_loss / limit + 2.0)
    };
    let timeouts = (1.0 - q.powi(3)) * (1.0 + q.powi(3) * (1.0 - q.powf(w - 3.0))) / (1.0 - q.powf(w));
    let timeouts = timeouts.min(1.0);
    let time = rtt * rounds + timeouts * timeout * backoff / q;
    ((before_loss + w + timeouts / q) / time, (before_loss + w / 2.0 + timeouts) / time)
}

#[test]
fn full_is_the_printed_equation() {
    for p in [1e-5, 5e-4, 0.01, 0.1, 0.3, 0.7] {
        for b in [1, 2, 3] {
            for window in [None, Some(1.0), Some(6.5), Some(40.0)] {
                let path = path(p, 0.56, 1.12, b, window);
                let (ours, (sent, received)) = (full(&path).expect("inside"), printed(&path));
                assert!((ours.sent.packets_per_s / sent - 1.0).abs() < 1e-9, "{path:?}");
                assert!((ours.received_packets_per_s / received - 1.0).abs() < 1e-9, "{path:?}");
            }
        }
    }
}

/// p = 1/4, b = 2, RTT = T0 = 1 s without a window, by hand: E\[`W_u`\] = 2/3 + sqrt(4 + 4/9) = 2.774852,
/// Q = 1 because the window is below 3, f(1/4) = 1.4921875, so B = (3 + 2.774852 + 4/3)/(3.774852 + 1.989583).
#[test]
fn a_value_worked_by_hand() {
    let ours = full(&path(0.25, 1.0, 1.0, 2, None)).expect("inside");
    assert!((ours.unconstrained_window - 2.774_852).abs() < 1e-6);
    assert!((ours.timeout_probability - 1.0).abs() < 1e-12);
    assert!((ours.sent.packets_per_s - 7.108_185 / 5.764_435).abs() < 1e-6, "{ours:?}");
    assert_eq!(ours.sent.bound, Bound::Loss);
}

/// The PFTK column beside runs of ns-2: 2 Mbit/s, packets of 1000 octets of data and 40 of headers, 560 ms of
/// propagation. It is the approximate model with an ACK for each packet and a timeout of two round trips. Where losses
/// limit, the round trip is the propagation; where the window does, it includes sending a packet and an ACK. Four of
/// its rows are bounded by the link, which is not in the model.
#[test]
fn the_reference_column_of_a_simulator() {
    let transmission = (1040.0 + 40.0) * 8.0 / 2e6;
    for (p, window, published, bound) in [
        (0.0, 20.0, 283_527.0, Bound::Window),
        (0.0001, 20.0, 283_527.0, Bound::Window),
        (0.001, 20.0, 283_527.0, Bound::Window),
        (0.01, 20.0, 167_406.0, Bound::Loss),
        (0.0, 100.0, 1_417_635.0, Bound::Window),
        (0.0001, 100.0, 1_417_635.0, Bound::Window),
        (0.001, 100.0, 550_805.0, Bound::Loss),
        (0.01, 100.0, 167_406.0, Bound::Loss),
        (0.0001, 1000.0, 1_748_849.0, Bound::Loss),
        (0.001, 1000.0, 550_805.0, Bound::Loss),
        (0.01, 1000.0, 167_406.0, Bound::Loss),
    ] {
        let rtt = if bound == Bound::Window { 0.56 + transmission } else { 0.56 };
        let ours = approximate(&path(p, rtt, 1.12, 1, Some(window))).expect("inside");
        assert_eq!(ours.bound, bound, "p {p}, window {window}");
        let bits_per_s = ours.bits_per_s(core::num::NonZeroU32::new(1000).expect("positive"));
        assert!((bits_per_s - published).abs() < 1.0, "p {p}, window {window}: {bits_per_s}");
    }
}

#[test]
fn without_loss_it_is_the_window_in_each_round_trip() {
    let path = path(0.0, 0.5, 1.0, 2, Some(34.0));
    for ours in [full(&path).expect("inside").sent, approximate(&path).expect("inside")] {
        assert!((ours.packets_per_s - 68.0).abs() < 1e-9);
        assert_eq!(ours.bound, Bound::Window);
    }
    let prediction = full(&path).expect("inside");
    assert!((prediction.received_packets_per_s - 68.0).abs() < 1e-9);
    assert!(prediction.unconstrained_window.is_infinite());
}

#[test]
fn tiny_losses_are_near_none() {
    for p in [5e-324, 1e-300, 1e-30, 1e-16] {
        let limited = full(&path(p, 0.5, 1.0, 2, Some(34.0))).expect("inside").sent.packets_per_s;
        assert!((limited - 68.0).abs() < 1e-9, "p {p:e}: {limited}");
        // Without a window, the square root law.
        let free = full(&path(p, 0.5, 1.0, 2, None)).expect("inside").sent.packets_per_s;
        let law = (3.0 / (4.0 * p)).sqrt() / 0.5;
        assert!((free / law - 1.0).abs() < 1e-6 || p < 1e-320, "p {p:e}: {free:e} and {law:e}");
        assert!(free.is_finite());
    }
}

/// The relative difference shrinks with the square root of p, since E[W] and the round of recovery are of that order.
#[test]
fn full_tends_to_approximate() {
    for b in [1, 2, 4] {
        let mut before = f64::INFINITY;
        for p in [1e-3, 1e-5, 1e-7, 1e-9] {
            let path = path(p, 0.56, 1.12, b, None);
            let ratio = full(&path).expect("inside").sent.packets_per_s
                / approximate(&path).expect("inside").packets_per_s;
            assert!(
                (ratio - 1.0).abs() < before / 5.0 && (ratio - 1.0).abs() < 6.0 * p.sqrt(),
                "{path:?}: {ratio}"
            );
            before = (ratio - 1.0).abs();
        }
    }
}

/// At the loss where E\[`W_u`\] = `W_max` both branches hold. There (1-p)/p = 3b/8 W^2 - (2+b)/4 W, so the rounds are
/// b/2 W + 1 and b/2 W + 3/2 - b/4.
#[test]
fn the_branches_meet_at_the_window_for_delayed_acks() {
    let window = 20.0_f64;
    for (b, jump) in [(1, 0.25), (2, 0.0), (4, -0.5)] {
        let b_ = f64::from(b);
        let p = 1.0 / (1.0 + 3.0 * b_ / 8.0 * window.powi(2) - (2.0 + b_) / 4.0 * window);
        // No Q, and no timeouts to speak of: a timeout is at least a round trip.
        let rounds = |p: f64| {
            let path = path(p, 1.0, 1.0, b, Some(window));
            Cycle::of(&path).scaled_rounds / Cycle::of(&path).odds
        };
        let (above, below) = (rounds(p * (1.0 + 1e-9)), rounds(p * (1.0 - 1e-9)));
        assert!((below - above - jump).abs() < 1e-4, "b {b}: {below} and {above}");
    }
}

#[test]
fn refusals_are_one_sentence() {
    use std::string::ToString;
    let good = path(0.01, 0.5, 1.0, 2, Some(10.0));
    for (bad, sentence) in [
        (Path { loss: probability(1.0), ..good }, "the loss probability is 1; it must be below 1"),
        (Path { rtt: Span::ZERO, ..good }, "the round trip takes 0 s; it must take longer"),
        (
            Path { timeout: Span::from_millis(499), ..good },
            "the timeout is 0.499 s; it must be at least the round trip, 0.5 s",
        ),
        (Path { packets_per_ack: 0, ..good }, "0 packets for each ACK were given; there must be 1 to 64"),
        (Path { packets_per_ack: 65, ..good }, "65 packets for each ACK were given; there must be 1 to 64"),
        (Path { window: Some(0.5), ..good }, "the window is 0.5 packets; it must be 1 to 1073741824 packets"),
        (
            Path { window: Some(f64::NAN), ..good },
            "the window is NaN packets; it must be 1 to 1073741824 packets",
        ),
        (
            Path { window: Some(f64::INFINITY), ..good },
            "the window is inf packets; it must be 1 to 1073741824 packets",
        ),
        (
            Path { loss: Probability::ZERO, window: None, ..good },
            "nothing bounds the throughput; there must be a loss probability above 0 or a window",
        ),
    ] {
        assert_eq!(full(&bad).expect_err("refused").to_string(), sentence);
        assert_eq!(approximate(&bad).expect_err("refused").to_string(), sentence);
    }
}

/// Any path at all, with values at and beyond the borders.
pub(crate) fn any_path() -> impl Strategy<Value = Path> {
    let p = prop_oneof![
        Just(0.0),
        Just(5e-324),
        Just(1.0 - f64::EPSILON / 2.0),
        Just(1.0),
        (-300.0..0.0f64).prop_map(|e| 10f64.powf(e)),
        0.0..1.0f64
    ];
    let time = || prop_oneof![Just(0), Just(1), Just(u64::MAX), 1..10_000_000_000u64, any::<u64>()];
    let window = prop_oneof![
        Just(None),
        Just(Some(f64::NAN)),
        Just(Some(f64::INFINITY)),
        Just(Some(1.0)),
        Just(Some(crate::MOST_WINDOW)),
        (1.0..1000.0f64).prop_map(Some),
        any::<f64>().prop_map(Some)
    ];
    let b = prop_oneof![1..4u32, 0..70u32, any::<u32>()];
    (p, time(), time(), b, window).prop_map(|(p, rtt, more, packets_per_ack, window)| Path {
        loss: probability(p),
        rtt: Span::from_nanos(rtt),
        timeout: Span::from_nanos(rtt.saturating_add(more)),
        packets_per_ack,
        window,
    })
}

proptest! {
    #[test]
    fn whatever_comes_the_result_is_finite_and_below_the_window(path in any_path()) {
        if let Ok(ours) = full(&path) {
            let most = path.window.unwrap_or(f64::INFINITY) / path.rtt.as_secs_f64();
            let approximate = approximate(&path).expect("the same check").packets_per_s;
            for packets_per_s in [ours.sent.packets_per_s, ours.received_packets_per_s, approximate] {
                prop_assert!(packets_per_s.is_finite() && packets_per_s > 0.0, "{path:?}: {ours:?}");
                prop_assert!(packets_per_s <= most * (1.0 + 1e-12), "{path:?}: {packets_per_s} above {most}");
            }
            prop_assert!((0.0..=1.0).contains(&ours.timeout_probability));
            prop_assert!(ours.received_packets_per_s <= ours.sent.packets_per_s * (1.0 + 1e-12));
        }
    }

    /// With an ACK for each packet the branches do not meet, so there only losses of one branch are compared.
    #[test]
    fn more_loss_and_longer_times_never_help(
        p in 1e-7..0.95f64,
        more in 1.0..1.05f64,
        b in 1..8u32,
        window in prop_oneof![Just(None), (1.0..500.0f64).prop_map(Some)],
        timeout_rtts in 1.0..50.0f64,
    ) {
        let better = path(p, 0.3, 0.3 * timeout_rtts, b, window);
        let worse = Path { loss: probability(p * more), ..better };
        let slower = Path { rtt: better.rtt * 2, timeout: better.timeout * 2, ..better };
        let later = Path { timeout: better.timeout * 2, ..better };
        let sent = |path: &Path| full(path).expect("inside").sent;
        let rate = |path: &Path| sent(path).packets_per_s * (1.0 - 1e-12);
        if b > 1 || sent(&worse).bound == sent(&better).bound {
            prop_assert!(rate(&worse) <= sent(&better).packets_per_s, "{better:?}, {worse:?}");
        }
        prop_assert!(rate(&slower) <= sent(&better).packets_per_s / 1.999_999);
        prop_assert!(rate(&later) <= sent(&better).packets_per_s);
        let rate = |path: &Path| approximate(path).expect("inside").packets_per_s;
        prop_assert!(rate(&worse) <= rate(&better) * (1.0 + 1e-12));
        prop_assert!(rate(&slower) <= rate(&better) && rate(&later) <= rate(&better));
    }
}
