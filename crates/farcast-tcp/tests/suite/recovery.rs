//! Losses that acknowledgments tell of: what is sent again and when, and what it costs.
//!
//! The round trip is 100 ms and paths take no time for an octet, so that everything happens at multiples of 50 ms.
//! Windows are constant: congestion avoidance adds a tenth of a segment with each acknowledgment of ten.

use farcast_core::{BitRate, Span, Time};
use farcast_tcp::{Config, Floor, InitialWindow, Recovery, Reduction, RtoConfig, Window};

use crate::common::{CLIENT, Fate, SERVER, World, drop_data, ms, prompt};

const ROUND_TRIP: Span = Span::from_millis(100);
const SMSS: u64 = 1000;

/// Segments of 1000 octets, `window` of them from the start, in congestion avoidance.
fn steady(recovery: Recovery, window: u32) -> Config {
    Config {
        mss: SMSS as u16,
        recovery,
        sack: recovery.needs_sack(),
        initial_window: InitialWindow::Segments(window),
        initial_ssthresh: Some(Window::Segments(window)),
        timestamps: None,
        ..prompt()
    }
}

/// The client sends `segments`, of which the data segments numbered in `lost` are lost on their way.
fn transfer(config: &Config, segments: u64, lost: &[usize]) -> (World, Time) {
    let mut world = World::open(config.clone(), config.clone(), ROUND_TRIP, (segments * SMSS) as usize);
    world.paths[CLIENT].script = drop_data(lost);
    let begin = world.now;
    world.write(CLIENT, segments * SMSS);
    world.run();
    assert_eq!(world.ends[SERVER].connection.received(), segments * SMSS);
    (world, begin)
}

/// Returns the segments that left at `at` milliseconds.
fn left_at(world: &World, begin: Time, at: u64) -> Vec<u64> {
    let all = world.schedule(CLIENT, SMSS, begin);
    all.into_iter().filter(|&(when, _)| when == at).map(|(_, segment)| segment).collect()
}

/// Segment 2 of a window of ten is lost. At 100 ms:
/// * the acknowledgments of 0 and 1 let 10 and 11 follow;
/// * the first two of the seven duplicates (3 to 9) let 12 and 13 follow (limited transmit);
/// * the third: 12 segments are in flight, of which two by limited transmit, so the threshold is 5; 2 goes again;
/// * after the seventh 12 - 7 = 5 are in the pipe: no more.
///
/// At 200 ms 10 to 13 bring a duplicate and let a segment follow each, and 2 ends the recovery with 4 in flight of 5.
/// At 300 ms a segment leaves for each of the five that were acknowledged (the window is 5.93 then).
#[test]
fn one_loss_costs_half_the_window_and_no_timeout() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Fack] {
        let (world, begin) = transfer(&steady(recovery, 10), 60, &[2]);
        assert_eq!(left_at(&world, begin, 0), (0..10).collect::<Vec<_>>(), "{recovery:?}");
        assert_eq!(left_at(&world, begin, 100), [10, 11, 12, 13, 2], "{recovery:?}");
        assert_eq!(left_at(&world, begin, 200), [14, 15, 16, 17, 18], "{recovery:?}");
        assert_eq!(left_at(&world, begin, 300), [19, 20, 21, 22, 23], "{recovery:?}");
        let stats = world.ends[CLIENT].connection.stats();
        assert_eq!((stats.fast_recoveries, stats.retransmits, stats.timeouts), (1, 1, 0), "{recovery:?}");
        assert_eq!(world.ends[CLIENT].connection.slow_start_threshold(), 5 * SMSS, "{recovery:?}");
    }
}

