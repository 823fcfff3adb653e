//! Why a datagram was not taken.

use core::fmt;

/// Why a datagram was not taken. It changed nothing but a counter, and the octets it was in are nobody's any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It has no seal.
    #[error("it is not sealed")]
    Unsealed,
    /// Its length, version or counts are none that a sealed datagram has.
    #[error("it is malformed")]
    Malformed,
    /// It is one that the other side takes.
    #[error("it is not for this side")]
    Misdirected,
    /// Its signing key is on no list.
    #[error("its sender is not trusted")]
    UntrustedSender,
    /// It holds nothing for this receiver, or speaks for one that is not on the list (any more).
    #[error("it is for, or of, somebody who is not on the list")]
    NotListed,
    /// Its sender has not signed it, and signs all that is like it.
    #[error("its signature does not hold")]
    BadSignature,
    /// It was seen, or is too far back to know.
    #[error("it was seen before, or is too late")]
    Replayed,
    /// Its session is finished, or older than what is remembered.
    #[error("its session is over")]
    OldSession,
    /// Its sender has begun another session since, and has one at a time.
    #[error("its sender has begun another session since")]
    EarlierSession,
    /// Its session is for another protocol, or another group.
    #[error("its session is for another protocol or group")]
    OtherScope,
    /// No session has what it is sealed with.
    #[error("its session is not known")]
    UnknownSession,
    /// The session's key of its epoch is not known, or not used any more.
    #[error("the key of its epoch is not known")]
    UnknownEpoch,
    /// It does not open.
    #[error("it does not open")]
    Forged,
    /// Taking it would go beyond a limit on work or memory.
    #[error("it is beyond a limit")]
    Limit,
}

impl Refusal {
    /// Every reason, in the order of [`RefusalCounts`].
    pub const ALL: [Self; 14] = [
        Self::Unsealed,
        Self::Malformed,
        Self::Misdirected,
        Self::UntrustedSender,
        Self::NotListed,
        Self::BadSignature,
        Self::Replayed,
        Self::OldSession,
        Self::EarlierSession,
        Self::OtherScope,
        Self::UnknownSession,
        Self::UnknownEpoch,
        Self::Forged,
        Self::Limit,
    ];
}

/// A counter for each reason to refuse.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct RefusalCounts([u64; Refusal::ALL.len()]);

impl RefusalCounts {
    /// Counts `result` if it is a refusal, and passes it on.
    pub(crate) fn note<T>(&mut self, result: Result<T, Refusal>) -> Result<T, Refusal> {
        if let Err(reason) = result {
            self.0[reason as usize] += 1;
        }
        result
    }

    /// How often `reason` was given.
    pub fn of(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// The reasons that were given, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        Refusal::ALL.into_iter().map(|reason| (reason, self.of(reason))).filter(|&(_, n)| n > 0)
    }
}

impl fmt::Debug for RefusalCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Why a datagram could not be sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsealable {
    /// Nothing that opened has come from this address.
    #[error("nobody at this address has proved who it is")]
    UnknownAddress,
    /// The slice has no room for header and tag.
    #[error("there is no room for the seal")]
    Room,
    /// The key has sealed all that it may.
    #[error("the key has sealed all that it may")]
    Exhausted,
}
