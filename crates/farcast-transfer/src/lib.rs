//! Transfers as a library: [`Sender`] and [`Receiver`].
//!
//! Both are blocking calls that may be cancelled from another thread ([`Cancel`]), with typed updates while they run and
//! errors of one sentence. Any number of transfers may run in one process. The library handles no signal and prints
//! nothing: warnings go to the `log` facade.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sender = farcast_transfer::Sender::builder().to("239.255.1.1").rate("20 Mbit/s").build()?;
//! sender.send_with(["charts"], &mut |update| println!("{update:?}"))?;
//! # Ok(())
//! # }
//! ```
//!
//! # Stability
//!
//! What this page re-exports is meant to stay: [`Sender`], [`Receiver`], their builders, updates, summaries and errors,
//! [`Cancel`] and [`ProtocolName`]. The modules are for farcast's own programs and may change: options as a command line
//! has them, keys and trust, and one implementation of [`send::SendProtocol`] and [`receive::ReceiveProtocol`] for each
//! protocol.
//!
//! | module | contents |
//! |---|---|
//! | [`send`], [`receive`] | from options to a finished transfer, by any protocol |
//! | [`options`], [`host`], [`names`], [`protocol`], [`headings`] | options that both sides share, and how they are written |
//! | [`keys`], [`sealing`] | this host's key, the keys it trusts, and the seal of a transfer |
//! | [`state`], [`lock`], [`node`] | memory over restarts, the lock of a group, identities of nodes |
//! | [`words`], [`error`] | quantities in words, errors |
//!
//! # Features
//!
//! * `clap`: options as arguments of a command line.
//! * `tokio`: a transfer as a future and a stream of updates.

mod cancel;
pub mod error;
pub mod headings;
pub mod host;
pub mod keys;
pub mod lock;
pub mod names;
pub mod node;
pub mod options;
#[cfg(feature = "clap")]
pub mod parse;
pub mod protocol;
pub mod receive;
mod receiver;
pub mod sealing;
pub mod send;
mod sender;
pub mod state;
#[cfg(feature = "tokio")]
mod task;
pub mod words;

pub use cancel::Cancel;
pub use error::{Error, ErrorKind};
pub use protocol::ProtocolName;
pub use receiver::{ReceiveUpdate, ReceivedProduct, Receiver, ReceiverBuilder};
pub use send::{Changing, ReceiverState, SendEvent, SendOutcome};
pub use sender::{SendError, SendProgress, SendSummary, SendUpdate, Sender, SenderBuilder};
#[cfg(feature = "tokio")]
pub use task::{ReceiveTask, SendTask};
