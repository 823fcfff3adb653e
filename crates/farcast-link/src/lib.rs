//! The links between a sender and its receivers, as state machines without I/O.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bgan;
pub mod chain;
pub mod error;
pub mod losses;
pub mod multilink;
pub mod outage;
pub mod pipe;
pub mod ppp;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod umts;

pub use chain::{BoxedStage, Chains};
pub use error::LinkError;
pub use farcast_core::stage::End;
pub use losses::{Among, Losses};
pub use outage::{Hold, Schedule};
pub use pipe::{Pipe, PipeConfig};
