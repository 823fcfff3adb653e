//! What is told while receiving.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use farcast_core::Span;
use farcast_delivery::{ObjectId, Offer};
use farcast_files::Refusal;
use farcast_files::partials::Partial;

use super::ReceiveReport;
use crate::error::NetError;
use crate::store::{FileInfo, Removed};

/// What happens while receiving; `E` is what the engine tells.
#[derive(Debug)]
pub enum ReceiveNotice<'a, E> {
    /// Ready to hear announcements.
    Listening {
        /// The address listened on.
        address: SocketAddr,
    },
    /// The interface is not there any more, or of no use; it is waited for.
    Waiting {
        /// What is missing.
        why: &'a NetError,
    },
    /// The interface is there again, or another has taken its place, and the group is joined anew.
    Rejoined,
    /// This host itself would not send an answer; told once.
    Blocked {
        /// What the system says.
        why: &'a NetError,
    },
    /// What is heard of sealed transfers cannot be remembered, so that none is accepted that could be played back.
    Forgetful {
        /// What cannot be written, and what to do.
        why: &'a NetError,
    },
    /// Something came from a sender that is not to be heard; told of once.
    NotAccepted {
        /// Where from.
        source: IpAddr,
    },
    /// Something came that only another seal opens, that has none, or that another protocol says; told of once.
    Unlike {
        /// Where from.
        source: IpAddr,
        /// Why it is passed over.
        why: Unlike,
    },
    /// Short datagrams of a sender come and no long one does: the way carries less than its first link. Told of once for
    /// each sender.
    Narrow {
        /// The sender.
        source: IpAddr,
        /// Octets of datagrams that do not come, without headers of UDP and IP.
        datagram: usize,
        /// Octets of datagrams that pass everywhere, likewise.
        passes: usize,
        /// Whether the sender is told of it.
        told: bool,
    },
    /// An object is received.
    Joined {
        /// What is sent.
        offer: &'a Offer,
        /// Segments that are there already.
        held: u32,
    },
    /// What was there already, under the names of files that are sent, was compared with them.
    Compared {
        /// Which object.
        object: ObjectId,
        /// Segments that need not come.
        found: u32,
    },
    /// The list of files is known.
    Files {
        /// Of which object.
        object: ObjectId,
        /// The files.
        files: &'a Arc<[FileInfo]>,
    },
    /// A file is complete, verified where there is a manifest, and has its final name.
    FileDone {
        /// Of which object.
        object: ObjectId,
        /// Its path below the receiving directory.
        path: &'a str,
    },
    /// Something arrived damaged; it is asked for again.
    Damaged {
        /// Which object.
        object: ObjectId,
        /// The path of the file below the receiving directory; `None` for the list of files.
        path: Option<&'a str>,
        /// How many segments are asked for again.
        segments: u32,
    },
    /// The disk is full; what comes is dropped until there is room.
    NoRoom {
        /// What could not be stored.
        error: &'a NetError,
        /// How long room is waited for.
        wait: Span,
    },
    /// An entry cannot have its name here, and is not delivered; everything else is.
    Withheld {
        /// Of which object.
        object: ObjectId,
        /// Its path below the receiving directory.
        path: &'a str,
        /// Why, in a sentence.
        why: &'a str,
    },
    /// The file system refuses something beside the content, which is passed over; told once of each kind.
    Refused(&'a Refusal),
    /// A product that was not complete was removed.
    Removed {
        /// What it was.
        partial: &'a Partial,
        /// Why it was removed.
        why: Removed,
    },
    /// There is room again, and what was dropped is asked for.
    Room,
    /// Something the engine tells.
    Event(&'a E),
    /// A tenth of a second has passed.
    Tick,
    /// It is over with an object.
    Ended(&'a ReceiveReport<E>),
}

/// Why something is passed over that another receiver might take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unlike {
    /// It is sealed, and we have no key.
    Sealed,
    /// It is not sealed, and we have a key.
    Unsealed,
    /// It is sealed by somebody who is not trusted.
    Untrusted,
    /// It is sealed by somebody who is trusted, and has had no key for us for a while.
    NotForUs,
    /// It is sealed for another protocol, or another group.
    Elsewhere,
    /// It is of a session before the one that its sender has begun last.
    Earlier,
    /// It cannot be read: its sender speaks another protocol, or it is none.
    Foreign,
}
