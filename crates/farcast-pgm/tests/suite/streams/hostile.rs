//! Arbitrary datagrams: neither end panics, keeps more than it may, or delivers octets that nobody has sent.

use farcast_core::engine::Arrival;
use farcast_core::random::RandomStream;
use farcast_core::{Message as _, Time};
use farcast_delivery::{StreamEngine as _, StreamReceiverEngine as _, StreamSenderEngine as _, Taken};
use farcast_pgm::message::{Ack, Data, DataKind, DataOptions, Fragment, Has, Opt, Origin, Spm};
use farcast_pgm::stream::{StreamReceiver, StreamSender};
use farcast_pgm::{Body, Gsi, Message, NodeId, Sqn, Tsi, wire};

use super::world::{World, at, config, receiver, text};
use super::{LONG, message, number};
use crate::common::{TSI, forge, group, receiver_address, source};

fn encode(tsi: Tsi, body: Body, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    wire::encode(&Message { tsi, port: 7500, body }, 0, &mut datagram);
    datagram.extend_from_slice(payload);
    wire::finish(&mut datagram);
    datagram
}

fn spm(tsi: Tsi, sqn: u32, (trail, lead): (u32, u32), options: Vec<Opt>) -> Vec<u8> {
    let (sqn, trail, lead) = (Sqn(sqn), Sqn(trail), Sqn(lead));
    encode(tsi, Body::Spm(Spm { sqn, trail, lead, path: source().ip(), options }), &[])
}

fn data(tsi: Tsi, sqn: u32, fragment: Option<Fragment>, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16;
    let data = Data {
        kind: DataKind::Original,
        sqn: Sqn(sqn),
        count: std::num::NonZeroU32::MIN,
        trail: Sqn(0),
        parity: None,
        options: DataOptions { fragment, ..DataOptions::default() },
        descriptor: None,
        len,
        last_len: len,
        origin: Origin::UNKNOWN,
    };
    encode(tsi, Body::Data(data), payload)
}

fn arrival() -> Arrival {
    Arrival::new(source(), group())
}

/// Returns the octets that a receiver reads of `datagrams`, the reports with them, and the receiver.
fn read(datagrams: &[Vec<u8>]) -> (Vec<u8>, Vec<Taken>, StreamReceiver) {
    let mut engine = StreamReceiver::new(receiver(0)).unwrap();
    let (mut out, mut taken) = (Vec::new(), Vec::new());
    for (n, datagram) in datagrams.iter().enumerate() {
        engine.handle(at(n as u64), &arrival(), datagram);
        taken.extend(std::iter::from_fn(|| engine.read(&mut out)));
    }
    (out, taken, engine)
}

const EMPTY: u32 = u32::MAX;

#[test]
fn another_session_is_not_mixed_in() {
    let other = Tsi { gsi: Gsi([9; 6]), port: 1 };
    let (out, _, engine) = read(&[
        spm(TSI, 0, (0, EMPTY), vec![]),
        spm(other, 0, (0, EMPTY), vec![]),
        data(TSI, 0, None, b"ours "),
        data(other, 0, None, b"other"),
        data(other, 1, None, b"other"),
        spm(other, 1, (0, 1), vec![Opt::Fin]),
        data(TSI, 1, None, b"alone"),
    ]);
    assert_eq!(out, b"ours alone");
    assert!(!engine.has_left());
}

#[test]
fn data_alone_begin_nothing() {
    let (out, taken, _) = read(&[data(TSI, 7, None, b"middle"), data(TSI, 8, None, b"more")]);
    assert!(out.is_empty() && taken.is_empty());
}

#[test]
fn a_message_that_its_end_cuts_off_is_told() {
    let fragment = Fragment { first: Sqn(1), offset: 0, len: 100, null: false };
    let (out, taken, _) = read(&[
        spm(TSI, 0, (0, EMPTY), vec![]),
        data(TSI, 0, None, b"whole"),
        data(TSI, 1, Some(fragment), b"half"),
        spm(TSI, 1, (0, 1), vec![Opt::Fin]),
    ]);
    assert_eq!(out, b"whole");
    assert!(matches!(taken[..], [Taken::Octets(0), Taken::Gap(..), Taken::End(5)]), "{taken:?}");
}

