//! Transfers by each protocol between processes, and with independent implementations.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests may panic, wait, open their own files, and say why they failed"
)]

#[path = "../common/mod.rs"]
mod common;

mod carousel;
mod loopback;
mod mdp;
mod norm;
mod norm_libnorm;
mod norm_streams;
mod one_way;
mod parcels;
mod pgm;
mod pgm_streams;
mod repair;
mod streams;
