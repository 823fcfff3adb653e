//! Properties of the codec: every valid PDU survives encoding, and octets are read or refused as the naive codec does.

use std::vec::Vec;

use proptest::collection::vec as list;
use proptest::option::of as maybe;
use proptest::prelude::*;

use super::{bit_string, data_pdu, encoded, naive, owned, report, segment, sn};
use crate::format::Format;
use crate::pdu::{
    DataPdu, EndedBefore, LastEnd, MoveWindow, Pdu, RelativeList, Reset, SequenceNumber, Status,
    StatusBitmap, SuperField,
};
use crate::wire::decode;

fn number() -> impl Strategy<Value = SequenceNumber> {
    (0..4096u16).prop_map(sn)
}

/// Code words that make numbers: digits of eight, the least significant first, the last with a 1.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let number = (any::<bool>(), prop_oneof![1..8u16, 8..64u16, 64..512u16, 512..4096u16]);
    list(number, 0..6).prop_map(|numbers| {
        let mut words = Vec::new();
        let mut reach = 0;
        for (burst, mut number) in numbers {
            let mut some: Vec<u8> = if burst { std::vec![1] } else { Vec::new() };
            reach += number;
            while number >= 8 {
                some.push((number % 8) as u8 * 2);
                number /= 8;
            }
            some.push(number as u8 * 2 + 1);
            if words.len() + some.len() > 15 || reach >= 4096 {
                break;
            }
            words.extend(some);
        }
        words
    })
}

/// Any super field but an ACK.
fn field() -> impl Strategy<Value = SuperField> {
    let bitmap = (number(), list(any::<u8>(), 1..=16));
    let window = (list(number(), 1..=15), any::<bool>(), 0..16u8);
    prop_oneof![
        (0..4096u16).prop_map(SuperField::Window),
        list((number(), 0..16u8), 1..=15).prop_map(|pairs| SuperField::List(pairs.into_iter().collect())),
        bitmap.prop_map(|(first, octets)| {
            SuperField::Bitmap(StatusBitmap { first, octets: octets.into_iter().collect() })
        }),
        (number(), words()).prop_map(|(first, words)| {
            SuperField::RelativeList(RelativeList { first, words: words.into_iter().collect() })
        }),
        window.prop_map(|(mut sns, beyond_window, n_length)| {
            sns.truncate(if beyond_window { 1 } else { 15 });
            SuperField::MoveWindow(MoveWindow { sns: sns.into_iter().collect(), beyond_window, n_length })
        }),
        (number(), 0..16u8).prop_map(|(sn, n)| SuperField::MoveWindowAck { sn, n }),
        number().prop_map(SuperField::Poll),
    ]
}

/// Draws any report of up to `most` bits.
pub(super) fn status(most: usize) -> impl Strategy<Value = Status> {
    (list(field(), 0..4), maybe(number())).prop_map(move |(fields, ack)| {
        let mut left = most.saturating_sub(4);
        let mut all = report([]);
        for field in fields.into_iter().chain(ack.map(SuperField::Ack)) {
            let Some(rest) = left.checked_sub(naive_bits(&field)) else { break };
            left = rest;
            all.fields.push(field);
        }
        all
    })
}

/// The length of a field as the naive codec writes it.
fn naive_bits(field: &SuperField) -> usize {
    naive::encode(&Pdu::Status(report([field.clone()])), Format::new(1505)).len() - 4
}

pub(super) fn format() -> impl Strategy<Value = Format> {
    let octets = prop_oneof![Just(42u16), 6..=60u16, 120..=140u16, Just(1505u16)];
    (octets, any::<bool>()).prop_map(|(pdu_octets, header_extension)| Format { pdu_octets, header_extension })
}

/// Rest of a data PDU behind its first segments.
#[derive(Clone, Copy, Debug)]
enum Rest {
    Padding,
    Report,
    SduGoesOn,
    SduEndsExactly,
}

/// Any data PDU of `format`, without the octet that no SDU has.
fn data(format: Format) -> impl Strategy<Value = DataPdu<Vec<u8>>> {
    let before = maybe(any::<bool>());
    let rest = prop_oneof![
        Just(Rest::Padding),
        Just(Rest::Report),
        Just(Rest::SduGoesOn),
        Just(Rest::SduEndsExactly)
    ];
    let most = usize::from(format.pdu_octets);
    let head = (number(), any::<bool>(), before, rest);
    let lens = list(prop_oneof![1..10usize, 1..=most], 0..5);
    (head, lens, status(8 * most), any::<u8>()).prop_map(move |(head, lens, status, octet)| {
        let (sn, poll, before, rest) = head;
        let size = if most > 126 { 2 } else { 1 };
        let ended_before = before
            .map(|short| if short && size == 2 { EndedBefore::OneOctetShort } else { EndedBefore::Exactly });
        let mut pdu = DataPdu { sn, poll, ended_before, ..data_pdu(0) };
        let mut left = most - 2 - size * usize::from(before.is_some());
        let octets = |len: usize| (0..len).map(move |at| octet.wrapping_add(at as u8));
        for len in lens {
            if len + size <= left {
                pdu.segments.push(segment(octets(len), true));
                left -= len + size;
            }
        }
        finish(&mut pdu, rest, left, format, status, |len| octets(len).collect());
        pdu
    })
}

