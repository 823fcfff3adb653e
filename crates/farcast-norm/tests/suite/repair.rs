//! What is asked for, and what is sent for it.

use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};
use farcast_norm::message::{Answer, Flags, Form, Level};
use farcast_norm::{Body, Message, SenderConfig};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, data, is_nack, ms, sender, sent};

/// Loses segments of block 1 the first time, each receiver others: `lost(receiver's host number, symbol)`.
fn lossy(
    name: &str,
    config: SenderConfig,
    receivers: u32,
    lost: impl Fn(usize, u32) -> bool + 'static,
) -> Session {
    let mut session = Session::new(name, Setup::plain(4), config, receivers, Link::clean(ms(100)));
    session.net.drop_if(move |leg| {
        leg.message.data().is_some_and(|data| {
            data.block == 1 && !data.flags.has(Flags::REPAIR) && lost(leg.to, data.symbols.first())
        })
    });
    session.run()
}

/// The repairs of a log: block, first symbol, flags.
fn repairs(session: &mut Session) -> (Vec<(u32, u32, bool)>, usize) {
    let log = session.net.take_log();
    let repairs = data(&log)
        .into_iter()
        .filter(|(_, data)| data.flags.has(Flags::REPAIR))
        .map(|(_, data)| (data.block, data.symbols.first(), data.flags.has(Flags::EXPLICIT)))
        .collect();
    (repairs, log.departures.iter().filter(|departure| is_nack(&departure.message)).count())
}

#[test]
fn different_losses_of_many_are_repaired_by_as_much_parity_as_the_worst_needs() {
    // Five receivers lose two segments each, no two of them the same.
    let mut session = lossy("parity", sender(40, 5), 5, |to, symbol| symbol as usize / 2 == to - 1);
    session.assert_received();
    let (repairs, nacks) = repairs(&mut session);
    assert_eq!(repairs, [(1, 10, false), (1, 11, false)]);
    // Requests for the first two parity symbols cover each other.
    assert!((1..=3).contains(&nacks), "{nacks} requests");
}

#[test]
fn where_parity_is_not_enough_the_last_missing_segments_come_too() {
    // Seven of ten are lost, and there are four parity symbols: the highest three segments come again.
    let mut session = lossy("explicit", sender(40, 1), 1, |_, symbol| symbol < 7);
    session.assert_received();
    let (repairs, nacks) = repairs(&mut session);
    let expected: Vec<_> = [4, 5, 6, 10, 11, 12, 13].map(|symbol| (1, symbol, true)).to_vec();
    assert_eq!((repairs, nacks), (expected, 1));
}

#[test]
fn a_block_that_is_lost_whole_is_asked_for_as_one() {
    let mut session = lossy("block", sender(40, 1), 1, |_, _| true);
    session.assert_received();
    let log = session.net.take_log();
    let requests = sent(&log, 1, |message: &Message| match &message.body {
        Body::Receiver(said) => match &said.answer {
            Answer::Nack(requests) => Some(requests.clone()),
            _ => None,
        },
        Body::Sender(..) => None,
    });
    assert_eq!(requests.len(), 1);
    let request = &requests[0].1[0];
    assert_eq!((request.form, request.level, request.points.len()), (Form::Items, Level::BLOCK, 1));
    assert_eq!(request.points[0].symbol.block, 1);
}

#[test]
fn parity_that_went_to_others_is_not_asked_for_again() {
    // The first request's parity reaches the second receiver, too: what it needs beyond that is one more.
    let mut session = lossy("fresh", sender(200, 2), 2, |to, symbol| symbol < if to == 1 { 1 } else { 2 });
    session.assert_received();
    let (repairs, _) = repairs(&mut session);
    let symbols: Vec<u32> = repairs.iter().map(|&(_, symbol, _)| symbol).collect();
    assert_eq!(symbols, [10, 11], "no symbol twice, none too many");
}

#[test]
fn a_request_waits_its_back_off_and_repair_its_aggregation() {
    let config = SenderConfig { grtt: ms(300), ..sender(200, 1) };
    let mut session = lossy("timers", config, 1, |_, symbol| symbol == 0);
    let log = session.net.take_log();
    let first = |from: usize, pick: &dyn Fn(&Message) -> bool| {
        sent(&log, from, |message| pick(message).then_some(()))[0].0
    };
    let passed = first(0, &|m| m.data().is_some_and(|data| data.block == 2)) + ms(100);
    let asked = first(1, &is_nack);
    let repaired = first(0, &|m| m.data().is_some_and(|data| data.flags.has(Flags::REPAIR)));
    let grtt = farcast_norm::quantise::Rtt::of(ms(300)).span();
    assert!(asked >= passed && asked <= passed + grtt * 4 + ms(1), "{passed:?} {asked:?}");
    let wait = repaired.since(asked + ms(100));
    assert!(wait >= grtt * 5 && wait <= grtt * 5 + ms(20), "{wait:?} of {:?}", grtt * 5);
}

#[test]
fn the_round_trip_is_measured() {
    for (delay, expected) in [(ms(20), 40), (ms(700), 1400)] {
        let config = SenderConfig { grtt: ms(500), ..sender(3000, 3) };
        let mut session = Session::new("grtt", Setup::plain(1), config, 3, Link::lossy(delay, 0.02));
        // Long enough to be believed; the laws look at the end.
        session.net.run_until(Time::ZERO + Span::from_secs(24));
        let grtt = session.net.engine(session.sender).grtt();
        let exact = ms(expected);
        assert!(grtt + ms(1) >= exact.min(ms(500)), "{grtt} of {exact}");
        if exact > ms(500) {
            assert!(grtt <= exact + ms(2), "{grtt} of {exact}");
        } else {
            assert!(grtt < ms(500), "{grtt} falls by and by");
        }
    }
}

#[test]
fn heavy_losses_are_repaired() {
    for seed in 0..30 {
        let mut session =
            Session::new("heavy", Setup::plain(seed), sender(150, 5), 5, Link::lossy(ms(50), 0.05));
        let mut random = RandomStream::derive(seed, &[7]);
        session.net.drop_if(move |leg| leg.message.data().is_some() && random.chance(0.4));
        session.run().assert_received();
    }
}

#[test]
fn asked_by_many_few_ask() {
    // Sixty receivers lose the same segment.
    let mut session = lossy("suppression", sender(40, 0), 60, |_, symbol| symbol == 5);
    session.assert_received();
    let (repairs, nacks) = repairs(&mut session);
    assert_eq!(repairs, [(1, 10, false)]);
    assert!(nacks < 25, "{nacks} of 60 asked");
}
