use super::*;
use crate::losses::tests::{assert_fits, assert_share, binomial, chi_square_limit, probability, stream};
use alloc::vec;

fn draw(hazard: &mut Hazard, p: f64, receivers: u32, among: Among<'_>) -> Vec<u32> {
    let mut lost = Vec::new();
    hazard.lost(Hazard::of(probability(p)), receivers, among, &mut lost);
    assert!(lost.is_sorted_by(|a, b| a < b), "{lost:?}");
    lost
}

#[test]
fn never_and_always() {
    let mut hazard = Hazard::new(stream(1));
    let mut lost = Vec::new();
    for lambda in [0.0, -0.0, -1.0, f64::NEG_INFINITY, f64::NAN] {
        hazard.lost(lambda, u32::MAX, Among::All, &mut lost);
        assert!(lost.is_empty(), "hazard {lambda}");
    }
    assert_eq!(draw(&mut hazard, 1.0, 4, Among::All), [0, 1, 2, 3]);
    assert_eq!(draw(&mut hazard, 1.0, 9, Among::These(&[2, 7])), [2, 7]);
    assert_eq!(draw(&mut hazard, 1.0, 0, Among::All), []);
    assert_eq!(draw(&mut hazard, 0.5, 9, Among::These(&[])), []);
    // The largest finite hazard is as good as certain, and overflows nothing.
    lost.clear();
    hazard.lost(f64::MAX, 3, Among::All, &mut lost);
    assert_eq!(lost, [0, 1, 2]);
}

#[test]
fn tiny_probabilities_do_not_overflow() {
    let mut hazard = Hazard::new(stream(2));
    for p in [f64::MIN_POSITIVE, 5e-324, 1e-300, 1e-30] {
        for _ in 0..1000 {
            assert_eq!(draw(&mut hazard, p, u32::MAX, Among::All), []);
        }
    }
}

#[test]
fn four_thousand_million_receivers_cost_their_losses() {
    let mut hazard = Hazard::new(stream(3));
    let frames = 20;
    let lost: usize = (0..frames).map(|_| draw(&mut hazard, 1e-7, u32::MAX, Among::All).len()).sum();
    assert_share(lost as u64, frames * u64::from(u32::MAX), 1e-7);
}

#[test]
fn a_frame_without_losses_draws_nothing() {
    let mut hazard = Hazard::new(stream(4));
    let mut draws = 0;
    for _ in 0..1000 {
        let before = hazard.stream.clone();
        let losses = draw(&mut hazard, 0.001, 100, Among::All).len();
        let mut expected = before;
        (0..losses).for_each(|_| {
            expected.bits();
        });
        assert_eq!(hazard.stream, expected, "one draw for each loss");
        draws += losses;
    }
    assert!(draws > 0);
}

#[test]
fn rates_agree_from_rare_to_frequent() {
    for (label, p) in [(10, 1e-4), (11, 0.005), (12, 0.1), (13, 0.5), (14, 0.97)] {
        let mut hazard = Hazard::new(stream(label));
        let lost: usize = (0..4000).map(|_| draw(&mut hazard, p, 100, Among::All).len()).sum();
        assert_share(lost as u64, 400_000, p);
    }
}

#[test]
fn losses_of_a_frame_are_binomial_as_direct_draws_are() {
    let (receivers, frames) = (20, 50_000);
    for (label, p) in [(20, 0.1), (21, 0.6)] {
        let (mut hazard, mut direct) = (Hazard::new(stream(label)), stream(label + 100));
        let (mut jumped, mut single) = (vec![0u64; 21], vec![0u64; 21]);
        for _ in 0..frames {
            jumped[draw(&mut hazard, p, receivers, Among::All).len()] += 1;
            single[(0..receivers).filter(|_| direct.chance(p)).count()] += 1;
        }
        assert_fits(&jumped, &binomial(receivers, p, frames));
        // Two samples of one size: Σ (a - b)² / (a + b) is chi-square.
        let pairs = jumped.iter().zip(&single).filter(|&(a, b)| a + b >= 20);
        let terms: Vec<f64> = pairs.map(|(&a, &b)| (a as f64 - b as f64).powi(2) / (a + b) as f64).collect();
        assert!(terms.iter().sum::<f64>() < chi_square_limit(terms.len() as u32), "{jumped:?} {single:?}");
    }
}

#[test]
fn every_position_is_hit_alike() {
    let mut hazard = Hazard::new(stream(30));
    let mut hits = vec![0u64; 40];
    for _ in 0..20_000 {
        for who in draw(&mut hazard, 0.15, 40, Among::All) {
            hits[who as usize] += 1;
        }
    }
    // Each is binomial, so the sum of squares over n p (1-p) is chi-square with 40 degrees.
    let (n, p) = (20_000.0, 0.15);
    let statistic: f64 = hits.iter().map(|&h| (h as f64 - n * p).powi(2) / (n * p * (1.0 - p))).sum();
    assert!(statistic < chi_square_limit(40), "{hits:?}");
}

