//! Opening of connections (RFC 9293 sections 3.5 and 3.10.7), and the options agreed on.

use farcast_core::engine::{Arrival, Engine as _};
use farcast_core::{Span, Time};
use farcast_tcp::{
    Config, Connection, Event, Failure, Flags, Options, ReceiveWindow, Segment, State, Window,
};

use crate::common::{CLIENT, Fate, Lone, SERVER, World, address, initial, ms, prompt};

const ROUND_TRIP: Span = Span::from_millis(100);
const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);

#[test]
fn three_segments_open_a_connection() {
    let mut world = World::new(prompt(), prompt(), ROUND_TRIP, 0);
    assert_eq!(world.states(), [State::SynSent, State::Listen]);
    world.run_until(Time::ZERO + ms(75));
    assert_eq!(world.states(), [State::SynSent, State::SynReceived]);
    world.run_until(Time::ZERO + ms(100));
    assert_eq!(world.states(), [State::Established, State::SynReceived]);
    world.run();
    assert_eq!(world.states(), [State::Established; 2]);
    let numbers: Vec<_> = world.sent.iter().map(|sent| (sent.at, sent.from, sent.segment.flags)).collect();
    let at = |milliseconds| Time::ZERO + ms(milliseconds);
    assert_eq!(
        numbers,
        [(at(0), CLIENT, Flags::SYN), (at(50), SERVER, SYN_ACK), (at(100), CLIENT, Flags::ACK)]
    );
    let [syn, answer, ack] = [0, 1, 2].map(|n| world.sent[n].segment);
    assert_eq!((syn.sequence, answer.sequence), (initial(CLIENT), initial(SERVER)));
    assert_eq!(
        (answer.acknowledgment, ack.acknowledgment),
        (initial(CLIENT).plus(1), initial(SERVER).plus(1))
    );
    assert_eq!(ack.sequence, initial(CLIENT).plus(1));
    for (side, when) in [(CLIENT, 100), (SERVER, 150)] {
        assert_eq!(world.ends[side].events, [(at(when), Event::Connected)]);
        assert_eq!(world.ends[side].connection.round_trip(), Some(ROUND_TRIP));
    }
}

/// RFC 9293 figure 8.
#[test]
fn both_may_open_at_once() {
    let connect = |side| Connection::connect(prompt(), address(side), address(1 - side), initial(side));
    let connections = [CLIENT, SERVER].map(|side| connect(side).expect("settings"));
    let mut world = World::of(connections, ROUND_TRIP, 2000);
    world.run_until(Time::ZERO + ms(50));
    assert_eq!(world.states(), [State::SynReceived; 2]);
    world.run_until(Time::ZERO + ms(100));
    assert_eq!(world.states(), [State::Established; 2]);
    for side in [CLIENT, SERVER] {
        world.write(side, 2000);
        assert!(world.ends[side].heard(Event::Connected));
        // The SYN left again with the answer: it is unknown which of the two the peer's answer acknowledges (Karn).
        let measured = world.ends[side].connection.round_trip();
        assert!(measured.is_none_or(|trip| trip == ROUND_TRIP), "{measured:?}");
    }
    world.run();
    assert_eq!([0, 1].map(|side| world.ends[side].connection.received()), [2000; 2]);
}

/// The same where everything is lost once.
#[test]
fn both_may_open_at_once_over_a_bad_path() {
    for lost in 0..64u32 {
        let connect = |side| Connection::connect(prompt(), address(side), address(1 - side), initial(side));
        let connections = [CLIENT, SERVER].map(|side| connect(side).expect("settings"));
        let mut world = World::of(connections, ROUND_TRIP, 2000);
        for side in [CLIENT, SERVER] {
            world.paths[side].script = Box::new(move |passing| {
                let bit = passing.nth * 2 + side;
                if bit < 6 && lost >> bit & 1 == 1 { Fate::Drop } else { Fate::Pass }
            });
            world.write(side, 2000);
        }
        world.run();
        assert_eq!([0, 1].map(|side| world.ends[side].connection.received()), [2000; 2], "{lost:06b}");
    }
}

