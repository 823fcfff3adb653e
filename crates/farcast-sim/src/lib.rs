//! The second face of farcast: the engines in virtual time over simulated links.
#![forbid(unsafe_code)]

pub mod queue;
pub mod star;
