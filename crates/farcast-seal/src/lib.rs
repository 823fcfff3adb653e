//! The seal around a protocol's datagrams: confidential, of proved origin, and good for one session only.
//!
//! The design is docs/src/seal.md. What is here does no I/O: it is told the time, given datagrams and seeds, and gives
//! datagrams. Nothing it is given makes it panic.
//!
//! | file | what |
//! |---|---|
//! | `identity.rs` | who somebody is: two keys, their text, a fingerprint |
//! | `secret.rs` | the secrets of an identity as text |
//! | `base32.rs` | octets as letters and digits |
//! | `draws.rs` | what is drawn from a seed |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod base32;
mod draws;
mod identity;
mod secret;

pub use identity::{Fingerprint, Identity, KeyError, Listed, PublicIdentity};
pub use secret::SecretError;
