//! Errors of a code, a block or the symbols that arrived.

use thiserror::Error;

/// The numbers that describe a code are outside its range (configuration, or an announcement).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeError {
    /// A block needs at least one source symbol and the code has an upper bound.
    #[error("{given} source symbols in a block: must be 1 to {max}")]
    SourceSymbols {
        /// Number asked for.
        given: usize,
        /// Largest number that the code can have.
        max: usize,
    },
    /// A code needs at least one parity symbol and has an upper bound.
    #[error("{given} parity symbols in a block: must be 1 to {max}")]
    ParitySymbols {
        /// Number asked for.
        given: usize,
        /// Largest number that the code can have beside its source symbols.
        max: usize,
    },
    /// The length of a symbol is outside 1 to [`MAX_SYMBOL_LEN`](crate::MAX_SYMBOL_LEN) bytes.
    #[error("symbols of {given} bytes: must be 1 to {max}")]
    SymbolLength {
        /// Length asked for, in bytes.
        given: usize,
        /// The longest symbol, in bytes.
        max: usize,
    },
    /// GF(2^16) codes two bytes at a time.
    #[error("symbols of {given} bytes: must be even when a block has more than 255 symbols")]
    OddSymbolLength {
        /// Length asked for, in bytes.
        given: usize,
    },
}

/// The arguments of an encoding do not fit its code (the caller's mistake).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The source is not 1 to `source_symbols` whole symbols.
    #[error("a source block of {given} bytes: must be 1 to {source_symbols} symbols of {symbol_len} bytes")]
    BlockLength {
        /// Length of the source, in bytes.
        given: usize,
        /// Length of a symbol, in bytes.
        symbol_len: usize,
        /// Most source symbols in a block.
        source_symbols: usize,
    },
    /// The buffer for parity is not a whole number of symbols.
    #[error("a parity buffer of {given} bytes: must be a multiple of {symbol_len}")]
    ParityLength {
        /// Length of the buffer, in bytes.
        given: usize,
        /// Length of a symbol, in bytes.
        symbol_len: usize,
    },
    /// Parity was asked for that the code does not have.
    #[error("parity symbols {first} and {count} on: the code has {parity_symbols}")]
    ParityRange {
        /// First parity symbol asked for, from 0.
        first: usize,
        /// Number of symbols that the buffer holds.
        count: usize,
        /// Number of parity symbols of the code.
        parity_symbols: usize,
    },
}

/// The given symbols do not rebuild the block (too few arrived, or they are invalid).
///
/// The block is untouched when one of these is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The block is not 1 to `source_symbols` whole symbols.
    #[error("a block of {given} bytes: must be 1 to {source_symbols} symbols of {symbol_len} bytes")]
    BlockLength {
        /// Length of the block, in bytes.
        given: usize,
        /// Length of a symbol, in bytes.
        symbol_len: usize,
        /// Most source symbols in a block.
        source_symbols: usize,
    },
    /// A symbol is said to be missing that the block does not have.
    #[error("missing source symbol {index}: the block has {symbols}")]
    MissingIndex {
        /// The index given, from 0.
        index: usize,
        /// Symbols in this block.
        symbols: usize,
    },
    /// The list of missing symbols does not strictly increase.
    #[error("missing source symbol {index} is not above the one before it")]
    MissingOrder {
        /// The first index that is not above the one before it.
        index: usize,
    },
    /// A parity symbol has an index that the code does not have.
    #[error("parity symbol {index}: the code has {parity_symbols}")]
    ParityIndex {
        /// The index given, from 0.
        index: usize,
        /// Number of parity symbols of the code.
        parity_symbols: usize,
    },
    /// A parity symbol is longer or shorter than a symbol.
    #[error("parity symbol {index} has {given} bytes instead of {symbol_len}")]
    ParityLength {
        /// Index of the symbol, from 0.
        index: usize,
        /// Length of the symbol, in bytes.
        given: usize,
        /// Length of a symbol, in bytes.
        symbol_len: usize,
    },
    /// A parity symbol was given twice.
    #[error("parity symbol {index} was given twice")]
    DuplicateParity {
        /// Index of the symbol, from 0.
        index: usize,
    },
    /// Fewer parity symbols than missing source symbols: nothing can be rebuilt yet.
    #[error("{short_by} more parity symbols are needed for {missing} missing source symbols")]
    NotEnough {
        /// Source symbols to be rebuilt.
        missing: usize,
        /// Number of symbols, parity or source, that must still arrive (at least 1).
        short_by: usize,
    },
}
