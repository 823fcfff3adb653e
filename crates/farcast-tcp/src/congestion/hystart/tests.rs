//! RFC 9406 section 4.2, round by round.

use super::*;

fn micros(microseconds: u64) -> Span {
    Span::from_micros(microseconds)
}

/// Rounds of ten segments each.
struct Rounds {
    hystart: HyStart,
    /// The positions that are acknowledged and sent.
    acknowledged: u64,
}

impl Rounds {
    fn new() -> Self {
        Self { hystart: HyStart::default(), acknowledged: 0 }
    }

    /// One round with these round trips; positions go on by ten.
    fn round(&mut self, trips: &[Span]) {
        let next = self.acknowledged + 20;
        for (n, &trip) in trips.iter().enumerate() {
            // The first acknowledgment of a round ends the round before, and counts the segments sent in it.
            let position = if n == 0 { self.acknowledged + 10 } else { self.acknowledged + 10 + n as u64 };
            self.hystart.sample(Some(trip), position.min(next - 1), next);
        }
        self.acknowledged += 10;
    }

    fn is_conservative(&self) -> bool {
        self.hystart.conservative.is_some()
    }
}

/// A growth of an eighth of the round trip counts, but at least 4 ms and at most 16 ms.
#[test]
fn what_growth_ends_slow_start() {
    for (before, threshold) in
        [(100_000, 12_500), (10_000, 4000), (1_000_000, 16_000), (32_000, 4000), (128_000, 16_000)]
    {
        for (growth, ends) in [(threshold - 1, false), (threshold, true), (threshold + 1, true)] {
            let mut rounds = Rounds::new();
            rounds.round(&[micros(before); 10]);
            rounds.round(&[micros(before + growth); 10]);
            assert_eq!(rounds.is_conservative(), ends, "{before} {growth}");
            assert_eq!(rounds.hystart.step(1000), if ends { 250 } else { 1000 });
        }
    }
}

/// Eight samples are needed, and the least of them counts.
#[test]
fn few_or_mixed_samples_say_nothing() {
    let mut rounds = Rounds::new();
    rounds.round(&[micros(100_000); 10]);
    rounds.round(&[micros(150_000); 7]);
    assert!(!rounds.is_conservative());
    rounds.round(&[micros(150_000); 10]);
    // The round before had 150 ms, too.
    assert!(!rounds.is_conservative());

    let mut rounds = Rounds::new();
    rounds.round(&[micros(100_000); 10]);
    let mut trips = [micros(150_000); 10];
    trips[3] = micros(100_500);
    rounds.round(&trips);
    assert!(!rounds.is_conservative());
}

/// Conservative slow start lasts five rounds, of which the one that it began in counts as one.
#[test]
fn slow_start_is_over_after_five_rounds() {
    let mut rounds = Rounds::new();
    rounds.round(&[micros(100_000); 10]);
    rounds.round(&[micros(130_000); 10]);
    assert!(rounds.is_conservative());
    for _ in 0..4 {
        rounds.round(&[micros(130_000); 10]);
        assert!(rounds.is_conservative() && !rounds.hystart.is_over());
    }
    rounds.round(&[micros(130_000); 1]);
    assert!(rounds.hystart.is_over());
}

/// The round trip falls below its value at the begin of conservative slow start: slow start continues.
#[test]
fn a_passing_growth_is_forgiven() {
    let mut rounds = Rounds::new();
    rounds.round(&[micros(100_000); 10]);
    rounds.round(&[micros(130_000); 10]);
    assert!(rounds.is_conservative());
    rounds.round(&[micros(130_000); 10]);
    assert!(rounds.is_conservative(), "as long is no less");
    rounds.round(&[micros(129_000); 10]);
    assert!(!rounds.is_conservative());
    assert_eq!(rounds.hystart.step(1000), 1000);
    // It may begin again.
    rounds.round(&[micros(200_000); 10]);
    assert!(rounds.is_conservative());
}

/// Section 4.3: only the first slow start is watched.
#[test]
fn a_loss_ends_it() {
    let mut rounds = Rounds::new();
    rounds.round(&[micros(100_000); 10]);
    rounds.hystart.end();
    for trip in [100_000, 200_000, 400_000] {
        rounds.round(&[micros(trip); 10]);
        assert!(!rounds.is_conservative() && !rounds.hystart.is_over());
    }
}
