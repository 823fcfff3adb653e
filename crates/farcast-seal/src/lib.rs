//! The seal around a protocol's datagrams: confidential, of proved origin, and good for one session only.
//!
//! The design is docs/src/seal.md. What is here does no I/O: it is told the time, given datagrams and seeds, and gives
//! datagrams. Nothing it is given makes it panic.
//!
//! | file | what |
//! |---|---|
//! | `identity.rs` | who somebody is: two keys, their text, a fingerprint |
//! | `suite.rs` | how secrets are wrapped for somebody: by X25519, or by the hybrid of it with ML-KEM |
//! | `secret.rs` | the secrets of an identity as text |
//! | `sender.rs`, `peer.rs` | a session at its sender; what that knows of one receiver |
//! | `receiver.rs`, `session.rs` | all sessions at a receiver; what that knows of one |
//! | `history.rs` | which sessions were heard, over restarts |
//! | `wire.rs` | what is on the wire |
//! | `schedule.rs` | which key follows from what |
//! | `cipher.rs` | sealing and opening in place |
//! | `rounds.rs` | when keys leave |
//! | `scope.rs` | what a session is for, and how its content is sealed |
//! | `window.rs` | which counters were seen |
//! | `refusal.rs` | why something was not taken |
//! | `base32.rs` | octets as letters and digits |
//! | `draws.rs` | what is drawn from a seed |
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
