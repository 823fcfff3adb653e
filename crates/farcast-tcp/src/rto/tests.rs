//! RFC 6298 by hand, and Linux's variation beside a second implementation and the kernel.

mod linux;

use super::*;

const fn ms(milliseconds: u64) -> Span {
    Span::from_millis(milliseconds)
}

/// Without a floor that matters, and a clock that measures everything.
fn exact() -> RtoConfig {
    RtoConfig { least: ms(1), granularity: Span::from_nanos(1), ..RtoConfig::default() }
}

fn after(config: RtoConfig, trips: &[Span]) -> Estimator {
    let mut estimator = Estimator::new(config);
    for &trip in trips {
        estimator.sample(trip, AckProgress::default());
    }
    estimator
}

#[test]
fn before_a_measurement_the_timeout_is_a_second() {
    let estimator = Estimator::new(RtoConfig::default());
    assert_eq!((estimator.timeout(), estimator.smoothed()), (ms(1000), None));
    assert_eq!(estimator.least(), Span::MAX);
    assert_eq!(Estimator::new(RtoConfig::linux_2_4()).timeout(), ms(3000));
}

/// | R (ms) | RTTVAR                        | SRTT                        | RTO = SRTT + 4 RTTVAR |
/// |--------|-------------------------------|-----------------------------|-----------------------|
/// | 100    | 50                            | 100                         | 300                   |
/// | 140    | 3/4 50 + 1/4 40 = 47.5        | 7/8 100 + 1/8 140 = 105     | 295                   |
/// | 60     | 3/4 47.5 + 1/4 45 = 46.875    | 7/8 105 + 1/8 60 = 99.375   | 286.875               |
#[test]
fn a_sequence_of_measurements() {
    let trips = [ms(100), ms(140), ms(60)];
    for (count, smoothed, timeout) in [(1, 100_000, 300_000), (2, 105_000, 295_000), (3, 99_375, 286_875)] {
        let estimator = after(exact(), &trips[..count]);
        assert_eq!(estimator.smoothed(), Some(Span::from_micros(smoothed)));
        assert_eq!(estimator.timeout(), Span::from_micros(timeout));
    }
    assert_eq!(after(exact(), &trips).least(), ms(60));
}

/// Equal round trips leave no variation: RTO = SRTT + G (rule 2.3).
#[test]
fn the_granularity_is_what_variation_there_is_at_least() {
    let config = RtoConfig { least: ms(1), granularity: ms(10), ..RtoConfig::default() };
    let trips = [ms(200); 100];
    assert_eq!(after(config, &trips).timeout(), ms(210));
}

/// The RFC's floor holds for the timeout; Linux's for four times the variation.
#[test]
fn floors_of_both_kinds() {
    let short = [ms(20); 100];
    assert_eq!(after(RtoConfig::default(), &short).timeout(), ms(1000));
    assert_eq!(after(RtoConfig { least: ms(200), ..RtoConfig::default() }, &short).timeout(), ms(200));
    assert_eq!(after(RtoConfig::linux(), &short).timeout(), ms(220));
    // A floor does nothing where the variation is large: 300 + 4 * 150.
    let config = RtoConfig { least: ms(500), ..RtoConfig::default() };
    assert_eq!(after(config, &[ms(300)]).timeout(), ms(900));
    assert_eq!(after(RtoConfig { floor: Floor::Variation, ..config }, &[ms(300)]).timeout(), ms(900));
}

/// Rule 5.5 doubles; rule 2.5 caps; a measurement ends it (section 5, the last paragraph), as does an undone timeout.
#[test]
fn backing_off() {
    let mut estimator = after(exact(), &[ms(1000)]);
    for seconds in [3, 6, 12, 24, 48, 60, 60] {
        assert_eq!(estimator.timeout(), Span::from_secs(seconds));
        estimator.back_off();
    }
    for _ in 0..1000 {
        estimator.back_off();
    }
    assert_eq!(estimator.timeout(), Span::from_secs(60));
    let mut undone = estimator.clone();
    undone.stop_backing_off();
    assert_eq!(undone.timeout(), Span::from_secs(3));
    // RTTVAR = 3/4 500, SRTT as it was.
    estimator.sample(ms(1000), AckProgress::default());
    assert_eq!(estimator.timeout(), ms(2500));
}

/// Rule 5.7: three seconds after a lost SYN, unless more is known or set.
#[test]
fn after_a_lost_syn() {
    let mut estimator = Estimator::new(RtoConfig::default());
    estimator.back_off();
    estimator.back_off();
    estimator.syn_was_lost();
    assert_eq!(estimator.timeout(), ms(3000));
    estimator.sample(ms(2000), AckProgress::default());
    assert_eq!(estimator.timeout(), ms(6000));

    let mut patient = Estimator::new(RtoConfig { initial: ms(9000), ..RtoConfig::default() });
    patient.syn_was_lost();
    assert_eq!(patient.timeout(), ms(9000));
}

/// A clock of ticks measures the nearest number of them, and one at least.
#[test]
fn round_trips_are_measured_in_ticks() {
    for (granularity, trip, measured) in [
        (ms(10), ms(104), ms(100)),
        (ms(10), ms(105), ms(110)),
        (ms(10), ms(1), ms(10)),
        (ms(10), Span::ZERO, ms(10)),
        (ms(500), ms(749), ms(500)),
        (ms(500), ms(750), ms(1000)),
        (Span::from_nanos(3), Span::from_nanos(4), Span::from_nanos(3)),
        (Span::from_nanos(3), Span::from_nanos(5), Span::from_nanos(6)),
        (Span::from_nanos(1), Span::from_nanos(7), Span::from_nanos(7)),
        (Span::ZERO, Span::from_nanos(7), Span::from_nanos(7)),
    ] {
        let config = RtoConfig { granularity, ..RtoConfig::default() };
        assert_eq!(after(config, &[trip]).smoothed(), Some(measured), "{granularity:?} {trip:?}");
    }
    // The least round trip is not rounded: it is compared with spans that are not.
    assert_eq!(after(RtoConfig::linux_2_4(), &[ms(104)]).least(), ms(104));
}

#[test]
fn nothing_overflows() {
    for trip in [Span::ZERO, Span::from_nanos(1), Span::from_secs(1 << 30), Span::MAX] {
        let mut estimator = after(RtoConfig::linux(), &[trip, Span::MAX, Span::ZERO, trip]);
        for _ in 0..100 {
            estimator.back_off();
            assert!(estimator.timeout() <= Span::from_secs(120));
        }
    }
}

#[test]
fn limits_have_to_be_in_order() {
    let good = RtoConfig::default();
    assert_eq!(good.check(), Ok(()));
    for bad in [
        RtoConfig { least: Span::ZERO, ..good },
        RtoConfig { initial: ms(999), ..good },
        RtoConfig { most: ms(999), ..good },
        RtoConfig { most: Span::MAX, ..good },
        RtoConfig { granularity: ms(1001), ..good },
    ] {
        assert_eq!(bad.check(), Err(ConfigError::Rto));
    }
}
