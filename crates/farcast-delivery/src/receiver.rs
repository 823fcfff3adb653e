//! Requests of a receiver's engine to its owner, and the owner's answers.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use farcast_core::engine::{Arrival, Engine, RejectCounts};
use farcast_core::{Bitmap, Run, Time};

use crate::code::ErasureCode;
use crate::geometry::Geometry;
use crate::object::ObjectId;
use crate::passage::Passage;
use crate::proved::Proved;
use crate::vouched::Vouched;

/// Offer of an object by a sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Identifier that the object gets while it is under way.
    pub object: ObjectId,
    /// Address that the sender sends from.
    pub sender: SocketAddr,
    /// Number that distinguishes this delivery from the sender's other ones.
    pub session: u32,
    /// Multicast group that carries content.
    pub group: IpAddr,
    /// Name of the object: any octets that the sender chooses, or empty if it gives none.
    pub name: Vec<u8>,
    /// `true` if the name is provisional. The object gets no final name before the real one is known, or before the
    /// object is verified.
    pub provisional: bool,
    /// Digest that commits to the object; absent from a sender that is not farcast.
    pub id: Option<[u8; 32]>,
    /// Number that distinguishes the object from all others of this session, for objects without a digest. Together
    /// with session, name and size it identifies the object of an earlier, unfinished run. Absent if nothing identifies
    /// the object.
    pub serial: Option<u64>,
    /// Metadata that the sender vouches for, for objects without a manifest. It may become known only together with the
    /// name.
    pub vouched: Option<Box<Vouched>>,
    /// Division of the object into blocks and segments.
    pub geometry: Geometry,
    /// Maximum number of parity symbols of a block.
    pub parity_symbols: u32,
    /// `true` if the object replaces one that exists already.
    pub overwrite: bool,
    /// Sender's rate in bit/s; `u32::MAX` if it is not limited.
    pub rate_bps: u32,
}

/// Reason for which an owner declines an offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decline {
    /// There is not enough room on the disk.
    Disk,
    /// The maximum number of objects is under way.
    Busy,
    /// The system failed.
    System,
    /// The object exists already and must not be overwritten.
    AlreadyHave,
    /// The offer does not identify the object.
    Unwanted,
}

/// Reason for which an owner ends a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The user asked for it.
    Application,
    /// The system failed.
    System,
    /// The object has changed at its source.
    SourceChanged,
    /// The object has changed at its source, and the new version is sent next.
    SourceRenewed,
}

/// Maximum number of objects that an owner has in hand at once. An engine offers no more until one of them has ended,
/// and asks later for the objects for which there was no room.
pub const AT_HAND: usize = 32;

/// Request of a receiver's event to its owner. `offset` counts from the first datagram of the message just handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Look for stored parts of the object, and answer with [`Answer::Open`], [`Answer::OpenEarlier`] or
    /// [`Answer::Declined`].
    ///
    /// The engine may pass on content to be stored before the owner answers. The owner stores this content after it has
    /// opened the object. If the owner declines the object, the content is dropped.
    Open(&'a Offer),
    /// Replace the opened offer by this one, which differs in its name alone. The name came after the object's content.
    Rename(&'a Offer),
    /// Store these segments, which are counted through the whole object.
    Store {
        /// Object that the segments belong to.
        object: ObjectId,
        /// Segments to be stored.
        segments: Run,
        /// Number of the message's datagram that carries the first segment.
        offset: u32,
    },
    /// Keep these parity symbols.
    Parity {
        /// Object that the symbols belong to.
        object: ObjectId,
        /// Block that the symbols belong to.
        block: u32,
        /// Symbols to be kept.
        symbols: Run,
        /// Number of the message's datagram that carries the first symbol.
        offset: u32,
    },
    /// Rebuild the missing segments of a block from its parity, store them, and answer with [`Answer::Decoded`].
    Decode {
        /// Object that the block belongs to.
        object: ObjectId,
        /// Block to be rebuilt.
        block: u32,
    },
    /// Compare this object with stored older versions, and answer with [`Answer::Compared`].
    Compare(ObjectId),
    /// Verify the object, every segment of which is stored, give the files their names, and answer with
    /// [`Answer::Verified`] or [`Answer::Failed`]. After [`Answer::Lost`] instead, the engine repeats the request when
    /// it has those segments.
    Verify(ObjectId),
    /// The engine has finished with this object; the identifier may be given to another.
    Ended(ObjectId, Outcome),
}

/// Outcome of a delivery for a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The object is complete and verified since this instant.
    Complete(Time),
    /// The sender gave up because the object has changed at its source. The stored part can never be completed.
    SourceChanged,
    /// The sender gave up because the object has changed at its source, and sends the current one next. The stored part
    /// can never be completed.
    SourceRenewed,
    /// The sender refused this receiver because another one has the same identity.
    Collision,
    /// No session was agreed, or the sender fell silent; the delivery may continue another time.
    Lost,
    /// The sender has ended, or can no longer repair the missing part. Nothing of the object comes until it is sent
    /// anew.
    Missed,
    /// The sender has withdrawn the object, because it changed at its source. The other objects of the delivery come.
    Withdrawn,
    /// Any other failure.
    Failed,
}

