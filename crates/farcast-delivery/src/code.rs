//! By which erasure code an object is repaired.

/// The code that parity symbols are of. Codes with other points or fields have other parity: who rebuilds by the wrong
/// one gets other bytes, and nothing says so but a digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ErasureCode {
    /// Farcast's own choice by the numbers of source and parity symbols (`farcast_fec::BlockCode::new`).
    #[default]
    BySize,
    /// Reed-Solomon over GF(2^8) with the points of NRL NORM (FEC Encoding IDs 5 and 129).
    ReedSolomon8,
    /// The same over GF(2^16), words with their low octet first (FEC Encoding ID 2 with `m` = 16).
    ReedSolomon16,
    /// None that is known: nothing can be rebuilt.
    Unknown,
}
