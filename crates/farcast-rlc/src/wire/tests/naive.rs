//! The codec once more, slowly: PDUs as strings of '0' and '1', by the tables of TS 25.322 section 9.2.

use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use super::{bit_string, data_pdu, report, segment, sn};
use crate::format::Format;
use crate::pdu::{
    DataPdu, EndedBefore, LastEnd, MoveWindow, Pdu, RelativeList, Reset, Status, StatusBitmap, SuperField,
};

fn bits(number: impl Into<u32>, width: usize) -> String {
    format!("{:0width$b}", number.into())
}

/// The bits of a PDU, without what is behind its last field.
pub(super) fn encode(pdu: &Pdu<Vec<u8>>, format: Format) -> String {
    match pdu {
        Pdu::Data(data) => encode_data(data, format),
        Pdu::Status(status) => String::from("0000") + &encode_fields(status),
        Pdu::Reset(Reset { acknowledges, rsn, hfni }) => {
            let kind = if *acknowledges { "010" } else { "001" };
            format!("0{kind}{}000{}", u8::from(*rsn), bits(*hfni, 20))
        }
    }
}

fn encode_data(pdu: &DataPdu<Vec<u8>>, format: Format) -> String {
    let width = if format.pdu_octets <= 126 { 7 } else { 15 };
    let all_ones = (1u32 << width) - 1;
    let mut indicators = Vec::new();
    match pdu.ended_before {
        Some(EndedBefore::Exactly) => indicators.push(0),
        Some(EndedBefore::OneOctetShort) => indicators.push(0x7FFB),
        None => {}
    }
    let mut octets: Vec<u8> = Vec::new();
    for segment in &pdu.segments {
        octets.extend(&segment.data);
        if segment.ends && pdu.last_end == LastEnd::Indicator {
            indicators.push(octets.len() as u32);
        }
    }
    let len = |indicators: &[u32]| 2 + indicators.len() * (width + 1) / 8 + octets.len();
    let left = usize::from(format.pdu_octets) - len(&indicators);
    if pdu.piggybacked.is_some() {
        indicators.push(all_ones - 1);
    } else if left > 1 || (left == 1 && width == 7) {
        indicators.push(all_ones);
    }
    let extension = match (pdu.last_end, indicators.is_empty()) {
        (LastEnd::HeaderExtension, _) => "10",
        (LastEnd::Indicator, true) => "00",
        (LastEnd::Indicator, false) => "01",
    };
    let mut text = format!("1{}{}{extension}", bits(pdu.sn.get(), 12), u8::from(pdu.poll));
    for (index, indicator) in indicators.iter().enumerate() {
        text += &bits(*indicator, width);
        text += if index + 1 < indicators.len() { "1" } else { "0" };
    }
    text += &bit_string(&octets);
    if let Some(status) = &pdu.piggybacked {
        text += "0000";
        text += &encode_fields(status);
    }
    text
}

fn encode_fields(status: &Status) -> String {
    status.fields.iter().map(encode_field).collect()
}

fn encode_field(field: &SuperField) -> String {
    match field {
        SuperField::Window(size) => format!("0001{}", bits(*size, 12)),
        SuperField::Ack(lsn) => format!("0010{}", bits(lsn.get(), 12)),
        SuperField::List(pairs) => {
            let pairs_text = pairs.iter().map(|(first, more)| bits(first.get(), 12) + &bits(*more, 4));
            format!("0011{}{}", bits(pairs.len() as u32, 4), pairs_text.collect::<String>())
        }
        SuperField::Bitmap(StatusBitmap { first, octets }) => {
            let map = bit_string(octets);
            format!("0100{}{}{map}", bits(octets.len() as u32 - 1, 4), bits(first.get(), 12))
        }
        SuperField::RelativeList(RelativeList { first, words }) => {
            let text: String = words.iter().map(|&word| bits(word, 4)).collect();
            format!("0101{}{}{text}", bits(words.len() as u32, 4), bits(first.get(), 12))
        }
        SuperField::MoveWindow(MoveWindow { sns, beyond_window, n_length }) => {
            let length = if *beyond_window { 0 } else { sns.len() as u32 };
            let text: String = sns.iter().map(|sn| bits(sn.get(), 12)).collect();
            format!("0110{}{text}{}", bits(length, 4), bits(*n_length, 4))
        }
        SuperField::MoveWindowAck { sn, n } => format!("0111{}{}", bits(*n, 4), bits(sn.get(), 12)),
        SuperField::Poll(sn) => format!("1000{}", bits(sn.get(), 12)),
    }
}

/// Takes numbers off the front of a string of bits.
struct Text(Vec<char>);

impl Text {
    fn of(octets: &[u8]) -> Self {
        Self(bit_string(octets).chars().collect())
    }

    fn take(&mut self, width: usize) -> Option<u32> {
        if self.0.len() < width {
            return None;
        }
        let head: String = self.0.drain(..width).collect();
        u32::from_str_radix(&head, 2).ok()
    }

    fn octets(&mut self, count: usize) -> Option<Vec<u8>> {
        (0..count).map(|_| self.take(8).map(|octet| octet as u8)).collect()
    }
}

/// Reads a PDU; `None` if it is to be dropped.
pub(super) fn decode(octets: &[u8], format: Format) -> Option<Pdu<Vec<u8>>> {
    let mut text = Text::of(octets);
    if text.take(1)? == 1 {
        return (octets.len() == usize::from(format.pdu_octets))
            .then(|| decode_data(text, format).map(Pdu::Data))?;
    }
    if octets.len() > usize::from(format.pdu_octets) {
        return None;
    }
    match text.take(3)? {
        0 => decode_fields(text).map(Pdu::Status),
        kind @ (1 | 2) => {
            let rsn = text.take(1)? == 1;
            let reserved = text.take(3)?;
            let hfni = text.take(20)?;
            (reserved == 0).then_some(Pdu::Reset(Reset { acknowledges: kind == 2, rsn, hfni }))
        }
        _ => None,
    }
}