/// Puts the end to a PDU that has `left` octets left.
fn finish(
    pdu: &mut DataPdu<Vec<u8>>,
    rest: Rest,
    left: usize,
    format: Format,
    status: Status,
    octets: impl Fn(usize) -> Vec<u8>,
) {
    let size = if format.pdu_octets > 126 { 2 } else { 1 };
    // The octet behind an end that nothing may use.
    let dead = left == 1 && size == 2;
    match rest {
        Rest::Report if (left + 1).saturating_sub(size) > status.octets() => {
            pdu.piggybacked = Some(status);
        }
        Rest::SduGoesOn if left > 0 && !dead => pdu.segments.push(segment(octets(left), false)),
        Rest::SduEndsExactly
            if format.header_extension && pdu.segments.is_empty() && pdu.ended_before.is_none() =>
        {
            pdu.segments.push(segment(octets(left), true));
            pdu.last_end = LastEnd::HeaderExtension;
        }
        Rest::SduEndsExactly if left > size => {
            pdu.segments.push(segment(octets(left - size), true));
        }
        _ => {}
    }
}

/// Any PDU, with its format.
pub(super) fn pdu() -> impl Strategy<Value = (Format, Pdu<Vec<u8>>)> {
    format().prop_flat_map(|format| {
        let reset = (any::<(bool, bool)>(), 0..1u32 << 20);
        let pdu = prop_oneof![
            4 => data(format).prop_map(Pdu::Data),
            4 => status(8 * usize::from(format.pdu_octets)).prop_map(Pdu::Status),
            1 => reset.prop_map(|((acknowledges, rsn), hfni)| {
                Pdu::Reset(Reset { acknowledges, rsn, hfni })
            }),
        ];
        (Just(format), pdu)
    })
}

/// Octets that are often nearly a PDU of `format`.
fn hostile() -> impl Strategy<Value = (Format, Vec<u8>)> {
    let changes = list((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let damaged = (pdu(), changes).prop_map(|((format, pdu), changes)| {
        let mut octets = encoded(&pdu, format).unwrap();
        for (at, octet) in changes {
            *at.get_mut(&mut octets) = octet;
        }
        (format, octets)
    });
    let indicated =
        (format(), list(any::<u8>(), 1505), list(0..64u8, 0..8)).prop_map(|(format, octets, low)| {
            let mut octets = octets;
            octets.truncate(usize::from(format.pdu_octets));
            (octets[0], octets[1]) = (octets[0] | 0x80, octets[1] & !3 | 1);
            // Indicators that may ascend.
            let size = if format.pdu_octets > 126 { 2 } else { 1 };
            let mut value = 0;
            for (field, step) in octets[2..].chunks_exact_mut(size).zip(low) {
                value = (value + step) & 0x7F;
                field.fill(0);
                field[size - 1] = value << 1 | 1;
            }
            (format, octets)
        });
    let report = (format(), list(any::<u8>(), 0..60)).prop_map(|(format, mut octets)| {
        if let Some(first) = octets.first_mut() {
            *first &= 0x0F;
        }
        (format, octets)
    });
    let any = (format(), list(any::<u8>(), 0..140));
    prop_oneof![3 => damaged, 3 => indicated, 3 => report, 1 => any]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_written_is_what_the_naive_codec_writes((format, pdu) in pdu()) {
        let octets = encoded(&pdu, format).unwrap();
        let mut text = bit_string(&octets);
        let naive = naive::encode(&pdu, format);
        let padding = text.split_off(naive.len());
        prop_assert_eq!(text, naive);
        prop_assert!(padding.chars().all(|bit| bit == '0'));
    }

    #[test]
    fn what_is_written_is_read((format, pdu) in pdu()) {
        let octets = encoded(&pdu, format).unwrap();
        prop_assert_eq!(octets.len(), usize::from(format.pdu_octets));
        prop_assert_eq!(decode(&octets, format).map(owned), Ok(pdu));
    }

    #[test]
    fn what_comes_is_read_as_the_naive_codec_reads_it((format, octets) in hostile()) {
        let read = decode(&octets, format).map(owned);
        prop_assert_eq!(read.clone().ok(), naive::decode(&octets, format), "{:?}", read);
    }

    #[test]
    fn what_is_read_can_be_written_and_means_the_same((format, octets) in hostile()) {
        if let Ok(pdu) = decode(&octets, format).map(owned) {
            let again = encoded(&pdu, format).unwrap();
            prop_assert_eq!(decode(&again, format).map(owned), Ok(pdu));
        }
    }

    #[test]
    fn what_is_missing_is_what_the_naive_codec_finds(report in status(2_000)) {
        let found: Vec<u16> = report
            .missing()
            .flat_map(|(first, count)| (0..count).map(move |step| first.plus(step).get()))
            .collect();
        let expected: Vec<u16> = report.fields.iter().flat_map(naive_missing).collect();
        prop_assert_eq!(found, expected);
    }
}

/// The numbers that a field names, one by one.
fn naive_missing(field: &SuperField) -> Vec<u16> {
    let at = |first: &SequenceNumber, offset: u32| ((u32::from(first.get()) + offset) % 4096) as u16;
    match field {
        SuperField::List(pairs) => {
            pairs.iter().flat_map(|(first, more)| (0..=u32::from(*more)).map(move |o| at(first, o))).collect()
        }
        SuperField::Bitmap(StatusBitmap { first, octets }) => {
            let text = bit_string(octets);
            text.chars().zip(0..).filter(|&(bit, _)| bit == '0').map(|(_, o)| at(first, o)).collect()
        }
        SuperField::RelativeList(RelativeList { first, words }) => {
            let mut offsets = std::vec![0];
            for (burst, number) in naive::numbers(words).unwrap() {
                let last = *offsets.last().unwrap();
                offsets.extend(if burst { last + 1..=last + number } else { last + number..=last + number });
            }
            offsets.into_iter().map(|offset| at(first, offset)).collect()
        }
        _ => Vec::new(),
    }
}
