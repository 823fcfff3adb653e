//! What is on the wire: docs/src/seal.md, "On the wire".

use core::fmt;

use alloc::vec::Vec;

use crate::refusal::{Refusal, Unsealable};
use crate::scope::{Contents, Scope};
use crate::suite::Suite;

/// Octets before what is sealed; they are its nonce.
pub const HEADER: usize = 12;
/// Octets behind what is sealed.
pub const TAG: usize = 16;
/// Octets of a signature.
pub const SIGNATURE: usize = 64;
/// Octets that a datagram with content grows by.
pub const CONTENT_OVERHEAD: usize = HEADER + TAG;
/// Octets that a datagram for the group grows by that the sender signs.
pub const CONTROL_OVERHEAD: usize = HEADER + SIGNATURE + TAG;
/// Octets that an answer grows by, from the second on.
pub const ANSWER_OVERHEAD: usize = HEADER + TAG;
/// Octets that an answer grows by until something came back.
pub const FIRST_ANSWER_OVERHEAD: usize = HEADER + OPENING + TAG;
/// Octets that a datagram for one receiver grows by.
pub const TO_ONE_OVERHEAD: usize = HEADER + TAG;
/// Octets that a datagram for one receiver grows by if a key goes with it.
pub const TO_ONE_KEY_OVERHEAD: usize = HEADER + KEY + TAG;
/// Receivers without a hybrid key that one KEYS datagram is for at most.
pub const KEYS_ENTRIES: usize = Suite::X25519.entries();
/// Octets of the longest KEYS datagram.
pub const KEYS_LEN: usize = keys_len(Suite::X25519, KEYS_ENTRIES);
/// Octets of a KEYS datagram for a receiver with a hybrid key.
pub const HYBRID_KEYS_LEN: usize = keys_len(Suite::Hybrid, 1);

/// Octets of a KEYS datagram for so many receivers of a suite.
pub const fn keys_len(suite: Suite, receivers: usize) -> usize {
    KEYS_HEAD + receivers * suite.entry() + SIGNATURE
}

/// Receivers of a suite that one KEYS datagram is for where a datagram has so many octets at most.
pub fn keys_together(suite: Suite, datagram: usize) -> usize {
    (datagram.saturating_sub(KEYS_HEAD + SIGNATURE) / suite.entry()).clamp(1, suite.entries())
}

/// `enc` and `guard` of a first answer.
pub(crate) const OPENING: usize = 32 + 8;
/// An epoch and its secret.
pub(crate) const KEY: usize = 1 + 32;
pub(crate) const KEYS_HEAD: usize = 86;
pub(crate) const WRAPPED: usize = 32 + TAG;
/// Counters have 48 bits; a key seals no more than 2^40 datagrams, far within what AES-GCM is good for.
pub(crate) const MAX_COUNTER: u64 = 1 << 40;

const VERSION: u8 = 1;

/// The first octet of a sealed datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// What receivers need to begin.
    Keys = 0xE1,
    /// A datagram with content for the group.
    Content = 0xE2,
    /// A datagram for the group that the sender has signed.
    Control = 0xE3,
    /// A datagram for the sender.
    Answer = 0xE4,
    /// The same, with what the sender needs to open it.
    FirstAnswer = 0xE5,
    /// A datagram for one receiver.
    ToOne = 0xE6,
    /// The same, with the key of an epoch.
    ToOneKey = 0xE7,
}

impl Kind {
    /// What `datagram` says that it is; none where it is not sealed.
    pub fn of(datagram: &[u8]) -> Option<Self> {
        Some(match *datagram.first()? {
            0xE1 => Self::Keys,
            0xE2 => Self::Content,
            0xE3 => Self::Control,
            0xE4 => Self::Answer,
            0xE5 => Self::FirstAnswer,
            0xE6 => Self::ToOne,
            0xE7 => Self::ToOneKey,
            _ => return None,
        })
    }

    /// Octets of the shortest datagram of this kind.
    fn shortest(self) -> usize {
        match self {
            Self::Keys => KEYS_HEAD + Suite::X25519.entry() + SIGNATURE,
            Self::Content | Self::Answer | Self::ToOne => HEADER + TAG,
            Self::Control => CONTROL_OVERHEAD,
            Self::FirstAnswer => FIRST_ANSWER_OVERHEAD,
            Self::ToOneKey => TO_ONE_KEY_OVERHEAD,
        }
    }
}

/// The kind of a datagram that is long enough for it.
pub(crate) fn kind(datagram: &[u8]) -> Result<Kind, Refusal> {
    let kind = Kind::of(datagram).ok_or(Refusal::Unsealed)?;
    if datagram.len() < kind.shortest() { Err(Refusal::Malformed) } else { Ok(kind) }
}

/// A session of a sender's: 128 bits that follow from its keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub [u8; 16]);

impl SessionId {
    /// Its first four octets.
    pub(crate) fn short(&self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.0;
        [a, b, c, d]
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({self})")
    }
}

/// The twelve octets before what is sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) epoch: u8,
    pub(crate) whose: [u8; 4],
    pub(crate) counter: u64,
}

impl Header {
    /// Of a datagram that [`kind`] has looked at.
    pub(crate) fn parse(datagram: &[u8]) -> Result<(Self, [u8; HEADER]), Refusal> {
        let kind = kind(datagram)?;
        let nonce = *datagram.first_chunk::<HEADER>().ok_or(Refusal::Malformed)?;
        let [_, epoch, a, b, c, d, counter @ ..] = nonce;
        let counter = counter.iter().fold(0, |sum, &octet| sum << 8 | u64::from(octet));
        if counter == 0 || counter > MAX_COUNTER {
            return Err(Refusal::Malformed);
        }
        Ok((Self { kind, epoch, whose: [a, b, c, d], counter }, nonce))
    }

