//! Random octets derived from a seed.

use core::convert::Infallible;

use hkdf::Hkdf;
use rand_core::{TryCryptoRng, TryRng};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Generator of random octets from a seed. Each draw replaces the state by a digest of itself, so that a thief of the
/// state cannot compute earlier draws.
pub(crate) struct Draws(Zeroizing<[u8; 32]>);

impl Draws {
    pub(crate) fn new(seed: &Zeroizing<[u8; 32]>) -> Self {
        Self(derive(&**seed, b"farcast seal 1 draws"))
    }

    pub(crate) fn secret(&mut self) -> Zeroizing<[u8; 32]> {
        let secret = derive(&*self.0, b"out");
        self.0 = derive(&*self.0, b"next");
        secret
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        self.fill(&mut array);
        array
    }

    fn fill(&mut self, out: &mut [u8]) {
        for part in out.chunks_mut(32) {
            part.copy_from_slice(&self.secret()[..part.len()]);
        }
    }
}

/// Derives 32 octets from `secret` for the use that `label` names.
pub(crate) fn derive(secret: &[u8], label: &[u8]) -> Zeroizing<[u8; 32]> {
    derive_salted(&[], secret, &[label])
}

/// Derives 32 octets by HKDF-SHA256 (RFC 5869).
pub(crate) fn derive_salted(salt: &[u8], secret: &[u8], info: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    // The expansion fails for more than 255 digests only.
    let expanded = Hkdf::<Sha256>::new(Some(salt), secret).expand_multi_info(info, &mut *out);
    debug_assert!(expanded.is_ok(), "one digest");
    out
}

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_be_bytes(self.array()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_be_bytes(self.array()))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.fill(out);
        Ok(())
    }
}

impl TryCryptoRng for Draws {}
