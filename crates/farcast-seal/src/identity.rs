//! Who somebody is: a signing key by which others know it, and an agreement key that can be renewed.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, Verifier as _, VerifyingKey};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::base32;
use crate::draws::derive;
use crate::suite::{AgreementSecret, Suite};

/// What the text of a public identity begins with, by its agreement key.
const PREFIX: &str = "farcast-key-1:";
const HYBRID_PREFIX: &str = "farcast-key-2:";

/// The secrets of somebody. They are overwritten when it goes; printing it shows its fingerprint.
#[derive(Clone)]
pub struct Identity {
    signing: SigningKey,
    agreement: Zeroizing<[u8; 32]>,
    public: PublicIdentity,
}

impl Identity {
    /// Octets of an identity in storage.
    pub const LEN: usize = 32 + 32 + 4;

    /// A new identity from 32 octets that nobody else knows and that are used for nothing else.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self::seeded(Suite::X25519, &Zeroizing::new(seed))
    }

    /// The same with a hybrid agreement key: what is sealed for it stays shut when X25519 is broken one day.
    pub fn hybrid_from_seed(seed: [u8; 32]) -> Self {
        Self::seeded(Suite::Hybrid, &Zeroizing::new(seed))
    }

    fn seeded(suite: Suite, seed: &Zeroizing<[u8; 32]>) -> Self {
        let signing = SigningKey::from_bytes(&derive(&**seed, b"farcast seal 1 signing key"));
        Self::assemble(signing, suite, suite.secret_from(seed), 0)
    }

    /// What [`to_bytes`](Self::to_bytes) gave of an identity whose agreement key is of this suite.
    ///
    /// # Errors
    /// The length is another.
    pub fn from_bytes(suite: Suite, bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().map_err(|_| KeyError::Length)?;
        let mut signing = Zeroizing::new([0; 32]);
        let mut agreement = Zeroizing::new([0; 32]);
        let mut renewals = [0; 4];
        signing.copy_from_slice(&bytes[..32]);
        agreement.copy_from_slice(&bytes[32..64]);
        renewals.copy_from_slice(&bytes[64..]);
        Ok(Self::assemble(SigningKey::from_bytes(&signing), suite, agreement, u32::from_be_bytes(renewals)))
    }

    /// The secrets, for a place that nobody else can read: signing secret, agreement secret, how often it was renewed.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(Self::LEN));
        bytes.extend_from_slice(self.signing.as_bytes());
        bytes.extend_from_slice(&*self.agreement);
        bytes.extend_from_slice(&self.public.renewals.to_be_bytes());
        bytes
    }

    /// Replaces the agreement key by one of the same suite from `seed`; what was sealed for the old one cannot be opened any
    /// more.
    pub fn renew(&mut self, seed: [u8; 32]) {
        self.renew_by(self.public.suite, seed);
    }

    /// The same with a hybrid agreement key from now on.
    pub fn renew_hybrid(&mut self, seed: [u8; 32]) {
        self.renew_by(Suite::Hybrid, seed);
    }

    fn renew_by(&mut self, suite: Suite, seed: [u8; 32]) {
        let agreement = suite.secret_from(&Zeroizing::new(seed));
        *self =
            Self::assemble(self.signing.clone(), suite, agreement, self.public.renewals.saturating_add(1));
    }

    /// What others may know of it.
    pub fn public(&self) -> &PublicIdentity {
        &self.public
    }

    pub(crate) fn sign(&self, parts: &[&[u8]]) -> [u8; 64] {
        self.signing.sign(&parts.concat()).to_bytes()
    }

    pub(crate) fn agreement_secret(&self) -> Option<AgreementSecret> {
        AgreementSecret::read(self.public.suite, &self.agreement)
    }

    fn assemble(signing: SigningKey, suite: Suite, agreement: Zeroizing<[u8; 32]>, renewals: u32) -> Self {
        let public = PublicIdentity::sign(&signing, suite, suite.public_of(&agreement), renewals);
        Self { signing, agreement, public }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.public.fingerprint())
    }
}

/// What others know of somebody: signing key, agreement key, and the first one's signature of the second.
///
/// As text it is one line: `farcast-key-1:` and 212 letters and digits, or `farcast-key-2:` and 2106 with a hybrid agreement
/// key. What was read from text has a signature that holds.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicIdentity {
    signing: [u8; 32],
    suite: Suite,
    agreement: Box<[u8]>,
    renewals: u32,
    signature: [u8; 64],
}

impl PublicIdentity {
    /// The signing key (Ed25519): who it is.
    pub fn signing(&self) -> &[u8; 32] {
        &self.signing
    }

    /// By what secrets are wrapped for it.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The agreement key, of its suite: for it secrets are wrapped.
    pub fn agreement(&self) -> &[u8] {
        &self.agreement
    }

    /// How often the agreement key was renewed. Whoever knows a later one should not go back to an earlier.
    pub fn renewals(&self) -> u32 {
        self.renewals
    }

    /// The name of the signing key that two people can compare.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.signing)
    }

    fn sign(signing: &SigningKey, suite: Suite, agreement: Box<[u8]>, renewals: u32) -> Self {
        let signature = signing.sign(&binding(suite, &agreement, renewals)).to_bytes();
        Self { signing: signing.verifying_key().to_bytes(), suite, agreement, renewals, signature }
    }
}

