//! Round trips of all messages through the wire format.

use core::num::NonZeroU32;
use std::vec::Vec;

use farcast_core::{Message as _, Run};
use farcast_delivery::Vouched;
use proptest::collection::vec as list;
use proptest::option::of as maybe;
use proptest::prelude::*;

use super::vectors::all;
use super::{FIELD_BITS, assert_stable};
use crate::message::{
    Answer, Body, Data, Fec, Feedback, Flags, Form, FromReceiver, FromSender, Fti, Info, Level, Message,
    NodeId, Point, Probe, ProbedNode, Request, Stamp, Symbol, Terms,
};
use crate::quantise::{GroupSize, Loss, Rate, Rtt};
use crate::wire::{decode, encode, encoded_len};

/// Returns a code. For FEC Encoding ID 2 it has the session's m, because only a message with its own m can have
/// another.
fn fec() -> impl Strategy<Value = Fec> {
    prop_oneof![Just(Fec::ReedSolomon8), Just(Fec::ReedSolomon(FIELD_BITS)), Just(Fec::SmallBlock)]
}

fn symbol(fec: Fec) -> impl Strategy<Value = Symbol> {
    (any::<u32>(), any::<u16>(), any::<u16>()).prop_map(move |(block, len, symbol)| Symbol {
        block: block & (u32::MAX >> (32 - fec.block_bits())),
        block_len: (fec == Fec::SmallBlock).then_some(len),
        symbol: symbol & (u16::MAX >> (16 - fec.symbol_bits())),
    })
}

fn point() -> impl Strategy<Value = Point> {
    fec().prop_flat_map(|fec| {
        (Just(fec), any::<u16>(), symbol(fec)).prop_map(|(fec, object, symbol)| Point { fec, object, symbol })
    })
}

/// Returns a code with transmission information; for FEC Encoding ID 2 with any m.
fn cut() -> impl Strategy<Value = (Fec, Option<Fti>)> {
    let with = (fec(), 2..=16u8, 0..1u64 << 48, any::<[u16; 4]>(), any::<u8>()).prop_map(
        |(fec, m, size, [segment_size, max_block_len, last, instance], group)| {
            let fti = Fti { size, segment_size, max_block_len, last, instance: 0, group: 1 };
            match fec {
                Fec::ReedSolomon8 => {
                    let (max_block_len, last) = (max_block_len & 0xFF, last & 0xFF);
                    (fec, Some(Fti { max_block_len, last, ..fti }))
                }
                Fec::ReedSolomon(_) => (Fec::ReedSolomon(m), Some(Fti { group, ..fti })),
                Fec::SmallBlock => (fec, Some(Fti { instance, ..fti })),
            }
        },
    );
    prop_oneof![3 => with, 1 => fec().prop_map(|fec| (fec, None))]
}

fn octets() -> impl Strategy<Value = Vec<u8>> {
    list(any::<u8>(), 0..100)
}

fn nodes() -> impl Strategy<Value = Vec<NodeId>> {
    list(any::<u32>().prop_map(NodeId), 0..20)
}

fn stamp() -> impl Strategy<Value = Stamp> {
    (any::<u32>(), any::<u32>()).prop_map(|(seconds, micros)| Stamp { seconds, micros })
}

fn rate() -> impl Strategy<Value = Rate> {
    any::<u16>().prop_map(Rate)
}

fn feedback() -> impl Strategy<Value = Option<Feedback>> {
    let numbers = (any::<u16>(), any::<[u8; 2]>(), any::<u32>(), rate());
    maybe(numbers.prop_map(|(sequence, [flags, rtt], loss, rate)| Feedback {
        sequence,
        flags,
        rtt: Rtt(rtt),
        loss: Loss(loss),
        rate,
    }))
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let forms = prop_oneof![Just((Form::Items, 1)), Just((Form::Ranges, 2)), Just((Form::Erasures, 1))];
    let request =
        (forms, any::<u8>(), list((point(), point()), 0..10)).prop_map(|((form, each), level, p)| {
            let points = p.into_iter().flat_map(|(a, b)| [a, b].into_iter().take(each)).collect();
            Request { form, level: Level(level), points }
        });
    list(request, 0..5)
}

/// Returns DATA of any run of symbols, whose last may be short.
fn data() -> impl Strategy<Value = Data> {
    let numbers = (any::<u8>(), any::<u16>(), 1..=65_000u16, 1..=65_000u16, 1..20u32);
    cut().prop_flat_map(|(fec, fti)| (Just((fec, fti)), symbol(fec))).prop_flat_map(move |(cut, first)| {
        let (fec, fti) = cut;
        numbers.clone().prop_map(move |(flags, object, a, b, count)| {
            let most = 1 << fec.symbol_bits();
            let first_symbol = u32::from(first.symbol).min(most - 1);
            let count = count.min(most - first_symbol);
            let (len, last_len) = if count == 1 { (a, a) } else { (a.max(b), a.min(b)) };
            Data {
                flags: Flags(flags),
                fec,
                object,
                block: first.block,
                block_len: first.block_len,
                symbols: Run::new(first_symbol, count).expect("a run"),
                fti,
                len,
                last_len,
            }
        })
    })
}

