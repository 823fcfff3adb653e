//! Vectors of `vectors/norm`, most of them captured from NRL's library, and their meanings.

use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use farcast_core::Run;

use super::{FIELD_BITS, encode_whole};
use crate::message::{
    Answer, Body, Data, Fec, Feedback, Flags, Form, FromReceiver, FromSender, Fti, Info, Level, Message,
    NodeId, Point, Probe, ProbedNode, Request, Stamp, Symbol, Terms, cc,
};
use crate::quantise::{GroupSize, Loss, Rate, Rtt};
use crate::wire::{decode, encode, encoded_len};

pub(super) struct Vector {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) message: Message,
}

macro_rules! vector {
    ($name:literal, $message:expr) => {
        Vector {
            name: $name,
            bytes: parse(include_str!(concat!("../../../../../vectors/norm/", $name, ".hex"))),
            message: $message,
        }
    };
}

/// Parses hex octets between spaces; `#` begins a comment.
fn parse(text: &str) -> Vec<u8> {
    let code = text.lines().filter_map(|line| line.split('#').next());
    let octets = code.flat_map(str::split_whitespace);
    octets.map(|octet| u8::from_str_radix(octet, 16).expect("a hex octet")).collect()
}

/// Returns every vector with its meaning.
pub(super) fn all() -> Vec<Vector> {
    let mut all = data();
    all.extend(commands());
    all.extend(probes());
    all.extend(nacks());
    all.extend(acks());
    all
}

/// Returns the vector called `name`.
pub(super) fn get(name: &str) -> Vec<u8> {
    all().into_iter().find(|vector| vector.name == name).expect("a vector of this name").bytes
}

/// Returns a message of node 1 with this GRTT byte.
fn from_1(sequence: u16, grtt: u8, said: FromSender) -> Message {
    let terms = Terms { instance: 0x1234, grtt: Rtt(grtt), backoff: 4, group: GroupSize::of(1000) };
    Message { source: NodeId(1), sequence, body: Body::Sender(terms, said) }
}

/// Returns a message of a receiver to node 1.
fn to_1(source: u32, stamp: (u32, u32), feedback: Feedback, answer: Answer) -> Message {
    let said = FromReceiver {
        sender: NodeId(1),
        instance: 0x1234,
        response: Some(Stamp { seconds: stamp.0, micros: stamp.1 }),
        feedback: Some(feedback),
        answer,
    };
    Message { source: NodeId(source), sequence: 0, body: Body::Receiver(said) }
}

fn feedback(sequence: u16, flags: u8, rtt: u8, loss: u32, rate: u16) -> Feedback {
    Feedback { sequence, flags, rtt: Rtt(rtt), loss: Loss(loss), rate: Rate(rate) }
}

fn fti(size: u64, segment_size: u16, max_block_len: u16, last: u16) -> Fti {
    Fti { size, segment_size, max_block_len, last, instance: 0, group: 1 }
}

fn point(fec: Fec, block: u32, symbol: u16) -> Point {
    Point { fec, object: 0, symbol: Symbol { block, block_len: None, symbol } }
}

/// Returns DATA of object 0, block 0.
fn symbol(flags: u8, fec: Fec, symbol: u32, fti: Option<Fti>, len: u16) -> Data {
    let symbols = Run::one(symbol);
    Data { flags: Flags(flags), fec, object: 0, block: 0, block_len: None, symbols, fti, len, last_len: len }
}

fn data() -> Vec<Vector> {
    let data = |sequence, grtt, data| from_1(sequence, grtt, FromSender::Data(data));
    let small_block = Fec::SmallBlock;
    let parity = Data { block_len: Some(4), ..symbol(0, small_block, 4, Some(fti(112, 16, 4, 4)), 16) };
    let gf16 = Fec::ReedSolomon(16);
    let stream = |symbol_number, len| symbol(0x20, Fec::ReedSolomon8, symbol_number, Some(stream_fti()), len);
    let info = |flags, fti, content: &[u8]| {
        let (flags, content) = (Flags(flags), content.to_vec());
        FromSender::Info(Info {
            flags,
            fec: Fec::ReedSolomon8,
            object: 0,
            fti: Some(fti),
            vouched: None,
            content,
        })
    };
    vec![
        vector!(
            "data_fec5_source",
            data(2, 0x88, symbol(0, Fec::ReedSolomon8, 1, Some(fti(112, 16, 4, 4)), 16))
        ),
        vector!("data_fec5_nofti", data(2, 0x88, symbol(0x44, Fec::ReedSolomon8, 0, None, 512))),
        vector!("data_fec129", data(5, 0x88, parity)),
        vector!("data_fec2_m16", data(5, 0x88, symbol(0, gf16, 4, Some(fti(112, 16, 4, 252)), 16))),
        vector!("data_stream_msgstart", data(1, 0x7F, stream(0, 41))),
        vector!("data_stream_end", data(13, 0x7E, stream(11, 8))),
        vector!("info_fec5", from_1(1, 0x94, info(0x14, fti(20_000, 512, 16, 4), b"f20k.bin"))),
        vector!("info_fec5_syn", from_1(1, 0x88, info(0x44, fti(3000, 512, 16, 2), b"hello"))),
    ]
}

