//! The receiver's side: sessions that are heard and remembered, and what is opened and refused.

use std::fmt;
use std::net::SocketAddr;

use farcast_core::{Span, Time};
use farcast_delivery::{Delivery, KeyNumber, Proved};
use farcast_seal::{Class, History, Opened, Refusal, SessionId};

use super::SealCounts;
use crate::receiving::Unlike;

/// What a user is told of, of what is refused: each once, and who is not trusted before what is not sealed.
const TOLD: [(Refusal, Unlike); 5] = [
    (Refusal::UntrustedSender, Unlike::Untrusted),
    (Refusal::NotListed, Unlike::NotForUs),
    (Refusal::OtherScope, Unlike::Elsewhere),
    (Refusal::EarlierSession, Unlike::Earlier),
    (Refusal::Unsealed, Unlike::Unsealed),
];
/// For how long keys come to others, and nothing that opens, until a user is told that there are none for us: at first, and
/// in a session, which may be silent for a while. Keys for many take their time.
pub(super) const UNLISTED_FOR: (Span, Span) = (Span::from_secs(1), Span::from_secs(10));
/// Keys that come after so long are of another transfer.
const UNLISTED_ANEW: Span = Span::from_secs(30);
/// How often a receiver notes what it has heard, so that a later one of the same name takes it for heard.
const KEEP_EVERY: Span = Span::from_secs(2);
/// Time that the beginning of a session waits until it is written. Its keys come again.
const DISK_PATIENCE: Span = Span::from_millis(200);

/// What was heard, over restarts and of all who have one key.
pub trait Memory {
    /// Begins to write `heard`; returns a number for [`kept`](Self::kept).
    fn keep(&mut self, heard: &History) -> u64;

    /// Says whether the history of this number is safely written, and waits for that at most as long as `patience`.
    fn kept(&mut self, number: u64, patience: Span) -> Kept;

    /// Returns what is remembered now, others having kept theirs.
    ///
    /// # Errors
    /// A sentence on what cannot be read. No session begins then.
    fn recall(&mut self) -> Result<History, String>;
}

/// State of a history that was to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kept {
    /// It outlives a restart.
    Safe,
    /// The disk has not answered yet.
    Pending,
    /// It cannot be written, for the reason that the sentence gives.
    Lost(String),
}

/// What a receiver seals with.
pub struct ReceiveSeal {
    seal: farcast_seal::Receiver,
    /// What was sealed as one thing and says another.
    misplaced: u64,
    /// Senders to ask for a key.
    asking: Vec<SocketAddr>,
    /// Whether it answers at all.
    answers: bool,
    /// Which of what is not as this seal its user was told of.
    told: [bool; TOLD.len()],
    /// Since when keys have come to others, and nothing that opens; and when the last of them came.
    unlisted: Option<(Time, Time)>,
    /// A session that has begun, of which the engine was not told yet.
    begun: Option<SessionId>,
    memory: Box<dyn Memory>,
    keep_at: Time,
    /// The history that was handed over last.
    number: u64,
    /// Reason that nothing can be remembered just now.
    forgetful: Option<String>,
    /// Whether that was told.
    told_forgetful: bool,
}

impl ReceiveSeal {
    /// Seals with `seal`, which knew what `memory` did. What never `answers` does not ask for keys either.
    pub fn new(seal: farcast_seal::Receiver, answers: bool, memory: Box<dyn Memory>) -> Self {
        let (asking, told, keep_at) = (Vec::new(), [false; TOLD.len()], Time::ZERO);
        let (unlisted, begun) = (None, None);
        let (number, forgetful, told_forgetful) = (0, None, false);
        Self {
            seal,
            misplaced: 0,
            asking,
            answers,
            told,
            unlisted,
            begun,
            memory,
            keep_at,
            number,
            forgetful,
            told_forgetful,
        }
    }

    /// What did not pass.
    pub fn counts(&self) -> SealCounts {
        SealCounts { refusals: *self.seal.refusals(), misplaced: self.misplaced, unsealable: 0 }
    }

    /// What the list calls who seals in `session`.
    pub(crate) fn signer(&self, session: SessionId) -> Option<&str> {
        self.seal.sender_of(session).map(|(name, _)| name)
    }

    /// So many datagrams said what they may not say.
    pub(crate) fn misplaced(&mut self, datagrams: u64) {
        self.misplaced += datagrams;
    }

