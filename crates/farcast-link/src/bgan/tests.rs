//! Tests that concern both directions, and the message that the tests of both share.

mod live;
pub(super) mod probe;
