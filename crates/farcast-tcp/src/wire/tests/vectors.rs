//! Segments that two Linux kernels (6.18) sent each other, over Ethernet without checksum offload. tshark has read the
//! fields that are written out here.

use std::vec::Vec;

use super::{addresses, hex, naive_checksum, whole};
use crate::wire::checksum::Checksum;
use crate::wire::{Addresses, decode};
use crate::{Flags, Options, Payload, SackBlock, SackBlocks, Segment, SequenceNumber, Timestamps};

struct Vector {
    name: &'static str,
    addresses: Addresses,
    octets: Vec<u8>,
    segment: Segment,
    payload: &'static [u8],
}

/// A segment between two ports with its numbers.
fn segment(ports: (u16, u16), numbers: (u32, u32), flags: Flags, window: u16) -> Segment {
    Segment {
        source_port: ports.0,
        destination_port: ports.1,
        sequence: SequenceNumber(numbers.0),
        acknowledgment: SequenceNumber(numbers.1),
        flags,
        window,
        ..Segment::default()
    }
}

fn timestamps(value: u32, echo: u32) -> Timestamps {
    Timestamps { value, echo }
}

/// Blocks as octets from the first octet of data, which has the number behind `syn`.
fn blocks(syn: u32, pairs: &[(u32, u32)]) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    for (left, right) in pairs {
        let (left, right) = (SequenceNumber(syn).plus(*left), SequenceNumber(syn).plus(*right));
        assert!(blocks.push(SackBlock { left, right }), "at most four");
    }
    blocks
}

fn client() -> Addresses {
    addresses("192.0.2.1", "192.0.2.2")
}

fn server() -> Addresses {
    addresses("192.0.2.2", "192.0.2.1")
}

fn client_6() -> Addresses {
    addresses("2001:db8::1", "2001:db8::2")
}

fn all() -> Vec<Vector> {
    let mut all = handshakes();
    all.extend(selective());
    all.extend(data());
    all
}

fn handshakes() -> Vec<Vector> {
    let syn_ack = Flags::SYN.with(Flags::ACK);
    let full =
        Options { mss: Some(1460), window_scale: Some(10), sack_permitted: true, ..Options::default() };
    std::vec![
        Vector {
            name: "SYN with everything",
            addresses: client(),
            octets: hex(
                "e7 30 13 88 17 31 57 af 00 00 00 00 a0 02 fa f0 f4 f3 00 00 02 04 05 b4 04 02 08 0a bf a5 aa d5
                 00 00 00 00 01 03 03 0a"
            ),
            segment: Segment {
                options: Options { timestamps: Some(timestamps(3_215_305_429, 0)), ..full },
                ..segment((59_184, 5000), (389_109_679, 0), Flags::SYN, 64_240)
            },
            payload: b"",
        },
        Vector {
            name: "SYN and ACK with everything",
            addresses: server(),
            octets: hex(
                "13 88 e7 30 d6 e4 ba 41 17 31 57 b0 a0 12 fe 88 66 c0 00 00 02 04 05 b4 04 02 08 0a 0b e1 ed 82
                 bf a5 aa d5 01 03 03 0a"
            ),
            segment: Segment {
                options: Options { timestamps: Some(timestamps(199_355_778, 3_215_305_429)), ..full },
                ..segment((5000, 59_184), (3_605_314_113, 389_109_680), syn_ack, 65_160)
            },
            payload: b"",
        },
        Vector {
            name: "SYN without timestamps",
            addresses: client(),
            octets: hex("e7 38 13 88 66 f4 8e 1d 00 00 00 00 80 02 fa f0 00 47 00 00 02 04 05 b4 01 01 04 02 01 03 03 0a"),
            segment: Segment {
                options: full,
                ..segment((59_192, 5000), (1_727_303_197, 0), Flags::SYN, 64_240)
            },
            payload: b"",
        },
        Vector {
            name: "SYN without SACK, over IPv6",
            addresses: client_6(),
            octets: hex(
                "8a 96 13 88 69 a4 9a 5a 00 00 00 00 a0 02 fd 20 30 d4 00 00 02 04 05 a0 01 01 08 0a f3 2c 2c 5e
                 00 00 00 00 01 03 03 0a"
            ),
            segment: Segment {
                options: Options {
                    mss: Some(1440),
                    sack_permitted: false,
                    timestamps: Some(timestamps(4_079_758_430, 0)),
                    ..full
                },
                ..segment((35_478, 5000), (1_772_395_098, 0), Flags::SYN, 64_800)
            },
            payload: b"",
        },
        Vector {
            name: "SYN with an MSS alone",
            addresses: client(),
            octets: hex("e7 48 13 88 2d 08 f8 f2 00 00 00 00 60 02 fa f0 f8 65 00 00 02 04 05 b4"),
            segment: Segment {
                options: Options { mss: Some(1460), ..Options::default() },
                ..segment((59_208, 5000), (755_562_738, 0), Flags::SYN, 64_240)
            },
            payload: b"",
        },
        Vector {
            name: "refusal",
            addresses: server(),
            octets: hex("13 88 e7 48 00 00 00 00 2d 08 f8 f3 50 14 00 00 0b 00 00 00"),
            segment: segment((5000, 59_208), (0, 755_562_739), Flags::RST.with(Flags::ACK), 0),
            payload: b"",
        },
    ]
}

