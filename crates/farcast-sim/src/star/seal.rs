//! The seal around a transfer: what it adds to each datagram, and what of its own passes the links. Nothing is
//! encrypted here; who would have which key is kept account of.

use std::num::NonZeroU32;

use farcast_core::engine::Message;
use farcast_core::{BitRate, Bitmap, Time};
use farcast_seal::{
    ANSWER_OVERHEAD, CONTROL_OVERHEAD, FIRST_ANSWER_OVERHEAD, Owed, Rounds, Suite, TO_ONE_KEY_OVERHEAD,
    TO_ONE_OVERHEAD, keys_len,
};

use serde::Serialize;

use super::Party;

/// How a transfer is sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SealConfig {
    /// Receivers on the sender's list. Those that are simulated are its first; the others are not there.
    pub listed: u32,
    /// Receivers that one KEYS datagram is for, at most.
    pub together: u32,
    /// The rate at which keys leave; without one receivers set the sender's.
    pub rate: Option<BitRate>,
    /// Octets that a datagram with content grows by.
    pub content: u16,
    /// Whether content has a key of its own, which receivers get in answer to their answers.
    pub apart: bool,
}

/// What a seal came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SealCounts {
    /// KEYS datagrams.
    pub keys_datagrams: u64,
    /// Their octets, without headers of UDP and IP.
    pub keys_octets: u64,
    /// Answers that begin with what their reader needs.
    pub first_answers: u64,
    /// Of these, empty ones that ask for the key of content.
    pub asks: u64,
    /// Datagrams for one receiver with the key of content.
    pub keys_for_one: u64,
    /// What could not leave, because whom it is for has not been heard.
    pub unsealable: u64,
    /// Octets that it added from the hub in all, headers of datagrams that it alone sends among them.
    pub forward_octets: u64,
    /// Likewise from receivers.
    pub return_octets: u64,
}

/// A datagram that only the seal sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SealMessage {
    /// KEYS for so many receivers.
    Keys {
        /// The round, and where in its list the first stands.
        round: u32,
        /// Where in the list of that round they begin.
        first: u32,
        /// How many.
        count: u32,
    },
    /// The key of content alone, for this receiver.
    Key(u32),
    /// This receiver asks for the key of content.
    Ask(u32),
}

impl Message for SealMessage {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    fn split(self, _count: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }

    fn wire_len(&self, _segment: u32) -> usize {
        match self {
            Self::Keys { count, .. } => keys_len(Suite::X25519, *count as usize),
            Self::Key(_) => TO_ONE_KEY_OVERHEAD,
            // Who lacks the key of content has not been answered.
            Self::Ask(_) => FIRST_ANSWER_OVERHEAD,
        }
    }
}

/// Whom a round of KEYS is for.
enum Audience {
    All,
    These(Box<[u32]>),
}

/// The sender's side of a seal.
pub(super) struct Seal {
    config: SealConfig,
    rounds: Rounds,
    /// Whom each round until now was for.
    audiences: Vec<Audience>,
    /// How many the last one was for, and for how many of them KEYS have left.
    of_round: u32,
    left: u32,
    /// Those who have been heard, and of these those who have said that they have the key of content.
    heard: Bitmap,
    equipped: Bitmap,
    /// Who has been heard to lack the key of content, until something leaves for it.
    owed: Owed,
    /// How many have come to be owed that since the sender was told.
    news: u64,
    /// Whether the world will look when the next of them gets it.
    pub(super) awaited: bool,
    pub(super) counts: SealCounts,
}

impl Seal {
    /// Of whoever is `given` the keys has said that it has them.
    pub(super) fn new(config: SealConfig, given: bool) -> Self {
        let none = || if given { Bitmap::full(config.listed) } else { Bitmap::new(config.listed) };
        Self {
            rounds: Rounds::new(config.rate),
            audiences: Vec::new(),
            of_round: 0,
            left: 0,
            heard: none(),
            equipped: none(),
            owed: Owed::new(config.rate),
            news: 0,
            awaited: false,
            counts: SealCounts::default(),
            config,
        }
    }

