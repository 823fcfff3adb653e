//! The seal around a protocol's datagrams: confidential, of proven origin, and valid for one session only.
//!
//! The design is docs/src/seal.md. The crate does no I/O: it is given the time, datagrams and seeds, and returns
//! datagrams. No input makes it panic.
//!
//! | file | contents |
//! |---|---|
//! | `identity.rs` | identities: two keys, their text, a fingerprint |
//! | `suite.rs` | suites that wrap secrets for an identity: X25519, or its hybrid with ML-KEM |
//! | `secret.rs` | the secrets of an identity as text |
//! | `sender.rs`, `peer.rs` | a session at its sender; its state for one receiver |
//! | `receiver.rs`, `session.rs` | all sessions at a receiver; its state for one session |
//! | `history.rs` | record of the sessions heard, over restarts |
//! | `wire.rs` | wire format |
//! | `schedule.rs` | derivation of a session's keys |
//! | `cipher.rs` | sealing and opening in place |
//! | `rounds.rs` | times at which keys leave for the group |
//! | `owed.rs` | times at which keys leave for one receiver |
//! | `scope.rs` | purpose of a session, and how its content is sealed |
//! | `window.rs` | windows of counters that were seen |
//! | `refusal.rs` | reasons to refuse a datagram |
//! | `base32.rs` | octets as letters and digits |
//! | `draws.rs` | random octets from a seed |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod base32;
mod cipher;
mod draws;
mod history;
mod identity;
mod owed;
mod peer;
mod receiver;
mod refusal;
mod rounds;
mod schedule;
mod scope;
mod secret;
mod sender;
mod session;
mod suite;
mod window;
mod wire;

pub use history::History;
pub use identity::{Fingerprint, Identity, KeyError, Listed, PublicIdentity};
pub use owed::Owed;
pub use receiver::{Class, Opened, Receiver, ReceiverConfig};
pub use refusal::{Refusal, RefusalCounts, Unsealable};
pub use rounds::Rounds;
pub use scope::{Contents, Scope};
pub use secret::SecretError;
pub use sender::{Answer, Sender, SenderConfig};
pub use session::{ASK_AGAIN, ASK_LATEST};
pub use suite::Suite;
pub use window::{GROUP_WINDOW, PAIR_WINDOW};
pub use wire::{
    ANSWER_OVERHEAD, CONTENT_OVERHEAD, CONTROL_OVERHEAD, FIRST_ANSWER_OVERHEAD, HEADER, HYBRID_KEYS_LEN,
    KEYS_ENTRIES, KEYS_LEN, Kind, SIGNATURE, SessionId, TAG, TO_ONE_KEY_OVERHEAD, TO_ONE_OVERHEAD, keys_len,
    keys_together,
};
