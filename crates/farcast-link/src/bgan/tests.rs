//! What concerns both directions, and the message that their tests share.

mod live;
pub(super) mod probe;
