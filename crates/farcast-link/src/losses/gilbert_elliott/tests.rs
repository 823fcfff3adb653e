use super::*;
use crate::losses::tests::{
    assert_fits, assert_share, assert_share_of, binomial, losers, probability, stream,
};

fn gilbert(p: f64, r: f64) -> GilbertElliottConfig {
    elliott(p, r, 0.0, 1.0)
}

fn elliott(p: f64, r: f64, loss_good: f64, loss_bad: f64) -> GilbertElliottConfig {
    GilbertElliottConfig {
        transitions: Transitions::PerFrame { p: probability(p), r: probability(r) },
        loss_good: probability(loss_good),
        loss_bad: probability(loss_bad),
    }
}

fn timed(good: Span, bad: Span) -> GilbertElliottConfig {
    GilbertElliottConfig {
        transitions: Transitions::Timed { good, bad },
        loss_good: probability(0.0),
        loss_bad: probability(1.0),
    }
}

fn process(config: GilbertElliottConfig, receivers: u32, label: u64) -> GilbertElliott {
    GilbertElliott::new(config, receivers, stream(label)).expect("valid")
}

/// Returns the receivers that lose each of `frames` frames.
fn frames(process: &mut GilbertElliott, frames: u32) -> Vec<Vec<u32>> {
    (0..frames).map(|_| losers(process, Time::ZERO, 1000, Among::All)).collect()
}

#[test]
fn bursts_have_the_rate_the_length_and_the_distribution_of_the_chain() {
    let (p, r) = (0.02, 0.25);
    let (receivers, count) = (200u32, 5000u32);
    let mut process = process(gilbert(p, r), receivers, 100);
    let mut lengths = [0u64; 60];
    let mut open = [0usize; 200];
    let mut lost = 0;
    for frame in frames(&mut process, count) {
        lost += frame.len() as u64;
        for who in 0..receivers {
            let burst = &mut open[who as usize];
            if frame.binary_search(&who).is_ok() {
                *burst += 1;
            } else if *burst > 0 {
                lengths[(*burst - 1).min(59)] += 1;
                *burst = 0;
            }
        }
    }
    // The autocorrelation of the chain at lag k is (1-p-r)^k, which multiplies the variance of a mean.
    let rho: f64 = 1.0 - p - r;
    assert_share_of(lost, u64::from(receivers * count), p / (p + r), (1.0 + rho) / (1.0 - rho));
    // The bursts open at the start are as long as any other: a geometric length has no memory.
    let bursts = lengths.iter().sum::<u64>() as f64;
    let expected: Vec<f64> = (0..60).map(|k| bursts * r * (1.0 - r).powi(k)).collect();
    assert_fits(&lengths, &expected);
    let mean = (1u32..).zip(lengths).map(|(k, n)| f64::from(k) * n as f64).sum::<f64>() / bursts;
    let sigma = (1.0 - r).sqrt() / r / bursts.sqrt();
    assert!((mean - 1.0 / r).abs() < 4.0 * sigma, "mean burst {mean}, expected {}", 1.0 / r);
}

#[test]
fn losses_in_both_states_are_correlated_as_the_chain_is() {
    for (label, good, bad) in [(101, 0.03, 0.6), (118, 0.9, 0.1)] {
        let (p, r) = (0.05, 0.2);
        let mut process = process(elliott(p, r, good, bad), 500, label);
        let share_bad = p / (p + r);
        let (mut single, mut both, mut pairs) = (0, 0, 0);
        for _ in 0..200 {
            let trace = frames(&mut process, 60);
            // One pair in 60 frames: 0.75^59 of the correlation is left from the pair before, which is nothing.
            pairs += 500;
            single += trace[0].len() as u64;
            both += trace[0].iter().filter(|who| trace[1].binary_search(who).is_ok()).count() as u64;
        }
        let rate = share_bad * bad + (1.0 - share_bad) * good;
        assert_share(single, pairs, rate);
        let joint = bad * bad * share_bad * (1.0 - r)
            + good * good * (1.0 - share_bad) * (1.0 - p)
            + 2.0 * good * bad * share_bad * r;
        assert_share(both, pairs, joint);
    }
}

#[test]
fn receivers_are_independent() {
    let (p, r) = (0.1, 0.3);
    let mut process = process(gilbert(p, r), 20, 102);
    let mut counts = [0u64; 21];
    for _ in 0..20_000 {
        // 0.6^30 of the correlation is left from one to the next.
        counts[frames(&mut process, 30)[0].len()] += 1;
    }
    assert_fits(&counts, &binomial(20, 0.25, 20_000));
}

#[test]
fn the_first_frame_finds_the_stationary_state() {
    let mut config = gilbert(0.001, 0.004);
    let lost = losers(&mut process(config, 100_000, 103), Time::ZERO, 1, Among::All).len();
    assert_share(lost as u64, 100_000, 0.2);
    config = timed(Span::from_secs(30), Span::from_secs(10));
    let lost = losers(&mut process(config, 100_000, 104), Time::from_nanos(77), 1, Among::All).len();
    assert_share(lost as u64, 100_000, 0.25);
}

