//! Every valid message survives its encoding.

use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU32;
use std::boxed::Box;
use std::string::String;
use std::vec;
use std::vec::Vec;

use farcast_core::{Bitmap, Message as _, Run};
use proptest::collection::{btree_set as set, vec as list};
use proptest::option::of as maybe;
use proptest::prelude::*;

use super::{assemble, assert_stable, encode_whole, with_length};
use crate::hostset::HostSet;
use crate::message::{
    Abort, Ack, Announce, AnnounceOptions, Body, ClientId, Completion, Data, DataKind, DeclineReason, Done,
    Echo, End, Grant, GroupModel, HostState, Join, Leave, Message, Nak, Query, Quit, Registration,
    RegistrationEntry, StatusRequest, StatusType,
};
use crate::proof::{Proof, Token};
use crate::wire::{Packet, decode, encode, encoded_len};

/// A number, often one of the extremes.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(0), 1 => Just(u32::MAX), 6 => any::<u32>()]
}

/// Returns a number that counts from 0 in messages and from 1 on the wire; the largest cannot be a run's first.
fn ordinal() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(0), 1 => Just(u32::MAX - 2), 6 => 0..u32::MAX - 1]
}

/// 1 to `most` bytes of UTF-8; `most` is at least 4.
fn text(most: usize) -> impl Strategy<Value = String> {
    list(any::<char>(), 1..=most).prop_map(move |chars| {
        let mut text = String::from_iter(chars);
        while text.len() > most {
            text.pop();
        }
        text
    })
}

fn client() -> impl Strategy<Value = ClientId> {
    any::<u32>().prop_map(ClientId)
}

fn hosts() -> impl Strategy<Value = Option<Vec<ClientId>>> {
    maybe(list(client(), 0..20))
}

fn socket() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), any::<u16>()).prop_map(|(address, port)| SocketAddr::new(address, port))
}

fn run() -> impl Strategy<Value = Run> {
    (number(), number()).prop_filter_map("a run is not empty", |(a, b)| Run::new(a.min(b), a.abs_diff(b)))
}

fn decline() -> impl Strategy<Value = DeclineReason> {
    (1..=8u8).prop_map(|byte| DeclineReason::from_wire(byte).expect("reasons 1 to 8"))
}

fn group_management() -> impl Strategy<Value = Body> {
    let echo = (any::<u32>(), maybe(list(any::<u8>(), 1..=4096)), hosts());
    prop_oneof![
        (text(64), any::<bool>()).prop_map(|(application, all)| Body::Query(Query { application, all })),
        (text(64), any::<IpAddr>(), any::<bool>(), hosts()).prop_map(|(application, public, all, hosts)| {
            Body::Join(Join { application, public, all, hosts })
        }),
        (any::<IpAddr>(), hosts()).prop_map(|(public, hosts)| Body::Leave(Leave { public, hosts })),
        (echo, any::<bool>()).prop_map(|((sequence, data, hosts), response)| {
            // A response never returns the host list.
            if response {
                Body::EchoResponse(Echo { sequence, data, hosts: None })
            } else {
                Body::Echo(Echo { sequence, data, hosts })
            }
        }),
    ]
}

fn options() -> impl Strategy<Value = AnnounceOptions> {
    let models = vec![GroupModel::Closed, GroupModel::OpenLimited, GroupModel::OpenUnlimited];
    (proptest::sample::select(models), any::<[bool; 4]>()).prop_map(|(model, flags)| {
        let [stay_in_group, restart, overwrite, late_entry] = flags;
        AnnounceOptions { model, stay_in_group, restart, overwrite, late_entry }
    })
}

fn standing() -> impl Strategy<Value = HostState> {
    prop_oneof![Just(HostState::Pending), Just(HostState::Accepted), decline().prop_map(HostState::Declined)]
}

/// Returns a set of ids near one another and far apart.
fn host_set() -> impl Strategy<Value = HostSet> {
    let hosts = list(prop_oneof![client(), (0..400u32).prop_map(ClientId), Just(ClientId(u32::MAX))], 1..60);
    (standing(), hosts).prop_map(|(standing, mut hosts)| {
        hosts.sort_unstable();
        hosts.dedup();
        HostSet::take(standing, &mut hosts.into_iter().peekable(), usize::MAX).expect("hosts")
    })
}

fn announce() -> impl Strategy<Value = Body> {
    let addresses = (socket(), socket(), any::<IpAddr>());
    let product_size = prop_oneof![
        Just(u64::from(u32::MAX)),
        Just(u64::from(u32::MAX) + 1),
        any::<u64>(),
        any::<u32>().prop_map(u64::from)
    ];
    let texts = (text(64), text(256), maybe(text(64)));
    let optional =
        (maybe(number()), maybe(number()), maybe(number()), maybe(any::<[u8; 32]>()), maybe(proof()));
    let listed = (maybe(list((client(), standing()), 0..20)), maybe(host_set()));
    (addresses, options(), any::<[u32; 5]>(), product_size, texts, optional, listed).prop_map(
        |(addresses, options, numbers, product_size, texts, optional, (hosts, host_set))| {
            let [announce_duration_s, block_size, data_rate_bps, transfer_duration_s, dtu_size] = numbers;
            Body::Announce(Box::new(Announce {
                turn: None,
                server: addresses.0,
                response: addresses.1,
                private: addresses.2,
                announce_duration_s,
                options,
                application: texts.0,
                block_size,
                data_rate_bps,
                product_name: texts.1,
                transfer_duration_s,
                dtu_size,
                product_size,
                error_threshold: optional.0,
                user_data: texts.2.map(String::into_bytes),
                hosts,
                host_set,
                backoff_window_ms: optional.1,
                product_id: optional.3,
                parity_symbols: optional.2,
                commitment: optional.4,
            }))
        },
    )
}