fn said() -> impl Strategy<Value = FromSender> {
    let vouched = (any::<[u8; 32]>(), 0..=0o777u16, any::<i64>());
    let vouched = maybe(vouched.prop_map(|(digest, mode, mtime_ns)| Vouched { digest, mode, mtime_ns }));
    let info = (any::<u8>(), cut(), any::<u16>(), vouched, octets());
    let probed = (any::<u32>(), any::<[u8; 2]>(), rate());
    let probed = probed.prop_map(|(node, [flags, rtt], rate)| ProbedNode {
        node: NodeId(node),
        flags,
        rtt: Rtt(rtt),
        rate,
    });
    let probe = (any::<u8>(), any::<u16>(), stamp(), maybe(rate()), list(probed, 0..9));
    prop_oneof![
        4 => data().prop_map(FromSender::Data),
        1 => info.prop_map(|(flags, (fec, fti), object, vouched, content)| {
            FromSender::Info(Info { flags: Flags(flags), fec, object, fti, vouched, content })
        }),
        1 => (point(), nodes()).prop_map(|(point, ackers)| FromSender::Flush { point, ackers }),
        1 => Just(FromSender::Eot),
        1 => (point(), list(any::<u16>(), 0..9)).prop_map(|(point, invalid)| {
            FromSender::Squelch { point, invalid }
        }),
        1 => probe.prop_map(|(flags, sequence, sent, rate, nodes)| {
            FromSender::Probe(Probe { flags, sequence, sent, rate, nodes })
        }),
        1 => (any::<u8>(), feedback(), requests()).prop_map(|(flags, feedback, requests)| {
            FromSender::RepairAdv { flags, feedback, requests }
        }),
        1 => (any::<[u8; 2]>(), nodes()).prop_map(|([kind, id], ackers)| {
            FromSender::AckReq { kind, id, ackers }
        }),
        1 => octets().prop_map(FromSender::Application),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        requests().prop_map(Answer::Nack),
        (any::<u8>(), point()).prop_map(|(id, point)| Answer::Flushed { id, point }),
        (any::<[u8; 2]>(), octets()).prop_map(|([kind, id], content)| {
            // Type 2 is a flush's.
            Answer::Ack { kind: if kind == 2 { 16 } else { kind }, id, content }
        }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let terms = (any::<u16>(), any::<[u8; 3]>()).prop_map(|(instance, [grtt, backoff, group])| Terms {
        instance,
        grtt: Rtt(grtt),
        backoff: backoff >> 4,
        group: GroupSize::from_bits(group),
    });
    let receiver = (any::<u32>(), any::<u16>(), maybe(stamp()), feedback(), answer());
    let body = prop_oneof![
        (terms, said()).prop_map(|(terms, said)| Body::Sender(terms, said)),
        receiver.prop_map(|(sender, instance, stamp, feedback, answer)| Body::Receiver(FromReceiver {
            sender: NodeId(sender),
            instance,
            response: stamp.filter(|stamp| (stamp.seconds, stamp.micros) != (0, 0)),
            feedback,
            answer,
        })),
    ];
    (any::<u32>(), any::<u16>(), body).prop_map(|(source, sequence, body)| Message {
        source: NodeId(source),
        sequence,
        body,
    })
}

proptest! {
    #[test]
    fn what_is_said_is_heard(message in message()) {
        let mut rest = Some(message.clone());
        let mut heard: Option<Message> = None;
        for segment in 0..message.segments().get() {
            // Each datagram of the run equals its part, and the parts join to the run again.
            let (one, tail) = rest.take().expect("as many as it says").split(NonZeroU32::MIN);
            rest = tail;
            let (mut datagram, mut part) = (Vec::new(), Vec::new());
            encode(&message, segment, &mut datagram);
            encode(&one, 0, &mut part);
            prop_assert_eq!(&datagram, &part);
            datagram.resize(datagram.len() + message.data().map_or(0, |data| data.payload_len(segment)), 7);
            prop_assert_eq!(datagram.len(), encoded_len(&message, segment));
            let packet = decode(&datagram, FIELD_BITS).expect("what is said can be heard");
            prop_assert_eq!(&packet.message, &one);
            prop_assert!(datagram[packet.payload].iter().all(|&octet| octet == 7));
            if let (Some(before), Some(data)) = (heard.as_ref().and_then(Message::data), one.data()) {
                // A run ends where parity begins.
                let border = data.source_symbols() == Some(data.symbols.first());
                prop_assert_eq!(before.continues(data), !border);
            }
            heard = Some(one);
        }
        prop_assert_eq!(rest, None);
    }

    #[test]
    fn octets_that_make_sense_keep_it(octets in list(any::<u8>(), 0..120)) {
        assert_stable(&octets);
    }

    #[test]
    fn damaged_vectors_make_sense_or_do_not(
        which in 0..all().len(), changes in list((any::<usize>(), any::<u8>()), 1..6), len in any::<usize>(),
    ) {
        let mut octets = all().swap_remove(which).bytes;
        for (at, octet) in changes {
            let at = at % octets.len();
            octets[at] = octet;
        }
        assert_stable(&octets);
        octets.truncate(len % (octets.len() + 1));
        assert_stable(&octets);
    }
}
