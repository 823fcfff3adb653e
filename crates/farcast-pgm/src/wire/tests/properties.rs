//! All messages survive encoding and decoding.

use core::net::IpAddr;
use core::num::NonZeroU32;
use std::vec;
use std::vec::Vec;

use farcast_core::Message as _;
use farcast_delivery::Vouched;
use proptest::collection::vec as list;
use proptest::option::of as maybe;
use proptest::prelude::*;

use super::assert_stable;
use super::vectors::all;
use crate::message::{
    Ack, Ask, Body, CcData, Cr, Data, DataKind, DataOptions, Descriptor, Feedback, Fragment, Gsi, Has,
    Message, Nak, NakKind, NodeId, Opt, Origin, Parity, Poll, Polr, Spm, Sqn, Tsi,
};
use crate::wire::{decode, encode, encoded_len, finish};

fn sqn() -> impl Strategy<Value = Sqn> {
    any::<u32>().prop_map(Sqn)
}

fn address() -> impl Strategy<Value = IpAddr> {
    any::<IpAddr>()
}

fn option() -> impl Strategy<Value = Opt> {
    let nodes = list(any::<u32>().prop_map(NodeId), 0..60);
    prop_oneof![
        sqn().prop_map(Opt::Join),
        (any::<u32>(), sqn()).prop_map(|(interval_us, sqn)| Opt::NakBackoff { interval_us, sqn }),
        any::<(u32, u32)>().prop_map(|(max_us, min_us)| Opt::NakBackoffRange { max_us, min_us }),
        address().prop_map(Opt::Redirect),
        (any::<(bool, bool, u8)>(), 0..32u32).prop_map(|((on_demand, proactive, octet), shift)| {
            Opt::ParityPrm { octet, on_demand, proactive, size: 1 << shift }
        }),
        any::<u32>().prop_map(Opt::GroupSize),
        Just(Opt::Unreachable),
        address().prop_map(Opt::PathNla),
        Just(Opt::Fin),
        (any::<bool>(), 0..64u8).prop_map(|(no_naks, code)| Opt::Rst { no_naks, code }),
        (0..8u8, sqn(), any::<[u16; 3]>(), address()).prop_map(
            |(fields, reference, [link, path, receiver], node)| Opt::Cr(Cr {
                fields,
                reference,
                link,
                path,
                receiver,
                node
            })
        ),
        (0..8u8).prop_map(Opt::Crqst),
        (any::<u32>(), any::<u16>(), address(), any::<bool>()).prop_map(
            |(stamp, loss, receiver, leaving)| { Opt::Feedback(Feedback { stamp, loss, receiver, leaving }) }
        ),
        (sqn(), nodes).prop_map(|(upto, nodes)| Opt::Ask(Ask { upto, nodes })),
        (sqn(), any::<u32>()).prop_map(|(upto, node)| Opt::Has(Has { upto, node: NodeId(node) })),
    ]
}

/// Returns a strategy of options, no two of one kind.
fn options() -> impl Strategy<Value = Vec<Opt>> {
    list(option(), 0..8).prop_map(|mut options| {
        let mut seen = Vec::new();
        options.retain(|option| {
            let kind = core::mem::discriminant(option);
            let fresh = !seen.contains(&kind);
            seen.push(kind);
            fresh
        });
        options
    })
}

fn data_options() -> impl Strategy<Value = DataOptions> {
    let fragment = (sqn(), any::<[u32; 2]>(), any::<bool>())
        .prop_map(|(first, [offset, len], null)| Fragment { first, offset, len, null });
    let cc = (any::<u32>(), address()).prop_map(|(stamp, acker)| CcData { stamp, acker });
    (maybe(fragment), maybe(sqn()), maybe(any::<u32>()), any::<[bool; 2]>(), maybe(cc)).prop_map(
        |(fragment, join, group_size, [syn, fin], cc)| DataOptions {
            fragment,
            join,
            group_size,
            syn,
            fin,
            cc,
        },
    )
}

fn descriptor() -> impl Strategy<Value = Descriptor> {
    let vouched = (any::<[u8; 32]>(), 0..=0o777u16, any::<i64>());
    let vouched = maybe(vouched.prop_map(|(digest, mode, mtime_ns)| Vouched { digest, mode, mtime_ns }));
    let numbers = (any::<u32>(), 1..u16::MAX, 1..u16::MAX, any::<u64>());
    (numbers, vouched, any::<bool>(), list(any::<u8>(), 0..80)).prop_map(
        |((number, behind, segment_size, size), vouched, withdrawn, name)| Descriptor {
            number,
            behind,
            segment_size,
            size,
            vouched,
            withdrawn,
            name,
        },
    )
}