fn registration() -> impl Strategy<Value = Body> {
    let response = prop_oneof![Just(Ok(())), decline().prop_map(Err)];
    let entry = (client(), maybe(number()), response)
        .prop_map(|(client, serial, response)| RegistrationEntry { client, serial, response });
    let optional = (maybe(text(64)), maybe(number()), maybe(number()), maybe(proof()));
    (socket(), list(entry, 1..20), optional).prop_map(
        |(server, entries, (name, segments_held, receive_buffer_bytes, nonce))| {
            let registration = Registration {
                heard: None,
                complete: None,
                round: None,
                server,
                entries,
                name,
                segments_held,
                receive_buffer_bytes,
                nonce,
            };
            Body::Registration(registration)
        },
    )
}

fn proof() -> impl Strategy<Value = Proof> {
    any::<[u8; 8]>().prop_map(Proof)
}

fn missing() -> impl Strategy<Value = Bitmap> {
    list(any::<bool>(), 0..200).prop_map(|dtus| {
        // A map on the wire is whole bytes.
        let mut map = Bitmap::new((dtus.len() as u32).next_multiple_of(8));
        for (dtu, _) in dtus.iter().enumerate().filter(|(_, missing)| **missing) {
            map.insert(dtu as u32);
        }
        map
    })
}

fn status() -> impl Strategy<Value = Body> {
    let kinds = vec![StatusType::NakOnly, StatusType::All];
    prop_oneof![
        (number(), run(), run(), proptest::sample::select(kinds), hosts()).prop_map(
            |(pass, blocks, dtus, status, hosts)| Body::StatusRequest(StatusRequest {
                turn: None,
                pass,
                blocks,
                dtus,
                status,
                hosts
            })
        ),
        (socket(), client(), number(), ordinal(), missing(), (number(), number())).prop_map(
            |(server, client, pass, block, missing, (parity_held, unstored))| {
                Body::Nak(Nak { server, client, pass, block, missing, parity_held, unstored })
            }
        ),
        (socket(), number(), run(), client()).prop_map(|(server, pass, blocks, client)| Body::Ack(Ack {
            server,
            pass,
            blocks,
            client
        })),
    ]
}

fn endings() -> impl Strategy<Value = Body> {
    prop_oneof![
        (socket(), client(), number(), number()).prop_map(|(server, client, naked_dtus, duration_s)| {
            Body::Done(Done { round: None, server, client, naked_dtus, duration_s })
        }),
        hosts().prop_map(|hosts| Body::Completion(Completion { turn: None, hosts })),
        (number(), hosts(), maybe(text(256))).prop_map(|(reason, hosts, text)| Body::Abort(Abort {
            reason,
            hosts,
            text
        })),
        (number(), maybe(client()), maybe(text(256))).prop_map(|(reason, client, text)| Body::Quit(Quit {
            reason,
            client,
            text
        })),
        (socket(), socket()).prop_map(|(server, response)| Body::End(End { server, response })),
        (client(), any::<[u8; 16]>())
            .prop_map(|(client, token)| Body::Grant(Grant { client, token: Token(token) })),
    ]
}

/// A control message of any kind.
fn control() -> impl Strategy<Value = Message> {
    let body = prop_oneof![
        4 => group_management(),
        2 => announce(),
        1 => registration(),
        3 => status(),
        5 => endings(),
    ];
    (any::<u32>(), body, maybe(proof())).prop_map(|(transmission, body, proof)| Message {
        transmission,
        body,
        proof,
    })
}

/// A run of up to six DTUs, of lengths that fit a datagram.
fn data_run() -> impl Strategy<Value = Message> {
    let len = prop_oneof![3 => 1..=1500u16, 1 => 1..=65_492u16];
    let lens = len.prop_flat_map(|len| (Just(len), 1..=len));
    let run = (ordinal(), 1..=6u32).prop_map(|(first, count)| {
        Run::new(first.min(u32::MAX - 1 - count), count).expect("it ends in time")
    });
    (any::<u32>(), 1..=u32::MAX, ordinal(), any::<bool>(), run, lens).prop_map(
        |(transmission, pass, block, parity, dtus, (len, last_len))| {
            let kind = if parity { DataKind::Parity } else { DataKind::Source };
            Message::new(transmission, Body::Data(Data { pass, block, kind, dtus, len, last_len }))
        },
    )
}

