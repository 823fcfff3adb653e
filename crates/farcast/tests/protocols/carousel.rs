//! A whole protocol outside our crates, through every face: a carousel that sends a file again and again, to receivers
//! that never answer. `docs/src/protocols.md` describes it. It proves that a new protocol changes no other crate.

mod receiver;
mod sender;
mod wire;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_delivery::{Geometry, Noun, Outcome, Protocol, Routes, Words};
use farcast_files::{Options, Outgoing};
use farcast_link::losses::{Bernoulli, NoLoss};
use farcast_net::{
    Changing, ListenNotice, ListenOptions, ReceiveJob, ReceiveNotice, ReceiveOptions, SendJob, SendOptions,
    SocketOptions,
};
use farcast_sim::outcome::{Replication, Together};
use farcast_sim::star::{Back, BackLosses, Chains, Cut, GroupConfig, Receivers, Star, StarConfig};
use farcast_sim::trace::{Trace, TraceConfig};

use receiver::{Asks, Population, Receiver};
use sender::{Sender, Told};
use wire::{Codec, Message, address};

/// The carousel as a protocol.
#[derive(Debug)]
enum Carousel {}

impl Protocol for Carousel {
    const WORDS: Words = Words { round: Noun { one: "turn", many: "turns" }, ..Words::COMMON };

    type Message = Message;
    type Sender = Sender;
    type Receiver = Receiver;
    type Population = Population;
    type Codec = Codec;
}

const RECEIVERS: u32 = 20;
const LOSS: f64 = 0.1;
const SEGMENTS: u32 = 200;
const TURNS: u32 = 12;
const DELAY: Span = Span::from_millis(250);

