//! Parameters: type, length, value, padded with zeros to a multiple of four bytes (draft §12).

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use farcast_core::Run;

use super::DecodeError;
use crate::message::ClientId;
use crate::turn::{HeardData, Turn};

/// Types of parameters; those from 0x7F01 on are farcast's own and skipped by others.
pub(super) mod kind {
    pub(crate) const ANNOUNCE_DURATION: u16 = 0x0100;
    pub(crate) const ANNOUNCE_OPTIONS: u16 = 0x0101;
    pub(crate) const APPLICATION_REFERENCE: u16 = 0x0102;
    pub(crate) const BLOCK_NUMBER: u16 = 0x0103;
    pub(crate) const BLOCK_RANGE: u16 = 0x0104;
    pub(crate) const BLOCK_SIZE: u16 = 0x0105;
    pub(crate) const CANCEL_REASON: u16 = 0x0106;
    pub(crate) const CLIENT_ADDRESS: u16 = 0x0107;
    pub(crate) const DATA_RATE: u16 = 0x0108;
    pub(crate) const TRANSFER_DURATION: u16 = 0x0109;
    pub(crate) const DTU_NUMBER: u16 = 0x010A;
    pub(crate) const DTU_RANGE: u16 = 0x010B;
    pub(crate) const DTU_SIZE: u16 = 0x010C;
    pub(crate) const ECHO_SEQUENCE: u16 = 0x010D;
    pub(crate) const ECHO_DATA: u16 = 0x010E;
    pub(crate) const ERROR_THRESHOLD: u16 = 0x010F;
    pub(crate) const EVENT_COUNT: u16 = 0x0110;
    pub(crate) const EVENT_HASH: u16 = 0x0111;
    pub(crate) const EVENT_LIST: u16 = 0x0112;
    pub(crate) const HOST_LIST_COMPLEX: u16 = 0x0113;
    pub(crate) const HOST_LIST: u16 = 0x0114;
    pub(crate) const GROUP_OPTIONS: u16 = 0x0115;
    pub(crate) const PUBLIC_ADDRESS: u16 = 0x0116;
    pub(crate) const PASS_NUMBER: u16 = 0x0117;
    pub(crate) const PRIVATE_ADDRESS: u16 = 0x0118;
    pub(crate) const PRODUCT_DATA: u16 = 0x0119;
    pub(crate) const PRODUCT_NAME: u16 = 0x011A;
    pub(crate) const PRODUCT_SIZE: u16 = 0x011B;
    pub(crate) const REGISTRATION_RESPONSE: u16 = 0x011C;
    pub(crate) const RESPONSE_ADDRESS: u16 = 0x011D;
    pub(crate) const RESPONSE_PORT: u16 = 0x011E;
    pub(crate) const SERIAL_NUMBER: u16 = 0x011F;
    pub(crate) const SERVER_ADDRESS: u16 = 0x0120;
    pub(crate) const SERVER_PORT: u16 = 0x0121;
    pub(crate) const STATUS_TYPE: u16 = 0x0122;
    pub(crate) const USER_DATA: u16 = 0x0123;
    pub(crate) const BACKOFF_WINDOW: u16 = 0x0124;
    /// Product size of 4 GiB and more; Product Size is then its low 32 bits.
    pub(crate) const PRODUCT_SIZE_64: u16 = 0x7F01;
    /// IPv6 form of Server Address; the three others likewise.
    pub(crate) const SERVER_ADDRESS_6: u16 = 0x7F02;
    /// Digest that commits to the whole product.
    pub(crate) const PRODUCT_ID: u16 = 0x7F03;
    pub(crate) const RESPONSE_ADDRESS_6: u16 = 0x7F04;
    pub(crate) const PRIVATE_ADDRESS_6: u16 = 0x7F05;
    pub(crate) const PUBLIC_ADDRESS_6: u16 = 0x7F06;
    /// Name of a receiver in its registration.
    pub(crate) const RECEIVER_NAME: u16 = 0x7F07;
    /// Segments held from an earlier transmission, in a registration.
    pub(crate) const SEGMENTS_HELD: u16 = 0x7F08;
    /// Bytes that a receiver can buffer, in its registration.
    pub(crate) const RECEIVE_BUFFER: u16 = 0x7F09;
    /// Number of the parity symbol in the payload, in place of the DTU Number.
    pub(crate) const PARITY_SYMBOL: u16 = 0x7F0A;
    /// Maximum number of parity symbols of a block, in an announcement.
    pub(crate) const PARITY_SYMBOLS: u16 = 0x7F0B;
    /// Number of the block's parity symbols that the client holds, in a NAK.
    pub(crate) const PARITY_HELD: u16 = 0x7F0C;
    /// Number of missing DTUs that came and were not stored, in a NAK.
    pub(crate) const UNSTORED: u16 = 0x7F12;
    /// Cancel reason as text.
    pub(crate) const REASON_TEXT: u16 = 0x7F0D;
    /// Proof of a message's origin.
    pub(crate) const PROOF: u16 = 0x7F0E;
    /// Token with which a member proves its messages, in a GRANT.
    pub(crate) const TOKEN: u16 = 0x7F0F;
    /// Nonce of a registration, which the answer must repeat.
    pub(crate) const NONCE: u16 = 0x7F10;
    /// Digest of the key that ends the transmission, in an announcement.
    pub(crate) const COMMITMENT: u16 = 0x7F11;
    /// Clients that speak now, in an announcement, a Completion or a status request.
    pub(crate) const TURN: u16 = 0x7F13;
    /// Losses so far, in a registration.
    pub(crate) const HEARD: u16 = 0x7F14;
    /// Round of turns in which a client was called, in a registration or a Done.
    pub(crate) const ROUND: u16 = 0x7F15;
    /// Number of segments that a client with the whole product held before, in a registration.
    pub(crate) const COMPLETE: u16 = 0x7F16;
    /// Clients in one state, in an announcement to many.
    pub(crate) const HOST_SET: u16 = 0x7F17;
}

