//! Skeleton of protocols whose receivers ask for what they lack: NORM, MDP and PGM.
//!
//! Each of these protocols has its own messages, rules and parameters. The parts that are the same stand here, and each
//! engine composes them.
//!
//! | file | contents |
//! |---|---|
//! | `node.rs` | node ids |
//! | `event.rs` | events and outcomes of senders and receivers |
//! | `sender.rs` | state of a sender: phase, rounds, progress, and its end |
//! | `content.rs` | content of an object that is being received |
//! | `repairs.rs` | bound on the repairs of an object |
//! | `stamp.rs` | time stamps of probes |
//! | `quantise.rs` | round trips, group sizes, rates and losses in a few bits |
//! | `timing.rs` | random back-off, and octets that a receiver may send |

mod content;
mod event;
mod node;
pub mod quantise;
mod repairs;
mod sender;
mod stamp;
mod timing;

pub use content::{ContentState, ObjectContent};
pub use event::{ReceiverEvent, SenderEvent, SenderOutcome, StreamSenderEvent};
pub use node::{NodeId, invalid_node};
pub use repairs::RepairLimit;
pub use sender::SenderCore;
pub use stamp::Stamp;
pub use timing::{earned, random_backoff};

/// Maximum number of objects of a transfer: half of what object numbers of 16 bits can distinguish.
pub const MOST_OBJECTS: usize = 1 << 15;
