//! Sending at the pace of acknowledgements, over paths of all kinds.

use std::collections::BTreeSet;

use farcast_core::engine::{Engine as _, Message as _};
use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Time};
use farcast_mftp::{Body, Pace, Sender, SenderEvent, SenderOutcome};
use farcast_testkit::{Link, Setup, Transmitter};

use crate::common::{OVERHEAD, Ownership, Session, at, data, ms, receiver, secs, sender};

/// Path: rate, one-way delay, queue in time, and loss by chance.
#[derive(Clone, Copy, Debug)]
struct PathLimits {
    bps: u64,
    delay: Span,
    queue: Span,
    loss: f64,
}

/// Satellite link of 20 Mbit/s with a queue of one round trip.
const SATELLITE: PathLimits = PathLimits { bps: 20_000_000, delay: ms(250), queue: ms(500), loss: 0.01 };
/// Bytes of a DTU with its headers, in these sessions.
const DATAGRAM: u64 = 1040;

impl PathLimits {
    fn link(self) -> Link {
        let rate = BitRate::from_bps(self.bps).expect("positive");
        let narrow = Transmitter { rate, overhead: OVERHEAD as u16, queue: self.queue, shared: false };
        Link { narrow: Some(narrow), ..Link::lossy(self.delay, self.loss) }
    }

    /// Creates a session of `dtus` in blocks of 198, with parity and a window of 15 blocks, to `receivers`.
    fn session(self, dtus: u32, receivers: u32, paced: bool, seed: u64) -> Session {
        let mut config = sender(dtus, 198, receivers);
        (config.pace, config.parity_symbols) = (Pace::Window { segments: 15 * 198, paced }, 57);
        config.silence = secs(120);
        Session::new("narrow", Setup::plain(seed), config, receivers as usize, self.link())
    }

    /// Runs a session. Returns the DTUs sent for each DTU of the product, and the duration relative to the time that
    /// the link takes for the product.
    fn send(self, dtus: u32, receivers: u32, paced: bool, seed: u64) -> (f64, f64) {
        let mut session = self.session(dtus, receivers, paced, seed);
        session.net.forget();
        let session = session.run();
        session.assert_complete();
        let sent: u64 = session.engine().stats().dtus_per_pass.iter().sum();
        let delivered = session.when(|event| matches!(event, SenderEvent::Delivered)).expect("delivered");
        let link = (u64::from(dtus) * DATAGRAM * 8) as f64 / self.bps as f64;
        (sent as f64 / f64::from(dtus), delivered.since(Time::ZERO).as_secs_f64() / link)
    }
}

#[test]
fn what_leaves_beside_it_counts_as_sent() {
    let mut engine = Sender::new(sender(100, 50, 1)).expect("valid");
    engine.open(Time::ZERO);
    let said = engine.poll_transmit(Time::ZERO, Time::ZERO).expect("an announcement").message.wire_len(0);
    engine.spend(3, 300);
    // Headers of fragments belong to no datagram.
    engine.spend(0, 20);
    let stats = engine.stats();
    assert_eq!((stats.datagrams, stats.bytes), (1 + 3, said as u64 + 320));
}

#[test]
fn little_more_than_the_product_leaves_on_a_narrow_way() {
    let ways = [
        (10_000, SATELLITE),
        (10_000, PathLimits { queue: ms(50), ..SATELLITE }),
        (10_000, PathLimits { loss: 0.0, ..SATELLITE }),
        (1000, PathLimits { bps: 2_000_000, ..SATELLITE }),
        (1000, PathLimits { bps: 2_000_000, queue: ms(100), ..SATELLITE }),
        (1000, PathLimits { bps: 200_000, delay: ms(300), queue: secs(1), ..SATELLITE }),
        (4000, PathLimits { bps: 2_000_000, delay: ms(2), ..SATELLITE }),
        (10_000, PathLimits { bps: 50_000_000, delay: ms(20), queue: ms(20), ..SATELLITE }),
        (30_000, PathLimits { bps: 1_000_000_000, delay: ms(30), queue: ms(30), ..SATELLITE }),
    ];
    for (dtus, way) in ways {
        for (receivers, seed) in [(1, 1), (8, 2), (8, 3)] {
            let (sent, took) = way.send(dtus, receivers, true, seed);
            assert!(sent <= 1.2, "{sent:.3} for each DTU to {receivers}: {way:?}");
            // Registration, the search, and the repair of losses take some round trips.
            let trips = 12.0 * 2.0 * way.delay.as_secs_f64();
            let link = (u64::from(dtus) * DATAGRAM * 8) as f64 / way.bps as f64;
            // On a short path the first loss is asked about only after a fraction of a second.
            let trips = trips + 1.0;
            assert!(took <= 1.3 + trips / link, "{took:.2} times what the link takes, {receivers}: {way:?}");
        }
    }
}

