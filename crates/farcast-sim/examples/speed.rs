//! How long a replication takes: MFTP to populations of all sizes, and the bare event queue.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark reads a clock and prints"
)]

use std::time::Instant;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_link::losses::{Bernoulli, NoLoss};
use farcast_mftp::{
    ClientId, Group, NakTiming, Pace, PassWait, Product, ReceiverConfig, SenderConfig, StatusRetry,
};
use farcast_sim::queue::EventQueue;
use farcast_sim::star::{Back, BackLosses, Cut, GroupConfig, Star, StarConfig};

fn sender() -> SenderConfig {
    let product = Product { id: [1; 32], size: 1_000_000, name: "file".into() };
    let mut config =
        SenderConfig::new(product, "10.0.0.1:5402".parse().unwrap(), "239.255.54.2:5402".parse().unwrap());
    (config.dtu_size, config.block_size) = (526, 488);
    let rate = BitRate::from_bps(300_000).unwrap();
    config.pace = Pace::Rate { rate, overhead: 10, credit: Span::ZERO, granule: 1 };
    (config.group, config.start.after) = (Group::OpenUnlimited, Some(Span::ZERO));
    (config.pass_wait, config.nak_timing) = (PassWait::FixedTimer, NakTiming::EndOfFirstPass);
    config.status_retry = StatusRetry::BlockTime { round_trips: 4 };
    (config.round_trip, config.late_entry, config.ask_twice) = (Span::from_secs(1), false, false);
    config
}

fn replicate(seed: u64, receivers: u32, per: f64) -> (Time, usize) {
    let p = Probability::new(per).unwrap();
    let losses = Box::new(Bernoulli::new(p, receivers, RandomStream::derive(seed, &[1])));
    let back = Back::uniform(Span::from_millis(500), BackLosses::Shared(Box::new(NoLoss)));
    let config = StarConfig {
        sender: sender(),
        groups: vec![GroupConfig {
            receivers,
            population: true,
            receiver: ReceiverConfig::new(ClientId(1), 5402),
            losses,
            delay: Span::from_millis(500),
            data_only: false,
        }],
        forward: Vec::new(),
        back,
        overhead: 10,
        given: true,
        lookahead: Span::from_secs(1),
        limit: Time::NEVER,
        cut: Cut::Whole,
    };
    let mut star = Star::new(config, None).unwrap();
    star.run();
    let last = (0..receivers).map(|n| star.groups()[0].completed(n)).max().unwrap();
    (last, star.sender().stats().dtus_per_pass.len())
}

fn main() {
    let only = std::env::args().nth(1).map(|n| n.parse::<u32>().unwrap());
    for (receivers, per, count) in [
        (20, 0.005, 2000),
        (80, 0.005, 2000),
        (1000, 0.005, 200),
        (10_000, 0.005, 20),
        (1_000_000, 0.005, 2),
        (1_000_000, 0.1, 1),
    ]
    .into_iter()
    .filter(|&(n, _, _)| only.is_none_or(|only| only == n))
    {
        let begin = Instant::now();
        let (mut sum, mut passes) = (0.0, 0);
        for seed in 0..count {
            let (last, n) = replicate(seed, receivers, per);
            assert!(last != Time::NEVER);
            sum += last.as_secs_f64();
            passes += n;
        }
        let each = begin.elapsed().as_secs_f64() / count as f64;
        println!(
            "{receivers:>9} receivers, PER {per:<5}: {:10.4} ms a replication, delay {:.2} s, {:.2} passes",
            each * 1e3,
            sum / count as f64,
            passes as f64 / count as f64
        );
    }
    if only.is_some() {
        return;
    }
    let mut queue = EventQueue::default();
    let mut random = RandomStream::derive(1, &[]);
    for number in 0..1000u32 {
        queue.push(Time::from_nanos(random.below(1_000_000)), number);
    }
    let (begin, count) = (Instant::now(), 10_000_000u32);
    for _ in 0..count {
        let (at, number) = queue.pop().unwrap();
        queue.push(at + Span::from_nanos(random.below(1_000_000)), number);
    }
    println!(
        "event queue, 1000 pending: {:.1} M events/s",
        f64::from(count) / begin.elapsed().as_secs_f64() / 1e6
    );
}
