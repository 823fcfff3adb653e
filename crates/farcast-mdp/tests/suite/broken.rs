//! Faults that deliberately broken engines could hide.

use farcast_core::engine::{Engine as _, Reject};
use farcast_core::{Run, Span, Time};
use farcast_delivery::Vouched;
use farcast_mdp::message::{Answer, Data, Flags, FromReceiver, FromSender, Info, Mask, ObjectNack, Request};
use farcast_mdp::{
    Body, ConfigError, Message, NodeId, Object, ReceiverConfig, ReceiverEvent, Sender, SenderConfig,
    SenderEvent,
};

use crate::common::{node, object, receiver, sender};
use crate::rules::{Alone, about, from_receiver, lacks, nack, next, says, symbols, through};

fn acknowledges(node: NodeId, object: u32) -> Message {
    let answer = Answer::Object(object);
    let said = FromReceiver { server: NodeId(1), response: None, loss: 0, probe: 0, answer };
    Message { source: node, body: Body::Receiver(said) }
}

fn parts(said: &[(Time, FromSender)]) -> Vec<&Data> {
    let data =
        said.iter().filter_map(|(_, said)| if let FromSender::Data(data) = said { Some(data) } else { None });
    data.collect()
}

fn misses(offset: u32, erasures: u8, symbols: Run) -> ObjectNack {
    let mut mask = Mask::new(14);
    mask.insert(symbols);
    ObjectNack { object: 0, requests: vec![Request::Segments { erasures, offset, mask }] }
}

/// Draft §4.4: while repairs are sent, only requests behind the current position are new.
#[test]
fn a_late_request_for_what_was_passed_does_not_turn_repairs_back() {
    let (mut one, now) = through(sender(40, 0));
    let both = vec![misses(0, 1, Run::one(0)), misses(20_000, 4, Run::new(0, 4).unwrap())];
    one.handle(now, &from_receiver(), &nack(2, both)).unwrap();
    let mut now = now;
    // Until the first of the second block's repairs has left.
    loop {
        let sent: Vec<_> = core::iter::from_fn(|| one.poll_transmit(now, now)).collect();
        if sent.iter().filter_map(|sent| sent.message.data()).any(|data| data.block == 2) {
            break;
        }
        now = one.poll_timeout().unwrap().at;
        one.handle_timeout(now);
    }
    one.handle(now, &from_receiver(), &nack(3, vec![misses(0, 2, Run::new(0, 2).unwrap())])).unwrap();
    let said = next(&mut one, now, 1);
    assert!(parts(&said).iter().all(|data| data.block == 2), "{said:?}");
}

/// The receiver that lacks most counts, whichever asks last; and INFO is sent again once in two round trips.
#[test]
fn who_lacks_most_counts_and_info_is_not_said_for_each() {
    let (mut one, now) = through(sender(20, 0));
    one.handle(now, &from_receiver(), &nack(2, vec![misses(0, 3, Run::new(0, 3).unwrap())])).unwrap();
    one.handle(now, &from_receiver(), &nack(3, vec![misses(0, 1, Run::one(5))])).unwrap();
    let said = next(&mut one, now, 2);
    assert_eq!(parts(&said).iter().map(|data| data.symbols.count()).sum::<u32>(), 3);
    let (mut one, now) = through(sender(20, 0));
    for node in 2..50 {
        let info = ObjectNack { object: 0, requests: vec![Request::Info] };
        one.handle(now, &from_receiver(), &nack(node, vec![info])).unwrap();
    }
    let infos = next(&mut one, now, 0);
    assert_eq!(infos.iter().filter(|(_, said)| matches!(said, FromSender::Info(_))).count(), 1, "{infos:?}");
}

