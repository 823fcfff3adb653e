//! The vectors in `vectors/rlc` were worked out from the standard by hand. Each decodes to the PDU written out here,
//! and that PDU encodes to the vector.

use std::string::{String, ToString};
use std::vec::Vec;

use smallvec::smallvec;

use super::{LONG, SHORT, data_pdu, encoded, owned, report, segment, sn};
use crate::format::Format;
use crate::pdu::{
    DataPdu, EndedBefore, LastEnd, MoveWindow, Pdu, RelativeList, Reset, Status, StatusBitmap, SuperField,
};
use crate::wire::decode;

pub(super) struct Vector {
    pub(super) name: &'static str,
    pub(super) octets: Vec<u8>,
    pub(super) format: Format,
    pub(super) pdu: Pdu<Vec<u8>>,
}

/// Hex digits; `#` begins a comment.
fn parse(text: &str) -> Vec<u8> {
    let code = text.lines().filter_map(|line| line.split('#').next());
    let digits: String = code.flat_map(str::split_whitespace).collect();
    assert_eq!(digits.len() % 2, 0, "whole octets");
    let octet = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits");
    (0..digits.len()).step_by(2).map(octet).collect()
}

macro_rules! vector {
    ($name:literal, $format:expr, $pdu:expr) => {
        Vector {
            name: $name,
            octets: parse(include_str!(concat!("../../../../../vectors/rlc/", $name, ".hex"))),
            format: $format,
            pdu: $pdu,
        }
    };
}

pub(super) fn vectors() -> Vec<Vector> {
    let mut all = short_data();
    all.extend(long_data());
    all.extend(reports());
    all.extend(windows_and_resets());
    all
}

fn short_data() -> Vec<Vector> {
    let extension = Format { header_extension: true, ..SHORT };
    let data = |number, poll, segments: &[_]| DataPdu {
        poll,
        segments: segments.iter().cloned().collect(),
        ..data_pdu(number)
    };
    let behind = |pdu| Pdu::Data(DataPdu { ended_before: Some(EndedBefore::Exactly), ..pdu });
    let with = |fields: &[SuperField], pdu| DataPdu { piggybacked: Some(report(fields.to_vec())), ..pdu };
    let by_extension =
        DataPdu { last_end: LastEnd::HeaderExtension, ..data(2048, true, &[segment(0..40, true)]) };
    let missing = [SuperField::List(smallvec![(sn(3), 1)]), SuperField::Ack(sn(10))];
    let two = [segment(0x10..0x1A, true), segment(0x40..0x4F, true)];
    let piggyback = with(&missing, data(9, false, &[segment(0xA0..0xA5, true)]));
    std::vec![
        vector!("data_two_ends", SHORT, Pdu::Data(data(5, true, &two))),
        vector!("data_whole", SHORT, Pdu::Data(data(4095, false, &[segment(0..40, false)]))),
        vector!("data_ended_exactly", SHORT, behind(data(0, false, &[segment(0x20..0x47, false)]))),
        vector!("data_ended_exactly_alone", SHORT, behind(data(100, true, &[]))),
        vector!("data_indicator_fills", SHORT, Pdu::Data(data(7, false, &[segment(0x80..0xA7, true)]))),
        vector!("data_padding_of_none", SHORT, Pdu::Data(data(8, false, &[segment(0x80..0xA6, true)]))),
        vector!("data_header_extension", extension, Pdu::Data(by_extension)),
        vector!("data_piggyback", SHORT, Pdu::Data(piggyback)),
        vector!("data_piggyback_only", SHORT, behind(with(&[SuperField::Window(256)], data(10, false, &[])))),
    ]
}

fn long_data() -> Vec<Vector> {
    let data = |number, ended_before, segments: &[_]| {
        Pdu::Data(DataPdu { ended_before, segments: segments.iter().cloned().collect(), ..data_pdu(number) })
    };
    let two = [segment(0..40, true), segment(0x80..0xBC, true)];
    // Its last octet is no SDU's, which the PDU itself does not say.
    let before_short = [segment((0..127).chain([0]), false)];
    let behind_short = [segment(0..50, true), segment(0x90..0xDA, false)];
    let piggyback = Pdu::Data(DataPdu {
        ended_before: Some(EndedBefore::Exactly),
        segments: [segment(0..100, true)].into_iter().collect(),
        piggybacked: Some(report([SuperField::Ack(sn(14))])),
        ..data_pdu(14)
    });
    std::vec![
        vector!("long_two_ends", LONG, data(11, None, &two)),
        vector!("long_before_one_octet_short", LONG, data(11, None, &before_short)),
        vector!("long_one_octet_short", LONG, data(12, Some(EndedBefore::OneOctetShort), &behind_short)),
        vector!("long_unannounced_padding", LONG, data(13, None, &[segment(0..125, true)])),
        vector!("long_piggyback", LONG, piggyback),
    ]
}

fn bitmap(first: u16, octets: &[u8]) -> SuperField {
    SuperField::Bitmap(StatusBitmap { first: sn(first), octets: octets.iter().copied().collect() })
}

fn relative(first: u16, words: &[u8]) -> SuperField {
    SuperField::RelativeList(RelativeList { first: sn(first), words: words.iter().copied().collect() })
}

fn status(fields: &[SuperField]) -> Pdu<Vec<u8>> {
    Pdu::Status(report(fields.to_vec()))
}

