//! The law that holds for all stages whose settings change, and the messages that tests of stages share.

mod live;
pub(crate) mod packet;
pub(crate) mod probe;