/// Without limited transmit the first two duplicates let nothing out: 10 are in flight at the third. Reno's window is
/// inflated to 8 then, to 12 with the other four, of which the last two let 12 and 13 follow.
#[test]
fn without_limited_transmit() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let config = Config { limited_transmit: false, ..steady(recovery, 10) };
        let (world, begin) = transfer(&config, 60, &[2]);
        assert_eq!(left_at(&world, begin, 100), [10, 11, 2, 12, 13]);
        assert_eq!(left_at(&world, begin, 200), [14, 15, 16, 17, 18]);
        assert_eq!(world.ends[CLIENT].connection.slow_start_threshold(), 5 * SMSS);
    }
    // With SACK the pipe is 10 - 7 = 3 after the seventh: the fourth brings it to 6 less 1 lost and 1 sent again.
    let config = Config { limited_transmit: false, ..steady(Recovery::Sack, 10) };
    let (world, begin) = transfer(&config, 60, &[2]);
    assert_eq!(left_at(&world, begin, 100), [10, 11, 2, 12, 13]);
    assert_eq!(world.ends[CLIENT].connection.slow_start_threshold(), 5 * SMSS);
}

/// The first of a window of three is lost: two duplicates come. Each lets a new segment out (RFC 3042), which brings
/// the third.
#[test]
fn limited_transmit_saves_a_timeout_in_a_small_window() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        for (limited, timeouts) in [(true, 0), (false, 1)] {
            let config = Config { limited_transmit: limited, ..steady(recovery, 3) };
            let (world, _) = transfer(&config, 20, &[0]);
            assert_eq!(world.ends[CLIENT].connection.stats().timeouts, timeouts, "{recovery:?} {limited}");
        }
    }
}

/// Four losses in a window of twenty: `NewReno` repairs one in each round trip, SACK all in one.
///
/// SACK at 100 ms: the acknowledgment of 0 lets 20 follow, the duplicates of 2 and 4 (limited transmit) 21 and 22. The
/// one of 6 is the third: 1 goes again, the threshold is (22 - 2) / 2 = 10. With those of 8, 9 and 10 the segments 3, 5
/// and 7 are lost, too; the pipe is 22 - 6 - 4 + 1 = 13. The ones of 11 to 14 bring it to 9: 3 goes again, then with
/// each one more, 5, 7, 23, 24, 25.
#[test]
fn partial_acknowledgments_repair_a_hole_a_round_trip_and_blocks_all_in_one() {
    let lost = [1, 3, 5, 7];
    let (world, begin) = transfer(&steady(Recovery::NewReno, 20), 100, &lost);
    assert_eq!(world.repetitions(CLIENT, SMSS, begin), [(100, 1), (200, 3), (300, 5), (400, 7)]);
    let stats = world.ends[CLIENT].connection.stats();
    assert_eq!((stats.fast_recoveries, stats.timeouts), (1, 0));

    let (world, begin) = transfer(&steady(Recovery::Sack, 20), 100, &lost);
    assert_eq!(left_at(&world, begin, 100), [20, 21, 22, 1, 3, 5, 7, 23, 24, 25]);
    assert_eq!(world.repetitions(CLIENT, SMSS, begin), lost.map(|n| (100, n as u64)));
    let stats = world.ends[CLIENT].connection.stats();
    assert_eq!((stats.fast_recoveries, stats.timeouts), (1, 0));
}

/// RFC 6675 section 4, `NextSeg` rule 4: once the first retransmission and more is acknowledged, the last segment of
/// all goes again, although nothing reports it lost. This saves the timeout of a tail that was lost with the rest.
#[test]
fn a_rescue_saves_the_timeout_of_a_lost_tail() {
    let (world, begin) = transfer(&steady(Recovery::Sack, 10), 10, &[0, 9]);
    assert_eq!(world.repetitions(CLIENT, SMSS, begin), [(100, 0), (200, 9)]);
    // Only one: 8 has to wait for its timeout, which begins with the acknowledgment of 0 to 7.
    let (world, begin) = transfer(&steady(Recovery::Sack, 10), 10, &[0, 8, 9]);
    assert_eq!(world.repetitions(CLIENT, SMSS, begin)[..2], [(100, 0), (200, 9)]);
}

