//! The network driver: real sockets and files for the sans-I/O engines.
//!
//! [`send`] and [`receive`] own the clock, the sockets and the threads; the engines of `farcast-mftp` decide what
//! leaves and when, `farcast-files` holds the bytes. Datagrams leave as `UDP_SEGMENT` batches and arrive coalesced
//! where the kernel can; payload is copied once on its way out (from the page cache into the batch) and once on
//! its way in (from the kernel's buffer into ours), and goes to the file from there.
#![deny(unsafe_code)]

mod batch;
mod clock;
mod error;
mod loss;
mod parity;
mod receiving;
mod sending;
mod socket;
mod ssm;
mod store;

pub use clock::Clock;
pub use error::NetError;
pub use receiving::{ReceiveNotice, ReceiveOptions, ReceiveReport, receive};
pub use sending::{SendOptions, SendReport, send};
pub use socket::{SocketOptions, own_address, path_mtu};
pub use store::FileInfo;