#[test]
fn acknowledgements_of_strangers_and_repetitions_are_turned_down() {
    let config = SenderConfig { objects: vec![object(5), object(5)], ..sender(5, 1) };
    let (mut one, now) = through(config);
    assert_eq!(one.handle(now, &from_receiver(), &acknowledges(NodeId(99), 0)), Err(Reject::Stranger));
    assert_eq!(one.handle(now, &from_receiver(), &acknowledges(node(0), 2)), Err(Reject::OutOfRange));
    one.handle(now, &from_receiver(), &acknowledges(node(0), 0)).unwrap();
    assert_eq!(one.handle(now, &from_receiver(), &acknowledges(node(0), 0)), Err(Reject::Duplicate));
    let told: Vec<_> = core::iter::from_fn(|| one.poll_event()).collect();
    assert!(!told.contains(&SenderEvent::Acknowledged(node(0))), "it has one of two: {told:?}");
}

/// Draft §4.1: without named receivers the sender flushes 20 times, every two round trips.
#[test]
fn the_end_is_said_as_often_as_is_set() {
    for robust in [1, 3, 20] {
        let (mut one, now) = through(SenderConfig { robust, ..sender(20, 0) });
        let said = next(&mut one, now, 60);
        let flushes = said.iter().filter(|(_, said)| matches!(said, FromSender::Flush { eot: false, .. }));
        assert_eq!(flushes.count() as u32, robust - 1, "and the one before these");
    }
}

#[test]
fn what_unicast_requests_ask_for_is_told_once_in_a_round_trip() {
    let (mut one, now) = through(SenderConfig { unicast: true, ..sender(40, 0) });
    for node in 2..50 {
        one.handle(now, &from_receiver(), &nack(node, vec![lacks(0, node % 10)])).unwrap();
    }
    let told = next(&mut one, now, 0);
    assert_eq!(told.iter().filter(|(_, said)| matches!(said, FromSender::NackAdv(_))).count(), 1, "{told:?}");
}

/// No acknowledgement leaves while the owner still verifies, nor ever of an object that was given up.
#[test]
fn nothing_is_acknowledged_before_it_is_verified_or_after_it_was_given_up() {
    let whole = |one: &mut Alone, object: u32| {
        let about = about(object, Flags::FILE);
        for block in 0..3 {
            one.hears(Time::ZERO, &symbols(about, block, Run::new(0, 10).unwrap(), false)).unwrap();
        }
    };
    let answers = |one: &mut Alone, object: u32| {
        let asked = says(FromSender::AckReq { object, nodes: vec![node(0)] });
        let _ = one.hears(Time::ZERO, &asked);
        let end = Time::ZERO + Span::from_secs(5);
        let mut said = 0;
        while let Some(deadline) = one.0.poll_timeout().filter(|deadline| deadline.at <= end) {
            one.0.handle_timeout(deadline.at);
            let sent = core::iter::from_fn(|| one.0.poll_transmit(deadline.at, deadline.at));
            said += sent
                .filter(|sent| {
                    matches!(&sent.message.body, Body::Receiver(said) if matches!(said.answer, Answer::Object(_)))
                })
                .count();
        }
        said
    };
    let mut one = Alone::new();
    whole(&mut one, 0);
    let Some(&ReceiverEvent::Complete(id)) = one.1.last() else { panic!("{:?}", one.1) };
    assert_eq!(answers(&mut one, 0), 0, "it is not verified yet");
    one.0.verified(Time::ZERO, id);
    assert_eq!(answers(&mut one, 0), 1);
    let mut one = Alone::new();
    one.opens(about(0, Flags::FILE));
    one.hears(Time::ZERO, &says(FromSender::Squelch { sync: 1, invalid: Vec::new() })).unwrap();
    assert!(matches!(one.1.last(), Some(ReceiverEvent::Ended(..))), "{:?}", one.1);
    assert_eq!(answers(&mut one, 0), 0, "it was given up");
}