/// Destination of encoded bytes: a buffer, a hash, or a counter that only measures.
pub(super) trait ByteSink {
    fn put(&mut self, bytes: &[u8]);

    /// Writes a parameter of `len` bytes that are costly to compute; a counter does without them.
    fn made(&mut self, kind: u16, _len: usize, value: impl FnOnce() -> Vec<u8>) {
        self.parameter(kind, &value());
    }

    fn parameter(&mut self, kind: u16, value: &[u8]) {
        self.head(kind, value.len());
        self.put(value);
        self.put(&[0; 3][..padding(value.len())]);
    }

    fn head(&mut self, kind: u16, len: usize) {
        self.put(&kind.to_be_bytes());
        self.put(&(len as u16).to_be_bytes());
    }

    fn integer(&mut self, kind: u16, value: u32) {
        self.parameter(kind, &value.to_be_bytes());
    }

    fn optional(&mut self, kind: u16, value: Option<u32>) {
        if let Some(value) = value {
            self.integer(kind, value);
        }
    }

    fn text(&mut self, kind: u16, value: Option<&String>) {
        if let Some(value) = value {
            self.parameter(kind, value.as_bytes());
        }
    }

    /// Writes an inclusive range that counts from 1.
    fn range(&mut self, kind: u16, run: Run) {
        self.head(kind, 8);
        self.put(&(run.first() + 1).to_be_bytes());
        self.put(&run.end().to_be_bytes());
    }

    fn address(&mut self, v4: u16, v6: u16, address: IpAddr) {
        match address {
            IpAddr::V4(a) => self.parameter(v4, &a.octets()),
            IpAddr::V6(a) => self.parameter(v6, &a.octets()),
        }
    }

    fn turn(&mut self, turn: Option<Turn>) {
        if let Some(turn) = turn {
            self.head(kind::TURN, 12);
            self.put(&turn.round.to_be_bytes());
            self.put(&turn.spread_ms.to_be_bytes());
            self.put(&turn.first.to_be_bytes());
            self.put(&turn.last.to_be_bytes());
        }
    }

    fn hosts(&mut self, hosts: Option<&Vec<ClientId>>) {
        if let Some(hosts) = hosts {
            self.head(kind::HOST_LIST, hosts.len() * 4);
            for host in hosts {
                self.put(&host.0.to_be_bytes());
            }
        }
    }
}

impl ByteSink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl ByteSink for blake3::Hasher {
    fn put(&mut self, bytes: &[u8]) {
        self.update(bytes);
    }
}

