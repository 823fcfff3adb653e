//! Data PDUs: header, length indicators, data, padding or a piggybacked report (TS 25.322 section 9.2.1.4).

use smallvec::SmallVec;

use super::{DecodeError, EncodeError, status};
use crate::format::{Format, HEADER_LEN};
use crate::pdu::{DataPdu, EndedBefore, LastEnd, Segment, SequenceNumber, Status};

/// The indicator of an SDU that filled the PDU before.
const ENDED_EXACTLY: u16 = 0;
/// The indicator, of 15 bits only, of an SDU that left one octet of the PDU before.
const ENDED_ONE_OCTET_SHORT: u16 = 0x7FFB;

/// The special values of the indicators of one size.
struct Special {
    /// The lower of the two values that are reserved in Acknowledged Mode.
    reserved: u16,
    piggyback: u16,
    padding: u16,
}

impl Special {
    const fn of(format: Format) -> Self {
        let padding = if format.indicator_octets() == 2 { 0x7FFF } else { 0x7F };
        Self { reserved: padding - 3, piggyback: padding - 1, padding }
    }
}

/// Layout of a PDU.
struct Layout {
    /// Octets of the header with all indicators, the last one included.
    header: usize,
    data: usize,
    /// The indicator of the octets behind the data.
    last: Option<u16>,
}

/// Writes `pdu` over `out`, which is zero and has the size of a PDU.
pub(super) fn encode<P: AsRef<[u8]>>(
    pdu: &DataPdu<P>,
    format: Format,
    out: &mut [u8],
) -> Result<(), EncodeError> {
    let layout = layout(pdu, format)?;
    let by_extension = pdu.last_end == LastEnd::HeaderExtension;
    let extension = if by_extension { 2 } else { u8::from(layout.header > usize::from(HEADER_LEN)) };
    let sn = pdu.sn.get();
    out[0] = 0x80 | (sn >> 5) as u8;
    out[1] = (sn << 3) as u8 | u8::from(pdu.poll) << 2 | extension;
    let (header, body) = out.split_at_mut(layout.header);
    let mut at = 0;
    let ends = pdu.segments.iter().filter_map(|segment| {
        let data = segment.data.as_ref();
        body[at..at + data.len()].copy_from_slice(data);
        at += data.len();
        (segment.ends && !by_extension).then_some(at as u16)
    });
    let before = pdu.ended_before.map(|ended| match ended {
        EndedBefore::Exactly => ENDED_EXACTLY,
        EndedBefore::OneOctetShort => ENDED_ONE_OCTET_SHORT,
    });
    put_indicators(before.into_iter().chain(ends).chain(layout.last), format, &mut header[2..]);
    if let Some(report) = &pdu.piggybacked {
        status::encode(report, &mut body[layout.data..]);
    }
    Ok(())
}

/// Writes the indicators to all of `out`, each with a bit that is 1 if another one follows.
fn put_indicators(values: impl Iterator<Item = u16>, format: Format, out: &mut [u8]) {
    let size = usize::from(format.indicator_octets());
    let fields = out.len() / size;
    for (index, (value, field)) in values.zip(out.chunks_exact_mut(size)).enumerate() {
        let word = value << 1 | u16::from(index + 1 < fields);
        field.copy_from_slice(&word.to_be_bytes()[2 - size..]);
    }
}

fn layout<P: AsRef<[u8]>>(pdu: &DataPdu<P>, format: Format) -> Result<Layout, EncodeError> {
    check(pdu, format)?;
    let size = usize::from(format.indicator_octets());
    let total = usize::from(format.pdu_octets);
    let header = usize::from(HEADER_LEN) + pdu.indicated_ends() * size;
    let data = pdu.segments.iter().map(|segment| segment.data.as_ref().len()).sum();
    let too_long = |needed| EncodeError::TooLong { needed, pdu: total };
    let left = total.checked_sub(header + data).ok_or(too_long(header + data))?;
    let special = Special::of(format);
    let open = pdu.segments.last().is_none_or(|last| last.ends);
    if pdu.last_end == LastEnd::HeaderExtension && left > 0 {
        return Err(EncodeError::HeaderExtension);
    }
    if let Some(report) = &pdu.piggybacked {
        if !open {
            return Err(EncodeError::NotFull(left));
        }
        let room = left.checked_sub(size).ok_or(too_long(header + data + size + report.octets()))?;
        status::check(report, room)?;
        return Ok(Layout { header: header + size, data, last: Some(special.piggyback) });
    }
    // With indicators of two octets nothing announces a single octet of padding.
    if left == 0 || (left == 1 && size == 2) {
        return Ok(Layout { header, data, last: None });
    }
    if !open {
        return Err(EncodeError::NotFull(left));
    }
    Ok(Layout { header: header + size, data, last: Some(special.padding) })
}

