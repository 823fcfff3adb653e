//! How it went.

use farcast_core::Span;
use farcast_core::engine::RejectCounts;
use farcast_delivery::{Offer, Outcome, Received};
use farcast_files::StoreError;

use crate::error::NetError;
use crate::seal::SealCounts;
use crate::store::PlainFile;

/// How it went with an object for this receiver; `E` is what the engine tells.
#[derive(Debug)]
pub struct ReceiveReport<E> {
    /// What was sent.
    pub offer: Offer,
    /// How it ended.
    pub outcome: Outcome,
    /// What the engine told at its end.
    pub end: E,
    /// Why it could not be stored, if that is so.
    pub error: Option<NetError>,
    /// From joining to completion, or to the end.
    pub duration: Span,
    /// Whether its list of files has come and has the digest that was announced; of an object without a manifest,
    /// whether it is what its sender vouches for.
    pub vouched: bool,
    /// Of an object without a manifest: what became of it, once it was complete.
    pub plain: Option<PlainFile>,
    /// Segments that were there before.
    pub held: u32,
    /// Segments there at the end.
    pub have: u32,
    /// Whether what is there is kept for a next try: some of it is of files that the product's id vouches for, or of an
    /// object without a manifest that would be known again.
    pub kept: bool,
    /// What came.
    pub received: Received,
    /// Whether its sender has sent any content, also where that came only after this was refused.
    pub has_content: bool,
    /// Datagrams that were none of the protocol's.
    pub malformed: u64,
    /// Answers that the system would not send.
    pub unsent: u64,
    /// Datagrams from senders that are not to be heard.
    pub not_accepted: u64,
    /// Datagrams sent to our address that may come to the group only.
    pub misdirected: u64,
    /// Datagrams of data that were dropped because the disk did not answer.
    pub unstored: u64,
    /// Objects that were declined because as many were under way as may be.
    pub crowded: u64,
    /// Number of further objects that the sender had sent before it left and of which nothing came. Only the last report
    /// of a run has it.
    pub missed: u32,
    /// What did not pass the seal, if there is one.
    pub seal: Option<SealCounts>,
    /// Messages turned down, by reason.
    pub rejects: RejectCounts,
}

impl<E> ReceiveReport<E> {
    /// Whether the object is complete, and verified if it has a manifest.
    pub fn is_complete(&self) -> bool {
        matches!(self.outcome, Outcome::Complete(_))
    }

    /// Whether it is the one transmission of [`once`](crate::ReceiveOptions::once): it was complete, or brought at
    /// least the list of files that it had announced, or failed by what only our user can change: what is in the way
    /// here, or a name that another receiver has. With content behind it, it counts too if there is no room here, or if its
    /// sender has ended and some lacks. What never was more than an offer does not count, or anybody's would
    /// do; nor does a sender that fell silent, which may be started again and goes on then.
    pub fn counts(&self) -> bool {
        use StoreError as E;
        match self.outcome {
            Outcome::Lost => return false,
            Outcome::Missed => return self.has_content,
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

/// Tells whether the receiver has no room for what it is sent.
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