/// Two frames of unlike probability, over and over: the residual crosses from each into the other.
#[test]
fn frames_and_receivers_are_independent_though_p_changes() {
    let (receivers, rounds) = (8u32, 50_000u32);
    let (p, q) = (0.3, 0.02);
    let mut hazard = Hazard::new(stream(40));
    let (mut neighbours, mut successors) = ([0u64; 4], [0u64; 4]);
    for _ in 0..rounds {
        let first = draw(&mut hazard, p, receivers, Among::All);
        let second = draw(&mut hazard, q, receivers, Among::All);
        for who in 0..receivers {
            let cell = usize::from(first.contains(&who)) * 2;
            successors[cell + usize::from(second.contains(&who))] += 1;
            if who % 2 == 0 {
                neighbours[cell + usize::from(first.contains(&(who + 1)))] += 1;
            }
        }
    }
    let cells = |a: f64, b: f64, n: f64| {
        [(1.0 - a) * (1.0 - b), (1.0 - a) * b, a * (1.0 - b), a * b].map(|share| share * n)
    };
    assert_fits(&successors, &cells(p, q, f64::from(rounds * receivers)));
    assert_fits(&neighbours, &cells(p, p, f64::from(rounds * receivers / 2)));
}

#[test]
fn subsets_are_drawn_as_the_whole_is() {
    let (mut hazard, mut pick) = (Hazard::new(stream(50)), stream(51));
    let (mut asked, mut lost) = ([0u64; 10], [0u64; 10]);
    for frame in 0..60_000 {
        let some: Vec<u32> = (0..10).filter(|_| pick.chance(0.4)).collect();
        let among = if frame % 3 == 0 { Among::All } else { Among::These(&some) };
        let all: Vec<u32> = (0..10).collect();
        let candidates = if frame % 3 == 0 { &all } else { &some };
        for &who in candidates {
            asked[who as usize] += 1;
        }
        for who in draw(&mut hazard, 0.07, 10, among) {
            assert!(candidates.contains(&who));
            lost[who as usize] += 1;
        }
    }
    for (lost, asked) in lost.into_iter().zip(asked) {
        assert_share(lost, asked, 0.07);
    }
}

#[test]
fn what_had_passed_is_uniform_for_small_hazards() {
    // Given that an event falls in a short interval, its place there is uniform, but for terms of the hazard's order.
    let mut hazard = Hazard::new(stream(60));
    let mut tenths = [0u64; 10];
    for _ in 0..2000 {
        hazard.each(1e-4, 100_000, |_, passed| {
            assert!((0.0..1e-4).contains(&passed));
            tenths[(passed * 1e5) as usize] += 1;
        });
    }
    let n = tenths.iter().sum::<u64>() as f64;
    assert_fits(&tenths, &[n / 10.0; 10]);
}

#[test]
fn hazards_are_those_of_their_probabilities() {
    assert!(Hazard::of(probability(0.0)).abs() < f64::MIN_POSITIVE);
    assert!(Hazard::of(probability(1.0)).is_infinite());
    let e = core::f64::consts::E;
    assert!((Hazard::of(probability(1.0 - 1.0 / e)) - 1.0).abs() < 1e-12);
    // Where 1 - p rounds to 1, the hazard is still p.
    assert!((Hazard::of(probability(1e-20)) / 1e-20 - 1.0).abs() < 1e-12);
}

#[test]
fn passing_over_frames_equals_drawing_them() {
    for (lambda, receivers) in [(0.003, 20), (1e-6, 1000), (0.5, 3), (0.0, 5), (f64::INFINITY, 2)] {
        let mut drawn = Hazard::new(RandomStream::derive(5, &[]));
        let mut passed = drawn.clone();
        for round in 0..500u32 {
            let most = round % 40;
            let (mut lost, mut free) = (Vec::new(), 0);
            let before = drawn.clone();
            while free < most {
                let kept = drawn.clone();
                drawn.lost(lambda, receivers, Among::All, &mut lost);
                if !lost.is_empty() {
                    drawn = kept;
                    break;
                }
                free += 1;
            }
            assert_eq!(passed.spared(lambda, receivers, most), free, "{before:?}");
            assert_eq!(passed.residual.to_bits(), drawn.residual.to_bits());
            // The frame that somebody loses, or the next.
            let mut also = Vec::new();
            lost.clear();
            drawn.lost(lambda, receivers, Among::All, &mut lost);
            passed.lost(lambda, receivers, Among::All, &mut also);
            assert_eq!(lost, also);
        }
    }
}