/// FACK needs no three blocks: a segment more than three segments below the highest is lost at once. With 1 to 4 lost,
/// the first duplicate is of 5, and shows that four are missing before it: 1 lies more than three below the end of 5.
#[test]
fn forward_acknowledgment_needs_one_block() {
    let (world, begin) = transfer(&steady(Recovery::Fack, 20), 100, &[1, 2, 3, 4]);
    let repeated = world.repetitions(CLIENT, SMSS, begin);
    assert_eq!(repeated, [1, 2, 3, 4].map(|n| (100, n)));
    // The acknowledgment of 0 lets 20 follow; the very next one begins the recovery.
    assert_eq!(left_at(&world, begin, 100)[..2], [20, 1]);
    assert_eq!(world.ends[CLIENT].connection.stats().fast_recoveries, 1);
}

/// Reno leaves recovery with the first acknowledgment that advances. The second loss of the window lies below the
/// octets sent by then, so that it takes a timeout.
#[test]
fn renos_second_loss_takes_a_timeout() {
    let (world, begin) = transfer(&steady(Recovery::Reno, 10), 60, &[2, 5]);
    let stats = world.ends[CLIENT].connection.stats();
    assert_eq!((stats.fast_recoveries, stats.timeouts), (1, 1));
    let repeated = world.repetitions(CLIENT, SMSS, begin);
    assert_eq!((repeated[0], repeated[1].1), ((100, 2), 5));
    // The partial acknowledgment came at 200 ms and restarted the timer of one second.
    assert_eq!(repeated[1].0, 1200);
}

/// Losses of every size and place in a window: SACK, FACK and RACK need no timeout as long as three segments behind the
/// last loss arrive, and repair everything in one recovery.
#[test]
fn blocks_repair_any_losses_of_a_window() {
    for recovery in [Recovery::Sack, Recovery::Fack, Recovery::Rack] {
        for reduction in [Reduction::Immediate, Reduction::Proportional, Reduction::RateHalving] {
            for pattern in 1u32..256 {
                let lost: Vec<usize> = (0..8).filter(|bit| pattern >> bit & 1 == 1).collect();
                let config = Config { reduction, ..steady(recovery, 16) };
                let (world, _) = transfer(&config, 80, &lost);
                let stats = world.ends[CLIENT].connection.stats();
                let told = format!("{recovery:?} {reduction:?} {pattern:08b} {stats:?}");
                assert_eq!((stats.timeouts, stats.fast_recoveries), (0, 1), "{told}");
                if recovery != Recovery::Rack {
                    assert_eq!(stats.retransmits as usize, lost.len(), "{told}");
                }
            }
        }
    }
}

/// Round trips differ by a segment's time here, so that the order of sending is known.
fn paced(config: &Config, segments: u64, lost: &[usize]) -> World {
    let mut world = World::open(config.clone(), config.clone(), ROUND_TRIP, (segments * SMSS) as usize);
    world.paths[CLIENT].rate = BitRate::from_bps(8_000_000);
    world.paths[CLIENT].script = drop_data(lost);
    world.write(CLIENT, segments * SMSS);
    world.run();
    assert_eq!(world.ends[SERVER].connection.received(), segments * SMSS);
    world
}

/// A retransmission may be lost too. RFC 6675 does not notice, and needs a timeout. RACK notices, because a segment
/// sent later has arrived.
#[test]
fn a_repetition_that_is_lost_too() {
    // In the order of leaving: 0 to 9, 10 to 13, and 2 again as number 14.
    for (recovery, timeouts) in [(Recovery::Sack, 1), (Recovery::Rack, 0)] {
        let world = paced(&steady(recovery, 10), 60, &[2, 14]);
        let again: Vec<_> = world.data(CLIENT)[14..15].iter().map(|sent| sent.range().0 / SMSS).collect();
        assert_eq!(again, [2], "it is what is dropped");
        let stats = world.ends[CLIENT].connection.stats();
        assert_eq!(stats.timeouts, timeouts, "{recovery:?}");
        assert_eq!(stats.retransmits, 2, "{recovery:?}");
    }
}

