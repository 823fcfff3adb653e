//! Seals between an engine and the network: what leaves is sealed behind the codec, what comes is opened before it.
//!
//! The engines know nothing of it. What a datagram may say follows from how it was sealed: only what a sender has signed
//! or sealed for one receiver alone is believed without content, and a receiver speaks for nobody but itself.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;

use farcast_core::{BitRate, Span, Time};
use farcast_delivery::{Delivery, KeyNumber, Proved};
use farcast_seal::{
    Class, HEADER, History, Kind, Listed, Opened, Owed, Refusal, RefusalCounts, Rounds, SessionId,
    TO_ONE_KEY_OVERHEAD,
};

use crate::envelope::Envelope;
use crate::error::NetError;
use crate::receiving::Unlike;
use crate::socket::Endpoint;

/// How often is asked who is trusted no more.
const REVOKED_EVERY: Span = Span::from_secs(1);
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
const UNLISTED_FOR: (Span, Span) = (Span::from_secs(1), Span::from_secs(10));
/// Keys that come after so long are of another transfer.
const UNLISTED_ANEW: Span = Span::from_secs(30);
/// How often a receiver notes what it has heard, so that a later one of the same name takes it for heard.
const KEEP_EVERY: Span = Span::from_secs(2);
/// How long a session that begins waits for a disk that is to remember it. Its keys come again.
const DISK_PATIENCE: Span = Span::from_millis(200);

/// What did not pass a seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SealCounts {
    /// Datagrams that were not taken, by reason.
    pub refusals: RefusalCounts,
    /// Datagrams that said what they may not say: a receiver spoke for another, or what was sealed as content carried
    /// none.
    pub misplaced: u64,
    /// What did not leave, because whom it is for has not shown yet that it has its key.
    pub unsealable: u64,
}

/// Says, now and then asked, which receivers are trusted no more: their numbers in the order of the list.
pub type Revoked = Box<dyn FnMut() -> Vec<usize>>;

/// What a sender seals with.
pub struct SendSeal {
    seal: farcast_seal::Sender,
    revoked: Revoked,
    /// Who was revoked before it began, until that is told.
    left_out: Vec<Listed>,
    /// When that is asked next.
    ask_at: Time,
    /// When keys leave, and what is still to leave of the round at hand.
    rounds: Rounds,
    waiting: std::vec::IntoIter<Vec<u8>>,
    /// Answers in which a receiver spoke for another.
    misattributed: u64,
    /// What could not leave, because whom it is for has not shown yet that it has its key.
    unsealable: u64,
    /// Whom an answer has shown to lack the key of content, until something leaves for them; and how many more these
    /// are than what leaves has been told of.
    owed: Owed,
    news: u64,
    buffer: Vec<u8>,
}

impl SendSeal {
    /// Seals with `seal`, whose keys leave at `rate` at most. Who is `revoked` hears nothing more from then on; who was before,
    /// and `seal` does not know, is `left_out`.
    pub fn new(
        seal: farcast_seal::Sender,
        rate: Option<BitRate>,
        (revoked, left_out): (Revoked, Vec<Listed>),
    ) -> Self {
        let (rounds, owed) = (Rounds::new(rate), Owed::new(rate));
        let (waiting, buffer) = (Vec::new().into_iter(), Vec::new());
        Self {
            seal,
            revoked,
            left_out,
            ask_at: Time::ZERO,
            rounds,
            waiting,
            misattributed: 0,
            unsealable: 0,
            owed,
            news: 0,
            buffer,
        }
    }

    /// What did not pass.
    pub fn counts(&self) -> SealCounts {
        let (refusals, misplaced) = (*self.seal.refusals(), self.misattributed);
        SealCounts { refusals, misplaced, unsealable: self.unsealable }
    }

    /// When keys leave the next time.
    pub(crate) fn due(&self) -> Time {
        self.rounds.due().min(self.owed.due())
    }

    /// Whether somebody has not been sent any keys yet.
    pub(crate) fn begins(&self) -> bool {
        self.rounds.is_first()
    }

    /// Takes those off the list who are revoked; their names, and numbers.
    ///
    /// # Errors
    /// It has been done too often: nothing may leave any more.
    pub(crate) fn revoke(&mut self, now: Time) -> Result<Vec<(String, KeyNumber)>, NetError> {
        if now < self.ask_at {
            return Ok(Vec::new());
        }
        self.ask_at = now + REVOKED_EVERY;
        let revoked = (self.revoked)();
        if !revoked.is_empty() {
            self.seal.remove(&revoked).map_err(NetError::Seal)?;
            // The others can do nothing without the new keys.
            self.waiting = Vec::new().into_iter();
            self.rounds.restart(now);
        }
        let left_out = std::mem::take(&mut self.left_out).into_iter();
        let left_out = left_out.map(|one| (one.name, KeyNumber(one.key.fingerprint().number())));
        let known_by = |&one: &usize| (self.seal.name(one).to_owned(), KeyNumber(self.seal.number(one)));
        Ok(left_out.chain(revoked.iter().map(known_by)).collect())
    }

