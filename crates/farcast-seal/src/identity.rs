//! Identities: a signing key by which others know the owner, and an agreement key that can be renewed.

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

/// Prefix of a public identity as text, for each kind of agreement key.
const PREFIX: &str = "farcast-key-1:";
const HYBRID_PREFIX: &str = "farcast-key-2:";

/// Secret keys of an identity. They are overwritten when dropped; debug output shows only the fingerprint.
#[derive(Clone)]
pub struct Identity {
    signing: SigningKey,
    agreement: Zeroizing<[u8; 32]>,
    public: PublicIdentity,
}

impl Identity {
    /// Length in octets of a stored identity.
    pub const LEN: usize = 32 + 32 + 4;

    /// Creates an identity from 32 octets that nobody else knows and that have no other use.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self::seeded(Suite::X25519, &Zeroizing::new(seed))
    }

    /// Creates an identity with a hybrid agreement key. Content sealed for it stays secret even if X25519 is broken one
    /// day.
    pub fn hybrid_from_seed(seed: [u8; 32]) -> Self {
        Self::seeded(Suite::Hybrid, &Zeroizing::new(seed))
    }

    fn seeded(suite: Suite, seed: &Zeroizing<[u8; 32]>) -> Self {
        let signing = SigningKey::from_bytes(&derive(&**seed, b"farcast seal 1 signing key"));
        Self::assemble(signing, suite, suite.secret_from(seed), 0)
    }

    /// Reads the octets of [`to_bytes`](Self::to_bytes) for an identity whose agreement key is of this suite.
    ///
    /// # Errors
    /// Returns [`KeyError::Length`] if the length is wrong.
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

    /// Returns the secrets, to be stored where nobody else can read them: signing secret, agreement secret, number of
    /// renewals.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(Self::LEN));
        bytes.extend_from_slice(self.signing.as_bytes());
        bytes.extend_from_slice(&*self.agreement);
        bytes.extend_from_slice(&self.public.renewals.to_be_bytes());
        bytes
    }

    /// Replaces the agreement key by one of the same suite from `seed`. Content that was sealed for the old key can no
    /// longer be opened.
    pub fn renew(&mut self, seed: [u8; 32]) {
        self.renew_by(self.public.suite, seed);
    }

    /// Replaces the agreement key by a hybrid one from `seed`.
    pub fn renew_hybrid(&mut self, seed: [u8; 32]) {
        self.renew_by(Suite::Hybrid, seed);
    }

    fn renew_by(&mut self, suite: Suite, seed: [u8; 32]) {
        let agreement = suite.secret_from(&Zeroizing::new(seed));
        *self =
            Self::assemble(self.signing.clone(), suite, agreement, self.public.renewals.saturating_add(1));
    }

    /// Returns the public part of the identity.
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

/// Public part of an identity: signing key, agreement key, and the signature of the second by the first.
///
/// As text it is one line: `farcast-key-1:` and 212 letters and digits, or `farcast-key-2:` and 2106 with a hybrid
/// agreement key. An identity that was read from text has a valid signature.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicIdentity {
    signing: [u8; 32],
    suite: Suite,
    agreement: Box<[u8]>,
    renewals: u32,
    signature: [u8; 64],
}

impl PublicIdentity {
    /// Returns the signing key (Ed25519), which identifies the owner.
    pub fn signing(&self) -> &[u8; 32] {
        &self.signing
    }

    /// Returns the suite by which secrets are wrapped for the identity.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// Returns the agreement key, in the form of its suite. Secrets are wrapped for this key.
    pub fn agreement(&self) -> &[u8] {
        &self.agreement
    }

    /// Returns the number of renewals of the agreement key. A peer that knows a later key should not return to an
    /// earlier one.
    pub fn renewals(&self) -> u32 {
        self.renewals
    }

    /// Returns the fingerprint of the signing key, which two people can compare.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.signing)
    }

    fn sign(signing: &SigningKey, suite: Suite, agreement: Box<[u8]>, renewals: u32) -> Self {
        let signature = signing.sign(&binding(suite, &agreement, renewals)).to_bytes();
        Self { signing: signing.verifying_key().to_bytes(), suite, agreement, renewals, signature }
    }
}

/// Returns the octets that are signed for an agreement key. They bind the suite, so that no line with another key or
/// another suite can be made from the signature.
fn binding(suite: Suite, agreement: &[u8], renewals: u32) -> Vec<u8> {
    [suite.binding(), agreement, &renewals.to_be_bytes()].concat()
}

fn prefix(suite: Suite) -> &'static str {
    match suite {
        Suite::X25519 => PREFIX,
        Suite::Hybrid => HYBRID_PREFIX,
    }
}

/// Returns the number of octets in the text: signing key, agreement key, renewals, signature.
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
    /// Splits the octets of a text into the fields; the signature is not checked.
    fn split(suite: Suite, octets: &[u8]) -> Option<Self> {
        let (&signing, rest) = octets.split_first_chunk()?;
        let (agreement, rest) = rest.split_at_checked(suite.key())?;
        let (&renewals, rest) = rest.split_first_chunk()?;
        let renewals = u32::from_be_bytes(renewals);
        Some(Self { signing, suite, agreement: agreement.into(), renewals, signature: *rest.first_chunk()? })
    }
}

/// Returns `true` if `signature` is `signing`'s signature of `message`. Signatures of weak keys are never valid.
pub(crate) fn verify(signing: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(signing)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}

/// Signing key prepared for checking many signatures. Signatures of a weak key are never valid.
#[derive(Clone, Debug)]
pub(crate) struct Signatory(Option<VerifyingKey>);

impl Signatory {
    pub(crate) fn new(signing: &[u8; 32]) -> Self {
        Self(VerifyingKey::from_bytes(signing).ok().filter(|key| !key.is_weak()))
    }

    /// Returns `true` if `signature` is the key's signature of `message`. The check is as strict as [`verify`] about
    /// the signer, at half the work. It may accept several signatures of a message by one key, but none by another key.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.is_some_and(|key| key.verify(message, &Signature::from_bytes(signature)).is_ok())
    }
}

/// First 100 bits of a signing key's digest, shown as five groups of four letters or digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 13]);

impl Fingerprint {
    /// Returns the first 64 bits, from which protocols derive the owner's node number.
    pub fn number(&self) -> u64 {
        self.0.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }

    /// Computes the fingerprint of a signing key.
    pub fn of(signing: &[u8; 32]) -> Self {
        let mut bits = [0; 13];
        bits.copy_from_slice(&Sha256::digest(signing)[..13]);
        bits[12] &= 0xF0;
        Self(bits)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The last letter encodes the four bits beyond the 100.
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

/// Reads a fingerprint as people write it: in small letters, with spaces, hyphens or nothing between.
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

/// Entry of a key list: a receiver that may open content, or a trusted sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Name in the list.
    pub name: String,
    /// Public keys.
    pub key: PublicIdentity,
}

/// Reason for which a text is not a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The prefix is wrong.
    #[error("a key begins with {PREFIX} or {HYBRID_PREFIX}")]
    Prefix,
    /// A letter is not in the base-32 alphabet.
    #[error("it has letters that no key has")]
    Letters,
    /// The text is too short or too long.
    #[error("it is too short or too long")]
    Length,
    /// The signing key has not signed the agreement key.
    #[error("its signature does not hold: a letter is wrong, or somebody changed it")]
    Signature,
}

#[cfg(test)]
mod tests;
