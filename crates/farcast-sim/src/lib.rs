//! The second face of farcast: the engines in virtual time over simulated links.
#![forbid(unsafe_code)]

pub mod history;
pub mod outcome;
pub mod replicate;
pub mod scenario;
pub mod star;
pub mod trace;
pub mod traffic;
pub mod tree;
