//! The packets of the Link Control Protocol (RFC 1661 §5 and §6).
//!
//! Nothing here negotiates: a line has the settings that its ends would have agreed on. A multilink bundle, the echo
//! monitor, and tests read and write these packets.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// The codes whose packets are sent as if nothing had been negotiated (RFC 1661 §5).
pub(crate) const CONFIGURATION_CODES: RangeInclusive<u8> = 1..=7;

/// The octets of an Echo or Discard without data.
pub const ECHO_OCTETS: usize = 8;

/// The octets of code, identifier and length.
const HEADER_OCTETS: usize = 4;

/// Reason for which octets are not an LCP packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LcpError {
    /// The packet is shorter than the fields of its code.
    #[error("the packet has {0} octets, less than the fields of its code take")]
    Short(usize),
    /// The length field is below 4 or above the length of the information field.
    #[error("the length field is {0}; it must be at least 4 and at most what the frame holds")]
    Length(u16),
    /// The code is none of 1 to 11; the answer is a Code-Reject.
    #[error("the code is {0}; only 1 to 11 are known")]
    Code(u8),
    /// An option's length field does not fit: too small, beyond the packet, or not that of its type.
    #[error("configuration option {0} has a length that does not fit")]
    OptionLength(u8),
}

/// Purpose of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Code {
    /// Request for options.
    ConfigureRequest = 1,
    /// Acceptance of all requested options.
    ConfigureAck = 2,
    /// Proposal of other values.
    ConfigureNak = 3,
    /// Refusal of options.
    ConfigureReject = 4,
    /// Request to close the link.
    TerminateRequest = 5,
    /// Agreement to close the link.
    TerminateAck = 6,
    /// Refusal of a code.
    CodeReject = 7,
    /// Refusal of a protocol.
    ProtocolReject = 8,
    /// Request for a sign of life.
    EchoRequest = 9,
    /// Answer to an Echo-Request.
    EchoReply = 10,
    /// Packet that is to be ignored.
    DiscardRequest = 11,
}

impl Code {
    const ALL: [Self; 11] = [
        Self::ConfigureRequest,
        Self::ConfigureAck,
        Self::ConfigureNak,
        Self::ConfigureReject,
        Self::TerminateRequest,
        Self::TerminateAck,
        Self::CodeReject,
        Self::ProtocolReject,
        Self::EchoRequest,
        Self::EchoReply,
        Self::DiscardRequest,
    ];

    /// Returns the code with this number.
    ///
    /// # Errors
    /// [`LcpError::Code`] if there is none.
    pub fn new(number: u8) -> Result<Self, LcpError> {
        Self::ALL.into_iter().find(|&code| code as u8 == number).ok_or(LcpError::Code(number))
    }
}

