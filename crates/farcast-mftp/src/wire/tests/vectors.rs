//! Each vector decodes to the message written out here, and that message encodes to the vector.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use farcast_core::{Bitmap, Run};

use crate::hostset::HostSet;
use crate::message::{
    Abort, Ack, Announce, AnnounceOptions, Body, ClientId, Completion, Data, DataKind, DeclineReason, Done,
    Echo, End, Grant, GroupModel, HostState, Join, Leave, Message, Nak, Query, Quit, Registration,
    RegistrationEntry, StatusRequest, StatusType, cancel,
};
use crate::proof::{Proof, Token};
use crate::turn::{HeardData, Turn};
use crate::wire::{DecodeError, HEADER_LEN, decode, encode, encoded_len};

pub(super) struct Vector {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) message: Message,
}

/// Proof in the vectors that have one.
const PROOF: Proof = Proof([1, 2, 3, 4, 5, 6, 7, 8]);

macro_rules! vector {
    ($name:literal, $transmission:literal, $body:expr, $proof:expr) => {{
        let plain: Vector = vector!($name, $transmission, $body);
        Vector { message: Message { proof: Some($proof), ..plain.message }, ..plain }
    }};
    ($name:literal, $transmission:literal, $body:expr) => {
        Vector {
            name: $name,
            bytes: parse(include_str!(concat!("../../../../../vectors/mftp/", $name, ".hex"))),
            message: Message::new($transmission, $body),
        }
    };
}

/// Parses hex octets between spaces; `#` begins a comment.
fn parse(text: &str) -> Vec<u8> {
    let code = text.lines().filter_map(|line| line.split('#').next());
    let octets = code.flat_map(str::split_whitespace);
    octets.map(|octet| u8::from_str_radix(octet, 16).expect("a hex octet")).collect()
}

const CLIENT: ClientId = ClientId(0xC633_6407);
const CLIENT_8: ClientId = ClientId(0xC633_6408);
const GLOBAL: ClientId = ClientId(0xF000_1234);

fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    Ipv4Addr::new(a, b, c, d).into()
}

fn server() -> SocketAddr {
    SocketAddr::new(v4(192, 0, 2, 1), 40_000)
}

fn server_v6() -> SocketAddr {
    SocketAddr::new(Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1).into(), 40_000)
}

fn run(first: u32, count: u32) -> Run {
    Run::new(first, count).expect("a run")
}

/// Returns every vector with its message.
pub(super) fn all() -> Vec<Vector> {
    let mut all = group_management();
    all.extend(announcements());
    all.extend(registrations());
    all.extend(data());
    all.extend(status());
    all.extend(naks());
    all.extend(endings());
    all
}

/// Returns the vector called `name`.
pub(super) fn get(name: &str) -> Vec<u8> {
    all().into_iter().find(|vector| vector.name == name).expect("a vector of this name").bytes
}

fn group_management() -> Vec<Vector> {
    let public = v4(239, 255, 54, 2);
    let data = Some(b"hello".to_vec());
    vec![
        vector!("query", 0, Body::Query(Query { application: "StarBurstMFTP".to_string(), all: false })),
        vector!(
            "join",
            0,
            Body::Join(Join {
                application: "farcast".to_string(),
                public,
                all: true,
                hosts: Some(vec![CLIENT, GLOBAL]),
            })
        ),
        vector!("leave", 0, Body::Leave(Leave { public, hosts: Some(vec![ClientId(0xFABC_DEF0)]) })),
        vector!("echo", 0, Body::Echo(Echo { sequence: 256, data: data.clone(), hosts: Some(vec![CLIENT]) })),
        vector!("echo_response", 0, Body::EchoResponse(Echo { sequence: 256, data, hosts: None })),
    ]
}

fn announcements() -> Vec<Vector> {
    vec![
        vector!("announce", 0x5EED_0001, Body::Announce(full_announcement().into())),
        vector!("announce_minimal", 7, Body::Announce(minimal_announcement().into())),
        vector!("announce_ipv6", 0x5EED_0002, Body::Announce(ipv6_announcement().into())),
        vector!("announce_many", 7, Body::Announce(announcement_to_many().into())),
    ]
}