/// Counter of the bytes that would be written.
pub(super) struct Counter(pub(super) usize);

impl ByteSink for Counter {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }

    fn made(&mut self, _kind: u16, len: usize, _value: impl FnOnce() -> Vec<u8>) {
        self.0 += 4 + len + padding(len);
    }
}

/// Returns the number of zero bytes after a value of `len` bytes.
pub(super) const fn padding(len: usize) -> usize {
    len.wrapping_neg() % 4
}

/// Decoded parameter: its type, its value, and the value's offset in the message.
#[derive(Clone, Copy)]
pub(super) struct Parameter<'a> {
    pub(super) kind: u16,
    pub(super) value: &'a [u8],
    pub(super) offset: usize,
}

impl<'a> Parameter<'a> {
    fn wrong(self) -> DecodeError {
        DecodeError::Value { parameter: self.kind }
    }

    pub(super) fn octets<const N: usize>(self) -> Result<[u8; N], DecodeError> {
        self.value.try_into().map_err(|_| DecodeError::ParameterLength { parameter: self.kind })
    }

    pub(super) fn integer(self) -> Result<u32, DecodeError> {
        self.octets().map(u32::from_be_bytes)
    }

    /// Reads a number that counts from 1 on the wire.
    pub(super) fn ordinal(self) -> Result<u32, DecodeError> {
        // A run holds `first + count`, so the largest number leaves room for one more.
        self.integer()?.checked_sub(1).filter(|&n| n < u32::MAX - 1).ok_or(self.wrong())
    }

    pub(super) fn range(self) -> Result<Run, DecodeError> {
        let octets: [u8; 8] = self.octets()?;
        let (first, last) = octets.split_at(4);
        let number = |half: &[u8]| half.iter().fold(0u32, |n, &b| n << 8 | u32::from(b));
        let (first, last) = (number(first), number(last));
        let count = last.checked_sub(first).and_then(|n| n.checked_add(1));
        first.checked_sub(1).zip(count).and_then(|(f, c)| Run::new(f, c)).ok_or(self.wrong())
    }

    pub(super) fn port(self) -> Result<u16, DecodeError> {
        u16::try_from(self.integer()?).map_err(|_| self.wrong())
    }

    pub(super) fn address4(self) -> Result<IpAddr, DecodeError> {
        self.octets::<4>().map(|o| Ipv4Addr::from(o).into())
    }

    pub(super) fn address6(self) -> Result<IpAddr, DecodeError> {
        self.octets::<16>().map(|o| Ipv6Addr::from(o).into())
    }

    pub(super) fn client(self) -> Result<ClientId, DecodeError> {
        self.integer().map(ClientId)
    }

    /// Reads UTF-8 of 1 to `most` bytes.
    pub(super) fn text(self, most: usize) -> Result<String, DecodeError> {
        self.bytes(most)?;
        core::str::from_utf8(self.value).map(String::from).map_err(|_| self.wrong())
    }

    pub(super) fn bytes(self, most: usize) -> Result<&'a [u8], DecodeError> {
        if self.value.is_empty() || self.value.len() > most {
            return Err(DecodeError::ParameterLength { parameter: self.kind });
        }
        Ok(self.value)
    }

    pub(super) fn hosts(self) -> Result<Vec<ClientId>, DecodeError> {
        let (hosts, rest) = self.value.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(DecodeError::ParameterLength { parameter: self.kind });
        }
        Ok(hosts.iter().map(|host| ClientId(u32::from_be_bytes(*host))).collect())
    }

    /// Reads several integers.
    fn integers<const N: usize>(self) -> Result<[u32; N], DecodeError> {
        let (words, rest) = self.value.as_chunks::<4>();
        let words: &[[u8; 4]; N] = words
            .try_into()
            .ok()
            .filter(|_| rest.is_empty())
            .ok_or(DecodeError::ParameterLength { parameter: self.kind })?;
        Ok(words.map(u32::from_be_bytes))
    }

    pub(super) fn turn(self) -> Result<Turn, DecodeError> {
        let [head, first, last] = self.integers()?;
        let turn = Turn { round: (head >> 16) as u16, spread_ms: head as u16, first, last };
        if first > last { Err(self.wrong()) } else { Ok(turn) }
    }

    pub(super) fn round(self) -> Result<u16, DecodeError> {
        u16::try_from(self.integer()?).map_err(|_| self.wrong())
    }

    pub(super) fn heard(self) -> Result<HeardData, DecodeError> {
        let [missed, sent, lost] = self.integers()?;
        let sound = lost <= sent && missed.checked_add(sent).is_some();
        if sound { Ok(HeardData { missed, sent, lost }) } else { Err(self.wrong()) }
    }

    /// Reads an option word. Its first byte must be one of `marks`, and is returned with the second and third.
    pub(super) fn options(self, marks: &[u8]) -> Result<[u8; 3], DecodeError> {
        let [mark, a, b, _] = self.octets()?;
        if marks.contains(&mark) { Ok([mark, a, b]) } else { Err(self.wrong()) }
    }
}

