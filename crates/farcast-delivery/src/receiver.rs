//! What a receiver's engine asks of its owner, and what that answers.

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

/// What a sender offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Which of the objects that are under way it becomes.
    pub object: ObjectId,
    /// Where it sends from.
    pub sender: SocketAddr,
    /// By what it tells this delivery from its others.
    pub session: u32,
    /// The group that carries content.
    pub group: IpAddr,
    /// What the object is called: any octets that the sender says, and none where it says nothing.
    pub name: Vec<u8>,
    /// Whether it is called so only until more is known: it gets no final name before that, or before it is verified.
    pub provisional: bool,
    /// The digest that commits to it; absent from a sender that is not farcast.
    pub id: Option<[u8; 32]>,
    /// Where there is no digest: what the sender tells it by from all others of this session. With the session, the
    /// name and the size it says that an object is the one of which an earlier run has left something; absent where
    /// nothing does.
    pub serial: Option<u64>,
    /// What its sender vouches for, where there is no manifest; it may become known with the name only.
    pub vouched: Option<Box<Vouched>>,
    /// How it is cut.
    pub geometry: Geometry,
    /// Parity symbols that a block may have.
    pub parity_symbols: u32,
    /// Whether an object that is there already is replaced.
    pub overwrite: bool,
    /// The sender's rate in bit/s; `u32::MAX` where it is not limited.
    pub rate_bps: u32,
}

/// Why an owner turns down what is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decline {
    /// There is no room for it.
    Disk,
    /// As many objects are under way as may be.
    Busy,
    /// Something in the system.
    System,
    /// It is there, and must not be overwritten.
    AlreadyHave,
    /// It does not say what it is.
    Unwanted,
}

/// Why an owner ends a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Who uses it wishes so.
    Application,
    /// Something in the system.
    System,
    /// What is sent has changed at its source.
    SourceChanged,
    /// It has, and what it is now is sent next.
    SourceRenewed,
}

/// What an event of a receiver asks of its owner. `offset` counts from the first datagram of the message just handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Look what is there of it, and answer with [`Answer::Open`], [`Answer::OpenEarlier`] or [`Answer::Declined`].
    ///
    /// Content may be there to be stored before the answer: it is stored behind what opening does, and what is lost by
    /// a refusal was not wanted.
    Open(&'a Offer),
    /// What is said of an object came behind its content: this offer takes the place of the one that was opened, from
    /// which it differs in its name alone.
    Rename(&'a Offer),
    /// Store these segments, which are counted through the object.
    Store {
        /// The object.
        object: ObjectId,
        /// Its segments.
        segments: Run,
        /// Where in the message they begin.
        offset: u32,
    },
    /// Keep these parity symbols.
    Parity {
        /// The object.
        object: ObjectId,
        /// The block.
        block: u32,
        /// Its symbols.
        symbols: Run,
        /// Where in the message they begin.
        offset: u32,
    },
    /// Rebuild what is missing of a block from its parity, store it, and answer with [`Answer::Decoded`].
    Decode {
        /// The object.
        object: ObjectId,
        /// The block.
        block: u32,
    },
    /// Compare what is there of older versions of this object, and answer with [`Answer::Compared`].
    Compare(ObjectId),
    /// Every segment of this object is stored: verify, give the files their names, and answer with [`Answer::Verified`]
    /// or [`Answer::Failed`]. Where [`Answer::Lost`] comes instead, the engine asks again when it has those segments.
    Verify(ObjectId),
    /// It is over with this object; its id may be given to another.
    Ended(ObjectId, Outcome),
}

/// How a delivery ended for a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The object is complete and verified since this instant.
    Complete(Time),
    /// The sender gave up because the object has changed at its source: what there is of it can never be completed.
    SourceChanged,
    /// The sender refused this receiver, because another has its identity.
    Collision,
    /// Nothing was agreed, or the sender fell silent: it may go on another time.
    Lost,
    /// The sender has ended, or can repair what lacks no more: nothing of it comes until it is sent anew.
    Missed,
    /// All else.
    Failed,
}

