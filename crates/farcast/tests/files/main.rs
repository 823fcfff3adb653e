//! Files: what is sent, kept, completed and resumed on real file systems.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests may panic, wait, open their own files, and say why they failed"
)]

#[path = "../common/mod.rs"]
mod common;

mod big;
mod changing;
mod compress;
mod content;
mod crash;
mod file_systems;
mod offers;
mod quota;
mod resend;
mod safety;
