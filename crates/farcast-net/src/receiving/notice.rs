//! Notices that a receiver gives its owner while it runs.

use std::sync::Arc;

use farcast_core::Span;
use farcast_delivery::{ObjectId, Offer};
use farcast_files::Refusal;
use farcast_files::partials::Partial;

use super::ReceiveReport;
use crate::error::NetError;
use crate::listening::ListenNotice;
use crate::store::{FileInfo, Removed};

/// Event of a reception; `E` is the engine's type of event.
#[derive(Debug)]
pub enum ReceiveNotice<'a, E> {
    /// Notice about the sockets.
    Listen(ListenNotice<'a>),
    /// An object is received.
    Joined {
        /// Object that is offered.
        offer: &'a Offer,
        /// Segments that are held already.
        held: u32,
    },
    /// Older versions that were already here, under the names of the sent files, were compared with them.
    Compared {
        /// Number of the object.
        object: ObjectId,
        /// Segments that need not be sent.
        found: u32,
    },
    /// The list of files is known.
    Files {
        /// Number of the object.
        object: ObjectId,
        /// Files in the list.
        files: &'a Arc<[FileInfo]>,
    },
    /// A file is complete, verified where there is a manifest, and has its final name.
    FileDone {
        /// Number of the object.
        object: ObjectId,
        /// Its path below the receiving directory.
        path: &'a str,
    },
    /// Segments arrived damaged; they are requested again.
    Damaged {
        /// Number of the object.
        object: ObjectId,
        /// The path of the file below the receiving directory; `None` for the list of files.
        path: Option<&'a str>,
        /// Number of segments that are requested again.
        segments: u32,
    },
    /// The disk is full; data is dropped until there is room.
    NoRoom {
        /// The error for what could not be stored.
        error: &'a NetError,
        /// Longest time for which the receiver waits for room.
        wait: Span,
    },
    /// A file or directory cannot have its name here and is not delivered; everything else is.
    Withheld {
        /// Number of the object.
        object: ObjectId,
        /// Its path below the receiving directory.
        path: &'a str,
        /// Reason, as a sentence.
        why: &'a str,
    },
    /// The file system refuses something besides the content, which is ignored; reported once for each kind.
    Refused(&'a Refusal),
    /// An incomplete product was removed.
    Removed {
        /// Description of the product.
        partial: &'a Partial,
        /// Reason for its removal.
        why: Removed,
    },
    /// There is room again, and dropped data is requested again.
    Room,
    /// Event of the engine.
    Event(&'a E),
    /// A tenth of a second has passed.
    Tick,
    /// The reception of an object has ended.
    Ended(&'a ReceiveReport<E>),
}
