//! Seals between an engine and the network: what leaves is sealed behind the codec, what comes is opened before it.
//!
//! The engines know nothing of it. What a datagram may say follows from how it was sealed: only what a sender has signed
//! or sealed for one receiver alone is believed without content, and a receiver speaks for nobody but itself.

use farcast_seal::{Kind, RefusalCounts};

mod receiving;
mod sending;
#[cfg(test)]
mod tests;

pub use receiving::{Kept, Memory, ReceiveSeal};
pub use sending::{Revoked, SendSeal};

/// What did not pass a seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SealCounts {
    /// Datagrams that were not taken, by reason.
    pub refusals: RefusalCounts,
    /// Datagrams that said what they may not say: a receiver spoke for another, or what was sealed as content carried
    /// none.
    pub misplaced: u64,
    /// What did not leave, because whom it is for has not shown yet that it has its key.
    pub unsealable: u64,
}

/// Whether `datagram` has the keys of a sealed transfer.
pub(crate) fn is_sealed(datagram: &[u8]) -> bool {
    Kind::of(datagram) == Some(Kind::Keys)
}