/// A loss of a segment sent during a recovery is another window's loss: it costs another reduction, whenever it is
/// found (RFC 6675 section 5: a new recovery begins behind the recovery point). `NewReno` cannot tell the duplicates
/// from those that unnecessary retransmissions cause, and waits for a timeout (RFC 6582 section 3.2 step 1).
#[test]
fn a_loss_during_recovery_is_another_loss() {
    let world = paced(&steady(Recovery::NewReno, 10), 60, &[2, 15]);
    let stats = world.ends[CLIENT].connection.stats();
    assert_eq!((stats.fast_recoveries, stats.timeouts, stats.retransmits), (1, 1, 2));
    for recovery in [Recovery::Sack, Recovery::Fack, Recovery::Rack] {
        // 0 to 9, 10 to 13, 2 again, and then 14 as number 15.
        let world = paced(&steady(recovery, 10), 60, &[2, 15]);
        assert_eq!(world.data(CLIENT)[15].range().0 / SMSS, 14, "it is what is dropped");
        let connection = &world.ends[CLIENT].connection;
        let stats = connection.stats();
        assert_eq!((stats.fast_recoveries, stats.timeouts, stats.retransmits), (2, 0, 2), "{recovery:?}");
        // 5 after the first, and half of at most 5 and two by limited transmit after the second.
        assert!(connection.slow_start_threshold() <= 3 * SMSS, "{recovery:?}");
    }
}

/// The same if the loss is found before the recovery is over. 14 is lost, and 15 to 17 report it at 300 ms. But the
/// retransmission of 2 takes 150 ms longer than it should, and its acknowledgment comes at 350 ms only.
#[test]
fn a_loss_during_recovery_that_is_found_in_it_is_another_loss_too() {
    for recovery in [Recovery::Sack, Recovery::Fack, Recovery::Rack] {
        let config = steady(recovery, 10);
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 60 * SMSS as usize);
        world.paths[CLIENT].rate = BitRate::from_bps(8_000_000);
        world.paths[CLIENT].script = Box::new(|passing| match passing.nth_data {
            2 | 15 => Fate::Drop,
            14 => Fate::Late(ms(150)),
            _ => Fate::Pass,
        });
        world.write(CLIENT, 60 * SMSS);
        world.run();
        let connection = &world.ends[CLIENT].connection;
        let stats = connection.stats();
        assert_eq!((stats.fast_recoveries, stats.timeouts), (2, 0), "{recovery:?}");
        // 14 to 20 are in flight when the second recovery begins.
        assert_eq!(connection.slow_start_threshold(), 7 * SMSS / 2, "{recovery:?}");
    }
}

/// A segment that three others overtake counts as lost by RFC 6675. RACK has seen reordering before and waits a quarter
/// of the round trip.
#[test]
fn reordering_is_no_loss_to_rack() {
    for (recovery, repetitions) in [(Recovery::Sack, 1), (Recovery::Rack, 0)] {
        let config = steady(recovery, 30);
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 200_000);
        world.paths[CLIENT].rate = BitRate::from_bps(8_000_000);
        // A segment takes 1.04 ms: the first is overtaken by two, the others by nine.
        let mut late = vec![110, 60, 10];
        world.paths[CLIENT].script = Box::new(move |passing| {
            let number = passing.segment.payload.offset / SMSS;
            match late.pop_if(|next| *next == number) {
                Some(10) => Fate::Late(Span::from_micros(2_500)),
                Some(_) => Fate::Late(ms(10)),
                None => Fate::Pass,
            }
        });
        world.write(CLIENT, 200 * SMSS);
        world.run();
        let stats = world.ends[CLIENT].connection.stats();
        assert_eq!(stats.timeouts, 0);
        if repetitions == 0 {
            assert_eq!((stats.retransmits, stats.fast_recoveries), (0, 0));
        } else {
            assert_eq!((stats.retransmits, stats.fast_recoveries), (2, 2));
        }
    }
}

