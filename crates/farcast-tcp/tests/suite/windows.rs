//! Windows: closed, opened, small, and the segments sent into them (RFC 9293 sections 3.7.4, 3.8.6).

use farcast_core::{Span, Time};
use farcast_tcp::{
    Config, Event, Failure, InitialWindow, Options, Payload, ReceiveWindow, Segment, State, Window,
};

use crate::common::{CLIENT, Fate, Lone, SERVER, World, address, initial, ms, prompt};

const ROUND_TRIP: Span = Span::from_millis(100);
const SMSS: u64 = 1000;

fn settings(window: u64) -> Config {
    Config {
        mss: SMSS as u16,
        timestamps: None,
        receive_window: ReceiveWindow { size: Window::Octets(window), first: None },
        initial_window: InitialWindow::Segments(100),
        ..prompt()
    }
}

/// The server's owner takes nothing; its window of ten segments is full.
fn closed(config: &Config) -> World {
    let mut world = World::open(config.clone(), settings(10 * SMSS), ROUND_TRIP, 200_000);
    world.server().consumes = false;
    world.write(CLIENT, 20 * SMSS);
    world.run_until(world.now + ms(100));
    assert_eq!(world.ends[SERVER].connection.received(), 10 * SMSS);
    assert_eq!(world.sent.last().map(|sent| sent.segment.window), Some(0));
    world.sent.clear();
    world
}

/// Section 3.8.6.1: a closed window is probed after a retransmission timeout (one second), then after twice as long, up
/// to a minute; and the connection lives as long as the probes are answered.
#[test]
fn a_closed_window_is_probed_for_ever() {
    let mut world = closed(&settings(50_000));
    let begin = world.now;
    world.run_until(begin + Span::from_secs(3600));
    let probes: Vec<_> = world.sent.iter().filter(|sent| sent.from == CLIENT).collect();
    let seconds: Vec<_> = probes.iter().map(|sent| sent.at.since(begin).as_millis() / 1000).collect();
    assert_eq!(seconds[..8], [1, 3, 7, 15, 31, 63, 123, 183]);
    assert!(seconds.len() > 50, "there are more than retries in an hour");
    assert_eq!(world.sent.len(), 2 * probes.len(), "each is answered");
    assert_eq!(world.states(), [State::Established; 2]);
    world.consume(SERVER, u64::MAX);
    world.server().consumes = true;
    world.run();
    assert_eq!(world.ends[SERVER].connection.received(), 20 * SMSS);
}

/// ... and not much longer than that if they are not.
#[test]
fn probes_that_nobody_answers_end() {
    let mut world = closed(&Config { most_retries: 5, ..settings(50_000) });
    world.paths[CLIENT].script = Box::new(|_| Fate::Drop);
    world.run();
    assert!(world.client().heard(Event::Failed(Failure::TimedOut)));
}

/// However long the window was closed, a loss after that has all the retries that there are.
#[test]
fn a_long_closed_window_leaves_patience_for_losses() {
    let mut world = closed(&settings(50_000));
    world.run_until(world.now + Span::from_secs(7200));
    let mut lost = 12;
    world.paths[CLIENT].script = Box::new(move |passing| {
        lost -= i32::from(passing.segment.payload.len > 0);
        if passing.segment.payload.len > 0 && lost >= 0 { Fate::Drop } else { Fate::Pass }
    });
    world.server().consumes = true;
    world.consume(SERVER, u64::MAX);
    world.run();
    assert_eq!(world.ends[SERVER].connection.received(), 20 * SMSS);
}

/// The update that opens the window is lost: the next probe finds out.
#[test]
fn a_lost_window_update_is_found_by_a_probe() {
    let mut world = closed(&settings(50_000));
    let begin = world.now;
    world.run_until(begin + ms(500));
    let mut first = true;
    world.paths[SERVER].script =
        Box::new(move |_| if std::mem::take(&mut first) { Fate::Drop } else { Fate::Pass });
    world.server().consumes = true;
    world.consume(SERVER, u64::MAX);
    let end = world.run_to_receipt(SERVER, 20 * SMSS);
    // The probe at one second is answered after a round trip, and the data take half of one.
    assert_eq!(end, begin + ms(1000 + 100 + 50));
}

