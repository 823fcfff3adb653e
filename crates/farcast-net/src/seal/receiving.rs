//! The receiver's side of the seals: opens and refuses datagrams, and remembers the sessions that were heard.

use std::fmt;
use std::net::SocketAddr;

use farcast_core::{Span, Time};
use farcast_delivery::{Delivery, KeyNumber, Proved};
use farcast_seal::{Class, History, Opened, Refusal, SessionId};

use super::SealCounts;
use crate::listening::Unlike;

/// Refusals that the user is told of, each once. An untrusted sender is reported before datagrams without a seal.
const TOLD: [(Refusal, Unlike); 5] = [
    (Refusal::UntrustedSender, Unlike::Untrusted),
    (Refusal::NotListed, Unlike::NotForUs),
    (Refusal::OtherScope, Unlike::Elsewhere),
    (Refusal::EarlierSession, Unlike::Earlier),
    (Refusal::Unsealed, Unlike::Unsealed),
];
/// Time for which keys arrive for others, and nothing that opens, until the user is told that there are none for us.
/// The first span holds before a session, the second in one, which may be silent for a while. Keys for many receivers
/// take their time.
pub(super) const UNLISTED_FOR: (Span, Span) = (Span::from_secs(1), Span::from_secs(10));
/// Keys that arrive after such a pause belong to another transfer.
const UNLISTED_ANEW: Span = Span::from_secs(30);
/// Interval at which a receiver notes what it has heard, so that a later one with the same name refuses a replay of it.
const KEEP_EVERY: Span = Span::from_secs(2);
/// Longest time for which the start of a session waits until it is written. If that fails, its keys come again.
const DISK_PATIENCE: Span = Span::from_millis(200);

/// Store of what was heard, which outlives restarts and is shared by all receivers with one key.
pub trait Memory {
    /// Begins to write `heard`; returns a number for [`kept`](Self::kept).
    fn keep(&mut self, heard: &History) -> u64;

    /// Returns the state of the history with this number, after waiting for at most `patience` until it is written.
    fn kept(&mut self, number: u64, patience: Span) -> HistoryState;

    /// Returns the history as it is now, including what others with the same key have kept.
    ///
    /// # Errors
    /// A sentence that says what cannot be read. No session begins then.
    fn recall(&mut self) -> Result<History, String>;
}

/// State of a history that was to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HistoryState {
    /// The history is written and outlives a restart.
    Safe,
    /// The disk has not answered yet.
    Pending,
    /// The history cannot be written; the sentence says why.
    Lost(String),
}

/// A receiver's seal: opens what arrives, seals answers, and remembers sessions.
pub struct ReceiveSeal {
    seal: farcast_seal::Receiver,
    /// Number of datagrams with a message that their seal does not allow.
    misplaced: u64,
    /// Addresses of senders to ask for a key.
    asking: Vec<SocketAddr>,
    /// This receiver may answer senders.
    answers: bool,
    /// Entries of `TOLD` that the user was told of.
    told: [bool; TOLD.len()],
    /// First and last time at which keys for others came, since anything opened.
    unlisted: Option<(Time, Time)>,
    /// A session that has begun and that the engine was not told of yet.
    begun: Option<SessionId>,
    memory: Box<dyn Memory>,
    keep_at: Time,
    /// Number of the history that was handed over last.
    number: u64,
    /// Reason for which nothing can be remembered at present.
    forgetful: Option<String>,
    /// The user was told that reason.
    told_forgetful: bool,
}

impl ReceiveSeal {
    /// Returns a seal that uses `seal`, which knows what `memory` did. If it never `answers`, it asks for no keys
    /// either.
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

    /// Returns the counts of datagrams that did not pass.
    pub fn counts(&self) -> SealCounts {
        SealCounts { refusals: *self.seal.refusals(), misplaced: self.misplaced, unsealable: 0 }
    }

    /// Returns the list's name for the sender of `session`.
    pub(crate) fn signer(&self, session: SessionId) -> Option<&str> {
        self.seal.sender_of(session).map(|(name, _)| name)
    }

    /// Counts datagrams whose messages their seal does not allow.
    pub(crate) fn misplaced(&mut self, datagrams: u64) {
        self.misplaced += datagrams;
    }

