//! The retransmission timer at work: its expiry, its cost, and its end.

use farcast_core::{Span, Time};
use farcast_tcp::{
    AfterTimeout, Config, DelayedAck, Event, Failure, Flags, InitialWindow, Recovery, Segment, State, Window,
};
use farcast_tcp::{Options, RtoConfig, SackBlock, SackBlocks};

use crate::common::{CLIENT, Fate, Lone, SERVER, World, drop_data, initial, ms, prompt};

const ROUND_TRIP: Span = Span::from_millis(100);
const SMSS: u64 = 1000;

fn plain(recovery: Recovery, window: u32) -> Config {
    Config {
        mss: SMSS as u16,
        recovery,
        sack: recovery.needs_sack(),
        initial_window: InitialWindow::Segments(window),
        timestamps: None,
        ..prompt()
    }
}

/// Nothing arrives any more. The handshake measured 100 ms, so the timeout is max(1 s, 100 + 4 * 50 ms) = 1 s; it
/// doubles up to 60 s (RFC 6298), and the fifth is the last.
#[test]
fn timeouts_double_until_there_are_too_many() {
    let config = Config { most_retries: 8, ..plain(Recovery::Sack, 3) };
    let mut world = World::open(config.clone(), config, ROUND_TRIP, 10_000);
    world.paths[CLIENT].script = Box::new(|_| Fate::Drop);
    let begin = world.now;
    world.write(CLIENT, 10 * SMSS);
    let end = world.run();
    let times: Vec<u64> = world.repetitions(CLIENT, SMSS, begin).iter().map(|again| again.0 / 1000).collect();
    assert_eq!(times, [1, 3, 7, 15, 31, 63, 123, 183]);
    assert_eq!(end, begin + Span::from_secs(243));
    let client = world.client();
    assert_eq!(client.connection.state(), State::Closed);
    assert!(client.heard(Event::Failed(Failure::TimedOut)));
    // RFC 5681: the window is one segment, the threshold half of the octets in flight, and stays there (equation 4).
    assert_eq!(client.connection.congestion_window(), SMSS);
    assert_eq!(client.connection.slow_start_threshold(), 2 * SMSS);
}

/// The threshold is set at the first timeout of a segment, from the octets in flight then, and not again at the second.
#[test]
fn the_threshold_falls_once() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Fack, Recovery::Rack] {
        let mut world = World::open(plain(recovery, 10), plain(recovery, 10), ROUND_TRIP, 100_000);
        let begin = world.now;
        // The whole window and the first two repetitions.
        world.paths[CLIENT].script = drop_data(&(0..12).collect::<Vec<_>>());
        world.write(CLIENT, 100 * SMSS);
        world.run_until(begin + ms(6999));
        assert_eq!(world.repetitions(CLIENT, SMSS, begin), [(1000, 0), (3000, 0)], "{recovery:?}");
        assert_eq!(world.ends[CLIENT].connection.slow_start_threshold(), 5 * SMSS, "{recovery:?}");
        world.run();
        assert_eq!(world.ends[SERVER].connection.received(), 100 * SMSS);
        assert_eq!(world.ends[CLIENT].connection.slow_start_threshold(), 5 * SMSS, "{recovery:?}");
    }
}

/// After a timeout slow start repairs a whole window that was lost: 1, 2, then in congestion avoidance from 5. No
/// ambiguous round trip ends the backing off (Karn): the second timeout would be two seconds.
#[test]
fn a_lost_window_is_repaired_in_slow_start() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Fack] {
        let mut world = World::open(plain(recovery, 10), plain(recovery, 10), ROUND_TRIP, 100_000);
        let begin = world.now;
        world.paths[CLIENT].script = drop_data(&(0..10).collect::<Vec<_>>());
        world.write(CLIENT, 10 * SMSS);
        world.run();
        // 1000: window 1; 1100: window 2; 1200: two acknowledgments, 4; 1300: 5 after the first, congestion avoidance
        // then.
        let expected =
            [(1000, 0), (1100, 1), (1100, 2), (1200, 3), (1200, 4), (1200, 5), (1200, 6), (1300, 7)];
        let repeated = world.repetitions(CLIENT, SMSS, begin);
        assert_eq!(repeated[..8], expected, "{recovery:?}");
        assert_eq!(repeated[8..], [(1300, 8), (1300, 9)], "{recovery:?}");
        assert_eq!(
            world.ends[CLIENT].connection.retransmission_timeout(),
            Span::from_secs(2),
            "{recovery:?}"
        );
    }
}

