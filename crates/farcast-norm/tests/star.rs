//! NORM in the simulator, which knows the delivery interface and no protocol.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod star {
    mod tshark;
}

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_link::losses::{Bernoulli, NoLoss};
use farcast_norm::{NodeId, Norm, Pacing, Population, Receiver, ReceiverConfig, Sender, SenderConfig};
use farcast_sim::star::{Back, BackLosses, Chains, Cut, GroupConfig, Receivers, Star, StarConfig};

const RECEIVERS: u32 = 20;
const DELAY: Span = Span::from_millis(250);

/// Returns a world in which twenty receivers lose a twentieth of 200 segments. They answer the group or the sender
/// alone.
fn world(unicast: bool, population: bool, cut: Cut, seed: u64) -> StarConfig<Norm> {
    paced(Pacing::Fixed, unicast, population, cut, seed)
}

/// Returns the same world with another rate control.
fn paced(pacing: Pacing, unicast: bool, population: bool, cut: Cut, seed: u64) -> StarConfig<Norm> {
    around(SenderConfig { unicast, pacing, ..sender() }, population, cut, seed)
}

/// Returns the configuration of a sender whose object all receivers acknowledge.
fn sender() -> SenderConfig {
    let (source, group) = ("10.0.0.1:6003".parse().unwrap(), "239.255.57.40:6003".parse().unwrap());
    let rate = BitRate::from_bps(1_000_000).unwrap();
    let mut config = SenderConfig::new(NodeId(1), 200_000, source, group, rate);
    (config.segment_size, config.block_len, config.parity) = (1000, 20, 5);
    config.ackers = (0..RECEIVERS).map(|n| NodeId(n + 2)).collect();
    config
}

/// Returns the world around a sender.
fn around(config: SenderConfig, population: bool, cut: Cut, seed: u64) -> StarConfig<Norm> {
    let SenderConfig { group, unicast, .. } = config;
    let receiver = move |n| ReceiverConfig { seed, unicast, ..ReceiverConfig::new(NodeId(n + 2), group) };
    let kind = if population {
        Receivers::Population(Box::new(move |_| Ok(Population::new(&receiver(0), RECEIVERS).unwrap())))
    } else {
        Receivers::Engines(Box::new(move |n| Ok(Receiver::new(receiver(n)).unwrap())))
    };
    StarConfig {
        sender: Some(Sender::new(config).unwrap()),
        groups: vec![GroupConfig {
            receivers: RECEIVERS,
            kind,
            losses: Box::new(Bernoulli::new(
                Probability::new(0.05).unwrap(),
                RECEIVERS,
                RandomStream::derive(seed, &[]),
            )),
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
        cut,
    }
}

/// Returns the completion time of each receiver, the segments sent in each round, and the number of requests.
fn simulate(config: StarConfig<Norm>) -> (Vec<Time>, Vec<u64>, u64) {
    let mut star = Star::new(config, None).unwrap();
    star.run();
    let group = &star.groups()[0];
    let completed = (0..RECEIVERS).map(|n| group.completed(n)).collect();
    (completed, star.sender().unwrap().sent_per_round().to_vec(), group.naks())
}

#[test]
fn everybody_completes_whatever_the_cuts() {
    let mut asked = [0, 0];
    for seed in 0..3 {
        for unicast in [false, true] {
            let whole = simulate(world(unicast, false, Cut::Whole, seed));
            assert!(whole.0.iter().all(|&at| at < Time::NEVER), "{whole:?}");
            assert!(whole.1.len() > 1 && whole.1[0] >= 200, "{whole:?}");
            assert_eq!(simulate(world(unicast, false, Cut::One, seed)), whole);
            asked[usize::from(unicast)] += whole.2;
        }
    }
    // A receiver that hears the requests of others need not ask.
    assert!(asked[0] < asked[1], "{asked:?}");
}

#[test]
fn where_receivers_decide_the_rate_everybody_completes_whatever_the_cuts() {
    let pacing = Pacing::NormCc { least: BitRate::from_bps(20_000).unwrap() };
    for unicast in [false, true] {
        let whole = simulate(paced(pacing, unicast, false, Cut::Whole, 1));
        assert!(whole.0.iter().all(|&at| at < Time::NEVER), "{whole:?}");
        for cut in [Cut::One, Cut::Random(3)] {
            assert_eq!(simulate(paced(pacing, unicast, false, cut, 1)), whole);
        }
    }
}

#[test]
fn a_population_is_its_receivers() {
    for seed in 0..3 {
        for unicast in [false, true] {
            let alone = simulate(world(unicast, false, Cut::Whole, seed));
            assert!(alone.2 > 0);
            assert_eq!(simulate(world(unicast, true, Cut::Random(seed), seed)), alone);
        }
    }
}