    /// Sends the keys that are due to `to`; how many datagrams, and their octets.
    pub(crate) fn send_keys(&mut self, now: Time, to: &Envelope, endpoint: &Endpoint) -> (usize, usize) {
        let (mut datagrams, mut octets) = (0, 0);
        while now >= self.rounds.due() {
            let Some(datagram) = self.waiting.next() else {
                let round = self.seal.keys(self.rounds.turn());
                self.rounds.begin(round.iter().map(|datagram| datagram.len() as u64).sum());
                self.waiting = round.into_iter();
                continue;
            };
            for _ in 0..self.rounds.copies() {
                // What does not leave is as good as lost, and comes again.
                if endpoint.send(to, &datagram, datagram.len()).is_ok() {
                    (datagrams, octets) = (datagrams + 1, octets + datagram.len());
                }
            }
            self.rounds.left(now, datagram.len() as u64, self.waiting.len() == 0);
        }
        (datagrams, octets)
    }

    /// Sends a key alone to those whose turn it is of those who lack it and for whom nothing else has left; how many
    /// datagrams, and their octets.
    pub(crate) fn send_owed(&mut self, now: Time, endpoint: &Endpoint) -> (usize, usize) {
        let (mut datagrams, mut octets) = (0, 0);
        while let Some(receiver) = self.owed.next(now) {
            self.buffer.clear();
            // Whoever has moved meanwhile is owed it elsewhere.
            let Some(to) = self.seal.address(receiver as usize) else { continue };
            if self.seal.seal_to(to, &mut self.buffer).is_ok()
                && endpoint.send(&Envelope::to(to), &self.buffer, self.buffer.len()).is_ok()
            {
                (datagrams, octets) = (datagrams + 1, octets + self.buffer.len());
            }
        }
        (datagrams, octets)
    }

    /// How many have come to lack the key since this was asked, and what it takes to send it to them: octets of UDP
    /// payload.
    pub(crate) fn newly_owed(&mut self) -> (u64, u64) {
        let news = std::mem::take(&mut self.news);
        (news, news * TO_ONE_KEY_OVERHEAD as u64)
    }

    /// Octets before and behind what [`content`](Self::content) seals.
    pub(crate) fn around_content(&self) -> (usize, usize) {
        (HEADER, self.seal.behind_content())
    }

    /// Seals `datagram`, which has room for what it takes at both ends; whether it leaves before anybody can have
    /// answered.
    ///
    /// # Errors
    /// The key has sealed all that it may.
    pub(crate) fn content(&mut self, datagram: &mut [u8], early: bool) -> Result<(), NetError> {
        let sealed = if early { self.seal.seal_early(datagram) } else { self.seal.seal_content(datagram) };
        sealed.map_err(NetError::Seal)
    }

    /// Seals `datagram`, which has no content: for everyone, or for who is at `to`. Whether it could be.
    pub(crate) fn control(&mut self, datagram: &mut Vec<u8>, to: Option<SocketAddr>) -> bool {
        let sealed = match to {
            None => self.seal.seal_control(datagram),
            Some(to) => {
                if let Some(receiver) = self.seal.receiver_at(to) {
                    self.owed.settle(receiver as u32);
                }
                self.seal.seal_to(to, datagram)
            }
        };
        self.unsealable += u64::from(sealed.is_err());
        sealed.is_ok()
    }

    /// Opens an answer; where what it says lies, and the number of the receiver that says it.
    pub(crate) fn open(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &mut [u8],
    ) -> Option<(Range<usize>, usize)> {
        let answer = self.seal.open(from, datagram).ok()?;
        if !self.seal.lacks_key(answer.receiver) {
            self.owed.settle(answer.receiver as u32);
        } else if self.owed.push(now, answer.receiver as u32) {
            self.news += 1;
        }
        // An empty one asks for that, and says nothing.
        (!answer.payload.is_empty()).then_some((answer.payload, answer.receiver))
    }

    /// Whether the receiver of this number may say what `says` looks at.
    pub(crate) fn may_say(&mut self, receiver: usize, says: impl FnOnce(&Proved<'_>) -> bool) -> bool {
        let may =
            says(&Proved { name: self.seal.name(receiver), number: KeyNumber(self.seal.number(receiver)) });
        self.misattributed += u64::from(!may);
        may
    }
}

impl fmt::Debug for SendSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendSeal").field("seal", &self.seal).finish_non_exhaustive()
    }
}

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

/// What has become of a history that was to be written.
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
    /// Why nothing can be remembered just now.
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

    /// Whether it takes part in no session.
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

    /// Why nothing can be remembered; told once, and again after it could.
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

