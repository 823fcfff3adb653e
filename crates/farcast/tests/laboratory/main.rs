//! Simulation, comparison, reproduction and emulation.
#![allow(
    clippy::disallowed_methods,
    clippy::float_cmp,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests may panic, wait, open their own files, and say why they failed"
)]

#[path = "../common/mod.rs"]
mod common;

mod absent;
mod advice;
mod emulate;
mod equal_losses;
mod reproduce;
mod reproduce_all;
mod simulate;
mod simulate_tree;
mod sweep;
mod tune;