#[test]
fn a_windowful_at_once_floods_a_narrow_way() {
    // Without the estimate each DTU leaves one and a half times or more.
    let (sent, _) = SATELLITE.send(10_000, 4, false, 1);
    assert!(sent > 1.5, "{sent:.2}");
    let (sent, _) = PathLimits { bps: 2_000_000, ..SATELLITE }.send(1000, 4, false, 1);
    assert!(sent > 3.0, "{sent:.2}");
}

#[test]
fn a_short_way_that_overflows_is_found_out() {
    // Nothing shows the narrow link beforehand: the window opens until requests are lost one after the other.
    let way = PathLimits { bps: 1_000_000_000, delay: ms(5), queue: ms(5), loss: 0.0 };
    let ((sent, _), (flooded, _)) = (way.send(10_000, 2, true, 1), way.send(10_000, 2, false, 1));
    assert!(sent < 1.4 && flooded > 2.0, "{sent:.3}, and {flooded:.3} without");
}

#[test]
fn lost_answers_do_not_hide_what_is_lost() {
    let sessions = 20;
    let mut all = 0;
    for seed in 0..sessions {
        let mut session = PathLimits { queue: ms(50), loss: 0.0, ..SATELLITE }.session(10_000, 1, true, seed);
        let mut lost = RandomStream::derive(seed, &[7]);
        session.net.drop_if(move |leg| matches!(leg.message.body, Body::Nak(_)) && lost.chance(0.1));
        session.net.forget();
        let session = session.run();
        session.assert_complete();
        all += session.engine().stats().dtus_per_pass.iter().sum::<u64>();
    }
    // On average; a session that loses NAKs at critical times takes more.
    let mean = all / sessions;
    assert!(mean < 11_350, "{mean} DTUs for 10,000");
}

#[test]
fn losses_by_chance_are_not_taken_for_a_narrow_way() {
    // One receiver that repairs with what it needs: 1 / (1 - p) is the minimum, and a parity symbol is as good as a
    // DTU.
    for (loss, most) in [(0.05, 2.5), (0.2, 8.0)] {
        let way = PathLimits { bps: 100_000_000, delay: ms(30), queue: ms(60), loss };
        let (sent, took) = way.send(30_000, 1, true, 4);
        assert!(sent < 1.1 / (1.0 - loss), "{sent:.3} for each DTU at {loss}");
        assert!(took < most, "{took:.2} times what the link takes at {loss}");
    }
}

/// Returns the time at which every receiver had the product.
fn delivered(session: &Session) -> Time {
    session.when(|event| matches!(event, SenderEvent::Delivered)).expect("delivered")
}

#[test]
fn an_outage_is_not_taken_for_a_narrow_way() {
    // The outage begins while two blocks are in flight, or later; the data takes one second, or five.
    let lan = PathLimits { bps: 100_000_000, delay: ms(1), queue: ms(100), loss: 0.0 };
    let starts =
        [(10_000, lan, ms(4)), (10_000, lan, ms(12)), (10_000, lan, ms(300)), (10_000, SATELLITE, secs(3))];
    for (dtus, way, begins) in starts {
        for lasts in [secs(1), secs(10), secs(60)] {
            for cut in [(true, true), (true, false), (false, true)] {
                let mut session = way.session(dtus, 3, true, 1);
                let (sender, during) = (session.sender.index(), at(begins)..at(begins + lasts));
                if cut.0 {
                    session.net.outage(during.clone(), Some(sender), None);
                }
                if cut.1 {
                    session.net.outage(during, None, Some(sender));
                }
                session.net.forget();
                let session = session.run();
                session.assert_complete();
                let after = delivered(&session).since(at(begins + lasts)).as_secs_f64();
                let link = (u64::from(dtus) * DATAGRAM * 8) as f64 / way.bps as f64;
                let trips = 20.0 * 2.0 * way.delay.as_secs_f64();
                assert!(
                    after < 1.5 * link + trips + 5.0,
                    "{after:.1} s after {lasts} from {begins}, {cut:?}: {way:?}"
                );
            }
        }
    }
}

