//! Departures with the fixed timer, and paces of whole granules (rules 36 to 39).

use farcast_core::{BitRate, Span, Time};
use farcast_mftp::{ConfigError, Pace, PassWait, Product, Sender, SenderConfig};
use farcast_testkit::{Link, Setup, laws};

use crate::alone::{Alone, to_all};
use crate::common::{Session, at, lose_data, ms, product, sender};

/// Durations at 1 Mbit/s of a DTU of 1000 B with 40 B of header and 28 B of UDP and IP, and of a status request of 52 B
/// and 28 B.
const DTU: Span = Span::from_micros(8544);
const REQUEST: Span = Span::from_micros(640);

#[test]
fn a_nak_during_a_pass_is_for_the_next() {
    let mut sender = Alone::new(to_all(20, 10));
    sender.run_until(at(ms(300)));
    assert_eq!(sender.pass(1), (0..20).collect::<Vec<_>>());
    sender.nak(0, 1, 0, &[3]).expect("counts");
    sender.nak(1, 1, 1, &[2]).expect("counts");
    sender.run_to_pass(2);
    // DTU 3 has left; 12 is planned and has not.
    assert_eq!(sender.pass(2), [3]);
    sender.nak(2, 1, 1, &[2, 5]).expect("counts");
    sender.nak(3, 1, 0, &[3, 7]).expect("counts");
    sender.nak(4, 1, 0, &[9]).expect("counts");
    assert_eq!(sender.engine.stats().scheduled, 5, "3, 12; then 15, 7 and 9");
    let begins = sender.run_to_pass(3);
    assert_eq!(sender.pass(2), [3, 12], "the pass sends what was asked for before it began");
    let last = *sender.asked(2).last().expect("asked");
    assert_eq!(begins, last + REQUEST + ms(800));
    sender.run_until(begins + ms(200));
    assert_eq!(sender.pass(3), [7, 9, 15], "nothing is sent again that was sent after the pass of its NAK");
}

#[test]
fn what_was_lost_again_is_sent_again() {
    let mut sender = Alone::new(to_all(20, 10));
    sender.run_until(at(ms(300)));
    sender.nak(0, 1, 0, &[3, 4]).expect("counts");
    sender.run_to_pass(2);
    // This answers the request of pass 2 for this block, which has just left.
    sender.run_until(sender.now + ms(30));
    sender.nak(0, 2, 0, &[4]).expect("counts");
    sender.run_to_pass(3);
    sender.run_until(sender.now + ms(30));
    assert_eq!((sender.pass(2), sender.pass(3)), (vec![3, 4], vec![4]));
}

/// Returns the wait from the last request's end to pass 2, with NAKs at these times after it.
fn wait(restart: bool, merged: bool, naks: &[Span]) -> Span {
    let mut sender = Alone::new(SenderConfig { nak_restarts_wait: restart, ..to_all(20, 20) });
    sender.run_until(at(ms(200)));
    let end = sender.asked(1)[0] + REQUEST;
    for &after in naks {
        sender.run_until(end + after);
        let said = if merged { sender.naks(3, 1, 0, &[7]) } else { sender.nak(0, 1, 0, &[7]) };
        said.expect("counts");
    }
    let begins = sender.run_to_pass(2);
    sender.run_until(begins + ms(100));
    assert_eq!(sender.pass(2), [7]);
    begins.since(end)
}

#[test]
fn a_nak_restarts_the_wait_where_that_is_set() {
    for merged in [false, true] {
        for restart in [false, true] {
            assert_eq!(wait(restart, merged, &[ms(500)]), ms(if restart { 1300 } else { 800 }));
            // The second requests nothing new, but its receiver has been heard.
            let twice = [ms(500), ms(700)];
            assert_eq!(wait(restart, merged, &twice), ms(if restart { 1500 } else { 800 }));
        }
    }
}

#[test]
fn a_nak_during_a_pass_does_not_move_the_wait() {
    let mut sender = Alone::new(SenderConfig { nak_restarts_wait: true, ..to_all(20, 10) });
    sender.run_until(at(ms(150)));
    // Block 0 has been asked about, and block 1 is being sent.
    sender.nak(0, 1, 0, &[3]).expect("counts");
    let begins = sender.run_to_pass(2);
    assert_eq!(begins, *sender.asked(1).last().expect("asked") + REQUEST + ms(800));
}

fn paced(size: u64, granule: u16) -> SenderConfig {
    let rate = BitRate::from_bps(1_000_000).expect("positive");
    let pace = Pace::Rate { rate, overhead: 28, credit: Span::ZERO, granule };
    SenderConfig { pace, product: product(size), ..to_all(20, 20) }
}

/// Returns the times at which each DTU and then the request left, after the first DTU.
fn departures(config: SenderConfig) -> Vec<Span> {
    let mut sender = Alone::new(config);
    sender.run_until(at(ms(500)));
    let mut times: Vec<Time> = sender.data().iter().map(|(at, _)| *at).collect();
    times.push(sender.asked(1)[0]);
    times.iter().map(|at| at.since(times[0])).collect()
}

#[test]
fn a_pace_counts_whole_granules() {
    // Three DTUs of 1000 B and one of 100 B: 1068 and 168 octets.
    for (granule, full, short) in [
        (1, DTU, Span::from_micros(1344)),
        // 3 FEC blocks of 375 octets, and 1.
        (375, Span::from_millis(9), Span::from_millis(3)),
        // 23 cells of 48 octets are 1104; 4 are 192.
        (48, Span::from_micros(8832), Span::from_micros(1536)),
        (1068, DTU, DTU),
        (65_535, Span::from_micros(524_280), Span::from_micros(524_280)),
    ] {
        if granule == 65_535 {
            let mut sender = Alone::new(paced(3100, granule));
            sender.run_until(at(Span::from_secs(5)));
            let times: Vec<Time> = sender.data().iter().map(|(at, _)| *at).collect();
            assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) == full), "{times:?}");
            assert_eq!(times.len(), 4);
        } else {
            let expected = [Span::ZERO, full, full * 2, full * 3, full * 3 + short];
            assert_eq!(departures(paced(3100, granule)), expected, "granule {granule}");
        }
    }
}

#[test]
fn a_granule_of_nothing_is_refused() {
    let error = Sender::new(paced(3100, 0)).expect_err("refused");
    assert_eq!(error, ConfigError::Zero("the granule of the rate"));
    assert!(error.to_string().contains("the granule of the rate"), "{error}");
}

#[test]
fn the_laws_hold_with_granules_and_restarts() {
    let build = |setup| {
        let mut config = SenderConfig { pass_wait: PassWait::FixedTimer, ..sender(60, 7, 4) };
        let rate = BitRate::from_bps(1_000_000).expect("positive");
        config.pace = Pace::Rate { rate, overhead: 28, credit: ms(5), granule: 375 };
        config.nak_restarts_wait = true;
        config.product = Product { size: 59_123, ..config.product };
        Session::new("granules", setup, config, 4, Link::lossy(ms(120), 0.1)).net
    };
    laws::repeats(0..1, build);
    laws::ignores_cuts(0..6, build);
    laws::ignores_early_wakes(0..6, build);
    for seed in 0..6 {
        let config =
            SenderConfig { pass_wait: PassWait::FixedTimer, nak_restarts_wait: true, ..sender(60, 7, 4) };
        let mut session = Session::new("restarts", Setup::plain(seed), config, 4, Link::clean(ms(120)));
        lose_data(&mut session.net, seed, 0.2);
        session.run().assert_complete();
    }
}
