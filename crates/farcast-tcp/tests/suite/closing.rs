//! Closing of connections (RFC 9293 section 3.6).

use farcast_core::{Span, Time};
use farcast_tcp::{Config, Event, Failure, Flags, ReceiveWindow, State, Window};

use crate::common::{CLIENT, Fate, SERVER, World, ms, prompt};

const ROUND_TRIP: Span = Span::from_millis(100);

fn open() -> World {
    World::open(prompt(), prompt(), ROUND_TRIP, 10_000)
}

/// Returns the events of a side with their times, in milliseconds after `begin`.
fn told(world: &World, side: usize, begin: Time) -> Vec<(u64, Event)> {
    let events = world.ends[side].events.iter().filter(|event| event.0 >= begin);
    events.map(|&(at, event)| (at.since(begin).as_millis(), event)).collect()
}

/// Figure 12: the one that closes first lingers.
#[test]
fn one_side_closes_and_the_other_follows() {
    let mut world = open();
    let begin = world.now;
    world.close(CLIENT);
    world.run_until(begin + ms(50));
    assert_eq!(world.states(), [State::FinWait1, State::CloseWait]);
    world.run_until(begin + ms(100));
    assert_eq!(world.states(), [State::FinWait2, State::CloseWait]);
    world.close(SERVER);
    assert_eq!(world.states(), [State::FinWait2, State::LastAck]);
    world.run_until(begin + ms(150));
    assert_eq!(world.states(), [State::TimeWait, State::LastAck]);
    world.run_until(begin + ms(200));
    assert_eq!(world.states(), [State::TimeWait, State::Closed]);
    // Twice the maximum segment lifetime of two minutes.
    let end = world.run();
    assert_eq!(end, begin + ms(150) + Span::from_secs(240));
    assert_eq!(world.states(), [State::Closed; 2]);
    assert_eq!(told(&world, CLIENT, begin), [(150, Event::PeerClosed), (150, Event::Closed)]);
    assert_eq!(told(&world, SERVER, begin), [(50, Event::PeerClosed), (200, Event::Closed)]);
    assert_eq!(world.sent.iter().filter(|sent| sent.segment.flags.has(Flags::FIN)).count(), 2);
}

/// Figure 13: both linger.
#[test]
fn both_close_at_once() {
    let mut world = open();
    let begin = world.now;
    world.close(CLIENT);
    world.close(SERVER);
    world.run_until(begin + ms(50));
    assert_eq!(world.states(), [State::Closing; 2]);
    world.run_until(begin + ms(100));
    assert_eq!(world.states(), [State::TimeWait; 2]);
    assert_eq!(world.run(), begin + ms(100) + Span::from_secs(240));
    assert_eq!(told(&world, CLIENT, begin), [(50, Event::PeerClosed), (100, Event::Closed)]);
}

/// A side that has closed goes on receiving (section 3.6).
#[test]
fn half_a_connection_goes_on() {
    let mut world = open();
    world.write(CLIENT, 100);
    world.close(CLIENT);
    assert_eq!(world.ends[CLIENT].connection.write(1), 0, "it has closed");
    world.run_until(world.now + ms(1000));
    assert_eq!(world.states(), [State::FinWait2, State::CloseWait]);
    world.write(SERVER, 10_000);
    world.run_until(world.now + ms(1000));
    assert_eq!(world.ends[CLIENT].connection.received(), 10_000);
    world.close(SERVER);
    world.run();
    assert_eq!(world.states(), [State::Closed; 2]);
    assert_eq!(world.ends[SERVER].connection.received(), 100);
}

/// The last data and the FIN leave in one segment.
#[test]
fn a_fin_rides_on_the_last_data() {
    let mut world = open();
    world.ends[CLIENT].connection.write(100);
    world.ends[CLIENT].connection.close();
    world.drain(CLIENT);
    let sent: Vec<_> = world.sent.iter().map(|s| (s.segment.flags, s.segment.payload.len)).collect();
    assert_eq!(sent, [(Flags::FIN.with(Flags::ACK).with(Flags::PSH), 100)]);
}

