//! PGM on the wire: messages to bytes and back (RFC 3208 §8, §9). All integers are big-endian.
//!
//! A message is a header of 16 octets, a body of its type, options, and of ODATA and RDATA a TSDU. [`encode`] leaves
//! the checksum 0; [`finish`] computes it over the whole datagram, once its content is in place. [`decode`] checks
//! everything that it uses and allocates nothing by a length that a message claims. Options that we do not know are
//! skipped; so are those that say nothing in a message of this type.

mod descriptor;
mod octets;
mod option;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::ops::Range;

use crate::message::{
    Ack, Body, Data, DataKind, Gsi, Message, Nak, NakKind, Origin, Parity, Poll, Polr, Spm, Tsi,
};
pub(crate) use descriptor::len as descriptor_len;
use farcast_delivery::octets::{Counter, Reader, Sink, Truncated};
use octets::{PgmReader as _, PgmSink as _};
use option::{Found, Of};

/// A decoded datagram: the message (data is a run of one), and the range of its content in the datagram.
pub type Packet = farcast_delivery::Packet<Message>;

/// Octets of the header of every message.
pub const HEADER: usize = 16;
/// Octets of the header of ODATA and RDATA without options.
pub const DATA_HEADER: usize = HEADER + 8;
/// Octets of `OPT_FRAGMENT` together with the option that begins all options.
pub const FRAGMENT_OPTIONS: usize = 4 + 16;

/// Reason for which a datagram is not a PGM message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The datagram ends within a field or option.
    #[error("message is cut short")]
    Truncated,
    /// The version is not 0, or a reserved bit is set.
    #[error("version {0} is not 0")]
    Version(u8),
    /// The message type is unknown.
    #[error("unknown message type {0:#04x}")]
    Type(u8),
    /// The checksum is wrong, or missing where it is mandatory.
    #[error("checksum {0:#06x} is wrong")]
    Checksum(u16),
    /// The TSDU is not as long as the header says.
    #[error("a TSDU of {said} octets where there are {found}")]
    TsduLength {
        /// Length in the header.
        said: u16,
        /// Length that was found.
        found: usize,
    },
    /// The address family is unknown.
    #[error("unknown address family {0}")]
    Family(u16),
    /// The options do not begin with their total length, or the length exceeds the datagram.
    #[error("options of {0} octets")]
    OptionsLength(u16),
    /// There are more than 16 options.
    #[error("more than 16 options")]
    Options,
    /// The length of an option does not fit its type.
    #[error("option {0:#04x} has a wrong length")]
    OptionLength(u8),
    /// An option occurs twice.
    #[error("option {0:#04x} comes twice")]
    Repeated(u8),
    /// No option is marked as the last.
    #[error("options without an end")]
    NoEnd,
    /// The size of a transmission group is invalid.
    #[error("a transmission group of {0}")]
    GroupSize(u32),
    /// The description of an object is invalid.
    #[error("what is said of an object makes no sense")]
    Descriptor,
}

impl From<Truncated> for DecodeError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// Message types.
mod kind {
    pub(super) const SPM: u8 = 0x00;
    pub(super) const POLL: u8 = 0x01;
    pub(super) const POLR: u8 = 0x02;
    pub(super) const ODATA: u8 = 0x04;
    pub(super) const RDATA: u8 = 0x05;
    pub(super) const NAK: u8 = 0x08;
    pub(super) const NNAK: u8 = 0x09;
    pub(super) const NCF: u8 = 0x0A;
    pub(super) const SPMR: u8 = 0x0C;
    pub(super) const ACK: u8 = 0x0D;
}

/// Bits of the options octet, as they are on the wire: RFC 3208 §8 numbers them from the other end.
mod bit {
    pub(super) const PRESENT: u8 = 0x01;
    pub(super) const NETWORK: u8 = 0x02;
    pub(super) const VAR_LEN: u8 = 0x40;
    pub(super) const PARITY: u8 = 0x80;
}

/// Position of the checksum in a datagram.
const CHECKSUM: Range<usize> = 6..8;

