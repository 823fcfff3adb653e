//! Parity of transmission groups (RFC 3208 §11): its transmission, the requests for it, and the packets that suffice.

use farcast_core::{Arrival, Bitmap, Engine as _, Span, Time};
use farcast_delivery::SenderEngine as _;
use farcast_pgm::message::{Data, DataKind, Nak, NakKind, Opt};
use farcast_pgm::{
    Body, ConfigError, Grouping, Message, Receiver, ReceiverEvent, Sender, SenderConfig, SenderOutcome, Sqn,
};
use farcast_testkit::{Link, Setup};
use proptest::prelude::*;

use crate::common::{
    Session, TSI, data, files, group, messages, ms, naks, receiver, receiver_address, sent, source, spms,
};

const fn by(size: u32, ahead: u32, on_demand: bool) -> Grouping {
    Grouping { size, ahead, on_demand }
}

fn with(parity: Grouping, segments: &[u32], named: u32) -> SenderConfig {
    SenderConfig { parity: Some(parity), ..files(segments, named) }
}

/// Returns the index of a parity packet in its group's parity, for groups of `size`.
fn index(data: &Data, size: u32) -> Option<u32> {
    data.parity.map(|parity| parity.group * size + data.sqn.0 % size)
}

/// Runs a session in which the first transmissions of these data packets are lost.
fn losing(name: &str, config: SenderConfig, lost: &'static [u32]) -> Session {
    let mut session = Session::new(name, Setup::plain(1), config, 1, Link::clean(ms(10)));
    session.net.drop_if(move |leg| {
        let data = leg.message.data();
        data.is_some_and(|data| {
            data.kind == DataKind::Original && data.parity.is_none() && lost.contains(&data.sqn.0)
        })
    });
    session.run()
}

#[test]
fn groups_begin_at_multiples_and_those_that_end_early_say_so() {
    let config = with(by(4, 1, false), &[6, 0, 3], 1);
    let mut session = Session::new("groups", Setup::plain(1), config, 1, Link::clean(ms(10))).run();
    let log = session.net.take_log();
    let all = data(&log, DataKind::Original);
    let said = |data: &Data| (data.sqn.0, data.count.get(), data.options.group_size, index(data, 4));
    let mut numbers: Vec<(u32, Option<u32>, Option<u32>)> = Vec::new();
    for (_, data) in &all {
        let (sqn, count, size, index) = said(data);
        numbers.extend((sqn..sqn + count).map(|sqn| (sqn, size, index)));
    }
    // A descriptor is a group of one without parity, since it is asked for by number.
    let file = |first: u32| (first, Some(1), None);
    let want = [
        file(0),
        (4, None, None),
        (5, None, None),
        (6, None, None),
        (7, None, None),
        (4, None, Some(0)),
        (8, None, None),
        (9, Some(2), None),
        (8, Some(2), Some(0)),
        file(12),
        file(16),
        (20, None, None),
        (21, None, None),
        (22, Some(3), None),
        (20, Some(3), Some(0)),
    ];
    assert_eq!(numbers, want);
    let last = spms(&log).pop().expect("SPMs").1;
    assert_eq!(last.lead, Sqn(22));
    assert!(last.options.contains(&Opt::GroupSize(3)), "{:?}", last.options);
    let prm = Opt::ParityPrm { on_demand: false, proactive: true, size: 4, octet: 0 };
    assert!(spms(&log).iter().all(|(_, spm)| spm.options.contains(&prm)));
    assert!(naks(&log, 1, NakKind::Nak).is_empty(), "unused numbers are not missing");
    assert_eq!((session.outcome(), session.clients[0].complete()), (Some(SenderOutcome::Acknowledged), 3));
}

#[test]
fn what_leaves_unasked_makes_up_for_as_many_without_a_request() {
    let mut session = losing("ahead", with(by(8, 2, true), &[16], 1), &[9, 12, 16]);
    let log = session.net.take_log();
    assert!(naks(&log, 1, NakKind::Nak).is_empty());
    assert_eq!((session.clients[0].stored_count(), session.clients[0].complete()), (13, 1));
}