/// The last segment is lost, the round trip was 100 ms without variation. A tail loss probe leaves after twice that and
/// the longest delay of an acknowledgment (RFC 8985 section 7.2), as one segment is in flight: 400 ms after the last
/// acknowledgment at 100 ms. The retransmission timer has a second.
#[test]
fn a_probe_saves_the_timeout_of_a_lost_tail() {
    for (probes, repeated_at) in [(true, 500), (false, 1100)] {
        let config = Config { tail_loss_probe: probes, ..steady(Recovery::Rack, 10) };
        let (world, begin) = transfer(&config, 10, &[9]);
        assert_eq!(world.repetitions(CLIENT, SMSS, begin), [(repeated_at, 9)]);
        let stats = world.ends[CLIENT].connection.stats();
        assert_eq!((stats.tail_loss_probes, stats.timeouts), if probes { (1, 0) } else { (0, 1) });
    }
    // With two lost, the probe leaves after twice the round trip and 2 ms, which Linux adds, and its acknowledgment
    // reports the other.
    let config = Config { tail_loss_probe: true, ..steady(Recovery::Rack, 10) };
    let (world, begin) = transfer(&config, 10, &[8, 9]);
    assert_eq!(world.repetitions(CLIENT, SMSS, begin), [(302, 9), (402, 8)]);
    assert_eq!(world.ends[CLIENT].connection.stats().timeouts, 0);
}

/// New data goes as a probe before old data does (RFC 8985 section 7.3).
/// RFC 8985 section 7.2: where a timeout would come sooner than the probe, as with Linux's timer over a satellite, the
/// probe leaves then, and the timeout waits once more.
#[test]
fn a_probe_goes_before_an_early_timeout() {
    let early = RtoConfig { least: Span::from_millis(20), floor: Floor::Variation, ..RtoConfig::linux() };
    let config = Config { tail_loss_probe: true, rto: early, ..steady(Recovery::Rack, 10) };
    let (world, begin) = transfer(&config, 10, &[9]);
    let repeated = world.repetitions(CLIENT, SMSS, begin);
    assert!(repeated.len() == 1 && repeated[0].0 < 500 && repeated[0].1 == 9, "{repeated:?}");
    let stats = world.ends[CLIENT].connection.stats();
    assert_eq!((stats.tail_loss_probes, stats.timeouts), (1, 0));
}

#[test]
fn a_probe_is_new_data_if_there_is_any() {
    let config = Config { tail_loss_probe: true, ..steady(Recovery::Rack, 4) };
    let mut world = World::open(config.clone(), config, ROUND_TRIP, 20_000);
    world.paths[CLIENT].script = drop_data(&[0, 1, 2, 3]);
    let begin = world.now;
    world.write(CLIENT, 20 * SMSS);
    world.run();
    // The whole window is lost; the probe is segment 4, and RACK repairs the rest by its acknowledgment.
    assert_eq!(left_at(&world, begin, 202), [4]);
    assert_eq!(left_at(&world, begin, 302)[0], 0);
    assert_eq!(world.ends[CLIENT].connection.stats().timeouts, 0);
}

/// RFC 8985 section 7.4: a probe that repaired a loss costs as much as a loss, once that is sure: when a later segment
/// is acknowledged and no duplicate was reported. A probe that was not needed costs nothing.
#[test]
fn a_probe_costs_the_window_only_if_it_repaired_a_loss() {
    for lost in [true, false] {
        let config = Config { tail_loss_probe: true, ..steady(Recovery::Rack, 10) };
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 40_000);
        // The tenth is lost, or so late that it arrives just before its repetition.
        let fate = if lost { Fate::Drop } else { Fate::Late(ms(490)) };
        world.paths[CLIENT].script =
            Box::new(move |passing| if passing.nth_data == 9 { fate } else { Fate::Pass });
        world.write(CLIENT, 10 * SMSS);
        world.run();
        let before = world.ends[CLIENT].connection.congestion_window();
        assert!(before >= 10 * SMSS, "nothing is sure yet: {before}");
        world.write(CLIENT, SMSS);
        world.run();
        let connection = &world.ends[CLIENT].connection;
        assert_eq!(connection.stats().tail_loss_probes, 1);
        if lost {
            assert!(
                connection.congestion_window() <= before / 2 + SMSS,
                "{}",
                connection.congestion_window()
            );
        } else {
            assert!(connection.congestion_window() >= before, "{}", connection.congestion_window());
            assert_eq!(connection.slow_start_threshold(), 10 * SMSS);
        }
    }
}