fn full_announcement() -> Announce {
    Announce {
        turn: None,
        server: server(),
        response: SocketAddr::new(v4(239, 255, 54, 3), 5402),
        private: v4(239, 255, 54, 10),
        announce_duration_s: 180,
        options: AnnounceOptions {
            model: GroupModel::Closed,
            stay_in_group: true,
            restart: false,
            overwrite: false,
            late_entry: true,
        },
        application: "farcast".to_string(),
        block_size: 11_104,
        data_rate_bps: 2_000_000,
        product_name: "report.pdf".to_string(),
        transfer_duration_s: 3600,
        dtu_size: 1432,
        product_size: 1_000_000,
        error_threshold: Some(25),
        user_data: Some(b"Q3".to_vec()),
        hosts: Some(vec![
            (CLIENT, HostState::Pending),
            (CLIENT_8, HostState::Accepted),
            (GLOBAL, HostState::Declined(DeclineReason::AlreadyHave)),
        ]),
        host_set: None,
        backoff_window_ms: Some(1000),
        product_id: Some(core::array::from_fn(|i| i as u8)),
        parity_symbols: Some(64),
        commitment: None,
    }
}

fn minimal_announcement() -> Announce {
    Announce {
        turn: None,
        server: server(),
        response: server(),
        private: v4(239, 255, 54, 2),
        announce_duration_s: 0,
        options: AnnounceOptions {
            model: GroupModel::OpenUnlimited,
            stay_in_group: false,
            restart: false,
            overwrite: false,
            late_entry: false,
        },
        application: "x".to_string(),
        block_size: 488,
        data_rate_bps: 300_000,
        product_name: "a".to_string(),
        transfer_duration_s: 86_400,
        dtu_size: 508,
        product_size: (4 << 30) - 1,
        error_threshold: None,
        user_data: None,
        hosts: None,
        host_set: None,
        backoff_window_ms: None,
        product_id: None,
        parity_symbols: None,
        commitment: None,
    }
}

fn announcement_to_many() -> Announce {
    let hosts = [0, 127, 128, 257, 0x0001_0000, 0xF000_1234, u32::MAX].map(ClientId);
    let set = HostSet::take(HostState::Pending, &mut hosts.into_iter().peekable(), usize::MAX);
    Announce { host_set: set, ..minimal_announcement() }
}

fn ipv6_announcement() -> Announce {
    Announce {
        server: server_v6(),
        response: SocketAddr::new(Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 2).into(), 40_001),
        private: Ipv6Addr::new(0xFF15, 0, 0, 0, 0, 0, 0x5402, 1).into(),
        announce_duration_s: 5,
        options: AnnounceOptions {
            model: GroupModel::OpenLimited,
            stay_in_group: false,
            restart: true,
            overwrite: true,
            late_entry: false,
        },
        application: "farcast".to_string(),
        block_size: 4096,
        data_rate_bps: u32::MAX,
        product_name: "disk.img".to_string(),
        transfer_duration_s: 3600,
        dtu_size: 1412,
        product_size: 5 << 30,
        ..minimal_announcement()
    }
}

fn registrations() -> Vec<Vector> {
    let entry = |client, serial, response| RegistrationEntry { client, serial, response };
    let plain = |entries| Registration {
        heard: None,
        complete: None,
        round: None,
        server: server(),
        entries,
        name: None,
        segments_held: None,
        receive_buffer_bytes: None,
        nonce: None,
    };
    let farcast = Registration {
        name: Some("rx-07".to_string()),
        segments_held: Some(512),
        receive_buffer_bytes: Some(8 << 20),
        ..plain(vec![entry(GLOBAL, None, Ok(()))])
    };
    let nonce = Registration { nonce: Some(PROOF), ..plain(vec![entry(GLOBAL, None, Ok(()))]) };
    let token = Token(core::array::from_fn(|i| 0x10 + i as u8));
    let decline = vec![entry(CLIENT_8, None, Err(DeclineReason::AlreadyHave))];
    let aggregated = vec![
        entry(CLIENT, Some(1), Ok(())),
        entry(CLIENT_8, Some(2), Err(DeclineReason::UnwantedType)),
        entry(GLOBAL, Some(259), Ok(())),
    ];
    vec![
        vector!("registration", 0x5EED_0001, Body::Registration(plain(vec![entry(CLIENT, None, Ok(()))]))),
        vector!("registration_farcast", 0x5EED_0001, Body::Registration(farcast)),
        vector!("registration_decline", 0x5EED_0001, Body::Registration(plain(decline))),
        vector!("registration_aggregated", 0x5EED_0001, Body::Registration(plain(aggregated))),
        vector!("registration_proven", 0x5EED_0001, Body::Registration(nonce), PROOF),
        vector!("grant", 0x5EED_0001, Body::Grant(Grant { client: GLOBAL, token }), PROOF),
    ]
}