#[test]
fn more_than_that_is_asked_for_by_its_count_and_no_more_comes() {
    // The first group loses five packets and gets one parity packet unasked. The short group behind it loses two.
    let mut session = losing("counts", with(by(8, 1, true), &[12], 1), &[8, 9, 11, 13, 15, 16, 18]);
    let log = session.net.take_log();
    let asked = naks(&log, 1, NakKind::Nak);
    let numbers: Vec<u32> = asked.iter().flat_map(|(_, nak)| nak.sqns()).map(|sqn| sqn.0).collect();
    // The full group asks for 4: 8 + 3. The short group asks for 1 and the four packets that it does not have: 16 + 4.
    assert_eq!(numbers, [11, 20]);
    assert!(asked.iter().all(|(_, nak)| nak.parity));
    let confirmed = naks(&log, 0, NakKind::Confirmation);
    assert!(confirmed.iter().all(|(_, ncf)| ncf.parity), "{confirmed:?}");
    let repairs = data(&log, DataKind::Repair);
    let indices: Vec<_> = repairs.iter().map(|(_, data)| (data.sqn.0 & !7, index(data, 8))).collect();
    // The repairs are fresh parity packets, not those that left unasked.
    assert_eq!(indices, [(8, Some(1)), (8, Some(2)), (8, Some(3)), (8, Some(4)), (16, Some(1))]);
    assert_eq!(session.clients[0].complete(), 1);
}

#[test]
fn where_none_can_be_asked_for_segments_are_and_no_more_than_lack() {
    let mut session = losing("selective", with(by(8, 1, false), &[8], 1), &[8, 10, 15]);
    let log = session.net.take_log();
    let asked: Vec<u32> = naks(&log, 1, NakKind::Nak)
        .iter()
        .flat_map(|(_, nak)| nak.sqns().map(|sqn| sqn.0).collect::<Vec<_>>())
        .collect();
    assert_eq!(asked, [8, 10], "one of three comes unasked");
    assert_eq!((data(&log, DataKind::Repair).len(), session.clients[0].complete()), (2, 1));
}

#[test]
fn where_nobody_understands_counts_segments_are_asked_for() {
    let mut session =
        Session::new("deaf", Setup::plain(3), with(by(8, 0, true), &[40], 1), 1, Link::lossy(ms(10), 0.2));
    // An element on the way that knows no counts drops such requests.
    session.net.drop_if(|leg| matches!(&leg.message.body, Body::Nak(nak) if nak.parity));
    let mut session = session.run();
    let log = session.net.take_log();
    let asked = naks(&log, 1, NakKind::Nak);
    assert!(asked.iter().filter(|(_, nak)| nak.parity).count() <= 5, "it gives that up");
    assert_eq!((session.outcome(), session.clients[0].complete()), (Some(SenderOutcome::Acknowledged), 1));
}

#[test]
fn others_need_not_ask_for_as_many_or_fewer() {
    // Twenty receivers that lose differently, and hear each other's confirmations at once.
    let config = SenderConfig { backoff: Some(ms(400)), ..with(by(16, 0, true), &[160], 20) };
    let mut session = Session::new("group", Setup::plain(5), config, 20, Link::lossy(ms(5), 0.1)).run();
    let log = session.net.take_log();
    let naks: usize = (1..=20).map(|n| naks(&log, n, NakKind::Nak).len()).sum();
    let repairs = data(&log, DataKind::Repair).iter().filter(|(_, data)| data.parity.is_some()).count();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    // Each of the 20 receivers lacks 16 of 160 segments, all different: 138 numbers are lost by any of them. Parity
    // serves all of them with what the worst receiver of a group lacks, about 5 of 16, and what is lost again of that.
    assert!(repairs < 100, "{repairs} for ten groups");
    assert!(naks < 20 * 10, "{naks} requests of 20 for ten groups");
}

