//! Interface of a sender's engine.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;

use farcast_core::engine::{Engine, Reject};
use farcast_core::{Run, Time};

use crate::code::ErasureCode;
use crate::figure::{Figure, RequestCounts};
use crate::geometry::Geometry;
use crate::object::ObjectId;
use crate::proved::Proved;
use crate::receiver::Cause;

/// Phase of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Created, not yet started.
    Idle,
    /// Announcing, until enough receivers are known.
    Announcing,
    /// Receivers join the group that data goes to.
    Joining,
    /// Sending.
    Sending,
    /// Everything scheduled has been sent; answers are awaited.
    Waiting,
    /// Confirming completion.
    Completing,
    /// Telling all receivers that the delivery is aborted.
    Aborting,
    /// Ended.
    Ended,
}

impl Phase {
    /// Returns the phase's name in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Announcing => "announcing",
            Self::Joining => "joining",
            Self::Sending => "sending",
            Self::Waiting => "waiting",
            Self::Completing => "completing",
            Self::Aborting => "aborting",
            Self::Ended => "ended",
        }
    }
}

/// Addresses of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Routes {
    /// Source address of the sender's messages.
    pub source: SocketAddr,
    /// Destination of announcements.
    pub announcements: SocketAddr,
    /// Destination of content.
    pub content: SocketAddr,
    /// Destination of answers.
    pub answers: SocketAddr,
}

impl Routes {
    /// Returns the addresses of a delivery from `source` that sends everything to `group`.
    pub const fn new(source: SocketAddr, group: SocketAddr, answers: SocketAddr) -> Self {
        Self { source, announcements: group, content: group, answers }
    }
}

/// Progress of a round of sending: a pass, or a carousel's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundProgress {
    /// Number of the round, from 1; 0 before content.
    pub round: u32,
    /// Segments sent in the round.
    pub sent: u32,
    /// Segments that the round sends in all, as far as is known.
    pub segments: u32,
}

/// Effect of a request for repair at the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NakFate {
    /// The request made the sender schedule something.
    Used,
    /// The request asked only for segments that were scheduled or sent already.
    Known,
    /// The request answers an earlier round than the last.
    Late,
}

/// Request for repair, or several merged ones, that the sender received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Round that the requests answer.
    pub round: u32,
    /// Number of requests.
    pub count: u64,
    /// Effect of the requests.
    pub fate: NakFate,
}

/// Parity symbols that are probably sent soon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// Object that the symbols belong to.
    pub object: ObjectId,
    /// Block that the symbols belong to.
    pub block: u32,
    /// Symbols of the block.
    pub symbols: Run,
}

/// Meaning of a sender's event to its driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Milestone {
    /// A receiver joins the delivery.
    Joined,
    /// Content begins to leave as planned.
    Began {
        /// Number of receivers that take part, as far as is known.
        receivers: u32,
    },
    /// A round of sending begins.
    Round {
        /// Number of the round, from 1.
        round: u32,
        /// Segments scheduled for it so far.
        segments: u32,
    },
    /// A receiver is known to be complete.
    Done,
    /// A receiver stays out, has left, or was given up.
    Left,
    /// Every receiver is complete, has left, or was given up. The messages that follow only confirm.
    Delivered,
    /// The delivery has ended.
    Ended {
        /// `true` if there was no receiver.
        alone: bool,
    },
}

/// Reason for which a sender has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Nothing is left to do, as far as the sender knows.
    Finished,
    /// The delivery exceeded its time limit.
    TimeLimit,
    /// The receivers that should answer no longer do.
    Silence,
    /// There was no receiver.
    Nobody,
}

/// Segments whose source is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone {
    /// Segments that are gone completely, if any.
    pub whole: Option<Run>,
    /// Segments that are gone at least in part.
    pub touched: Run,
}

/// Engine that sends one delivery, of one object or several.
pub trait SenderEngine: Engine {
    /// Merged answers of many receivers at one instant; `core::convert::Infallible` for a protocol without them.
    type Merged: Clone + fmt::Debug + 'static;

    /// Begins the delivery at `now`.
    fn open(&mut self, now: Time);

    /// Begins to send content to the receivers known so far, on the owner's demand. Does nothing in a protocol that
    /// waits for no receiver.
    fn start(&mut self, _now: Time) {}

