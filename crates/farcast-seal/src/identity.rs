//! Who somebody is: a signing key by which others know it, and an agreement key that can be renewed.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, Verifier as _, VerifyingKey};
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable as _, Kem as _, Serializable as _};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::base32;
use crate::draws::derive;

/// What the text of a public identity begins with.
const PREFIX: &str = "farcast-key-1:";
/// Before what is signed of an agreement key.
const BINDING: &[u8] = b"farcast seal 1 agreement";
/// Octets in the text: signing key, agreement key, renewals, signature.
const PUBLIC_LEN: usize = 32 + 32 + 4 + 64;

pub(crate) type AgreementSecret = <X25519HkdfSha256 as hpke::Kem>::PrivateKey;

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
        let seed = Zeroizing::new(seed);
        let signing = SigningKey::from_bytes(&derive(&*seed, b"farcast seal 1 signing key"));
        Self::assemble(signing, agreement_from(&seed), 0)
    }

    /// What [`to_bytes`](Self::to_bytes) gave.
    ///
    /// # Errors
    /// The length is another.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().map_err(|_| KeyError::Length)?;
        let mut signing = Zeroizing::new([0; 32]);
        let mut agreement = Zeroizing::new([0; 32]);
        let mut renewals = [0; 4];
        signing.copy_from_slice(&bytes[..32]);
        agreement.copy_from_slice(&bytes[32..64]);
        renewals.copy_from_slice(&bytes[64..]);
        Ok(Self::assemble(SigningKey::from_bytes(&signing), agreement, u32::from_be_bytes(renewals)))
    }

    /// The secrets, for a place that nobody else can read: signing secret, agreement secret, how often it was renewed.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(Self::LEN));
        bytes.extend_from_slice(self.signing.as_bytes());
        bytes.extend_from_slice(&*self.agreement);
        bytes.extend_from_slice(&self.public.renewals.to_be_bytes());
        bytes
    }

    /// Replaces the agreement key by one from `seed`; what was sealed for the old one cannot be opened any more.
    pub fn renew(&mut self, seed: [u8; 32]) {
        let agreement = agreement_from(&Zeroizing::new(seed));
        *self = Self::assemble(self.signing.clone(), agreement, self.public.renewals.saturating_add(1));
    }

    /// What others may know of it.
    pub fn public(&self) -> &PublicIdentity {
        &self.public
    }

    pub(crate) fn sign(&self, parts: &[&[u8]]) -> [u8; 64] {
        self.signing.sign(&parts.concat()).to_bytes()
    }

    pub(crate) fn agreement_secret(&self) -> Option<AgreementSecret> {
        AgreementSecret::from_bytes(&*self.agreement).ok()
    }

    fn assemble(signing: SigningKey, agreement: Zeroizing<[u8; 32]>, renewals: u32) -> Self {
        let public = PublicIdentity::sign(&signing, public_of(&agreement), renewals);
        Self { signing, agreement, public }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.public.fingerprint())
    }
}

fn agreement_from(seed: &Zeroizing<[u8; 32]>) -> Zeroizing<[u8; 32]> {
    let ikm = derive(&**seed, b"farcast seal 1 agreement key");
    let (secret, _) = X25519HkdfSha256::derive_keypair(&*ikm);
    let mut bytes = Zeroizing::new([0; 32]);
    secret.write_exact(&mut *bytes);
    bytes
}

fn public_of(agreement: &Zeroizing<[u8; 32]>) -> [u8; 32] {
    let mut public = [0; 32];
    // Any 32 octets are a secret.
    if let Ok(secret) = AgreementSecret::from_bytes(&**agreement) {
        X25519HkdfSha256::sk_to_pk(&secret).write_exact(&mut public);
    }
    public
}

/// What others know of somebody: signing key, agreement key, and the first one's signature of the second.
///
/// As text it is one line, `farcast-key-1:` and 212 letters and digits. What was read from text has a signature that holds.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicIdentity {
    signing: [u8; 32],
    agreement: [u8; 32],
    renewals: u32,
    signature: [u8; 64],
}

impl PublicIdentity {
    /// The signing key (Ed25519): who it is.
    pub fn signing(&self) -> &[u8; 32] {
        &self.signing
    }

    /// The agreement key (X25519): what is sealed for it.
    pub fn agreement(&self) -> &[u8; 32] {
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

    fn sign(signing: &SigningKey, agreement: [u8; 32], renewals: u32) -> Self {
        let signature = signing.sign(&binding(&agreement, renewals)).to_bytes();
        Self { signing: signing.verifying_key().to_bytes(), agreement, renewals, signature }
    }
}

fn binding(agreement: &[u8; 32], renewals: u32) -> Vec<u8> {
    [BINDING, agreement, &renewals.to_be_bytes()].concat()
}

impl fmt::Display for PublicIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut octets = Vec::with_capacity(PUBLIC_LEN);
        octets.extend_from_slice(&self.signing);
        octets.extend_from_slice(&self.agreement);
        octets.extend_from_slice(&self.renewals.to_be_bytes());
        octets.extend_from_slice(&self.signature);
        write!(f, "{PREFIX}{}", base32::encode(&octets))
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
        let text = text.trim().strip_prefix(PREFIX).ok_or(KeyError::Prefix)?;
        let why = || if base32::is_cut(text, PUBLIC_LEN) { KeyError::Length } else { KeyError::Letters };
        let octets = base32::decode(text).ok_or_else(why)?;
        let octets: &[u8; PUBLIC_LEN] = octets.as_slice().try_into().map_err(|_| KeyError::Length)?;
        let mut key = Self { signing: [0; 32], agreement: [0; 32], renewals: 0, signature: [0; 64] };
        let mut renewals = [0; 4];
        key.signing.copy_from_slice(&octets[..32]);
        key.agreement.copy_from_slice(&octets[32..64]);
        renewals.copy_from_slice(&octets[64..68]);
        key.renewals = u32::from_be_bytes(renewals);
        key.signature.copy_from_slice(&octets[68..]);
        if !verify(&key.signing, &binding(&key.agreement, key.renewals), &key.signature) {
            return Err(KeyError::Signature);
        }
        Ok(key)
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
    #[error("a key begins with {PREFIX}")]
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
