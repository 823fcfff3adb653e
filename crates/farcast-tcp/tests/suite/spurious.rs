//! Timeouts and recoveries that nothing was lost for.

use farcast_core::{Span, Time};
use farcast_tcp::{Config, InitialWindow, Recovery, Window};

use crate::common::{CLIENT, Fate, SERVER, World, ms, prompt};

const ROUND_TRIP: Span = Span::from_millis(100);
const SMSS: u64 = 1000;

fn settings(sack: bool, timestamps: bool) -> Config {
    Config {
        mss: if timestamps { SMSS as u16 + 12 } else { SMSS as u16 },
        recovery: if sack { Recovery::Sack } else { Recovery::NewReno },
        sack,
        initial_window: InitialWindow::Segments(10),
        initial_ssthresh: Some(Window::Segments(10)),
        timestamps: timestamps.then_some(ms(1)),
        ..prompt()
    }
}

/// Sends 60 segments; the path does to segments sent in the window of time `fate`, which is told how long it lasts yet.
fn through(config: &Config, trouble: (u64, u64), fate: fn(Span) -> Fate) -> (World, Time) {
    let mut world = World::open(config.clone(), config.clone(), ROUND_TRIP, 60_000);
    let begin = world.now;
    let (first, last) = (begin + ms(trouble.0), begin + ms(trouble.1));
    world.paths[CLIENT].script = Box::new(move |passing| {
        if passing.now >= first && passing.now < last { fate(last.since(passing.now)) } else { Fate::Pass }
    });
    world.write(CLIENT, 60 * SMSS);
    world.run();
    assert_eq!(world.ends[SERVER].connection.received(), 60 * SMSS);
    (world, begin)
}

/// The path holds everything for two seconds, as a handover does. The timer expires a second after the last
/// acknowledgment, at 1200 ms, and sends the first segment again. F-RTO waits for two acknowledgments; what they tell
/// comes from before the timeout, so nothing else is sent again and the windows are as they were.
#[test]
fn a_delay_spike_costs_one_repetition() {
    let by_frto = |sack, timestamps| Config { frto: true, ..settings(sack, timestamps) };
    let by_echo = |sack| Config { undo: true, ..settings(sack, true) };
    for config in
        [by_frto(true, false), by_frto(false, false), by_frto(true, true), by_echo(true), by_echo(false)]
    {
        let told = format!("{config:?}");
        let (world, begin) = through(&config, (200, 2200), Fate::Late);
        let first = world.repetitions(CLIENT, SMSS, begin)[0];
        assert_eq!(first.0, 1200, "{told}");
        let connection = &world.ends[CLIENT].connection;
        let stats = connection.stats();
        assert_eq!((stats.retransmits, stats.timeouts, stats.undone), (1, 1, 1), "{told}");
        assert_eq!(connection.slow_start_threshold(), 10 * SMSS, "{told}");
        assert!(connection.congestion_window() >= 10 * SMSS, "{told}");
        assert_eq!(stats.fast_recoveries, 0, "{told}");
    }
}

/// Without any of them, the same spike sends everything again that was in flight.
#[test]
fn without_a_check_a_delay_spike_costs_the_window() {
    let (world, _) = through(&settings(false, false), (200, 2200), Fate::Late);
    let connection = &world.ends[CLIENT].connection;
    let stats = connection.stats();
    assert!(stats.retransmits >= 5 && stats.undone == 0, "{stats:?}");
    assert!(connection.slow_start_threshold() <= 6 * SMSS);
}

