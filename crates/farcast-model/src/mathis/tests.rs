use proptest::prelude::*;

use super::*;
use crate::Bound;
use crate::pftk::tests::{any_path, probability};

fn input(p: f64, b: u32, window: Option<f64>) -> Input {
    Input { loss: probability(p), rtt: Span::from_millis(500), packets_per_ack: b, window }
}

/// The paper prints 1.22 and 0.87; four digits from the square roots of 3/2 and 3/4.
#[test]
fn constants_are_the_papers() {
    assert!((constant(1).expect("allowed") - 1.2247).abs() < 5e-5);
    assert!((constant(2).expect("allowed") - 0.8660).abs() < 5e-5);
    assert_eq!(constant(0), Err(ModelError::PacketsPerAck { packets: 0 }));
}

/// A saw-tooth between W/2 and W that grows by one packet in b rounds and loses one packet a tooth, added up: packets
/// sent are 1/p, and the time is the rounds of a tooth.
#[test]
fn it_is_the_mean_of_a_periodic_saw_tooth() {
    for (top, b) in [(200_u32, 1_u32), (200, 2), (1000, 3)] {
        let rounds = || (top / 2..top).flat_map(|window| (0..b).map(move |_| f64::from(window)));
        let (sent, time) = (rounds().sum::<f64>(), 0.5 * rounds().count() as f64);
        let ours = throughput(&input(1.0 / sent, b, None)).expect("inside");
        // A window of whole packets is half a packet above and below the line, of about 3/4 of its top.
        assert!(
            (ours.packets_per_s / (sent / time) - 1.0).abs() < 1.0 / f64::from(top),
            "{top}, {b}: {ours:?}"
        );
    }
}

/// 1.2247 / (0.5 s * 0.1) = 24.49 packets/s, unless the window allows less.
#[test]
fn values_by_hand() {
    let ours = throughput(&input(0.01, 1, Some(100.0))).expect("inside");
    assert!((ours.packets_per_s - 24.4949).abs() < 1e-4 && ours.bound == Bound::Loss);
    for p in [0.0, 0.01] {
        let ours = throughput(&input(p, 1, Some(10.0))).expect("inside");
        assert!((ours.packets_per_s - 20.0).abs() < 1e-12 && ours.bound == Bound::Window);
    }
    assert_eq!(throughput(&input(0.0, 1, None)), Err(ModelError::Unbounded));
    assert_eq!(throughput(&input(1.0, 1, None)), Err(ModelError::Loss { loss: 1.0 }));
}

proptest! {
    #[test]
    fn whatever_comes_the_result_is_finite_and_falls_with_loss(path in any_path(), more in 1.0..2.0f64) {
        let (loss, rtt) = (path.loss, path.rtt);
        let input = Input { loss, rtt, packets_per_ack: path.packets_per_ack, window: path.window };
        if let Ok(ours) = throughput(&input) {
            prop_assert!(ours.packets_per_s.is_finite() && ours.packets_per_s > 0.0, "{input:?}");
            let most = path.window.unwrap_or(f64::INFINITY) / rtt.as_secs_f64();
            prop_assert!(ours.packets_per_s <= most);
            let worse = Input { loss: probability((loss.get() * more).min(1.0)), rtt: rtt * 2, ..input };
            if let Ok(worse) = throughput(&worse) {
                prop_assert!(worse.packets_per_s <= ours.packets_per_s);
            }
        }
    }
}
