//! AES-256-GCM in place: ring's where it is native, else all in Rust.

use alloc::boxed::Box;
use core::fmt;

use zeroize::Zeroizing;

use crate::wire::{HEADER, TAG};

/// A key that seals and opens.
pub(crate) struct Cipher(Box<engine::Key>);

impl Cipher {
    pub(crate) fn new(key: &Zeroizing<[u8; 32]>) -> Self {
        Self(Box::new(engine::new(key)))
    }

    /// Seals all of `body` but its last [`TAG`] octets, which take the tag. Whether it could: no datagram is too long.
    #[must_use]
    pub(crate) fn seal(&self, nonce: &[u8; HEADER], body: &mut [u8]) -> bool {
        let Some((text, place)) = body.split_last_chunk_mut::<TAG>() else { return false };
        match engine::seal(&self.0, nonce, text) {
            Some(tag) => *place = tag,
            None => return false,
        }
        true
    }

    /// Opens `body`, whose last [`TAG`] octets are the tag. Where it does not open, what is in it is nobody's.
    #[must_use]
    pub(crate) fn open(&self, nonce: &[u8; HEADER], body: &mut [u8]) -> bool {
        let Some((text, tag)) = body.split_last_chunk_mut::<TAG>() else { return false };
        engine::open(&self.0, nonce, text, tag)
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(..)")
    }
}

#[cfg(feature = "native")]
mod engine {
    use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};

    use super::{HEADER, TAG, Zeroizing};

    /// None of another length than 32 octets.
    pub(super) struct Key(Option<LessSafeKey>);

    pub(super) fn new(key: &Zeroizing<[u8; 32]>) -> Key {
        Key(schedule(key))
    }

    fn schedule(key: &Zeroizing<[u8; 32]>) -> Option<LessSafeKey> {
        UnboundKey::new(&AES_256_GCM, &**key).ok().map(LessSafeKey::new)
    }

    pub(super) fn seal(key: &Key, nonce: &[u8; HEADER], text: &mut [u8]) -> Option<[u8; TAG]> {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = key.0.as_ref()?.seal_in_place_separate_tag(nonce, Aad::empty(), text).ok()?;
        tag.as_ref().try_into().ok()
    }

    pub(super) fn open(key: &Key, nonce: &[u8; HEADER], text: &mut [u8], tag: &[u8; TAG]) -> bool {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        key.0.as_ref().is_some_and(|key| {
            key.open_in_place_separate_tag(nonce, Aad::empty(), Tag::from(*tag), text, 0..).is_ok()
        })
    }

    /// ring leaves keys in memory: another takes the place.
    impl Drop for Key {
        fn drop(&mut self) {
            self.0 = schedule(&Zeroizing::new([0; 32]));
            core::hint::black_box(&self.0);
        }
    }
}

#[cfg(not(feature = "native"))]
mod engine {
    use aes_gcm::aead::inout::InOutBuf;
    use aes_gcm::{AeadInOut as _, Aes256Gcm, KeyInit as _};

    use super::{HEADER, TAG, Zeroizing};

    pub(super) type Key = Aes256Gcm;

    pub(super) fn new(key: &Zeroizing<[u8; 32]>) -> Key {
        Aes256Gcm::new((&**key).into())
    }

    pub(super) fn seal(key: &Key, nonce: &[u8; HEADER], text: &mut [u8]) -> Option<[u8; TAG]> {
        key.encrypt_inout_detached(nonce.into(), &[], InOutBuf::from(text)).ok().map(Into::into)
    }

    pub(super) fn open(key: &Key, nonce: &[u8; HEADER], text: &mut [u8], tag: &[u8; TAG]) -> bool {
        key.decrypt_inout_detached(nonce.into(), &[], InOutBuf::from(text), tag.into()).is_ok()
    }
}