/// Behaviour after timeouts in Linux. A window of ten is lost, and the first `copies` retransmissions of its first
/// segment. The next retransmission is acknowledged a round trip later. F-RTO then lets two new segments out instead of
/// the lost ones (RFC 5682 section 3.1), after a repeated timeout too. If those are lost as well, no acknowledgment
/// follows; the timer has backed off, because nothing was measured without timestamps. This timeout follows an
/// acknowledgment, so the threshold, half of ten before, is half of the window of two, and two at least (RFC 5681
/// section 3.1). Slow start sends the lost segments at once.
#[test]
fn what_follows_timeouts_in_linux() {
    for (copies, at, then) in [(0, 1000, 3100), (1, 3000, 7100), (2, 7000, 15_100)] {
        for after_timeout in [AfterTimeout::SlowStart, AfterTimeout::Linux] {
            let config =
                Config { after_timeout, frto: true, halve_window: true, ..plain(Recovery::Sack, 10) };
            let mut world = World::open(config.clone(), config, ROUND_TRIP, 100_000);
            let begin = world.now;
            world.paths[CLIENT].script =
                Box::new(move |passing| match (passing.nth_data, passing.segment.payload.offset / SMSS) {
                    (nth, _) if nth < 10 + copies => Fate::Drop,
                    (_, 10 | 11) => Fate::Drop,
                    _ => Fate::Pass,
                });
            world.write(CLIENT, 100 * SMSS);
            world.run_until(begin + ms(at + 150));
            let told = format!("{copies}, {after_timeout:?}");
            let schedule = world.schedule(CLIENT, SMSS, begin);
            let after: Vec<u64> =
                schedule.iter().filter(|sent| sent.0 == at + 100).map(|sent| sent.1).collect();
            let asks = after_timeout == AfterTimeout::Linux || copies == 0;
            assert_eq!(after, if asks { [10, 11] } else { [1, 2] }, "{told}");
            assert_eq!(world.ends[CLIENT].connection.slow_start_threshold(), 5 * SMSS, "{told}");
            if after_timeout == AfterTimeout::Linux {
                world.run_until(begin + ms(then));
                assert_eq!(world.repetitions(CLIENT, SMSS, begin).last(), Some(&(then, 1)), "{told}");
                assert_eq!(world.ends[CLIENT].connection.slow_start_threshold(), 2 * SMSS, "{told}");
            }
            world.paths[CLIENT].script = Box::new(|_| Fate::Pass);
            world.run();
            assert_eq!(world.ends[SERVER].connection.received(), 100 * SMSS, "{told}");
        }
    }
}

/// RFC 6298 rule 5.3: an acknowledgment of new data restarts the timer.
#[test]
fn acknowledgments_restart_the_timer() {
    // One segment every 400 ms; the fourth is lost, and the timer runs from the acknowledgment of the third.
    let mut world =
        World::open(plain(Recovery::NewReno, 10), plain(Recovery::NewReno, 10), ROUND_TRIP, 100_000);
    world.paths[CLIENT].script = drop_data(&[3]);
    let begin = world.now;
    for n in 0..4 {
        world.run_until(begin + ms(30 * n));
        world.write(CLIENT, SMSS);
    }
    world.run();
    // The third left at 60 ms and was acknowledged at 160 ms.
    assert_eq!(world.repetitions(CLIENT, SMSS, begin), [(1160, 3)]);
}

