//! Every segment survives encoding and decoding; arbitrary octets are read or refused.

use core::net::IpAddr;
use std::vec::Vec;

use proptest::collection::vec as list;
use proptest::option::of as maybe;
use proptest::prelude::*;

use super::{corrected, hosts, naive_checksum, whole};
use crate::wire::checksum::Checksum;
use crate::wire::{Addresses, EncodeError, MAX_OPTIONS_LEN, decode, encode};
use crate::{Flags, Options, Payload, SackBlock, SackBlocks, Segment, SequenceNumber, Timestamps};

/// Every combination of options that fits a header.
pub(super) fn options() -> impl Strategy<Value = Options> {
    let timestamps = maybe(any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo }));
    let blocks = list(any::<(u32, u32)>(), 0..=SackBlocks::MOST).prop_map(|numbers| {
        let mut blocks = SackBlocks::default();
        for (left, right) in numbers {
            blocks.push(SackBlock { left: SequenceNumber(left), right: SequenceNumber(right) });
        }
        blocks
    });
    (maybe(any::<u16>()), maybe(0..=14u8), any::<bool>(), timestamps, blocks)
        .prop_map(|(mss, window_scale, sack_permitted, timestamps, sack)| Options {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            sack,
        })
        .prop_filter("a header has room", |options| options.wire_len() <= MAX_OPTIONS_LEN)
}

/// Any segment, and its data.
pub(super) fn segment() -> impl Strategy<Value = (Segment, Vec<u8>)> {
    let numbers = (any::<(u16, u16)>(), any::<(u32, u32)>(), any::<u8>(), any::<(u16, u16)>());
    (numbers, options(), list(any::<u8>(), 0..50)).prop_map(|(numbers, options, data)| {
        let ((source_port, destination_port), (sequence, acknowledgment), flags, (window, urgent)) = numbers;
        let segment = Segment {
            source_port,
            destination_port,
            sequence: SequenceNumber(sequence),
            acknowledgment: SequenceNumber(acknowledgment),
            flags: Flags(flags),
            window,
            urgent,
            options,
            payload: Payload { offset: 0, len: data.len() as u16 },
        };
        (segment, data)
    })
}

fn addresses() -> impl Strategy<Value = Addresses> {
    any::<(IpAddr, IpAddr)>().prop_filter_map("one family", |(from, to)| Addresses::new(from, to))
}

/// Octets that are often nearly a segment.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let damaged = (segment(), any::<proptest::sample::Index>(), any::<u8>()).prop_map(
        |((segment, data), at, octet)| {
            let mut octets = whole(&segment, hosts(), &data);
            let at = at.index(octets.len());
            octets[at] = octet;
            corrected(octets)
        },
    );
    prop_oneof![list(any::<u8>(), 0..100), list(any::<u8>(), 20..100).prop_map(corrected), damaged]
}

proptest! {
    #[test]
    fn a_segment_comes_back_as_it_was(
        (segment, data) in segment(), addresses in addresses(), offset: u64, cut: proptest::sample::Index,
    ) {
        // The store gives its octets in two parts where it wraps around.
        let (head, tail) = data.split_at(cut.index(data.len() + 1));
        let sent = Segment { payload: Payload { offset, ..segment.payload }, ..segment };
        let mut octets = std::vec![0xEE; sent.header_len()];
        prop_assert_eq!(encode(&sent, addresses, &[head, tail], &mut octets), Ok(sent.header_len()));
        octets.extend_from_slice(&data);
        prop_assert_eq!(naive_checksum(&octets, addresses).to_be_bytes(), [octets[16], octets[17]]);
        prop_assert_eq!(decode(&octets, addresses), Ok((segment, &data[..])));
    }

    #[test]
    fn what_is_read_reads_the_same_once_written(octets in nearly()) {
        let Ok((segment, payload)) = decode(&octets, hosts()) else { return Ok(()) };
        let mut again = std::vec![0; 60];
        match encode(&segment, hosts(), &[payload], &mut again) {
            Ok(len) => {
                again.truncate(len);
                again.extend_from_slice(payload);
                prop_assert_eq!(decode(&again, hosts()), Ok((segment, payload)));
            }
            Err(EncodeError::Options(len)) => prop_assert!(len > MAX_OPTIONS_LEN),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn a_sum_does_not_depend_on_where_it_is_cut(
        data in list(any::<u8>(), 0..200), cuts in list(any::<proptest::sample::Index>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(data.len() + 1)).collect();
        cuts.extend([0, data.len()]);
        cuts.sort_unstable();
        let mut parts = Checksum::new();
        cuts.windows(2).for_each(|cut| parts.add(&data[cut[0]..cut[1]]));
        let words = data.chunks(2).map(|word| u64::from(word[0]) * 256 + u64::from(*word.get(1).unwrap_or(&0)));
        let sum: u64 = words.sum();
        // A ones'-complement sum is the remainder by 65,535, where only a sum of zeros is written as 0.
        let sum = if sum == 0 { 0 } else { (sum - 1) % 65_535 + 1 };
        prop_assert_eq!(parts.finish(), !(sum as u16));
    }
}
