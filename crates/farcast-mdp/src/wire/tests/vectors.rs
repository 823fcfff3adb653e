//! A message of each kind in octets, worked out by hand from the tables of draft §3.3 and the toolkit's later layout.

use std::vec;
use std::vec::Vec;

use farcast_core::Run;
use farcast_delivery::Vouched;
use farcast_delivery::nack::NodeId;
use farcast_delivery::nack::Stamp;
use farcast_delivery::nack::quantise::Rtt;

use crate::message::{
    About, Answer, Body, Data, Flags, FromReceiver, FromSender, Head, Info, Mask, Message, ObjectNack, Probe,
    Request,
};
use crate::wire::{decode, encode, encoded_len};

const NODE: NodeId = NodeId(0x0A00_0003);
const HEAD: Head = Head { sequence: 0x0102, grtt: Rtt(0x9D) };

/// An object of 2,500 octets in blocks of two segments with one parity symbol.
const ABOUT: About =
    About { object: 7, size: 2500, ndata: 2, nparity: 1, flags: Flags(Flags::FILE.0 | Flags::INFO.0) };

fn sender(said: FromSender) -> Message {
    Message { source: NODE, body: Body::Sender(HEAD, said) }
}

fn receiver(answer: Answer) -> Message {
    let response = Some(Stamp { seconds: 1, micros: 2 });
    let said = FromReceiver { server: NODE, response, loss: 0x8000, probe: 5, answer };
    Message { source: NodeId(9), body: Body::Receiver(said) }
}

fn data(block: u32, symbol: u32, parity: bool, len: u16, ends_block: bool) -> Message {
    let symbols = Run::one(symbol);
    sender(FromSender::Data(Data {
        about: ABOUT,
        block,
        symbols,
        parity,
        segment_size: 1000,
        len,
        ends_block,
    }))
}

fn info(vouched: Option<Vouched>) -> Message {
    let content = b"name".to_vec();
    sender(FromSender::Info(Info { about: ABOUT, segment_size: 1000, content, vouched }))
}

