//! Every reason to refuse octets, and every reason to refuse a PDU.

use std::vec::Vec;

use super::{LONG, SHORT, data_pdu, encoded, owned, report, segment, sn};
use crate::format::Format;
use crate::pdu::{
    DataPdu, EndedBefore, LastEnd, MoveWindow, Pdu, RelativeList, Reset, StatusBitmap, SuperField,
};
use crate::wire::{DecodeError, EncodeError, decode, encode};

/// Octets, written as hex digits with spaces, filled up to a PDU.
fn filled(hex: &str, format: Format) -> Vec<u8> {
    let octets = hex.split_whitespace().map(|octet| u8::from_str_radix(octet, 16).unwrap());
    let mut octets: Vec<u8> = octets.collect();
    octets.resize(usize::from(format.pdu_octets), 0);
    octets
}

#[test]
fn every_reason_to_refuse_octets() {
    let refused = |hex, format| decode(&filled(hex, format), format).map(owned).unwrap_err();
    assert_eq!(decode(&[], SHORT), Err(DecodeError::Empty));
    assert_eq!(decode(&[0x80; 41], SHORT), Err(DecodeError::DataLength { got: 41, expected: 42 }));
    assert_eq!(decode(&[0x00; 43], SHORT), Err(DecodeError::ControlLength { got: 43, most: 42 }));
    assert_eq!(refused("30", SHORT), DecodeError::ControlType(3));
    assert_eq!(refused("80 03", SHORT), DecodeError::HeaderExtension(3));
    assert_eq!(refused("80 02", SHORT), DecodeError::HeaderExtension(2));
    assert_eq!(decode(&[0xFF; 42], SHORT), Err(DecodeError::HeaderExtension(3)));
    let mut endless = [0xFF; 42];
    endless[1] = 1;
    assert_eq!(decode(&endless, SHORT), Err(DecodeError::IndicatorsBeyondEnd));
    assert_eq!(refused("80 01 F8", SHORT), DecodeError::IndicatorReserved(0x7C));
    assert_eq!(refused("80 01 FA", SHORT), DecodeError::IndicatorReserved(0x7D));
    assert_eq!(refused("80 01 FF F8", LONG), DecodeError::IndicatorReserved(0x7FFC));
    assert_eq!(refused("80 01 FF FA", LONG), DecodeError::IndicatorReserved(0x7FFD));
    assert_eq!(refused("80 01 50", SHORT), DecodeError::IndicatorTooLarge { value: 40, data: 39 });
    // One that only unacknowledged mode has is an offset beyond any PDU here.
    assert_eq!(refused("80 01 FF F4", LONG), DecodeError::IndicatorTooLarge { value: 0x7FFA, data: 126 });
    assert_eq!(refused("80 01 0B 08", SHORT), DecodeError::IndicatorOrder { value: 4, previous: 5 });
    assert_eq!(refused("80 01 0B 0A", SHORT), DecodeError::IndicatorOrder { value: 5, previous: 5 });
    assert_eq!(refused("80 01 0B 00", SHORT), DecodeError::IndicatorNotFirst(0));
    assert_eq!(refused("80 01 00 01 FF F6", LONG), DecodeError::IndicatorNotFirst(0x7FFB));
    assert_eq!(refused("80 01 FF 0A", SHORT), DecodeError::IndicatorBehindPadding);
    assert_eq!(refused("80 01 FD FE", SHORT), DecodeError::IndicatorBehindPadding);
    assert_eq!(refused("80 01 FC 80", SHORT), DecodeError::PiggybackHeader(8));
    assert_eq!(refused("80 01 FC 10", SHORT), DecodeError::PiggybackHeader(1));
    // 38 octets of data, and none is left for the report.
    assert_eq!(refused("80 01 4D FC", SHORT), DecodeError::SuperFieldBeyondEnd);
    assert_eq!(decode(&[0x02, 0x00], SHORT), Err(DecodeError::SuperFieldBeyondEnd));
    assert_eq!(decode(&[0x03, 0x2F, 0xFF, 0xFF], SHORT), Err(DecodeError::SuperFieldBeyondEnd));
    assert_eq!(refused("09", SHORT), DecodeError::SuperFieldType(9));
    assert_eq!(refused("0F", SHORT), DecodeError::SuperFieldType(15));
    assert_eq!(refused("03 00", SHORT), DecodeError::EmptyList);
    // A last word without a 1, an indicator of a burst at the end, and twice, and a number of five words.
    assert_eq!(refused("05 10 05 40", SHORT), DecodeError::CodeWords);
    assert_eq!(refused("05 10 05 10", SHORT), DecodeError::CodeWords);
    assert_eq!(refused("05 30 05 11 30", SHORT), DecodeError::CodeWords);
    assert_eq!(refused("05 50 05 22 22 30", SHORT), DecodeError::CodeWords);
    // 4095 further on and one more.
    assert_eq!(refused("05 50 05 EE EF 30", SHORT), DecodeError::CodeWords);
    assert_eq!(decode(&[0x10, 0, 0], SHORT), Err(DecodeError::ResetLength(3)));
    assert_eq!(refused("11", SHORT), DecodeError::ResetReserved(1));
}