fn data() -> Vec<Vector> {
    // Blocks, DTUs and symbols count from 0 in a message and from 1 in the vectors; passes from 1 in both.
    let one = |pass, block, kind, dtu, len| {
        Body::Data(Data { pass, block, kind, dtus: run(dtu, 1), len, last_len: len })
    };
    vec![
        vector!("data", 0x5EED_0001, one(1, 2, DataKind::Source, 487, 13)),
        vector!("data_checksum", 0x5EED_0001, one(2, 0, DataKind::Source, 0, 8)),
        vector!("data_parity", 0x5EED_0001, one(2, 2, DataKind::Parity, 6, 4)),
    ]
}

fn status() -> Vec<Vector> {
    vec![
        vector!(
            "status_request",
            0x5EED_0001,
            Body::StatusRequest(StatusRequest {
                turn: None,
                pass: 2,
                blocks: run(0, 4),
                dtus: run(0, 11_104),
                status: StatusType::All,
                hosts: Some(vec![CLIENT]),
            })
        ),
        vector!(
            "status_request_nak_only",
            0x5EED_0001,
            Body::StatusRequest(StatusRequest {
                turn: None,
                pass: 0,
                blocks: run(1, 1),
                dtus: run(99, 101),
                status: StatusType::NakOnly,
                hosts: None,
            })
        ),
        vector!(
            "ack",
            0x5EED_0001,
            Body::Ack(Ack { server: server(), pass: 2, blocks: run(0, 4), client: CLIENT })
        ),
    ]
}

fn naks() -> Vec<Vector> {
    // The map's length is the block's number of DTUs rounded up to whole bytes.
    let missing = |len, dtus: &[u32]| {
        let mut map = Bitmap::new(len);
        for dtu in dtus {
            assert!(map.insert(dtu - 1), "DTU {dtu} is within the block, and once");
        }
        map
    };
    let nak = |client, pass, block, missing| Nak {
        server: server(),
        client,
        pass,
        block,
        missing,
        parity_held: 0,
        unstored: 0,
    };
    let whole = nak(CLIENT, 1, 1, missing(72, &[1, 8, 9, 64, 65, 72]));
    let partial = nak(GLOBAL, 3, 4, missing(16, &[1, 9, 13]));
    let ipv6 = Nak {
        server: server_v6(),
        parity_held: 4,
        unstored: 0,
        ..nak(ClientId(0xF123_4567), 0, 0, missing(24, &[2, 3, 20]))
    };
    vec![
        vector!("nak", 0x5EED_0001, Body::Nak(whole)),
        vector!("nak_partial", 0x5EED_0001, Body::Nak(partial)),
        vector!("nak_ipv6_parity", 0x5EED_0002, Body::Nak(ipv6)),
    ]
}

fn endings() -> Vec<Vector> {
    let done = Done { round: None, server: server(), client: CLIENT, naked_dtus: 37, duration_s: 95 };
    let abort = |reason, hosts, text| Body::Abort(Abort { reason, hosts, text });
    let quit = |reason, client| Body::Quit(Quit { reason, client, text: None });
    let end = End { server: server(), response: SocketAddr::new(v4(239, 255, 54, 3), 5402) };
    vec![
        vector!("done", 0x5EED_0001, Body::Done(done)),
        vector!(
            "completion",
            0x5EED_0001,
            Body::Completion(Completion { turn: None, hosts: Some(vec![CLIENT, GLOBAL]) })
        ),
        vector!("completion_over", 7, Body::Completion(Completion { turn: None, hosts: None })),
        vector!("abort", 0x5EED_0001, abort(cancel::ABORT_STATUS_TIMEOUT, Some(vec![CLIENT]), None)),
        vector!("abort_text", 0x5EED_0001, abort(cancel::ABORT_SYSTEM, None, Some("disk full".to_string()))),
        vector!("quit", 0x5EED_0001, quit(cancel::QUIT_ERROR_THRESHOLD, Some(CLIENT))),
        vector!("quit_draft", 0x5EED_0001, quit(cancel::QUIT_APPLICATION, None)),
        vector!("end", 0x5EED_0001, Body::End(end)),
    ]
}

#[test]
fn every_vector_decodes_to_its_message() {
    for Vector { name, bytes, message } in all() {
        let packet = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(packet.message, message, "{name}");
        if !matches!(message.body, Body::Data(_)) {
            assert!(packet.payload.is_empty(), "{name}");
        }
    }
}