/// Returns each vector: name, message, its header in hex, and octets of payload.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn all() -> Vec<(&'static str, Message, &'static str, usize)> {
    let nacks = vec![ObjectNack {
        object: 7,
        requests: vec![
            Request::Info,
            Request::Segments { erasures: 2, offset: 2000, mask: Mask(vec![0b1010_0000]) },
            Request::Blocks { offset: 0, mask: Mask(vec![0x80]) },
            Request::Object,
        ],
    }];
    let probe = Probe {
        wildcard: true,
        sequence: 5,
        sent: Stamp { seconds: 1, micros: 2 },
        hold: Stamp { seconds: 3, micros: 4 },
        segment_size: 1000,
        rate: 11_000,
        rtt: Rtt(0x88),
        loss: 0x00FF,
        nodes: vec![NodeId(9)],
    };
    vec![
        ("INFO", info(None), "0209 0a000003 0102 00000007 000009c4 02 01 90 9d 03e8 6e616d65", 0),
        (
            "INFO that vouches",
            info(Some(Vouched { digest: [0xd1; 32], mode: 0o644, mtime_ns: -2 })),
            "0209 0a000003 0102 00000007 000009c4 02 01 90 9d 03e8 6e616d65 00 66637374 01a4 \
             d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1 fffffffffffffffe",
            0,
        ),
        (
            "DATA",
            data(0, 1, false, 1000, true),
            "0309 0a000003 0102 00000007 000009c4 02 01 92 9d 000003e8",
            1000,
        ),
        (
            "DATA that is a runt",
            data(1, 0, false, 500, false),
            "0309 0a000003 0102 00000007 000009c4 02 01 94 9d 000007d0 03e8",
            500,
        ),
        (
            "PARITY of a full block",
            data(0, 2, true, 1000, false),
            "0409 0a000003 0102 00000007 000009c4 02 01 90 9d 00000000 02",
            1000,
        ),
        (
            "PARITY of the last block, which has one segment",
            data(1, 1, true, 1000, false),
            "0409 0a000003 0102 00000007 000009c4 02 01 90 9d 000007d0 01",
            1000,
        ),
        (
            "CMD(FLUSH)",
            sender(FromSender::Flush { eot: true, object: 7 }),
            "0509 0a000003 0102 9d 01 01 00000007",
            0,
        ),
        (
            "CMD(SQUELCH)",
            sender(FromSender::Squelch { sync: 3, invalid: vec![5, 6] }),
            "0509 0a000003 0102 9d 02 00000003 00000005 00000006",
            0,
        ),
        (
            "CMD(ACK_REQ)",
            sender(FromSender::AckReq { object: 7, nodes: vec![NodeId(9)] }),
            "0509 0a000003 0102 9d 03 00000007 00000009",
            0,
        ),
        (
            "CMD(GRTT_REQ)",
            sender(FromSender::Probe(probe)),
            "0509 0a000003 0102 9d 04 01 05 00000001 00000002 00000003 00000004 03e8 00002af8 88 00ff 00000009",
            0,
        ),
        (
            "CMD(NACK_ADV)",
            sender(FromSender::NackAdv(nacks.clone())),
            "0509 0a000003 0102 9d 05 00000007 0013 03 01 02 000007d0 0001 a0 02 00000000 0001 80 04",
            0,
        ),
        (
            "NACK",
            receiver(Answer::Nack(nacks)),
            "0609 00000009 0a000003 00000001 00000002 8000 05 00000007 0013 \
             03 01 02 000007d0 0001 a0 02 00000000 0001 80 04",
            0,
        ),
        (
            "ACK of an object",
            receiver(Answer::Object(7)),
            "0709 00000009 0a000003 00000001 00000002 8000 05 01 00000007",
            0,
        ),
        (
            "ACK of a probe",
            receiver(Answer::Probe),
            "0709 00000009 0a000003 00000001 00000002 8000 05 02 00000000",
            0,
        ),
    ]
}

/// Returns the octets of a vector.
pub(super) fn octets(hex: &str, payload: usize) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let text = core::str::from_utf8(&digits).expect("digits");
    let mut octets: Vec<u8> = (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
        .collect();
    octets.resize(octets.len() + payload, 0x55);
    octets
}

#[test]
fn messages_are_those_of_the_tables() {
    for (name, message, hex, payload) in all() {
        let expected = octets(hex, payload);
        let mut written = Vec::new();
        encode(&message, 0, &mut written);
        assert_eq!(written, expected[..expected.len() - payload], "{name}");
        assert_eq!(encoded_len(&message, 0), expected.len(), "{name}");
        let read = decode(&expected).expect(name);
        assert_eq!(read.message, message, "{name}");
        assert_eq!(read.payload, expected.len() - payload..expected.len(), "{name}");
    }
}

#[test]
fn headers_have_the_lengths_of_the_tables() {
    let of = |name: &str| {
        let (_, _, hex, _) = all().into_iter().find(|(of, ..)| *of == name).expect("a vector");
        octets(hex, 0).len()
    };
    let lengths = [
        ("INFO", 22 + 4),
        ("INFO that vouches", 22 + 4 + 47),
        ("DATA", 24),
        ("DATA that is a runt", 26),
        ("PARITY of a full block", 25),
        ("CMD(FLUSH)", 15),
        ("CMD(SQUELCH)", 14 + 2 * 4),
        ("CMD(ACK_REQ)", 14 + 4),
        ("CMD(GRTT_REQ)", 37 + 4),
        ("CMD(NACK_ADV)", 10 + 6 + 19),
        ("NACK", 21 + 6 + 19),
        ("ACK of an object", 26),
    ];
    for (name, len) in lengths {
        assert_eq!(of(name), len, "{name}");
    }
}
