//! A host whose own device has no room for a connection's segments, and reports this.

use std::collections::BTreeMap;

use farcast_core::engine::{Arrival, Engine as _};
use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};
use farcast_tcp::{Config, Connection, Event, InitialWindow, Segment, State};

use crate::common::{CLIENT, SERVER, Side, World, address, initial, ms, prompt};

const SMSS: u64 = 1000;

/// A window of ten segments, halved as Linux does.
fn config() -> Config {
    Config {
        mss: SMSS as u16 + 12,
        halve_window: true,
        initial_window: InitialWindow::Segments(10),
        ..prompt()
    }
}

fn arrival(to: Side) -> Arrival {
    Arrival::new(address(1 - to), address(to))
}

/// A refused segment counts as unsent. The threshold is half of the window. The window comes down to it, and one
/// segment more, by a segment with every second acknowledgment until all data is acknowledged that had been sent
/// before.
#[test]
fn what_found_no_room_is_unsent_and_halves_the_window() {
    let mut world = World::open(config(), config(), ms(200), 40_000);
    let now = world.now;
    let [client, server] = &mut world.ends;
    let (client, server) = (&mut client.connection, &mut server.connection);
    client.write(30 * SMSS);
    let mut flying: Vec<Segment> = (0..8).map(|_| client.poll_transmit(now, now).unwrap().message).collect();
    let refused = flying.pop().unwrap();
    client.refused(now, &refused);
    assert_eq!(client.poll_transmit(now, now), None, "the queue is full");
    assert_eq!((client.in_flight(), client.congestion_window()), (7 * SMSS, 8 * SMSS));
    assert_eq!(client.slow_start_threshold(), 5 * SMSS);
    let stats = *client.stats();
    assert_eq!((stats.data_segments_sent, stats.octets_sent, stats.local_drops), (7, 7 * SMSS, 1));
    // Acknowledgments of one segment each: the window, and the segments that leave with each of them.
    let mut seen = Vec::new();
    let mut next = flying.len();
    for n in 0..9 {
        server.handle(now, &arrival(SERVER), &flying[n]).unwrap();
        let acknowledgment = server.poll_transmit(now, now).unwrap().message;
        client.handle(now, &arrival(CLIENT), &acknowledgment).unwrap();
        while let Some(transmit) = client.poll_transmit(now, now) {
            flying.push(transmit.message);
        }
        if next == 7 && flying.len() > 7 {
            assert_eq!(flying[7].sequence, refused.sequence, "the same once more");
        }
        seen.push((client.congestion_window() / SMSS, flying.len() - next));
        next = flying.len();
        client.check();
    }
    // With 7 in flight 8 may be: not more than one beyond those in flight, and with every second acknowledgment one
    // less, down to 5.
    assert_eq!(seen, [(7, 1), (6, 0), (6, 1), (5, 0), (5, 1), (5, 1), (5, 1), (5, 1), (5, 1)]);
    assert_eq!(client.stats().retransmits, 0);
}

/// With nothing in flight no acknowledgment comes: a timer tries again.
#[test]
fn with_nothing_in_flight_it_is_tried_again_after_a_timeout() {
    let mut world = World::open(config(), config(), ms(200), 40_000);
    let now = world.now;
    let client = &mut world.ends[CLIENT].connection;
    client.write(SMSS);
    let segment = client.poll_transmit(now, now).unwrap().message;
    client.refused(now, &segment);
    assert_eq!((client.in_flight(), client.poll_transmit(now, now)), (0, None));
    let due = client.poll_timeout().expect("a timer").at;
    assert!(due > now && due <= now + Span::from_secs(3));
    client.handle_timeout(due);
    let again = client.poll_transmit(due, due).unwrap().message;
    assert_eq!((again.sequence, again.payload), (segment.sequence, segment.payload));
    assert_eq!((client.stats().timeouts, client.stats().retransmits), (0, 0));
}

/// Two hosts with a connection. A random stream decides what their devices refuse and the path loses.
struct Hosts {
    connections: [Connection; 2],
    flying: BTreeMap<(Time, u64), (Side, Segment)>,
    random: RandomStream,
    count: u64,
}

impl Hosts {
    fn send(&mut self, now: Time) {
        for side in [CLIENT, SERVER] {
            while let Some(transmit) = self.connections[side].poll_transmit(now, now) {
                let segment = transmit.message;
                self.count += 1;
                assert!(self.count < 100_000, "it never comes to rest");
                match self.random.below(10) {
                    0 | 1 => self.connections[side].refused(now, &segment),
                    2 => {}
                    _ => {
                        self.flying.insert((now + ms(100), self.count), (1 - side, segment));
                    }
                }
                self.connections[side].check();
            }
        }
    }
}

/// For any pattern of refusals and losses, everything arrives once and both ends close.
#[test]
fn everything_arrives_whatever_devices_refuse() {
    for (seed, preset) in
        (0..60).zip([Config::default(), Config::linux_2_4(), Config::modern()].iter().cycle())
    {
        let [client, server] = [CLIENT, SERVER].map(initial);
        let mut hosts = Hosts {
            connections: [
                Connection::connect(preset.clone(), address(CLIENT), address(SERVER), client).unwrap(),
                Connection::listen(preset.clone(), address(SERVER), server).unwrap(),
            ],
            flying: BTreeMap::new(),
            random: RandomStream::derive(seed, &[41]),
            count: 0,
        };
        let total = 100_000;
        hosts.connections[CLIENT].write(total);
        hosts.connections[CLIENT].close();
        let mut now = Time::ZERO;
        loop {
            hosts.send(now);
            let mut closing = false;
            for (side, connection) in (0..).zip(&mut hosts.connections) {
                while let Some(event) = connection.poll_event() {
                    assert!(!matches!(event, Event::Failed(_)), "seed {seed}: {event:?}");
                    connection.consume(connection.readable());
                    if side == SERVER && event == Event::PeerClosed {
                        connection.close();
                        closing = true;
                    }
                }
            }
            if closing {
                continue;
            }
            let done =
                |connection: &Connection| matches!(connection.state(), State::TimeWait | State::Closed);
            if hosts.connections.iter().all(done) {
                break;
            }
            let timer = hosts.connections.iter().filter_map(Connection::poll_timeout).map(|one| one.at).min();
            let arrival_at = hosts.flying.keys().next().map(|key| key.0);
            now = timer.into_iter().chain(arrival_at).min().expect("something is yet to happen").max(now);
            while let Some((&key, _)) = hosts.flying.iter().next().filter(|(key, _)| key.0 <= now) {
                let (to, segment) = hosts.flying.remove(&key).unwrap();
                let _ = hosts.connections[to].handle(now, &arrival(to), &segment);
            }
            hosts.connections.iter_mut().for_each(|connection| connection.handle_timeout(now));
        }
        assert_eq!(hosts.connections[SERVER].received(), total, "seed {seed}");
        assert!(hosts.connections[CLIENT].stats().local_drops > 5);
    }
}
