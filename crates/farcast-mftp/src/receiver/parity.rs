//! Value and cost of parity for a receiver: rules for the [engine](crate::Receiver) of one receiver and for each
//! receiver of a [population](crate::Population).

use super::control::Terms;

/// Bytes that a block with parity takes besides the bitmap of its symbols: entries of maps here and at the owner, half
/// of them unused, and the beginning of a list.
const BLOCK_OVERHEAD: u64 = 384;
/// Bytes that a parity symbol takes besides its own: its place in a list, half of which may be unused, and the overhead
/// of the allocator.
const SYMBOL_OVERHEAD: u64 = 96;

/// Memory cost of holding the parity of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cost {
    /// Maximum number of symbols of a block.
    symbols: u32,
    /// Bytes of a block, and of each symbol.
    block: u64,
    symbol: u64,
}

impl Cost {
    pub(crate) fn of(terms: &Terms) -> Self {
        let symbols = terms.offer.parity_symbols;
        Self {
            symbols,
            block: u64::from(symbols.div_ceil(u64::BITS)) * 8 + BLOCK_OVERHEAD,
            symbol: u64::from(terms.geometry().segment_size()) + SYMBOL_OVERHEAD,
        }
    }

    /// Returns the bytes of a block with room for this many symbols; 0 for a block without any.
    pub(crate) fn bytes(self, room: u32) -> u64 {
        if room == 0 { 0 } else { self.block + self.symbol * u64::from(room) }
    }

    /// Returns the number of symbols for which a block needs room, if it had room for `room` and lacks `missing` DTUs.
    /// The room covers all missing DTUs, so that the last symbol of a block is never refused for lack of memory.
    pub(crate) fn room(self, room: u32, missing: u32) -> u32 {
        room.max(missing.min(self.symbols))
    }
}

/// Returns `true` if a block with this many missing DTUs and held symbols can be rebuilt.
pub(crate) fn is_decodable(missing: u32, held: u32) -> bool {
    missing <= held
}
