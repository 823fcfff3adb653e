//! Kinds of faults. Each can be switched off, to find those that a failure needs.

use std::fmt::{self, Display};

/// Kind of a forged message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Forgery {
    Done,
    Quit,
    Decline,
    Register,
    Nak,
    Ack,
    StatusRequest,
    Abort,
    End,
    Completion,
    Announce,
    Echo,
    Data,
    Groups,
    Grant,
    /// A session of its own in another host's name: announcements, requests, a little data.
    Session,
}

impl Forgery {
    pub(crate) const ALL: [Self; 16] = [
        Self::Done,
        Self::Quit,
        Self::Decline,
        Self::Register,
        Self::Nak,
        Self::Ack,
        Self::StatusRequest,
        Self::Abort,
        Self::End,
        Self::Completion,
        Self::Announce,
        Self::Echo,
        Self::Data,
        Self::Groups,
        Self::Grant,
        Self::Session,
    ];
}

/// Kind of a fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Loss,
    Duplication,
    Jitter,
    Corruption,
    Outage,
    Pause,
    Restart,
    SenderRestart,
    SenderPause,
    Remembered,
    Emptied,
    Late,
    SlowDisk,
    ThinReturn,
    Forged(Forgery),
}

const FAULTS: [Kind; 14] = [
    Kind::Loss,
    Kind::Duplication,
    Kind::Jitter,
    Kind::Corruption,
    Kind::Outage,
    Kind::Pause,
    Kind::Restart,
    Kind::SenderRestart,
    Kind::SenderPause,
    Kind::Remembered,
    Kind::Emptied,
    Kind::Late,
    Kind::SlowDisk,
    Kind::ThinReturn,
];

impl Kind {
    /// Returns every kind.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        FAULTS.into_iter().chain(Forgery::ALL.into_iter().map(Self::Forged))
    }

    fn bit(self) -> u32 {
        let at = Self::all().position(|kind| kind == self).unwrap_or(31);
        1 << at
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forged(forgery) => write!(f, "forged {forgery:?}"),
            fault => write!(f, "{fault:?}"),
        }
    }
}

/// Set of kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kinds(u32);

impl Kinds {
    pub(crate) const ALL: Self = Self(u32::MAX);

    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }

    #[must_use]
    pub(crate) fn without(self, kind: Kind) -> Self {
        Self(self.0 & !kind.bit())
    }
}
