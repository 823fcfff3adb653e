//! Datagrams of a sender, and their order.

use std::collections::BTreeMap;

use farcast_core::random::RandomStream;
use farcast_core::{Arrival, BitRate, Engine as _, Message as _, Span, Time};
use farcast_delivery::{ObjectId, SenderEngine as _};
use farcast_oneway::{
    ConfigError, Duration, Kind, Message, Receiver, ReceiverConfig, Sender, SenderConfig, Shape,
};

use crate::common::{described, everything, group, ms, own, sender, server, symbols};

/// Returns the place of a symbol in the ring of its block.
fn place(shape: &Shape, kind: Kind, symbol: u32) -> u32 {
    match kind {
        Kind::Source => symbol,
        Kind::Parity => shape.geometry().block_size() + symbol,
    }
}

#[test]
fn nothing_is_repeated_until_the_code_is_used_up() {
    // 300 segments in 3 blocks, whose rings have 100 + 155 symbols.
    let config = SenderConfig { duration: Duration::Rounds(5), overhead_percent: 10, ..sender(300, 128) };
    let shape = config.shape;
    let ring = shape.geometry().block_size() + shape.parity();
    assert_eq!((shape.geometry().blocks(), shape.geometry().block_size(), ring), (3, 100, 255));
    let mut next = BTreeMap::new();
    let sent = symbols(&everything(config));
    assert_eq!(sent.len(), 5 * 110 * 3);
    for (_, one) in &sent {
        let expected = next.entry(one.block).or_insert(0);
        assert_eq!(place(&shape, one.kind, one.run.first()), *expected % ring, "block {}", one.block);
        *expected += 1;
    }
    assert!(next.values().all(|&sent| sent == 550));
}

#[test]
fn whatever_leaves_in_a_row_is_of_all_blocks_alike() {
    // Blocks of 125 and 124 segments.
    let config = SenderConfig { duration: Duration::Rounds(3), overhead_percent: 30, ..sender(1247, 128) };
    let blocks = config.shape.geometry().blocks() as usize;
    assert_eq!(blocks, 10);
    let sent = symbols(&everything(config));
    for row in [300, 640, 1000] {
        for window in sent.windows(row).step_by(7) {
            let mut of = vec![0i64; blocks];
            for (_, one) in window {
                of[one.block as usize] += 1;
            }
            let (least, most) = (of.iter().min().expect("blocks"), of.iter().max().expect("blocks"));
            // One more stripe, and one segment less of the short blocks.
            assert!(most - least <= 4 + 2, "{of:?} of {row}");
        }
    }
}

/// Receivers compute losses from the order of whole stripes of four symbols. Here a round has 1,111 symbols of a block.
#[test]
fn a_receiver_tells_the_losses_that_there_are() {
    for duration in [Duration::Rounds(2), Duration::For(Span::from_secs(130))] {
        let config = SenderConfig { duration, ..sender(70 * 1010, 1010) };
        let mut engine = Receiver::new(ReceiverConfig::default());
        let (mut chance, mut sent, mut lost) = (RandomStream::derive(1, &[]), 0u64, 0u64);
        for (now, message) in everything(config) {
            if let Message::Symbols(symbols) = &message {
                sent += 1;
                // One block can never be rebuilt, so that the receiver listens to the end.
                if symbols.block == 5 && symbols.run.first() % 4 != 0 || chance.unit() < 0.02 {
                    lost += 1;
                    continue;
                }
            }
            let _ = engine.handle(now, &Arrival::new(server(), group()), &message);
            while let Some(event) = engine.poll_event() {
                own(&mut engine, now, &event);
            }
        }
        let told = engine.received(ObjectId::FIRST);
        assert!(told.sent.abs_diff(sent) < 20, "{duration:?}: {told:?} of {sent}");
        assert!(told.lost.abs_diff(lost) < 20, "{duration:?}: {told:?}, and {lost} were lost");
    }
}

/// Rounds end with whole stripes, and what one sends more the next one sends less.
#[test]
fn rounds_are_as_long_as_they_should_be_in_all() {
    for (overhead_percent, rounds) in [(0, 1), (0, 5), (10, 1), (10, 7), (33, 20)] {
        let duration = Duration::Rounds(rounds);
        let config = SenderConfig { duration, overhead_percent, ..sender(3 * 1010, 1010) };
        let share = u64::from(config.round_symbols()) * 3;
        let mut engine = Sender::new(config.clone()).expect("valid");
        engine.open(Time::ZERO);
        while let Some(deadline) = engine.poll_timeout() {
            while engine.poll_transmit(deadline.at, deadline.at).is_some() {}
        }
        assert_eq!(engine.sent().len(), rounds as usize);
        for (round, _) in (1..).zip(engine.sent()) {
            let all: u64 = engine.sent()[..round].iter().sum();
            let more = all - share * round as u64;
            assert!(more <= 9 && more.is_multiple_of(3), "{overhead_percent} %, round {round}: {more}");
        }
        assert!(
            overhead_percent > 0 || rounds > 1 || engine.sent() == [share],
            "nothing is added to one round"
        );
    }
}