/// Section 3.8.6.2.2: the window opens by a segment, or half the buffer, not octet by octet.
#[test]
fn the_window_does_not_open_by_little() {
    let mut world = closed(&settings(50_000));
    for _ in 0..9 {
        world.consume(SERVER, 111);
        world.run_until(world.now + ms(20));
        assert!(world.sent.is_empty());
    }
    world.consume(SERVER, 1);
    assert_eq!(world.sent.last().map(|sent| sent.segment.window), Some(1000));
    world.run_until(world.now + ms(150));
    assert_eq!(world.ends[SERVER].connection.received(), 11 * SMSS);
    assert!(world.data(CLIENT).iter().all(|sent| sent.range().1 == SMSS));
}

/// Section 3.8.6.2.1: data smaller than a segment waits, if there is more, until the window has room for a segment or
/// for half of its maximum; or until a timeout.
#[test]
fn a_small_window_gets_no_small_segments_at_first() {
    for (window, sends_at) in [(400, Some(1000)), (5000, None), (999, Some(1000)), (0, None)] {
        let answer = Segment {
            window: 10_000,
            options: Options { mss: Some(1000), ..Options::default() },
            ..Segment::default()
        };
        let mut lone = Lone::open(settings(50_000), ROUND_TRIP, answer);
        lone.connection.write(30 * SMSS);
        assert_eq!(lone.poll().len(), 10);
        // Everything is acknowledged, and the window is another.
        let sent = lone.after(ROUND_TRIP, &Lone::ack(10_000, window));
        assert_eq!(sent.len() as u64, u64::from(window) / SMSS, "{window}");
        if let Some(after) = sends_at {
            let begin = lone.now;
            let sent = lone.wait();
            assert_eq!(lone.now, begin + ms(after));
            assert_eq!(sent.iter().map(|s| s.payload.len).collect::<Vec<_>>(), [window]);
        }
    }
    // Half of the largest window that there was is enough.
    let answer = Segment {
        window: 1500,
        options: Options { mss: Some(1000), ..Options::default() },
        ..Segment::default()
    };
    let mut lone = Lone::open(settings(50_000), ROUND_TRIP, answer);
    lone.connection.write(30 * SMSS);
    assert_eq!(lone.poll().iter().map(|s| s.payload.len).collect::<Vec<_>>(), [1000]);
    let sent = lone.after(ROUND_TRIP, &Lone::ack(1000, 750));
    assert_eq!(sent.iter().map(|s| s.payload.len).collect::<Vec<_>>(), [750]);
}

/// Section 3.7.4: with Nagle's algorithm a small segment waits for the acknowledgment of the octets in flight.
#[test]
fn nagles_algorithm() {
    for nagle in [true, false] {
        let config = Config { nagle, ..settings(50_000) };
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 200_000);
        let begin = world.now;
        for _ in 0..5 {
            world.write(CLIENT, 100);
        }
        world.run();
        let sent: Vec<_> =
            world.data(CLIENT).iter().map(|s| (s.at.since(begin).as_millis(), s.range().1)).collect();
        if nagle {
            assert_eq!(sent, [(0, 100), (100, 400)]);
        } else {
            assert_eq!(sent, [(0, 100); 5]);
        }
    }
    // Whole segments do not wait, the rest does.
    let config = Config { nagle: true, ..settings(50_000) };
    let mut world = World::open(config.clone(), config, ROUND_TRIP, 200_000);
    let begin = world.now;
    world.write(CLIENT, 2500);
    world.run();
    let sent: Vec<_> =
        world.data(CLIENT).iter().map(|s| (s.at.since(begin).as_millis(), s.range().1)).collect();
    assert_eq!(sent, [(0, 1000), (0, 1000), (100, 500)]);
}