/// Creates a source of one file of 20 segments in groups of 8, all of which are sent.
fn source_of(parity: Grouping) -> Sender {
    let mut engine = Sender::new(with(parity, &[20], 1)).expect("valid");
    engine.open(Time::ZERO);
    let mut now = Time::ZERO;
    for _ in 0..1000 {
        engine.handle_timeout(now);
        while engine.poll_transmit(now, now).is_some() {}
        now += ms(1);
    }
    engine
}

fn counted(sqns: &[u32]) -> Message {
    let (kind, parity, sqn) = (NakKind::Nak, true, Sqn(sqns[0]));
    let also = sqns[1..].iter().map(|&sqn| Sqn(sqn)).collect();
    let (source, group) = (source().ip(), group().ip());
    let nak = Nak { kind, parity, sqn, source, group, also, list_octet: 0, options: Vec::new() };
    Message { tsi: TSI, port: 7500, body: Body::Nak(nak) }
}

/// Returns the group and the index of the parity packets that leave in the second from `now` on.
fn answered(engine: &mut Sender, now: Time) -> Vec<(u32, u32)> {
    let mut parity = Vec::new();
    for n in 0..1000 {
        let now = now + ms(n);
        engine.handle_timeout(now);
        while let Some(said) = engine.poll_transmit(now, now) {
            if let Some(data) = said.message.data() {
                parity.extend(index(data, 8).map(|index| (data.sqn.0 & !7, index)));
            }
        }
    }
    parity
}

#[test]
fn a_source_answers_counts_once_and_raises_them() {
    let mut engine = source_of(by(8, 0, true));
    let (from, now) = (Arrival::new(receiver_address(0), source()), Time::ZERO + Span::from_secs(2));
    engine.handle(now, &from, &counted(&[8 + 2])).unwrap();
    engine.handle(now, &from, &counted(&[8 + 1])).unwrap();
    // Another receiver lacks two more.
    engine.handle(now, &from, &counted(&[8 + 4])).unwrap();
    assert_eq!(answered(&mut engine, now), [(8, 0), (8, 1), (8, 2), (8, 3), (8, 4)]);
    // The last group has four packets: four of those asked for do not exist.
    let now = now + Span::from_secs(2);
    engine.handle(now, &from, &counted(&[24 + 5])).unwrap();
    assert_eq!(answered(&mut engine, now), [(24, 0), (24, 1)]);
    let now = now + Span::from_secs(2);
    assert!(engine.handle(now, &from, &counted(&[24 + 3])).is_err(), "nothing of it is missing");
    assert!(engine.handle(now, &from, &counted(&[0])).is_err(), "a descriptor has no parity");
    assert!(engine.handle(now, &from, &counted(&[800])).is_err(), "it was not sent");
    assert!(answered(&mut engine, now).is_empty());
    let mut engine = source_of(by(8, 1, false));
    assert!(engine.handle(now, &from, &counted(&[8])).is_err(), "none can be asked for");
}

#[test]
fn whoever_asks_gets_no_more_than_so_much() {
    let mut engine = source_of(by(8, 0, true));
    let from = Arrival::new(receiver_address(0), source());
    let mut now = Time::ZERO + Span::from_secs(2);
    let (mut parity, mut refused) = (0, 0);
    for _ in 0..1000 {
        refused += u32::from(engine.handle(now, &from, &counted(&[15, 23])).is_err());
        parity += answered(&mut engine, now).len();
        now += Span::from_secs(1);
    }
    // 21 were sent: 64 times that and 1,024, and what the last request asks for.
    assert!((2368..=2368 + 16).contains(&parity), "{parity}");
    assert!(refused > 800, "{refused}");
}

