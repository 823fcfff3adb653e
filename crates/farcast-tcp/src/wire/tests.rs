//! The codec against segments of a real kernel, a naive checksum, tshark, and hostile octets.

mod hostile;
mod properties;
mod tshark;
mod vectors;

use core::net::IpAddr;
use std::vec::Vec;

use super::{Addresses, HEADER_LEN, MAX_HEADER_LEN, append_header, encode};
use crate::{SackBlock, Segment, SequenceNumber, Timestamps};

/// Hosts between which the tests' segments go.
fn hosts() -> Addresses {
    addresses("192.0.2.1", "192.0.2.2")
}

fn addresses(source: &str, destination: &str) -> Addresses {
    let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
    Addresses::new(ip(source), ip(destination)).expect("one family")
}

/// Hex octets between spaces.
fn hex(text: &str) -> Vec<u8> {
    let octets = text.split_whitespace();
    octets.map(|octet| u8::from_str_radix(octet, 16).expect("a hex octet")).collect()
}

/// The whole segment as octets.
fn whole(segment: &Segment, addresses: Addresses, payload: &[u8]) -> Vec<u8> {
    let mut octets = std::vec![0xEE; MAX_HEADER_LEN];
    let len = encode(segment, addresses, &[payload], &mut octets).expect("it has an encoding");
    octets.truncate(len);
    octets.extend_from_slice(payload);
    octets
}

/// The checksum of `octets`, whose own field may hold anything, as RFC 1071 section 4.1 computes it: word by word over
/// a pseudo header and the segment laid out as RFC 9293 section 3.1 and RFC 8200 section 8.1 show them.
fn naive_checksum(octets: &[u8], addresses: Addresses) -> u16 {
    let mut all: Vec<u8> = Vec::new();
    match addresses {
        Addresses::V4 { source, destination } => {
            all.extend(source.octets());
            all.extend(destination.octets());
            all.extend([0, 6]);
            all.extend((octets.len() as u16).to_be_bytes());
        }
        Addresses::V6 { source, destination } => {
            all.extend(source.octets());
            all.extend(destination.octets());
            all.extend((octets.len() as u32).to_be_bytes());
            all.extend([0, 0, 0, 6]);
        }
    }
    let start = all.len();
    all.extend(octets);
    all[start + 16..start + 18].fill(0);
    if all.len() % 2 == 1 {
        all.push(0);
    }
    let mut sum = 0u32;
    for word in all.chunks(2) {
        sum += u32::from(word[0]) * 256 + u32::from(word[1]);
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// A segment with `options` as they stand, padded by nothing, and a right checksum.
fn with_options(options: &[u8]) -> Vec<u8> {
    assert!(options.len().is_multiple_of(4) && options.len() <= 40, "whole words that fit");
    let mut octets = std::vec![0; HEADER_LEN];
    octets[12] = (5 + options.len() as u8 / 4) << 4;
    octets.extend(options);
    corrected(octets)
}

fn corrected(mut octets: Vec<u8>) -> Vec<u8> {
    let sum = naive_checksum(&octets, hosts());
    octets[16..18].copy_from_slice(&sum.to_be_bytes());
    octets
}

#[test]
fn a_header_without_its_data_is_the_same_but_for_the_checksum() {
    let mut segment = Segment { sequence: SequenceNumber(7), window: 9, ..Segment::default() };
    segment.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
    segment.payload.len = 3;
    let mut whole = whole(&segment, hosts(), b"abc");
    whole.truncate(segment.header_len());
    whole[16..18].fill(0);
    let mut header = Vec::from([1]);
    append_header(&segment, &mut header);
    assert_eq!(header[1..], whole);
    // Options that fit no header leave none.
    segment.options.mss = Some(1460);
    while segment.options.sack.push(SackBlock::default()) {}
    append_header(&segment, &mut header);
    assert_eq!(header.len(), 1 + whole.len());
}