    /// When KEYS leave the next time.
    pub(super) fn due(&self) -> Time {
        self.rounds.due()
    }

    /// Whether somebody has not been sent any keys yet.
    pub(super) fn begins(&self) -> bool {
        self.rounds.is_first()
    }

    /// The KEYS datagram that leaves now, and how often; none if none is due.
    pub(super) fn next_keys(&mut self, now: Time) -> Option<(SealMessage, usize)> {
        while now >= self.rounds.due() {
            if self.left == self.of_round {
                self.begin_round();
                continue;
            }
            let (first, count) = (self.left, self.config.together.min(self.of_round - self.left));
            self.left += count;
            let octets = keys_len(Suite::X25519, count as usize) as u64;
            let copies = self.rounds.copies();
            self.rounds.left(now, octets, self.left == self.of_round);
            self.counts.keys_datagrams += copies as u64;
            self.counts.keys_octets += octets * copies as u64;
            let round = self.audiences.len() as u32 - 1;
            return Some((SealMessage::Keys { round, first, count }, copies));
        }
        None
    }

    fn begin_round(&mut self) {
        let everyone = self.rounds.turn();
        let audience = if everyone || self.heard.is_empty() {
            Audience::All
        } else {
            Audience::These(self.heard.iter_gaps().flat_map(|gap| gap.first()..gap.end()).collect())
        };
        self.left = 0;
        self.of_round = match &audience {
            Audience::All => self.config.listed,
            Audience::These(these) => these.len() as u32,
        };
        self.audiences.push(audience);
        let (whole, rest) = (self.of_round / self.config.together, self.of_round % self.config.together);
        let last = if rest > 0 { keys_len(Suite::X25519, rest as usize) } else { 0 };
        self.rounds.begin(
            u64::from(whole) * keys_len(Suite::X25519, self.config.together as usize) as u64 + last as u64,
        );
    }

    /// Appends whom a KEYS datagram is for, of those from `first` on: their places behind that, which are fewer than
    /// `receivers`.
    pub(super) fn readers(&self, message: SealMessage, group: (u32, u32), out: &mut Vec<u32>) {
        let (begin, receivers) = group;
        let mut add = |n: u32| out.extend(n.checked_sub(begin).filter(|&n| n < receivers));
        match message {
            SealMessage::Keys { round, first, count } => match &self.audiences[round as usize] {
                Audience::All => (first..first + count).for_each(add),
                Audience::These(these) => {
                    these[first as usize..][..count as usize].iter().copied().for_each(add);
                }
            },
            SealMessage::Key(n) => add(n),
            SealMessage::Ask(_) => {}
        }
    }

    /// What a datagram of the sender's grows by, and whom that is for who can open it: one with `content`, which leaves
    /// before anybody can have answered or not, or one without, for all or for one `alone`. None if it cannot leave.
    pub(super) fn seals(&mut self, content: Option<bool>, alone: Option<u32>) -> Option<(u16, Party)> {
        match (content, alone) {
            (Some(early), _) => {
                let to = if self.config.apart && !early { Party::APART } else { Party::GROUP };
                Some((self.config.content, to))
            }
            (None, None) => Some((CONTROL_OVERHEAD as u16, Party::GROUP)),
            (None, Some(receiver)) => {
                self.owed.settle(receiver);
                if !self.heard.contains(receiver) {
                    self.counts.unsealable += 1;
                    return None;
                }
                let lacks = self.lacks_key(receiver);
                self.counts.keys_for_one += u64::from(lacks);
                let grows = if lacks { TO_ONE_KEY_OVERHEAD } else { TO_ONE_OVERHEAD };
                Some((grows as u16, Party::receiver(receiver)))
            }
        }
    }

    /// What an answer grows by of a receiver to which something for it alone has come, or nothing has yet.
    pub(super) fn answer(&mut self, stranger: bool) -> u16 {
        self.counts.first_answers += u64::from(stranger);
        (if stranger { FIRST_ANSWER_OVERHEAD } else { ANSWER_OVERHEAD }) as u16
    }

    /// Whether an answer that has grown by so many octets is from one that nothing for it alone had come to.
    pub(super) fn is_first(grown: u16) -> bool {
        usize::from(grown) == FIRST_ANSWER_OVERHEAD
    }

