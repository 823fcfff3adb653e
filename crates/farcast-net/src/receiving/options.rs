//! Options of a receiver.

use std::path::PathBuf;

use farcast_core::Span;
use farcast_files::Options;

use crate::listening::ListenOptions;

/// Options of a receiver: addresses to listen on, and the place of the files.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// Options of the sockets.
    pub listen: ListenOptions,
    /// Directory for the files; made if it is missing.
    pub into: PathBuf,
    /// Options for storing files.
    pub files: Options,
    /// Receive objects without a manifest of ours too, each as a plain file. Only the protocol then vouches for the
    /// content. Without this option they are declined.
    pub plain: bool,
    /// End after the first transmission that [counts](crate::ReceiveReport::counts).
    pub once: bool,
    /// Drop what arrives instead of storing it; the end is [`Discarded`](crate::NetError::Discarded), never a success.
    pub discard: bool,
    /// Longest time to wait for room on a full disk before the transmission is given up.
    pub wait_for_room: Span,
}