fn stream_fti() -> Fti {
    fti(65_536, 512, 16, 4)
}

fn commands() -> Vec<Vector> {
    let flush = |point, ackers: &[u32]| {
        let ackers = ackers.iter().copied().map(NodeId).collect();
        FromSender::Flush { point, ackers }
    };
    let rs = Fec::ReedSolomon8;
    let block_len = Symbol { block: 1, block_len: Some(6), symbol: 5 };
    let after = Point { object: 1, ..point(rs, 0, 0) };
    let adv = |feedback, requests| FromSender::RepairAdv { flags: 0, feedback: Some(feedback), requests };
    let asked = vec![
        segments(Form::Items, &[(0, 14)]),
        segments(Form::Items, &[(1, 7), (1, 9), (1, 10)]),
        segments(Form::Ranges, &[(1, 13), (1, 16)]),
    ];
    vec![
        vector!("cmd_flush", from_1(42, 0x94, flush(point(rs, 2, 12), &[]))),
        vector!("cmd_flush_ack", from_1(3, 0x7F, flush(point(rs, 0, 0), &[2, 3]))),
        vector!(
            "cmd_flush_fec129",
            from_1(18, 0x7F, flush(Point { symbol: block_len, ..point(Fec::SmallBlock, 0, 0) }, &[]))
        ),
        vector!("cmd_eot", from_1(42, 0x93, FromSender::Eot)),
        vector!("cmd_squelch", from_1(62, 0x87, FromSender::Squelch { point: after, invalid: vec![] })),
        vector!("cmd_repair_adv_cc", from_1(1, 0x7F, adv(feedback(0x16B, 0, 0x3F, 0x0600, 1), vec![]))),
        vector!(
            "cmd_repair_adv_nack",
            from_1(32, 0x7F, adv(feedback(0x16B, 0, 0x3D, 0x0E00, 0x2484), asked))
        ),
        vector!(
            "cmd_ack_req",
            from_1(43, 0x93, FromSender::AckReq { kind: 16, id: 7, ackers: vec![NodeId(2)] })
        ),
        vector!("cmd_application", from_1(10, 0x7E, FromSender::Application(b"CMDHELLO".to_vec()))),
    ]
}

fn probes() -> Vec<Vector> {
    let probe = |flags, sequence, (seconds, micros), rate, nodes| {
        let sent = Stamp { seconds, micros };
        FromSender::Probe(Probe { flags, sequence, sent, rate: Some(Rate(rate)), nodes })
    };
    let clr = ProbedNode {
        node: NodeId(2),
        flags: cc::START | cc::RTT | cc::CLR,
        rtt: Rtt(0x3F),
        rate: Rate(0x2783),
    };
    vec![
        vector!("cmd_cc_default", from_1(0, 0x94, probe(0, 0, (0x6B01_E9F5, 0x000D_C2AB), 0xA004, vec![]))),
        vector!("cmd_cc_syn", from_1(0, 0x88, probe(1, 0, (0x6B01_EA8B, 0x0006_6528), 0x6004, vec![]))),
        vector!("cmd_cc_clr", from_1(7, 0x98, probe(0, 3, (0x6B01_E9FF, 0x0005_D537), 0x2783, vec![clr]))),
    ]
}

/// Returns a request for symbols (block, symbol) of object 0 under FEC Encoding ID 5.
fn segments(form: Form, symbols: &[(u32, u16)]) -> Request {
    let points = symbols.iter().map(|&(block, symbol)| point(Fec::ReedSolomon8, block, symbol)).collect();
    Request { form, level: Level::SEGMENT, points }
}

