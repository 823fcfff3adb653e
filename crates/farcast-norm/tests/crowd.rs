//! Many receivers at once, beyond what an engine for each could do.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_link::losses::{Bernoulli, NoLoss};
use farcast_norm::quantise::GroupSize;
use farcast_norm::{NodeId, Norm, Population, ReceiverConfig, Sender, SenderConfig};
use farcast_sim::star::{Back, BackLosses, Chains, Cut, GroupConfig, Receivers, Star, StarConfig};

const DELAY: Span = Span::from_millis(250);

/// `receivers` receivers that lose a part `p` of a file of 1 MB.
fn world(receivers: u32, p: f64, change: impl FnOnce(&mut SenderConfig)) -> StarConfig<Norm> {
    let (source, group) = ("10.0.0.1:6003".parse().unwrap(), "239.255.57.40:6003".parse().unwrap());
    let rate = BitRate::from_bps(10_000_000).unwrap();
    let mut config = SenderConfig::new(NodeId(1), 1_000_000, source, group, rate);
    (config.block_len, config.parity) = (200, 55);
    config.receivers = GroupSize::of(receivers.into());
    change(&mut config);
    let receiver = ReceiverConfig { unicast: config.unicast, ..ReceiverConfig::new(NodeId(2), group) };
    let losses = Bernoulli::new(Probability::new(p).unwrap(), receivers, RandomStream::derive(1, &[]));
    StarConfig {
        sender: Some(Sender::new(config).unwrap()),
        groups: vec![GroupConfig {
            receivers,
            kind: Receivers::Population(Box::new(
                move |_| Ok(Population::new(&receiver, receivers).unwrap()),
            )),
            losses: Box::new(losses),
            delay: DELAY,
            data_only: false,
        }],
        flows: Vec::new(),
        chains: Chains::new(),
        back: Back::uniform(DELAY, BackLosses::Shared(Box::new(NoLoss))),
        overhead: 28,
        given: false,
        lookahead: DELAY,
        limit: Time::ZERO + Span::from_secs(3600),
        cut: Cut::Whole,
    }
}

#[test]
#[ignore = "measure"]
fn measure() {
    let var = |name: &str| std::env::var(name).unwrap().parse::<f64>().unwrap();
    let (n, p) = (var("N") as u32, var("P"));
    let (block, parity, auto) = (var("K") as u16, var("H") as u16, var("A") as u16);
    let unicast = std::env::var("UNICAST").is_ok();
    let begun = std::time::Instant::now();
    let config = world(n, p, |config| {
        (config.block_len, config.parity, config.auto_parity) = (block, parity, auto);
        config.unicast = unicast;
    });
    let mut star = Star::new(config, None).unwrap();
    star.run();
    let group = &star.groups()[0];
    let done = (0..n).filter(|&n| group.completed(n) != Time::NEVER).count();
    let last = (0..n).map(|n| group.completed(n)).max().unwrap();
    println!(
        "{n} {p} k={block} h={parity} a={auto}: {done} complete, last {last:?}; {:.4} x; limit {:.4}; NACKs {}; rounds {:?}; {:?} events {}",
        star.tally().forward_octets as f64 / 1e6,
        1.0 / (1.0 - p),
        group.naks(),
        star.sender().unwrap().sent_per_round(),
        begun.elapsed(),
        star.tally().events,
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap());
}