/// Returns a strategy of data: any run whose last datagram may be short, or the description of an object.
fn data() -> impl Strategy<Value = Data> {
    let parity = (any::<u32>(), any::<bool>()).prop_map(|(group, var_len)| Parity { group, var_len });
    let numbers = (any::<bool>(), sqn(), sqn(), 1..20u32, 0..=65_000u16, 0..=65_000u16);
    (numbers, maybe(parity), data_options(), proptest::option::weighted(0.2, descriptor())).prop_map(
        |((repair, sqn, trail, count, a, b), parity, options, descriptor)| {
            let count = if descriptor.is_some() { 1 } else { count };
            let (len, last_len) = if count == 1 { (a, a) } else { (a.max(b), a.min(b)) };
            let said = descriptor.as_ref().map(crate::wire::descriptor_len);
            Data {
                kind: if repair { DataKind::Repair } else { DataKind::Original },
                sqn,
                count: NonZeroU32::new(count).expect("positive"),
                trail,
                parity: parity.filter(|_| descriptor.is_none()),
                options,
                descriptor: descriptor.map(Into::into),
                len: said.unwrap_or(len),
                last_len: said.unwrap_or(last_len),
                origin: Origin::UNKNOWN,
            }
        },
    )
}

fn body() -> impl Strategy<Value = Body> {
    let spm = (sqn(), sqn(), sqn(), address(), options()).prop_map(|(sqn, trail, lead, path, options)| Spm {
        sqn,
        trail,
        lead,
        path,
        options,
    });
    let poll = (sqn(), any::<[u16; 2]>(), address(), any::<[u32; 3]>(), options()).prop_map(
        |(sqn, [round, subtype], path, [backoff_us, random, mask], options)| Poll {
            sqn,
            round,
            subtype,
            path,
            backoff_us,
            random,
            mask,
            options,
        },
    );
    let answer = (sqn(), any::<u16>(), any::<bool>(), options())
        .prop_map(|(sqn, round, parity, options)| Polr { sqn, round, parity, options });
    let kinds = prop_oneof![Just(NakKind::Nak), Just(NakKind::NullNak), Just(NakKind::Confirmation)];
    let nak =
        (kinds, any::<bool>(), sqn(), address(), address(), (list(sqn(), 0..=62), any::<u8>()), options())
            .prop_map(|(kind, parity, sqn, source, group, (also, octet), options)| Nak {
                kind,
                parity,
                sqn,
                source,
                group,
                list_octet: if also.is_empty() { 0 } else { octet },
                also,
                options,
            });
    let ack = (sqn(), any::<u32>(), options()).prop_map(|(highest, bitmap, options)| Ack {
        highest,
        bitmap,
        options,
    });
    prop_oneof![
        2 => spm.prop_map(Body::Spm),
        1 => poll.prop_map(Body::Poll),
        1 => answer.prop_map(Body::Polr),
        4 => data().prop_map(Body::Data),
        2 => nak.prop_map(Body::Nak),
        1 => Just(Body::Spmr),
        1 => ack.prop_map(Body::Ack),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    (any::<[u8; 6]>(), any::<[u16; 2]>(), body()).prop_map(|(gsi, [source, port], body)| Message {
        tsi: Tsi { gsi: Gsi(gsi), port: source },
        port,
        body,
    })
}

proptest! {
    #[test]
    fn what_is_said_is_heard(message in message()) {
        let mut rest = Some(message.clone());
        for segment in 0..message.segments().get() {
            // Datagram by datagram the run says what its parts say.
            let (one, tail) = rest.take().expect("as many as it says").split(NonZeroU32::MIN);
            let (mut datagram, mut part) = (Vec::new(), Vec::new());
            encode(&message, segment, &mut datagram);
            encode(&one, 0, &mut part);
            prop_assert_eq!(&datagram, &part);
            let content = message.data().filter(|data| data.descriptor.is_none());
            datagram.resize(datagram.len() + content.map_or(0, |data| data.tsdu_len(segment)), 7);
            finish(&mut datagram);
            prop_assert_eq!(datagram.len(), encoded_len(&message, segment));
            let packet = decode(&datagram).expect("what is said can be heard");
            prop_assert_eq!(&packet.message, &one);
            prop_assert!(datagram[packet.payload].iter().all(|&octet| octet == 7));
            rest = tail;
        }
        prop_assert_eq!(rest, None);
    }

    #[test]
    fn octets_that_make_sense_keep_it(octets in list(any::<u8>(), 0..120)) {
        let mut octets = octets;
        assert_stable(&octets);
        finish(&mut octets);
        assert_stable(&octets);
    }

    #[test]
    fn damaged_vectors_make_sense_or_do_not(
        which in 0..57usize, changes in list((any::<usize>(), any::<u8>()), 1..6), len in any::<usize>(),
    ) {
        let mut octets = all().swap_remove(which).bytes;
        for (at, octet) in changes {
            let at = at % octets.len();
            octets[at] = octet;
        }
        finish(&mut octets);
        assert_stable(&octets);
        octets.truncate(len % (octets.len() + 1));
        finish(&mut octets);
        assert_stable(&octets);
    }
}