#[test]
fn every_message_encodes_to_its_vector() {
    for Vector { name, bytes, message } in all() {
        // A driver collects several messages in one buffer.
        let mut out = b"before".to_vec();
        encode(&message, 0, &mut out);
        assert_eq!(encoded_len(&message, 0), bytes.len(), "{name}");
        let mut expected = bytes;
        if matches!(message.body, Body::Data(_)) {
            // The payload is the caller's, and the encoder never uses the checksum of DATA.
            expected.truncate(40);
            expected[6..8].fill(0);
        }
        assert_eq!(out.strip_prefix(b"before"), Some(&*expected), "{name}");
    }
}

#[test]
fn payload_is_found_where_it_stands() {
    let payloads: [(&str, &[u8]); 3] = [
        ("data", b"multicast MFT"),
        ("data_checksum", b"firstDTU"),
        ("data_parity", &[0xDE, 0xAD, 0xBE, 0xEF]),
    ];
    for (name, payload) in payloads {
        let bytes = get(name);
        let range = decode(&bytes).expect("a vector").payload;
        assert_eq!(range.start, 40, "{name}");
        assert_eq!(&bytes[range], payload, "{name}");
    }
}

#[test]
fn every_message_type_has_a_vector_and_every_vector_a_message() {
    let all = all();
    let mut kinds: Vec<u16> =
        all.iter().map(|vector| u16::from_be_bytes([vector.bytes[2], vector.bytes[3]])).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, (1..=0xF).chain([0x15, 0x7F01]).collect::<Vec<_>>());

    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/mftp");
    let files = std::fs::read_dir(directory).expect("the directory of vectors");
    let mut files: Vec<String> =
        files.map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    files.sort_unstable();
    let mut named: Vec<String> = all.iter().map(|vector| std::format!("{}.hex", vector.name)).collect();
    named.sort_unstable();
    assert_eq!(files, named);
}

/// The parameters of turns, written by hand from the table in docs/src/mftp.md.
#[test]
fn a_call_has_its_twelve_octets_and_a_wrong_one_is_refused() {
    let turn = Turn { round: 0x0102, spread_ms: 0x0304, first: 5, last: 0x0607_0809 };
    let message = Message::new(7, Body::Completion(Completion { hosts: None, turn: Some(turn) }));
    let mut bytes = Vec::new();
    encode(&message, 0, &mut bytes);
    let parameter = [0x7F, 0x13, 0, 12, 1, 2, 3, 4, 0, 0, 0, 5, 6, 7, 8, 9];
    assert_eq!(bytes[HEADER_LEN..], parameter);
    assert_eq!(decode(&bytes).map(|packet| packet.message), Ok(message));
    // No checksum, and a last place before the first.
    bytes[6..8].fill(0);
    bytes[HEADER_LEN + 12..].fill(0);
    assert_eq!(decode(&bytes).err(), Some(DecodeError::Value { parameter: 0x7F13 }));
}

#[test]
fn losses_and_rounds_are_read_as_they_are_written() {
    let entry = RegistrationEntry { client: CLIENT, serial: None, response: Ok(()) };
    let heard = HeardData { missed: 1, sent: 0x0203, lost: 4 };
    let registration = Registration {
        server: SocketAddr::from(([10, 0, 0, 1], 5402)),
        entries: vec![entry],
        name: None,
        segments_held: None,
        receive_buffer_bytes: None,
        nonce: None,
        heard: Some(heard),
        complete: None,
        round: Some(9),
    };
    let message = Message::new(7, Body::Registration(registration));
    let mut bytes = Vec::new();
    encode(&message, 0, &mut bytes);
    let tail = [0x7F, 0x14, 0, 12, 0, 0, 0, 1, 0, 0, 2, 3, 0, 0, 0, 4, 0x7F, 0x15, 0, 4, 0, 0, 0, 9];
    assert_eq!(bytes[bytes.len() - tail.len()..], tail);
    assert_eq!(decode(&bytes).map(|packet| packet.message), Ok(message));
    bytes[6..8].fill(0);
    let at = bytes.len() - tail.len() + 12;
    // More lost than sent.
    bytes[at..at + 4].copy_from_slice(&0x0204_u32.to_be_bytes());
    assert_eq!(decode(&bytes).err(), Some(DecodeError::Value { parameter: 0x7F14 }));
}