/// A buffer holds as much as the settings say, even if the shift of its window rounds (RFC 7323 section 2.3). The
/// window announced to the peer never shrinks except by a shift.
#[test]
fn an_owner_that_takes_nothing_gets_no_more_than_the_buffer() {
    for (size, mss) in
        [(10_000, 1000), (70_000, 64), (300_001, 88), (5_000_000, 64), (1_100_000, 1460), (600 << 20, 1460)]
    {
        let mut config = settings(size);
        config.mss = mss;
        let shift = (0..15).find(|shift| size <= 65_535 << shift).expect("it is told");
        // The peer is played: a connection would need a gigabyte.
        let mut server =
            farcast_tcp::Connection::listen(config, address(SERVER), initial(SERVER)).expect("settings");
        let got = flood(&mut server, mss, size, shift);
        assert!(got >= size - u64::from(mss), "{size}: {got}");
        assert!(got < size + (1 << shift), "{size}: {got}");
    }
}

/// Sends segments into the window as far as it was told; how many octets were taken.
fn flood(server: &mut farcast_tcp::Connection, mss: u16, size: u64, shift: u32) -> u64 {
    use farcast_core::engine::{Arrival, Engine as _};
    let from = Arrival::new(address(CLIENT), address(SERVER));
    let take = |server: &mut farcast_tcp::Connection, segment: &Segment| {
        let _ = server.handle(Time::ZERO, &from, segment);
        while server.poll_event().is_some() {}
        server.poll_transmit(Time::ZERO, Time::NEVER).map(|transmit| transmit.message)
    };
    let base = Segment {
        source_port: address(CLIENT).port(),
        destination_port: address(SERVER).port(),
        window: 1000,
        ..Segment::default()
    };
    let options = Options { mss: Some(1460), window_scale: Some(0), ..Options::default() };
    let flags = farcast_tcp::Flags::SYN;
    take(server, &Segment { sequence: initial(CLIENT), flags, options, ..base }).expect("an answer");
    let ack = Segment { flags: farcast_tcp::Flags::ACK, acknowledgment: initial(SERVER).plus(1), ..base };
    // 600 MB in steps of 60000 octets, others in segments.
    let step = if size > 1 << 24 { 60_000 } else { mss };
    let (mut sent, mut edge) = (0u64, size.min(65_535));
    for _ in 0..1_000_000 {
        let len = u64::from(step).min(edge.saturating_sub(sent)) as u16;
        if len == 0 {
            break;
        }
        let segment = Segment {
            sequence: initial(CLIENT).plus(1 + sent as u32),
            payload: Payload { offset: 0, len },
            ..ack
        };
        let answer = take(server, &segment).expect("an acknowledgment");
        sent += u64::from(len);
        assert_eq!(server.received(), sent);
        let told = sent + (u64::from(answer.window) << shift);
        assert!(told + (1 << shift) > edge, "the window shrinks from {edge} to {told}");
        edge = edge.max(told);
    }
    sent
}

/// Linux 2.4's slow start of the receive window: two segments more with each that arrives in order.
#[test]
fn the_window_may_grow_as_data_arrive() {
    let mut config = settings(60_000);
    config.receive_window.first = Some(Window::Segments(4));
    config.window_scaling = false;
    let mut world = World::open(settings(60_000), config, ROUND_TRIP, 200_000);
    world.write(CLIENT, 100 * SMSS);
    let first = world.data(CLIENT).len();
    assert_eq!(first, 4, "the window in the SYN");
    world.run();
    let windows: Vec<_> =
        world.sent.iter().filter(|s| s.from == SERVER).map(|s| u64::from(s.segment.window)).collect();
    let expected: Vec<_> = (1..=100).map(|n| (4000 + 2000 * n).min(60_000)).collect();
    assert_eq!(windows[..50], expected[..50]);
}

/// The send buffer takes octets as far as it has room, and reports when it has more.
#[test]
fn the_send_buffer_fills_and_empties() {
    let config = Config { send_buffer: 5000, ..settings(50_000) };
    let mut world = World::open(config.clone(), config, ROUND_TRIP, 20_000);
    assert_eq!(world.ends[CLIENT].connection.write(20_000), 5000);
    assert_eq!(world.ends[CLIENT].connection.write(1), 0);
    world.drain(CLIENT);
    assert!(!world.client().heard(Event::Writable));
    world.run_until(world.now + ROUND_TRIP);
    assert!(world.client().heard(Event::Writable));
    assert_eq!(world.ends[CLIENT].connection.acknowledged(), 5000);
    assert_eq!(world.ends[CLIENT].connection.write(20_000), 5000);
}
