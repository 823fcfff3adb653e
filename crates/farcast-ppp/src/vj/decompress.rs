//! The receiving end (RFC 1144 §3.2.4 and §4.1).

use alloc::vec::Vec;

use super::header::{
    ACKNOWLEDGMENT, FLAGS, IDENTIFICATION, IP_CHECKSUM, Layout, PROTOCOL, PSH, SEQUENCE, TCP, TCP_CHECKSUM,
    TOTAL_LENGTH, URG, URGENT, WINDOW, checksum, long, put_long, put_short, short,
};
use super::{VjConfig, mask};

/// Reason for which no packet is restored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The header leaves out its slot, and a frame was damaged or wrong since one was named: it may be of another
    /// connection.
    #[error("the slot is left out, and a frame was damaged since it was named")]
    Tossed,
    /// The header names a slot that does not exist, or for which no whole header has come.
    #[error("slot {0} is unknown")]
    Slot(u8),
    /// The packet ends within its header.
    #[error("the header is cut short")]
    Truncated,
    /// The packet should have a whole header of TCP over IPv4, and has none, or one with a wrong checksum.
    #[error("what should be a whole header is none")]
    Header,
    /// With its header restored the packet would be longer than 65,535 octets.
    #[error("a packet of {0} octets is longer than any")]
    TooLong(usize),
}

/// Counters of a [`Decompressor`], by fate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DecompressorCounters {
    /// Whole headers.
    pub uncompressed: u64,
    /// Compressed headers that were restored.
    pub compressed: u64,
    /// [`Fault::Tossed`].
    pub tossed: u64,
    /// [`Fault::Slot`].
    pub unknown_slot: u64,
    /// [`Fault::Truncated`].
    pub truncated: u64,
    /// [`Fault::Header`].
    pub bad_header: u64,
    /// [`Fault::TooLong`].
    pub too_long: u64,
}

/// The last header of a connection.
#[derive(Clone, Debug, Default)]
struct ConnectionSlot {
    /// Empty before the first.
    header: Vec<u8>,
    layout: Layout,
}

/// The receiving end of one direction. Its memory is bounded by the number of slots, 120 octets each.
#[derive(Clone, Debug)]
pub struct Decompressor {
    slots: Vec<ConnectionSlot>,
    /// The slot that was named last.
    current: u8,
    /// `true` while headers without a slot are tossed.
    tossing: bool,
    counters: DecompressorCounters,
}

/// Content of a compressed header.
#[derive(Clone, Copy, Debug)]
struct CompressedHeader {
    changes: u8,
    checksum: u16,
    urgent: u16,
    window: u16,
    acknowledgment: u16,
    sequence: u16,
    identification: u16,
    /// Length of the compressed header in octets.
    len: usize,
}

impl Decompressor {
    /// Creates an end that has received nothing.
    pub fn new(config: VjConfig) -> Self {
        let slots = alloc::vec![ConnectionSlot::default(); usize::from(config.max_slot_id) + 1];
        Self { slots, current: 0, tossing: true, counters: DecompressorCounters::default() }
    }

    /// Returns the counters so far.
    pub const fn counters(&self) -> &DecompressorCounters {
        &self.counters
    }

    /// Notes that a frame was damaged, whatever it carried. Compressed headers that leave out their slot are tossed
    /// until one names it.
    pub const fn hear_of_damage(&mut self) {
        self.tossing = true;
    }

    /// Takes a packet of the protocol [`Uncompressed`](super::Kind::Uncompressed); `packet` has at least its headers.
    /// `out` then holds the octets that replace as many at the front of the packet.
    ///
    /// # Errors
    /// [`Fault`] if the packet is invalid; then headers without a slot are tossed, and `out` is empty.
    pub fn take_uncompressed(&mut self, packet: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        out.clear();
        let result = self.remember(packet);
        if let Some(slot) = self.note(result)? {
            out.extend_from_slice(&slot.header);
        }
        Ok(())
    }

    /// Takes a packet of the protocol [`Compressed`](super::Kind::Compressed), of `len` octets; `packet` has at least
    /// its header. Returns the length of that header, which the content of `out` then replaces.
    ///
    /// # Errors
    /// [`Fault`] if the packet is invalid; then headers without a slot are tossed, and `out` is empty.
    pub fn take_compressed(&mut self, packet: &[u8], len: usize, out: &mut Vec<u8>) -> Result<usize, Fault> {
        out.clear();
        let result = self.restore(packet, len);
        let told = result.map(|told| told.len);
        if let Some(slot) = self.note(result.map(drop))? {
            out.extend_from_slice(&slot.header);
        }
        told
    }

    /// Counts a result. Returns the present slot, if the result is good.
    fn note(&mut self, result: Result<(), Fault>) -> Result<Option<&ConnectionSlot>, Fault> {
        let counters = &mut self.counters;
        match result {
            Ok(()) => return Ok(self.slots.get(usize::from(self.current))),
            Err(Fault::Tossed) => counters.tossed += 1,
            Err(Fault::Slot(_)) => counters.unknown_slot += 1,
            Err(Fault::Truncated) => counters.truncated += 1,
            Err(Fault::Header) => counters.bad_header += 1,
            Err(Fault::TooLong(_)) => counters.too_long += 1,
        }
        self.tossing = true;
        result.map(|()| None)
    }

