use alloc::vec;
use std::prelude::v1::*;

use farcast_core::{Message as _, Run};
use farcast_delivery::Delivery as _;
use proptest::prelude::*;

use super::*;

fn described() -> Description {
    Description {
        session: 0x0102_0304,
        id: core::array::from_fn(|n| n as u8),
        size: 0x0011_2233_4455_6677,
        segment: 1460,
        block: 8192,
        parity: 8191,
        rate_kbps: 1_000_000,
        left_ms: 0x00C0_FFEE,
        overwrite: true,
        over: false,
        name: b"film.mkv".to_vec(),
    }
}

fn bytes(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    encode(message, 0, &mut out);
    out
}

#[test]
fn a_description_looks_like_this() {
    let mut expected = vec![0xF0, 2, 1, 8, 1, 2, 3, 4, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77];
    expected.extend([0x05, 0xB4, 0x20, 0x00, 0x1F, 0xFF, 0, 0, 0x00, 0x0F, 0x42, 0x40]);
    expected.extend([0x00, 0xC0, 0xFF, 0xEE]);
    expected.extend(0..32);
    expected.extend(b"film.mkv");
    let message = Message::Description(described());
    assert_eq!(bytes(&message), expected);
    assert_eq!(message.wire_len(0), expected.len());
    assert_eq!(decode(&expected), Ok(Packet { message, payload: 0..0 }));
}

#[test]
fn symbols_look_like_this() {
    let run = Run::new(0x1234, 2).expect("a run");
    let (session, block, len) = (7, 0x0001_0203, 3);
    let symbols = Symbols { session, round: 2, kind: Kind::Parity, block, run, len, last: 3 };
    let mut out = Vec::new();
    encode(&Message::Symbols(symbols), 1, &mut out);
    assert_eq!(out, [0xF2, 2, 0x12, 0x35, 0, 0, 0, 7, 0, 1, 2, 3]);
    out.extend(b"abc");
    let one = Message::Symbols(Symbols { run: Run::one(0x1235), ..symbols });
    assert_eq!(decode(&out), Ok(Packet { message: one, payload: 12..15 }));
}

#[test]
fn what_cannot_be_is_turned_down() {
    let good = bytes(&Message::Description(described()));
    let with = |at: usize, octet: u8| {
        let mut bad = good.clone();
        bad[at] = octet;
        decode(&bad).map(|_| ())
    };
    assert_eq!(with(1, 1), Err(DecodeError::Version(1)));
    assert_eq!(with(2, 4), Err(DecodeError::Field), "an unknown flag");
    assert_eq!(with(3, 9), Err(DecodeError::Short(72)));
    assert_eq!(with(3, 7), Err(DecodeError::Long));
    assert_eq!(with(23, 1), Err(DecodeError::Field), "reserved");
    assert_eq!(decode(&[]), Err(DecodeError::Short(0)));
    assert_eq!(decode(&[0xF3, 0]), Err(DecodeError::Short(2)));
    assert_eq!(decode(&[0xF4, 0]), Err(DecodeError::Kind(0xF4)));
    assert_eq!(decode(&[0xF1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(DecodeError::Short(12)), "no symbol");
    assert_eq!(decode(&[0xF1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]), Err(DecodeError::Field), "no round");
    for end in 0..good.len() {
        assert!(decode(&good[..end]).is_err(), "{end} octets");
    }
}

#[test]
fn withdrawn_segments_are_read_as_they_were_written() {
    let run = |first, count| Run::new(first, count).expect("a run");
    let gone = |touched: Run, first: u32, last: u32| Gone {
        whole: Run::new(touched.first() + first, touched.count() - first - last),
        touched,
    };
    let gone = [
        gone(run(0, 1), 1, 0),
        gone(run(7, 1), 0, 0),
        gone(run(9, 2), 1, 1),
        gone(run(9, 2), 0, 1),
        gone(run(70, 300), 1, 0),
        gone(run(70, 300), 1, 1),
        gone(run(u32::MAX - 9, 9), 0, 0),
    ];
    let why = "\"d/f\" changed".to_owned();
    let said = Message::Withdrawn(Withdrawn { session: 0x0102_0304, files: 9, gone: gone.into(), why });
    let good = bytes(&said);
    assert_eq!(good.len(), said.wire_len(0));
    assert_eq!(decode(&good).map(|packet| packet.message), Ok(said));
    let with = |at: usize, octet: u8| {
        let mut bad = good.clone();
        bad[at] = octet;
        decode(&bad).map(|_| ())
    };
    assert_eq!(with(1, 0), Err(DecodeError::Long));
    assert_eq!(with(1, 33), Err(DecodeError::Short(good.len())));
    assert_eq!(with(3, 1), Err(DecodeError::Field), "reserved");
    assert_eq!(with(20, 4), Err(DecodeError::Field), "an unknown flag");
    assert_eq!(with(20, 2), Err(DecodeError::Field), "the only segment is the first");
    assert_eq!(with(19, 0), Err(DecodeError::Field), "no segments");
    assert_eq!(with(good.len() - 1, 0xFF), Err(DecodeError::Field), "no text");
    for end in 0..good.len() {
        assert!(decode(&good[..end]).is_err(), "{end} octets");
    }
}

proptest! {
    #[test]
    fn whatever_is_read_is_written_the_same(octets in proptest::collection::vec(any::<u8>(), 0..80), kind in 0xF0..0xF5u8) {
        let mut datagram = octets;
        if let Some(first) = datagram.first_mut() {
            *first = kind;
        }
        if let Ok(Packet { message, payload }) = decode(&datagram) {
            let mut again = bytes(&message);
            again.extend(&datagram[payload]);
            prop_assert_eq!(&again, &datagram);
            prop_assert_eq!(message.wire_len(0), datagram.len());
        }
    }

    #[test]
    fn what_was_cut_is_joined(first in 0..100u32, count in 2..40u32, at in 1..40u32, last in 1..9u16) {
        let run = Run::new(first, count).expect("a run");
        let whole = Symbols { session: 1, round: 1, kind: Kind::Source, block: 3, run, len: 8, last: last.min(8) };
        let at = core::num::NonZeroU32::new(at.min(count - 1)).expect("positive");
        let (mut head, tail) = Message::Symbols(whole).split(at);
        let tail = tail.expect("a tail");
        prop_assert!(head.join(&tail));
        prop_assert_eq!(head, Message::Symbols(whole));
        let other = Message::Symbols(Symbols { kind: Kind::Parity, ..whole });
        let (mut head, _) = Message::Symbols(whole).split(at);
        let (_, tail) = other.split(at);
        prop_assert!(!head.join(&tail.expect("a tail")));
    }
}
