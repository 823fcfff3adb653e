//! The sending end (RFC 1144 §3.2.4).

use alloc::vec::Vec;

use smallvec::SmallVec;

use super::header::{
    ACK, ACKNOWLEDGMENT, ADDRESSES, FIN, FLAGS, FRAGMENT, IDENTIFICATION, Layout, OFFSET, PROTOCOL, PSH,
    RESERVED, RST, SEQUENCE, SYN, TCP, TCP_CHECKSUM, TOTAL_LENGTH, URG, URGENT, WINDOW, checksum, long,
    short,
};
use super::{Kind, VjConfig, mask};

/// More-fragments flag and fragment offset: not all zero in a fragment.
const FRAGMENT_BITS: u16 = 0x3FFF;

/// Result of a [`Compressor`] for a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressed {
    /// Form in which the packet is sent.
    pub kind: Kind,
    /// Number of octets at its front that are replaced; 0 if it is sent unchanged.
    pub replaces: usize,
}

/// The last header of a connection.
#[derive(Clone, Debug, Default)]
struct ConnectionSlot {
    /// Empty before the first.
    header: Vec<u8>,
    layout: Layout,
}

/// The sending end of one direction. Its memory is bounded by the number of slots, 120 octets each.
#[derive(Clone, Debug)]
pub struct Compressor {
    comp_slot_id: bool,
    slots: Vec<ConnectionSlot>,
    /// The numbers of slots, the one used last first.
    used: Vec<u8>,
    /// The slot that was named last.
    told: Option<u8>,
}

impl Compressor {
    /// Creates an end that has sent nothing.
    pub fn new(config: VjConfig) -> Self {
        let count = usize::from(config.max_slot_id) + 1;
        Self {
            comp_slot_id: config.comp_slot_id,
            slots: alloc::vec![ConnectionSlot::default(); count],
            used: (0..=config.max_slot_id).rev().collect(),
            told: None,
        }
    }

    /// Compresses a packet of `len` octets; `packet` has at least its headers. `out` then holds the octets to send in
    /// place of the first [`replaces`](Compressed::replaces) octets, and nothing if that is 0.
    ///
    /// The results must be sent, and in this order: the peer remembers every header.
    pub fn compress(&mut self, packet: &[u8], len: usize, out: &mut Vec<u8>) -> Compressed {
        out.clear();
        let Some(layout) = compressible(packet, len) else {
            return Compressed { kind: Kind::Ip, replaces: 0 };
        };
        let header = &packet[..layout.data];
        let number = self.slot_of(header, layout);
        let slot = &mut self.slots[usize::from(number)];
        let kind = if let Some((changes, deltas)) = slot.changes(header, layout) {
            let told = self.comp_slot_id && self.told == Some(number);
            out.push(if told { changes } else { changes | mask::C });
            out.extend((!told).then_some(number));
            out.extend_from_slice(&header[layout.tcp + TCP_CHECKSUM..][..2]);
            out.extend_from_slice(&deltas);
            Kind::Compressed
        } else {
            out.extend_from_slice(header);
            out[PROTOCOL] = number;
            Kind::Uncompressed
        };
        slot.header.clear();
        slot.header.extend_from_slice(header);
        slot.layout = layout;
        self.told = Some(number);
        Compressed { kind, replaces: layout.data }
    }

    /// Returns the slot of a header's connection, or else the least recently used one. It counts as used now.
    fn slot_of(&mut self, header: &[u8], layout: Layout) -> u8 {
        let is_its = |&number: &u8| self.slots[usize::from(number)].is_of(header, layout);
        let place = self.used.iter().position(is_its).unwrap_or(self.used.len() - 1);
        self.used[..=place].rotate_right(1);
        self.used[0]
    }
}

/// Returns the layout of a packet, if its header may be compressed: a segment of an open connection that is no
/// fragment, and as long as its header says.
fn compressible(packet: &[u8], len: usize) -> Option<Layout> {
    let layout = Layout::of(packet)?;
    let flags = packet[layout.tcp + FLAGS];
    let possible = packet[PROTOCOL] == TCP
        && short(packet, FRAGMENT) & FRAGMENT_BITS == 0
        && flags & (SYN | FIN | RST | ACK) == ACK
        && usize::from(short(packet, TOTAL_LENGTH)) == len
        && checksum(&packet[..layout.tcp]) == 0;
    possible.then_some(layout)
}

