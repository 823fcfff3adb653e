//! The frames in `vectors/ppp` were written out from RFC 1661 and 1662 by hand.

use std::vec::Vec;

use super::*;
use crate::framing::{FrameLength, PROTOCOL_IPV4, PROTOCOL_LCP};
use crate::lcp::{self, Code, ConfigurationOption, Packet};

pub(super) struct Vector {
    pub(super) name: &'static str,
    pub(super) framing: Framing,
    pub(super) protocol: u16,
    /// The octets on the line, from flag to flag.
    pub(super) line: Vec<u8>,
}

const FULL: Framing = Framing { accm: 0, ..Framing::UNCONFIGURED };
const FULL_32: Framing = Framing { fcs: Fcs::Fcs32, ..FULL };

macro_rules! vector {
    ($name:literal, $framing:expr, $protocol:expr) => {
        Vector {
            name: $name,
            framing: $framing,
            protocol: $protocol,
            line: parse(include_str!(concat!("../../../../vectors/ppp/", $name, ".hex"))),
        }
    };
}

/// Hex octets between spaces; `#` begins a comment.
fn parse(text: &str) -> Vec<u8> {
    let code = text.lines().filter_map(|line| line.split('#').next());
    let octets = code.flat_map(str::split_whitespace);
    octets.map(|octet| u8::from_str_radix(octet, 16).expect("a hex octet")).collect()
}

/// Every vector with its meaning.
pub(super) fn all() -> Vec<Vector> {
    std::vec![
        vector!("echo_request", FULL, PROTOCOL_LCP),
        vector!("echo_reply", FULL, PROTOCOL_LCP),
        // Configuration packets are framed alike whatever was negotiated.
        vector!("configure_request", Framing::default(), PROTOCOL_LCP),
        vector!("terminate_request", Framing::default(), PROTOCOL_LCP),
        vector!("protocol_reject", Framing::default(), PROTOCOL_LCP),
        vector!("ipv4_compressed", Framing::default(), PROTOCOL_IPV4),
        vector!("ipv4_fcs32", FULL_32, PROTOCOL_IPV4),
    ]
}

/// The information field of a vector.
pub(super) fn information(name: &str) -> Vec<u8> {
    let vectors = all();
    let vector = vectors.iter().find(|vector| vector.name == name).expect("a vector");
    let mut deframer = Deframer::new(vector.framing, 1500);
    deframer.next(&mut &vector.line[..]).expect("a good frame").information.to_vec()
}

#[test]
fn frames_are_read_and_written_as_the_vectors_have_them() {
    for Vector { name, framing, protocol, line } in all() {
        let mut deframer = Deframer::new(framing, 1500);
        let packet = deframer.next(&mut &line[..]).expect(name);
        assert_eq!(packet.protocol, protocol, "{name}");
        let mut written = Vec::new();
        framing.encode(protocol, packet.information, true, &mut written);
        assert_eq!(written, line, "{name}");
        assert_eq!(*deframer.counters(), DeframerCounters { good: 1, ..DeframerCounters::default() });
    }
}

#[test]
fn a_frame_is_measured_as_it_is_written() {
    for Vector { name, framing, protocol, line } in all() {
        let FrameLength { octets, escapes } = framing.measure(protocol, &information(name));
        assert_eq!(octets + escapes + 2, line.len() as u64, "{name}");
        // The first octet of a pair is the only 7D on a line.
        assert_eq!(escapes, line.split(|&octet| octet == 0x7D).count() as u64 - 1, "{name}");
    }
}

#[test]
fn the_two_frames_of_one_datagram_carry_it() {
    let datagram = information("ipv4_compressed");
    assert_eq!((datagram.len(), &datagram[28..]), (31, &[0x7E, 0x7D, 0x7E][..]));
    assert_eq!(information("ipv4_fcs32"), datagram);
}

#[test]
fn link_control_says_what_the_vectors_say() {
    let octets = information("configure_request");
    let packet = Packet::parse(&octets).expect("good");
    assert_eq!((packet.code, packet.identifier, packet.magic_number()), (Code::ConfigureRequest, 1, None));
    let options: Vec<_> = packet.options().map(|option| option.expect("good")).collect();
    let meant = [
        ConfigurationOption::Mru(1500),
        ConfigurationOption::Accm(0),
        ConfigurationOption::MagicNumber(0x127E_347D),
        ConfigurationOption::Pfc,
        ConfigurationOption::Acfc,
    ];
    assert_eq!(options, meant);
    let echo = |name, code, magic| {
        let octets = information(name);
        let packet = Packet::parse(&octets).expect("good");
        assert_eq!((packet.code, packet.identifier, packet.magic_number()), (code, 7, Some(magic)));
        assert_eq!(lcp::echo(code, 7, magic)[..], octets);
    };
    echo("echo_request", Code::EchoRequest, 0x127E_347D);
    echo("echo_reply", Code::EchoReply, 0x5678_9ABC);
    let octets = information("terminate_request");
    let packet = Packet::parse(&octets).expect("good");
    assert_eq!((packet.code, packet.identifier, packet.data), (Code::TerminateRequest, 2, &b"done"[..]));
    let octets = information("protocol_reject");
    let packet = Packet::parse(&octets).expect("good");
    assert_eq!((packet.code, packet.rejected_protocol()), (Code::ProtocolReject, Some(0x8057)));
}

#[test]
fn every_file_is_a_vector() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/ppp");
    let files = std::fs::read_dir(directory).expect("the directory of vectors").count();
    assert_eq!(files, all().len());
}
