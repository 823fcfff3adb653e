//! Calls of a sender, as a receiver knows them.

/// Calls of a sender. One that has called turns knows registrations that report the complete product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Calls {
    /// It has called no turns.
    None,
    /// It calls turns: the receiver registers and reports only in its own.
    Now,
    /// It has called turns, and does not any more.
    Before,
}

impl Calls {
    /// Returns the calls of a sender whose first announcement calls turns if `by_turns` is set.
    pub(crate) const fn new(by_turns: bool) -> Self {
        if by_turns { Self::Now } else { Self::None }
    }

    /// Records that a message called a turn or not. Returns `true` if the turns have just ended.
    pub(crate) fn hear(&mut self, turn: bool) -> bool {
        let before = *self;
        *self = match before {
            _ if turn => Self::Now,
            Self::None => Self::None,
            Self::Now | Self::Before => Self::Before,
        };
        before == Self::Now && !turn
    }
}
