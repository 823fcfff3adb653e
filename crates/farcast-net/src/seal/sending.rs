//! The sender's side: keys and their rounds, and what leaves under them.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;

use farcast_core::{BitRate, Span, Time};
use farcast_delivery::{KeyNumber, Proved};
use farcast_seal::{HEADER, Listed, Owed, Rounds, TO_ONE_KEY_OVERHEAD};

use super::SealCounts;
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::socket::Endpoint;

/// How often is asked who is trusted no more.
const REVOKED_EVERY: Span = Span::from_secs(1);

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
