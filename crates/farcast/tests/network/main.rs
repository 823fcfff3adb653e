//! Interfaces, ports, namespaces, narrow hops, outages, strangers and attackers.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests may panic, wait, open their own files, and say why they failed"
)]

#[path = "../common/mod.rs"]
mod common;

mod attacks;
mod groups;
mod hearing;
mod hosts;
mod interfaces;
mod namespaces;
mod narrow;
mod outages;
mod pacing;
mod ports;
mod strangers;
mod turns;