/// RFC 5681 equation 4: half of the octets in flight, not of the window (of thirty segments), and two segments at
/// least.
#[test]
fn the_threshold_is_half_of_what_is_in_flight() {
    for (in_flight, halve_window, expected) in
        [(9, false, 4500), (8, false, 4000), (8, true, 15_000), (5, false, 2500), (4, false, 2000)]
    {
        let config = Config { halve_window, limited_transmit: false, ..steady(Recovery::Sack, 30) };
        let (world, _) = transfer(&config, in_flight, &[0]);
        let connection = &world.ends[CLIENT].connection;
        assert_eq!((connection.stats().fast_recoveries, connection.stats().timeouts), (1, 0));
        assert_eq!(connection.slow_start_threshold(), expected, "{in_flight} in flight, {halve_window}");
    }
    // Three in flight bring two duplicates: a timeout, and half of three segments is less than two.
    let (world, _) = transfer(&steady(Recovery::Sack, 30), 3, &[0]);
    assert_eq!(world.ends[CLIENT].connection.stats().timeouts, 1);
    assert_eq!(world.ends[CLIENT].connection.slow_start_threshold(), 2000);
}

/// Linux 2.4's rate halving: after a loss a segment leaves for every second acknowledgment, until the window is half.
#[test]
fn rate_halving_sends_for_every_second_acknowledgment() {
    let config = Config {
        reduction: Reduction::RateHalving,
        halve_window: true,
        limited_transmit: false,
        ..steady(Recovery::Fack, 40)
    };
    let (world, begin) = transfer(&config, 400, &[0]);
    // 39 duplicates at 100 ms: the fourth begins (more than three behind the highest), 0 goes again.
    let left = left_at(&world, begin, 100);
    assert_eq!(left[0], 0);
    // Two at the most leave for each two of the other 35 or 36 duplicates.
    assert!((16..=19).contains(&(left.len() - 1)), "{}", left.len());
    let mut windows: Vec<_> = world.samples.iter().filter(|s| s.side == CLIENT).map(|s| s.window).collect();
    windows.dedup();
    let threshold = world.ends[CLIENT].connection.slow_start_threshold();
    assert_eq!(threshold, 20 * SMSS);
    let lowest = windows.iter().min().copied();
    assert_eq!(lowest, Some(threshold), "{windows:?}");
    let falls = windows.windows(2).filter(|pair| pair[1] < pair[0]);
    assert!(falls.into_iter().all(|pair| pair[0] - pair[1] <= 4 * SMSS), "{windows:?}");
}

/// If a recovery ends with a burst, Linux 2.4 lets three segments go at once.
#[test]
fn a_burst_is_limited_where_a_recovery_ends() {
    for (most_burst, expected) in [(None, 10), (Some(3), 3)] {
        // 0 is lost, and its repetition takes all the acknowledgments of new data with it: the window opens at once.
        let config = Config { most_burst, limited_transmit: false, ..steady(Recovery::NewReno, 20) };
        let mut world = World::open(config.clone(), config, ROUND_TRIP, 100_000);
        world.paths[CLIENT].script = drop_data(&[0]);
        // Of what the server says of 1 to 19, four segments arrive: the first tells another window than the SYN did, so
        // three of them are duplicates.
        let mut said = 0;
        world.paths[SERVER].script = Box::new(move |_| {
            said += 1;
            if (5..20).contains(&said) { Fate::Drop } else { Fate::Pass }
        });
        let begin = world.now;
        world.write(CLIENT, 100 * SMSS);
        world.run_until(begin + ms(299));
        // All twenty are acknowledged at 200 ms: the window is ten, and nothing is in flight.
        assert_eq!(left_at(&world, begin, 200).len(), expected, "{most_burst:?}");
    }
}
