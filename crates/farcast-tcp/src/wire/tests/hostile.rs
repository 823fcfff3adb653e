//! Octets that are no segment, and the error that each is refused with; options that are passed over.

use std::vec::Vec;

use super::{corrected, hex, hosts, whole, with_options};
use crate::wire::{Addresses, DecodeError, EncodeError, MAX_HEADER_LEN, decode, encode};
use crate::{Options, Payload, SackBlock, SackBlocks, Segment, SequenceNumber, Timestamps};

fn error(octets: &[u8]) -> Option<DecodeError> {
    decode(octets, hosts()).err()
}

/// Reads options that are given as hex.
fn read(options: &str) -> Result<Options, DecodeError> {
    decode(&with_options(&hex(options)), hosts()).map(|(segment, _)| segment.options)
}

fn block(left: u32, right: u32) -> SackBlock {
    SackBlock { left: SequenceNumber(left), right: SequenceNumber(right) }
}

/// A segment with 5 octets of data and options.
fn example() -> Segment {
    Segment {
        options: Options { mss: Some(536), ..Options::default() },
        payload: Payload { offset: 0, len: 5 },
        ..Segment::default()
    }
}

#[test]
fn what_is_cut_short_is_refused() {
    let octets = whole(&Segment { payload: Payload::default(), ..example() }, hosts(), b"");
    for len in 0..20 {
        assert_eq!(error(&octets[..len]), Some(DecodeError::TooShort(len)));
    }
    for len in 20..24 {
        assert_eq!(error(&octets[..len]), Some(DecodeError::HeaderBeyondEnd { offset: 6, len }));
    }
    assert_eq!(error(&octets), None);
}

#[test]
fn a_data_offset_within_the_fixed_header_is_refused() {
    for offset in 0..5u8 {
        let mut octets = with_options(&[]);
        octets[12] = offset << 4;
        assert_eq!(error(&corrected(octets)), Some(DecodeError::DataOffset(offset)));
    }
}

#[test]
fn more_than_an_ip_packet_holds_is_refused() {
    let mut octets = with_options(&[]);
    octets.resize(65_536, 0);
    assert_eq!(error(&octets), Some(DecodeError::TooLong(65_536)));
    octets.truncate(65_535);
    let octets = corrected(octets);
    let (segment, payload) = decode(&octets, hosts()).expect("the longest segment");
    assert_eq!((segment.payload.len, payload.len()), (65_515, 65_515));
}

#[test]
fn any_bit_that_flips_is_noticed() {
    let octets = whole(&example(), hosts(), b"hello");
    for bit in 0..octets.len() * 8 {
        let mut damaged = octets.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = error(&damaged).unwrap_or_else(|| panic!("bit {bit} went unnoticed"));
        // The data offset is checked first: without it the end of the header is unknown.
        if bit / 8 != 12 {
            assert_eq!(error, DecodeError::Checksum, "bit {bit}");
        }
    }
}

#[test]
fn a_segment_for_another_host_has_a_wrong_checksum() {
    let octets = whole(&example(), hosts(), b"hello");
    let Addresses::V4 { source, .. } = hosts() else { unreachable!("IPv4") };
    let destination = "192.0.2.3".parse().expect("an address");
    let other = Addresses::V4 { source, destination };
    assert_eq!(decode(&octets, other).err(), Some(DecodeError::Checksum));
}

#[test]
fn reserved_bits_are_not_looked_at() {
    let mut octets = whole(&example(), hosts(), b"hello");
    octets[12] |= 0x0F;
    let octets = corrected(octets);
    assert_eq!(decode(&octets, hosts()), Ok((example(), &b"hello"[..])));
}

#[test]
fn a_length_that_leads_nowhere_is_refused() {
    for kind in 2..=255u8 {
        for len in 0..2u8 {
            let octets = with_options(&[1, kind, len, 0]);
            assert_eq!(error(&octets), Some(DecodeError::OptionLength { kind, len }));
        }
        for options in [[1, 1, 1, kind], [1, 1, kind, 3], [kind, 5, 0, 0], [kind, 255, 0, 0]] {
            assert_eq!(error(&with_options(&options)), Some(DecodeError::OptionBeyondHeader { kind }));
        }
    }
}