/// Whether `datagram` has the keys of a sealed transfer.
pub(crate) fn is_sealed(datagram: &[u8]) -> bool {
    Kind::of(datagram) == Some(Kind::Keys)
}

#[cfg(test)]
mod tests {
    use farcast_seal::{Contents, Identity, ReceiverConfig, Scope, SenderConfig};

    use super::*;

    struct Forgetful;

    impl Memory for Forgetful {
        fn keep(&mut self, _: &History) -> u64 {
            0
        }

        fn kept(&mut self, _: u64, _: Span) -> Kept {
            Kept::Safe
        }

        fn recall(&mut self) -> Result<History, String> {
            Ok(History::default())
        }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn address() -> SocketAddr {
        "192.0.2.1:5402".parse().unwrap()
    }

    fn scope() -> Scope {
        Scope::of("any", "239.192.0.1:5402".parse().unwrap())
    }

    fn identity(name: u8) -> Identity {
        Identity::from_seed([name; 32])
    }

    fn listed(name: u8) -> Listed {
        Listed { name: char::from(name).to_string(), key: identity(name).public().clone() }
    }

    /// A session of a's for these.
    fn session_for(receivers: &[u8]) -> farcast_seal::Sender {
        let config = SenderConfig {
            identity: identity(b'a'),
            receivers: receivers.iter().map(|&name| listed(name)).collect(),
            began_ms: 1_000_000,
            scope: scope(),
            contents: Contents::Apart,
            datagram: 1472,
        };
        farcast_seal::Sender::new(config, [1; 32])
    }

    fn receiver(name: u8) -> ReceiveSeal {
        let config =
            ReceiverConfig { identity: identity(name), senders: vec![listed(b'a')], scopes: vec![scope()] };
        let seal = farcast_seal::Receiver::new(config, History::default(), [2; 32]);
        ReceiveSeal::new(seal, true, Box::new(Forgetful))
    }

    fn hear(receiver: &mut ReceiveSeal, now: Time, keys: &[Vec<u8>]) {
        for keys in keys {
            assert_eq!(receiver.open(now, address(), &mut keys.clone()), None);
        }
    }

    #[test]
    fn who_is_revoked_is_told_once_others_have_had_keys_for_a_while() {
        let mut ann = session_for(b"be");
        let mut eve = receiver(b'e');
        hear(&mut eve, at(0), &ann.keys(true));
        assert!(!eve.seal.is_idle());
        ann.remove(&[1]).unwrap();
        let for_others = ann.keys(true);
        for second in 1..11 {
            hear(&mut eve, at(second), &for_others);
            assert_eq!(eve.unlike(at(second)), None, "{second}");
        }
        // Nothing was heard for so long that this is of another transfer.
        hear(&mut eve, at(41), &for_others);
        assert_eq!(eve.unlike(at(41)), None);
        hear(&mut eve, at(51), &for_others);
        assert_eq!(eve.unlike(at(51)), Some(Unlike::NotForUs));
        hear(&mut eve, at(61), &for_others);
        assert_eq!(eve.unlike(at(61)), None, "it is told once");
    }

    /// Keys for many take their time: its own may be among those to come.
    #[test]
    fn who_is_listed_late_in_a_round_is_told_nothing() {
        let ann = session_for(b"b");
        let mut bob = receiver(b'b');
        let own = ann.keys(true);
        let others = session_for(b"e");
        hear(&mut bob, at(0), &others.keys(true));
        assert_eq!(bob.unlike(at(0)), None);
        hear(&mut bob, at(0), &own);
        hear(&mut bob, at(0) + UNLISTED_FOR.0, &own);
        assert_eq!(bob.unlike(at(0) + UNLISTED_FOR.0), None);
        // Nobody has keys for it at all.
        let mut zoe = receiver(b'z');
        hear(&mut zoe, at(0), &others.keys(true));
        assert_eq!(zoe.unlike(at(0) + UNLISTED_FOR.0), Some(Unlike::NotForUs));
    }

    #[test]
    fn who_was_revoked_before_it_began_is_dismissed_first_and_once() {
        let numbers = |dismissed: Vec<(String, KeyNumber)>| -> Vec<(String, u64)> {
            dismissed.into_iter().map(|(name, number)| (name, number.0)).collect()
        };
        let number = |name| listed(name).key.fingerprint().number();
        let mut asked = vec![vec![1], vec![]];
        let revoked: Revoked = Box::new(move || asked.pop().unwrap_or_default());
        let mut seal = SendSeal::new(session_for(b"bc"), None, (revoked, vec![listed(b'e')]));
        assert_eq!(numbers(seal.revoke(at(0)).unwrap()), [("e".into(), number(b'e'))]);
        assert!(seal.revoke(at(0)).unwrap().is_empty(), "it is asked every second");
        assert_eq!(numbers(seal.revoke(at(1)).unwrap()), [("c".into(), number(b'c'))]);
        assert!(seal.revoke(at(2)).unwrap().is_empty());
    }
}
