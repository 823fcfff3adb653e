//! A population behaves like as many engines: law 11.

use farcast_core::random::RandomStream;
use farcast_core::{Losses, Probability, Span, Time};
use farcast_link::losses::{Bernoulli, NoLoss};
use farcast_oneway::{Duration, OneWay, Population, Receiver, ReceiverConfig, Sender, SenderConfig};
use farcast_sim::star::{Back, BackLosses, Chains, Cut, GroupConfig, Receivers, Star, StarConfig};

use crate::common::sender;

const RECEIVERS: u32 = 12;
const DELAY: Span = Span::from_millis(250);

fn world(
    config: SenderConfig,
    loss: f64,
    kind: Receivers<OneWay>,
    cut: Cut,
    seed: u64,
) -> StarConfig<OneWay> {
    let chance = Probability::new(loss).expect("a probability");
    let losses: Box<dyn Losses> = if loss == 0.0 {
        Box::new(NoLoss)
    } else {
        Box::new(Bernoulli::new(chance, RECEIVERS, RandomStream::derive(seed, &[])))
    };
    StarConfig {
        sender: Some(Sender::new(config).expect("valid")),
        groups: vec![GroupConfig { receivers: RECEIVERS, kind, losses, delay: DELAY, data_only: false }],
        flows: Vec::new(),
        chains: Chains::new(),
        back: Back::uniform(DELAY, BackLosses::Shared(Box::new(NoLoss))),
        overhead: 28,
        seal: None,
        given: false,
        lookahead: DELAY,
        limit: Time::ZERO + Span::from_secs(3600),
        cut,
    }
}

/// Returns the time at which each receiver was complete.
fn completed(config: StarConfig<OneWay>) -> Vec<Time> {
    let mut star = Star::new(config, None).expect("a world");
    star.run();
    let group = &star.groups()[0];
    (0..RECEIVERS).map(|n| group.completed(n)).collect()
}

#[test]
fn a_population_is_as_many_engines_to_the_nanosecond() {
    let mut random = RandomStream::derive(11, &[]);
    let mut incomplete = 0;
    for seed in 0..120 {
        let losses = [0.0, 0.01, 0.1, 0.3, 0.6];
        let loss = losses[random.below(losses.len() as u64) as usize];
        let segments = 1 + random.below(400) as u32;
        let base = sender(segments, 64 + random.below(100) as u32);
        // Some senders go round the ring more than once, and some repeat the head.
        let duration = Duration::Rounds(1 + random.below(6) as u32);
        let head = if random.chance(0.3) { random.below(5) as u32 } else { 0 };
        let overhead_percent = random.below(80) as u32;
        let config = SenderConfig { duration, head, overhead_percent, ..base };
        let engines = || {
            let make = |_| Ok(Receiver::new(ReceiverConfig::default()));
            completed(world(config.clone(), loss, Receivers::Engines(Box::new(make)), Cut::Whole, seed))
        };
        let population = |cut| {
            let make = |_| Ok(Population::new(RECEIVERS, true));
            completed(world(config.clone(), loss, Receivers::Population(Box::new(make)), cut, seed))
        };
        let single = engines();
        incomplete += single.iter().filter(|&&at| at == Time::NEVER).count();
        for cut in [Cut::Whole, Cut::One, Cut::Random(seed)] {
            assert_eq!(population(cut), single, "seed {seed}, {loss} lost, {config:?}");
        }
    }
    assert!(incomplete > 20 && incomplete < 800, "{incomplete} of 1440: both ends are met");
}

/// Returns the probability that at least `k` of `n` symbols come, each of which is lost with probability `p`.
fn at_least(n: u32, k: u32, p: f64) -> f64 {
    // The sum starts with no loss; each term follows from the one before.
    let mut term = (1.0 - p).powf(f64::from(n));
    let mut sum = 0.0;
    for lost in 0..=n.saturating_sub(k) {
        sum += term;
        term *= f64::from(n - lost) / f64::from(lost + 1) * p / (1.0 - p);
    }
    if n < k { 0.0 } else { sum }
}

#[test]
fn who_needs_how_many_symbols_is_binomial() {
    const P: f64 = 0.1;
    // Two blocks of 100 and one of 99 segments.
    let mut config = sender(299, 100);
    (config.overhead_percent, config.head, config.lead) = (60, 0, Span::from_millis(1));
    let mut needed = Vec::new();
    for seed in 0..400 {
        let make = |_| Ok(Population::new(RECEIVERS, false));
        let kind = Receivers::Population(Box::new(make));
        let mut star = Star::new(world(config.clone(), P, kind, Cut::Whole, seed), None).expect("a world");
        star.run();
        let group = &star.groups()[0];
        let needs = |n| {
            assert_eq!(group.symbols_needed(n).is_some(), group.completed(n) < Time::NEVER);
            group.symbols_needed(n).unwrap_or(u32::MAX)
        };
        needed.extend((0..RECEIVERS).map(needs));
    }
    let all = needed.len() as f64;
    // The ring of the shorter block has no hundredth segment.
    for n in [100, 105, 108, 110, 112, 115, 118, 122, 130] {
        let expected = at_least(n, 100, P).powi(2) * at_least(n - 1, 99, P);
        let share = needed.iter().filter(|&&needed| needed <= n).count() as f64 / all;
        // Five deviations of 4,800 receivers.
        let deviation = (expected * (1.0 - expected) / all).sqrt();
        assert!((share - expected).abs() <= 5.0 * deviation + 1e-9, "{n}: {share} for {expected}");
    }
}

#[test]
fn where_nothing_is_repeated_nothing_need_be_remembered() {
    let mut config = sender(700, 100);
    (config.overhead_percent, config.head) = (60, 0);
    for seed in 0..10 {
        let population = |remembers| {
            let make = move |_| Ok(Population::new(RECEIVERS, remembers));
            let receivers = Receivers::Population(Box::new(make));
            completed(world(config.clone(), 0.2, receivers, Cut::Whole, seed))
        };
        assert_eq!(population(true), population(false), "seed {seed}");
    }
}