fn decode_data(mut text: Text, format: Format) -> Option<DataPdu<Vec<u8>>> {
    let mut pdu = data_pdu(text.take(12)? as u16);
    pdu.poll = text.take(1)? == 1;
    match (text.take(2)?, format.header_extension) {
        (0, _) => pdu.segments.push(segment(text.octets(usize::from(format.pdu_octets) - 2)?, false)),
        (1, _) => decode_indicated(&mut pdu, text, format)?,
        (2, true) => {
            pdu.segments.push(segment(text.octets(usize::from(format.pdu_octets) - 2)?, true));
            pdu.last_end = LastEnd::HeaderExtension;
        }
        _ => return None,
    }
    Some(pdu)
}

fn decode_indicated(pdu: &mut DataPdu<Vec<u8>>, mut text: Text, format: Format) -> Option<()> {
    let width = if format.pdu_octets <= 126 { 7 } else { 15 };
    let all_ones = (1u32 << width) - 1;
    let mut indicators = vec![text.take(width)?];
    while text.take(1)? == 1 {
        indicators.push(text.take(width)?);
    }
    let len = text.0.len() / 8;
    let octets = text.octets(len)?;
    if indicators[0] == 0 {
        pdu.ended_before = Some(EndedBefore::Exactly);
        indicators.remove(0);
    } else if indicators[0] == 0x7FFB {
        pdu.ended_before = Some(EndedBefore::OneOctetShort);
        indicators.remove(0);
    }
    let special = indicators.last().copied().filter(|&last| last >= all_ones - 1);
    if special.is_some() {
        indicators.pop();
    }
    let mut from = 0;
    for &to in &indicators {
        let to = to as usize;
        if to <= from || to > len || to >= all_ones as usize - 3 {
            return None;
        }
        pdu.segments.push(segment(octets[from..to].to_vec(), true));
        from = to;
    }
    if special == Some(all_ones - 1) {
        let mut rest = Text::of(&octets[from..]);
        if rest.take(4)? != 0 {
            return None;
        }
        pdu.piggybacked = Some(decode_fields(rest)?);
    } else if special.is_none() && from < len && !(width == 15 && from > 0 && from + 1 == len) {
        pdu.segments.push(segment(octets[from..].to_vec(), false));
    }
    Some(())
}

fn decode_fields(mut text: Text) -> Option<Status> {
    let mut fields = Vec::new();
    while !text.0.is_empty() {
        let kind = text.take(4)?;
        if kind == 0 {
            break;
        }
        fields.push(decode_field(kind, &mut text)?);
        if kind == 2 {
            break;
        }
    }
    Some(report(fields))
}

fn decode_field(kind: u32, text: &mut Text) -> Option<SuperField> {
    let number = |text: &mut Text| text.take(12).map(|number| sn(number as u16));
    Some(match kind {
        1 => SuperField::Window(text.take(12)? as u16),
        2 => SuperField::Ack(number(text)?),
        3 => {
            let length = text.take(4)?;
            let pairs: Option<Vec<_>> =
                (0..length).map(|_| Some((number(text)?, text.take(4)? as u8))).collect();
            SuperField::List(pairs.filter(|_| length > 0)?.into_iter().collect())
        }
        4 => {
            let length = text.take(4)? as usize + 1;
            let first = number(text)?;
            SuperField::Bitmap(StatusBitmap { first, octets: text.octets(length)?.into_iter().collect() })
        }
        5 => {
            let length = text.take(4)?;
            let first = number(text)?;
            let words: Option<Vec<u8>> = (0..length).map(|_| text.take(4).map(|word| word as u8)).collect();
            let words = words?;
            numbers(&words)?;
            SuperField::RelativeList(RelativeList { first, words: words.into_iter().collect() })
        }
        6 => {
            let length = text.take(4)?;
            let sns: Option<Vec<_>> = (0..length.max(1)).map(|_| number(text)).collect();
            let sns = sns?.into_iter().collect();
            let n_length = text.take(4)? as u8;
            SuperField::MoveWindow(MoveWindow { sns, beyond_window: length == 0, n_length })
        }
        7 => {
            let n = text.take(4)? as u8;
            SuperField::MoveWindowAck { sn: number(text)?, n }
        }
        8 => SuperField::Poll(number(text)?),
        _ => return None,
    })
}

/// The numbers of an RLIST, and whether each counts a burst; `None` if the words make none.
pub(super) fn numbers(words: &[u8]) -> Option<Vec<(bool, u32)>> {
    let mut found = Vec::new();
    let (mut burst, mut digits) = (false, Vec::new());
    for &word in words {
        if word == 1 {
            if burst || !digits.is_empty() {
                return None;
            }
            burst = true;
            continue;
        }
        digits.push(u32::from(word / 2));
        if word % 2 == 1 {
            let value = digits.iter().rev().fold(0, |value, digit| 8 * value + digit);
            if digits.len() > 4 {
                return None;
            }
            found.push((burst, value));
            (burst, digits) = (false, Vec::new());
        }
    }
    let open = burst || !digits.is_empty();
    let reach: u32 = found.iter().map(|&(_, value)| value).sum();
    (!open && reach < 4096).then_some(found)
}
