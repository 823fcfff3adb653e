use proptest::prelude::*;

use super::*;
use crate::pftk::tests::{any_path, probability};

fn transfer(segments: u64, initial_window: u32, b: u32, window: Option<f64>, p: f64) -> Transfer {
    let path = Path {
        loss: probability(p),
        rtt: Span::from_secs(1),
        timeout: Span::from_secs(2),
        packets_per_ack: b,
        window,
    };
    Transfer { segments, initial_window, path, delayed_ack: Span::from_millis(100), handshake: None }
}

fn latency(segments: u64, initial_window: u32, b: u32, window: Option<f64>, p: f64) -> Latency {
    transfer(segments, initial_window, b, window, p).latency().expect("inside")
}

/// Round by round with whole segments: each sends what the window holds, and each full or last group of `b` of its
/// segments draws an ACK, which opens the window by one. Rounds in whole, and with the last one counted by its share.
fn round_table(segments: u64, initial_window: u64, b: u64, window: u64) -> (f64, f64) {
    let (mut left, mut rounds, mut size) = (segments, 0_u32, initial_window);
    loop {
        let sent = size.min(window);
        if left <= sent {
            return (f64::from(rounds) + 1.0, f64::from(rounds) + left as f64 / sent as f64);
        }
        left -= sent;
        rounds += 1;
        size += sent.div_ceil(b);
    }
}

/// The same with a receiver that holds an odd segment back for the next round, once the first ACK has come.
fn round_table_with_held_acks(segments: u64, b: u64) -> f64 {
    let (mut left, mut rounds, mut size, mut held) = (segments, 0_u32, 1, 0);
    while left > 0 {
        left = left.saturating_sub(size);
        rounds += 1;
        let arrived = held + size;
        // The timer frees what would otherwise be waited for by both sides.
        let acks = (arrived / b).max(1);
        held = arrived.saturating_sub(acks * b);
        size += acks;
    }
    f64::from(rounds)
}

fn sizes() -> impl Iterator<Item = u64> {
    (1..3000).chain([10_000, 100_000, 1_000_000])
}

const NO_WINDOW: u64 = 1 << 40;

/// Doubling is exact: the table is the model rounded up.
#[test]
fn doubling_is_the_round_table_within_one_round() {
    for initial in [1, 2, 3, 4, 10] {
        for segments in sizes() {
            let model = latency(segments, initial, 1, None, 0.0).slow_start_s;
            let (table, _) = round_table(segments, initial.into(), 1, NO_WINDOW);
            assert!(
                (-1e-9..1.0).contains(&(table - model)),
                "{segments} from {initial}: {table} and {model}"
            );
        }
    }
}

/// With a window that doubling meets exactly, the rounds behind it are exact too.
#[test]
fn a_window_that_doubling_meets_is_the_round_table_within_one_round() {
    for (initial, window) in [(1_u32, 32_u32), (2, 64), (3, 24), (10, 40)] {
        for segments in sizes() {
            let model = latency(segments, initial, 1, Some(f64::from(window)), 0.0).slow_start_s;
            let (table, _) = round_table(segments, initial.into(), 1, window.into());
            assert!((-1e-9..1.0).contains(&(table - model)), "{segments} from {initial} to {window}");
        }
    }
}

#[test]
fn delayed_acks_are_the_round_table_within_one_round() {
    for initial in [2, 3, 4, 10] {
        for segments in sizes() {
            let model = latency(segments, initial, 2, None, 0.0).slow_start_s;
            let (table, _) = round_table(segments, initial.into(), 2, NO_WINDOW);
            assert!((table - model).abs() < 1.0, "{segments} from {initial}: {table} and {model}");
        }
    }
    // From one segment the rounding up of ACKs would gain more than a round; a receiver that holds them back does not.
    for segments in sizes() {
        let (model, table) =
            (latency(segments, 1, 2, None, 0.0).slow_start_s, round_table_with_held_acks(segments, 2));
        assert!((table - model).abs() < 1.0, "{segments} from 1: {table} and {model}");
    }
}

/// Any window: the work of a round is compared, because rounding up the last round adds to the rounding of growth.
#[test]
fn windows_are_the_round_table_within_one_round() {
    for (b, initials) in [(1_u32, &[1_u32, 2, 3, 10][..]), (2, &[2, 3, 10])] {
        for &initial in initials {
            for window in [10_u32, 12, 34, 100] {
                for segments in sizes() {
                    let model = latency(segments, initial, b, Some(f64::from(window)), 0.0).slow_start_s;
                    let (_, table) = round_table(segments, initial.into(), b.into(), window.into());
                    assert!((table - model).abs() < 1.0, "{segments}, b {b}, {initial} to {window}");
                }
            }
        }
    }
}