#[test]
fn every_reason_to_refuse_a_pdu() {
    let data = |segments: &[(usize, bool)]| DataPdu {
        segments: segments.iter().map(|&(len, ends)| segment(std::iter::repeat_n(7, len), ends)).collect(),
        ..data_pdu(0)
    };
    let refused = |pdu: DataPdu<_>, format| encoded(&Pdu::Data(pdu), format).unwrap_err();
    let refused_field = |field| encoded(&Pdu::Status(report([field])), SHORT).unwrap_err();
    let empty: Pdu<Vec<u8>> = Pdu::Status(report([]));
    assert_eq!(encode(&empty, SHORT, &mut [0; 41]), Err(EncodeError::Buffer { pdu: 42, buffer: 41 }));
    assert_eq!(refused(data(&[(41, false)]), SHORT), EncodeError::TooLong { needed: 43, pdu: 42 });
    assert_eq!(refused(data(&[(40, true)]), SHORT), EncodeError::TooLong { needed: 43, pdu: 42 });
    let with_report = |pdu| DataPdu { piggybacked: Some(report([SuperField::Ack(sn(1))])), ..pdu };
    // 38 octets and their indicator leave one for the report's, and the report needs three.
    assert_eq!(refused(with_report(data(&[(38, true)])), SHORT), EncodeError::TooLong { needed: 3, pdu: 0 });
    assert_eq!(
        refused(with_report(data(&[(39, true)])), SHORT),
        EncodeError::TooLong { needed: 46, pdu: 42 }
    );
    assert_eq!(refused(with_report(data(&[(9, false)])), SHORT), EncodeError::NotFull(31));
    assert_eq!(refused(data(&[(39, false)]), SHORT), EncodeError::NotFull(1));
    assert_eq!(refused(data(&[(126, false)]), LONG), EncodeError::NotFull(2));
    assert_eq!(refused(data(&[(0, true)]), SHORT), EncodeError::EmptySegment);
    assert_eq!(refused(data(&[(3, false), (3, true)]), SHORT), EncodeError::Order);
    let short = DataPdu { ended_before: Some(EndedBefore::OneOctetShort), ..data(&[]) };
    assert_eq!(refused(short, SHORT), EncodeError::OneOctetShort);
    let by_extension = |pdu| DataPdu { last_end: LastEnd::HeaderExtension, ..pdu };
    let extension = Format { header_extension: true, ..SHORT };
    assert_eq!(refused(by_extension(data(&[(40, true)])), SHORT), EncodeError::HeaderExtension);
    assert_eq!(refused(by_extension(data(&[(40, false)])), extension), EncodeError::HeaderExtension);
    assert_eq!(refused(by_extension(data(&[(39, true)])), extension), EncodeError::HeaderExtension);
    assert_eq!(
        refused(by_extension(data(&[(20, true), (20, true)])), extension),
        EncodeError::HeaderExtension
    );
    let acks = report([SuperField::Ack(sn(1)), SuperField::Window(1)]);
    assert_eq!(encoded(&Pdu::Status(acks), SHORT), Err(EncodeError::AckNotLast));
    let (list, words) = (std::vec![(sn(0), 0); 16], std::vec![3u8; 16]);
    let relative = |words: Vec<u8>| RelativeList { first: sn(0), words: words.into_iter().collect() };
    let window = |count, beyond_window, n_length| {
        let sns = std::iter::repeat_n(sn(0), count).collect();
        SuperField::MoveWindow(MoveWindow { sns, beyond_window, n_length })
    };
    let bitmap = |octets: usize| {
        let octets = std::iter::repeat_n(0, octets).collect();
        SuperField::Bitmap(StatusBitmap { first: sn(0), octets })
    };
    for (field, name) in [
        (SuperField::Window(4096), "WINDOW"),
        (SuperField::List([].into_iter().collect()), "LIST"),
        (SuperField::List(list.into_iter().collect()), "LIST"),
        (SuperField::List([(sn(0), 16)].into_iter().collect()), "LIST"),
        (bitmap(0), "BITMAP"),
        (bitmap(17), "BITMAP"),
        (SuperField::RelativeList(relative(words)), "RLIST"),
        (SuperField::RelativeList(relative(std::vec![16 + 3])), "RLIST"),
        (SuperField::RelativeList(relative(std::vec![1])), "RLIST"),
        (window(0, false, 0), "MRW"),
        (window(16, false, 0), "MRW"),
        (window(2, true, 0), "MRW"),
        (window(1, false, 16), "MRW"),
        (SuperField::MoveWindowAck { sn: sn(0), n: 16 }, "MRW_ACK"),
    ] {
        assert_eq!(refused_field(field), EncodeError::SuperField(name));
    }
    let reset = Reset { acknowledges: false, rsn: false, hfni: 1 << 20 };
    assert_eq!(encoded(&Pdu::Reset(reset), SHORT), Err(EncodeError::HyperFrameNumber(1 << 20)));
}
