//! Simulator: the protocol engines in virtual time over simulated links. It predicts transfers that `farcast send`
//! makes.
#![forbid(unsafe_code)]

mod address;
pub mod advice;
pub mod history;
pub mod outcome;
pub mod replicate;
pub mod scenario;
pub mod star;
pub mod trace;
pub mod traffic;
pub mod tree;
mod world;