/// Returns a world in which twenty receivers lose a tenth of the 200 segments of a carousel.
fn world(population: bool, cut: Cut, seed: u64) -> StarConfig<Carousel> {
    let geometry = Geometry::new(u64::from(SEGMENTS) * 1000 - 300, 1000, SEGMENTS).unwrap();
    let addresses = (address("10.0.0.1:5402"), address("239.255.54.2:5402"));
    let sender = Sender::new(([7; 32], geometry), addresses, BitRate::from_bps(1_000_000).unwrap(), TURNS);
    let kind = if population {
        Receivers::Population(Box::new(|_| Ok(Population::new(RECEIVERS))))
    } else {
        Receivers::Engines(Box::new(|_| Ok(Receiver::default())))
    };
    let loss = Probability::new(LOSS).unwrap();
    StarConfig {
        sender: Some(sender),
        groups: vec![GroupConfig {
            receivers: RECEIVERS,
            kind,
            losses: Box::new(Bernoulli::new(loss, RECEIVERS, RandomStream::derive(seed, &[]))),
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

/// Returns the completion time of each receiver, and the outcome of the replication.
fn simulate(config: StarConfig<Carousel>) -> (Vec<Time>, Replication) {
    let mut star = Star::new(config, None).unwrap();
    star.run();
    let group = &star.groups()[0];
    let completed = (0..RECEIVERS).map(|n| group.completed(n)).collect();
    (completed, Replication::of(0, &star, false))
}

#[test]
fn it_is_simulated_alone_and_as_a_population_whatever_the_cuts() {
    for seed in 0..5 {
        let (completed, replication) = simulate(world(false, Cut::Whole, seed));
        assert_eq!(replication.transfer.unwrap().count(sender::TURNS), Some(TURNS.into()));
        assert!(completed.iter().all(|&at| at < Time::NEVER), "{completed:?}");
        assert_eq!(simulate(world(false, Cut::One, seed)).0, completed);
        assert_eq!(simulate(world(true, Cut::Random(seed), seed)).0, completed);
    }
}

#[test]
fn its_receivers_need_as_many_turns_as_losses_say() {
    // A receiver needs as many turns as the greatest of its geometric draws, one for each segment that it lacked after
    // the first turn. A receiver that missed the announcement begins a turn later.
    let whole = (f64::from(SEGMENTS) * 1040.0 + 76.0) * 8.0 / 1e6;
    let turn = |at: Time| (at - DELAY).since(Time::ZERO).as_secs_f64() / whole;
    let seeds = 0..20;
    let all: Vec<f64> =
        seeds.flat_map(|seed| simulate(world(false, Cut::Whole, seed)).0).map(|at| turn(at).ceil()).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let within = |turns: i32| (1.0 - LOSS.powi(turns)).powf(SEGMENTS.into());
    let expected: f64 = (0..50).map(|turns| 1.0 - within(turns)).sum::<f64>() + LOSS / (1.0 - LOSS);
    assert!((mean - expected).abs() < 0.15, "{mean} turns, expected {expected}");
}

#[test]
fn it_reports_figures_of_its_own() {
    let replications: Vec<_> = (0..3).map(|seed| simulate(world(true, Cut::Whole, seed)).1).collect();
    let one = serde_json::to_value(&replications[0]).unwrap();
    assert_eq!(one["turns"], TURNS);
    assert_eq!(one["segments_per_turn"], serde_json::json!(vec![SEGMENTS; TURNS as usize]));
    assert_eq!(one["sent"], serde_json::json!({ "again_percent": 1100.0 }), "names with a dot are an object");
    assert_eq!((&one["incomplete"], &one["data_begins_s"]), (&0.into(), &0.0.into()));
    let summary = serde_json::to_value(Together::of(&replications).unwrap()).unwrap();
    assert_eq!((&summary["turns"]["mean"], &summary["turns"]["n"]), (&f64::from(TURNS).into(), &3.into()));
    assert_eq!(summary["sent"]["again_percent"]["mean"], 1100.0);
    assert!(summary["median_receiver_time_s"]["mean"].as_f64().unwrap() > 1.0);
    // The measures are not those of another protocol, and have no list.
    for absent in ["passes", "dtus_per_pass", "naks", "naks_sent", "naks_late", "segments_per_turn"] {
        assert!(summary.get(absent).is_none(), "{absent}");
        assert!(absent == "segments_per_turn" || one.get(absent).is_none(), "{absent}");
    }
}

#[test]
fn it_is_traced() {
    let config = world(false, Cut::Whole, 1);
    let routes: Option<Routes> = config.sender.as_ref().map(farcast_delivery::SenderEngine::routes);
    let mut trace = Trace::<_, Carousel>::new(Vec::new(), routes, Codec, &TraceConfig::default()).unwrap();
    Star::new(config, Some(&mut trace)).unwrap().run();
    let file = trace.finish().unwrap();
    let count = |octets: &[u8]| file.windows(octets.len()).filter(|window| *window == octets).count() as u32;
    assert_eq!((count(b"turn 1 begins"), count(b"turn 12 begins"), count(b"round ")), (1, 1, 0));
    // The UDP payload begins with an announcement, or with a segment, of 1000 octets.
    assert_eq!(count(&[1, 0x03, 0xE8, 0, 0, 0, 0]), TURNS);
    assert_eq!(count(&[2, 0x03, 0xE8, 0, 0, 0, 0]), TURNS * SEGMENTS);
}

fn socket() -> SocketOptions {
    SocketOptions { interface: Some("lo".into()), ..SocketOptions::default() }
}

/// Receives into `into` with a loss of a tenth. Sets `listening` once it listens.
fn receive(group: SocketAddr, into: &Path, seed: u64, listening: &AtomicUsize) -> Option<Outcome> {
    let options = ReceiveOptions {
        listen: ListenOptions {
            from: group,
            source: None,
            accept: Vec::new(),
            socket: socket(),
            silent: false,
            simulate_loss: Probability::new(LOSS).unwrap(),
            seed,
        },
        into: into.into(),
        files: Options::default(),
        plain: false,
        once: true,
        discard: false,
        wait_for_room: Span::ZERO,
    };
    let mut observer = |_: Time, _: &Receiver, notice: &ReceiveNotice<'_, Asks>| {
        if let ReceiveNotice::Listen(ListenNotice::Listening { .. }) = notice {
            listening.fetch_add(1, Ordering::SeqCst);
        }
    };
    let stop = AtomicBool::new(false);
    let make = |_| Ok::<_, Infallible>(Receiver::default());
    let report = {
        let job = ReceiveJob::<Carousel> { options: &options, codec: &Codec, seal: None, stop: &stop };
        farcast_net::receive(job, make, &mut observer)
    };
    report.unwrap().map(|report| report.outcome)
}

#[test]
fn it_carries_a_file_over_the_network() {
    const COUNT: usize = 3;
    let place = tempfile::tempdir().unwrap();
    let mut random = RandomStream::derive(7, &[]);
    let content: Vec<u8> = (0..200_000).map(|_| random.bits() as u8).collect();
    let file = place.path().join("file.bin");
    std::fs::write(&file, &content).unwrap();
    let group = address(&format!("239.255.77.3:{}", 20_000 + std::process::id() % 20_000));
    let (listening, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let inbox = |n: u64| place.path().join(format!("inbox-{n}"));
        let receivers: Vec<_> = (0..COUNT as u64)
            .map(|n| {
                let (into, listening) = (inbox(n), &listening);
                scope.spawn(move || receive(group, &into, n, listening))
            })
            .collect();
        while listening.load(Ordering::SeqCst) < COUNT {
            thread::yield_now();
        }
        let outgoing = Outgoing::scan(&[&file], |_| {}).unwrap();
        let geometry = Geometry::new(outgoing.size(), 1000, SEGMENTS * 2).unwrap();
        let id = *outgoing.id().as_bytes();
        let rate = BitRate::from_bps(20_000_000).unwrap();
        let make = |own| Ok::<_, Infallible>(Sender::new((id, geometry), (own, group), rate, TURNS));
        let options = SendOptions {
            to: group,
            socket: socket(),
            burst: Span::from_millis(1),
            changing: Changing::default(),
            look_again: false,
        };
        let start = AtomicBool::new(false);
        let job = SendJob::<Carousel> {
            objects: vec![outgoing],
            codec: &Codec,
            seal: None,
            options: &options,
            start: &start,
            stop: &stop,
        };
        let report = farcast_net::send(job, make, &mut |_, _, _| {}).unwrap();
        assert_eq!((report.end, report.traffic.heard), (Told::Over, 0), "nobody answers");
        for (n, receiver) in (0..).zip(receivers) {
            assert!(matches!(receiver.join().unwrap(), Some(Outcome::Complete(_))));
            assert_eq!(std::fs::read(inbox(n).join("file.bin")).unwrap(), content);
        }
    });
}