    /// Opens `datagram` in place; none where it is refused, or says nothing to an engine.
    pub(crate) fn open(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Option<Opened> {
        match self.seal.open(now, from, datagram) {
            // They say nothing of what is known, and come for those who have left, too.
            Ok(Opened { class: Class::Keys { new: false }, .. }) => None,
            Ok(opened) => {
                self.unlisted = None;
                if opened.class == (Class::Keys { new: true }) {
                    self.begin(opened.session);
                }
                (!opened.payload.is_empty()).then_some(opened)
            }
            Err(refusal) => {
                if refusal == Refusal::NotListed {
                    let since = self.unlisted.filter(|&(_, last)| now.since(last) < UNLISTED_ANEW);
                    self.unlisted = Some((since.map_or(now, |(since, _)| since), now));
                }
                if self.answers {
                    self.asking.extend(self.seal.wants_key(now, datagram));
                }
                None
            }
        }
    }

    /// Keys have begun `session`: it goes on unless others with this key have heard that it is over. A session that could be
    /// played back does not begin where it cannot be remembered.
    fn begin(&mut self, session: SessionId) {
        let heard = match self.memory.recall() {
            Ok(heard) => heard,
            Err(why) => {
                self.forgetful = Some(why);
                return self.seal.leave(session);
            }
        };
        let goes_on = self.seal.learn(session, &heard);
        self.keep();
        if !goes_on || !self.seal.is_alone(session) {
            return;
        }
        // A disk that is only slow holds nothing up: what comes is complete once that is written.
        if let Kept::Lost(_) = self.kept(self.number, DISK_PATIENCE) {
            self.seal.leave(session);
        } else {
            self.begun = Some(session);
        }
    }

    /// Tells whether it takes part in no session.
    pub(crate) fn is_idle(&self) -> bool {
        self.seal.is_idle()
    }

    /// Whether what `session` says could be played back to a receiver that has forgotten it; of one that is over, it is not
    /// known any more, so it could.
    pub(crate) fn must_remember(&self, session: SessionId) -> bool {
        self.seal.is_alone(session) || self.seal.sender_of(session).is_none()
    }

    /// Says whether the history of this number is written, and notes why it is not.
    pub(crate) fn kept(&mut self, number: u64, patience: Span) -> Kept {
        let kept = self.memory.kept(number, patience);
        match &kept {
            Kept::Pending => {}
            Kept::Safe => (self.forgetful, self.told_forgetful) = (None, false),
            Kept::Lost(why) => self.forgetful = Some(why.clone()),
        }
        kept
    }

    /// Reason that nothing can be remembered; told once, and again after it could.
    pub(crate) fn newly_forgetful(&mut self) -> Option<String> {
        let why = self.forgetful.clone()?;
        (!std::mem::replace(&mut self.told_forgetful, true)).then_some(why)
    }

    /// The session that what was opened last has begun, if it has, and if its sender has one at a time: what that has said
    /// before is over.
    pub(crate) fn begun(&mut self) -> Option<SessionId> {
        self.begun.take()
    }

    /// Who seals in `session`.
    pub(crate) fn proved(&self, session: SessionId) -> Option<Proved<'_>> {
        let (name, number) = self.seal.sender_of(session)?;
        Some(Proved { name, number: KeyNumber(number) })
    }

    /// Whether `datagram` seems to be content whose key is to come.
    pub(crate) fn is_early(&self, datagram: &[u8]) -> bool {
        self.seal.is_early(datagram)
    }

    /// What our user should know of what was refused: each once, and who is not trusted before what is not sealed.
    pub(crate) fn unlike(&mut self, now: Time) -> Option<Unlike> {
        let counts = self.seal.refusals();
        let patience = if self.seal.is_idle() { UNLISTED_FOR.0 } else { UNLISTED_FOR.1 };
        let is_unlisted = |(since, last)| now.since(since) >= patience && now.since(last) < UNLISTED_ANEW;
        let is_unlisted = self.unlisted.is_some_and(is_unlisted);
        let is_so = |(refusal, _): (Refusal, Unlike)| {
            counts.of(refusal) > 0 && (refusal != Refusal::NotListed || is_unlisted)
        };
        let fresh = (0..TOLD.len()).find(|&at| !self.told[at] && is_so(TOLD[at]))?;
        self.told[fresh] = true;
        Some(TOLD[fresh].1)
    }

    /// Whether what was sealed as `class` in `session` may say `message`.
    pub(crate) fn may_say(&mut self, class: Class, session: SessionId, message: &impl Delivery) -> bool {
        let may = match class {
            Class::Content => message.content().is_some(),
            Class::Control => true,
            Class::ToOne => message.is_for_one(),
            Class::Keys { .. } => false,
        };
        self.is_sent_by(session, |who| may && message.may_be_sent_by(who))
    }

    /// Whether the sender that seals in `session` may say what `says` looks at.
    pub(crate) fn is_sent_by(&mut self, session: SessionId, says: impl FnOnce(&Proved<'_>) -> bool) -> bool {
        let may = self.proved(session).is_some_and(|who| says(&who));
        self.misplaced += u64::from(!may);
        may
    }

    /// The next sender that is to be asked for a key.
    pub(crate) fn asks(&mut self) -> Option<SocketAddr> {
        self.asking.pop()
    }

    /// Seals an answer to the sender at `to`, an empty one to ask for a key; whether it could be.
    pub(crate) fn answer(&mut self, to: SocketAddr, datagram: &mut Vec<u8>) -> bool {
        self.seal.seal_answer(to, datagram).is_ok()
    }

    /// Sender and receiver know that the transfer is over: what was recorded of it is no news.
    pub(crate) fn close(&mut self, session: SessionId) {
        self.seal.close(session);
        self.keep();
    }

    /// Remembers now and then what was heard; whether the last of it could be written, or may yet.
    pub(crate) fn tick(&mut self, now: Time) -> Result<(), String> {
        if now >= self.keep_at {
            self.keep_at = now + KEEP_EVERY;
            self.keep();
        }
        match self.kept(self.number, Span::ZERO) {
            Kept::Lost(why) => Err(why),
            Kept::Safe | Kept::Pending => Ok(()),
        }
    }

    /// Remembers what was heard; the number of that.
    pub(crate) fn keep(&mut self) -> u64 {
        self.number = self.memory.keep(self.seal.history());
        self.number
    }

    /// Remembers that all sessions that could be played back are over, and waits for the disk.
    ///
    /// # Errors
    /// A sentence on why it cannot be written.
    pub(crate) fn close_all(&mut self, patience: Span) -> Result<(), String> {
        self.seal.close_alone();
        let number = self.keep();
        match self.kept(number, patience) {
            Kept::Lost(why) => Err(why),
            Kept::Safe | Kept::Pending => Ok(()),
        }
    }
}

impl fmt::Debug for ReceiveSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveSeal").field("seal", &self.seal).finish_non_exhaustive()
    }
}
