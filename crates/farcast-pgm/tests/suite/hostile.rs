//! Messages of attackers and broken peers.

use std::net::SocketAddr;

use farcast_core::random::RandomStream;
use farcast_core::{Arrival, Bitmap, Engine as _, Message as _, Span, Time};
use farcast_delivery::ReceiverEngine as _;
use farcast_delivery::SenderEngine as _;
use farcast_pgm::message::{Data, DataKind, DataOptions, Fragment, Nak, NakKind, Origin, Spm};
use farcast_pgm::{
    Body, Delivering, Grouping, Message, MessageEvent, Receiver, ReceiverEvent, Sender, SenderConfig, Sqn,
};
use farcast_testkit::{Link, Setup, hostile, laws};

use crate::common::{
    Local, Session, TSI, files, forge, group, hears_messages, messages, ms, receiver, receiver_address, say,
    source,
};

/// Returns a source of files, with parity for odd seeds.
fn of_groups(seed: u64) -> SenderConfig {
    let parity = Grouping { size: 8, ahead: 1, on_demand: true };
    SenderConfig { parity: (seed % 2 == 1).then_some(parity), ..files(&[40, 20], 3) }
}

/// Returns all messages of a session with losses, every other one forged.
fn conversation(seed: u64, of_files: bool) -> Vec<(Time, Arrival, Message)> {
    let mut session = if of_files {
        let link = Link::lossy(ms(50), 0.1);
        Session::new("words", Setup::plain(seed), of_groups(seed), 3, link)
    } else {
        let mut session = Session::empty("words", Setup::plain(seed), messages(), Link::lossy(ms(50), 0.1));
        (0..3).for_each(|n| drop(session.add(n, hears_messages(n, Delivering::Ordered))));
        say(&mut session, ms(100), ms(20), &[100, 3000, 700, 5000].repeat(10));
        session
    };
    session.net.run();
    let mut random = RandomStream::derive(seed, &[1]);
    let mut said = Vec::new();
    for departure in session.net.take_log().departures {
        let speaker: SocketAddr =
            if departure.from == 0 { source() } else { receiver_address(departure.from as u32 - 1) };
        let from = Arrival::new(speaker, group());
        let (message, _) = departure.message.split(core::num::NonZeroU32::MIN);
        if random.chance(0.5) {
            said.extend((0..3).filter_map(|_| forge(&message, &mut random)).map(|m| (departure.at, from, m)));
        }
        said.push((departure.at, from, message));
    }
    said
}

#[test]
fn what_is_turned_down_leaves_no_trace_at_a_source() {
    for seed in 0..10 {
        let mut engine = Sender::new(of_groups(seed)).unwrap();
        engine.open(Time::ZERO);
        while engine.poll_transmit(Time::ZERO, Time::ZERO).is_some() {}
        while engine.poll_event().is_some() {}
        let trace =
            |engine: &Sender| format!("{:?} {:?} {:?}", engine.phase(), engine.sent(), engine.progress());
        let context = format!("[seed {seed}]");
        let looked =
            laws::rejects_without_trace(&context, &mut engine, conversation(seed, true), trace, |_, _| false);
        assert!(looked > 50, "{looked}");
    }
}

#[test]
fn what_is_turned_down_leaves_no_trace_at_a_receiver() {
    for seed in 0..10 {
        for (of_files, config) in [(true, receiver(0)), (false, hears_messages(0, Delivering::Ordered))] {
            let mut engine = Receiver::new(config).unwrap();
            let trace = |engine: &Receiver| format!("{} {}", engine.is_busy(), engine.naks());
            let context = format!("[seed {seed}]");
            let words = conversation(seed, of_files);
            laws::rejects_without_trace(&context, &mut engine, words, trace, |_, _| false);
        }
    }
}

#[test]
fn engines_stay_small() {
    let session =
        |seed| Session::new("words", Setup::plain(seed), of_groups(seed), 3, Link::lossy(ms(50), 0.1));
    hostile::stay_small::<Local>(0..3, session, of_groups, || receiver(0));
}

#[test]
fn a_receiver_never_panics_and_says_no_more_than_three_times_what_it_hears() {
    for seed in 0..20 {
        let config = if seed % 2 == 0 { receiver(0) } else { hears_messages(0, Delivering::Unordered) };
        let mut engine = Receiver::new(config).unwrap();
        let (mut heard, mut said) = (0, 0);
        for (at, from, message) in conversation(seed, seed % 2 == 0) {
            heard += message.wire_len(0);
            let _ = engine.handle(at, &from, &message);
            while let Some(event) = engine.poll_event() {
                match event {
                    ReceiverEvent::Offered(offer) => engine.accept(at, offer.object, &Bitmap::new(0)),
                    ReceiverEvent::Complete(object) => engine.verified(at, object),
                    _ => {}
                }
            }
            engine.handle_timeout(at + Span::from_millis(seed));
            while let Some(transmit) = engine.poll_transmit(at, at) {
                said += transmit.message.wire_len(0);
            }
            assert!(said <= 3 * heard + 64, "{said} octets for {heard}");
        }
    }
}

