//! MFTP on the wire: messages to bytes and back (draft-miller-mftp-spec-03 §12).
//!
//! A message is a 12-byte header (version, type, length, checksum, transmission identifier; all integers
//! big-endian) and parameters (type, length, value, padded with zeros to a multiple of four bytes). Unknown
//! parameters are skipped, so farcast's own (types 0x7F01 on) do not disturb others.
//!
//! [`decode`] checks everything that it uses, and allocates nothing by a length that a message claims: lists are as
//! long as the bytes that are present. The payload stays in the datagram; [`Packet::payload`] is its place.
//!
//! The checksum is written for control messages and left 0 ("not used") for DATA, where UDP's is relied on;
//! it is verified wherever it is not 0.

mod announce;
mod control;
mod parameter;
mod transfer;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::ops::Range;

use crate::message::{Body, Data, Echo, Message};
use crate::proof::Proof;
use parameter::kind::PROOF;
use parameter::{ByteSink, Counter, ParameterReader, set};

/// Bytes of the common header.
pub const HEADER_LEN: usize = 12;
/// Bytes of a DATA message before its payload.
pub const DATA_HEADER_LEN: usize = HEADER_LEN + 3 * 8 + 4;
/// Bytes of a NAK without its event list (IPv4, no parity).
pub const NAK_FIXED_LEN: usize = HEADER_LEN + 6 * 8 + 20 + 4;
/// Protocol version.
pub const VERSION: u16 = 1;

/// Decoded datagram: the message (a DATA message is a run of one), and the byte range of its payload in the datagram
/// (empty without DATA).
pub type Packet = farcast_delivery::Packet<Message>;

/// Reason for which a datagram is not an MFTP message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The datagram ends before a header or a parameter does.
    #[error("message is cut short")]
    Truncated,
    /// The version is not 1.
    #[error("version {0} is not 1")]
    Version(u16),
    /// The length field is not the datagram's length.
    #[error("length field differs from the datagram's length")]
    Length,
    /// The checksum does not match.
    #[error("checksum does not match")]
    Checksum,
    /// The message type is not one of the draft's or of farcast's.
    #[error("unknown message type {0:#06x}")]
    Type(u16),
    /// A parameter has a length that its type cannot have.
    #[error("parameter {parameter:#06x} has a wrong length")]
    ParameterLength {
        /// Type of the parameter.
        parameter: u16,
    },
    /// A parameter has a value that its type cannot have.
    #[error("parameter {parameter:#06x} has a wrong value")]
    Value {
        /// Type of the parameter.
        parameter: u16,
    },
    /// A mandatory parameter is missing.
    #[error("parameter {parameter:#06x} is missing")]
    Missing {
        /// Type of the parameter.
        parameter: u16,
    },
    /// A parameter comes twice.
    #[error("parameter {parameter:#06x} comes twice")]
    Repeated {
        /// Type of the parameter.
        parameter: u16,
    },
    /// An ordered parameter is not in its place by the draft.
    #[error("parameter {expected:#06x} is not in its place")]
    OutOfOrder {
        /// Type of the parameter that should be there.
        expected: u16,
    },
    /// The event count or hash of a NAK contradicts its event list.
    #[error("event count or hash contradicts the event list")]
    EventList,
}

mod kind {
    pub(super) const QUERY: u16 = 0x0001;
    pub(super) const JOIN: u16 = 0x0002;
    pub(super) const LEAVE: u16 = 0x0003;
    pub(super) const ANNOUNCE: u16 = 0x0004;
    pub(super) const DATA: u16 = 0x0005;
    pub(super) const STATUS_REQUEST: u16 = 0x0006;
    pub(super) const NAK: u16 = 0x0007;
    pub(super) const COMPLETION: u16 = 0x0008;
    pub(super) const ABORT: u16 = 0x0009;
    pub(super) const REGISTRATION: u16 = 0x000A;
    pub(super) const DONE: u16 = 0x000B;
    pub(super) const QUIT: u16 = 0x000C;
    pub(super) const ECHO: u16 = 0x000D;
    pub(super) const ECHO_RESPONSE: u16 = 0x000E;
    pub(super) const ACK: u16 = 0x000F;
    pub(super) const END: u16 = 0x0015;
    /// Farcast's own message type.
    pub(super) const GRANT: u16 = 0x7F01;
}

