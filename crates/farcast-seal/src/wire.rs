//! Wire format: docs/src/seal.md, "On the wire".

use core::fmt;

use alloc::vec::Vec;

use crate::refusal::{Refusal, Unsealable};
use crate::scope::{Contents, Scope};
use crate::suite::Suite;

/// Octets of the header before the sealed part; they are its nonce.
pub const HEADER: usize = 12;
/// Octets of the tag behind the sealed part.
pub const TAG: usize = 16;
/// Octets of a signature.
pub const SIGNATURE: usize = 64;
/// Octets added to a datagram with content.
pub const CONTENT_OVERHEAD: usize = HEADER + TAG;
/// Octets added to a signed datagram for the group.
pub const CONTROL_OVERHEAD: usize = HEADER + SIGNATURE + TAG;
/// Octets added to an answer, once a datagram for this receiver has arrived.
pub const ANSWER_OVERHEAD: usize = HEADER + TAG;
/// Octets added to an answer, until a datagram for this receiver has arrived.
pub const FIRST_ANSWER_OVERHEAD: usize = HEADER + OPENING + TAG;
/// Octets added to a datagram for one receiver.
pub const TO_ONE_OVERHEAD: usize = HEADER + TAG;
/// Octets added to a datagram for one receiver if it carries a key.
pub const TO_ONE_KEY_OVERHEAD: usize = HEADER + KEY + TAG;
/// Maximum number of receivers without a hybrid key in one KEYS datagram.
pub const KEYS_ENTRIES: usize = Suite::X25519.entries();
/// Octets of the longest KEYS datagram.
pub const KEYS_LEN: usize = keys_len(Suite::X25519, KEYS_ENTRIES);
/// Octets of a KEYS datagram for a receiver with a hybrid key.
pub const HYBRID_KEYS_LEN: usize = keys_len(Suite::Hybrid, 1);

/// Returns the octets of a KEYS datagram for this many receivers of a suite.
pub const fn keys_len(suite: Suite, receivers: usize) -> usize {
    KEYS_HEAD + receivers * suite.entry() + SIGNATURE
}

/// Returns the number of receivers of a suite in one KEYS datagram, if a datagram has at most `datagram` octets.
pub fn keys_together(suite: Suite, datagram: usize) -> usize {
    (datagram.saturating_sub(KEYS_HEAD + SIGNATURE) / suite.entry()).clamp(1, suite.entries())
}

/// Octets of `enc` and `guard` in a first answer.
pub(crate) const OPENING: usize = 32 + 8;
/// Octets of an epoch and its secret.
pub(crate) const KEY: usize = 1 + 32;
pub(crate) const KEYS_HEAD: usize = 86;
pub(crate) const WRAPPED: usize = 32 + TAG;
/// Maximum counter. Counters have 48 bits, but a key seals no more than 2^40 datagrams, far within the limits of
/// AES-GCM.
pub(crate) const MAX_COUNTER: u64 = 1 << 40;

const VERSION: u8 = 1;

/// Kind of a sealed datagram, its first octet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Keys that receivers need to begin.
    Keys = 0xE1,
    /// Datagram with content for the group.
    Content = 0xE2,
    /// Datagram for the group that the sender has signed.
    Control = 0xE3,
    /// Answer to the sender.
    Answer = 0xE4,
    /// Answer with the `enc` that the sender needs to open it.
    FirstAnswer = 0xE5,
    /// Datagram for one receiver.
    ToOne = 0xE6,
    /// Datagram for one receiver, with the key of an epoch.
    ToOneKey = 0xE7,
}

impl Kind {
    /// Returns the kind in the first octet of `datagram`; `None` if it is not sealed.
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

    /// Returns the octets of the shortest datagram of this kind.
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

/// Returns the kind of a datagram, if it is long enough for the kind.
pub(crate) fn kind(datagram: &[u8]) -> Result<Kind, Refusal> {
    let kind = Kind::of(datagram).ok_or(Refusal::Unsealed)?;
    if datagram.len() < kind.shortest() { Err(Refusal::Malformed) } else { Ok(kind) }
}

/// Identifier of a sender's session: 128 bits that derive from its keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub [u8; 16]);

impl SessionId {
    /// Returns the first four octets.
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

/// Header before the sealed part: twelve octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) epoch: u8,
    pub(crate) whose: [u8; 4],
    pub(crate) counter: u64,
}

impl Header {
    /// Reads the header of a datagram, whose length it checks by [`kind`].
    pub(crate) fn parse(datagram: &[u8]) -> Result<Self, Refusal> {
        let kind = kind(datagram)?;
        let [_, epoch, a, b, c, d, counter @ ..] =
            *datagram.first_chunk::<HEADER>().ok_or(Refusal::Malformed)?;
        let counter = counter.iter().fold(0, |sum, &octet| sum << 8 | u64::from(octet));
        if counter == 0 || counter > MAX_COUNTER {
            return Err(Refusal::Malformed);
        }
        Ok(Self { kind, epoch, whose: [a, b, c, d], counter })
    }

    /// Returns the octets of the header, which are also the nonce of its datagram.
    pub(crate) fn emit(self) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        octets[0] = self.kind as u8;
        octets[1] = self.epoch;
        octets[2..6].copy_from_slice(&self.whose);
        octets[6..].copy_from_slice(&self.counter.to_be_bytes()[2..]);
        octets
    }
}

/// Increments a counter, and returns it for the next datagram.
pub(crate) fn next(counter: &mut u64) -> Result<u64, Unsealable> {
    if *counter >= MAX_COUNTER {
        return Err(Unsealable::Exhausted);
    }
    *counter += 1;
    Ok(*counter)
}

/// Inserts `front` before `datagram`, and appends `behind` zeros.
pub(crate) fn surround(datagram: &mut Vec<u8>, front: &[u8], behind: usize) {
    let len = datagram.len();
    datagram.resize(len + front.len() + behind, 0);
    datagram.copy_within(..len, front.len());
    datagram[..front.len()].copy_from_slice(front);
    datagram[front.len() + len..].fill(0);
}

/// Content of a KEYS datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys<'a> {
    pub(crate) suite: Suite,
    pub(crate) contents: Contents,
    pub(crate) began_ms: u64,
    pub(crate) signing: &'a [u8; 32],
    pub(crate) agreement: &'a [u8; 32],
    pub(crate) scope: Scope,
    pub(crate) epoch: u8,
    /// Entries, one behind the other.
    pub(crate) entries: &'a [u8],
}

impl<'a> Keys<'a> {
    /// Splits `datagram` into its content, the signed octets, and their signature, which is not checked.
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

    /// Returns the entries one by one.
    pub(crate) fn each(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.entries.chunks_exact(self.suite.entry())
    }

    /// Encodes all but the signature.
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
        assert_eq!(Header::parse(&datagram), Ok(header));
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