/// Checks the conditions that do not depend on lengths.
fn check<P: AsRef<[u8]>>(pdu: &DataPdu<P>, format: Format) -> Result<(), EncodeError> {
    if pdu.segments.iter().any(|segment| segment.data.as_ref().is_empty()) {
        return Err(EncodeError::EmptySegment);
    }
    let inner = pdu.segments.split_last().map_or(&[][..], |(_, inner)| inner);
    if inner.iter().any(|segment| !segment.ends) {
        return Err(EncodeError::Order);
    }
    if pdu.ended_before == Some(EndedBefore::OneOctetShort) && format.indicator_octets() == 1 {
        return Err(EncodeError::OneOctetShort);
    }
    let lone_end = pdu.segments.len() == 1 && pdu.segments[0].ends && pdu.ended_before.is_none();
    let allowed = format.header_extension && lone_end && pdu.piggybacked.is_none();
    if pdu.last_end == LastEnd::HeaderExtension && !allowed {
        return Err(EncodeError::HeaderExtension);
    }
    Ok(())
}

/// Reads a data PDU.
pub(super) fn decode(octets: &[u8], format: Format) -> Result<DataPdu<&[u8]>, DecodeError> {
    let (got, expected) = (octets.len(), format.pdu_octets);
    if got != usize::from(expected) || got < usize::from(HEADER_LEN) {
        return Err(DecodeError::DataLength { got, expected });
    }
    let mut pdu = DataPdu {
        sn: SequenceNumber::new(u16::from(octets[0] & 0x7F) << 5 | u16::from(octets[1]) >> 3),
        poll: octets[1] & 4 != 0,
        ended_before: None,
        segments: SmallVec::new(),
        last_end: LastEnd::Indicator,
        piggybacked: None,
    };
    let whole = |data, ends| Segment { data, ends };
    let rest = &octets[usize::from(HEADER_LEN)..];
    match octets[1] & 3 {
        0 => pdu.segments.push(whole(rest, false)),
        1 => take_indicated(&mut pdu, rest, format)?,
        2 if format.header_extension => {
            pdu.last_end = LastEnd::HeaderExtension;
            pdu.segments.push(whole(rest, true));
        }
        reserved => return Err(DecodeError::HeaderExtension(reserved)),
    }
    Ok(pdu)
}

/// Meaning of an indicator.
enum Meaning {
    Before(EndedBefore),
    End(u16),
    Piggyback,
    Padding,
}

/// Reads the indicators at the front of `octets`, and the content that they describe.
fn take_indicated<'a>(
    pdu: &mut DataPdu<&'a [u8]>,
    octets: &'a [u8],
    format: Format,
) -> Result<(), DecodeError> {
    let size = usize::from(format.indicator_octets());
    let count = count_indicators(octets, size).ok_or(DecodeError::IndicatorsBeyondEnd)?;
    let (indicators, data) = octets.split_at(count * size);
    let mut end = 0;
    for (index, field) in indicators.chunks_exact(size).enumerate() {
        let value = word(field) >> 1;
        match meaning(value, format)? {
            Meaning::Before(ended) if index == 0 => pdu.ended_before = Some(ended),
            Meaning::Before(_) => return Err(DecodeError::IndicatorNotFirst(value)),
            Meaning::End(value) => {
                pdu.segments.push(Segment { data: part(data, end, value)?, ends: true });
                end = value;
            }
            _ if index + 1 < count => return Err(DecodeError::IndicatorBehindPadding),
            Meaning::Padding => return Ok(()),
            Meaning::Piggyback => {
                pdu.piggybacked = Some(piggybacked(&data[usize::from(end)..])?);
                return Ok(());
            }
        }
    }
    let rest = &data[usize::from(end)..];
    // A single octet behind the end of an SDU is padding, with indicators of two octets.
    let unannounced = rest.len() == 1 && size == 2 && end > 0;
    if !rest.is_empty() && !unannounced {
        pdu.segments.push(Segment { data: rest, ends: false });
    }
    Ok(())
}

/// Returns the number of indicators; `None` if they do not end.
fn count_indicators(octets: &[u8], size: usize) -> Option<usize> {
    octets.chunks_exact(size).position(|field| word(field) & 1 == 0).map(|last| last + 1)
}

fn word(field: &[u8]) -> u16 {
    field.iter().fold(0, |word, &octet| word << 8 | u16::from(octet))
}

fn meaning(value: u16, format: Format) -> Result<Meaning, DecodeError> {
    let special = Special::of(format);
    Ok(match value {
        ENDED_EXACTLY => Meaning::Before(EndedBefore::Exactly),
        ENDED_ONE_OCTET_SHORT => Meaning::Before(EndedBefore::OneOctetShort),
        value if value == special.padding => Meaning::Padding,
        value if value == special.piggyback => Meaning::Piggyback,
        value if value >= special.reserved => return Err(DecodeError::IndicatorReserved(value)),
        value => Meaning::End(value),
    })
}

/// Returns the octets of `data` from `start` to `end`.
fn part(data: &[u8], start: u16, end: u16) -> Result<&[u8], DecodeError> {
    if usize::from(end) > data.len() {
        return Err(DecodeError::IndicatorTooLarge { value: end, data: data.len() });
    }
    if end <= start {
        return Err(DecodeError::IndicatorOrder { value: end, previous: start });
    }
    Ok(&data[usize::from(start)..usize::from(end)])
}

fn piggybacked(octets: &[u8]) -> Result<Status, DecodeError> {
    let first = octets.first().ok_or(DecodeError::SuperFieldBeyondEnd)? >> 4;
    if first == 0 { status::decode(octets) } else { Err(DecodeError::PiggybackHeader(first)) }
}