fn kind_of(body: &Body) -> u16 {
    match body {
        Body::Query(_) => kind::QUERY,
        Body::Join(_) => kind::JOIN,
        Body::Leave(_) => kind::LEAVE,
        Body::Announce(_) => kind::ANNOUNCE,
        Body::Data(_) => kind::DATA,
        Body::StatusRequest(_) => kind::STATUS_REQUEST,
        Body::Nak(_) => kind::NAK,
        Body::Completion(_) => kind::COMPLETION,
        Body::Abort(_) => kind::ABORT,
        Body::Registration(_) => kind::REGISTRATION,
        Body::Done(_) => kind::DONE,
        Body::Quit(_) => kind::QUIT,
        Body::Echo(_) => kind::ECHO,
        Body::EchoResponse(_) => kind::ECHO_RESPONSE,
        Body::Ack(_) => kind::ACK,
        Body::End(_) => kind::END,
        Body::Grant(_) => kind::GRANT,
    }
}

fn encode_body<S: ByteSink>(body: &Body, segment: u32, out: &mut S) {
    match body {
        Body::Query(m) => control::encode_query(m, out),
        Body::Join(m) => control::encode_join(m, out),
        Body::Leave(m) => control::encode_leave(m, out),
        Body::Echo(m) => control::encode_echo(m, m.hosts.as_ref(), out),
        Body::EchoResponse(m) => control::encode_echo(m, None, out),
        Body::Registration(m) => control::encode_registration(m, out),
        Body::Completion(m) => control::encode_completion(m, out),
        Body::Abort(m) => control::encode_abort(m, out),
        Body::Quit(m) => control::encode_quit(m, out),
        Body::End(m) => control::encode_end(m, out),
        Body::Grant(m) => control::encode_grant(m, out),
        Body::Announce(m) => announce::encode(m, out),
        Body::Data(m) => transfer::encode_data(m, segment, out),
        Body::StatusRequest(m) => transfer::encode_status_request(m, out),
        Body::Nak(m) => transfer::encode_nak(m, out),
        Body::Ack(m) => transfer::encode_ack(m, out),
        Body::Done(m) => transfer::encode_done(m, out),
    }
}