#[test]
fn settings_that_cannot_be_are_refused() {
    for (parity, works) in [
        (by(8, 0, true), true),
        (by(64, 64, true), true),
        (by(0, 0, true), false),
        (by(1, 0, true), false),
        (by(12, 0, true), false),
        (by(128, 0, true), false),
        (by(8, 9, true), false),
        (by(8, 0, false), false),
    ] {
        assert_eq!(Sender::new(with(parity, &[20], 0)).is_ok(), works, "{parity:?}");
    }
    let odd = SenderConfig { first: Sqn(3), ..with(by(8, 0, true), &[20], 0) };
    assert!(matches!(Sender::new(odd), Err(ConfigError::Range(_))));
    let of_messages = SenderConfig { parity: Some(by(8, 0, true)), ..messages() };
    assert_eq!(Sender::new(of_messages).err(), Some(ConfigError::Parity("messages")));
    let cc =
        SenderConfig { cc: Some(farcast_pgm::cc::CcConfig::default()), ..with(by(8, 0, true), &[20], 0) };
    assert_eq!(Sender::new(cc).err(), Some(ConfigError::Parity("PGMCC")));
}

#[test]
fn what_spms_say_later_of_groups_changes_nothing() {
    let config = with(by(8, 1, true), &[30], 1);
    let mut session = Session::new("words", Setup::plain(1), config, 1, Link::clean(ms(10))).run();
    let said = sent(&session.net.take_log(), 0, |message| Some(message.clone()));
    for size in [0, 1, 3, 4, 64, 128, 1 << 31, u32::MAX] {
        let mut engine = Receiver::new(receiver(0)).expect("valid");
        let (mut stored, mut spms) = (0, 0);
        for (at, mut message) in said.clone() {
            if let Body::Spm(spm) = &mut message.body {
                spms += 1;
                let options = spm.options.iter_mut().filter(|_| spms > 1);
                for option in options {
                    if let Opt::ParityPrm { size: said, .. } = option {
                        *said = size;
                    }
                }
            }
            let _ = engine.handle(at, &Arrival::new(source(), group()), &message);
            while let Some(event) = engine.poll_event() {
                match event {
                    ReceiverEvent::Offered(offer) => engine.accept(at, offer.object, &Bitmap::new(0)),
                    ReceiverEvent::Store { segments, .. } => stored += segments.count(),
                    _ => {}
                }
            }
        }
        assert_eq!(stored, 30, "{size}");
    }
}

#[test]
fn numbers_go_round_within_a_session() {
    let config = SenderConfig { first: Sqn(0u32.wrapping_sub(16)), ..with(by(8, 1, true), &[40], 1) };
    let session = Session::new("round", Setup::plain(2), config, 1, Link::lossy(ms(10), 0.1)).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
}

#[test]
fn little_memory_only_means_other_requests() {
    let config = with(by(16, 2, true), &[200], 1);
    let mut session = Session::empty("memory", Setup::plain(4), config, Link::lossy(ms(10), 0.3));
    session.add(0, farcast_pgm::ReceiverConfig { parity_memory: 5000, ..receiver(0) });
    let session = session.run();
    assert_eq!((session.outcome(), session.clients[0].complete()), (Some(SenderOutcome::Acknowledged), 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// All data arrive, whichever packets are lost. Owners check that groups are rebuilt from as many packets as they
    /// need.
    #[test]
    fn everything_comes(
        exponent in 1u32..=6,
        ahead in 0u32..=3,
        on_demand: bool,
        segments in prop::collection::vec(0u32..70, 1..4),
        loss in 0.0..0.35,
        seed: u64,
    ) {
        let size = 1 << exponent;
        let (ahead, on_demand) = (ahead.min(size), on_demand || ahead == 0);
        let mut config = with(by(size, ahead, on_demand), &segments, 2);
        config.heads_twice = seed % 2 == 0;
        let session = Session::new("drawn", Setup::plain(seed), config, 2, Link::lossy(ms(20), loss)).run();
        prop_assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
        for client in &session.clients {
            prop_assert_eq!(client.complete(), segments.len());
        }
    }
}