/// Returns the datagram of `segment`, whose payload repeats the segment's number.
fn datagram(message: &Message, segment: u32) -> Vec<u8> {
    let Body::Data(data) = &message.body else { panic!("only DATA has segments") };
    let mut out = Vec::new();
    encode(message, segment, &mut out);
    out.extend(vec![segment as u8 + 1; data.payload_len(segment)]);
    out.resize(encoded_len(message, segment), 0);
    out
}

proptest! {
    #[test]
    fn control_messages_survive_the_wire(message in control()) {
        let packet = Packet { message, payload: 0..0 };
        // `encode_whole` compares with `encoded_len`.
        prop_assert_eq!(decode(&encode_whole(&packet, &[])), Ok(packet));
    }

    /// Sets that fit a datagram each name all clients, once and in order, and are found by name.
    #[test]
    fn sets_name_all_their_clients(
        hosts in prop_oneof![set(0..600u32, 1..80), set(any::<u32>(), 1..80)],
        room in 5..200usize,
    ) {
        let hosts: Vec<ClientId> = hosts.into_iter().map(ClientId).collect();
        let mut left = hosts.iter().copied().peekable();
        let mut named = Vec::new();
        while let Some(set) = HostSet::take(HostState::Accepted, &mut left, room) {
            prop_assert!(set.octets().len() <= room);
            prop_assert_eq!(HostSet::read(HostState::Accepted, set.octets()), Some(set.clone()));
            named.extend(set.hosts());
        }
        prop_assert_eq!(named, hosts);
    }

    #[test]
    fn octets_of_a_set_are_those_of_one_set_only(octets in list(any::<u8>(), 0..40)) {
        if let Some(set) = HostSet::read(HostState::Pending, &octets) {
            let again = HostSet::take(HostState::Pending, &mut set.hosts().peekable(), usize::MAX);
            prop_assert!(set.hosts().is_sorted_by(|a, b| a < b));
            prop_assert_eq!(again, Some(set));
        }
    }

    #[test]
    fn each_segment_of_a_run_survives_the_wire(message in data_run()) {
        let Body::Data(data) = message.body.clone() else { panic!("a data run") };
        for segment in 0..data.dtus.count() {
            let bytes = datagram(&message, segment);
            prop_assert_eq!(bytes.len() % 4, 0);
            let len = data.payload_len(segment);
            let packet = decode(&bytes).expect("a datagram of the run");
            let one = Data {
                dtus: Run::one(data.dtus.first() + segment),
                len: len as u16,
                last_len: len as u16,
                ..data.clone()
            };
            prop_assert_eq!(packet.message.transmission, message.transmission);
            prop_assert_eq!(packet.message.body, Body::Data(one));
            prop_assert!(bytes[packet.payload.clone()].iter().all(|&b| b == segment as u8 + 1));
            prop_assert_eq!(packet.payload.len(), len);
        }
    }

    /// Datagrams that follow one another continue the run of the ones before.
    #[test]
    fn each_segment_of_a_run_continues_those_before(message in data_run()) {
        let Body::Data(run) = message.body.clone() else { panic!("a data run") };
        let one = |segment| match decode(&datagram(&message, segment)).expect("a datagram").message.body {
            Body::Data(data) => data,
            other => panic!("not DATA: {other:?}"),
        };
        let mut joined = one(0);
        for segment in 1..run.dtus.count() {
            let next = one(segment);
            prop_assert!(joined.continues(&next));
            prop_assert!(!next.continues(&joined));
            prop_assert!(!next.continues(&next));
            joined.dtus = Run::new(run.dtus.first(), segment + 1).expect("a part of the run");
            joined.last_len = next.len;
        }
        prop_assert_eq!(joined, Data { len: run.payload_len(0) as u16, ..run });
    }

    #[test]
    fn a_split_run_makes_the_same_datagrams(message in data_run(), at in 1..6u32) {
        let datagrams = |message: &Message| -> Vec<_> {
            (0..message.segments().get()).map(|segment| datagram(message, segment)).collect()
        };
        let whole = datagrams(&message);
        let (head, tail) = message.split(NonZeroU32::new(at).expect("not 0"));
        let headers: Vec<_> = core::iter::once(head).chain(tail).flat_map(|part| datagrams(&part)).collect();
        prop_assert_eq!(whole.len(), headers.len());
        for (a, b) in whole.iter().zip(&headers) {
            prop_assert_eq!(a.len(), b.len());
            prop_assert_eq!(&a[..40], &b[..40]);
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in list(any::<u8>(), 0..300)) {
        assert_stable(&bytes);
    }

    /// Random bytes hardly ever get past the header, but random values after a valid header do.
    #[test]
    fn random_parameters_never_panic(
        kind in 1..=0x16u16,
        parameters in list((0x0100..=0x012Au16, list(any::<u8>(), 0..20)), 0..12),
    ) {
        assert_stable(&assemble(kind, &parameters));
    }

    /// Valid messages with a few bytes overwritten and the checksum not in use.
    #[test]
    fn damaged_messages_never_panic(
        message in control(),
        damage in list((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = with_length(encode_whole(&Packet { message, payload: 0..0 }, &[]));
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        assert_stable(&bytes);
    }
}