#[test]
fn what_was_never_sent_was_not_lost() {
    // All receivers hold two thirds of the product: the first pass sends the DTUs that they request.
    let lan = PathLimits { bps: 1_000_000_000, delay: ms(1), queue: ms(50), loss: 0.0 };
    for (way, dtus) in [(lan, 30_000), (SATELLITE, 30_000)] {
        let mut session = way.session(dtus, 0, true, 1);
        let lacks: Vec<u32> = (0..dtus).filter(|n| n % 3 == 0).collect();
        for n in 0..2 {
            session.add(n, receiver(n), Ownership { lacks: Some(lacks.clone()), ..Ownership::default() });
        }
        session.net.forget();
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        let sent: u64 = session.engine().stats().dtus_per_pass.iter().sum();
        assert!(sent < 12_000, "{sent} for 10,000");
        let took = delivered(&session).since(Time::ZERO).as_secs_f64();
        let link = (10_000 * DATAGRAM * 8) as f64 / way.bps as f64;
        assert!(took < 1.3 * link + 40.0 * way.delay.as_secs_f64() + 0.5, "{took:.2} s: {way:?}");
    }
}

#[test]
fn a_round_trip_that_nobody_measured_is_learned() {
    // All receivers come after so many announcements that none of them, or only a second one, measures a round trip.
    let lan = PathLimits { bps: 1_000_000_000, delay: ms(1), queue: ms(50), loss: 0.0 };
    for (way, dtus, limit) in [(lan, 10_000, 0.3), (SATELLITE, 10_000, 9.0)] {
        for comes in [ms(1500), ms(5500)] {
            let mut session = way.session(dtus, 2, true, 1);
            for client in session.clients.clone() {
                session.net.appear(at(comes), client.handle);
            }
            session.net.forget();
            let session = session.run();
            session.assert_complete();
            let began = session.when(|event| matches!(event, SenderEvent::Started { .. })).expect("began");
            let took = delivered(&session).since(began).as_secs_f64();
            assert!(took < limit, "{took:.2} s: {way:?}, from {comes}");
        }
    }
}

#[test]
fn nothing_is_paced_on_a_short_and_wide_way() {
    let short = |paced| {
        let way = PathLimits { bps: 10_000_000_000, delay: ms(1), queue: secs(1), loss: 0.02 };
        let mut session = way.session(6000, 2, paced, 5).run();
        session.assert_complete();
        let log = session.net.take_log();
        // DTUs leave at one instant as the window opens; a pace would let one DTU leave at a time.
        let instants: BTreeSet<Time> = data(&log, 0).iter().map(|(at, _)| *at).collect();
        let spaced = instants.len() > 100;
        (spaced, session.when(|event| matches!(event, SenderEvent::Delivered)).expect("delivered"))
    };
    let ((paced, later), (_, at_once)) = (short(true), short(false));
    assert!(!paced);
    // The window opens by a block for each one that arrives, which takes a few round trips.
    assert!(later.since(at_once) < ms(5 * 2), "{later:?} and {at_once:?}");
}

#[test]
fn the_first_dtus_tell_what_the_way_carries() {
    // 16 DTUs leave at once; the others follow a round trip later, at about the link's spacing.
    let mut session = PathLimits { loss: 0.0, ..SATELLITE }.session(1000, 1, true, 6).run();
    session.assert_complete();
    let log = session.net.take_log();
    let left: Vec<Time> = data(&log, 0).iter().map(|(at, _)| *at).collect();
    let train = left.iter().filter(|at| **at == left[0]).count();
    assert_eq!(train, 16);
    let waited = left[train].since(left[0]);
    assert!(waited > ms(500) && waited < ms(520), "{waited}");
    let needed = DATAGRAM as f64 * 8.0 / SATELLITE.bps as f64;
    let apart = left[train + 1].since(left[train]).as_secs_f64();
    assert!((0.7 * needed..1.3 * needed).contains(&apart), "{apart} s apart, {needed} needed");
}
