//! Crowds: more receivers at once than single engines could simulate.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_link::losses::{Bernoulli, NoLoss};
use farcast_norm::quantise::GroupSize;
use farcast_norm::{Fec, NodeId, Norm, Population, ReceiverConfig, Sender, SenderConfig};
use farcast_sim::star::{Back, BackLosses, Chains, Cut, GroupConfig, Receivers, Star, StarConfig};

const DELAY: Span = Span::from_millis(250);

/// Returns a world of `receivers` receivers that lose a fraction `p` of a file of 1 MB.
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
        seal: None,
        given: false,
        lookahead: DELAY,
        limit: Time::ZERO + Span::from_secs(3600),
        cut: Cut::Whole,
    }
}

/// Simulates a transfer to `receivers` receivers. Returns the number of complete receivers, the octets on the wire
/// relative to the file's, and the number of requests.
fn simulate(receivers: u32, p: f64, change: impl FnOnce(&mut SenderConfig)) -> (usize, f64, u64) {
    let mut star = Star::new(world(receivers, p, change), None).unwrap();
    star.run();
    let group = &star.groups()[0];
    let complete = (0..receivers).filter(|&n| group.completed(n) != Time::NEVER).count();
    (complete, star.tally().forward_octets as f64 / 1e6, group.naks())
}

#[test]
fn twenty_thousand_receivers_cost_little_more_than_their_unluckiest() {
    let (complete, octets, nacks) = simulate(20_000, 0.01, |config| {
        (config.fec, config.block_len, config.parity) = (Fec::ReedSolomon(16), 715, 200);
    });
    // The unluckiest of so many receivers loses about 20 of 715 segments and their repairs; headers are 4 %.
    assert!(complete == 20_000 && (1.05..1.15).contains(&octets), "{complete} {octets}");
    assert!((1..1000).contains(&nacks), "nearly all hear others ask for as much: {nacks}");
}

#[test]
fn what_is_asked_of_the_sender_alone_is_told_to_all() {
    let (complete, _, nacks) = simulate(20_000, 0.01, |config| config.unicast = true);
    // Nearly every receiver loses something of 715 segments. A receiver that hears the sender repeat requests need not
    // ask.
    assert!(complete == 20_000 && (100..5000).contains(&nacks), "{complete} {nacks}");
}