#[test]
fn a_subset_is_told_what_all_would_be() {
    let second = Span::from_secs(1);
    let mut config = timed(second * 3, second);
    config.loss_good = probability(0.1);
    config.loss_bad = probability(0.8);
    for config in [elliott(0.05, 0.2, 0.03, 0.6), config] {
        let mut whole = process(config, 50, 105);
        let mut part = whole.clone();
        let mut pick = stream(106);
        for second in 0..2000 {
            let now = Time::ZERO + Span::from_secs(second);
            let some: Vec<u32> = (0..50).filter(|_| pick.chance(0.3)).collect();
            let mut expected = losers(&mut whole, now, 1, Among::All);
            expected.retain(|who| some.contains(who));
            assert_eq!(losers(&mut part, now, 1, Among::These(&some)), expected);
        }
        assert!(!whole.is_memoryless());
    }
}

#[test]
fn certain_transitions_alternate() {
    let mut process = process(gilbert(1.0, 1.0), 9, 107);
    let trace = frames(&mut process, 6);
    for pair in trace.windows(2) {
        let other: Vec<u32> = (0..9).filter(|who| !pair[0].contains(who)).collect();
        assert_eq!(pair[1], other);
    }
}

#[test]
fn absorbing_states_absorb() {
    assert!(frames(&mut process(gilbert(0.0, 0.5), 9, 108), 100).concat().is_empty());
    assert_eq!(frames(&mut process(gilbert(0.5, 0.0), 9, 109), 100).concat().len(), 900);
}

#[test]
fn a_million_receivers_with_rare_transitions() {
    let (p, r) = (1e-6, 0.1);
    let mut process = process(gilbert(p, r), 1_000_000, 110);
    let lost = frames(&mut process, 1000).iter().map(|frame| frame.len() as u64).sum();
    let rho: f64 = 1.0 - p - r;
    assert_share_of(lost, 1_000_000_000, p / (p + r), (1.0 + rho) / (1.0 - rho));
}

/// The losses at the start and at the end of a gap agree with the closed form, whatever frames lie between and whatever
/// the gap before.
#[test]
fn sojourns_are_exponential_however_time_is_cut() {
    let (good, bad) = (3.0f64, 0.5f64);
    let (share, speed) = (bad / (good + bad), 1.0 / good + 1.0 / bad);
    let mut process = process(timed(Span::from_secs_f64(good), Span::from_secs_f64(bad)), 1000, 111);
    let gaps = [(0.05, 1), (0.4, 1), (0.4, 7), (1.5, 3)];
    let mut counts = [[0u64; 3]; 4];
    let mut now = Time::ZERO;
    for (gap, count) in (0..800).map(|round| round % 4).map(|index| (gaps[index], index)) {
        let first = losers(&mut process, now, 1, Among::All);
        assert_eq!(losers(&mut process, now, 1, Among::All), first, "no time, no transition");
        for cut in 1..gap.1 {
            let between = now + Span::from_secs_f64(gap.0 * f64::from(cut) / f64::from(gap.1));
            process.draw(between, 1, Among::All, &mut Vec::new());
        }
        now += Span::from_secs_f64(gap.0);
        let second = losers(&mut process, now, 1, Among::All);
        let stayed = first.iter().filter(|who| second.binary_search(who).is_ok()).count();
        let seen = [first.len(), stayed, second.len() - stayed];
        counts[count].iter_mut().zip(seen).for_each(|(sum, seen)| *sum += seen as u64);
        now += Span::from_secs(10);
    }
    for ((gap, _), [first, stayed, fallen]) in gaps.into_iter().zip(counts) {
        let kept = (-gap * speed).exp();
        assert_share(first, 200_000, share);
        assert_share(stayed, first, share + (1.0 - share) * kept);
        assert_share(fallen, 200_000 - first, share * (1.0 - kept));
    }
}

#[test]
fn what_cannot_move_is_refused() {
    let refuse = |config: GilbertElliottConfig| GilbertElliott::new(config, 1, stream(0)).map(|_| ());
    assert_eq!(refuse(gilbert(0.0, 0.0)), Err(LinkError::NoTransitions));
    let second = Span::from_secs(1);
    assert_eq!(refuse(timed(Span::ZERO, second)), Err(LinkError::ZeroMean("sojourn in the good state")));
    assert_eq!(refuse(timed(second, Span::ZERO)), Err(LinkError::ZeroMean("sojourn in the bad state")));
    assert_eq!(refuse(timed(second, second)), Ok(()));
}

#[test]
fn extremes_neither_panic_nor_overflow() {
    let nanosecond = Span::from_nanos(1);
    for (good, bad) in [(nanosecond, Span::MAX), (Span::MAX, nanosecond), (Span::MAX, Span::MAX)] {
        let mut process = process(timed(good, bad), 100, 116);
        for now in [Time::ZERO, Time::from_nanos(1), Time::NEVER, Time::NEVER, Time::ZERO] {
            assert!(losers(&mut process, now, u64::MAX, Among::All).len() <= 100);
        }
    }
    assert!(losers(&mut process(gilbert(0.5, 0.5), 0, 117), Time::ZERO, 1, Among::All).is_empty());
}
