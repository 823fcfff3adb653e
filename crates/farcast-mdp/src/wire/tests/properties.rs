//! All messages survive encoding and decoding.

use core::num::NonZeroU32;
use std::vec::Vec;

use farcast_core::{Message as _, Run};
use farcast_delivery::nack::NodeId;
use farcast_delivery::nack::Stamp;
use farcast_delivery::nack::quantise::Rtt;
use farcast_delivery::{Delivery as _, Vouched};
use proptest::collection::vec as list;
use proptest::option::of as maybe;
use proptest::prelude::*;

use super::assert_stable;
use super::vectors::{all, octets};
use crate::message::{
    About, Answer, Body, Data, Flags, FromReceiver, FromSender, Head, Info, Mask, Message, ObjectNack, Probe,
    Request,
};
use crate::wire::{decode, encode, encoded_len, info_len};

fn some_octets() -> impl Strategy<Value = Vec<u8>> {
    list(any::<u8>(), 0..60)
}

fn stamp() -> impl Strategy<Value = Stamp> {
    any::<[u32; 2]>().prop_map(|[seconds, micros]| Stamp { seconds, micros })
}

fn nodes() -> impl Strategy<Value = Vec<NodeId>> {
    list(any::<u32>().prop_map(NodeId), 0..20)
}

fn nacks() -> impl Strategy<Value = Vec<ObjectNack>> {
    let mask = || some_octets().prop_map(Mask);
    let request = prop_oneof![
        (any::<u8>(), any::<u32>(), mask()).prop_map(|(erasures, offset, mask)| Request::Segments {
            erasures,
            offset,
            mask
        }),
        (any::<u32>(), mask()).prop_map(|(offset, mask)| Request::Blocks { offset, mask }),
        Just(Request::Info),
        Just(Request::Object),
    ];
    let nack = (any::<u32>(), list(request, 0..5));
    list(nack.prop_map(|(object, requests)| ObjectNack { object, requests }), 0..5)
}

/// Returns a strategy of the flags that a run may have.
fn flags() -> impl Strategy<Value = Flags> {
    any::<u8>().prop_map(|flags| Flags(flags).without(Flags::BLOCK_END).without(Flags::RUNT))
}

/// Returns a strategy of runs of symbols of an object of any size; a short segment is a run by itself.
fn data() -> impl Strategy<Value = Data> {
    let cut = (1..=255u8, 0..=255u8, 1..2000u16, 1..200_000u32, any::<u32>(), flags());
    (cut, any::<[u32; 3]>(), any::<[bool; 2]>()).prop_map(|(cut, [a, b, c], [parity, ends_block])| {
        let (ndata, nparity, segment_size, size, object, flags) = cut;
        let nparity = nparity.min(255 - ndata);
        let about = About { object, size, ndata, nparity, flags };
        let segments = size.div_ceil(segment_size.into());
        let block = a % segments.div_ceil(ndata.into());
        let len = about.block_len(block, segment_size);
        let parity = parity && nparity > 0;
        let (low, high) = if parity { (len, len + u32::from(nparity)) } else { (0, len) };
        let first = low + b % (high - low);
        let mut count = 1 + c % (high - first);
        let short = size % u32::from(segment_size);
        let last = block * u32::from(ndata) + first + count == segments && short > 0 && !parity;
        let mut octets = segment_size;
        if last && count == 1 {
            octets = short as u16;
        } else if last {
            count -= 1;
        }
        let symbols = Run::new(first, count).expect("a run");
        Data { about, block, symbols, parity, segment_size, len: octets, ends_block }
    })
}