/// Appends a control message, or datagram `segment` (from 0) of a DATA run up to its payload, to `out`.
///
/// After a DATA header the caller puts [`Data::payload_len`] bytes and zeros up to [`encoded_len`].
pub fn encode(message: &Message, segment: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.put(&VERSION.to_be_bytes());
    out.put(&kind_of(&message.body).to_be_bytes());
    // A message longer than 65,535 bytes has no encoding; the engines cut their host lists long before.
    out.put(&(encoded_len(message, segment) as u16).to_be_bytes());
    out.put(&[0, 0]);
    out.put(&message.transmission.to_be_bytes());
    encode_body(&message.body, segment, out);
    if !matches!(message.body, Body::Data(_)) {
        encode_proof(message, out);
        let sum = checksum(&out[start..]);
        out[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Returns the length in bytes of datagram `segment` of `message`, payload and padding included.
pub fn encoded_len(message: &Message, segment: u32) -> usize {
    if let Body::Data(data) = &message.body {
        return data_len(data.payload_len(segment));
    }
    let mut counter = Counter(HEADER_LEN);
    encode_body(&message.body, segment, &mut counter);
    encode_proof(message, &mut counter);
    counter.0
}

/// Encodes the proof, the last parameter of a control message.
fn encode_proof<S: ByteSink>(message: &Message, out: &mut S) {
    if let Some(proof) = &message.proof {
        out.parameter(PROOF, &proof.0);
    }
}

/// Updates `hasher` with the part of `message` that a proof covers: its type, its transmission, and its parameters
/// without the proof.
pub(crate) fn hash(message: &Message, hasher: &mut blake3::Hasher) {
    hasher.update(&kind_of(&message.body).to_be_bytes()).update(&message.transmission.to_be_bytes());
    encode_body(&message.body, 0, hasher);
}

/// Returns the length in bytes of a DATA message that carries `payload` bytes.
pub const fn data_len(payload: usize) -> usize {
    DATA_HEADER_LEN + payload + parameter::padding(payload)
}

/// Returns the largest payload, a multiple of four bytes, whose DATA message fits `datagram` bytes of UDP payload.
pub const fn dtu_size_for(datagram: usize) -> usize {
    datagram.saturating_sub(DATA_HEADER_LEN) & !3
}

/// Returns the maximum number of DTUs whose bitmap fits one NAK in `datagram` bytes of UDP payload (draft §11.2).
///
/// `extra` is the length of farcast's own parameters and IPv6 addresses.
pub const fn block_size_for(datagram: usize, extra: usize) -> usize {
    (datagram.saturating_sub(NAK_FIXED_LEN + extra) & !3) * 8
}

/// Decodes one datagram.
///
/// # Errors
/// Returns the reason if the datagram is malformed. Nothing is allocated beyond the size of the datagram.
pub fn decode(datagram: &[u8]) -> Result<Packet, DecodeError> {
    let field = |at: usize| u16::from_be_bytes([datagram[at], datagram[at + 1]]);
    if datagram.len() < HEADER_LEN {
        return Err(DecodeError::Truncated);
    }
    if field(0) != VERSION {
        return Err(DecodeError::Version(field(0)));
    }
    if usize::from(field(4)) != datagram.len() {
        return Err(DecodeError::Length);
    }
    if field(6) != 0 && checksum(datagram) != field(6) {
        return Err(DecodeError::Checksum);
    }
    let transmission = u32::from(field(8)) << 16 | u32::from(field(10));
    let (body, payload) = decode_body(field(2), datagram)?;
    let proof = if matches!(body, Body::Data(_)) { None } else { decode_proof(datagram)? };
    Ok(Packet { message: Message { transmission, body, proof }, payload })
}

fn decode_proof(datagram: &[u8]) -> Result<Option<Proof>, DecodeError> {
    let mut reader = ParameterReader::new(datagram, HEADER_LEN);
    let mut proof = None;
    while let Some(parameter) = reader.next()? {
        if parameter.kind == PROOF {
            set(&mut proof, parameter, Proof(parameter.octets()?))?;
        }
    }
    Ok(proof)
}

fn decode_body(kind: u16, datagram: &[u8]) -> Result<(Body, Range<usize>), DecodeError> {
    let mut reader = ParameterReader::new(datagram, HEADER_LEN);
    let reader = &mut reader;
    let body = match kind {
        kind::DATA => {
            let (data, payload) = transfer::decode_data(datagram)?;
            return Ok((Body::Data(data), payload));
        }
        kind::QUERY => Body::Query(control::decode_query(reader)?),
        kind::JOIN => Body::Join(control::decode_join(reader)?),
        kind::LEAVE => Body::Leave(control::decode_leave(reader)?),
        kind::ECHO => Body::Echo(control::decode_echo(reader)?),
        kind::ECHO_RESPONSE => Body::EchoResponse(Echo { hosts: None, ..control::decode_echo(reader)? }),
        kind::REGISTRATION => Body::Registration(control::decode_registration(reader)?),
        kind::COMPLETION => Body::Completion(control::decode_completion(reader)?),
        kind::ABORT => Body::Abort(control::decode_abort(reader)?),
        kind::QUIT => Body::Quit(control::decode_quit(reader)?),
        kind::END => Body::End(control::decode_end(reader)?),
        kind::GRANT => Body::Grant(control::decode_grant(reader)?),
        kind::ANNOUNCE => Body::Announce(announce::decode(reader)?.into()),
        kind::STATUS_REQUEST => Body::StatusRequest(transfer::decode_status_request(reader)?),
        kind::NAK => Body::Nak(transfer::decode_nak(reader)?),
        kind::ACK => Body::Ack(transfer::decode_ack(reader)?),
        kind::DONE => Body::Done(transfer::decode_done(reader)?),
        other => return Err(DecodeError::Type(other)),
    };
    Ok((body, 0..0))
}

/// Returns the ones'-complement of the ones'-complement sum of the message's 16-bit words. Its checksum field counts as
/// 0. A sum of 0 is returned as 0xFFFF, its other form, because 0 means "not used".
fn checksum(message: &[u8]) -> u16 {
    let (words, rest) = message.as_chunks::<2>();
    let skip = |index: usize, word: u16| if index == 3 { 0 } else { u32::from(word) };
    let mut sum: u32 = words.iter().enumerate().map(|(i, w)| skip(i, u16::from_be_bytes(*w))).sum();
    // An odd last byte counts as the high half of a word.
    sum += rest.first().map_or(0, |&byte| u32::from(byte) << 8);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    match !(sum as u16) {
        0 => 0xFFFF,
        sum => sum,
    }
}

/// Part of [`Data`] that a datagram repeats, for a driver that joins consecutive DTUs into one run.
impl Data {
    /// Returns `true` if `next` continues this run: the same pass, block and kind, full DTUs so far, the next number.
    pub fn continues(&self, next: &Self) -> bool {
        (self.pass, self.block, self.kind) == (next.pass, next.block, next.kind)
            && self.dtus.end() == next.dtus.first()
            && self.len == self.last_len
            && next.len <= self.len
    }
}