/// Reader of the parameters of one message, in order.
pub(super) struct ParameterReader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> ParameterReader<'a> {
    /// Creates a reader of `message` from byte `at` on.
    pub(super) fn new(message: &'a [u8], at: usize) -> Self {
        Self { message, at }
    }

    pub(super) fn next(&mut self) -> Result<Option<Parameter<'a>>, DecodeError> {
        let rest = &self.message[self.at..];
        if rest.is_empty() {
            return Ok(None);
        }
        let [k0, k1, l0, l1, body @ ..] = rest else { return Err(DecodeError::Truncated) };
        let len = usize::from(u16::from_be_bytes([*l0, *l1]));
        let value = body.get(..len).ok_or(DecodeError::Truncated)?;
        let offset = self.at + 4;
        self.at = offset + len + padding(len);
        if self.at > self.message.len() {
            return Err(DecodeError::Truncated);
        }
        Ok(Some(Parameter { kind: u16::from_be_bytes([*k0, *k1]), value, offset }))
    }

    /// Returns the next parameter, which must be of one of `kinds` (where the draft orders them).
    pub(super) fn expect(&mut self, kinds: &[u16]) -> Result<Parameter<'a>, DecodeError> {
        loop {
            match self.next()? {
                Some(parameter) if kinds.contains(&parameter.kind) => return Ok(parameter),
                Some(parameter) if is_known(parameter.kind) => {
                    return Err(DecodeError::OutOfOrder { expected: kinds[0] });
                }
                Some(_) => {}
                None => return Err(DecodeError::Missing { parameter: kinds[0] }),
            }
        }
    }

    /// Reads to the end. The parameters in `ordered` and the server's have been read and must not come again.
    pub(super) fn finish(&mut self, ordered: &[u16]) -> Result<(), DecodeError> {
        while let Some(parameter) = self.next()? {
            refuse_repeated(parameter.kind, ordered)?;
        }
        Ok(())
    }

    /// Returns the next parameter as an address in its IPv4 or its IPv6 form.
    pub(super) fn expect_address(&mut self, v4: u16, v6: u16) -> Result<IpAddr, DecodeError> {
        let parameter = self.expect(&[v4, v6])?;
        if parameter.kind == v4 { parameter.address4() } else { parameter.address6() }
    }
}

/// Returns `true` if `kind` is one of the draft's parameters or of farcast's.
fn is_known(kind: u16) -> bool {
    (0x0100..=0x0129).contains(&kind) || (kind::PRODUCT_SIZE_64..=kind::HOST_SET).contains(&kind)
}

/// Rejects a parameter in `ordered`, or of the server, that comes again after its place.
pub(super) fn refuse_repeated(kind: u16, ordered: &[u16]) -> Result<(), DecodeError> {
    let server = [kind::SERVER_ADDRESS, kind::SERVER_ADDRESS_6, kind::SERVER_PORT];
    if server.contains(&kind) || ordered.contains(&kind) {
        return Err(DecodeError::Repeated { parameter: kind });
    }
    Ok(())
}

/// Sets `slot`, which must be empty, because no parameter of a message comes twice.
pub(super) fn set<T>(slot: &mut Option<T>, parameter: Parameter<'_>, value: T) -> Result<(), DecodeError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(DecodeError::Repeated { parameter: parameter.kind }),
    }
}

/// Returns the value of `slot`, which must be filled.
pub(super) fn need<T>(slot: Option<T>, parameter: u16) -> Result<T, DecodeError> {
    slot.ok_or(DecodeError::Missing { parameter })
}