    /// Records `datagrams` with `octets` of UDP payload in all that left beside the engine's own, such as key grants.
    /// They count against the engine's rate, if it has one. If `datagrams` is 0, the octets are additional headers of
    /// other datagrams, as fragments have.
    fn spend(&mut self, _datagrams: u64, _octets: u64) {}

    /// Like [`spend`](Self::spend), for datagrams that left between two datagrams of content: the following content
    /// waits for them.
    fn spend_at_once(&mut self, datagrams: u64, octets: u64) {
        self.spend(datagrams, octets);
    }

    /// Aborts the delivery, and tells receivers the reason.
    fn abort(&mut self, now: Time, cause: Cause, text: Option<String>);

    /// Handles the loss of the source of `gone` segments of `object`, which can no longer be sent. Receivers are told,
    /// and the sender does not wait for a receiver that lacks nothing else.
    fn withdraw(&mut self, _now: Time, _object: ObjectId, _gone: &Gone, _why: &str) {}

    /// Handles a receiver that stopped taking part by its owner's will, and to which further content means nothing. The
    /// sender no longer waits for it. Does nothing where the receiver's silence has the same effect soon enough.
    fn dismiss(&mut self, _now: Time, _who: &Proved<'_>) {}

    /// Sends from `source` from now on, because the previous address is gone.
    fn moved(&mut self, now: Time, source: SocketAddr);

    /// Returns the addresses of the delivery.
    fn routes(&self) -> Routes;

    /// Returns the geometry of `object`; `None` if the sender does not send it.
    fn geometry(&self, object: ObjectId) -> Option<&Geometry>;

    /// Returns the maximum number of parity symbols of a block of `object`; 0 without parity.
    fn parity_symbols(&self, _object: ObjectId) -> u32 {
        0
    }

    /// Returns the erasure code of the parity of an object.
    fn erasure_code(&self, _object: ObjectId) -> ErasureCode {
        ErasureCode::BySize
    }

    /// Returns the phase of the delivery.
    fn phase(&self) -> Phase;

    /// Returns the progress of the current round.
    fn progress(&self) -> RoundProgress;

    /// Returns the figures of the transfer, always the same ones in the same order. The driver counts `requests`; the
    /// protocol chooses those that it reports, and names them.
    fn figures(&self, _requests: &RequestCounts) -> Vec<Figure> {
        Vec::new()
    }

    /// Returns the milestone that `event` stands for, if any.
    fn milestone(event: &Self::Event) -> Option<Milestone>;

    /// Returns the reason for the end, if `event` reports the end.
    fn ending(event: &Self::Event) -> Option<Ending> {
        match Self::milestone(event)? {
            Milestone::Ended { alone } => Some(if alone { Ending::Nobody } else { Ending::Finished }),
            _ => None,
        }
    }

    /// Returns the request for repair in the message handled last, if it was one.
    fn asked(&self) -> Option<Asked> {
        None
    }

    /// Returns the time before which the sender sends only settled messages, whatever a receiver may answer.
    fn quiet_until(&self) -> Time {
        Time::ZERO
    }

    /// Returns the parity symbols that are probably sent soon, the earliest first.
    fn parity_ahead(&self) -> [Option<Ahead>; 2] {
        [None; 2]
    }

    /// Returns the number of parity symbols of each block that the sender may send in all, from the first on. It
    /// applies to a sender that sends parity of all blocks of `object` in turns, some symbols of each block at a time.
    /// The owner then computes the parity of every block once, in order, and keeps it; nothing is announced
    /// [ahead](Self::parity_ahead). 0 if each block's parity is sent separately.
    fn parity_of_all(&self, _object: ObjectId) -> u32 {
        0
    }

    /// Returns `true` if answers that arrive at one instant may be merged without any effect on the outcome.
    fn may_merge(&self) -> bool {
        false
    }

    /// Handles merged answers, the last of which arrives at `now`.
    ///
    /// # Errors
    /// Returns the error of one of the answers, or [`Reject::Unexpected`] if answers may not be merged.
    fn handle_merged(&mut self, _now: Time, _merged: &Self::Merged) -> Result<(), Reject> {
        Err(Reject::Unexpected)
    }
}
