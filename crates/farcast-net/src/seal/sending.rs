//! The sender's side of the seals: sends keys in rounds and to single receivers, and seals what leaves.

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

/// Interval between two checks for revoked receivers.
const REVOKED_EVERY: Span = Span::from_secs(1);

/// Source of revocations: each call returns the receivers that are no longer trusted, by their numbers in the list.
pub type Revoked = Box<dyn FnMut() -> Vec<usize>>;

/// A sender's seal: sends keys, seals what leaves and opens answers.
pub struct SendSeal {
    seal: farcast_seal::Sender,
    revoked: Revoked,
    /// Receivers that were revoked before the start, until the engine is told.
    left_out: Vec<Listed>,
    /// Time of the next check for revoked receivers.
    ask_at: Time,
    /// Schedule of the key rounds, and the datagrams of the present round that have yet to leave.
    rounds: Rounds,
    waiting: std::vec::IntoIter<Vec<u8>>,
    /// Number of answers in which a receiver spoke for another.
    misattributed: u64,
    /// Messages that did not leave, because their receiver has not shown yet that it has its key.
    unsealable: u64,
    /// Receivers whose answers show that they lack the content key, until something leaves for them; and the number of
    /// those that [`newly_owed`](Self::newly_owed) has not reported yet.
    owed: Owed,
    news: u64,
    buffer: Vec<u8>,
}

impl SendSeal {
    /// Returns a seal that uses `seal` and sends keys at `rate` at most. A receiver that `revoked` names can open
    /// nothing from then on. `left_out` are receivers that were revoked before and that `seal` does not know.
    pub fn new(
        seal: farcast_seal::Sender,
        rate: Option<BitRate>,
        revoked: Revoked,
        left_out: Vec<Listed>,
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

    /// Returns the counts of messages that did not pass.
    pub fn counts(&self) -> SealCounts {
        let (refusals, misplaced) = (*self.seal.refusals(), self.misattributed);
        SealCounts { refusals, misplaced, unsealable: self.unsealable }
    }

    /// Returns the time at which keys leave next.
    pub(crate) fn due(&self) -> Time {
        self.rounds.due().min(self.owed.due())
    }

    /// Returns `true` until all receivers have been sent the keys once; before that no other datagram is useful.
    pub(crate) fn begins(&self) -> bool {
        self.rounds.is_first()
    }

    /// Removes revoked receivers from the list. Returns their names and key numbers.
    ///
    /// # Errors
    /// If there have been too many revocations; then nothing may leave any more.
    pub(crate) fn revoke(&mut self, now: Time) -> Result<Vec<(String, KeyNumber)>, NetError> {
        if now < self.ask_at {
            return Ok(Vec::new());
        }
        self.ask_at = now + REVOKED_EVERY;
        let revoked = (self.revoked)();
        if !revoked.is_empty() {
            self.seal.remove(&revoked).map_err(NetError::Seal)?;
            // The other receivers can open nothing without the new keys.
            self.waiting = Vec::new().into_iter();
            self.rounds.restart(now);
        }
        let left_out = std::mem::take(&mut self.left_out).into_iter();
        let left_out = left_out.map(|one| (one.name, KeyNumber(one.key.fingerprint().number())));
        let known_by = |&one: &usize| (self.seal.name(one).to_owned(), KeyNumber(self.seal.number(one)));
        Ok(left_out.chain(revoked.iter().map(known_by)).collect())
    }

    /// Sends the keys that are due to `to`. Returns the number of datagrams and their octets.
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
                // A datagram that does not leave is as good as lost, and comes again.
                if endpoint.send(to, &datagram, datagram.len()).is_ok() {
                    (datagrams, octets) = (datagrams + 1, octets + datagram.len());
                }
            }
            self.rounds.left(now, datagram.len() as u64, self.waiting.len() == 0);
        }
        (datagrams, octets)
    }

    /// Sends a datagram with only a key to each receiver that lacks it, whose turn it is, and for which nothing else
    /// has left. Returns the number of datagrams and their octets.
    pub(crate) fn send_owed(&mut self, now: Time, endpoint: &Endpoint) -> (usize, usize) {
        let (mut datagrams, mut octets) = (0, 0);
        while let Some(receiver) = self.owed.next(now) {
            self.buffer.clear();
            // A receiver that has moved meanwhile is owed the key at its new address.
            let Some(to) = self.seal.address(receiver as usize) else { continue };
            if self.seal.seal_to(to, &mut self.buffer).is_ok()
                && endpoint.send(&Envelope::to(to), &self.buffer, self.buffer.len()).is_ok()
            {
                (datagrams, octets) = (datagrams + 1, octets + self.buffer.len());
            }
        }
        (datagrams, octets)
    }

    /// Returns the number of receivers that have shown to lack the key since the last call, and the octets of UDP
    /// payload that it takes to send the key to them.
    pub(crate) fn newly_owed(&mut self) -> (u64, u64) {
        let news = std::mem::take(&mut self.news);
        (news, news * TO_ONE_KEY_OVERHEAD as u64)
    }

    /// Returns the octets that [`content`](Self::content) needs before and behind a datagram.
    pub(crate) fn around_content(&self) -> (usize, usize) {
        (HEADER, self.seal.behind_content())
    }

    /// Seals `datagram`, which has room for the seal at both ends. `early` says that it leaves before any receiver can
    /// have answered.
    ///
    /// # Errors
    /// If the key has sealed its maximum number of datagrams.
    pub(crate) fn content(&mut self, datagram: &mut [u8], early: bool) -> Result<(), NetError> {
        let sealed = if early { self.seal.seal_early(datagram) } else { self.seal.seal_content(datagram) };
        sealed.map_err(NetError::Seal)
    }

    /// Seals `datagram`, which has no content, for everyone or for the receiver at `to`. Returns `false` if it cannot
    /// be sealed.
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

    /// Opens an answer. Returns the range of its message in the datagram and the number of its receiver.
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
        // An empty answer asks for a key and carries no message.
        (!answer.payload.is_empty()).then_some((answer.payload, answer.receiver))
    }

    /// Returns `true` if `says` allows the receiver with this number its message. Counts the message otherwise.
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
