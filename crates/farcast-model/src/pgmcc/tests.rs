use core::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::pftk::tests::{any_path, probability};
use crate::{Bound, Path, pftk};

fn input(p: f64) -> Input {
    Input { loss: probability(p), rtt: Span::from_millis(530), window: None }
}

/// kbit/s with packets of 1000 octets and a round trip of 530 ms, worked out apart and rounded as printed here.
#[test]
fn a_table_over_a_geostationary_satellite() {
    let mss = NonZeroU32::new(1000).expect("positive");
    for (p, kbit_per_s, half) in [
        (1e-5, 5845.5, 0.05),
        (1e-4, 1847.0, 0.5),
        (1e-3, 579.0, 0.5),
        (1e-2, 170.0, 0.5),
        (5e-2, 56.0, 0.5),
        (0.1, 27.0, 0.5),
        (0.2, 8.1, 0.05),
    ] {
        let ours = throughput(&input(p)).expect("inside").bits_per_s(mss) / 1000.0;
        assert!((ours - kbit_per_s).abs() <= half, "p {p}: {ours} and {kbit_per_s}");
    }
}

/// 0.53 sqrt(0.01) (1 + 0.09 (1 + 0.0032)) = 0.053 * 1.090288.
#[test]
fn slowness_by_hand() {
    assert!((slowness_s(&input(0.01)).expect("inside") - 0.057_785_264).abs() < 1e-9);
    assert_eq!(slowness_s(&input(0.0)), Ok(0.0));
    assert_eq!(throughput(&input(0.0)), Err(ModelError::Unbounded));
    assert_eq!(throughput(&input(1.0)), Err(ModelError::Loss { loss: 1.0 }));
    assert_eq!(throughput(&Input { rtt: Span::ZERO, ..input(0.1) }), Err(ModelError::RoundTrip));
    let limited = throughput(&Input { window: Some(32.0), ..input(0.0) }).expect("inside");
    assert!((limited.packets_per_s - 32.0 / 0.53).abs() < 1e-9 && limited.bound == Bound::Window);
}

#[test]
fn it_is_padhyes_with_a_timeout_of_four_round_trips() {
    for p in [1e-6, 1e-3, 0.1, 0.29, 0.4] {
        let (loss, rtt) = (probability(p), Span::from_millis(530));
        let path = Path { loss, rtt, timeout: rtt * 4, packets_per_ack: 1, window: None };
        let padhye = pftk::approximate(&path).expect("inside").packets_per_s;
        let ours = throughput(&input(p)).expect("inside").packets_per_s;
        // 3 sqrt(3p/8) passes 1 at p = 8/27 = 0.296.
        if p < 8.0 / 27.0 {
            assert!((ours / padhye - 1.0).abs() < 1e-12, "p {p}: {ours} and {padhye}");
        } else {
            assert!(ours < padhye, "p {p}: {ours} and {padhye}");
        }
    }
}

proptest! {
    #[test]
    fn whatever_comes_the_result_is_finite_and_falls_with_loss(path in any_path(), more in 1.0..2.0f64) {
        let input = Input { loss: path.loss, rtt: path.rtt, window: path.window };
        if let Ok(ours) = throughput(&input) {
            prop_assert!(ours.packets_per_s.is_finite() && ours.packets_per_s > 0.0, "{input:?}");
            prop_assert!(ours.packets_per_s <= path.window.unwrap_or(f64::INFINITY) / path.rtt.as_secs_f64());
            let loss = probability((path.loss.get() * more).min(1.0));
            if let Ok(worse) = throughput(&Input { loss, rtt: path.rtt * 2, ..input }) {
                prop_assert!(worse.packets_per_s <= ours.packets_per_s);
            }
        }
    }
}
