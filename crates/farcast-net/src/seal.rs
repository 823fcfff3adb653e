//! Seals between an engine and the network: outgoing datagrams are sealed behind the codec, incoming ones are opened
//! before it.
//!
//! The engines know nothing of seals. The kind of a seal limits the messages under it. A message without content is
//! believed only if a sender has signed it or sealed it for one receiver alone. A receiver speaks only for itself.

use farcast_seal::{Kind, RefusalCounts};

mod receiving;
mod sending;
#[cfg(test)]
mod tests;

pub use receiving::{HistoryState, Memory, ReceiveSeal};
pub use sending::{Revoked, SendSeal};

/// Counts of datagrams that did not pass a seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SealCounts {
    /// Datagrams that were refused, by reason.
    pub refusals: RefusalCounts,
    /// Datagrams with a message that their seal does not allow: a receiver spoke for another, or a datagram sealed as
    /// content carried none.
    pub misplaced: u64,
    /// Messages that did not leave, because their receiver has not shown yet that it has its key.
    pub unsealable: u64,
}

/// Returns `true` if `datagram` carries the keys of a sealed transfer.
pub(crate) fn is_sealed(datagram: &[u8]) -> bool {
    Kind::of(datagram) == Some(Kind::Keys)
}