#[test]
fn known_kinds_of_other_lengths_are_passed_over() {
    let mss = Ok(Options { mss: Some(0x0218), ..Options::default() });
    for wrong in [
        "02 03 ff 01 02 04 02 18",                         // an MSS of one octet
        "02 06 ff ff ff ff 01 01 02 04 02 18",             // of four
        "03 02 01 01 02 04 02 18",                         // a window scale of none
        "03 04 05 05 02 04 02 18",                         // of two
        "04 03 00 01 02 04 02 18",                         // SACK permitted with a value
        "08 06 01 01 01 01 01 01 02 04 02 18",             // timestamps of one number
        "05 02 01 01 02 04 02 18",                         // SACK without a block
        "05 0b 01 01 01 01 01 01 01 01 01 01 02 04 02 18", // a block and an octet
    ] {
        assert_eq!(read(wrong), mss, "{wrong}");
    }
}

#[test]
fn unknown_kinds_are_passed_over() {
    // MD5 signature (19), fast open (34), an experiment (253) between known ones.
    let options =
        "22 04 01 02 fd 03 00 03 03 07 01 13 12 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 04 02 01";
    let expected = Options { window_scale: Some(7), sack_permitted: true, ..Options::default() };
    assert_eq!(read(options), Ok(expected));
}

#[test]
fn nothing_is_read_behind_the_end_of_options() {
    assert_eq!(read("00 04 02 00"), Ok(Options::default()));
    assert_eq!(read("04 02 00 ff"), Ok(Options { sack_permitted: true, ..Options::default() }));
}

#[test]
fn of_an_option_that_comes_twice_the_last_counts() {
    let twice = "02 04 00 01 02 04 00 02 03 03 01 03 03 02 01 01";
    let expected = Options { mss: Some(2), window_scale: Some(2), ..Options::default() };
    assert_eq!(read(twice), Ok(expected));
    let blocks = "05 0a 00 00 00 01 00 00 00 02 05 0a 00 00 00 05 00 00 00 09";
    let mut sack = SackBlocks::default();
    sack.push(block(5, 9));
    assert_eq!(read(blocks), Ok(Options { sack, ..Options::default() }));
    assert_eq!(read(&std::format!("{blocks} 05 02 01 01")), read(blocks), "no block says nothing");
}

#[test]
fn a_window_scale_above_14_is_14() {
    for (wire, used) in [("00", 0), ("0e", 14), ("0f", 14), ("ff", 14)] {
        let options = std::format!("03 03 {wire} 01");
        assert_eq!(read(&options), Ok(Options { window_scale: Some(used), ..Options::default() }));
    }
    let options = Options { window_scale: Some(15), ..Options::default() };
    let octets = whole(&Segment { options, ..Segment::default() }, hosts(), b"");
    assert_eq!(octets[20..], [1, 3, 3, 14]);
}

#[test]
fn options_without_padding_may_be_more_than_we_can_write() {
    // 10 + 26 + 3 octets here; with the padding that we write 12 + 28 + 4.
    let numbers = "00 00 00 01 ".repeat(6);
    let read =
        read(&std::format!("08 0a 00 00 00 01 00 00 00 02 05 1a {numbers} 03 03 07 00")).expect("options");
    assert_eq!((read.sack.as_slice().len(), read.wire_len()), (3, 44));
    let segment = Segment { options: read, ..Segment::default() };
    let error = encode(&segment, hosts(), &[], &mut [0; MAX_HEADER_LEN]);
    assert_eq!(error, Err(EncodeError::Options(44)));
}

#[test]
fn what_has_no_encoding_leaves_the_buffer_alone() {
    let mut sack = SackBlocks::default();
    while sack.push(block(1, 2)) {}
    let options = Options { timestamps: Some(Timestamps::default()), sack, ..Options::default() };
    let full = vec_of(65_512);
    let long = Payload { offset: 0, len: 65_512 };
    for (segment, payload, len, expected) in [
        (Segment { options, ..example() }, &full[..5], 60, EncodeError::Options(48)),
        (example(), &full[..4], 60, EncodeError::Payload { claimed: 5, given: 4 }),
        (example(), &full[..5], 23, EncodeError::Buffer { header: 24, buffer: 23 }),
        (Segment { payload: long, ..example() }, &full[..], 60, EncodeError::TooLong(65_536)),
    ] {
        let mut out = vec_of(len);
        assert_eq!(encode(&segment, hosts(), &[payload], &mut out), Err(expected));
        assert_eq!(out, vec_of(len));
    }
}

fn vec_of(len: usize) -> Vec<u8> {
    std::vec![0xAA; len]
}
