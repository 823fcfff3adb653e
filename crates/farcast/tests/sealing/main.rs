//! Keys, trust and sealed transfers.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests may panic, wait, open their own files, and say why they failed"
)]

#[path = "../common/mod.rs"]
mod common;

mod eve;
mod fleet;
mod insider;
mod key;

mod party;
mod sealed;
mod sealed_protocols;