/// What is signed of an agreement key. Nobody can make a line with another key of it, nor with one of another suite.
fn binding(suite: Suite, agreement: &[u8], renewals: u32) -> Vec<u8> {
    [suite.binding(), agreement, &renewals.to_be_bytes()].concat()
}

fn prefix(suite: Suite) -> &'static str {
    match suite {
        Suite::X25519 => PREFIX,
        Suite::Hybrid => HYBRID_PREFIX,
    }
}

/// Octets in the text: signing key, agreement key, renewals, signature.
fn public_len(suite: Suite) -> usize {
    32 + suite.key() + 4 + 64
}

impl fmt::Display for PublicIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut octets = Vec::with_capacity(public_len(self.suite));
        octets.extend_from_slice(&self.signing);
        octets.extend_from_slice(&self.agreement);
        octets.extend_from_slice(&self.renewals.to_be_bytes());
        octets.extend_from_slice(&self.signature);
        write!(f, "{}{}", prefix(self.suite), base32::encode(&octets))
    }
}

impl fmt::Debug for PublicIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicIdentity({}, renewed {})", self.fingerprint(), self.renewals)
    }
}

impl FromStr for PublicIdentity {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let of = |suite| Some((suite, text.strip_prefix(prefix(suite))?));
        let (suite, text) = Suite::ALL.into_iter().find_map(of).ok_or(KeyError::Prefix)?;
        let len = public_len(suite);
        let why = || if base32::is_cut(text, len) { KeyError::Length } else { KeyError::Letters };
        let octets = base32::decode(text).ok_or_else(why)?;
        let key = Self::split(suite, &octets).filter(|_| octets.len() == len).ok_or(KeyError::Length)?;
        if !verify(&key.signing, &binding(suite, &key.agreement, key.renewals), &key.signature) {
            return Err(KeyError::Signature);
        }
        Ok(key)
    }
}

impl PublicIdentity {
    /// What the octets of a text say; nobody has looked at the signature.
    fn split(suite: Suite, octets: &[u8]) -> Option<Self> {
        let (&signing, rest) = octets.split_first_chunk()?;
        let (agreement, rest) = rest.split_at_checked(suite.key())?;
        let (&renewals, rest) = rest.split_first_chunk()?;
        let renewals = u32::from_be_bytes(renewals);
        Some(Self { signing, suite, agreement: agreement.into(), renewals, signature: *rest.first_chunk()? })
    }
}

/// Whether `signature` is `signing`'s of `message`; weak keys sign nothing.
pub(crate) fn verify(signing: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(signing)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}

/// A signing key made ready, for many signatures; a weak one signs nothing.
#[derive(Clone, Debug)]
pub(crate) struct Signatory(Option<VerifyingKey>);

impl Signatory {
    pub(crate) fn new(signing: &[u8; 32]) -> Self {
        Self(VerifyingKey::from_bytes(signing).ok().filter(|key| !key.is_weak()))
    }

    /// Whether `signature` is of `message`. As strict as [`verify`] about who signed, and half the work: of one key's
    /// signatures of a message no other is taken for another's.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.is_some_and(|key| key.verify(message, &Signature::from_bytes(signature)).is_ok())
    }
}

/// 100 bits of a signing key's digest, as five groups of four letters or digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 13]);

impl Fingerprint {
    /// Its first 64 bits, by which protocols know who has no other number.
    pub fn number(&self) -> u64 {
        self.0.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }

    /// Of a signing key.
    pub fn of(signing: &[u8; 32]) -> Self {
        let mut bits = [0; 13];
        bits.copy_from_slice(&Sha256::digest(signing)[..13]);
        bits[12] &= 0xF0;
        Self(bits)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The last letter is of the four bits that are none of the 100.
        let letters = base32::encode(&self.0);
        for group in 0..5 {
            let gap = if group > 0 { "-" } else { "" };
            write!(f, "{gap}{}", &letters[4 * group..4 * group + 4])?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// Reads it as people write it: small letters, with spaces, hyphens or nothing between.
impl FromStr for Fingerprint {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let letters: String = text.chars().filter(|&letter| letter != '-' && letter != ' ').collect();
        if letters.chars().any(|letter| base32::value(letter).is_none()) {
            return Err(KeyError::Letters);
        }
        if letters.len() != 20 {
            return Err(KeyError::Length);
        }
        let octets = base32::decode(&format!("{letters}0")).ok_or(KeyError::Length)?;
        Ok(Self(octets.as_slice().try_into().map_err(|_| KeyError::Length)?))
    }
}

/// Somebody that a list names: a receiver that is to be able to open, or a sender that is trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// What it is called here.
    pub name: String,
    /// Its keys.
    pub key: PublicIdentity,
}

/// Why something is no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It begins otherwise.
    #[error("a key begins with {PREFIX} or {HYBRID_PREFIX}")]
    Prefix,
    /// It has letters that are none of base 32.
    #[error("it has letters that no key has")]
    Letters,
    /// It is too short or too long.
    #[error("it is too short or too long")]
    Length,
    /// The agreement key is not the signing key's.
    #[error("its signature does not hold: a letter is wrong, or somebody changed it")]
    Signature,
}

#[cfg(test)]
mod tests;
