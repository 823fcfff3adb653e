//! RFC 5681 and RFC 3465, acknowledgment by acknowledgment.

use super::*;
use crate::config::{InitialWindow, Window};

const SMSS: u64 = 1000;

fn congestion(increase: Increase, segments: u32, threshold: Option<u32>) -> Congestion {
    let config = Config {
        increase,
        initial_window: InitialWindow::Segments(segments),
        initial_ssthresh: threshold.map(Window::Segments),
        ..Config::default()
    };
    Congestion::new(&config, SMSS)
}

/// An acknowledgment of `octets`.
fn hear(congestion: &mut Congestion, octets: u64) {
    congestion.grow(Growth {
        now: Time::ZERO,
        octets,
        delivered: octets,
        round_trip: Span::from_millis(100),
        sample: None,
        acknowledged: 0,
        next: 0,
    });
}

/// RFC 5681 equation 2: by the octets acknowledged, at most a segment.
#[test]
fn slow_start_counts_acknowledgments() {
    for (octets, grown) in [(1, 1), (999, 999), (1000, 1000), (2000, 1000), (50_000, 1000)] {
        let mut congestion = congestion(Increase::PerAcknowledgment, 4, None);
        hear(&mut congestion, octets);
        assert_eq!(congestion.window, 4000 + grown);
    }
}

/// Growth by octets that are newly known to have arrived: an acknowledgment of eleven segments, ten of which were known
/// to have arrived, counts as one segment. In congestion avoidance ten such acknowledgments make a segment of a window
/// of ten, and a window of eleven needs eleven.
#[test]
fn what_arrived_counts_once() {
    for (threshold, count, segments) in
        [(None, 1, 11), (Some(10), 9, 10), (Some(10), 10, 11), (Some(10), 20, 11), (Some(10), 21, 12)]
    {
        let mut congestion = congestion(Increase::Delivered, 10, threshold);
        let acknowledgment = Growth {
            now: Time::ZERO,
            octets: 11 * SMSS,
            delivered: SMSS,
            round_trip: Span::from_millis(100),
            sample: None,
            acknowledged: 0,
            next: 0,
        };
        for _ in 0..count {
            congestion.grow(acknowledgment);
        }
        assert_eq!(congestion.window, segments * SMSS, "{count} times");
    }
}

/// RFC 3465 section 2.1: by the octets acknowledged, at most L segments.
#[test]
fn slow_start_counts_octets() {
    for (most, octets, grown) in
        [(1, 2000, 1000), (2, 2000, 2000), (2, 3000, 2000), (8, 3000, 3000), (2, 10, 10)]
    {
        let mut congestion = congestion(Increase::Octets(most), 4, None);
        hear(&mut congestion, octets);
        assert_eq!(congestion.window, 4000 + grown);
    }
}

/// Octets acknowledged beyond the threshold count for congestion avoidance: 7 segments, 2000 octets are counted, of
/// which 1000 reach the threshold of 8, and 1000 in 8000 add 125.
#[test]
fn octets_are_shared_at_the_threshold() {
    let mut congestion = congestion(Increase::Octets(2), 7, Some(8));
    hear(&mut congestion, 2000);
    assert_eq!(congestion.window, 8000 + 125);
}

/// RFC 5681 equation 3 against real numbers: SMSS * SMSS / cwnd for each acknowledgment. The engine rounds down, and
/// keeps the rest for the next one.
#[test]
fn congestion_avoidance_by_acknowledgments() {
    for segments in [2, 10, 33, 500] {
        let mut congestion = congestion(Increase::PerAcknowledgment, segments, Some(2));
        let mut exact = congestion.window as f64;
        for _ in 0..3 * segments {
            hear(&mut congestion, SMSS);
            exact += (SMSS * SMSS) as f64 / exact;
            let behind = exact - congestion.window as f64;
            assert!((-0.1..2.0).contains(&behind), "{segments}: {behind}");
        }
    }
}

/// A segment a round trip: n acknowledgments of a segment each add nearly one, and half as many of two nearly half.
#[test]
fn a_round_trip_adds_a_segment_or_half_with_delayed_acknowledgments() {
    for (octets, least, most) in [(1000, 970, 1000), (2000, 485, 500)] {
        let mut congestion = congestion(Increase::PerAcknowledgment, 40, Some(2));
        for _ in 0..40 * SMSS / octets {
            hear(&mut congestion, octets);
        }
        let grown = congestion.window - 40 * SMSS;
        assert!((least..=most).contains(&grown), "{octets}: {grown}");
    }
    // Octets count the same, however they are acknowledged.
    for octets in [500, 1000, 2000, 40_000] {
        let mut congestion = congestion(Increase::Octets(2), 40, Some(2));
        for _ in 0..40 * SMSS / octets {
            hear(&mut congestion, octets);
        }
        let grown = congestion.window - 40 * SMSS;
        assert!((970..=1000).contains(&grown), "{octets}: {grown}");
    }
}

/// Equation 4, with its minimum; a loss discards the growth that congestion avoidance had earned towards the next
/// octet.
#[test]
fn a_loss_halves_what_it_is_told() {
    for (base, threshold) in [(20_000, 10_000), (5001, 2500), (3999, 2000), (0, 2000)] {
        let mut congestion = congestion(Increase::PerAcknowledgment, 50, None);
        congestion.lose(base);
        assert_eq!((congestion.threshold, congestion.window), (threshold, 50_000));
        congestion.collapse();
        assert_eq!((congestion.threshold, congestion.window), (threshold, SMSS));
        assert!(congestion.in_slow_start());
    }
}

/// RFC 9438 section 4.6: 0.7 of it.
#[test]
fn cubic_keeps_seven_tenths() {
    let config = Config { congestion: Algorithm::Cubic, ..Config::default() };
    let mut congestion = Congestion::new(&config, SMSS);
    congestion.lose(20_000);
    assert_eq!(congestion.threshold, 14_000);
    congestion.lose(1000);
    assert_eq!(congestion.threshold, 2000);
}

/// Slow start ends where the threshold is reached (RFC 5681: either may be used where they are equal).
#[test]
fn the_threshold_ends_slow_start() {
    let mut congestion = congestion(Increase::PerAcknowledgment, 4, Some(6));
    assert!(congestion.in_slow_start());
    hear(&mut congestion, SMSS);
    hear(&mut congestion, SMSS);
    assert_eq!((congestion.window, congestion.in_slow_start()), (6000, false));
    hear(&mut congestion, SMSS);
    assert_eq!(congestion.window, 6166);
}

#[test]
fn no_window_is_without_limit() {
    for increase in [Increase::PerAcknowledgment, Increase::Octets(u16::MAX)] {
        for congestion_control in [Algorithm::Reno, Algorithm::Cubic] {
            let config = Config { increase, congestion: congestion_control, ..Config::default() };
            let mut congestion = Congestion::new(&config, 65_000);
            for _ in 0..100_000 {
                hear(&mut congestion, 1 << 30);
            }
            assert!(congestion.window <= 1 << 32);
            congestion.lose(congestion.window);
            for _ in 0..1000 {
                hear(&mut congestion, 1 << 30);
            }
            assert!(congestion.window <= 1 << 32);
        }
    }
}
