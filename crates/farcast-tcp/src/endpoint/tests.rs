use super::*;
use crate::{Config, Flags, Payload, SequenceNumber};
use core::net::Ipv4Addr;
use farcast_core::Span;
use farcast_core::random::RandomStream;
use std::collections::BTreeMap;
use std::vec;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

fn config(address: IpAddr, seed: u64) -> EndpointConfig {
    EndpointConfig { address, tcp: Config::default(), most_connections: 100, seed }
}

fn endpoint(address: IpAddr) -> Endpoint {
    Endpoint::new(config(address, 1)).expect("settings that work")
}

fn at(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}

/// Returns the arrival of a segment of the endpoint `from` at the other.
fn arrival(from: IpAddr) -> Arrival {
    let to = if from == HERE { THERE } else { HERE };
    Arrival::new(at(from, 0), at(to, 0))
}

fn segment(source_port: u16, destination_port: u16, flags: Flags) -> Segment {
    Segment { source_port, destination_port, flags, sequence: SequenceNumber(u32::MAX), ..Segment::default() }
}

/// Carries segments both ways until there are none, losing those that `lose` says.
fn exchange(now: Time, one: &mut Endpoint, other: &mut Endpoint, mut lose: impl FnMut(&Segment) -> bool) {
    loop {
        let mut quiet = true;
        for turn in [false, true] {
            let (from, to) = if turn { (&mut *other, &mut *one) } else { (&mut *one, &mut *other) };
            while let Some(Transmit { message, destination, .. }) = from.poll_transmit(now, now) {
                quiet = false;
                if !lose(&message) {
                    let octets = from.octets(&message, destination.ip()).unwrap_or(&[]);
                    let _ = to.handle_octets(now, &arrival(from.config.address), &message, octets);
                }
            }
        }
        if quiet {
            return;
        }
    }
}

/// Returns all events of an endpoint.
fn events(endpoint: &mut Endpoint) -> Vec<EndpointEvent> {
    core::iter::from_fn(|| endpoint.poll_event()).collect()
}

#[test]
fn a_segment_without_a_connection_is_answered_with_a_reset() {
    // RFC 9293 section 3.10.7.1: with the number that was acknowledged, or with an acknowledgment of the segment.
    let mut endpoint = endpoint(HERE);
    let with_ack = Segment { acknowledgment: SequenceNumber(77), ..segment(5, 80, Flags::ACK) };
    let syn = Segment { payload: Payload { offset: 0, len: 5 }, ..segment(5, 80, Flags::SYN) };
    for (segment, flags, sequence, acknowledgment) in
        [(with_ack, Flags::RST, 77, 0), (syn, Flags::RST.with(Flags::ACK), 0, 5)]
    {
        assert_eq!(endpoint.handle(Time::ZERO, &arrival(THERE), &segment), Err(Reject::Stranger));
        let reset = endpoint.poll_transmit(Time::ZERO, Time::NEVER).expect("a reset");
        assert_eq!((reset.destination, reset.source), (at(THERE, 5), Some(at(HERE, 80))));
        let reset = reset.message;
        assert_eq!((reset.source_port, reset.destination_port, reset.flags), (80, 5, flags));
        assert_eq!((reset.sequence.0, reset.acknowledgment.0), (sequence, acknowledgment));
    }
    assert_eq!(
        endpoint.handle(Time::ZERO, &arrival(THERE), &segment(5, 80, Flags::RST)),
        Err(Reject::Stranger)
    );
    let elsewhere = Arrival::new(at(THERE, 5), at(THERE, 80));
    assert_eq!(endpoint.handle(Time::ZERO, &elsewhere, &syn), Err(Reject::OtherSession));
    assert!(endpoint.poll_transmit(Time::ZERO, Time::NEVER).is_none());
    assert_eq!(
        (endpoint.rejects().of(Reject::Stranger), endpoint.rejects().of(Reject::OtherSession)),
        (3, 1)
    );
}