    /// Keeps a whole header in the slot that it names.
    fn remember(&mut self, packet: &[u8]) -> Result<(), Fault> {
        let layout = Layout::of(packet).ok_or(Fault::Header)?;
        let number = packet[PROTOCOL];
        let slot = self.slots.get_mut(usize::from(number)).ok_or(Fault::Slot(number))?;
        let mut ip = [0; 60];
        let ip = &mut ip[..layout.tcp];
        ip.copy_from_slice(&packet[..layout.tcp]);
        ip[PROTOCOL] = TCP;
        if checksum(ip) != 0 {
            return Err(Fault::Header);
        }
        slot.header.clear();
        slot.header.extend_from_slice(ip);
        slot.header.extend_from_slice(&packet[layout.tcp..layout.data]);
        slot.layout = layout;
        (self.current, self.tossing) = (number, false);
        self.counters.uncompressed += 1;
        Ok(())
    }

    /// Restores the next header of its slot from a compressed one.
    fn restore(&mut self, packet: &[u8], len: usize) -> Result<CompressedHeader, Fault> {
        let mut rest = packet;
        let changes = octet(&mut rest)?;
        if changes & mask::C != 0 {
            let number = octet(&mut rest)?;
            let slot = self.slots.get(usize::from(number));
            slot.filter(|slot| !slot.header.is_empty()).ok_or(Fault::Slot(number))?;
            (self.current, self.tossing) = (number, false);
        } else if self.tossing {
            return Err(Fault::Tossed);
        }
        let told = CompressedHeader::parse(changes, packet, rest)?;
        let slot = self.slots.get_mut(usize::from(self.current)).ok_or(Fault::Slot(self.current))?;
        let data = len.checked_sub(told.len).ok_or(Fault::Truncated)?;
        let whole = slot.layout.data + data;
        let whole = u16::try_from(whole).map_err(|_| Fault::TooLong(whole))?;
        slot.go_on(&told, whole);
        self.counters.compressed += 1;
        Ok(told)
    }
}

impl CompressedHeader {
    /// Reads the fields behind the slot from `rest`, the end of `packet`.
    fn parse(changes: u8, packet: &[u8], mut rest: &[u8]) -> Result<Self, Fault> {
        let rest = &mut rest;
        let checksum = u16::from_be_bytes([octet(rest)?, octet(rest)?]);
        let special =
            matches!(changes & (mask::S | mask::A | mask::W | mask::U), mask::ECHOED | mask::STREAM);
        let mut told = |bit| if changes & bit != 0 { number(rest) } else { Ok(0) };
        let [urgent, window, acknowledgment, sequence] =
            if special { [0; 4] } else { [told(mask::U)?, told(mask::W)?, told(mask::A)?, told(mask::S)?] };
        let identification = if changes & mask::I != 0 { told(mask::I)? } else { 1 };
        let len = packet.len() - rest.len();
        Ok(Self { changes, checksum, urgent, window, acknowledgment, sequence, identification, len })
    }
}

impl ConnectionSlot {
    /// Advances to the next header, of a packet of `whole` octets.
    fn go_on(&mut self, told: &CompressedHeader, whole: u16) {
        let Self { header, layout: Layout { tcp, data } } = self;
        let (tcp, data) = (*tcp, *data);
        let before = short(header, TOTAL_LENGTH) - data as u16;
        let changes = told.changes & (mask::S | mask::A | mask::W | mask::U);
        let (acknowledged, sent) = match changes {
            mask::ECHOED => (before, before),
            mask::STREAM => (0, before),
            _ => (told.acknowledgment, told.sequence),
        };
        let urgent = changes & mask::U != 0 && !matches!(changes, mask::ECHOED | mask::STREAM);
        if urgent {
            put_short(header, tcp + URGENT, told.urgent);
        }
        let flags = header[tcp + FLAGS] & !(PSH | URG);
        let pushed = if told.changes & mask::P != 0 { PSH } else { 0 };
        header[tcp + FLAGS] = flags | pushed | if urgent { URG } else { 0 };
        let window = short(header, tcp + WINDOW).wrapping_add(told.window);
        put_short(header, tcp + WINDOW, window);
        for (at, delta) in [(ACKNOWLEDGMENT, acknowledged), (SEQUENCE, sent)] {
            let number = long(header, tcp + at).wrapping_add(delta.into());
            put_long(header, tcp + at, number);
        }
        put_short(header, tcp + TCP_CHECKSUM, told.checksum);
        let identification = short(header, IDENTIFICATION).wrapping_add(told.identification);
        put_short(header, IDENTIFICATION, identification);
        put_short(header, TOTAL_LENGTH, whole);
        put_short(header, IP_CHECKSUM, 0);
        let sum = checksum(&header[..tcp]);
        put_short(header, IP_CHECKSUM, sum);
    }
}

/// Takes the next octet.
fn octet(rest: &mut &[u8]) -> Result<u8, Fault> {
    rest.split_off_first().copied().ok_or(Fault::Truncated)
}

/// Takes the next number: an octet above zero, or a zero and two octets.
fn number(rest: &mut &[u8]) -> Result<u16, Fault> {
    match octet(rest)? {
        0 => Ok(u16::from_be_bytes([octet(rest)?, octet(rest)?])),
        small => Ok(small.into()),
    }
}
