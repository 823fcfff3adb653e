//! Crowds: more receivers at once than single engines could simulate.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use farcast_core::random::RandomStream;
use farcast_core::stage::Port;
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_link::losses::{Bernoulli, NoLoss};
use farcast_link::pipe::{Pipe, PipeConfig, QueueLimit};
use farcast_norm::quantise::GroupSize;
use farcast_norm::{
    Fec, Message, NodeId, Norm, Population, ReceiverConfig, Sender, SenderConfig, SenderEvent, SenderOutcome,
};
use farcast_sim::star::{
    Back, BackLosses, Chains, Cut, GroupConfig, Observer, Packet, Receivers, Star, StarConfig,
};

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
    assert!(complete == 20_000 && (6..200).contains(&nacks), "{complete} {nacks}");
}

/// Returns a return of `rate` bit/s with a queue of 15 kB.
fn thin_return(rate: u64) -> Box<Pipe<Packet<Message>>> {
    let pipe = PipeConfig {
        rate: BitRate::from_bps(rate),
        queue: QueueLimit::Octets(15_000),
        delay: DELAY,
        ..PipeConfig::default()
    };
    Box::new(Pipe::new(pipe, Port::Hub, RandomStream::derive(2, &[])).unwrap())
}

/// Simulates a transfer of 5 MB at 1.9 Mbit/s to `receivers` receivers that the sender does not know, over a return of
/// `rate` bit/s. Returns the time until all are complete, the octets on the forward link relative to the file's, and the
/// number of requests.
fn over_a_thin_return(
    receivers: u32,
    p: f64,
    rate: u64,
    change: impl FnOnce(&mut SenderConfig),
) -> (f64, f64, u64) {
    let mut world = world(receivers, p, |config| {
        config.pace.rate = BitRate::from_bps(1_900_000).unwrap();
        config.objects[0].size = 5_000_000;
        config.objects[0].info = b"file".to_vec();
        config.receivers = GroupSize::of(10_000);
        change(config);
    });
    world.chains.push_return("return", thin_return(rate));
    world.back = Back::stages(BackLosses::Shared(Box::new(NoLoss)));
    let mut star = Star::new(world, None).unwrap();
    star.run();
    let group = &star.groups()[0];
    let last = (0..receivers).map(|n| group.completed(n)).max().unwrap();
    (last.as_nanos() as f64 / 1e9, star.tally().forward_octets as f64 / 5e6, group.naks())
}

#[test]
fn crowds_are_served_over_one_thin_return_without_anything_being_said_about_them() {
    // Without losses the file takes 22 s.
    for (receivers, p, octets, nacks) in [
        (100, 0.01, 1.1, 100),
        (1000, 0.01, 1.12, 150),
        (10_000, 0.01, 1.15, 150),
        (50_000, 0.01, 1.15, 600),
        (10_000, 0.05, 1.24, 500),
    ] {
        let (time, sent, asked) = over_a_thin_return(receivers, p, 64_000, |_| ());
        assert!(time < 22.0 * octets + 2.0 && sent < octets, "{receivers}: {time} s, {sent}");
        assert!(asked < nacks, "{receivers}: {asked}");
    }
}

#[test]
fn first_requests_may_fill_the_return_and_say_nothing_about_the_path() {
    // The return carries 12 requests in a second, and several hundred come before the first parity.
    let (time, _, asked) = over_a_thin_return(50_000, 0.01, 9600, |_| ());
    assert!(time < 27.0 && asked > 200, "{time} s, {asked}");
}

#[test]
fn longer_first_waits_keep_requests_within_a_thin_return() {
    // In the mean the return carries 100 requests in ten seconds.
    let (time, _, asked) = over_a_thin_return(50_000, 0.01, 9600, |config| config.first_backoff = Some(9));
    assert!(time < 27.0 && asked < 80, "{time} s, {asked}");
}

/// Events of a sender, with their times.
#[derive(Default)]
struct Told(Vec<(Time, SenderEvent)>);

impl Observer<Norm> for Told {
    fn wants_each(&self) -> bool {
        false
    }

    fn told(&mut self, at: Time, event: &SenderEvent) {
        self.0.push((at, *event));
    }
}

#[test]
fn ten_thousand_named_receivers_are_confirmed_as_fast_as_the_return_carries_it() {
    const RECEIVERS: u32 = 10_000;
    // A return of 64 kbit/s, with a queue of 3 kB.
    let rate = BitRate::from_bps(64_000).unwrap();
    let mut world = world(RECEIVERS, 0.01, |config| {
        config.ackers = (0..RECEIVERS).map(|n| NodeId(n + 2)).collect();
        (config.return_rate, config.unicast) = (Some(rate), true);
        // Enough parity, so that there are few requests.
        (config.parity, config.auto_parity) = (40, 15);
    });
    let pipe = PipeConfig {
        rate: Some(rate),
        queue: QueueLimit::Octets(3000),
        delay: DELAY,
        ..PipeConfig::default()
    };
    let pipe = Pipe::new(pipe, Port::Hub, RandomStream::derive(2, &[])).unwrap();
    world.chains.push_return("return", Box::new(pipe));
    world.back = Back::stages(BackLosses::Shared(Box::new(NoLoss)));
    let mut told = Told::default();
    let mut star = Star::new(world, Some(&mut told)).unwrap();
    star.run();
    let group = &star.groups()[0];
    let complete = (0..RECEIVERS).map(|n| group.completed(n)).max().unwrap();
    let answers = star.tally().return_datagrams - group.naks();
    drop(star);
    let &(end, outcome) = told.0.last().unwrap();
    assert_eq!(outcome, SenderEvent::Ended(SenderOutcome::Acknowledged));
    let took = end.since(complete).as_secs_f64();
    // 60 octets of each receiver, at 8000 octets a second.
    let least = f64::from(RECEIVERS) * 60.0 / 8000.0;
    assert!((least..least * 1.5).contains(&took), "{took} s, and the return takes {least} s");
    assert!(
        answers < u64::from(RECEIVERS) * 102 / 100,
        "a receiver answers once, if nothing is lost: {answers}"
    );
}
