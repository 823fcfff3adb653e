//! Devices and namespaces against the kernel that they belong to, and farcast's TCP against the kernel's.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and has sockets, threads and a clock of its own"
)]

mod common;
mod endings;
mod http;
mod interop;
mod plumbing;
