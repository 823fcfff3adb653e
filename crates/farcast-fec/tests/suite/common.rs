//! Helpers that the tests of the crate share.

use farcast_fec::ParitySymbol;

/// `len` bytes without a visible pattern, the same on every run.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_u32;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 24) as u8
    };
    (0..len).map(|_| step()).collect()
}

/// All parity symbols of a buffer, as a receiver would list them.
pub(crate) fn symbols(parity: &[u8], symbol_len: usize) -> Vec<ParitySymbol<'_>> {
    parity.chunks(symbol_len).enumerate().map(|(index, bytes)| ParitySymbol { index, bytes }).collect()
}
