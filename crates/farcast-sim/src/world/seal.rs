//! Seal around a transfer: octets that it adds to each datagram, and datagrams of its own on the links. Nothing is
//! encrypted here; the simulation only keeps account of the keys that each receiver has.

use std::num::NonZeroU32;
use std::ops::Range;

use farcast_core::engine::Message;
use farcast_core::{BitRate, Bitmap, Time};
use farcast_seal::{
    ANSWER_OVERHEAD, CONTROL_OVERHEAD, FIRST_ANSWER_OVERHEAD, Owed, Rounds, Suite, TO_ONE_KEY_OVERHEAD,
    TO_ONE_OVERHEAD, keys_len,
};

use serde::Serialize;

use super::Party;

/// Configuration of a seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SealConfig {
    /// Receivers on the sender's list. The simulated receivers are the first of them; the others never answer.
    pub listed: u32,
    /// Maximum number of receivers that one KEYS datagram is for.
    pub together: u32,
    /// Rate at which keys leave; without one, receivers set the sender's rate.
    pub rate: Option<BitRate>,
    /// Octets that the seal adds to a datagram with content.
    pub content: u16,
    /// `true` if content has a key of its own, which receivers get in reply to their answers.
    pub apart: bool,
}

/// Counters of a seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SealCounts {
    /// KEYS datagrams.
    pub keys_datagrams: u64,
    /// Octets of KEYS datagrams, without headers of UDP and IP.
    pub keys_octets: u64,
    /// Answers that begin with the key material that the sender needs.
    pub first_answers: u64,
    /// Empty answers, among the first answers, that ask for the content key.
    pub asks: u64,
    /// Datagrams for one receiver with the content key.
    pub keys_for_one: u64,
    /// Datagrams that could not leave because their receiver has not been heard.
    pub unsealable: u64,
    /// Octets from the hub that the seal added in all, including headers of datagrams that only the seal sends.
    pub forward_octets: u64,
    /// Octets from receivers that the seal added in all, including headers of datagrams that only the seal sends.
    pub return_octets: u64,
}

/// A datagram that only the seal sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SealMessage {
    /// KEYS for several receivers.
    Keys {
        /// Round that the datagram belongs to.
        round: u32,
        /// Index of the first receiver in the list of that round.
        first: u32,
        /// Number of receivers.
        count: u32,
    },
    /// Content key alone, for this receiver.
    Key(u32),
    /// Request of this receiver for the content key.
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
            // A receiver that lacks the content key has not been answered yet.
            Self::Ask(_) => FIRST_ANSWER_OVERHEAD,
        }
    }
}

/// Receivers that a round of KEYS is for.
enum Audience {
    All,
    These(Box<[u32]>),
}

/// Sender's side of a seal.
pub(super) struct Seal {
    config: SealConfig,
    rounds: Rounds,
    /// Audience of each round until now.
    audiences: Vec<Audience>,
    /// Number of receivers of the last round, and the number of those for which KEYS have left.
    of_round: u32,
    left: u32,
    /// Receivers that have been heard, and those among them that have shown that they have the content key.
    heard: Bitmap,
    equipped: Bitmap,
    /// Receivers known to lack the content key. A receiver is removed when a datagram leaves for it.
    owed: Owed,
    /// Number of receivers that have come to lack the content key since the last [`newly_owed`](Self::newly_owed).
    news: u64,
    /// `true` if an event is scheduled for the next of these receivers.
    pub(super) awaited: bool,
    pub(super) counts: SealCounts,
}

impl Seal {
    /// Makes the sender's side. All listed receivers count as equipped with the keys if they are `given`.
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

    /// Returns the time at which KEYS next leave.
    pub(super) fn due(&self) -> Time {
        self.rounds.due()
    }

    /// Returns `true` if the first round of KEYS is not over, so that a receiver may not have been sent any keys yet.
    pub(super) fn begins(&self) -> bool {
        self.rounds.is_first()
    }

    /// Returns the KEYS datagram that leaves now and the number of its copies; `None` if none is due.
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

    /// Appends the receivers of a group that a datagram of the seal is for. `group` are the numbers of
    /// its receivers; the appended numbers count from its first receiver.
    pub(super) fn readers(&self, message: SealMessage, group: Range<u32>, out: &mut Vec<u32>) {
        let mut add = |n: u32| out.extend(group.contains(&n).then(|| n - group.start));
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

    /// Returns the octets that the seal adds to a datagram of the sender, and the party that can open it. `content` is
    /// `Some` for a datagram with content; the flag is `true` before any receiver can have answered. `alone` is the one
    /// receiver that a datagram without content is for. Returns `None` if the datagram cannot leave.
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

    /// Returns the octets that the seal adds to an answer. `stranger` is `true` if no datagram for its receiver alone
    /// has reached that receiver.
    pub(super) fn answer(&mut self, stranger: bool) -> u16 {
        self.counts.first_answers += u64::from(stranger);
        (if stranger { FIRST_ANSWER_OVERHEAD } else { ANSWER_OVERHEAD }) as u16
    }

    /// Returns `true` if the seal added so many octets to an answer that no datagram for the receiver alone had reached
    /// it.
    pub(super) fn is_first(grown: u16) -> bool {
        usize::from(grown) == FIRST_ANSWER_OVERHEAD
    }

    /// Notes that an answer of `receiver` has arrived.
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

    /// Returns the time at which a receiver that lacks the content key gets a datagram with this key alone, if no other
    /// datagram leaves for it before.
    pub(super) fn owed_at(&self) -> Time {
        self.owed.due()
    }

    /// Returns the next receiver that gets a datagram with the content key alone.
    pub(super) fn next_owed(&mut self, now: Time) -> Option<u32> {
        let owed = self.owed.next(now);
        self.counts.keys_for_one += u64::from(owed.is_some());
        owed
    }

    /// Returns the number of receivers that have come to lack the content key since the last call.
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

    /// Returns the receivers of each datagram of the next round.
    fn round(seal: &mut Seal) -> Vec<Vec<u32>> {
        let mut round = Vec::new();
        loop {
            let now = seal.due();
            let Some((keys, _)) = seal.next_keys(now) else { return round };
            let mut readers = Vec::new();
            seal.readers(keys, 0..1000, &mut readers);
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
        // An answer that left before the receiver had the key shows nothing new.
        seal.hears(Time::ZERO, 1, true);
        assert_eq!(seal.next_owed(seal.owed_at()), None);
        assert_eq!(seal.seals(Some(true), None), Some((28, Party::GROUP)));
        assert_eq!(seal.seals(Some(false), None), Some((28, Party::APART)));
        assert_eq!(seal.seals(None, None), Some((92, Party::GROUP)));
        assert_eq!((seal.counts.keys_for_one, seal.counts.unsealable), (2, 1));
    }
}