    /// Opens `datagram` in place. Returns `None` if it is refused, or has no message for an engine.
    pub(crate) fn open(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Option<Opened> {
        match self.seal.open(now, from, datagram) {
            // Such keys bring nothing new, and also arrive for a receiver that has left.
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

    /// Handles the keys of a new session. The session continues unless others with this key have heard that it is over.
    /// If a session could be played back and cannot be remembered, it does not begin.
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
        // A slow disk alone delays nothing here: an object is complete only once the history is written.
        if let HistoryState::Lost(_) = self.kept(self.number, DISK_PATIENCE) {
            self.seal.leave(session);
        } else {
            self.begun = Some(session);
        }
    }

    /// Returns `true` if the receiver takes part in no session.
    pub(crate) fn is_idle(&self) -> bool {
        self.seal.is_idle()
    }

    /// Returns `true` if a message of `session` could be played back to a receiver that has forgotten the session. A
    /// session that is over is not known any more, so this holds for it too.
    pub(crate) fn must_remember(&self, session: SessionId) -> bool {
        self.seal.is_alone(session) || self.seal.sender_of(session).is_none()
    }

    /// Returns the state of the history with this number, and notes the reason if it cannot be written.
    pub(crate) fn kept(&mut self, number: u64, patience: Span) -> HistoryState {
        let kept = self.memory.kept(number, patience);
        match &kept {
            HistoryState::Pending => {}
            HistoryState::Safe => (self.forgetful, self.told_forgetful) = (None, false),
            HistoryState::Lost(why) => self.forgetful = Some(why.clone()),
        }
        kept
    }

    /// Returns the reason for which nothing can be remembered. It is returned once, and again if remembering has worked
    /// meanwhile.
    pub(crate) fn newly_forgetful(&mut self) -> Option<String> {
        let why = self.forgetful.clone()?;
        (!std::mem::replace(&mut self.told_forgetful, true)).then_some(why)
    }

    /// Returns the session that the datagram opened last has begun, if its sender has one session at a time. Then the
    /// earlier session of that sender is over.
    pub(crate) fn begun(&mut self) -> Option<SessionId> {
        self.begun.take()
    }

    /// Returns the proven sender of `session`.
    pub(crate) fn proved(&self, session: SessionId) -> Option<Proved<'_>> {
        let (name, number) = self.seal.sender_of(session)?;
        Some(Proved { name, number: KeyNumber(number) })
    }

    /// Returns `true` if `datagram` seems to be content whose key is still to come.
    pub(crate) fn is_early(&self, datagram: &[u8]) -> bool {
        self.seal.is_early(datagram)
    }

    /// Returns a refusal that the user should know of; each is returned once, an untrusted sender before a missing
    /// seal.
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

    /// Returns `true` if a datagram sealed as `class` in `session` may carry `message`. Counts it otherwise.
    pub(crate) fn may_say(&mut self, class: Class, session: SessionId, message: &impl Delivery) -> bool {
        let may = match class {
            Class::Content => message.content().is_some(),
            Class::Control => true,
            Class::ToOne => message.is_for_one(),
            Class::Keys { .. } => false,
        };
        self.is_sent_by(session, |who| may && message.may_be_sent_by(who))
    }

    /// Returns `true` if `says` allows the sender of `session` its message. Counts the message otherwise.
    pub(crate) fn is_sent_by(&mut self, session: SessionId, says: impl FnOnce(&Proved<'_>) -> bool) -> bool {
        let may = self.proved(session).is_some_and(|who| says(&who));
        self.misplaced += u64::from(!may);
        may
    }

    /// Returns the next sender to ask for a key.
    pub(crate) fn asks(&mut self) -> Option<SocketAddr> {
        self.asking.pop()
    }

    /// Seals an answer to the sender at `to`; an empty answer asks for a key. Returns `false` if it cannot be sealed.
    pub(crate) fn answer(&mut self, to: SocketAddr, datagram: &mut Vec<u8>) -> bool {
        self.seal.seal_answer(to, datagram).is_ok()
    }

    /// Ends `session`, which sender and receiver both know to be over, so that a recording of it is not accepted again.
    pub(crate) fn close(&mut self, session: SessionId) {
        self.seal.close(session);
        self.keep();
    }

    /// Begins to write the history of what was heard, now and then.
    ///
    /// # Errors
    /// A sentence that says why the last history cannot be written.
    pub(crate) fn tick(&mut self, now: Time) -> Result<(), String> {
        if now >= self.keep_at {
            self.keep_at = now + KEEP_EVERY;
            self.keep();
        }
        match self.kept(self.number, Span::ZERO) {
            HistoryState::Lost(why) => Err(why),
            HistoryState::Safe | HistoryState::Pending => Ok(()),
        }
    }

    /// Begins to write the history of what was heard. Returns its number.
    pub(crate) fn keep(&mut self) -> u64 {
        self.number = self.memory.keep(self.seal.history());
        self.number
    }

    /// Ends all sessions that could be played back, and waits for at most `patience` until that is written.
    ///
    /// # Errors
    /// A sentence that says why it cannot be written.
    pub(crate) fn close_all(&mut self, patience: Span) -> Result<(), String> {
        self.seal.close_alone();
        let number = self.keep();
        match self.kept(number, patience) {
            HistoryState::Lost(why) => Err(why),
            HistoryState::Safe | HistoryState::Pending => Ok(()),
        }
    }
}

impl fmt::Debug for ReceiveSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveSeal").field("seal", &self.seal).finish_non_exhaustive()
    }
}