/// Each FIN and each acknowledgment of one is lost in turn: a timeout of a second repairs it.
#[test]
fn a_lost_fin_or_acknowledgment_is_repaired() {
    for (side, nth) in [(CLIENT, 0), (SERVER, 0), (SERVER, 1), (CLIENT, 1)] {
        let mut world = open();
        let mut seen = 0;
        world.paths[side].script = Box::new(move |_| {
            seen += 1;
            if seen == nth + 1 { Fate::Drop } else { Fate::Pass }
        });
        let begin = world.now;
        world.close(CLIENT);
        world.run_to(|world| world.ends[SERVER].heard(Event::PeerClosed));
        world.run_until(world.now + ms(200));
        world.close(SERVER);
        let end = world.run();
        assert_eq!(world.states(), [State::Closed; 2]);
        for end in &world.ends {
            assert!(end.heard(Event::Closed) && !end.heard(Event::Failed(Failure::TimedOut)));
        }
        assert!(end < begin + Span::from_secs(245), "one timeout: {end:?}");
    }
}

/// A FIN that comes again in TIME-WAIT is answered, and the time begins anew (section 3.10.7.4).
#[test]
fn a_repeated_fin_begins_time_wait_anew() {
    let mut world = open();
    let begin = world.now;
    world.close(CLIENT);
    world.run_until(begin + ms(100));
    // The acknowledgment of the server's FIN is lost: it comes again after a second.
    world.paths[CLIENT].script = Box::new({
        let mut seen = 0;
        move |_| {
            seen += 1;
            if seen == 1 { Fate::Drop } else { Fate::Pass }
        }
    });
    world.close(SERVER);
    let end = world.run();
    assert_eq!(world.states(), [State::Closed; 2]);
    assert_eq!(end, begin + ms(100 + 1000 + 50) + Span::from_secs(240));
}

/// A FIN takes no room: it is taken where the window is full to the octet, or closed.
#[test]
fn a_fin_needs_no_window() {
    for octets in [10_000, 4_000] {
        let window = ReceiveWindow { size: Window::Octets(octets), first: None };
        let small = Config { receive_window: window, window_scaling: false, ..prompt() };
        let mut world = World::open(prompt(), small, ROUND_TRIP, 10_000);
        world.server().consumes = false;
        world.write(CLIENT, octets);
        world.run_until(world.now + ms(2000));
        assert_eq!(world.ends[SERVER].connection.received(), octets);
        world.close(CLIENT);
        world.run_until(world.now + ms(200));
        assert_eq!(world.states(), [State::FinWait2, State::CloseWait], "{octets}");
    }
    // With the last data, which fill the window.
    let window = ReceiveWindow { size: Window::Octets(10_000), first: None };
    let small = Config { receive_window: window, window_scaling: false, ..prompt() };
    let mut world = World::open(prompt(), small, ROUND_TRIP, 10_000);
    world.server().consumes = false;
    world.write(CLIENT, 10_000);
    world.close(CLIENT);
    world.run_until(world.now + ms(250));
    assert_eq!(world.states(), [State::FinWait2, State::CloseWait]);
    assert_eq!(world.ends[CLIENT].connection.stats().timeouts, 0);
}

/// A FIN that overtakes the data before it closes nothing until they have arrived.
#[test]
fn a_fin_out_of_order_waits() {
    let mut world = open();
    world.paths[CLIENT].script =
        Box::new(|passing| if passing.nth_data == 0 { Fate::Late(ms(20)) } else { Fate::Pass });
    let begin = world.now;
    world.write(CLIENT, 2000);
    world.close(CLIENT);
    world.run_until(begin + ms(60));
    assert_eq!(world.states()[SERVER], State::Established);
    world.run_until(begin + ms(70));
    assert_eq!(world.states()[SERVER], State::CloseWait);
    assert_eq!(told(&world, SERVER, begin), [(70, Event::Readable), (70, Event::PeerClosed)]);
    assert_eq!(world.ends[SERVER].connection.received(), 2000);
}

/// A FIN without an answer is sent again, and in the end the connection is given up.
#[test]
fn a_fin_is_not_repeated_for_ever() {
    let config = Config { most_retries: 3, ..prompt() };
    let mut world = World::open(config.clone(), config, ROUND_TRIP, 0);
    world.paths[SERVER].script = Box::new(|_| Fate::Drop);
    let begin = world.now;
    world.close(CLIENT);
    world.run();
    assert_eq!(told(&world, CLIENT, begin), [(1000 + 2000 + 4000 + 8000, Event::Failed(Failure::TimedOut))]);
}
