//! Suites that wrap secrets for an identity: X25519, or its hybrid with ML-KEM-768.

use alloc::boxed::Box;

use hpke::kem::{X25519HkdfSha256, XWing};
use hpke::{Deserializable as _, Kem, Serializable};
use zeroize::Zeroizing;

use crate::draws::derive;
use crate::wire::WRAPPED;

/// Secret part of an agreement key, ready for use.
pub(crate) type SecretOf<K> = <K as Kem>::PrivateKey;

/// Suite that wraps secrets for an agreement key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Suite {
    /// X25519.
    X25519 = 1,
    /// X-Wing: X25519 and ML-KEM-768, either of which is enough to keep a secret.
    Hybrid = 2,
}

impl Suite {
    pub(crate) const ALL: [Self; 2] = [Self::X25519, Self::Hybrid];

    /// Returns the suite with this number on the wire.
    pub(crate) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&suite| suite as u8 == number)
    }

    /// Returns the octets of a public agreement key.
    pub(crate) const fn key(self) -> usize {
        match self {
            Self::X25519 => 32,
            Self::Hybrid => 1216,
        }
    }

    /// Returns the octets of an entry of KEYS: tag, `enc`, wrapped secret.
    pub(crate) const fn entry(self) -> usize {
        let enc = match self {
            Self::X25519 => 32,
            Self::Hybrid => 1120,
        };
        4 + enc + WRAPPED
    }

    /// Returns the maximum number of entries in a KEYS datagram, which must fit a packet of 1500 octets.
    pub(crate) const fn entries(self) -> usize {
        match self {
            Self::X25519 => 15,
            Self::Hybrid => 1,
        }
    }

    /// Returns the prefix of the octets that a signing key signs for an agreement key.
    pub(crate) fn binding(self) -> &'static [u8] {
        match self {
            Self::X25519 => b"farcast seal 1 agreement",
            Self::Hybrid => b"farcast seal 1 hybrid",
        }
    }

    /// Derives the secret of an agreement key from a seed, in its stored form.
    pub(crate) fn secret_from(self, seed: &Zeroizing<[u8; 32]>) -> Zeroizing<[u8; 32]> {
        match self {
            Self::X25519 => {
                let (secret, _) =
                    X25519HkdfSha256::derive_keypair(&*derive(&**seed, b"farcast seal 1 agreement key"));
                let mut octets = Zeroizing::new([0; 32]);
                secret.write_exact(&mut *octets);
                octets
            }
            // Any 32 octets are a valid secret.
            Self::Hybrid => derive(&**seed, b"farcast seal 1 hybrid key"),
        }
    }

    /// Returns the public key of a secret.
    pub(crate) fn public_of(self, secret: &Zeroizing<[u8; 32]>) -> Box<[u8]> {
        match AgreementSecret::read(self, secret) {
            Some(AgreementSecret::X25519(secret)) => octets_of::<X25519HkdfSha256>(&secret),
            Some(AgreementSecret::Hybrid(secret)) => octets_of::<XWing>(&secret),
            // Unreachable: any 32 octets are a valid secret.
            None => Box::default(),
        }
    }
}

fn octets_of<K: Kem>(secret: &SecretOf<K>) -> Box<[u8]> {
    K::sk_to_pk(secret).to_bytes().as_slice().into()
}

/// Secret of an agreement key.
pub(crate) enum AgreementSecret {
    X25519(SecretOf<X25519HkdfSha256>),
    /// Secret with precomputed values, 1.6 KB in all.
    Hybrid(Box<SecretOf<XWing>>),
}

impl AgreementSecret {
    /// Reads a secret in its stored form.
    pub(crate) fn read(suite: Suite, secret: &Zeroizing<[u8; 32]>) -> Option<Self> {
        Some(match suite {
            Suite::X25519 => Self::X25519(SecretOf::<X25519HkdfSha256>::from_bytes(&**secret).ok()?),
            Suite::Hybrid => Self::Hybrid(Box::new(SecretOf::<XWing>::from_bytes(&**secret).ok()?)),
        })
    }

    /// Returns the suite of the secret.
    pub(crate) fn suite(&self) -> Suite {
        match self {
            Self::X25519(_) => Suite::X25519,
            Self::Hybrid(_) => Suite::Hybrid,
        }
    }
}
