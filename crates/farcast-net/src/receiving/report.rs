//! The report on an object: its outcome and its counts.

use farcast_core::Span;
use farcast_core::engine::RejectCounts;
use farcast_delivery::{Offer, Outcome, Received};
use farcast_files::StoreError;

use crate::error::NetError;
use crate::seal::SealCounts;
use crate::store::PlainFile;

/// Report on an object at this receiver; `E` is the engine's type of event.
#[derive(Debug)]
pub struct ReceiveReport<E> {
    /// Object that was offered.
    pub offer: Offer,
    /// Outcome of its reception.
    pub outcome: Outcome,
    /// Last event of the engine for the object.
    pub end: E,
    /// Error for which it could not be stored, if any.
    pub error: Option<NetError>,
    /// Time from joining to completion, or to the end.
    pub duration: Span,
    /// The list of files has come and has the digest that was announced. For an object without a manifest: it is what
    /// its sender vouches for.
    pub vouched: bool,
    /// File made of an object without a manifest, once that was complete.
    pub plain: Option<PlainFile>,
    /// Segments that were held before.
    pub held: u32,
    /// Segments that were held at the end.
    pub have: u32,
    /// The received part is kept for a next try. It then has content of files that the product's id vouches for, or it
    /// is of an object without a manifest that would be recognised.
    pub kept: bool,
    /// Counts of the received content.
    pub received: Received,
    /// The sender has sent content, even if only after this object was refused.
    pub has_content: bool,
    /// Datagrams that are not of the protocol.
    pub malformed: u64,
    /// Answers that the system refused to send.
    pub unsent: u64,
    /// Datagrams from senders that are not accepted.
    pub not_accepted: u64,
    /// Datagrams sent to our address that may come to the group only.
    pub misdirected: u64,
    /// Datagrams with content that were dropped because the disk did not answer.
    pub unstored: u64,
    /// Objects that were declined because the maximum number of objects was under way.
    pub crowded: u64,
    /// Number of further objects that the sender had sent before it left and of which nothing arrived. Only the last
    /// report of a run has it.
    pub missed: u32,
    /// Counts of datagrams that did not pass the seal, if there is one.
    pub seal: Option<SealCounts>,
    /// Messages that the engine rejected, by reason.
    pub rejects: RejectCounts,
}

impl<E> ReceiveReport<E> {
    /// Returns `true` if the object is complete, and verified if it has a manifest.
    pub fn is_complete(&self) -> bool {
        matches!(self.outcome, Outcome::Complete(_))
    }

    /// Returns `true` if this is the one transmission of [`once`](crate::ReceiveOptions::once). It is in these cases:
    ///
    /// * The object is complete.
    /// * The sender refused this receiver because another one has the same name.
    /// * The list of files has come as it was announced, and the transmission failed then.
    /// * It failed by something in the way here that only our user can change.
    /// * Content has come, and there is no room here, or its sender has ended and segments are missing.
    ///
    /// A mere offer does not count, or anybody's offer would do. A sender that fell silent does not count either: it
    /// may be started again, and the transfer continues then.
    pub fn counts(&self) -> bool {
        use StoreError as E;
        match self.outcome {
            // A receiver that waits for one product waits for the next version.
            Outcome::Lost | Outcome::SourceRenewed => return false,
            Outcome::Missed | Outcome::Withdrawn => return self.has_content,
            Outcome::Complete(_) | Outcome::Collision => return true,
            Outcome::SourceChanged | Outcome::Failed => {}
        }
        self.vouched
            || match &self.error {
                Some(NetError::Store(error)) => {
                    matches!(
                        error,
                        E::InUse { .. }
                            | E::ReadOnly { .. }
                            | E::PermissionDenied { .. }
                            | E::UnsafePath { .. }
                            | E::AlreadyExists { .. }
                            | E::NamesMeet { .. }
                            | E::ImpossibleName { .. }
                            | E::Withheld { .. }
                    ) || self.has_content && lacks_room(error)
                }
                Some(NetError::Forgetful(_)) => self.has_content,
                Some(error) => matches!(
                    error,
                    NetError::Directory { .. }
                        | NetError::NotADirectory(_)
                        | NetError::DanglingDirectory { .. }
                        | NetError::Discarded
                ),
                None => false,
            }
    }
}

/// Returns `true` if the error says that the receiver has no room for the object.
pub(super) fn lacks_room(error: &StoreError) -> bool {
    use StoreError as E;
    matches!(
        error,
        E::DiskFull { .. }
            | E::TooLarge { .. }
            | E::OverQuota { .. }
            | E::TooManyFiles { .. }
            | E::TooManyProducts { .. }
    )
}
