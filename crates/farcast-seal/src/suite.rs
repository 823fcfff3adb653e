//! How secrets are wrapped for somebody: by X25519, or by the hybrid of it with ML-KEM-768.

use alloc::boxed::Box;

use hpke::kem::{X25519HkdfSha256, XWing};
use hpke::{Deserializable as _, Kem, Serializable};
use zeroize::Zeroizing;

use crate::draws::derive;
use crate::wire::WRAPPED;

/// The secret of an agreement key, ready to be used.
pub(crate) type SecretOf<K> = <K as Kem>::PrivateKey;

/// By what secrets are wrapped for an agreement key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Suite {
    /// X25519.
    X25519 = 1,
    /// X-Wing: X25519 and ML-KEM-768, of which either is enough to keep a secret.
    Hybrid = 2,
}

impl Suite {
    pub(crate) const ALL: [Self; 2] = [Self::X25519, Self::Hybrid];

    /// That of a number on the wire.
    pub(crate) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&suite| suite as u8 == number)
    }

    /// Octets of a public agreement key.
    pub(crate) const fn key(self) -> usize {
        match self {
            Self::X25519 => 32,
            Self::Hybrid => 1216,
        }
    }

    /// Octets of an entry of KEYS: tag, `enc`, what is wrapped.
    pub(crate) const fn entry(self) -> usize {
        let enc = match self {
            Self::X25519 => 32,
            Self::Hybrid => 1120,
        };
        4 + enc + WRAPPED
    }

    /// Entries of KEYS in a datagram, at most: as many as fit a packet of 1500 octets.
    pub(crate) const fn entries(self) -> usize {
        match self {
            Self::X25519 => 15,
            Self::Hybrid => 1,
        }
    }

    /// Before what a signing key signs of an agreement key.
    pub(crate) fn binding(self) -> &'static [u8] {
        match self {
            Self::X25519 => b"farcast seal 1 agreement",
            Self::Hybrid => b"farcast seal 1 hybrid",
        }
    }

    /// The secret of an agreement key from a seed, as it is stored.
    pub(crate) fn secret_from(self, seed: &Zeroizing<[u8; 32]>) -> Zeroizing<[u8; 32]> {
        match self {
            Self::X25519 => {
                let (secret, _) =
                    X25519HkdfSha256::derive_keypair(&*derive(&**seed, b"farcast seal 1 agreement key"));
                let mut octets = Zeroizing::new([0; 32]);
                secret.write_exact(&mut *octets);
                octets
            }
            // Any 32 octets are one.
            Self::Hybrid => derive(&**seed, b"farcast seal 1 hybrid key"),
        }
    }

    /// The public key of a secret.
    pub(crate) fn public_of(self, secret: &Zeroizing<[u8; 32]>) -> Box<[u8]> {
        match AgreementSecret::read(self, secret) {
            Some(AgreementSecret::X25519(secret)) => octets_of::<X25519HkdfSha256>(&secret),
            Some(AgreementSecret::Hybrid(secret)) => octets_of::<XWing>(&secret),
            // There is no such secret: any 32 octets are one.
            None => Box::default(),
        }
    }
}

fn octets_of<K: Kem>(secret: &SecretOf<K>) -> Box<[u8]> {
    K::sk_to_pk(secret).to_bytes().as_slice().into()
}

/// The secret of somebody's agreement key.
pub(crate) enum AgreementSecret {
    X25519(SecretOf<X25519HkdfSha256>),
    /// With what follows from it, which is 1.6 KB.
    Hybrid(Box<SecretOf<XWing>>),
}

impl AgreementSecret {
    /// That which is stored so.
    pub(crate) fn read(suite: Suite, secret: &Zeroizing<[u8; 32]>) -> Option<Self> {
        Some(match suite {
            Suite::X25519 => Self::X25519(SecretOf::<X25519HkdfSha256>::from_bytes(&**secret).ok()?),
            Suite::Hybrid => Self::Hybrid(Box::new(SecretOf::<XWing>::from_bytes(&**secret).ok()?)),
        })
    }

    /// What it opens.
    pub(crate) fn suite(&self) -> Suite {
        match self {
            Self::X25519(_) => Suite::X25519,
            Self::Hybrid(_) => Suite::Hybrid,
        }
    }
}