/// RFC 5681 section 3.1 and RFC 6298 rule 5.7: after a SYN or its answer was lost, data begins with one segment and a
/// timeout of three seconds.
#[test]
fn a_lost_syn_makes_for_a_careful_start() {
    for side in [CLIENT, SERVER] {
        let config = plain(Recovery::Sack, 10);
        let mut world = World::new(config.clone(), config, ROUND_TRIP, 10_000);
        world.paths[side].script = Box::new(|passing| if passing.nth == 0 { Fate::Drop } else { Fate::Pass });
        world.write(CLIENT, 10 * SMSS);
        world.run_to(|world| world.ends[CLIENT].connection.state() == State::Established);
        assert_eq!(world.now, Time::ZERO + ms(1100), "the first timeout is a second (rule 2.1)");
        assert_eq!(world.data(CLIENT).len(), 1);
        assert_eq!(world.ends[CLIENT].connection.retransmission_timeout(), Span::from_secs(3));
        world.run_to_receipt(SERVER, SMSS);
        assert_eq!(world.ends[SERVER].connection.state(), State::Established);
    }
}

/// The same if the server's answer is sent twice: the server begins with one segment too.
#[test]
fn a_lost_answer_makes_the_server_careful() {
    let config = plain(Recovery::Sack, 10);
    let mut world = World::new(config.clone(), config, ROUND_TRIP, 10_000);
    // The answer and the repeated SYN are lost, so that the server's own timer sends the answer again.
    world.paths[SERVER].script = Box::new(|passing| if passing.nth == 0 { Fate::Drop } else { Fate::Pass });
    world.paths[CLIENT].script = Box::new(|passing| if passing.nth == 1 { Fate::Drop } else { Fate::Pass });
    world.run_to(|world| world.states() == [State::Established; 2]);
    world.write(SERVER, 10 * SMSS);
    assert_eq!(world.data(SERVER).len(), 1);
    assert_eq!(world.ends[SERVER].connection.retransmission_timeout(), Span::from_secs(3));
}

/// RFC 6298 section 3 (Karn): if a SYN left twice, its answer measures nothing. Over 1.2 s the client repeats its SYN
/// after a second, and the server its answer; an answer to the first SYN would seem to take 200 ms.
#[test]
fn handshakes_that_repeat_measure_nothing() {
    let config = plain(Recovery::Sack, 10);
    let round_trip = ms(1200);
    let mut world = World::new(config.clone(), config, round_trip, 10_000);
    world.run_until(Time::ZERO + round_trip * 4);
    assert_eq!(world.states(), [State::Established; 2]);
    for side in [CLIENT, SERVER] {
        assert_eq!(world.ends[side].connection.round_trip(), None, "side {side}");
    }
    // Each measures when it sends something: the client has a timeout of three seconds, as its SYN was lost for all it
    // knows; the server has one of a second, and measures only what it sends after that has doubled.
    for (side, writes) in [(CLIENT, 1), (SERVER, 2)] {
        for _ in 0..writes {
            assert_eq!(world.ends[side].connection.round_trip(), None);
            world.write(side, SMSS);
            world.run_until(world.now + round_trip * 4);
        }
        assert_eq!(world.ends[side].connection.round_trip(), Some(round_trip));
    }
}

/// A client that measured `ROUND_TRIP` and may use SACK, with a test for a peer.
fn lone(config: Config) -> Lone {
    let answer = Segment {
        window: 65_535,
        options: Options { mss: Some(SMSS as u16), sack_permitted: config.sack, ..Options::default() },
        ..Segment::default()
    };
    Lone::open(config, ROUND_TRIP, answer)
}

fn offsets(sent: &[Segment]) -> Vec<u64> {
    sent.iter().map(|segment| segment.payload.offset / SMSS).collect()
}

fn blocks(ranges: &[(u32, u32)]) -> Options {
    let mut sack = SackBlocks::default();
    for &(left, right) in ranges {
        let number = |segment: u32| initial(CLIENT).plus(1 + segment * SMSS as u32);
        sack.push(SackBlock { left: number(left), right: number(right) });
    }
    Options { sack, ..Options::default() }
}

