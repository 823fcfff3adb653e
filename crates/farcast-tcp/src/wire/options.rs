//! The options of a header: MSS (RFC 9293 section 3.7.1), window scale and timestamps (RFC 7323), SACK (RFC 2018).

use super::DecodeError;
use crate::{Options, SackBlock, SackBlocks, SequenceNumber, Timestamps};

mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NO_OPERATION: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}

/// Largest window shift in bits; a larger value counts as this one (RFC 7323 section 2.3).
const MAX_WINDOW_SCALE: u8 = 14;

/// Writer to the rest of a buffer that holds exactly the octets to be put.
struct OptionWriter<'a>(&'a mut [u8]);

impl OptionWriter<'_> {
    fn put(&mut self, octets: &[u8]) {
        let (here, rest) = core::mem::take(&mut self.0).split_at_mut(octets.len());
        here.copy_from_slice(octets);
        self.0 = rest;
    }
}

/// Writes `options` to `out`, which has [`Options::wire_len`] octets.
pub(super) fn encode(options: &Options, out: &mut [u8]) {
    const NOP: u8 = kind::NO_OPERATION;
    let mut writer = OptionWriter(out);
    if let Some(mss) = options.mss {
        writer.put(&[kind::MSS, 4]);
        writer.put(&mss.to_be_bytes());
    }
    match (options.sack_permitted, options.timestamps.is_some()) {
        (true, true) => writer.put(&[kind::SACK_PERMITTED, 2]),
        (true, false) => writer.put(&[NOP, NOP, kind::SACK_PERMITTED, 2]),
        (false, true) => writer.put(&[NOP, NOP]),
        (false, false) => {}
    }
    if let Some(Timestamps { value, echo }) = options.timestamps {
        writer.put(&[kind::TIMESTAMPS, 10]);
        writer.put(&value.to_be_bytes());
        writer.put(&echo.to_be_bytes());
    }
    if let Some(shift) = options.window_scale {
        writer.put(&[NOP, kind::WINDOW_SCALE, 3, shift.min(MAX_WINDOW_SCALE)]);
    }
    let blocks = options.sack.as_slice();
    if !blocks.is_empty() {
        writer.put(&[NOP, NOP, kind::SACK, 2 + 8 * blocks.len() as u8]);
    }
    for block in blocks {
        writer.put(&block.left.0.to_be_bytes());
        writer.put(&block.right.0.to_be_bytes());
    }
}

/// Reads the part of a header that holds options.
pub(super) fn decode(mut rest: &[u8]) -> Result<Options, DecodeError> {
    let mut options = Options::default();
    while let Some((&kind, behind)) = rest.split_first() {
        match kind {
            kind::END => break,
            kind::NO_OPERATION => rest = behind,
            _ => {
                let len = *behind.first().ok_or(DecodeError::OptionBeyondHeader { kind })?;
                if len < 2 {
                    return Err(DecodeError::OptionLength { kind, len });
                }
                let cut = rest.split_at_checked(len.into());
                let (option, next) = cut.ok_or(DecodeError::OptionBeyondHeader { kind })?;
                take(kind, &option[2..], &mut options);
                rest = next;
            }
        }
    }
    Ok(options)
}

/// Stores one option. An unknown kind, or a length that the kind cannot have, is ignored.
fn take(kind: u8, value: &[u8], options: &mut Options) {
    match (kind, value, value.as_chunks::<8>()) {
        (kind::MSS, &[high, low], _) => options.mss = Some(u16::from_be_bytes([high, low])),
        (kind::WINDOW_SCALE, &[shift], _) => options.window_scale = Some(shift.min(MAX_WINDOW_SCALE)),
        (kind::SACK_PERMITTED, [], _) => options.sack_permitted = true,
        (kind::TIMESTAMPS, _, ([one], [])) => {
            let (value, echo) = numbers(*one);
            options.timestamps = Some(Timestamps { value, echo });
        }
        (kind::SACK, _, (blocks @ [_, ..], [])) => options.sack = sack_blocks(blocks),
        _ => {}
    }
}

/// Reads SACK blocks. All of them have room: 40 octets of options hold at most four.
fn sack_blocks(wire: &[[u8; 8]]) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    for one in wire {
        let (left, right) = numbers(*one);
        blocks.push(SackBlock { left: SequenceNumber(left), right: SequenceNumber(right) });
    }
    blocks
}

/// Reads two numbers, one behind the other.
fn numbers(octets: [u8; 8]) -> (u32, u32) {
    let both = u64::from_be_bytes(octets);
    ((both >> 32) as u32, both as u32)
}