#[test]
fn initial_numbers_follow_a_clock_and_differ_between_pairs() {
    let first_number = |seed, now, port| {
        let mut endpoint = Endpoint::new(config(HERE, seed)).expect("settings that work");
        endpoint.connect(now, Some(40_000), at(THERE, port), Carries::Ranges).expect("a free port");
        endpoint.poll_transmit(now, now).expect("a SYN").message.sequence.0
    };
    // RFC 6528 section 3: the clock goes on by one every 4 microseconds.
    let (first, later) = (first_number(1, Time::ZERO, 80), first_number(1, Time::from_nanos(4_000_000), 80));
    assert_eq!(later.wrapping_sub(first), 1_000);
    let others: BTreeMap<u32, u16> =
        (1..1_000).map(|port| (first_number(1, Time::ZERO, port), port)).collect();
    // 1000 numbers of 2^32 meet with a probability of 10^-4.
    assert_eq!(others.len(), 999);
    assert_ne!(first_number(2, Time::ZERO, 80), first);
}

#[test]
fn ports_are_given_out_once_and_come_to_an_end() {
    let mut endpoint =
        Endpoint::new(EndpointConfig { most_connections: 20_000, ..config(HERE, 3) }).expect("settings");
    let listening = endpoint.listen(None, Carries::Ranges).expect("a free port");
    assert_eq!(endpoint.listen(Some(listening), Carries::Ranges), Err(EndpointError::InUse(listening)));
    let mut ports = vec![listening];
    for _ in 0..16_383 {
        let id = endpoint.connect(Time::ZERO, None, at(THERE, 80), Carries::Ranges).expect("a free port");
        ports.push(endpoint.connection(id).expect("it is new").local().port());
    }
    ports.sort_unstable();
    assert!(ports.iter().copied().eq(49_152..=65_535));
    let result = endpoint.connect(Time::ZERO, None, at(THERE, 80), Carries::Ranges);
    assert_eq!(result, Err(EndpointError::NoPort));
    // For another peer every port is free except the listener's.
    assert!(endpoint.connect(Time::ZERO, None, at(THERE, 81), Carries::Ranges).is_ok());
    let taken = endpoint.connect(Time::ZERO, Some(ports[0]), at(THERE, 80), Carries::Ranges);
    assert!(ports[0] == listening || taken == Err(EndpointError::InUse(ports[0])));
}

#[test]
fn there_are_no_more_connections_than_the_settings_allow() {
    let mut endpoint = endpoint(HERE);
    endpoint.listen(Some(80), Carries::Octets).expect("a free port");
    for port in 1..=100 {
        assert_eq!(endpoint.handle(Time::ZERO, &arrival(THERE), &segment(port, 80, Flags::SYN)), Ok(()));
    }
    assert_eq!(
        endpoint.handle(Time::ZERO, &arrival(THERE), &segment(101, 80, Flags::SYN)),
        Err(Reject::Limit)
    );
    let full = endpoint.connect(Time::ZERO, None, at(THERE, 80), Carries::Octets);
    assert_eq!((full, endpoint.len()), (Err(EndpointError::Full(100)), 100));
    // No peer answers: each connection gives up in its own time, without an event for the owner.
    let mut now = Time::ZERO;
    loop {
        while endpoint.poll_transmit(now, now).is_some() {}
        let Some(due) = endpoint.poll_timeout() else { break };
        assert!(due.at > now);
        now = due.at;
        endpoint.handle_timeout(now);
    }
    assert!(endpoint.is_empty() && endpoint.poll_event().is_none());
    assert!(now > Time::ZERO + Span::from_secs(180), "{now:?}: RFC 9293 section 3.8.3 wants three minutes");
}

#[test]
fn connections_that_linger_make_room() {
    let [mut one, mut other] = [HERE, THERE].map(|address| {
        Endpoint::new(EndpointConfig { most_connections: 3, ..config(address, 7) })
            .expect("settings that work")
    });
    other.listen(Some(80), Carries::Octets).expect("a free port");
    for round in 0..10 {
        let now = Time::ZERO + Span::from_millis(round);
        let id = one.connect(now, None, at(THERE, 80), Carries::Octets).expect("room");
        one.send(id, b"x");
        one.close(id);
        one.release(id);
        exchange(now, &mut one, &mut other, |_| false);
        let accepted = events(&mut other).into_iter().find_map(|event| match event {
            EndpointEvent::Accepted { port: 80, connection, peer } if peer.ip() == HERE => Some(connection),
            _ => None,
        });
        let accepted = accepted.expect("a connection");
        assert_eq!(other.readable(accepted), b"x");
        other.close(accepted);
        other.release(accepted);
        exchange(now, &mut one, &mut other, |_| false);
        // Who closes first lingers.
        assert_eq!((one.len() as u64, other.len()), ((round + 1).min(3), 0));
    }
}

