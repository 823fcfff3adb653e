//! Errors in a configuration, and reasons to reject PDUs of the peer.

use core::fmt;

use crate::format::FormatError;

/// A setting that an entity cannot work with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The size of the PDUs that are sent is out of range.
    #[error("format: {0}")]
    Format(FormatError),
    /// The size of the PDUs that arrive is out of range.
    #[error("peer_format: {0}")]
    PeerFormat(FormatError),
    /// A window holds no PDU, or too many for the sequence numbers.
    #[error("{key} is {value}: it must be 1 to 4095")]
    Window {
        /// Name of the window.
        key: &'static str,
        /// Value of the setting.
        value: u16,
    },
    /// A limit or a timer is 0.
    #[error("{0} is 0: it must be above 0")]
    Zero(&'static str),
    /// A share of the window that is never or always reached.
    #[error("polling.window_percent is {0}: it must be 1 to 99")]
    WindowPercent(u8),
    /// `MaxDAT` allows no transmission as the standard counts.
    #[error("max_dat is {0}: it must be at least 2, for a PDU is sent max_dat - 1 times")]
    MaxDat(u32),
}

/// Reason for which an entity rejected a PDU or a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reject {
    /// The number of a data PDU lies outside VR(R) to VR(MR): it is old, or must not have been sent.
    #[error("data PDU outside the reception window")]
    OutsideWindow,
    /// A data PDU beyond VR(R) has arrived before.
    #[error("data PDU that has arrived before")]
    Duplicate,
    /// A report names a PDU that is not between VT(A) and VT(S) (TS 25.322 section 10).
    #[error("status report with an erroneous sequence number")]
    ErroneousSequenceNumber,
    /// A super field has counts or code words that make no sense.
    #[error("status report with a field that makes no sense")]
    InvalidField,
    /// An acknowledgment came without a request in the present state.
    #[error("acknowledgment of what was not asked for")]
    Unexpected,
    /// A reset is under way: until it is acknowledged the entity rejects all other PDUs (section 11.4).
    #[error("PDU during a reset")]
    Resetting,
    /// The entity has given up.
    #[error("PDU for an entity that has given up")]
    Stopped,
}

impl Reject {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::OutsideWindow,
        Self::Duplicate,
        Self::ErroneousSequenceNumber,
        Self::InvalidField,
        Self::Unexpected,
        Self::Resetting,
        Self::Stopped,
    ];
}

/// A counter for each reason to reject.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct RejectCounts([u64; Reject::ALL.len()]);

impl RejectCounts {
    /// Counts `result` if it is a rejection, and passes it on.
    pub(crate) fn note<T>(&mut self, result: Result<T, Reject>) -> Result<T, Reject> {
        if let Err(reason) = result {
            self.0[reason as usize] += 1;
        }
        result
    }

    /// Returns the number of rejections for `reason`.
    pub const fn of(&self, reason: Reject) -> u64 {
        self.0[reason as usize]
    }

    /// Returns the number of all rejections.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the reasons that were given, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reject, u64)> + '_ {
        Reject::ALL.into_iter().map(|reason| (reason, self.of(reason))).filter(|&(_, count)| count > 0)
    }
}

impl fmt::Debug for RejectCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