/// RFC 2018 section 8: a receiver may discard data that it has reported. If the first segment is marked as arrived at a
/// timeout, all its reports are forgotten.
#[test]
fn a_peer_that_reneges_gets_everything_again() {
    let config = Config {
        window_scaling: false,
        receive_window: farcast_tcp::ReceiveWindow { size: Window::Octets(65_535), first: None },
        ..plain(Recovery::Sack, 10)
    };
    let mut lone = lone(config);
    lone.connection.write(10 * SMSS);
    assert_eq!(lone.poll().len(), 10);
    let told = Segment { options: blocks(&[(1, 9)]), ..Lone::ack(0, 65_535) };
    let again = lone.after(ROUND_TRIP, &told);
    assert_eq!(offsets(&again), [0], "more than three segments above it have arrived");
    // 0 arrives, and the peer has thrown away 1 to 8.
    lone.after(ROUND_TRIP, &Lone::ack(SMSS as u32, 65_535));
    let after_timeout = lone.wait();
    assert_eq!(offsets(&after_timeout), [1]);
    let mut repeated = Vec::new();
    for n in 2..=10 {
        repeated.extend(offsets(&lone.after(ms(100), &Lone::ack(n * SMSS as u32, 65_535))));
    }
    repeated.sort_unstable();
    assert_eq!(repeated, [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(lone.connection.acknowledged(), 10 * SMSS);
}

/// At a timeout SACK does not send arrived data again, unless the first segment in flight is part of it.
#[test]
fn a_timeout_believes_the_blocks() {
    let mut lone = lone(plain(Recovery::Sack, 10));
    lone.connection.write(10 * SMSS);
    lone.poll();
    // Two duplicates only: no recovery.
    let told = Segment { options: blocks(&[(4, 5), (7, 8)]), ..Lone::ack(0, 65_535) };
    assert_eq!(lone.after(ROUND_TRIP, &told), []);
    let mut repeated = offsets(&lone.wait());
    assert_eq!(repeated, [0]);
    for (n, ranges) in
        [(1, &[(4, 5), (7, 8)][..]), (2, &[(4, 5), (7, 8)]), (3, &[(4, 5), (7, 8)]), (5, &[(7, 8)])]
    {
        let ack = Segment { options: blocks(ranges), ..Lone::ack(n * SMSS as u32, 65_535) };
        repeated.extend(offsets(&lone.after(ROUND_TRIP, &ack)));
    }
    repeated.extend(offsets(&lone.after(ROUND_TRIP, &Lone::ack(6 * SMSS as u32, 65_535))));
    assert_eq!(repeated, [0, 1, 2, 3, 5, 6, 8, 9]);
}

/// Linux's floor is on the variation: the timeout is 200 ms after the smoothed round trip; the RFC's is on the whole.
#[test]
fn floors_of_both_kinds() {
    for (rto, expected) in
        [(RtoConfig::linux(), 300), (RtoConfig::linux_2_4(), 200), (RtoConfig::default(), 1000)]
    {
        let config = Config { rto, ..plain(Recovery::NewReno, 10) };
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 1_000_000);
        // Round trips without variation: after 30 samples 4 * 50 ms * 0.75^30 is less than 1 ms.
        for _ in 0..30 {
            world.write(CLIENT, SMSS);
            world.run_until(world.now + ROUND_TRIP);
        }
        assert_eq!(world.ends[CLIENT].connection.round_trip(), Some(ROUND_TRIP));
        let begin = world.now;
        world.paths[CLIENT].script = drop_data(&[30]);
        world.write(CLIENT, SMSS);
        world.run();
        assert_eq!(world.repetitions(CLIENT, SMSS, begin)[0].0, expected);
    }
}

/// A delayed acknowledgment is part of the round trip, of its first segment (RFC 7323 section 4.1).
#[test]
fn delayed_acknowledgments_are_measured() {
    for timestamps in [None, Some(ms(1))] {
        let delayed = Config {
            delayed_ack: DelayedAck::Delayed { delay: ms(200) },
            timestamps,
            ..plain(Recovery::Sack, 10)
        };
        let mut world = World::open(delayed.clone(), delayed, ROUND_TRIP, 10_000);
        assert_eq!(world.ends[CLIENT].connection.round_trip(), Some(ROUND_TRIP));
        world.write(CLIENT, 100);
        world.run();
        // 7/8 of 100 ms and 1/8 of 300 ms.
        assert_eq!(world.ends[CLIENT].connection.round_trip(), Some(ms(125)));
        assert!(world.sent.iter().all(|sent| !sent.segment.flags.has(Flags::SYN)));
    }
}
