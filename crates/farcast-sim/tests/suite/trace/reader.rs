//! Strict reader of capture files, and of the datagrams in them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farcast_core::Time;
use farcast_mftp::wire;

use super::{Seen, server};

/// Packet of a file.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) at: Time,
    pub(crate) interface: usize,
    pub(crate) octets: usize,
    pub(crate) captured: Vec<u8>,
    pub(crate) comment: Option<String>,
    pub(crate) outbound: bool,
}

/// Contents of a file.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) comment: String,
    pub(crate) interfaces: Vec<String>,
    pub(crate) packets: Vec<Packet>,
}

fn u16_at(octets: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([octets[at], octets[at + 1]])
}

fn u32_at(octets: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(octets[at..at + 4].try_into().unwrap())
}

/// Returns the options of a block, which must end with the end of options exactly at the end of the block.
fn options(mut octets: &[u8]) -> BTreeMap<u16, Vec<u8>> {
    let mut found = BTreeMap::new();
    loop {
        let (code, len) = (u16_at(octets, 0), usize::from(u16_at(octets, 2)));
        if code == 0 {
            assert_eq!((len, octets.len()), (0, 4));
            return found;
        }
        assert!(found.insert(code, octets[4..4 + len].to_vec()).is_none());
        let padded = len.next_multiple_of(4);
        assert!(octets[4 + len..4 + padded].iter().all(|&octet| octet == 0));
        octets = &octets[4 + padded..];
    }
}

fn text(options: &BTreeMap<u16, Vec<u8>>, code: u16) -> Option<String> {
    options.get(&code).map(|value| String::from_utf8(value.clone()).unwrap())
}

/// Reads a file by the format's rules, and checks all redundant fields.
pub(crate) fn read(octets: &[u8]) -> File {
    let mut file = File::default();
    let mut rest = octets;
    while !rest.is_empty() {
        let (kind, len) = (u32_at(rest, 0), u32_at(rest, 4) as usize);
        assert_eq!((len % 4, u32_at(rest, len - 4) as usize), (0, len));
        let body = &rest[8..len - 4];
        match kind {
            0x0A0D_0D0A => {
                assert_eq!((rest.len(), u32_at(body, 0)), (octets.len(), 0x1A2B_3C4D));
                assert_eq!((u16_at(body, 4), u16_at(body, 6)), (1, 0));
                assert_eq!(body[8..16], [0xFF; 8]);
                file.comment = text(&options(&body[16..]), 1).unwrap();
            }
            1 => {
                assert_eq!((u16_at(body, 0), u16_at(body, 2), u32_at(body, 4)), (228, 0, 0));
                let options = options(&body[8..]);
                assert_eq!(options[&9], [9]);
                file.interfaces.push(text(&options, 2).unwrap());
            }
            6 => file.packets.push(packet(body, file.interfaces.len())),
            other => panic!("block type {other}"),
        }
        rest = &rest[len..];
    }
    file
}

fn packet(body: &[u8], interfaces: usize) -> Packet {
    let interface = u32_at(body, 0) as usize;
    assert!(interface < interfaces);
    let nanoseconds = u64::from(u32_at(body, 4)) << 32 | u64::from(u32_at(body, 8));
    let (captured, octets) = (u32_at(body, 12) as usize, u32_at(body, 16) as usize);
    assert!(captured <= octets);
    let options = options(&body[20 + captured.next_multiple_of(4)..]);
    let flags = u32_at(&options[&2], 0);
    assert!(flags == 1 || flags == 2);
    Packet {
        at: Time::from_nanos(nanoseconds),
        interface,
        octets,
        captured: body[20..20 + captured].to_vec(),
        comment: text(&options, 1),
        outbound: flags == 2,
    }
}

/// Returns `true` if a part with its checksum is correct: then its 16-bit words sum to a multiple of 65,535.
fn sums_up(parts: &[&[u8]]) -> bool {
    let part = |octets: &&[u8]| {
        octets.chunks(2).map(|w| u64::from(w[0]) * 256 + u64::from(*w.get(1).unwrap_or(&0))).sum::<u64>()
    };
    let sum: u64 = parts.iter().map(part).sum();
    sum > 0 && sum.is_multiple_of(65_535)
}

/// Returns the datagram in a packet, and its IPv4 identification; octets that were cut off are zeros.
pub(super) fn datagram(file: &File, packet: &Packet) -> (Seen, u16) {
    let mut octets = packet.captured.clone();
    octets.resize(packet.octets, 0);
    let word = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
    // Version 4 with five words of header, no service bits; whole; UDP.
    assert_eq!((octets[0], octets[1], word(6), octets[9]), (0x45, 0, 0, 17));
    assert_eq!(usize::from(word(2)), packet.octets);
    assert!(sums_up(&[&octets[..20]]), "IPv4 checksum of {packet:?}");
    let udp = &octets[20..];
    assert_eq!(usize::from(word(24)), udp.len());
    assert_ne!(word(26), 0);
    assert!(sums_up(&[&octets[12..20], &[0, 17], &octets[24..26], udp]), "UDP checksum of {packet:?}");
    let address = |ip: usize, port: usize| {
        let ip: [u8; 4] = octets[ip..ip + 4].try_into().unwrap();
        SocketAddr::from((ip, word(port)))
    };
    let decoded = wire::decode(&udp[8..]).unwrap();
    let interface = if file.interfaces[packet.interface] == "sender" { "sender" } else { "receivers" };
    let seen = Seen {
        at: packet.at,
        interface,
        source: address(12, 20),
        destination: address(16, 22),
        message: format!("{:?}", decoded.message),
    };
    assert_eq!(packet.outbound, interface == "receivers" || seen.source == server());
    (seen, word(4))
}