/// 100 segments from 2, b = 2: log(1 + 100/4)/log(1.5) = 8.035 rounds.
#[test]
fn without_loss_there_is_only_slow_start() {
    let ours = latency(100, 2, 2, None, 0.0);
    assert!((ours.slow_start_s - 26.0_f64.ln() / 1.5_f64.ln()).abs() < 1e-9);
    assert!((ours.total_s() - ours.slow_start_s).abs() < 1e-12, "{ours:?}");
    assert!((ours.slow_start_segments - 100.0).abs() < 1e-12);
    assert!(ours.loss_probability.abs() < 1e-12);
    for p in [5e-324, 1e-200, 1e-15, 1e-12] {
        for window in [None, Some(20.0)] {
            let (near, none) = (latency(100, 2, 2, window, p), latency(100, 2, 2, window, 0.0));
            assert!((near.total_s() - none.total_s()).abs() < 1e-8, "p {p:e}: {near:?}");
        }
    }
}

/// If the window that slow start reaches is `W_max`, both branches hold; d there is (gamma `W_max` - w1)/(gamma - 1).
#[test]
fn the_branches_of_slow_start_meet_at_the_window() {
    for (b, initial, window) in [(1, 1, 32.0), (2, 2, 34.0), (2, 10, 100.0), (3, 4, 50.0)] {
        let transfer = transfer(1, initial, b, Some(window), 0.0);
        let growth = 1.0 / f64::from(b);
        let segments = ((1.0 + growth) * window - f64::from(initial)) / growth;
        let below = transfer.slow_start_s(segments, window);
        let above = transfer.slow_start_s(segments, window * (1.0 + 1e-15));
        assert!((above - below).abs() < 1e-9, "b {b}, {initial} to {window}: {below} and {above}");
        // W_max is reached after log(W_max/w1) rounds, and it takes one more to send it.
        let rounds = (window / f64::from(initial)).ln() / (1.0 + growth).ln() + 1.0;
        assert!((below - rounds).abs() < 1e-9);
    }
}

/// The mean number of segments up to the first loss or the end, added up; the paper's is above it by (1-p)^d.
#[test]
fn slow_start_segments_are_the_papers_and_near_the_exact_mean() {
    for p in [1e-4_f64, 0.01, 0.3] {
        for segments in [1_u32, 2, 10, 1000] {
            let d = f64::from(segments);
            let exact: f64 = (0..segments).map(|k| (1.0 - p).powi(k.cast_signed())).sum();
            let lossless = (1.0 - p).powf(d);
            let paper = (1.0 - lossless) * (1.0 - p) / p + 1.0;
            let ours = latency(segments.into(), 1, 2, None, p).slow_start_segments;
            assert!((ours - paper.min(d)).abs() < 1e-8, "{segments}, p {p}: {ours} and {paper}");
            assert!(
                (-1e-8..=lossless + 1e-8).contains(&(ours - exact)),
                "{segments}, p {p}: {ours} and {exact}"
            );
        }
    }
}

/// 100 segments, p = 0.01, RTT 100 ms, T0 1 s, b = 2, `W_max` 20, w1 = 2, worked out apart from the printed equations:
/// 63.763 segments of slow start reach 22.6 and so 20; then the loss, and the rest by CSA equation (22).
#[test]
fn the_terms_of_a_lossy_transfer() {
    let given = transfer(100, 2, 2, Some(20.0), 0.01);
    let path = Path { rtt: Span::from_millis(100), timeout: Span::from_secs(1), ..given.path };
    let handshake = Some(Handshake { timeout: Span::from_secs(3), return_loss: probability(0.01) });
    let ours = Transfer { path, handshake, ..given }.latency().expect("inside");
    for (term, ours, expected) in [
        ("segments", ours.slow_start_segments, 63.762_798),
        ("slow start", ours.slow_start_s, 0.706_701),
        ("loss", ours.loss_s, 0.173_076),
        ("congestion avoidance", ours.congestion_avoidance_s, 0.551_342),
        // Twice 3 s * 0.01/0.98.
        ("handshake", ours.handshake_s, 0.1 + 6.0 * 0.01 / 0.98),
        ("delayed ACK", ours.delayed_ack_s, 0.0),
        ("all", ours.total_s(), 1.431_120 + 0.1 + 6.0 * 0.01 / 0.98),
    ] {
        assert!((ours - expected).abs() < 1e-6, "{term}: {ours} and {expected}");
    }
    assert_eq!(ours.slow_start_bound, Bound::Window);
    assert!((ours.slow_start_window - 20.0).abs() < 1e-12);
}

#[test]
fn a_long_transfer_goes_to_the_steady_rate() {
    let transfer = transfer(1_000_000_000_000, 2, 2, Some(40.0), 1e-3);
    let rate = pftk::full(&transfer.path).expect("inside").received_packets_per_s;
    let ours = transfer.latency().expect("inside").total_s();
    assert!((ours * rate / 1e12 - 1.0).abs() < 1e-6);
}