#[test]
fn a_message_that_claims_much_costs_no_more_than_may_be_kept() {
    let mut engine = StreamReceiver::new(receiver(0)).unwrap();
    engine.handle(at(0), &arrival(), &spm(TSI, 0, (0, EMPTY), vec![]));
    for n in 0..2000 {
        let fragment = Fragment { first: Sqn(2 * n), offset: 0, len: 1 << 20, null: false };
        engine.handle(at(1), &arrival(), &data(TSI, 2 * n, Some(fragment), b"x"));
    }
    assert!(engine.kept() <= 64 << 20, "{} octets", engine.kept());
    assert!(engine.rejects().iter().map(|(_, n)| n).sum::<u64>() > 1000);
}

#[test]
fn an_acknowledgement_of_what_was_not_sent_frees_nothing() {
    let mut sender = StreamSender::new(config(4_000, 1)).unwrap();
    sender.open(Time::ZERO);
    let octets = text(100_000);
    let mut taken = sender.write(Time::ZERO, &octets);
    let mut out = Vec::new();
    let mut highest = 0;
    for n in 1..3000 {
        for (upto, node) in [(1000, 0), (EMPTY, 0), (1 << 31, 0), (5, 77)] {
            let has = Opt::Has(Has { upto: Sqn(upto), node: NodeId(node) });
            let ack = Body::Ack(Ack { highest: Sqn(upto), bitmap: u32::MAX, options: vec![has] });
            sender.handle(at(n), &Arrival::new(receiver_address(0), source()), &encode(TSI, ack, &[]));
        }
        sender.handle_timeout(at(n));
        while sender.poll_transmit(at(n), &mut out).is_some() {
            highest = highest.max(number(&out).unwrap_or(0));
            out.clear();
        }
        taken += sender.write(at(n), &octets[taken..]);
    }
    assert_eq!(highest, 7, "eight TPDUs are kept, and nobody has them");
    assert!(sender.rejects().iter().map(|(_, n)| n).sum::<u64>() > 10_000);
}

#[test]
fn forged_and_damaged_messages_do_no_harm() {
    for seed in 0..3 {
        let text = text(40_000);
        let mut random = RandomStream::derive(seed, &[3]);
        // Every message is also heard as forgers would have it.
        let world = World::new(config(1 << 20, 1), 1, text.clone()).run(LONG);
        let mut engine = StreamReceiver::new(receiver(0)).unwrap();
        let mut sender = StreamSender::new(config(10_000, 1)).unwrap();
        sender.open(Time::ZERO);
        let (mut out, mut sent) = (Vec::new(), Vec::new());
        for (now, from, said) in &world.said {
            for _ in 0..3 {
                let original = message(said);
                let Some(forged) = forge(&original, &mut random) else { continue };
                let mut datagram = Vec::new();
                wire::encode(&forged, 0, &mut datagram);
                datagram.resize(forged.wire_len(0), 7);
                wire::finish(&mut datagram);
                if *from == 0 {
                    engine.handle(*now, &arrival(), &datagram);
                } else {
                    sender.handle(*now, &Arrival::new(receiver_address(0), source()), &datagram);
                }
            }
            engine.handle_timeout(*now);
            sender.handle_timeout(*now);
            let _ = sender.write(*now, &text);
            while engine.poll_transmit(*now, &mut sent).is_some() {
                sent.clear();
            }
            while sender.poll_transmit(*now, &mut sent).is_some() {
                sent.clear();
            }
            while engine.read(&mut out).is_some() {}
            assert!(engine.kept() <= 64 << 20);
            assert!(sender.kept() <= 10_000 + 513 * 500);
        }
        // Cut short anywhere, it is no message.
        let whole = &world.said[world.said.len() / 2].2;
        for len in 0..whole.len() {
            engine.handle(at(1), &arrival(), &whole[..len]);
        }
        assert!(engine.malformed() > 0);
    }
}
