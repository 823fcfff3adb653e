//! The command line itself: its words, codes, help and pages.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests may panic, wait, open their own files, and say why they failed"
)]

#[path = "../common/mod.rs"]
mod common;

mod command_line;
mod fleet;
mod help;
mod manual;
mod matrix;
mod model;
mod pages;
mod report;
mod signals;
mod usage;
mod version;