/// A SYN is repeated after 1, 2, 4... seconds (RFC 6298), until there were too many.
#[test]
fn a_syn_is_repeated_until_somebody_answers() {
    let config = Config { most_retries: 4, ..prompt() };
    let mut world = World::new(config.clone(), config, ROUND_TRIP, 0);
    world.paths[CLIENT].script = Box::new(|_| Fate::Drop);
    let end = world.run();
    let times: Vec<_> = world.sent.iter().map(|sent| sent.at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(times, [0, 1, 3, 7, 15]);
    assert_eq!(end, Time::ZERO + Span::from_secs(31));
    assert_eq!(world.client().events, [(end, Event::Failed(Failure::TimedOut))]);
}

#[test]
fn a_reset_refuses_a_connection() {
    let mut lone =
        Connection::connect(prompt(), address(CLIENT), address(SERVER), initial(CLIENT)).expect("settings");
    let from = Arrival::new(address(SERVER), address(CLIENT));
    lone.poll_transmit(Time::ZERO, Time::NEVER).expect("a SYN");
    let reset = |acknowledged, flags| Segment {
        source_port: address(SERVER).port(),
        destination_port: address(CLIENT).port(),
        acknowledgment: initial(CLIENT).plus(acknowledged),
        flags,
        ..Segment::default()
    };
    // RFC 9293 section 3.10.7.3: only one that acknowledges the SYN.
    assert!(lone.handle(Time::ZERO, &from, &reset(1, Flags::RST)).is_err());
    assert!(lone.handle(Time::ZERO, &from, &reset(0, Flags::RST.with(Flags::ACK))).is_err());
    assert!(lone.handle(Time::ZERO, &from, &reset(2, Flags::RST.with(Flags::ACK))).is_err());
    assert_eq!(lone.state(), State::SynSent);
    assert!(lone.handle(Time::ZERO, &from, &reset(1, Flags::RST.with(Flags::ACK))).is_ok());
    assert_eq!(lone.poll_event(), Some(Event::Failed(Failure::Refused)));
    assert_eq!((lone.state(), lone.poll_timeout()), (State::Closed, None));
}

/// RFC 9293 section 3.10.7.3: an acknowledgment of anything but our SYN comes from an old connection of the peer. A
/// reset at the number that it expects ends that connection (figure 9), and the next SYN opens a new one.
#[test]
fn an_old_connection_of_the_peers_is_reset() {
    let mut lone =
        Connection::connect(prompt(), address(CLIENT), address(SERVER), initial(CLIENT)).expect("settings");
    lone.poll_transmit(Time::ZERO, Time::NEVER).expect("a SYN");
    let stale = Segment {
        source_port: address(SERVER).port(),
        destination_port: address(CLIENT).port(),
        sequence: initial(SERVER).plus(5000),
        acknowledgment: initial(CLIENT).plus(77_777),
        flags: Flags::ACK,
        ..Segment::default()
    };
    assert!(lone.handle(Time::ZERO, &Arrival::new(address(SERVER), address(CLIENT)), &stale).is_err());
    let reset = lone.poll_transmit(Time::ZERO, Time::NEVER).expect("an answer").message;
    assert_eq!((reset.flags, reset.sequence), (Flags::RST, stale.acknowledgment));
    assert_eq!((lone.poll_event(), lone.state()), (None, State::SynSent));
    assert!(lone.poll_timeout().is_some(), "the SYN is going to be repeated");
}

/// Returns the size of segments if the peer announces `told`.
fn segment_size(mss: u16, timestamps: bool, told: Option<u16>) -> u64 {
    let config = Config { mss, timestamps: timestamps.then_some(ms(1)), ..prompt() };
    let stamps = timestamps.then(farcast_tcp::Timestamps::default);
    let options = Options { mss: told, timestamps: stamps, ..Options::default() };
    let mut lone = Lone::open(config, ROUND_TRIP, Segment { window: 65_535, options, ..Segment::default() });
    lone.connection.write(60_000);
    let sent = lone.poll();
    let len = u64::from(sent[0].payload.len);
    assert_eq!(len, lone.connection.segment_size());
    assert_eq!(
        len as usize + sent[0].header_len() - 20,
        usize::from(told.unwrap_or(536).min(mss)),
        "options count"
    );
    len
}

/// RFC 9293 section 3.7.1, RFC 6691: the smaller of both limits, 536 where the peer says nothing, less the options.
#[test]
fn the_smaller_limit_on_segments_holds() {
    assert_eq!(segment_size(1460, false, Some(1000)), 1000);
    assert_eq!(segment_size(1000, false, Some(1460)), 1000);
    assert_eq!(segment_size(1460, true, Some(1460)), 1448);
    assert_eq!(segment_size(1460, false, None), 536);
    assert_eq!(segment_size(1460, true, None), 524);
}

/// RFC 7323 section 2: windows are shifted if both SYNs say so, and never in a SYN.
#[test]
fn windows_scale_if_both_offer_it() {
    for (client, server) in [(true, true), (true, false), (false, true), (false, false)] {
        let side = |scaling: bool| {
            let size = Window::Octets(if scaling { 300_000 } else { 50_000 });
            Config {
                window_scaling: scaling,
                receive_window: ReceiveWindow { size, first: None },
                ..prompt()
            }
        };
        let world = World::new(side(client), side(server), ROUND_TRIP, 0);
        let mut world = world;
        world.run();
        let [syn, answer, ack] = [0, 1, 2].map(|n| world.sent[n].segment);
        // 300000 octets take 3 bits: 65535 << 2 = 262140 is too little.
        assert_eq!(syn.options.window_scale, client.then_some(3));
        assert_eq!(answer.options.window_scale, (client && server).then_some(3));
        assert_eq!(ack.options.window_scale, None);
        assert_eq!(syn.window, if client { 65_535 } else { 50_000 });
        assert_eq!(answer.window, if server { 65_535 } else { 50_000 });
        let expected = match (client, server) {
            (true, true) => 37_500,
            (true, false) => 65_535,
            (false, _) => 50_000,
        };
        assert_eq!(ack.window, expected, "{client} {server}");
    }
}

#[test]
fn the_scale_is_the_least_that_tells_the_window() {
    for (octets, scale) in
        [(2000, 0), (65_535, 0), (65_536, 1), (131_070, 1), (131_071, 2), (4 << 20, 7), (65_535 << 14, 14)]
    {
        let size = Window::Octets(octets);
        let config = Config { receive_window: ReceiveWindow { size, first: None }, ..prompt() };
        let mut world = World::new(config.clone(), config, ROUND_TRIP, 0);
        world.run();
        assert_eq!(world.sent[0].segment.options.window_scale, Some(scale), "{octets}");
    }
}

/// SACK and timestamps only if both offer them.
#[test]
fn options_are_used_if_both_offer_them() {
    for (client, server) in [(true, true), (true, false), (false, true)] {
        let side = |offers: bool| Config {
            sack: offers,
            recovery: if offers { farcast_tcp::Recovery::Sack } else { farcast_tcp::Recovery::NewReno },
            timestamps: offers.then_some(ms(1)),
            ..prompt()
        };
        let mut world = World::open(side(client), side(server), ROUND_TRIP, 20_000);
        // The second segment arrives after the others.
        world.paths[CLIENT].script =
            Box::new(|passing| if passing.nth_data == 1 { Fate::Late(ms(1)) } else { Fate::Pass });
        world.write(CLIENT, 5000);
        world.run();
        let both = client && server;
        assert_eq!(world.sent.iter().any(|s| !s.segment.options.sack.is_empty()), both);
        assert_eq!(world.sent.iter().all(|s| s.segment.options.timestamps.is_some()), both);
        assert_eq!(world.sent.iter().any(|s| s.segment.options.timestamps.is_some()), both);
        assert_eq!(world.ends[SERVER].connection.received(), 5000);
    }
}

/// The acknowledgment that ends the handshake is lost: the first data does as well.
#[test]
fn data_ends_a_handshake() {
    let mut world = World::new(prompt(), prompt(), ROUND_TRIP, 3000);
    world.paths[CLIENT].script = Box::new(|passing| if passing.nth == 1 { Fate::Drop } else { Fate::Pass });
    world.run_until(Time::ZERO + ms(400));
    assert_eq!(world.states(), [State::Established, State::SynReceived]);
    world.write(CLIENT, 3000);
    world.run_until(Time::ZERO + ms(460));
    assert_eq!(world.states(), [State::Established; 2]);
    assert_eq!(world.ends[SERVER].connection.received(), 3000);
}

/// Neither data nor a FIN waits for the handshake on the owner's side.
#[test]
fn what_is_written_and_closed_early_arrives() {
    let mut world = World::new(prompt(), prompt(), ROUND_TRIP, 3000);
    assert_eq!(world.ends[CLIENT].connection.write(3000), 3000);
    world.ends[CLIENT].connection.close();
    world.run_until(Time::ZERO + ms(160));
    assert_eq!(world.ends[SERVER].connection.received(), 3000);
    assert_eq!(world.states(), [State::FinWait1, State::CloseWait]);
}

/// Closed before it is open and with nothing written, there is nothing to end (RFC 9293 section 3.10.4).
#[test]
fn an_opening_can_be_given_up() {
    for state in [State::Listen, State::SynSent] {
        let mut connection = if state == State::Listen {
            Connection::listen(prompt(), address(SERVER), initial(SERVER)).expect("settings")
        } else {
            Connection::connect(prompt(), address(CLIENT), address(SERVER), initial(CLIENT))
                .expect("settings")
        };
        connection.close();
        assert_eq!(connection.state(), State::Closed);
        assert_eq!(connection.poll_event(), Some(Event::Closed));
        assert!(
            connection.poll_transmit(Time::ZERO, Time::NEVER).is_none()
                && connection.poll_timeout().is_none()
        );
        assert_eq!(connection.write(1), 0);
    }
}