/// Returns the folded one's-complement sum of 16-bit words, not complemented; an odd octet is padded with 0.
fn sum(octets: &[u8]) -> u16 {
    let (words, rest) = octets.as_chunks::<2>();
    let sum: u64 = words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum();
    let mut sum = sum + rest.first().map_or(0, |&octet| u64::from(octet) << 8);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// Computes the checksum over a whole datagram (header, options and TSDU) and writes it to its place (RFC 3208 §8).
pub fn finish(datagram: &mut [u8]) {
    if datagram.len() < HEADER {
        return;
    }
    datagram[CHECKSUM].fill(0);
    let checksum = match !sum(datagram) {
        // 0 on the wire means that there is no checksum.
        0 => 0xFFFF,
        other => other,
    };
    datagram[CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
}

/// Reads one datagram.
///
/// # Errors
/// The reason for which the datagram is invalid. Nothing is allocated beyond the size of the datagram.
pub fn decode(datagram: &[u8]) -> Result<Packet, DecodeError> {
    let mut reader = Reader::new(datagram);
    let (source, destination) = (reader.u16()?, reader.u16()?);
    let (first, bits, checksum) = (reader.u8()?, reader.u8()?, reader.u16()?);
    let (gsi, said) = (Gsi(reader.array()?), reader.u16()?);
    if first >> 4 != 0 {
        return Err(DecodeError::Version(first >> 4));
    }
    let is_data = matches!(first, kind::ODATA | kind::RDATA);
    if checksum == 0 && is_data || checksum != 0 && sum(datagram) != 0xFFFF {
        return Err(DecodeError::Checksum(checksum));
    }
    let mut read = Reading { bits, datagram, reader, said };
    let (body, payload) = match first {
        kind::SPM => (read.spm()?, 0..0),
        kind::POLL => (read.poll()?, 0..0),
        kind::POLR => (read.polr()?, 0..0),
        kind::ODATA | kind::RDATA => read.data(first == kind::RDATA)?,
        kind::NAK | kind::NNAK | kind::NCF => (read.nak(first)?, 0..0),
        kind::SPMR => {
            read.options(Of::Control)?;
            (Body::Spmr, 0..0)
        }
        kind::ACK => (read.ack()?, 0..0),
        other => return Err(DecodeError::Type(other)),
    };
    let mut message = Message { tsi: Tsi { gsi, port: source }, port: destination, body };
    if !message.is_downstream() {
        (message.tsi.port, message.port) = (destination, source);
    }
    Ok(Packet { message, payload })
}

/// A message that is being read, behind its header.
struct Reading<'a> {
    bits: u8,
    datagram: &'a [u8],
    reader: Reader<'a>,
    /// Octets of the TSDU, by the header.
    said: u16,
}

impl Reading<'_> {
    fn has(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }

    /// Reads the options, and checks that only a TSDU of the announced length follows.
    fn options(&mut self, of: Of) -> Result<Found, DecodeError> {
        let found =
            if self.has(bit::PRESENT) { option::read(&mut self.reader, of)? } else { Found::default() };
        let len = self.reader.rest().len();
        if usize::from(self.said) == len && (len == 0 || of == Of::Data) {
            Ok(found)
        } else {
            Err(DecodeError::TsduLength { said: self.said, found: len })
        }
    }

    fn spm(&mut self) -> Result<Body, DecodeError> {
        let reader = &mut self.reader;
        let (sqn, trail, lead, path) = (reader.sqn()?, reader.sqn()?, reader.sqn()?, reader.nla()?);
        Ok(Body::Spm(Spm { sqn, trail, lead, path, options: self.options(Of::Control)?.control }))
    }

    fn poll(&mut self) -> Result<Body, DecodeError> {
        let reader = &mut self.reader;
        let (sqn, round, subtype) = (reader.sqn()?, reader.u16()?, reader.u16()?);
        let path = reader.nla()?;
        let (backoff_us, random, mask) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let options = self.options(Of::Control)?.control;
        Ok(Body::Poll(Poll { sqn, round, subtype, path, backoff_us, random, mask, options }))
    }

    fn polr(&mut self) -> Result<Body, DecodeError> {
        let (sqn, round, _) = (self.reader.sqn()?, self.reader.u16()?, self.reader.u16()?);
        let parity = self.has(bit::PARITY);
        Ok(Body::Polr(Polr { sqn, round, parity, options: self.options(Of::Control)?.control }))
    }

    fn nak(&mut self, first: u8) -> Result<Body, DecodeError> {
        let reader = &mut self.reader;
        let (sqn, source, group) = (reader.sqn()?, reader.nla()?, reader.nla()?);
        let Found { control: options, listed: also, list_octet, .. } = self.options(Of::Control)?;
        let kind = match first {
            kind::NAK => NakKind::Nak,
            kind::NNAK => NakKind::NullNak,
            _ => NakKind::Confirmation,
        };
        Ok(Body::Nak(Nak {
            kind,
            parity: self.has(bit::PARITY),
            sqn,
            source,
            group,
            also,
            list_octet,
            options,
        }))
    }

    fn ack(&mut self) -> Result<Body, DecodeError> {
        let (highest, bitmap) = (self.reader.sqn()?, self.reader.u32()?);
        Ok(Body::Ack(Ack { highest, bitmap, options: self.options(Of::Control)?.control }))
    }

    fn data(&mut self, repair: bool) -> Result<(Body, Range<usize>), DecodeError> {
        let (sqn, trail) = (self.reader.sqn()?, self.reader.sqn()?);
        let found = self.options(Of::Data)?;
        let var_len = self.has(bit::VAR_LEN);
        let parity = self.has(bit::PARITY).then_some(Parity { group: found.parity_group, var_len });
        let tsdu = self.reader.rest();
        let descriptor =
            if found.is_object { Some(descriptor::read(&mut self.reader)?.into()) } else { None };
        let kind = if repair { DataKind::Repair } else { DataKind::Original };
        let len = self.said;
        let data = Data {
            kind,
            sqn,
            count: NonZeroU32::MIN,
            trail,
            parity,
            options: found.data,
            descriptor,
            len,
            last_len: len,
            origin: Origin::UNKNOWN,
        };
        let begin = self.datagram.len() - tsdu.len();
        let payload = if data.descriptor.is_some() { 0..0 } else { begin..self.datagram.len() };
        Ok((Body::Data(data), payload))
    }
}

