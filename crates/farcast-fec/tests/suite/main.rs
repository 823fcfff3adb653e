//! The crate from outside, as its callers use it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod block;
mod common;
mod matrix;
mod refusals;
mod vectors;
mod wide;