/// An LCP packet: code, identifier, and data whose form depends on the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Purpose of the packet.
    pub code: Code,
    /// Number by which a reply matches its request.
    pub identifier: u8,
    /// Octets behind the length field: options, or octets that begin with [`magic_number`](Self::magic_number) or
    /// [`rejected_protocol`](Self::rejected_protocol), or anything.
    pub data: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads the information field of a frame; octets beyond the length field are padding.
    ///
    /// # Errors
    /// [`LcpError`] if the octets are no packet, or an option of a Configure packet is invalid.
    pub fn parse(information: &'a [u8]) -> Result<Self, LcpError> {
        let &[code, identifier, high, low, ..] = information else {
            return Err(LcpError::Short(information.len()));
        };
        let length = u16::from_be_bytes([high, low]);
        let data = information.get(HEADER_OCTETS..usize::from(length)).ok_or(LcpError::Length(length))?;
        let code = Code::new(code)?;
        let least = match code {
            Code::EchoRequest | Code::EchoReply | Code::DiscardRequest => 4,
            Code::ProtocolReject => 2,
            _ => 0,
        };
        if data.len() < least {
            return Err(LcpError::Short(HEADER_OCTETS + data.len()));
        }
        let packet = Self { code, identifier, data };
        packet.options().try_for_each(|option| option.map(|_| ()))?;
        Ok(packet)
    }

    /// Appends the packet to `out`. Data beyond the range of the length field are cut off.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let most = usize::from(u16::MAX) - HEADER_OCTETS;
        let data = &self.data[..self.data.len().min(most)];
        let length = (HEADER_OCTETS + data.len()) as u16;
        out.extend([self.code as u8, self.identifier]);
        out.extend(length.to_be_bytes());
        out.extend_from_slice(data);
    }

    /// Returns the magic number of an Echo or Discard, 0 if none was negotiated; `None` for other codes.
    pub fn magic_number(&self) -> Option<u32> {
        let echoes = matches!(self.code, Code::EchoRequest | Code::EchoReply | Code::DiscardRequest);
        self.data.first_chunk().filter(|_| echoes).map(|&magic| u32::from_be_bytes(magic))
    }

    /// Returns the protocol that a Protocol-Reject refuses; `None` for other codes.
    pub fn rejected_protocol(&self) -> Option<u16> {
        let rejects = self.code == Code::ProtocolReject;
        self.data.first_chunk().filter(|_| rejects).map(|&protocol| u16::from_be_bytes(protocol))
    }

    /// Returns the options of a Configure packet, in order; none for other codes. The options end behind an error.
    pub fn options(&self) -> Options<'a> {
        let configures = (self.code as u8) <= Code::ConfigureReject as u8;
        Options { rest: if configures { self.data } else { &[] } }
    }
}

/// Returns an Echo-Request or Echo-Reply without data, as on the line.
pub fn echo(code: Code, identifier: u8, magic: u32) -> [u8; ECHO_OCTETS] {
    let [a, b, c, d] = magic.to_be_bytes();
    [code as u8, identifier, 0, ECHO_OCTETS as u8, a, b, c, d]
}

/// A configuration option (RFC 1661 §6, RFC 1662 §7.1, RFC 1990 §5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigurationOption<'a> {
    /// Type 1: the longest information field that the sender takes, in octets.
    Mru(u16),
    /// Type 2: the control octets that the sender wants escaped.
    Accm(u32),
    /// Type 5: a random number that tells the sender from its echo.
    MagicNumber(u32),
    /// Type 7: the sender takes short protocol fields.
    Pfc,
    /// Type 8: the sender takes frames without address and control.
    Acfc,
    /// Type 17: the sender does multilink, and takes packets of up to this many octets over the bundle.
    Mrru(u16),
    /// Type 18: the sender takes short sequence numbers in multilink headers.
    ShortSequence,
    /// Any other: its type and data.
    Other(u8, &'a [u8]),
}

impl<'a> ConfigurationOption<'a> {
    fn parse(kind: u8, data: &'a [u8]) -> Option<Self> {
        let short = || Some(u16::from_be_bytes(data.try_into().ok()?));
        let long = || Some(u32::from_be_bytes(data.try_into().ok()?));
        let flag = |option| data.is_empty().then_some(option);
        match kind {
            1 => short().map(Self::Mru),
            2 => long().map(Self::Accm),
            5 => long().map(Self::MagicNumber),
            7 => flag(Self::Pfc),
            8 => flag(Self::Acfc),
            17 => short().map(Self::Mrru),
            18 => flag(Self::ShortSequence),
            _ => Some(Self::Other(kind, data)),
        }
    }
}

/// The options of a packet.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<ConfigurationOption<'a>, LcpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = core::mem::take(&mut self.rest);
        let kind = *rest.first()?;
        let split = rest.get(1).and_then(|&length| rest.split_at_checked(length.into()));
        let option = split.and_then(|(option, behind)| {
            self.rest = behind;
            ConfigurationOption::parse(kind, option.get(2..)?)
        });
        if option.is_none() {
            self.rest = &[];
        }
        Some(option.ok_or(LcpError::OptionLength(kind)))
    }
}