/// Appends a message, or datagram `segment` (from 0) of a run as far as its content, to `out`, with a checksum of 0.
pub fn encode(message: &Message, segment: u32, out: &mut Vec<u8>) {
    let start = out.len();
    write(message, segment, out);
    // The presence of options was not known when the header was written.
    let bits = option::bits(message, segment);
    out[start + 5] = bits;
}

/// Returns the length in octets of datagram `segment` of `message`, content included.
pub fn encoded_len(message: &Message, segment: u32) -> usize {
    let mut counter = Counter(0);
    write(message, segment, &mut counter);
    let content = message.data().filter(|data| data.descriptor.is_none());
    counter.0 + content.map_or(0, |data| data.tsdu_len(segment))
}

fn write<S: Sink>(message: &Message, segment: u32, out: &mut S) {
    let (mut source, mut destination) = (message.tsi.port, message.port);
    if !message.is_downstream() {
        (source, destination) = (destination, source);
    }
    let (kind, tsdu) = match &message.body {
        Body::Spm(_) => (kind::SPM, 0),
        Body::Poll(_) => (kind::POLL, 0),
        Body::Polr(_) => (kind::POLR, 0),
        Body::Data(data) => {
            let kind = if data.kind == DataKind::Repair { kind::RDATA } else { kind::ODATA };
            (kind, data.tsdu_len(segment) as u16)
        }
        Body::Nak(nak) => match nak.kind {
            NakKind::Nak => (kind::NAK, 0),
            NakKind::NullNak => (kind::NNAK, 0),
            NakKind::Confirmation => (kind::NCF, 0),
        },
        Body::Spmr => (kind::SPMR, 0),
        Body::Ack(_) => (kind::ACK, 0),
    };
    out.u16(source);
    out.u16(destination);
    out.put(&[kind, 0, 0, 0]);
    out.put(&message.tsi.gsi.0);
    out.u16(tsdu);
    write_body(&message.body, segment, out);
}

fn write_body<S: Sink>(body: &Body, segment: u32, out: &mut S) {
    match body {
        Body::Spm(spm) => {
            out.sqn(spm.sqn);
            out.sqn(spm.trail);
            out.sqn(spm.lead);
            out.nla(spm.path);
            option::write_control(&spm.options, &[], 0, out);
        }
        Body::Poll(poll) => {
            out.sqn(poll.sqn);
            out.u16(poll.round);
            out.u16(poll.subtype);
            out.nla(poll.path);
            out.u32(poll.backoff_us);
            out.u32(poll.random);
            out.u32(poll.mask);
            option::write_control(&poll.options, &[], 0, out);
        }
        Body::Polr(polr) => {
            out.sqn(polr.sqn);
            out.u16(polr.round);
            out.u16(0);
            option::write_control(&polr.options, &[], 0, out);
        }
        Body::Data(data) => {
            out.sqn(data.sqn.plus(segment));
            out.sqn(data.trail);
            option::write_data(data, segment, out);
            if let Some(descriptor) = &data.descriptor {
                descriptor::write(descriptor, out);
            }
        }
        Body::Nak(nak) => {
            out.sqn(nak.sqn);
            out.nla(nak.source);
            out.nla(nak.group);
            option::write_control(&nak.options, &nak.also, nak.list_octet, out);
        }
        Body::Spmr => {}
        Body::Ack(ack) => {
            out.sqn(ack.highest);
            out.u32(ack.bitmap);
            option::write_control(&ack.options, &[], 0, out);
        }
    }
}