#[test]
fn octets_that_are_missing_are_not_taken_and_come_again() {
    let (mut one, mut other) = (endpoint(HERE), endpoint(THERE));
    other.listen(Some(80), Carries::Octets).expect("a free port");
    let id = one.connect(Time::ZERO, None, at(THERE, 80), Carries::Octets).expect("a free port");
    exchange(Time::ZERO, &mut one, &mut other, |_| false);
    let Some(EndpointEvent::Accepted { connection, .. }) = other.poll_event() else {
        panic!("no connection")
    };
    one.send(id, b"text");
    let sent = one.poll_transmit(Time::ZERO, Time::NEVER).expect("a segment").message;
    assert_eq!(other.handle(Time::ZERO, &arrival(HERE), &sent), Err(Reject::Inconsistent));
    assert_eq!(other.readable(connection), b"");
    assert_eq!((one.octets(&sent, THERE), one.unacknowledged(id)), (Some(&b"text"[..]), 4));
    assert!(one.poll_transmit(Time::ZERO, Time::NEVER).is_none());
    let due = one.poll_timeout().expect("a retransmission").at;
    one.handle_timeout(due);
    exchange(due, &mut one, &mut other, |_| false);
    assert_eq!(other.readable(connection), b"text");
    let due = other.poll_timeout().expect("an acknowledgment").at;
    other.handle_timeout(due);
    exchange(due, &mut one, &mut other, |_| false);
    // Acknowledged octets are gone.
    assert_eq!((one.octets(&sent, THERE), one.unacknowledged(id)), (None, 0));
}

#[test]
fn many_streams_stay_apart_whatever_is_lost() {
    let mut random = RandomStream::derive(11, &[]);
    let (mut one, mut other) = (endpoint(HERE), endpoint(THERE));
    other.listen(Some(80), Carries::Octets).expect("a free port");
    let mut streams: BTreeMap<u16, (ConnectionId, Vec<u8>, Vec<u8>)> = BTreeMap::new();
    for stream in 0..20u8 {
        let id = one.connect(Time::ZERO, None, at(THERE, 80), Carries::Octets).expect("a free port");
        let octets: Vec<u8> = (0..3_000 + usize::from(stream)).map(|n| n as u8 ^ stream).collect();
        one.send(id, &octets);
        one.close(id);
        streams.insert(one.connection(id).expect("it is new").local().port(), (id, octets, vec![]));
    }
    let mut now = Time::ZERO;
    for _ in 0..10_000 {
        exchange(now, &mut one, &mut other, |_| random.chance(0.2));
        events(&mut one);
        for event in events(&mut other) {
            if let EndpointEvent::Accepted { connection, .. }
            | EndpointEvent::Of(connection, Event::Readable) = event
            {
                let port = other.connection(connection).and_then(Connection::remote).expect("a peer").port();
                let octets = other.readable(connection).to_vec();
                other.consume(connection, octets.len() as u64);
                streams.get_mut(&port).expect("a stream").2.extend(octets);
            }
            if let EndpointEvent::Of(connection, Event::PeerClosed) = event {
                other.close(connection);
            }
        }
        let Some(due) = one.poll_timeout().into_iter().chain(other.poll_timeout()).map(|due| due.at).min()
        else {
            break;
        };
        now = due;
        one.handle_timeout(now);
        other.handle_timeout(now);
    }
    for (port, (id, sent, received)) in streams {
        assert!(sent == received, "the stream from port {port}: {} of {}", received.len(), sent.len());
        assert_eq!(one.connection(id).map(Connection::state), Some(State::Closed));
        one.release(id);
    }
    while one.poll_transmit(now, now).is_some() {}
    assert!(one.is_empty());
}