    pub(crate) fn emit(self) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        octets[0] = self.kind as u8;
        octets[1] = self.epoch;
        octets[2..6].copy_from_slice(&self.whose);
        octets[6..].copy_from_slice(&self.counter.to_be_bytes()[2..]);
        octets
    }
}

/// The counter of the next datagram.
pub(crate) fn next(counter: &mut u64) -> Result<u64, Unsealable> {
    if *counter >= MAX_COUNTER {
        return Err(Unsealable::Exhausted);
    }
    *counter += 1;
    Ok(*counter)
}

/// Makes room at the front of `datagram` for `front`, and behind it for `behind` zeros.
pub(crate) fn surround(datagram: &mut Vec<u8>, front: &[u8], behind: usize) {
    let len = datagram.len();
    datagram.resize(len + front.len() + behind, 0);
    datagram.copy_within(..len, front.len());
    datagram[..front.len()].copy_from_slice(front);
    datagram[front.len() + len..].fill(0);
}

/// What a KEYS datagram says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys<'a> {
    pub(crate) suite: Suite,
    pub(crate) contents: Contents,
    pub(crate) began_ms: u64,
    pub(crate) signing: &'a [u8; 32],
    pub(crate) agreement: &'a [u8; 32],
    pub(crate) scope: Scope,
    pub(crate) epoch: u8,
    /// One behind the other.
    pub(crate) entries: &'a [u8],
}

impl<'a> Keys<'a> {
    /// What `datagram` says, the octets that are signed, and their signature, which nobody has looked at.
    pub(crate) fn parse(datagram: &'a [u8]) -> Result<(Self, &'a [u8], &'a [u8; SIGNATURE]), Refusal> {
        let (signed, signature) = datagram.split_last_chunk().ok_or(Refusal::Malformed)?;
        Ok((Self::split(signed).ok_or(Refusal::Malformed)?, signed, signature))
    }

    fn split(signed: &'a [u8]) -> Option<Self> {
        let (&[_, version, suite, contents], rest) = signed.split_first_chunk()?;
        let (&began, rest) = rest.split_first_chunk()?;
        let (signing, rest) = rest.split_first_chunk()?;
        let (agreement, rest) = rest.split_first_chunk()?;
        let (&scope, rest) = rest.split_first_chunk()?;
        let (&[epoch, count], entries) = rest.split_first_chunk()?;
        let (suite, contents, count) = (Suite::of(suite)?, Contents::of(contents)?, usize::from(count));
        let known = version == VERSION && epoch % 2 == 0;
        let counted = (1..=suite.entries()).contains(&count) && entries.len() == count * suite.entry();
        (known && counted).then_some(Self {
            suite,
            contents,
            began_ms: u64::from_be_bytes(began),
            signing,
            agreement,
            scope: Scope(scope),
            epoch,
            entries,
        })
    }

    /// The entries one by one.
    pub(crate) fn each(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.entries.chunks_exact(self.suite.entry())
    }

    /// All but the signature.
    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(KEYS_LEN);
        out.extend_from_slice(&[Kind::Keys as u8, VERSION, self.suite as u8, self.contents as u8]);
        out.extend_from_slice(&self.began_ms.to_be_bytes());
        out.extend_from_slice(self.signing);
        out.extend_from_slice(self.agreement);
        out.extend_from_slice(&self.scope.0);
        out.extend_from_slice(&[self.epoch, (self.entries.len() / self.suite.entry()) as u8]);
        out.extend_from_slice(self.entries);
        out
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[test]
    fn lengths_of_the_page() {
        assert_eq!((CONTENT_OVERHEAD, CONTROL_OVERHEAD, ANSWER_OVERHEAD), (28, 92, 28));
        assert_eq!((FIRST_ANSWER_OVERHEAD, TO_ONE_OVERHEAD, TO_ONE_KEY_OVERHEAD), (68, 28, 61));
        assert_eq!((Suite::X25519.entry(), KEYS_LEN), (84, 1410));
        assert_eq!((Suite::Hybrid.entry(), HYBRID_KEYS_LEN), (1172, 1322));
    }

    #[test]
    fn headers_are_read_as_they_are_written() {
        let header = Header { kind: Kind::Content, epoch: 3, whose: [1, 2, 3, 4], counter: 0x01_0203_0405 };
        let mut datagram = vec![0; 28];
        datagram[..HEADER].copy_from_slice(&header.emit());
        assert_eq!(datagram[..HEADER], [0xE2, 3, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5]);
        assert_eq!(Header::parse(&datagram).map(|(header, _)| header), Ok(header));
        assert_eq!(Header::parse(&datagram[..27]), Err(Refusal::Malformed));
        assert_eq!(Header::parse(&[]), Err(Refusal::Unsealed));
        datagram[6..HEADER].fill(0);
        assert_eq!(Header::parse(&datagram), Err(Refusal::Malformed), "counters begin at 1");
    }

    #[test]
    fn a_key_stops_before_its_counter_comes_round() {
        let mut counter = MAX_COUNTER - 1;
        assert_eq!(next(&mut counter), Ok(MAX_COUNTER));
        assert_eq!(next(&mut counter), Err(Unsealable::Exhausted));
    }
}
