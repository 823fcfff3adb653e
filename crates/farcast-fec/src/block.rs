//! The code of a block, chosen by its size.

use crate::error::{CodeError, DecodeError, EncodeError};
use crate::gf65536::WordOrder;
use crate::large::LargeCode;
use crate::reed_solomon::{PointSet, ReedSolomon};
use crate::shape::{MAX_SMALL_BLOCK, ParitySymbol, Shape};
use crate::wide::WideReedSolomon;

/// The field over which a block is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// GF(2^8).
    Gf256,
    /// GF(2^16).
    Gf65536,
}

/// A systematic erasure code for blocks of `k` source and `p` parity symbols.
///
/// The code is a function of `(k, p)` alone: GF(2^8) with [`PointSet::Rizzo`] up to `k + p = 255`, GF(2^16) above.
/// Protocols that prescribe a code use that instead ([`narrow`](Self::narrow), [`wide`](Self::wide)). A block lies in
/// one slice, symbol after symbol, the last one padded with zeros by the caller. All calls take `&self`, so worker
/// threads can share one code.
///
/// ```
/// use farcast_fec::{BlockCode, ParitySymbol};
///
/// let code = BlockCode::new(3, 2, 4)?;
/// let source = *b"onlythreerow";
/// let mut parity = [0; 2 * 4];
/// code.encode(&source, 0, &mut parity)?;
///
/// let mut block = *b"????thre????";
/// let symbol = |index| ParitySymbol { index, bytes: &parity[index * 4..][..4] };
/// code.decode(&mut block, &[0, 2], &[symbol(1), symbol(0)])?;
/// assert_eq!(block, source);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockCode {
    codec: Codec,
}

#[derive(Clone, Debug)]
enum Codec {
    Small(ReedSolomon),
    Wide(WideReedSolomon),
    Large(LargeCode),
}

impl BlockCode {
    /// Creates the code for `source_symbols` (`k`) and `parity_symbols` (`p`), each of 1 to 32,768, and symbols of
    /// `symbol_len` bytes (1 to 65,535; even if `k + p` exceeds 255).
    ///
    /// Allocates less than 1 KiB for any numbers.
    pub fn new(source_symbols: usize, parity_symbols: usize, symbol_len: usize) -> Result<Self, CodeError> {
        let codec = match Field::of(source_symbols, parity_symbols) {
            // A zero is refused by the other arm, with the bounds that hold for this type.
            Field::Gf256 if source_symbols > 0 && parity_symbols > 0 => {
                Codec::Small(ReedSolomon::new(PointSet::Rizzo, source_symbols, parity_symbols, symbol_len)?)
            }
            _ => Codec::Large(LargeCode::new(source_symbols, parity_symbols, symbol_len)?),
        };
        Ok(Self { codec })
    }

    /// Creates the code of NORM's FEC Encoding IDs 5 and 129: over GF(2^8), at most 255 symbols.
    pub fn narrow(
        source_symbols: usize,
        parity_symbols: usize,
        symbol_len: usize,
    ) -> Result<Self, CodeError> {
        let code = ReedSolomon::new(PointSet::Rizzo, source_symbols, parity_symbols, symbol_len)?;
        Ok(Self { codec: Codec::Small(code) })
    }

    /// Creates the code of NORM's FEC Encoding ID 2 with `m` = 16 in the form of NRL's library: over GF(2^16), the low
    /// octets of words first ([`WideReedSolomon::new`] has the bounds).
    pub fn wide(source_symbols: usize, parity_symbols: usize, symbol_len: usize) -> Result<Self, CodeError> {
        let (points, order) = (PointSet::Rizzo, WordOrder::LittleEndian);
        let code = WideReedSolomon::new(points, order, source_symbols, parity_symbols, symbol_len)?;
        Ok(Self { codec: Codec::Wide(code) })
    }

    /// Returns `true` if one parity symbol costs only its share. Otherwise each call computes all parity symbols of a
    /// block, so keep those that may be needed later.
    pub fn makes_single_symbols(&self) -> bool {
        !matches!(self.codec, Codec::Large(_))
    }

    /// Returns the field that `(k, p)` led to.
    pub fn field(&self) -> Field {
        match self.codec {
            Codec::Small(_) => Field::Gf256,
            Codec::Wide(_) | Codec::Large(_) => Field::Gf65536,
        }
    }

    /// Returns the source symbols in a full block (`k`).
    pub fn source_symbols(&self) -> usize {
        self.shape().source_symbols
    }

    /// Returns the parity symbols of a block (`p`).
    pub fn parity_symbols(&self) -> usize {
        self.shape().parity_symbols
    }

    /// Returns the length of every symbol, in bytes.
    pub fn symbol_len(&self) -> usize {
        self.shape().symbol_len
    }

    /// Returns an upper bound, in bytes, of the memory for symbols that one call allocates beside the caller's buffers.
    /// It is 0 if the code makes single symbols. For the others it is the number of symbols rounded up to a power of
    /// two (after the lesser of `k` and `p` was), times their length rounded up to 64 bytes.
    ///
    /// The announced numbers alone can make this 4 GiB: compare it with a budget before accepting an object.
    pub fn working_memory(&self) -> usize {
        match &self.codec {
            Codec::Small(_) | Codec::Wide(_) => 0,
            Codec::Large(code) => code.working_memory(),
        }
    }

    /// Computes parity symbols `first`, `first + 1`, … of a block, as many as `parity` has room for: all of
    /// them with `first` = 0 and `p` symbols of room, a single one with one symbol of room.
    ///
    /// `source` holds 1 to `k` whole symbols; if fewer than `k`, the rest of the block counts as zeros.
    pub fn encode(&self, source: &[u8], first: usize, parity: &mut [u8]) -> Result<(), EncodeError> {
        match &self.codec {
            Codec::Small(code) => code.encode(source, first, parity),
            Codec::Wide(code) => code.encode(source, first, parity),
            Codec::Large(code) => code.encode(source, first, parity),
        }
    }

    /// Rebuilds the `missing` source symbols of a block, in place.
    ///
    /// `block` holds as many whole symbols as the sender encoded; the places of the missing ones are overwritten.
    /// `missing` lists their indices, from 0, strictly increasing. `parity` holds the parity symbols that arrived, in
    /// any order, at least as many as are missing; more are checked, but not used.
    ///
    /// On an error the block is untouched. With right symbols the result is right. Wrong bytes in a symbol are not
    /// noticed and spread, so check a digest.
    pub fn decode(
        &self,
        block: &mut [u8],
        missing: &[usize],
        parity: &[ParitySymbol<'_>],
    ) -> Result<(), DecodeError> {
        match &self.codec {
            Codec::Small(code) => code.decode(block, missing, parity),
            Codec::Wide(code) => code.decode(block, missing, parity),
            Codec::Large(code) => code.decode(block, missing, parity),
        }
    }

    fn shape(&self) -> &Shape {
        match &self.codec {
            Codec::Small(code) => code.shape(),
            Codec::Wide(code) => code.shape(),
            Codec::Large(code) => code.shape(),
        }
    }
}

impl Field {
    /// Returns the field for blocks of `source_symbols` and `parity_symbols`, which both ends compute by themselves.
    fn of(source_symbols: usize, parity_symbols: usize) -> Self {
        // A sum that overflows is out of range in either field.
        if source_symbols.saturating_add(parity_symbols) <= MAX_SMALL_BLOCK {
            Self::Gf256
        } else {
            Self::Gf65536
        }
    }
}