fn nacks() -> Vec<Vector> {
    let nack = |source, stamp, feedback, requests| to_1(source, stamp, feedback, Answer::Nack(requests));
    let lossy = |rate, loss| feedback(0, 0, 0x94, loss, rate);
    let gf16 = [12, 13].map(|symbol| point(Fec::ReedSolomon(16), 0, symbol)).to_vec();
    let with_info = |form, symbols: &[(u32, u16)]| Request {
        level: Level::SEGMENT.with(Level::INFO),
        ..segments(form, symbols)
    };
    let unicast = vec![
        segments(Form::Items, &[(0, 14)]),
        segments(Form::Items, &[(1, 7), (1, 9), (1, 10)]),
        segments(Form::Ranges, &[(1, 13), (1, 16)]),
    ];
    let ranges = vec![
        segments(Form::Items, &[(0, 14)]),
        segments(Form::Items, &[(1, 8), (1, 10), (1, 11)]),
        segments(Form::Ranges, &[(1, 13), (1, 16)]),
    ];
    let infos = vec![
        with_info(Form::Items, &[(0, 4)]),
        with_info(Form::Items, &[(1, 4), (1, 5)]),
        with_info(Form::Ranges, &[(2, 3), (2, 5)]),
    ];
    vec![
        vector!(
            "nack_single",
            nack(
                3,
                (0x6B01_EA03, 0x000A_A6CE),
                lossy(0x2824, 0xC798),
                vec![segments(Form::Items, &[(1, 15)])]
            )
        ),
        vector!("nack_items_ranges", nack(3, (0x6B01_EA03, 0x0002_20C5), lossy(0x33E4, 0x30C3), ranges)),
        vector!("nack_unicast", nack(3, (0x6B01_EA1F, 0x000E_2633), lossy(0x2484, 0x5555), unicast)),
        vector!("nack_info_plus_segments", nack(2, (0x6B01_ECB1, 0x0002_3461), lossy(0x3203, 0x7507), infos)),
        vector!(
            "nack_fec2",
            nack(
                2,
                (0x6B01_EA39, 0x0005_DC81),
                feedback(0, 0x20, 0x94, 0x0303, 0xB5E3),
                vec![Request { form: Form::Items, level: Level::SEGMENT, points: gf16 }]
            )
        ),
    ]
}

fn acks() -> Vec<Vector> {
    let of_probe = Answer::Ack { kind: 1, id: 0, content: vec![] };
    let flushed = Answer::Flushed { id: 0, point: point(Fec::ReedSolomon8, 0, 0) };
    let start = |rate| feedback(0, cc::START, 0x94, 0, rate);
    vec![
        vector!("ack_cc_start", to_1(2, (0x6B01_E9F6, 0x000A_6D82), start(0x20F5), of_probe.clone())),
        vector!(
            "ack_cc_clr",
            to_1(
                2,
                (0x6B01_E9FF, 0x0005_D541),
                feedback(3, cc::START | cc::RTT | cc::CLR, 0x3F, 0, 0x2783),
                of_probe.clone()
            )
        ),
        vector!(
            "ack_cc_loss",
            to_1(2, (0x6B01_EA39, 0x000D_E1BF), feedback(1, 0x20, 0x94, 0x0563_B48C, 0xB5E3), of_probe)
        ),
        vector!("ack_flush", to_1(2, (0x6B01_EA26, 0x000A_781F), start(0x3063), flushed)),
    ]
}

#[test]
fn every_vector_decodes_to_its_message() {
    for Vector { name, bytes, message } in all() {
        let packet = decode(&bytes, FIELD_BITS).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(packet.message, message, "{name}");
        assert_eq!(packet.payload.is_empty(), message.data().is_none(), "{name}");
    }
}

#[test]
fn every_message_encodes_to_its_vector() {
    for Vector { name, bytes, message } in all() {
        let packet = decode(&bytes, FIELD_BITS).expect("decodes, as another test says");
        assert_eq!(encode_whole(&packet, &bytes), bytes, "{name}");
        // A driver collects several messages in one buffer.
        let mut out = b"before".to_vec();
        encode(&message, 0, &mut out);
        let header = bytes.len() - packet.payload.len();
        assert_eq!(out.strip_prefix(b"before"), Some(&bytes[..header]), "{name}");
        assert_eq!(encoded_len(&message, 0), bytes.len(), "{name}");
    }
}

#[test]
fn a_block_has_as_many_symbols_as_the_message_says() {
    let source_symbols = |name| {
        let packet = decode(&get(name), FIELD_BITS).expect("a vector");
        packet.message.data().expect("DATA").source_symbols()
    };
    // 112 octets in segments of 16 and blocks of at most 4 make blocks of 4 and 3.
    assert_eq!(source_symbols("data_fec5_source"), Some(4));
    assert_eq!(source_symbols("data_fec129"), Some(4));
    assert_eq!(source_symbols("data_fec2_m16"), Some(4));
    assert_eq!(source_symbols("data_fec5_nofti"), None);
}

#[test]
fn every_vector_is_here() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/norm");
    let files = std::fs::read_dir(directory).expect("the directory of vectors");
    let mut files: Vec<String> =
        files.map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    files.sort_unstable();
    let mut named: Vec<String> = all().iter().map(|vector| vector.name.to_string() + ".hex").collect();
    named.sort_unstable();
    assert_eq!(files, named);
}