/// What an owner answers about an object, or tells unasked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It takes part, with these segments; a bitmap of another length counts as empty.
    Open(Bitmap),
    /// The same, with something that may be an older version of the object: it is compared. Whether the list of what
    /// the object consists of is known already.
    OpenEarlier(Bitmap, bool),
    /// It stays out.
    Declined(Decline),
    /// The list of what the object consists of takes so many segments.
    ListIs(u32),
    /// The list is known.
    Listed,
    /// These segments are there besides.
    Held(Bitmap),
    /// What is there was compared: these segments are there now.
    Compared(Bitmap),
    /// These segments have to come again.
    Lost(Run),
    /// A block was rebuilt, or could not be.
    Decoded {
        /// The block.
        block: u32,
        /// Whether all of it is there.
        rebuilt: bool,
    },
    /// Everything is verified and has its final name.
    Verified,
    /// It cannot be received: why, and in words for the sender.
    Failed(Cause, Option<String>),
}

/// What has come, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Segments that were new.
    pub segments: u64,
    /// Parity symbols that were new.
    pub parity: u64,
    /// Segments and symbols that brought nothing new.
    pub duplicates: u64,
    /// Requests for repair that were sent, as far as they are for this object.
    pub naks: u64,
    /// Datagrams of content, or of a protocol that numbers them all, datagrams, that are known to have been sent to this
    /// receiver and did not reach it. What was left out, what went by before it joined, and what came and was not
    /// stored are not among them.
    pub lost: u64,
    /// Those that are known to have been sent, lost or not: of these, [`lost`](Self::lost) are the share that is called
    /// loss.
    pub sent: u64,
}

impl Received {
    /// The same with what came and went between `before` and `now` on the way from the sender.
    #[must_use]
    pub fn passed(self, before: Passage, now: Passage) -> Self {
        let lost = now.lost().saturating_sub(before.lost());
        Self { lost, sent: now.sent().saturating_sub(before.sent()), ..self }
    }
}

/// An engine that receives objects, one after the other or several at once. The event that ends one is kept for its
/// report.
pub trait ReceiverEngine: Engine<Event: Clone> {
    /// Whether parity is kept on disk until its block is rebuilt, over a restart too, and not in memory: where what is
    /// wanting comes in its own time, or in another session. The owner then tells what it has [kept](Self::kept).
    const KEEPS_PARITY: bool = false;

    /// Whether anything that a receiver says may reach a sender.
    const ANSWERS: bool = true;

    /// What `event` asks for, if it asks for anything.
    fn request(event: &Self::Event) -> Option<Request<'_>>;

    /// Whether with `event`, which ends an object, its sender knows as well that it is over, so that neither has more to
    /// say. By default nobody knows.
    fn is_settled(_event: &Self::Event) -> bool {
        false
    }

    /// Takes what its owner answers about `object`; of one that has ended meanwhile, it is passed over.
    fn answer(&mut self, now: Time, object: ObjectId, answer: Answer);

    /// Where [parity is kept](Self::KEEPS_PARITY): these symbols of `block` are there from before. Told behind
    /// [`Answer::Open`].
    fn kept(&mut self, _now: Time, _object: ObjectId, _block: u32, _symbols: &Bitmap) {}

    /// `message` came and its content could not be stored: what it carries is missing and was not lost on the way.
    fn unstored(&mut self, _from: &Arrival, _message: &Self::Message) {}

    /// Leaves everything at hand, on the owner's demand.
    fn stop(&mut self, now: Time);

    /// Its address is another one now.
    fn moved(&mut self, now: Time);

    /// `who` has begun another session of sending, as is proved: nothing that it says from now on goes on with what it has
    /// said before. Where messages name their transmission, that need not be told.
    fn begins_anew(&mut self, _now: Time, _who: &Proved<'_>) {}

    /// Whether any object is at hand, or a sender that was left has yet to be told so.
    fn is_busy(&self) -> bool;

    /// Returns true while an object of the sender at `source` is at hand, or that sender has yet to be answered.
    fn is_busy_with(&self, _source: SocketAddr) -> bool {
        self.is_busy()
    }

    /// The code that the parity of `object` is of, which is offered or at hand.
    fn erasure_code(&self, _object: ObjectId) -> ErasureCode {
        ErasureCode::BySize
    }

    /// The segments of `object` that have come, while it is at hand.
    fn have(&self, object: ObjectId) -> Option<&Bitmap>;

    /// What has come of `object`, which is at hand, or was until its end was told.
    fn received(&self, object: ObjectId) -> Received;

    /// Requests for repair that were sent, for whatever object.
    fn naks(&self) -> u64;

    /// Messages turned down, by reason.
    fn rejects(&self) -> &RejectCounts;
}
