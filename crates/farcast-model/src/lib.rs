//! Closed-form models of transfers: predicted performance of a protocol, without running it.
//!
//! | model | subject | inputs outside are refused |
//! |---|---|---|
//! | [`pftk`] | a long TCP transfer, with timeouts | loss below 1, timeout at least a round trip, 1 to 64 packets an ACK |
//! | [`mathis`] | a long TCP transfer, without timeouts | loss below 1, 1 to 64 packets an ACK |
//! | [`cardwell`] | a TCP transfer of any size, with slow start and handshake | as [`pftk`]; handshake losses below 1/2 |
//! | [`mlppp`] | a long TCP transfer over a bundle of links whose calls drop | as [`pftk`]; drops further apart than a timeout |
//! | [`pgmcc`] | a PGM session that PGMCC controls | loss below 1 |
//!
//! A window, if there is one, is 1 to 2^30 packets. A loss of zero is the window's case; without a window too, a steady
//! state has no bound and is refused. Accepted inputs have a result that is finite or, if documented, infinite, and
//! never not-a-number.
//!
//! The unit of throughput is packets per second, and of results in time the second, both as `f64`. Logarithms and
//! roots are libm's: the same digits on every platform. Differences such as 1 - (1 - p)^n are taken by `expm1` and
//! `log1p`, so they keep their digits when p is tiny.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod cardwell;
mod cycle;
mod error;
pub mod mathis;
pub mod mlppp;
mod path;
pub mod pftk;
pub mod pgmcc;
mod throughput;

pub use error::ModelError;
pub use path::{MOST_PACKETS_PER_ACK, MOST_WINDOW, Path};
pub use throughput::{Bound, Throughput, packets};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