/// Answer of an owner about an object, or an unsolicited report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The owner takes part and has these segments. A bitmap of another length counts as empty.
    Open(Bitmap),
    /// The owner takes part, has these segments, and may have an older version of the object to compare. The second
    /// value is `true` if the list of the object's contents is already known.
    OpenEarlier(Bitmap, bool),
    /// The owner declines the object.
    Declined(Decline),
    /// The list of the object's contents takes this many segments.
    ListIs(u32),
    /// The list of the object's contents is known.
    Listed,
    /// The owner has these segments in addition.
    Held(Bitmap),
    /// The comparison is finished, and the owner has these segments now.
    Compared(Bitmap),
    /// The owner lost these segments, and they must come again.
    Lost(Run),
    /// A block was rebuilt, or could not be.
    Decoded {
        /// Number of the block.
        block: u32,
        /// `true` if the whole block is available.
        rebuilt: bool,
    },
    /// Everything is verified and has its final name.
    Verified,
    /// The object cannot be received: the reason, and a text for the sender.
    Failed(Cause, Option<String>),
}

/// Counts of received content, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Segments that were new.
    pub segments: u64,
    /// Parity symbols that were new.
    pub parity: u64,
    /// Segments and symbols that brought nothing new.
    pub duplicates: u64,
    /// Requests for repair that were sent for this object.
    pub naks: u64,
    /// Datagrams of content that were sent to this receiver and did not reach it. For a protocol that numbers all
    /// datagrams, all datagrams count. Datagrams that were left out, that passed before the receiver joined, or that
    /// came and were not stored are not lost.
    pub lost: u64,
    /// Datagrams that are known to have been sent, lost or not. The loss rate is [`lost`](Self::lost) divided by this
    /// number.
    pub sent: u64,
}

impl Received {
    /// Sets the losses to those on the path from the sender between `before` and `now`.
    #[must_use]
    pub fn passed(self, before: Passage, now: Passage) -> Self {
        let lost = now.lost().saturating_sub(before.lost());
        Self { lost, sent: now.sent().saturating_sub(before.sent()), ..self }
    }
}

/// Engine that receives objects, one after the other or several at once. The event that ends an object is kept for its
/// report.
pub trait ReceiverEngine: Engine<Event: Clone> {
    /// `true` if parity is kept on disk until its block is rebuilt, even over a restart, rather than in memory. This
    /// suits protocols in which missing content comes unrequested at a later time, or in another session. The owner
    /// then reports the [kept](Self::kept) symbols.
    const KEEPS_PARITY: bool = false;

    /// `true` if messages of receivers may reach a sender.
    const ANSWERS: bool = true;

    /// Returns the request that `event` makes, if any.
    fn request(event: &Self::Event) -> Option<Request<'_>>;

    /// Returns `true` if the sender knows as well that the object that `event` ends is over, so that neither side has
    /// more to send. By default the sender does not know.
    fn is_settled(_event: &Self::Event) -> bool {
        false
    }

    /// Handles the owner's answer about `object`. An answer about an object that has ended meanwhile is ignored.
    fn answer(&mut self, now: Time, object: ObjectId, answer: Answer);

    /// Notes that the owner has these symbols of `block` from an earlier run, if [parity is kept](Self::KEEPS_PARITY).
    /// Called after [`Answer::Open`].
    fn kept(&mut self, _now: Time, _object: ObjectId, _block: u32, _symbols: &Bitmap) {}

    /// Records that the content of `message` could not be stored. It is missing, but was not lost on the way.
    fn unstored(&mut self, _from: &Arrival, _message: &Self::Message) {}

    /// Leaves every current object, on the owner's demand.
    fn stop(&mut self, now: Time);

    /// Handles a change of the receiver's own address.
    fn moved(&mut self, now: Time);

    /// Handles the proven start of another session by the sender `who`. Later messages of this sender do not continue
    /// its earlier ones. Does nothing in protocols whose messages name their transmission.
    fn begins_anew(&mut self, _now: Time, _who: &Proved<'_>) {}

    /// Returns `true` if an object is current, or if a sender has yet to be told that the receiver has left.
    fn is_busy(&self) -> bool;

    /// Returns `true` while an object of the sender at `source` is current, or that sender has yet to be answered.
    fn is_busy_with(&self, _source: SocketAddr) -> bool {
        self.is_busy()
    }

    /// Returns the erasure code of the parity of `object`, which is offered or current.
    fn erasure_code(&self, _object: ObjectId) -> ErasureCode {
        ErasureCode::BySize
    }

    /// Returns the segments of `object` that have come, while it is current.
    fn have(&self, object: ObjectId) -> Option<&Bitmap>;

    /// Returns the counts of `object`, which is current, or was until its end was reported.
    fn received(&self, object: ObjectId) -> Received;

    /// Returns the number of objects that the sender at `source` sent without an offer that reached this receiver.
    /// Known once the sender has left.
    fn missed(&self, _source: SocketAddr) -> u32 {
        0
    }

    /// Returns the number of requests for repair sent, for all objects.
    fn naks(&self) -> u64;

    /// Returns the number of rejected messages, by reason.
    fn rejects(&self) -> &RejectCounts;
}
