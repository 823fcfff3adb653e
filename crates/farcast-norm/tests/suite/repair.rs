//! Requests, and the repairs for them.

use farcast_core::engine::{Arrival, Engine as _};
use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};
use farcast_delivery::NakFate;
use farcast_delivery::SenderEngine as _;
use farcast_norm::message::{Answer, Flags, Form, FromReceiver, Level, Point, Request, Stamp, Symbol};
use farcast_norm::{Body, Fec, Message, NodeId, Sender, SenderConfig};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, data, group, is_nack, ms, receiver_address, sender, sent};

/// Loses segments of block 1 the first time, different ones at each receiver: `lost(host number of the receiver,
/// symbol)`.
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

/// Returns the repairs of a log (block, first symbol, flags) and the number of requests.
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
    session.assert_received(1);
    let (repairs, nacks) = repairs(&mut session);
    assert_eq!(repairs, [(1, 10, false), (1, 11, false)]);
    // Requests for the first two parity symbols cover each other.
    assert!((1..=3).contains(&nacks), "{nacks} requests");
}

#[test]
fn where_parity_is_not_enough_the_last_missing_segments_come_too() {
    // Seven of ten are lost, and there are four parity symbols: the highest three segments come again.
    let mut session = lossy("explicit", sender(40, 1), 1, |_, symbol| symbol < 7);
    session.assert_received(1);
    let (repairs, nacks) = repairs(&mut session);
    let expected: Vec<_> = [4, 5, 6, 10, 11, 12, 13].map(|symbol| (1, symbol, true)).to_vec();
    assert_eq!((repairs, nacks), (expected, 1));
}

#[test]
fn a_block_that_is_lost_whole_is_asked_for_as_one() {
    let mut session = lossy("block", sender(40, 1), 1, |_, _| true);
    session.assert_received(1);
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
    // The first request's parity reaches the second receiver, too, which needs one more symbol.
    let mut session = lossy("fresh", sender(200, 2), 2, |to, symbol| symbol < if to == 1 { 1 } else { 2 });
    session.assert_received(1);
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
        // Until then the samples count; the laws look at the end.
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
        session.run().assert_received(1);
    }
}

#[test]
fn asked_by_many_few_ask() {
    // Sixty receivers lose the same segment.
    let mut session = lossy("suppression", sender(40, 0), 60, |_, symbol| symbol == 5);
    session.assert_received(1);
    let (repairs, nacks) = repairs(&mut session);
    assert_eq!(repairs, [(1, 10, false)]);
    assert!(nacks < 25, "{nacks} of 60 asked");
}

/// Drives `engine` until `until`. Returns the repairs of block 1 that it sends.
fn drive(engine: &mut Sender, from: Time, until: Time) -> Vec<u32> {
    let (mut now, mut sent) = (from, Vec::new());
    loop {
        engine.handle_timeout(now);
        while let Some(transmit) = engine.poll_transmit(now, now + Span::from_nanos(1)) {
            let data =
                transmit.message.data().filter(|data| data.block == 1 && data.flags.has(Flags::REPAIR));
            sent.extend(data.into_iter().flat_map(|data| data.symbols.segments()));
        }
        match engine.poll_timeout() {
            Some(deadline) if deadline.at <= until => now = deadline.at.max(now),
            _ => return sent,
        }
    }
}

/// Returns a request of node `from`, which had heard everything that left until `heard`, for these symbols of block 1.
fn nack(from: u32, symbols: &[u16], heard: Option<Time>) -> Message {
    let point = |&symbol| Point {
        fec: Fec::ReedSolomon8,
        object: 0,
        symbol: Symbol { block: 1, block_len: None, symbol },
    };
    let points = symbols.iter().map(point).collect();
    let answer = Answer::Nack(vec![Request { form: Form::Items, level: Level::SEGMENT, points }]);
    let (sender, instance, response) = (NodeId(1), 1, heard.map(Stamp::of));
    let said = FromReceiver { sender, instance, response, feedback: None, answer };
    Message { source: NodeId(from), sequence: 0, body: Body::Receiver(said) }
}

#[test]
fn what_a_request_asks_for_is_read_against_what_had_been_heard() {
    let at = |n| Time::ZERO + ms(n);
    let mut engine = Sender::new(sender(40, 0)).expect("valid");
    engine.open(Time::ZERO);
    let mut now = at(1000);
    assert_eq!(drive(&mut engine, Time::ZERO, now), []);
    let ask = |engine: &mut Sender, now, nack: &Message| {
        engine.handle(now, &Arrival::new(receiver_address(0), group()), nack).expect("valid");
        engine.asked().map(|asked| asked.fate)
    };
    // One symbol leaves some time in these three seconds, after the requests have been gathered.
    assert_eq!(ask(&mut engine, now, &nack(5, &[10], None)), Some(NakFate::Used));
    let mut sent = Vec::new();
    while sent.is_empty() {
        sent = drive(&mut engine, now, now + ms(1));
        now += ms(1);
    }
    assert_eq!(sent, [10]);
    let left = now;
    now += ms(100);
    // A receiver that had not heard it, or sends no time, and lacks one symbol, has enough with it.
    assert_eq!(ask(&mut engine, now, &nack(6, &[10], Some(left - ms(20)))), Some(NakFate::Known));
    assert_eq!(ask(&mut engine, now, &nack(7, &[10], None)), Some(NakFate::Known));
    assert_eq!(drive(&mut engine, now, now + ms(10)), []);
    // A receiver that lacks two symbols needs one more, which is sent at once.
    assert_eq!(ask(&mut engine, now, &nack(8, &[10, 11], Some(left - ms(20)))), Some(NakFate::Used));
    assert_eq!(drive(&mut engine, now, now + ms(20)), [11]);
    // A receiver that had heard both and still lacks two gets two, although a round trip has not passed.
    now += ms(60);
    let late = nack(9, &[12, 13], Some(now - ms(20)));
    assert_eq!(ask(&mut engine, now, &late), Some(NakFate::Used));
    assert_eq!(ask(&mut engine, now, &late), Some(NakFate::Known), "they are on their way");
    assert_eq!(drive(&mut engine, now, now + ms(40)), [12, 13]);
    // No parity is left: requested symbols are repeated, except those that were repeated since.
    now += ms(60);
    assert_eq!(ask(&mut engine, now, &nack(9, &[3, 12], Some(now - ms(10)))), Some(NakFate::Used));
    assert_eq!(drive(&mut engine, now, now + ms(40)), [3, 12]);
    now += ms(50);
    assert_eq!(ask(&mut engine, now, &nack(5, &[3, 12], Some(now - ms(100)))), Some(NakFate::Known));
    assert_eq!(ask(&mut engine, now, &nack(5, &[3, 4, 12], Some(now - ms(100)))), Some(NakFate::Used));
    assert_eq!(drive(&mut engine, now, now + ms(40)), [4]);
    // An impossible time counts as none.
    now += ms(50);
    assert_eq!(ask(&mut engine, now, &nack(6, &[4], Some(now + ms(5000)))), Some(NakFate::Known));
}
