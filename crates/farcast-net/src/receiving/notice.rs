//! Notices that a receiver gives its owner while it runs.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use farcast_core::Span;
use farcast_delivery::{ObjectId, Offer};
use farcast_files::Refusal;
use farcast_files::partials::Partial;

use super::ReceiveReport;
use crate::error::NetError;
use crate::store::{FileInfo, Removed};

/// Event of a reception; `E` is the engine's type of event.
#[derive(Debug)]
pub enum ReceiveNotice<'a, E> {
    /// The receiver listens for announcements.
    Listening {
        /// The address listened on.
        address: SocketAddr,
    },
    /// The interface has gone or cannot be used; the receiver waits for it.
    Waiting {
        /// Error that names the missing thing.
        why: &'a NetError,
    },
    /// The interface is there again, or another has taken its place, and the group was joined again.
    Rejoined,
    /// This host itself refused to send an answer; reported once.
    Blocked {
        /// The error of the system.
        why: &'a NetError,
    },
    /// Notes about sealed transfers cannot be saved. So no transfer is accepted that could be played back.
    Forgetful {
        /// Error that says what cannot be written, and what to do.
        why: &'a NetError,
    },
    /// A datagram came from a sender that is not accepted; reported once.
    NotAccepted {
        /// Address of the sender.
        source: IpAddr,
    },
    /// A datagram was ignored that another seal opens, that has no seal, or that another protocol sent; reported once.
    Unlike {
        /// Address of its sender.
        source: IpAddr,
        /// Reason for which it is ignored.
        why: Unlike,
    },
    /// Short datagrams of a sender arrive and no long one does, so the path carries less than its first link. Reported
    /// once for each sender.
    Narrow {
        /// The sender.
        source: IpAddr,
        /// Length of the datagrams that do not arrive, octets without headers of UDP and IP.
        datagram: usize,
        /// Length of datagrams that pass everywhere, octets without headers of UDP and IP.
        passes: usize,
        /// The sender is told of it.
        told: bool,
    },
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

/// Reason for which a datagram is ignored that another receiver might accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unlike {
    /// The datagram is sealed, and we have no key.
    Sealed,
    /// The datagram is not sealed, and we have a key.
    Unsealed,
    /// The datagram is sealed by a sender that is not trusted.
    Untrusted,
    /// The datagram is sealed by a trusted sender, which has had no key for us for a while.
    NotForUs,
    /// The datagram is sealed for another protocol, or another group.
    Elsewhere,
    /// The datagram is of a session before the latest one of its sender.
    Earlier,
    /// The datagram cannot be read: its sender speaks another protocol, or it is none.
    Foreign,
}
