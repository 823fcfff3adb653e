//! Erasure codes that repair an object.

/// Erasure code of the parity symbols. Codes with other points or fields have other parity. A receiver that rebuilds
/// with the wrong code gets wrong bytes, and only a digest reveals the error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ErasureCode {
    /// Farcast's own choice by the numbers of source and parity symbols (`farcast_fec::BlockCode::new`).
    #[default]
    BySize,
    /// Reed-Solomon over GF(2^8) with the points of NRL NORM (FEC Encoding IDs 5 and 129).
    ReedSolomon8,
    /// Reed-Solomon over GF(2^16), words with their low octet first (FEC Encoding ID 2 with `m` = 16).
    ReedSolomon16,
    /// Unknown code: nothing can be rebuilt.
    Unknown,
}