/// Another's request counts only as far as it helps here: segments that are stored already do not count.
#[test]
fn what_would_not_help_suppresses_nothing() {
    let about = about(0, Flags::FILE.with(Flags::INFO));
    for (other, asks) in [(Run::new(0, 2).unwrap(), true), (Run::new(8, 2).unwrap(), false)] {
        let mut one = Alone::new();
        one.opens(about);
        one.hears(Time::ZERO, &symbols(about, 0, Run::new(0, 8).unwrap(), false)).unwrap();
        one.hears(Time::ZERO, &symbols(about, 1, Run::one(0), false)).unwrap();
        let answer = Answer::Nack(vec![misses(0, 2, other)]);
        let said = FromReceiver { server: NodeId(1), response: None, loss: 0, probe: 0, answer };
        one.hears(Time::ZERO, &Message { source: NodeId(77), body: Body::Receiver(said) }).unwrap();
        let deadline = one.0.poll_timeout().unwrap();
        assert_eq!(deadline.timer, "back-off");
        one.0.handle_timeout(deadline.at);
        assert_eq!(one.0.poll_transmit(deadline.at, deadline.at).is_some(), asks, "{other:?}");
    }
}

#[test]
fn parity_takes_no_more_memory_than_is_given() {
    let config = ReceiverConfig { parity_memory: 20_000, ..receiver(0) };
    let mut one = Alone(farcast_mdp::Receiver::new(config).unwrap(), Vec::new());
    let about = about(0, Flags::FILE);
    one.hears(Time::ZERO, &symbols(about, 0, Run::one(0), false)).unwrap();
    let parity = |block| symbols(about, block, Run::one(10), true);
    one.hears(Time::ZERO, &parity(0)).unwrap();
    assert_eq!(one.hears(Time::ZERO, &parity(1)), Err(Reject::Limit), "11 symbols of 1,000 octets each");
}

/// Numbers begin anew with each start of a sender, so they do not identify an object without a digest.
#[test]
fn what_nothing_vouches_for_has_no_number_to_be_known_again_by() {
    let serial = |message: &Message| {
        let mut one = Alone::new();
        one.hears(Time::ZERO, message).unwrap();
        let Some(ReceiverEvent::Offered(offer)) = one.1.first() else { panic!("{:?}", one.1) };
        offer.serial
    };
    let vouched = Vouched { digest: [1; 32], mode: 0, mtime_ns: 0 };
    let info = |vouched| {
        let about = about(3, Flags::FILE.with(Flags::INFO));
        says(FromSender::Info(Info { about, segment_size: 1000, content: b"name".to_vec(), vouched }))
    };
    assert_eq!(serial(&info(Some(vouched))), Some(1 << 32 | 3));
    assert_eq!(serial(&info(None)), None);
    assert_eq!(serial(&symbols(about(3, Flags::FILE), 0, Run::one(0), false)), None, "it has no INFO");
    let late = symbols(about(3, Flags::FILE.with(Flags::INFO)), 0, Run::one(0), false);
    assert_eq!(serial(&late), Some(1 << 32 | 3), "INFO may yet vouch");
}

/// All parity symbols of an object are numbered, and a bit of memory is kept for each.
#[test]
fn an_object_has_no_more_parity_than_can_be_numbered() {
    let config = |size, block_len, parity| {
        let objects = vec![Object { size, info: Vec::new(), vouched: None }];
        let one =
            SenderConfig { objects, segment_size: 64, block_len, parity, auto_parity: 0, ..sender(1, 0) };
        Sender::new(one).map(drop)
    };
    let most = (1u64 << 30) / 254 * 64;
    assert_eq!(config(most, 1, 254), Ok(()));
    for size in [most + 64, 1_200_000_000, u64::from(u32::MAX)] {
        let refused = ConfigError::Symbols { size, octets: 64, parity: 254 };
        assert_eq!(config(size, 1, 254), Err(refused));
        assert!(
            refused.to_string().contains(&size.to_string()) && refused.to_string().contains("larger blocks")
        );
        assert_eq!(config(size, 20, 20), Ok(()));
    }
}

#[test]
fn a_name_has_to_fit_with_what_is_vouched_for() {
    let vouched = Some(Vouched { digest: [1; 32], mode: 0, mtime_ns: 0 });
    let config = |len| {
        let named = Object { size: 1, info: vec![b'x'; len], vouched };
        Sender::new(SenderConfig { objects: vec![named], ..sender(1, 0) }).map(drop)
    };
    assert_eq!(config(1000 - 47), Ok(()));
    assert_eq!(config(1000 - 46), Err(ConfigError::Info(1001)));
}