fn selective() -> Vec<Vector> {
    std::vec![
        Vector {
            name: "three blocks with timestamps",
            addresses: server(),
            octets: hex(
                "13 88 e7 30 d6 e4 ba 42 17 31 5d 58 f0 10 00 4b d4 f3 00 00 01 01 08 0a 0b e1 ed 83 bf a5 aa d5
                 01 01 05 1a 17 31 7f 48 17 31 84 f0 17 31 6e 50 17 31 79 a0 17 31 63 00 17 31 68 a8"
            ),
            segment: Segment {
                options: Options {
                    timestamps: Some(timestamps(199_355_779, 3_215_305_429)),
                    sack: blocks(389_109_679, &[(10_137, 11_585), (5793, 8689), (2897, 4345)]),
                    ..Options::default()
                },
                ..segment((5000, 59_184), (3_605_314_114, 389_111_128), Flags::ACK, 75)
            },
            payload: b"",
        },
        Vector {
            name: "three blocks without timestamps",
            addresses: server(),
            octets: hex(
                "13 88 e7 38 44 ad 48 f0 66 f4 93 d2 c0 10 00 4b c8 9e 00 00 01 01 05 1a 66 f4 b6 0a 66 f4 bb be
                 66 f4 a4 ee 66 f4 b0 56 66 f4 99 86 66 f4 9f 3a"
            ),
            segment: Segment {
                options: Options {
                    sack: blocks(1_727_303_197, &[(10_221, 11_681), (5841, 8761), (2921, 4381)]),
                    ..Options::default()
                },
                ..segment((5000, 59_192), (1_152_207_088, 1_727_304_658), Flags::ACK, 75)
            },
            payload: b"",
        },
    ]
}

fn data() -> Vec<Vector> {
    let push = Flags::PSH.with(Flags::ACK);
    let payload = Payload { offset: 0, len: 3 };
    std::vec![
        Vector {
            name: "three octets",
            addresses: server(),
            octets: hex(
                "13 88 e7 30 d6 e4 ba 42 17 31 86 92 80 18 00 50 8f d8 00 00 01 01 08 0a 0b e1 ee 51 bf a5 ab a4
                 6f 64 64"
            ),
            segment: Segment {
                options: Options {
                    timestamps: Some(timestamps(199_355_985, 3_215_305_636)),
                    ..Options::default()
                },
                payload,
                ..segment((5000, 59_184), (3_605_314_114, 389_121_682), push, 80)
            },
            payload: b"odd",
        },
        Vector {
            name: "three octets over IPv6",
            addresses: client_6(),
            octets: hex(
                "8a 96 13 88 69 a4 9a 5b d4 d3 60 fe 80 18 00 40 a1 89 00 00 01 01 08 0a f3 2c 2c 5f 81 ab 0f d3
                 78 78 78"
            ),
            segment: Segment {
                options: Options {
                    timestamps: Some(timestamps(4_079_758_431, 2_175_471_571)),
                    ..Options::default()
                },
                payload,
                ..segment((35_478, 5000), (1_772_395_099, 3_570_622_718), push, 64)
            },
            payload: b"xxx",
        },
    ]
}

#[test]
fn every_vector_decodes_to_its_segment() {
    for Vector { name, addresses, octets, segment, payload } in all() {
        let decoded = decode(&octets, addresses).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(decoded, (segment, payload), "{name}");
    }
}

#[test]
fn every_segment_encodes_to_its_vector() {
    for Vector { name, addresses, octets, segment, payload } in all() {
        assert_eq!(whole(&segment, addresses, payload), octets, "{name}");
        assert_eq!(segment.header_len() + payload.len(), octets.len(), "{name}");
    }
}

#[test]
fn the_naive_checksum_agrees_with_the_kernels() {
    for Vector { name, addresses, octets, .. } in all() {
        assert_eq!(naive_checksum(&octets, addresses).to_be_bytes(), octets[16..18], "{name}");
    }
}

#[test]
fn four_blocks_fill_the_options_by_hand() {
    let sack = blocks(0, &[(40, 50), (30, 35), (20, 25), (1, 2)]);
    let segment = Segment { options: Options { sack, ..Options::default() }, ..Segment::default() };
    let octets = whole(&segment, client(), b"");
    let options = hex("01 01 05 22 00 00 00 28 00 00 00 32 00 00 00 1e 00 00 00 23 00 00 00 14 00 00 00 19
         00 00 00 01 00 00 00 02");
    assert_eq!(octets[12], 0xE0);
    assert_eq!(octets[20..], options);
}

#[test]
fn the_sum_of_rfc_1071_section_3() {
    // The sum is ddf2; the field takes its complement.
    let octets = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
    for cut in 0..=octets.len() {
        let mut checksum = Checksum::new();
        checksum.add(&octets[..cut]);
        checksum.add(&octets[cut..]);
        assert_eq!(checksum.finish(), !0xDDF2, "cut at {cut}");
    }
}