/// The path loses everything for a second: the timeout is none that may be undone. The first acknowledgment after it
/// lets two new segments out (RFC 5682 section 2.1 step 2b); their arrival says nothing about those that were in
/// flight.
#[test]
fn an_outage_is_not_taken_for_a_spike() {
    for sack in [true, false] {
        for timestamps in [true, false] {
            let config = Config { frto: true, undo: true, ..settings(sack, timestamps) };
            let (world, begin) = through(&config, (200, 1150), |_| Fate::Drop);
            let connection = &world.ends[CLIENT].connection;
            let stats = connection.stats();
            let told = format!("sack {sack}, timestamps {timestamps}: {stats:?}");
            assert_eq!((stats.timeouts, stats.undone), (1, 0), "{told}");
            // Ten are in flight, or eleven, when the window grew by one on the way.
            let repeated = world.repetitions(CLIENT, SMSS, begin);
            assert!((10..=11).contains(&repeated.len()), "{told} {repeated:?}");
            let numbers: Vec<_> = repeated.iter().map(|again| again.1).collect();
            assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "each once: {numbers:?}");
            // Slow start from one, and two, which the check let out.
            assert_eq!(repeated[0].0, 1200, "{told}");
            assert!(connection.slow_start_threshold() <= 5 * SMSS + SMSS / 2, "{told}");
        }
    }
}

/// Segment 2 is overtaken by seven and arrives 30 ms late, which three duplicates take for a loss. The acknowledgment
/// that it brings echoes a timestamp from before the repetition: nothing was lost (RFC 3522).
#[test]
fn timestamps_undo_a_needless_recovery() {
    for sack in [true, false] {
        let config = Config { undo: true, ..settings(sack, true) };
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 60_000);
        world.paths[CLIENT].script =
            Box::new(|passing| if passing.nth_data == 2 { Fate::Late(ms(30)) } else { Fate::Pass });
        let begin = world.now;
        world.write(CLIENT, 60 * SMSS);
        world.run_until(begin + ms(129));
        let connection = &world.ends[CLIENT].connection;
        assert_eq!((connection.stats().fast_recoveries, connection.slow_start_threshold()), (1, 5 * SMSS));
        world.run_until(begin + ms(130));
        let connection = &world.ends[CLIENT].connection;
        assert_eq!((connection.stats().undone, connection.slow_start_threshold()), (1, 10 * SMSS));
        assert!(connection.congestion_window() >= 10 * SMSS);
        world.run();
        let stats = world.ends[CLIENT].connection.stats();
        assert_eq!((stats.fast_recoveries, stats.retransmits, stats.timeouts), (1, 1, 0), "sack {sack}");
    }
}

/// The same by DSACK (RFC 3708), without timestamps: the repetition arrives, too, and its receiver says so. Segment 11
/// is lost indeed, so that the recovery is not over before.
#[test]
fn reported_repetitions_undo_a_needless_recovery() {
    for (dsack, undone) in [(true, 1), (false, 0)] {
        let config = Config { undo: true, dsack, limited_transmit: false, ..settings(true, false) };
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 60_000);
        world.paths[CLIENT].script = Box::new(|passing| match passing.segment.payload.offset / SMSS {
            2 if passing.nth_data == 2 => Fate::Late(ms(30)),
            11 if passing.nth_data == 11 => Fate::Drop,
            _ => Fate::Pass,
        });
        world.write(CLIENT, 60 * SMSS);
        world.run();
        let stats = world.ends[CLIENT].connection.stats();
        assert_eq!((stats.undone, stats.timeouts), (undone, 0), "{stats:?}");
        assert_eq!(world.ends[SERVER].connection.received(), 60 * SMSS);
    }
}

/// A recovery that a real loss caused is not undone by any detection.
#[test]
fn a_needed_recovery_stays() {
    for sack in [true, false] {
        for timestamps in [true, false] {
            let config = Config { undo: true, frto: true, ..settings(sack, timestamps) };
            let mut world = World::open(config.clone(), config, ROUND_TRIP, 60_000);
            world.paths[CLIENT].script =
                Box::new(|passing| if passing.nth_data == 2 { Fate::Drop } else { Fate::Pass });
            world.write(CLIENT, 60 * SMSS);
            world.run();
            let connection = &world.ends[CLIENT].connection;
            assert_eq!((connection.stats().fast_recoveries, connection.stats().undone), (1, 0));
            assert_eq!(connection.slow_start_threshold(), 5 * SMSS);
        }
    }
}