fn said() -> impl Strategy<Value = FromSender> {
    let vouched = (any::<[u8; 32]>(), 0..=0o777u16, any::<i64>());
    let vouched = vouched.prop_map(|(digest, mode, mtime_ns)| Vouched { digest, mode, mtime_ns });
    let info = (data(), some_octets(), maybe(vouched)).prop_map(|(data, content, vouched)| {
        let segment_size = data.segment_size.max(info_len(&content, vouched.as_ref()) as u16);
        FromSender::Info(Info { about: data.about, segment_size, content, vouched })
    });
    let probe =
        (any::<bool>(), any::<[u8; 2]>(), [stamp(), stamp()], any::<[u16; 2]>(), any::<u32>(), nodes());
    prop_oneof![
        4 => data().prop_map(FromSender::Data),
        1 => info,
        1 => (any::<bool>(), any::<u32>()).prop_map(|(eot, object)| FromSender::Flush { eot, object }),
        1 => (any::<u32>(), list(any::<u32>(), 0..9))
            .prop_map(|(sync, invalid)| FromSender::Squelch { sync, invalid }),
        1 => (any::<u32>(), nodes()).prop_map(|(object, nodes)| FromSender::AckReq { object, nodes }),
        1 => probe.prop_map(|(wildcard, [sequence, rtt], [sent, hold], [segment_size, loss], rate, nodes)| {
            let rtt = Rtt(rtt);
            FromSender::Probe(Probe { wildcard, sequence, sent, hold, segment_size, rate, rtt, loss, nodes })
        }),
        1 => nacks().prop_map(FromSender::NackAdv),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let answer = prop_oneof![
        nacks().prop_map(Answer::Nack),
        any::<u32>().prop_map(Answer::Object),
        Just(Answer::Probe),
    ];
    let receiver = (any::<u32>(), maybe(stamp()), any::<u16>(), any::<u8>(), answer);
    let body = prop_oneof![
        (any::<u16>(), any::<u8>(), said())
            .prop_map(|(sequence, grtt, said)| { Body::Sender(Head { sequence, grtt: Rtt(grtt) }, said) }),
        receiver.prop_map(|(server, response, loss, probe, answer)| {
            let response = response.filter(|stamp| (stamp.seconds, stamp.micros) != (0, 0));
            Body::Receiver(FromReceiver { server: NodeId(server), response, loss, probe, answer })
        }),
    ];
    (any::<u32>(), body).prop_map(|(source, body)| Message { source: NodeId(source), body })
}

proptest! {
    #[test]
    fn what_is_said_is_heard(message in message()) {
        let mut rest = Some(message.clone());
        let mut heard: Option<Message> = None;
        for segment in 0..message.segments().get() {
            // Datagram by datagram the run says what its parts say, and joins to what it was.
            let (one, tail) = rest.take().expect("as many as it says").split(NonZeroU32::MIN);
            rest = tail;
            let (mut datagram, mut part) = (Vec::new(), Vec::new());
            encode(&message, segment, &mut datagram);
            encode(&one, 0, &mut part);
            prop_assert_eq!(&datagram, &part);
            datagram.resize(datagram.len() + message.payload_len(segment), 7);
            prop_assert_eq!(datagram.len(), encoded_len(&message, segment));
            let packet = decode(&datagram).expect("what is said can be heard");
            prop_assert_eq!(&packet.message, &one);
            prop_assert!(datagram[packet.payload].iter().all(|&octet| octet == 7));
            match &mut heard {
                Some(run) => prop_assert!(run.join(&packet.message)),
                None => heard = Some(packet.message),
            }
        }
        prop_assert_eq!(rest, None);
        prop_assert_eq!(heard, Some(message));
    }

    #[test]
    fn octets_that_make_sense_keep_it(octets in list(any::<u8>(), 0..120)) {
        assert_stable(&octets);
        // Most begin with something else.
        let octets = [&[octets.first().copied().unwrap_or(0) % 9, 9][..], &octets].concat();
        assert_stable(&octets);
    }

    #[test]
    fn damaged_vectors_make_sense_or_do_not(
        which in 0..all().len(), changes in list((any::<usize>(), any::<u8>()), 1..6), len in any::<usize>(),
    ) {
        let (_, _, hex, payload) = all().swap_remove(which);
        let mut octets = octets(hex, payload);
        for (at, octet) in changes {
            let at = at % octets.len().min(60);
            octets[at] = octet;
        }
        assert_stable(&octets);
        octets.truncate(len % (octets.len() + 1));
        assert_stable(&octets);
    }
}
