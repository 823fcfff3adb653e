use super::super::{GilbertElliott, NoLoss, Several};
use super::*;
use crate::losses::tests::{assert_share, losers, probability, stream};
use core::cell::Cell;

/// Returns the number of losses of `frames` frames of `octets`, over 50 receivers.
fn lost(process: &mut impl Losses, octets: u64, frames: u32) -> u64 {
    (0..frames).map(|_| losers(process, Time::ZERO, octets, Among::All).len() as u64).sum()
}

#[test]
fn bernoulli_loses_at_its_probability_whatever_the_length() {
    let mut process = Bernoulli::new(probability(0.03), 50, stream(70));
    assert_share(lost(&mut process, 40, 4000), 200_000, 0.03);
    assert_share(lost(&mut process, 1500, 4000), 200_000, 0.03);
    assert!(process.is_memoryless());
    assert_eq!(lost(&mut NoLoss, 1500, 10), 0);
}

#[test]
fn bit_errors_follow_the_closed_form() {
    let ber = 1e-5f64;
    let mut process = BitErrors::new(probability(ber), None, 50, stream(71));
    for octets in [40, 576, 1500, 9000] {
        let per = 1.0 - (1.0 - ber).powi(8 * octets);
        assert_share(lost(&mut process, octets as u64, 4000), 200_000, per);
    }
    assert_eq!(lost(&mut process, 0, 1000), 0, "no bit, no error");
}

#[test]
fn a_datagram_is_lost_with_any_of_its_link_frames() {
    let ber = 2e-5f64;
    let mut process = BitErrors::new(probability(ber), NonZeroU32::new(100), 50, stream(72));
    let frame = 1.0 - (1.0 - ber).powi(800);
    // 1 to 100 octets are one frame, 101 are two, 1500 are fifteen.
    for (octets, frames) in [(1, 1), (100, 1), (101, 2), (1500, 15)] {
        let kept = (1.0 - frame).powi(frames);
        assert_share(lost(&mut process, octets, 4000), 200_000, 1.0 - kept);
    }
}

#[test]
fn extreme_bit_error_ratios() {
    let mut never = BitErrors::new(probability(0.0), None, 50, stream(73));
    let mut always = BitErrors::new(probability(1.0), NonZeroU32::new(u32::MAX), 50, stream(74));
    assert_eq!(lost(&mut never, u64::MAX, 10), 0);
    assert_eq!(lost(&mut always, u64::MAX, 10), 500);
    assert_eq!(lost(&mut always, 0, 10), 0);
}

#[test]
fn a_probability_by_length_is_asked_for_once_for_frames_alike() {
    let asked = Cell::new(0);
    let table = |octets: u64| {
        asked.set(asked.get() + 1);
        probability(if octets > 1000 { 0.2 } else { 0.01 })
    };
    let mut process = PerFrame::new(table, 50, stream(75));
    let mut count = |octets, frames: u32| -> usize {
        let mut lost = Vec::new();
        for _ in 0..frames {
            let lambda = process.lambda(octets);
            process.hazard.lost(lambda, process.receivers, Among::All, &mut lost);
        }
        lost.len()
    };
    assert_share(count(1500, 4000) as u64, 200_000, 0.2);
    assert_share(count(500, 4000) as u64, 200_000, 0.01);
    assert_share(count(1500, 4000) as u64, 200_000, 0.2);
    assert_eq!(asked.get(), 3);
}

#[test]
fn per_frame_draws_by_its_function() {
    let mut process = PerFrame::new(|octets| probability(octets as f64 / 10_000.0), 50, stream(76));
    assert_share(lost(&mut process, 1500, 4000), 200_000, 0.15);
    assert_share(lost(&mut process, 60, 4000), 200_000, 0.006);
    assert!(process.is_memoryless());
    assert!(alloc::format!("{process:?}").contains("receivers: 50"));
}

#[test]
fn processes_are_values_that_cross_threads() {
    fn sendable<T: Send + Losses>() {}
    sendable::<Bernoulli>();
    sendable::<GilbertElliott>();
    sendable::<Several>();
    let mut first = Bernoulli::new(probability(0.2), 50, stream(77));
    let mut second = first.clone();
    assert_eq!(lost(&mut first, 1, 100), lost(&mut second, 1, 100));
}