#[test]
fn a_block_without_a_last_segment_skips_it() {
    // 129 segments: blocks of 65 and 64.
    let sent = symbols(&everything(SenderConfig { overhead_percent: 0, ..sender(129, 128) }));
    assert_eq!(sent.len(), 129);
    assert!(sent.iter().all(|(_, one)| one.kind == Kind::Source));
    let last =
        sent.iter().find(|(_, one)| (one.block, one.run.first()) == (1, 63)).expect("the last segment");
    assert_eq!((last.1.len, last.1.last), (1000, 999), "the object's last segment is short");
}

#[test]
fn descriptions_come_often_and_take_little() {
    for (rate, least_apart) in [(64_000, 8.0), (1_000_000, 1.0), (1_000_000_000, 0.26)] {
        let mut config =
            SenderConfig { duration: Duration::For(Span::from_secs(20)), head: 40, ..sender(300, 128) };
        config.pace.rate = BitRate::from_bps(rate).expect("positive");
        if rate > 1_000_000 {
            config.duration = Duration::For(ms(1500));
        }
        let head = config.head;
        let all = everything(config);
        let octets = |of: &[(Time, Message)]| -> usize {
            of.iter().map(|(_, message)| message.wire_len(0) + 28).sum()
        };
        // Without the lead, in which only descriptions leave.
        let began = symbols(&all)[0].0;
        let all: Vec<_> = all.into_iter().filter(|(at, _)| *at >= began).collect();
        let told: Vec<_> = described(&all).into_iter().filter(|(_, one)| !one.over).collect();
        let again: usize = {
            // The head comes an additional time each time: more often than its share of the ring.
            let of_head = symbols(&all)
                .into_iter()
                .filter(|(_, one)| one.kind == Kind::Source && one.block == 0 && one.run.first() < head);
            of_head.count()
        };
        let length: usize = told.iter().map(|(_, one)| 64 + one.name.len() + 28).sum();
        let share = length as f64 / octets(&all) as f64;
        assert!(share < 0.0025, "{rate} bit/s: {share}");
        for pair in told.windows(2) {
            let apart = (pair[1].0 - Span::ZERO).since(pair[0].0).as_secs_f64();
            assert!(apart <= least_apart, "{rate} bit/s: {apart} s");
        }
        assert!(rate < 1_000_000_000 || again > 40, "the head comes again");
    }
}

#[test]
fn who_is_there_hears_what_comes_before_it_comes() {
    // A round of 12.5 MB at 10 Mbit/s takes 11 s, one of 300 kB 0.28 s, and one of a segment 2 ms.
    for (segments, lead) in [(12_500, 500.0), (300, 27.5), (1, 0.768)] {
        let sent = everything(sender(segments, 128));
        let began = symbols(&sent)[0].0;
        let before = described(&sent).into_iter().filter(|(at, _)| *at < began).count();
        assert_eq!(before, 10, "with a fifth of them lost, one in ten million hears none");
        let took = began.as_secs_f64() * 1e3;
        assert!(took > lead * 0.98 && took < lead * 1.02, "{segments} segments: {took} ms");
    }
}

#[test]
fn in_a_short_round_descriptions_come_more_often() {
    let sent = everything(sender(2000, 128));
    let (first, last) = (symbols(&sent)[0].0, symbols(&sent).last().expect("symbols").0);
    let told: Vec<_> = described(&sent).into_iter().filter(|(at, one)| *at >= first && !one.over).collect();
    for pair in told.windows(2) {
        assert!(pair[1].0.since(pair[0].0) <= last.since(first) / 19, "{pair:?}");
    }
    assert!(told.len() >= 18, "{}", told.len());
}