fn reports() -> Vec<Vector> {
    let ack = |number| SuperField::Ack(sn(number));
    let list = SuperField::List(smallvec![(sn(3), 0), (sn(16), 15)]);
    let mut largest = [0xFF; 16];
    (largest[0], largest[15]) = (0x7F, 0xFE);
    let words = [0b0101, 0b0001, 0b0111, 0b0100, 0b1000, 0b1001];
    let several = [
        SuperField::Window(512),
        SuperField::List(smallvec![(sn(1), 2)]),
        bitmap(16, &[0xBF, 0x7F]),
        relative(48, &[0b0101]),
        ack(64),
    ];
    std::vec![
        vector!("status_ack", SHORT, status(&[ack(100)])),
        vector!("status_list", SHORT, status(&[list, ack(32)])),
        vector!("status_bitmap_1_2_4_6", SHORT, status(&[bitmap(3, &[0x5F]), ack(3)])),
        vector!("status_bitmap_1_2_4_6_to_vr_h", SHORT, status(&[bitmap(4095, &[0xF5]), ack(7)])),
        vector!("status_bitmap_figure_2c", SHORT, status(&[bitmap(3, &[0x3F]), ack(3)])),
        vector!("status_bitmap_largest", SHORT, status(&[bitmap(4090, &largest), ack(4090)])),
        vector!("status_rlist", SHORT, status(&[relative(5, &words), ack(301)])),
        vector!("status_rlist_single", SHORT, status(&[relative(9, &[])])),
        vector!("status_window", SHORT, status(&[SuperField::Window(256)])),
        vector!("status_poll", SHORT, status(&[SuperField::Poll(sn(4095))])),
        vector!("status_empty", SHORT, Pdu::Status(Status::default())),
        vector!("status_several", SHORT, status(&several)),
        vector!("status_full", Format::new(6), status(&[bitmap(3, &[0x5F]), SuperField::Window(128)])),
    ]
}

fn windows_and_resets() -> Vec<Vector> {
    let window = |numbers: &[u16], beyond_window, n_length| {
        let sns = numbers.iter().map(|&number| sn(number)).collect();
        status(&[SuperField::MoveWindow(MoveWindow { sns, beyond_window, n_length })])
    };
    let moved = [SuperField::MoveWindowAck { sn: sn(257), n: 3 }, SuperField::Ack(sn(257))];
    let reset = |acknowledges, rsn, hfni| Pdu::Reset(Reset { acknowledges, rsn, hfni });
    std::vec![
        vector!("status_mrw", SHORT, window(&[254, 257], false, 3)),
        vector!("status_mrw_beyond_window", SHORT, window(&[2000], true, 0)),
        vector!("status_mrw_ack", SHORT, status(&moved)),
        vector!("reset", SHORT, reset(false, true, 0xA_BCDE)),
        vector!("reset_ack", SHORT, reset(true, false, 1)),
    ]
}

#[test]
fn every_vector_is_read_and_written() {
    for Vector { name, octets, format, pdu } in vectors() {
        assert_eq!(decode(&octets, format).map(owned), Ok(pdu.clone()), "{name}");
        assert_eq!(encoded(&pdu, format), Ok(octets), "{name}");
    }
}

#[test]
fn every_file_is_a_vector() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/rlc");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    let mut names: Vec<String> = vectors().iter().map(|vector| vector.name.to_string() + ".hex").collect();
    files.sort();
    names.sort();
    assert_eq!(files, names);
}

#[test]
fn the_octet_that_no_sdu_has_is_added() {
    let all = vectors();
    let vector = all.iter().find(|vector| vector.name == "long_before_one_octet_short").unwrap();
    let pdu = DataPdu { segments: [segment(0..127, false)].into_iter().collect(), ..data_pdu(11) };
    assert!(!pdu.is_full(LONG));
    assert_eq!(encoded(&Pdu::Data(pdu), LONG).as_ref(), Ok(&vector.octets));
    let Pdu::Data(read) = &vector.pdu else { panic!("a data PDU") };
    assert!(read.is_full(LONG));
}

#[test]
fn reports_name_what_the_vectors_say() {
    let missing = |name: &str| {
        let all = vectors();
        let vector = all.into_iter().find(|vector| vector.name == name).unwrap();
        let Pdu::Status(report) = vector.pdu else { panic!("a report") };
        report.missing().map(|(first, count)| (first.get(), count)).collect::<Vec<_>>()
    };
    assert_eq!(missing("status_list"), [(3, 1), (16, 16)]);
    assert_eq!(missing("status_bitmap_1_2_4_6"), [(3, 1), (5, 1)]);
    assert_eq!(missing("status_bitmap_1_2_4_6_to_vr_h"), [(3, 1), (5, 1)]);
    assert_eq!(missing("status_bitmap_figure_2c"), [(3, 2)]);
    assert_eq!(missing("status_bitmap_largest"), [(4090, 1), (121, 1)]);
    assert_eq!(missing("status_rlist"), [(5, 1), (7, 4), (300, 1)]);
    assert_eq!(missing("status_rlist_single"), [(9, 1)]);
    assert_eq!(missing("status_several"), [(1, 3), (17, 1), (24, 1), (48, 1), (50, 1)]);
    assert_eq!(missing("status_mrw"), []);
}