impl ConnectionSlot {
    /// Returns `true` if a header is of the same connection.
    fn is_of(&self, header: &[u8], layout: Layout) -> bool {
        !self.header.is_empty()
            && self.header[ADDRESSES..ADDRESSES + 8] == header[ADDRESSES..ADDRESSES + 8]
            && self.header[self.layout.tcp..][..4] == header[layout.tcp..][..4]
    }

    /// Returns the change mask and the octets behind the checksum. Returns `None` if the header differs from the last
    /// of its connection in parts that a compressed header does not have.
    fn changes(&self, header: &[u8], layout: Layout) -> Option<(u8, SmallVec<[u8; 16]>)> {
        let (old, tcp) = (&self.header[..], layout.tcp);
        if !self.is_of(header, layout) || !self.is_alike(header, layout) {
            return None;
        }
        let flags = header[tcp + FLAGS];
        let step = |at| short(header, at).wrapping_sub(short(old, at));
        // A number that goes back, or far ahead, is no step.
        let advance = |at| u16::try_from(long(header, tcp + at).wrapping_sub(long(old, tcp + at))).ok();
        let (mut changes, mut deltas) = (0, SmallVec::new());
        if flags & URG != 0 {
            changes |= mask::U;
            put_any(&mut deltas, short(header, tcp + URGENT));
        } else if step(tcp + URGENT) != 0 {
            return None;
        }
        let (window, acknowledged, sent) = (step(tcp + WINDOW), advance(ACKNOWLEDGMENT)?, advance(SEQUENCE)?);
        for (bit, delta) in [(mask::W, window), (mask::A, acknowledged), (mask::S, sent)] {
            if delta != 0 {
                changes |= bit;
                put(&mut deltas, delta);
            }
        }
        let data = |header| short(header, TOTAL_LENGTH) - layout.data as u16;
        let (before, now) = (data(old), data(header));
        // A receiver may leave URG as it was under the two special masks.
        let calm = old[tcp + FLAGS] & URG == 0;
        let special = match changes {
            // No change: a repetition or a probe, unless it is data behind a bare acknowledgment.
            0 if before != 0 || now == 0 => return None,
            // These two masks have another meaning.
            mask::ECHOED | mask::STREAM => return None,
            changes if changes == mask::S | mask::A && sent == acknowledged && sent == before && calm => {
                Some(mask::ECHOED)
            }
            mask::S if sent == before && calm => Some(mask::STREAM),
            _ => None,
        };
        if let Some(special) = special {
            changes = special;
            deltas.clear();
        }
        match step(IDENTIFICATION) {
            1 => {}
            other => {
                changes |= mask::I;
                put_any(&mut deltas, other);
            }
        }
        changes |= if flags & PSH != 0 { mask::P } else { 0 };
        Some((changes, deltas))
    }

    /// Returns `true` if all parts are the same that a compressed header does not have.
    fn is_alike(&self, header: &[u8], layout: Layout) -> bool {
        let (old, tcp) = (&self.header, layout.tcp);
        self.layout == layout
            && old[..TOTAL_LENGTH] == header[..TOTAL_LENGTH]
            && old[FRAGMENT..=PROTOCOL] == header[FRAGMENT..=PROTOCOL]
            && old[ADDRESSES + 8..tcp] == header[ADDRESSES + 8..tcp]
            && old[tcp + OFFSET] == header[tcp + OFFSET]
            && (old[tcp + FLAGS] ^ header[tcp + FLAGS]) & RESERVED == 0
            && old[tcp + URGENT + 2..] == header[tcp + URGENT + 2..]
    }
}

/// Appends a change above zero: one octet, or a zero and two octets.
fn put(deltas: &mut SmallVec<[u8; 16]>, delta: u16) {
    match u8::try_from(delta) {
        Ok(small) => deltas.push(small),
        Err(_) => put_long(deltas, delta),
    }
}

/// Appends a number that may be zero.
fn put_any(deltas: &mut SmallVec<[u8; 16]>, value: u16) {
    if value == 0 { put_long(deltas, value) } else { put(deltas, value) }
}

fn put_long(deltas: &mut SmallVec<[u8; 16]>, value: u16) {
    let [high, low] = value.to_be_bytes();
    deltas.extend([0, high, low]);
}
