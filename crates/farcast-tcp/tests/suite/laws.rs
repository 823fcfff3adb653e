//! The laws of engines, for every kind of connection.

use std::cell::Cell;

use farcast_core::engine::{Arrival, Engine as _, Reject};
use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};
use farcast_tcp::{
    Algorithm, Config, Connection, DelayedAck, Event, Flags, Payload, Recovery, Reduction, Segment,
    SequenceNumber, State,
};
use farcast_testkit::{Handle, Host, Link, Network, Setup, laws};

use crate::common::{CLIENT, SERVER, address, initial, ms, prompt};

const LENGTH: u64 = 40_000;

/// An owner that consumes all data, writes `length` octets and closes behind them.
fn host(connection: Connection, length: u64) -> Host<Connection> {
    Host::new(connection, move |connection, _, event| match event {
        Event::Readable => connection.consume(u64::MAX),
        Event::Connected | Event::Writable => {
            connection.write(length - connection.written());
            if connection.written() == length {
                connection.close();
            }
        }
        _ => {}
    })
    // The texts are as long as the payload, and their number says nothing that others do not.
    .without(|event| matches!(event, Event::Store { .. }))
}

type Hosts = [Handle<Connection>; 2];

fn network(config: &Config, link: Link, setup: Setup) -> (Network<Segment>, Hosts) {
    let mut network = Network::new(format!("{:?} {:?}", config.recovery, config.congestion), setup);
    network.links(link);
    network.limit(Span::from_secs(100_000));
    let client = Connection::connect(config.clone(), address(CLIENT), address(SERVER), initial(CLIENT));
    let server = Connection::listen(config.clone(), address(SERVER), initial(SERVER));
    let hosts = [
        network.add(address(CLIENT), &[], host(client.expect("settings"), LENGTH)),
        network.add(address(SERVER), &[], host(server.expect("settings"), LENGTH / 2)),
    ];
    (network, hosts)
}

fn configs() -> Vec<Config> {
    let mut configs = vec![Config::modern(), Config::linux_2_4(), prompt()];
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Fack, Recovery::Rack] {
        let sack = recovery.needs_sack();
        configs.push(Config { recovery, sack, undo: sack, frto: true, ..Config::default() });
    }
    configs.push(Config {
        reduction: Reduction::Proportional,
        congestion: Algorithm::Cubic,
        hystart: true,
        nagle: true,
        send_buffer: 6000,
        delayed_ack: DelayedAck::Quick { segments: 4, least: ms(40), most: ms(200) },
        ..Config::default()
    });
    // More retries, so that connections over lossy paths are not given up.
    configs.into_iter().map(|config| Config { most_retries: 100, ..config }).collect()
}

/// Both streams have arrived whole.
fn finished(network: &Network<Segment>, hosts: Hosts) -> bool {
    let [client, server] = hosts.map(|host| network.engine(host));
    client.received() == LENGTH / 2
        && server.received() == LENGTH
        && [client, server].iter().all(|side| side.state() == State::Closed)
}

fn obeys(link: Link, late: Span) {
    for config in configs() {
        let hosts = Cell::new(None);
        let build = |setup| {
            let (network, two) = network(&config, link, setup);
            hosts.set(Some(two));
            network
        };
        laws::all(0..3, late, build, |network| finished(network, hosts.get().expect("it was built")));
    }
}

#[test]
fn on_a_clean_link() {
    obeys(Link::clean(ms(280)), ms(100));
}

#[test]
fn on_a_link_that_loses() {
    obeys(Link::lossy(ms(50), 0.05), ms(10));
}

#[test]
fn on_a_link_that_does_everything() {
    let rough = Link { duplication: 0.05, jitter: ms(60), ..Link::lossy(ms(100), 0.1) };
    obeys(rough, ms(30));
}

/// Returns the state of a connection without its counters.
fn trace(connection: &Connection) -> String {
    let c = connection;
    let numbers = [c.written(), c.acknowledged(), c.received(), c.readable(), c.in_flight()];
    let windows = (c.congestion_window(), c.slow_start_threshold(), c.segment_size());
    format!("{:?} {numbers:?} {windows:?} {:?} {:?}", c.state(), c.round_trip(), c.retransmission_timeout())
}

