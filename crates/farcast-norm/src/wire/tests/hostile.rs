//! Malformed messages, and the error that each is refused with.

use std::vec;
use std::vec::Vec;

use super::vectors::{all, get};
use super::{FIELD_BITS, assert_stable};
use farcast_delivery::Vouched;

use crate::message::{Body, FromSender};
use crate::wire::{DecodeError, Packet, decode};

fn read(datagram: &[u8]) -> Result<Packet, DecodeError> {
    decode(datagram, FIELD_BITS)
}

/// Returns the error of the vector `name` with another value of the octet `at`.
fn with(name: &str, at: usize, octet: u8) -> Option<DecodeError> {
    let mut bytes = get(name);
    bytes[at] = octet;
    read(&bytes).err()
}

#[test]
fn what_is_cut_short_in_its_header_is_refused() {
    for vector in all() {
        let header = usize::from(vector.bytes[1]) * 4;
        for len in 0..header {
            let error = read(&vector.bytes[..len]).expect_err(vector.name);
            let short = matches!(error, DecodeError::Truncated | DecodeError::HeaderLength(_));
            assert!(short, "{} cut to {len}: {error}", vector.name);
        }
    }
}

#[test]
fn headers_that_do_not_hold_what_they_must_are_refused() {
    for vector in all() {
        for words in 0..vector.bytes[1] {
            let mut bytes = vector.bytes.clone();
            bytes[1] = words;
            // A shorter header with extensions may be valid with fewer of them; all others lack something.
            let has_extensions = vector.bytes[1] > 6;
            assert!(read(&bytes).is_err() || has_extensions, "{} in {words} words", vector.name);
            assert_stable(&bytes);
        }
        let mut bytes = vector.bytes.clone();
        bytes[1] = 255;
        assert_eq!(read(&bytes).err(), Some(DecodeError::HeaderLength(255)).filter(|_| bytes.len() < 1020));
    }
}

#[test]
fn each_field_is_refused_by_its_reason() {
    assert_eq!(with("cmd_eot", 0, 0x23), Some(DecodeError::Version(2)));
    assert_eq!(with("cmd_eot", 0, 0x16), Some(DecodeError::Type(6)), "REPORT says nothing");
    assert_eq!(with("cmd_eot", 12, 8), Some(DecodeError::Command(8)));
    assert_eq!(with("cmd_flush", 13, 6), Some(DecodeError::Fec(6)));
    assert_eq!(with("data_fec5_source", 13, 0), Some(DecodeError::Fec(0)));
    assert_eq!(with("data_fec2_m16", 28, 17), Some(DecodeError::FieldSize(17)));
    assert_eq!(with("data_fec2_m16", 28, 1), Some(DecodeError::FieldSize(1)));
    assert_eq!(with("nack_single", 36, 4), Some(DecodeError::Form(4)));
    assert_eq!(with("nack_single", 39, 7), Some(DecodeError::RequestLength(7)));
    assert_eq!(with("nack_single", 39, 9), Some(DecodeError::Truncated), "more than there is");
    assert_eq!(decode(&get("cmd_flush"), 0).err(), None, "m is of no concern to FEC Encoding ID 5");
    assert_eq!(decode(&get("nack_fec2"), 0).err(), Some(DecodeError::FieldSize(0)));
    // A range without an end.
    let mut range = get("nack_single");
    range[36] = 2;
    assert_eq!(read(&range).err(), Some(DecodeError::RequestLength(8)));
    // Lists that end within an entry, and DATA without any.
    let shorter = |name: &str, by: usize| {
        let bytes = get(name);
        read(&bytes[..bytes.len() - by]).err()
    };
    assert_eq!(shorter("cmd_flush_ack", 1), Some(DecodeError::ListLength(7)));
    assert_eq!(shorter("cmd_cc_clr", 1), Some(DecodeError::ListLength(7)));
    assert_eq!(shorter("data_fec5_source", 16), Some(DecodeError::Payload(0)));
    let mut long = get("data_fec5_source");
    long.resize(70_000, 0);
    assert_eq!(read(&long).err(), Some(DecodeError::Payload(70_000 - 32)));
}

/// Returns a vector with `extension` behind its own extensions.
fn extended(name: &str, extension: &[u8]) -> Vec<u8> {
    let mut bytes = get(name);
    let header = usize::from(bytes[1]) * 4;
    bytes.splice(header..header, extension.iter().copied());
    bytes[1] += (extension.len() / 4) as u8;
    bytes
}

#[test]
fn unknown_extensions_are_skipped_and_broken_ones_refused() {
    for vector in all() {
        // One extension with a length field, and one of a word.
        for extension in [&[77, 2, 1, 2, 3, 4, 5, 6][..], &[200, 1, 2, 3], &[1, 1, 0, 0]] {
            let packet = read(&extended(vector.name, extension)).expect(vector.name);
            assert_eq!(packet.message, vector.message, "{}", vector.name);
        }
        for (extension, kind) in [(&[77, 0, 1, 2][..], 77), (&[77, 2, 1, 2], 77)] {
            let error = read(&extended(vector.name, extension)).err();
            assert_eq!(error, Some(DecodeError::ExtensionLength(kind)), "{}", vector.name);
        }
    }
    let fti = &get("data_fec5_source")[20..32];
    assert_eq!(read(&extended("data_fec5_source", fti)).err(), Some(DecodeError::Repeated(64)));
    // Transmission information of FEC Encoding ID 129 in a message of 5.
    let other = &get("data_fec129")[24..40];
    assert_eq!(read(&extended("data_fec5_nofti", other)).err(), Some(DecodeError::ExtensionLength(64)));
    assert_eq!(with("nack_single", 25, 2), Some(DecodeError::ExtensionLength(3)));
}

#[test]
fn what_is_vouched_for_is_ours_alone() {
    let get_info =
        |extension: &[u8]| read(&extended("info_fec5", extension)).map(|packet| packet.message.body);
    // Computed by hand: 12 words, mode 0o640, the mark, the digest, and a second before 1970.
    let mut extension = vec![112, 12, 0x01, 0xA0, b'f', b'c', b's', b't'];
    extension.extend(0..32);
    extension.extend((-1_000_000_000_i64).to_be_bytes());
    let vouched = |body| match body {
        Body::Sender(_, FromSender::Info(info)) => info.vouched,
        other => panic!("{other:?}"),
    };
    let digest = core::array::from_fn(|n| n as u8);
    let said = Vouched { digest, mode: 0o640, mtime_ns: -1_000_000_000 };
    assert_eq!(get_info(&extension).map(vouched), Ok(Some(said)));
    assert_eq!(get_info(&[&extension[..], &extension[..]].concat()), Err(DecodeError::Repeated(112)));
    // Another extension of this type, and a mode that no file has.
    for (at, octet) in [(4, b'F'), (2, 0x0F)] {
        let mut other = extension.clone();
        other[at] = octet;
        assert_eq!(get_info(&other).map(vouched), Ok(None));
    }
    assert_eq!(get_info(&[112, 1, 0, 0]).map(vouched), Ok(None));
}