#[test]
fn it_says_when_it_ends() {
    let with = |duration| SenderConfig { duration, head: 40, ..sender(3000, 128) };
    let durations = [Duration::Rounds(1), Duration::Rounds(3), Duration::For(Span::from_secs(7))];
    for config in durations.map(with) {
        let sent = everything(config.clone());
        let last = symbols(&sent).last().expect("symbols").0;
        let told = described(&sent);
        for (at, one) in &told {
            if one.over {
                assert_eq!(one.left_ms, 0);
                continue;
            }
            let (told, true_) = (f64::from(one.left_ms) / 1e3, last.since(*at).as_secs_f64());
            // The announced time is never too early, and within 5 ms and half of a per cent.
            assert!(told >= true_ - 0.002, "{:?}: {told} of {true_}", config.duration);
            assert!(told <= true_ * 1.005 + 0.005, "{:?}: {told} of {true_}", config.duration);
        }
    }
    // A time of more than a month cannot be announced.
    let config = SenderConfig { duration: Duration::For(Span::from_secs(60 * 86_400)), ..sender(3, 3) };
    let mut sender = Sender::new(config).expect("valid");
    sender.open(Time::ZERO);
    let first = sender.poll_transmit(Time::ZERO, Time::ZERO).expect("a description");
    assert_eq!(described(&[(Time::ZERO, first.message)])[0].1.left_ms, u32::MAX);
}

#[test]
fn who_comes_late_hears_the_head_soon() {
    let mut config =
        SenderConfig { duration: Duration::For(Span::from_secs(3)), head: 3, ..sender(3000, 3000) };
    config.pace.rate = BitRate::from_bps(100_000_000).expect("positive");
    // The whole head comes within some tenths of a second from any time on, though the ring has it once in 0.5 s.
    let sent = symbols(&everything(config));
    let of_head = |segment: u32| {
        let times =
            sent.iter().filter(move |(_, one)| one.kind == Kind::Source && one.run.first() == segment);
        times.map(|(at, _)| *at).collect::<Vec<_>>()
    };
    for segment in 0..3 {
        for pair in of_head(segment).windows(2) {
            assert!(pair[1].since(pair[0]) <= ms(260), "segment {segment}: {pair:?}");
        }
    }
}

#[test]
fn it_ends_when_it_is_told_to() {
    let config = SenderConfig { duration: Duration::For(ms(800)), ..sender(300, 128) };
    let sent = everything(config);
    let (first, last) = (symbols(&sent)[0].0, symbols(&sent).last().expect("symbols").0);
    let end = first + ms(800);
    assert!(last < end && last + ms(2) > end, "{last:?}");
    let over: Vec<_> = described(&sent).into_iter().filter(|(_, one)| one.over).collect();
    assert_eq!(over.len(), 3, "it is said three times that nothing follows");
    assert!(over.iter().all(|(at, _)| *at >= end));
}

#[test]
fn the_owner_is_told_how_much_parity_it_takes() {
    let planned = |duration, overhead_percent| {
        let config = SenderConfig { duration, overhead_percent, ..sender(1000, 1000) };
        let sender = Sender::new(config.clone()).expect("valid");
        let planned = sender.parity_of_all(ObjectId::FIRST);
        let sent = symbols(&everything(config)).into_iter().filter(|(_, one)| one.kind == Kind::Parity);
        let used = sent.map(|(_, one)| one.run.end()).max().unwrap_or(0);
        (planned, used)
    };
    assert_eq!(planned(Duration::Rounds(1), 0), (0, 0));
    // The last stripe is whole.
    assert_eq!(planned(Duration::Rounds(1), 7), (72, 72));
    assert_eq!(planned(Duration::Rounds(2), 10), (1000, 1000));
    let (told, used) = planned(Duration::For(Span::from_secs(1)), 10);
    assert!(told >= used && told < used + 100, "{told} for {used}");
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let with = |change: fn(&mut SenderConfig)| {
        let mut config = sender(10, 10);
        change(&mut config);
        Sender::new(config).map(drop)
    };
    assert_eq!(with(|_| {}), Ok(()));
    assert_eq!(with(|config| config.duration = Duration::Rounds(0)), Err(ConfigError::Nothing));
    assert_eq!(with(|config| config.duration = Duration::For(Span::ZERO)), Err(ConfigError::Nothing));
    assert_eq!(with(|config| config.overhead_percent = 901), Err(ConfigError::Overhead(901)));
    assert_eq!(with(|config| config.name = vec![b'a'; 256]), Err(ConfigError::Name(256)));
}

#[test]
fn it_can_be_stopped() {
    let mut sender = Sender::new(sender(300, 128)).expect("valid");
    sender.open(Time::ZERO);
    sender.stop();
    let (mut now, mut said) = (Time::ZERO, Vec::new());
    while let Some(deadline) = sender.poll_timeout() {
        now = now.max(deadline.at);
        said.extend(sender.poll_transmit(now, now).map(|transmit| (now, transmit.message)));
    }
    assert_eq!(said.len(), 3);
    assert!(described(&said).iter().all(|(_, one)| one.over));
}