    /// An answer of `receiver` has come.
    pub(super) fn hears(&mut self, now: Time, receiver: u32, first: bool) {
        self.heard.insert(receiver);
        if !first {
            self.equipped.insert(receiver);
        }
        if !self.lacks_key(receiver) {
            self.owed.settle(receiver);
        } else if self.owed.push(now, receiver) {
            self.news += 1;
        }
    }

    /// When somebody who lacks the key of content gets it alone, if nothing leaves for it before.
    pub(super) fn owed_at(&self) -> Time {
        self.owed.due()
    }

    /// Whose turn it is to get it.
    pub(super) fn next_owed(&mut self, now: Time) -> Option<u32> {
        let owed = self.owed.next(now);
        self.counts.keys_for_one += u64::from(owed.is_some());
        owed
    }

    /// How many have come to lack it since this was asked.
    pub(super) fn newly_owed(&mut self) -> u64 {
        std::mem::take(&mut self.news)
    }

    fn lacks_key(&self, receiver: u32) -> bool {
        self.config.apart && !self.equipped.contains(receiver)
    }
}

#[cfg(test)]
mod tests {
    use farcast_core::Span;

    use super::*;

    fn seal(listed: u32) -> Seal {
        let rate = BitRate::from_bps(1_000_000);
        Seal::new(SealConfig { listed, together: 15, rate, content: 28, apart: true }, false)
    }

    /// The receivers of each datagram of the next round.
    fn round(seal: &mut Seal) -> Vec<Vec<u32>> {
        let mut round = Vec::new();
        loop {
            let now = seal.due();
            let Some((keys, _)) = seal.next_keys(now) else { return round };
            let mut readers = Vec::new();
            seal.readers(keys, (0, 1000), &mut readers);
            round.push(readers);
            if seal.left == seal.of_round {
                return round;
            }
        }
    }

    #[test]
    fn keys_are_for_everyone_and_then_for_those_who_were_not_heard() {
        let mut seal = seal(31);
        assert_eq!(round(&mut seal), [(0..15).collect(), (15..30).collect(), vec![30]]);
        assert_eq!(seal.counts.keys_octets, 2 * 1410 + 234);
        (0..31).filter(|n| n % 10 != 3).for_each(|n| seal.hears(Time::ZERO, n, true));
        assert_eq!(round(&mut seal), [[3, 13, 23]]);
        seal.hears(Time::ZERO, 3, true);
        seal.hears(Time::ZERO, 13, true);
        seal.hears(Time::ZERO, 23, true);
        assert!(round(&mut seal).is_empty(), "nobody lacks any");
        assert_eq!(round(&mut seal).concat().len(), 31, "for those who begin again");
    }

    #[test]
    fn the_key_of_content_goes_to_whoever_lacks_it_until_it_says_otherwise() {
        let mut seal = seal(3);
        assert_eq!(seal.seals(None, Some(1)), None, "it has not been heard");
        seal.hears(Time::ZERO, 1, true);
        assert_eq!(seal.seals(None, Some(1)), Some((61, Party::receiver(1))));
        assert_eq!(seal.next_owed(seal.owed_at()), None, "it has left");
        seal.hears(Time::ZERO + Span::from_secs(1), 1, true);
        assert_eq!(seal.next_owed(seal.owed_at()), Some(1));
        seal.hears(Time::ZERO, 1, false);
        assert_eq!(
            (seal.next_owed(seal.owed_at()), seal.seals(None, Some(1))),
            (None, Some((28, Party::receiver(1))))
        );
        // What had left before it had the key says nothing new.
        seal.hears(Time::ZERO, 1, true);
        assert_eq!(seal.next_owed(seal.owed_at()), None);
        assert_eq!(seal.seals(Some(true), None), Some((28, Party::GROUP)));
        assert_eq!(seal.seals(Some(false), None), Some((28, Party::APART)));
        assert_eq!(seal.seals(None, None), Some((92, Party::GROUP)));
        assert_eq!((seal.counts.keys_for_one, seal.counts.unsealable), (2, 1));
    }
}
