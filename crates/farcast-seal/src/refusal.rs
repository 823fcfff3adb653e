//! Reasons for which a datagram is refused.

use core::fmt;

/// Reason for which a datagram was refused. A refused datagram only changes a counter, and its buffer is undefined
/// afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The datagram is not sealed.
    #[error("it is not sealed")]
    Unsealed,
    /// Its length, version or counts are invalid.
    #[error("it is malformed")]
    Malformed,
    /// It is of a kind that the other side handles.
    #[error("it is not for this side")]
    Misdirected,
    /// Its signing key is on no list.
    #[error("its sender is not trusted")]
    UntrustedSender,
    /// It holds nothing for this receiver, or comes from one that is not, or no longer, on the list.
    #[error("it is for, or of, somebody who is not on the list")]
    NotListed,
    /// The sender's signature, which this kind of datagram must have, is missing or invalid.
    #[error("its signature does not hold")]
    BadSignature,
    /// Its counter was seen, or is too old for the window.
    #[error("it was seen before, or is too late")]
    Replayed,
    /// Its session is finished, or older than the record of sessions.
    #[error("its session is over")]
    OldSession,
    /// Its sender has one session at a time, and has begun another since.
    #[error("its sender has begun another session since")]
    EarlierSession,
    /// Its session is for another protocol, or another group.
    #[error("its session is for another protocol or group")]
    OtherScope,
    /// No session has the tag or identifier of the datagram.
    #[error("its session is not known")]
    UnknownSession,
    /// The key of its epoch is not known, or no longer used.
    #[error("the key of its epoch is not known")]
    UnknownEpoch,
    /// It cannot be opened with the key.
    #[error("it does not open")]
    Forged,
    /// Accepting it would exceed a limit on work or memory.
    #[error("it is beyond a limit")]
    Limit,
}

impl Refusal {
    /// All reasons, in the order of [`RefusalCounts`].
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

/// Counter for each reason of refusal.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct RefusalCounts([u64; Refusal::ALL.len()]);

impl RefusalCounts {
    /// Counts `result` if it is a refusal, and returns it.
    pub(crate) fn note<T>(&mut self, result: Result<T, Refusal>) -> Result<T, Refusal> {
        if let Err(reason) = result {
            self.0[reason as usize] += 1;
        }
        result
    }

    /// Returns the count of `reason`.
    pub fn of(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// Returns the reasons with a count above 0.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        Refusal::ALL.into_iter().map(|reason| (reason, self.of(reason))).filter(|&(_, n)| n > 0)
    }
}

impl fmt::Debug for RefusalCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Reason for which a datagram could not be sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsealable {
    /// No datagram from this address could be opened.
    #[error("nobody at this address has proved who it is")]
    UnknownAddress,
    /// The slice has no room for header and tag.
    #[error("there is no room for the seal")]
    Room,
    /// The key has sealed its maximum number of datagrams.
    #[error("the key has sealed all that it may")]
    Exhausted,
}
