//! The network driver: real sockets and files for the sans-I/O engines.
//!
//! [`send`] and [`receive`] transfer files, [`send_stream`] and [`receive_stream`] transfer streams. Each of them owns
//! the clock, the sockets and the threads of its transfer. The engines of a [`Protocol`](farcast_delivery::Protocol)
//! decide what leaves and when, and `farcast-files` holds the bytes.
//!
//! Datagrams leave as `UDP_SEGMENT` batches and arrive coalesced where the kernel can. The payload is copied once on
//! its way out, from the page cache into the batch. It is copied once on its way in, from the kernel's buffer into
//! ours, and goes to the file from there.
//!
//! | file | contents |
//! |---|---|
//! | `sending/`, `receiving/` | drivers of a file transfer: options, notices, reports and the main loops |
//! | `stream/` | drivers of a stream |
//! | `element/` | driver of a network element, which stands between sender and receivers |
//! | `batch.rs`, `envelope.rs` | outgoing datagrams: their content, and where and how they leave |
//! | `parity/` | threads that compute parity and rebuild blocks from it |
//! | `store/` | thread that writes received content to files |
//! | `changing.rs` | thread that looks for changes of the files that are sent |
//! | `seal/` | seals between an engine and the network |
//! | `socket/`, `ssm.rs` | sockets, and system calls that no library offers |
//! | `narrow/` | paths that silently drop long datagrams |
//! | `interface.rs`, `listing.rs` | choice of an interface and of our own address |
//! | `links.rs` | changes of interfaces, as the kernel reports them |
//! | `receive_sockets.rs`, `path_watch.rs` | sockets of a receiver and of a sender, which follow these changes |
//! | `listening.rs`, `refusals.rs` | what all receivers and all senders tell of their sockets |
//! | `waiting.rs` | waiting until a group is free |
//! | `clock.rs`, `loss.rs`, `error.rs` | time, loss on purpose, errors |
#![deny(unsafe_code)]

mod batch;
mod changing;
mod clock;
mod element;
mod envelope;
mod error;
mod interface;
mod links;
mod listening;
mod listing;
mod loss;
mod narrow;
mod parity;
mod path_watch;
mod receive_sockets;
mod receiving;
mod refusals;
mod seal;
mod sending;
mod socket;
mod ssm;
mod store;
mod stream;
mod waiting;

pub use batch::{Kinds, SentCounts};
pub use changing::Changing;
pub use clock::Clock;
pub use element::{ElementCounts, ElementNotice, ElementOptions, Port, PortCounts, serve};
pub use error::NetError;
pub use interface::own_address;
pub use listening::{ListenNotice, ListenOptions, Unlike};
pub use parity::scratch_dir;
pub use path_watch::{PathNotice, wait_to_listen, wait_to_send};
pub use receiving::{ReceiveJob, ReceiveNotice, ReceiveOptions, ReceiveReport, receive};
pub use seal::{HistoryState, Memory, ReceiveSeal, Revoked, SealCounts, SendSeal};
pub use sending::{SendJob, SendNotice, SendOptions, SendReport, Traffic, send};
pub use socket::{SocketOptions, path_mtu};
pub use store::{FileInfo, PlainFile, Removed};
pub use stream::{
    StreamEnd, StreamNotice, StreamReceiveJob, StreamReceiveOptions, StreamSendJob, StreamSendNotice,
    StreamSendOptions, receive_stream, send_stream,
};
pub use waiting::{GroupWait, Waited, wait_until_free};