/// Segments with numbers around those that count, and anything else by chance.
fn segments(seed: u64, side: usize, count: u64) -> Vec<(Time, Arrival, Segment)> {
    let mut random = RandomStream::derive(seed, &[]);
    let near = |random: &mut RandomStream, start: SequenceNumber| match random.below(3) {
        0 => SequenceNumber(random.bits() as u32),
        _ => start.plus(random.below(6000) as u32).plus(3000u32.wrapping_neg()),
    };
    let from = Arrival::new(address(1 - side), address(side));
    (0..count)
        .map(|n| {
            let wrong_port = random.chance(0.05);
            let segment = Segment {
                source_port: address(1 - side).port() + u16::from(wrong_port),
                destination_port: address(side).port(),
                sequence: near(&mut random, initial(1 - side)),
                acknowledgment: near(&mut random, initial(side)),
                flags: Flags(if random.chance(0.5) { Flags::ACK.0 } else { random.bits() as u8 }),
                window: random.bits() as u16,
                payload: Payload {
                    offset: 0,
                    len: if random.chance(0.5) { 0 } else { random.below(1461) as u16 },
                },
                ..Segment::default()
            };
            (Time::ZERO + ms(1000 + n), from, segment)
        })
        .collect()
}

/// Law 6, in every state that a peer can be met in.
#[test]
fn what_is_turned_down_leaves_no_trace() {
    let mut rejected = 0;
    for seed in 0..20 {
        for steps in 0..6u64 {
            for side in [CLIENT, SERVER] {
                let config = Config { timestamps: None, ..prompt() };
                let mut world = crate::common::World::new(config.clone(), config, ms(100), 20_000);
                world.write(CLIENT, 10_000);
                world.run_until(Time::ZERO + ms(40 * steps));
                if steps == 5 {
                    world.close(CLIENT);
                    world.run_until(Time::ZERO + ms(290));
                }
                let mut engine = world.ends[side].connection.clone();
                // An acknowledgment answers a segment outside the window, and data that came before.
                let answered = |segment: &Segment, reason| {
                    let in_stream =
                        matches!(reason, Reject::OutOfRange | Reject::Duplicate | Reject::Inconsistent);
                    in_stream && (segment.flags.has(Flags::SYN) || reason != Reject::Inconsistent)
                };
                let context = format!("seed {seed}, {steps} steps, side {side}");
                let messages = segments(seed, side, 60);
                rejected += laws::rejects_without_trace(&context, &mut engine, messages, trace, answered);
            }
        }
    }
    assert!(rejected > 2000, "{rejected} were turned down");
}

/// Law 7: out-of-order data are kept as ranges, at most 4096 of them by a constant of the crate. A SACK option names
/// four, for any arrivals.
#[test]
fn memory_is_bounded() {
    let config = Config { timestamps: None, ..prompt() };
    let mut world = crate::common::World::open(config.clone(), config, ms(100), 0);
    let from = Arrival::new(address(CLIENT), address(SERVER));
    let server = &mut world.server().connection;
    for n in 0..20_000u32 {
        let segment = Segment {
            source_port: address(CLIENT).port(),
            destination_port: address(SERVER).port(),
            sequence: initial(CLIENT).plus(2 + 3 * n),
            acknowledgment: initial(SERVER).plus(1),
            flags: Flags::ACK,
            window: 1000,
            payload: Payload { offset: 0, len: 1 },
            ..Segment::default()
        };
        let _ = server.handle(Time::ZERO + ms(300), &from, &segment);
        let stored = server.poll_event();
        assert_eq!(stored.is_some(), n < 4096, "piece {n}");
        let answer = server.poll_transmit(Time::ZERO + ms(300), Time::NEVER).expect("an acknowledgment");
        assert!((1..=4).contains(&answer.message.options.sack.as_slice().len()));
        server.check();
    }
}