#[test]
fn a_first_window_that_draws_no_ack_waits_for_the_timer() {
    for (segments, initial, b, waits) in
        [(9, 1, 2, true), (9, 2, 2, false), (9, 1, 1, false), (1, 4, 2, false)]
    {
        let ours = latency(segments, initial, b, None, 0.0).delayed_ack_s;
        assert!((ours - if waits { 0.1 } else { 0.0 }).abs() < 1e-12, "{segments} from {initial}, b {b}");
    }
}

#[test]
fn refusals_are_one_sentence() {
    use std::string::ToString;
    let good = transfer(10, 2, 2, Some(8.0), 0.01);
    let lossy = Path { loss: probability(0.5), ..good.path };
    let handshake = |p| Some(Handshake { timeout: Span::from_secs(1), return_loss: probability(p) });
    for (bad, sentence) in [
        (Transfer { segments: 0, ..good }, "the transfer has 0 segments; it must have at least 1"),
        (
            Transfer { initial_window: 0, ..good },
            "the initial window is 0 segments; it must be at least 1 and at most the window, 8",
        ),
        (
            Transfer { initial_window: 9, ..good },
            "the initial window is 9 segments; it must be at least 1 and at most the window, 8",
        ),
        (
            Transfer { handshake: handshake(1.0), ..good },
            "the loss probability of a packet of the handshake is 1; it must be below 0.5",
        ),
        (
            Transfer { path: lossy, handshake: handshake(0.0), ..good },
            "the loss probability of a packet of the handshake is 0.5; it must be below 0.5",
        ),
        (
            Transfer { path: Path { rtt: Span::ZERO, ..good.path }, ..good },
            "the round trip takes 0 s; it must take longer",
        ),
    ] {
        assert_eq!(bad.latency().expect_err("refused").to_string(), sentence);
    }
    assert!(Transfer { path: lossy, ..good }.latency().is_ok(), "without a handshake");
}

proptest! {
    #[test]
    fn whatever_comes_the_terms_are_finite(
        path in any_path(),
        segments in prop_oneof![0..1000u64, any::<u64>()],
        initial_window in prop_oneof![0..20u32, any::<u32>()],
        (delay, timeout) in any::<(u64, u64)>(),
        return_loss in prop_oneof![Just(None), (0.0..=1.0f64).prop_map(Some)],
    ) {
        let handshake =
            return_loss.map(|p| Handshake { timeout: Span::from_nanos(timeout), return_loss: probability(p) });
        let delayed_ack = Span::from_nanos(delay);
        let transfer = Transfer { segments, initial_window, path, delayed_ack, handshake };
        if let Ok(ours) = transfer.latency() {
            for number in [
                ours.handshake_s, ours.slow_start_s, ours.loss_s, ours.congestion_avoidance_s, ours.delayed_ack_s,
                ours.total_s(), ours.slow_start_window,
            ] {
                prop_assert!(number.is_finite() && number >= 0.0, "{transfer:?}: {ours:?}");
            }
            prop_assert!((0.0..=1.0).contains(&ours.loss_probability));
            prop_assert!((0.0..=segments as f64).contains(&ours.slow_start_segments));
            prop_assert!(ours.slow_start_window <= path.window.unwrap_or(f64::INFINITY));
        }
    }

    /// Not in the loss with an ACK for each packet: PFTK's branches do not meet there.
    #[test]
    fn more_data_more_loss_and_longer_round_trips_take_longer(
        segments in 1..5000u64,
        initial in 1..10u32,
        p in 1e-6..0.2f64,
        b in 1..4u32,
        window in prop_oneof![Just(None), (10.0..200.0f64).prop_map(Some)],
    ) {
        // The wait for a delayed ACK does not grow with the round trip.
        let less = Transfer { delayed_ack: Span::ZERO, ..transfer(segments, initial, b, window, p) };
        let total = |transfer: Transfer| transfer.latency().expect("inside").total_s();
        let least = total(less) * (1.0 - 1e-9);
        let more = total(Transfer { segments: segments + 1, ..less });
        prop_assert!(more >= least, "{less:?}: {more}");
        let slower = Path { rtt: less.path.rtt * 2, timeout: less.path.timeout * 2, ..less.path };
        let slower = total(Transfer { path: slower, ..less });
        prop_assert!(slower >= 2.0 * least, "{less:?}: {slower}");
        let lossier = Path { loss: probability(p * 1.01), ..less.path };
        let lossier = total(Transfer { path: lossier, ..less });
        prop_assert!(b == 1 || lossier >= least, "{less:?}: {lossier}");
    }
}
