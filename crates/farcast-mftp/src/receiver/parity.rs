//! What parity is worth to a receiver and what it takes: rules for the [engine](crate::Receiver) of one receiver and
//! for each receiver of a [population](crate::Population).

use super::control::Terms;

/// Bytes that a block with parity takes besides the map of its symbols: entries of maps here and at the owner, half of
/// them unused, and the beginning of a list.
const BLOCK_OVERHEAD: u64 = 384;
/// Bytes that a parity symbol takes besides its own: its place in a list, half of which may be unused, and what the
/// allocator adds.
const SYMBOL_OVERHEAD: u64 = 96;

/// What it takes to hold parity of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cost {
    /// Symbols that a block may have.
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

    /// Bytes that a block takes for which there is room for so many symbols; none where it has not been begun.
    pub(crate) fn bytes(self, room: u32) -> u64 {
        if room == 0 { 0 } else { self.block + self.symbol * u64::from(room) }
    }

    /// For how many symbols of a block there is to be room, where there was room for `room` and so many of its DTUs are
    /// missing: for all that it lacks, so that what completes a block that was begun is never refused for want of
    /// memory.
    pub(crate) fn room(self, room: u32, missing: u32) -> u32 {
        room.max(missing.min(self.symbols))
    }
}

/// Whether a block can be rebuilt in which so many DTUs are missing and of which so many symbols are held.
pub(crate) fn is_decodable(missing: u32, held: u32) -> bool {
    missing <= held
}