fn spm(sqn: u32, trail: u32, lead: u32) -> Message {
    let (sqn, trail, lead) = (Sqn(sqn), Sqn(trail), Sqn(lead));
    let body = Body::Spm(Spm { sqn, trail, lead, path: source().ip(), options: vec![] });
    Message { tsi: TSI, port: 7500, body }
}

fn odata(sqn: u32) -> Message {
    let count = core::num::NonZeroU32::MIN;
    let body = Body::Data(Data {
        kind: DataKind::Original,
        sqn: Sqn(sqn),
        count,
        trail: Sqn(0),
        parity: None,
        options: DataOptions::default(),
        descriptor: None,
        len: 10,
        last_len: 10,
        origin: Origin::UNKNOWN,
    });
    Message { tsi: TSI, port: 7500, body }
}

#[test]
fn a_window_of_half_the_numbers_costs_neither_time_nor_memory() {
    for delivering in [Delivering::Files, Delivering::Ordered, Delivering::Unordered] {
        let mut engine = Receiver::new(hears_messages(0, delivering)).unwrap();
        let from = Arrival::new(source(), group());
        engine.handle(Time::ZERO, &from, &spm(0, 0, 0)).unwrap();
        engine.handle(Time::ZERO, &from, &spm(1, 0, 0x7FFF_FFF0)).unwrap();
        // Every other of many: no more gaps are kept than there may be.
        for n in 0..150_000u32 {
            let _ = engine.handle(Time::ZERO, &from, &odata(0x7FFF_FFF0 + 2 * n));
        }
        let mut said = 0;
        for at in (0..200).map(|n| Time::ZERO + ms(n * 100)) {
            engine.handle_timeout(at);
            while let Some(transmit) = engine.poll_transmit(at, at) {
                said += transmit.message.wire_len(0);
            }
        }
        assert!(said <= 3 * 150_002 * 36 + (64 << 10), "{said}");
    }
}

/// The source sends parts of messages that are never complete.
#[test]
fn messages_that_never_end_are_dropped_or_bounded() {
    for delivering in [Delivering::Ordered, Delivering::Unordered] {
        let mut config = hears_messages(0, delivering);
        (config.window, config.message_memory) = (1000, 1 << 20);
        let mut engine = Receiver::new(config).unwrap();
        let from = Arrival::new(source(), group());
        let (mut parts, mut over) = (0, 0);
        for n in 0..20_000u32 {
            let mut message = odata(n);
            if let Body::Data(data) = &mut message.body {
                data.options.fragment = Some(Fragment { first: Sqn(n), offset: 0, len: 1000, null: false });
            }
            let _ = engine.handle(Time::ZERO, &from, &message);
            while let Some(event) = engine.poll_event() {
                match event {
                    ReceiverEvent::Own(MessageEvent::Part { .. }) => parts += 1,
                    ReceiverEvent::Own(MessageEvent::Dropped(_)) => over += 1,
                    ReceiverEvent::Own(MessageEvent::Lost { .. }) => {}
                    other => panic!("{other:?}"),
                }
                assert!(parts - over <= 1048, "what its owner keeps");
            }
        }
        assert!(parts > 500, "{parts}");
    }
}

#[test]
fn a_forger_cannot_have_more_repaired_than_a_multiple_of_what_was_sent() {
    let mut config: SenderConfig = files(&[4], 1);
    config.holdoff = Span::ZERO;
    config.linger = Span::from_secs(100_000);
    let mut engine = Sender::new(config).unwrap();
    engine.open(Time::ZERO);
    let from = Arrival::new(receiver_address(0), source());
    let nak = Message {
        tsi: TSI,
        port: 7500,
        body: Body::Nak(Nak {
            kind: NakKind::Nak,
            parity: false,
            sqn: Sqn(0),
            source: source().ip(),
            group: group().ip(),
            also: (1..5).map(Sqn).collect(),
            list_octet: 0,
            options: vec![],
        }),
    };
    let mut sent = 0;
    for at in (0..20_000).map(|n| Time::ZERO + ms(50 * n)) {
        engine.handle_timeout(at);
        let _ = engine.handle(at, &from, &nak);
        while let Some(transmit) = engine.poll_transmit(at, at) {
            sent += transmit.message.data().map_or(0, |data| data.count.get());
        }
        while engine.poll_event().is_some() {}
    }
    assert!(sent <= 5 * 65 + 1024 + 5, "{sent}");
}
