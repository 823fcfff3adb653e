//! What is asked of a sender's engine.

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

/// Where a delivery stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Made, not yet started.
    Idle,
    /// Announcing, until enough receivers are known.
    Announcing,
    /// Receivers join the group that data goes to.
    Joining,
    /// Sending.
    Sending,
    /// Everything scheduled has been sent; answers are awaited.
    Waiting,
    /// Confirming.
    Completing,
    /// Telling everyone that it is off.
    Aborting,
    /// Over.
    Ended,
}

impl Phase {
    /// What it is called in reports.
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

/// Between which addresses a delivery goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Routes {
    /// Where what the sender says comes from.
    pub source: SocketAddr,
    /// Where announcements go.
    pub announcements: SocketAddr,
    /// Where content goes.
    pub content: SocketAddr,
    /// Where answers go.
    pub answers: SocketAddr,
}

/// How far a round of sending has come: a pass, a carousel's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundProgress {
    /// Which one, from 1; 0 before content.
    pub round: u32,
    /// Segments that have left in it.
    pub sent: u32,
    /// Segments that it sends in all, as far as is known.
    pub segments: u32,
}

/// What became of a request for repair at the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NakFate {
    /// It made the sender schedule something.
    Used,
    /// It asked for nothing that was not scheduled or sent already.
    Known,
    /// It answers an earlier round than the last.
    Late,
}

/// A request for repair, or several merged, that the sender has heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The round that it answers.
    pub round: u32,
    /// How many requests they are.
    pub count: u64,
    /// What became of them.
    pub fate: NakFate,
}

/// Parity symbols that are probably sent soon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// Of which object.
    pub object: ObjectId,
    /// Of which block.
    pub block: u32,
    /// Which of its symbols.
    pub symbols: Run,
}

/// What an event of a sender means to who drives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Milestone {
    /// A receiver has come to take part.
    Joined,
    /// Content begins to leave as it was planned.
    Began {
        /// How many receivers take part, as far as is known.
        receivers: u32,
    },
    /// A round of sending begins.
    Round {
        /// Its number, from 1.
        round: u32,
        /// Segments scheduled for it so far.
        segments: u32,
    },
    /// A receiver is known to have everything.
    Done,
    /// A receiver stays out, has left, or was given up.
    Left,
    /// Everyone has everything, has left or was given up; what follows only confirms.
    Delivered,
    /// It is over. Whether nobody was there to receive it.
    Ended {
        /// Nobody was there.
        alone: bool,
    },
}

/// Why a sender has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// As far as it knows there is nothing left to do.
    Finished,
    /// It has taken longer than it may.
    TimeLimit,
    /// Those who should answer do so no more.
    Silence,
    /// Nobody was there.
    Nobody,
}

/// Segments whose source is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone {
    /// Those that are gone as a whole, if there are any.
    pub whole: Option<Run>,
    /// Those of which at least a part is gone.
    pub touched: Run,
}

/// An engine that sends one delivery, of one object or several.
pub trait SenderEngine: Engine {
    /// The answers of many receivers at one instant as one; `core::convert::Infallible` where there is no such thing.
    type Merged: Clone + fmt::Debug + 'static;

    /// Begins, at `now`.
    fn open(&mut self, now: Time);

    /// Begins to send content with whoever is known, on the owner's demand; where nobody is waited for, that is no
    /// news.
    fn start(&mut self, _now: Time) {}

    /// So many datagrams of so many octets of UDP payload in all have left beside what it sends, as keys do: they count
    /// against its rate, if it keeps one. Octets of no datagram are headers of others, as fragments have.
    fn spend(&mut self, _datagrams: u64, _octets: u64) {}

    /// The same of what left between two datagrams of content: what follows waits for it.
    fn spend_at_once(&mut self, datagrams: u64, octets: u64) {
        self.spend(datagrams, octets);
    }

    /// Gives up, and tells receivers why.
    fn abort(&mut self, now: Time, cause: Cause, text: Option<String>);

    /// The source of `gone` segments of `object` is gone, so that they cannot be sent any more. Where receivers can be told
    /// so, nobody is waited for who lacks nothing else; elsewhere what is sent in their place is not what was announced,
    /// as receivers find out.
    fn withdraw(&mut self, _now: Time, _object: ObjectId, _gone: &Gone, _why: &str) {}

    /// A receiver takes part no more, by its owner's will, and what is sent means nothing to it. It is waited for no longer;
    /// where that follows from its silence soon enough, that is no news.
    fn dismiss(&mut self, _now: Time, _who: &Proved<'_>) {}

    /// Sends from `source` from now on: its address before is gone.
    fn moved(&mut self, now: Time, source: SocketAddr);

    /// Between whom it goes.
    fn routes(&self) -> Routes;

    /// How `object` is cut; `None` of one that it does not send.
    fn geometry(&self, object: ObjectId) -> Option<&Geometry>;

    /// Parity symbols that a block of `object` may have; 0 where there is no parity.
    fn parity_symbols(&self, _object: ObjectId) -> u32 {
        0
    }

    /// The code that those are of.
    fn erasure_code(&self, _object: ObjectId) -> ErasureCode {
        ErasureCode::BySize
    }

    /// Where it stands.
    fn phase(&self) -> Phase;

    /// How far the round at hand has come.
    fn progress(&self) -> RoundProgress;

    /// What its transfer came to, always the same figures in the same order. Whoever drives it counts `requests`; the
    /// protocol gives those of them that it shows their names.
    fn figures(&self, _requests: &RequestCounts) -> Vec<Figure> {
        Vec::new()
    }

    /// What `event` means.
    fn milestone(event: &Self::Event) -> Option<Milestone>;

    /// Why it has ended, if that is what `event` says.
    fn ending(event: &Self::Event) -> Option<Ending> {
        match Self::milestone(event)? {
            Milestone::Ended { alone } => Some(if alone { Ending::Nobody } else { Ending::Finished }),
            _ => None,
        }
    }

    /// What the message handled last asked for, if it was a request for repair.
    fn asked(&self) -> Option<Asked> {
        None
    }

    /// The time before which it sends nothing but what is settled, whatever a receiver may answer.
    fn quiet_until(&self) -> Time {
        Time::ZERO
    }

    /// Parity symbols that are probably sent soon, the first of them first.
    fn parity_ahead(&self) -> [Option<Ahead>; 2] {
        [None; 2]
    }

    /// Where it sends parity of all blocks of `object` in turns, some symbols of each: how many of each, from the first
    /// on, it may send in all. The owner then computes every block's once, in their order, and keeps them; nothing is
    /// asked for [ahead](Self::parity_ahead). 0 where each block's parity is sent for itself.
    fn parity_of_all(&self, _object: ObjectId) -> u32 {
        0
    }

    /// Whether answers that arrive at one instant may be merged without changing anything.
    fn may_merge(&self) -> bool {
        false
    }

    /// Takes merged answers, of which the last arrives at `now`.
    ///
    /// # Errors
    /// As of one of them; [`Reject::Unexpected`] where they may not be merged.
    fn handle_merged(&mut self, _now: Time, _merged: &Self::Merged) -> Result<(), Reject> {
        Err(Reject::Unexpected)
    }
}
