//! AES-256-GCM in place, by ring if the feature `native` is on, otherwise in pure Rust.

use alloc::boxed::Box;
use core::fmt;

use zeroize::Zeroizing;

use crate::wire::{HEADER, TAG};

/// Key that seals and opens datagrams.
pub(crate) struct Cipher(Box<engine::CipherKey>);

impl Cipher {
    pub(crate) fn new(key: &Zeroizing<[u8; 32]>) -> Self {
        Self(Box::new(engine::new(key)))
    }

    /// Seals all of `body` except its last [`TAG`] octets, which receive the tag. Returns `true` on success; no
    /// datagram is too long.
    #[must_use]
    pub(crate) fn seal(&self, nonce: &[u8; HEADER], body: &mut [u8]) -> bool {
        let Some((text, place)) = body.split_last_chunk_mut::<TAG>() else { return false };
        match engine::seal(&self.0, nonce, text) {
            Some(tag) => *place = tag,
            None => return false,
        }
        true
    }

    /// Opens `body`, whose last [`TAG`] octets are the tag. Returns `true` on success. After a failure the content of
    /// `body` is undefined.
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

    /// Key of ring; `None` for a key of a length other than 32 octets.
    pub(super) struct CipherKey(Option<LessSafeKey>);

    pub(super) fn new(key: &Zeroizing<[u8; 32]>) -> CipherKey {
        CipherKey(schedule(key))
    }

    fn schedule(key: &Zeroizing<[u8; 32]>) -> Option<LessSafeKey> {
        UnboundKey::new(&AES_256_GCM, &**key).ok().map(LessSafeKey::new)
    }

    pub(super) fn seal(key: &CipherKey, nonce: &[u8; HEADER], text: &mut [u8]) -> Option<[u8; TAG]> {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = key.0.as_ref()?.seal_in_place_separate_tag(nonce, Aad::empty(), text).ok()?;
        tag.as_ref().try_into().ok()
    }

    pub(super) fn open(key: &CipherKey, nonce: &[u8; HEADER], text: &mut [u8], tag: &[u8; TAG]) -> bool {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        key.0.as_ref().is_some_and(|key| {
            key.open_in_place_separate_tag(nonce, Aad::empty(), Tag::from(*tag), text, 0..).is_ok()
        })
    }

    /// Overwrites the key, because ring leaves keys in memory.
    impl Drop for CipherKey {
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

    pub(super) type CipherKey = Aes256Gcm;

    pub(super) fn new(key: &Zeroizing<[u8; 32]>) -> CipherKey {
        Aes256Gcm::new((&**key).into())
    }

    pub(super) fn seal(key: &CipherKey, nonce: &[u8; HEADER], text: &mut [u8]) -> Option<[u8; TAG]> {
        key.encrypt_inout_detached(nonce.into(), &[], InOutBuf::from(text)).ok().map(Into::into)
    }

    pub(super) fn open(key: &CipherKey, nonce: &[u8; HEADER], text: &mut [u8], tag: &[u8; TAG]) -> bool {
        key.decrypt_inout_detached(nonce.into(), &[], InOutBuf::from(text), tag.into()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn octets(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).filter_map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
    }

    /// Test case 15 of appendix B of "The Galois/Counter Mode of Operation".
    #[test]
    fn a_known_text() {
        let half = octets("feffe9928665731c6d6a8f9467308308");
        let key = [&half[..], &half].concat().try_into().expect("32 octets");
        let nonce = octets("cafebabefacedbaddecaf888").try_into().expect("12 octets");
        let text = octets(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
             1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
        );
        let sealed = octets(
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
             8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad\
             b094dac5d93471bdec1a502270e3cc6c",
        );
        let cipher = Cipher::new(&Zeroizing::new(key));
        let mut body = [&text[..], &[0; TAG]].concat();
        assert!(cipher.seal(&nonce, &mut body));
        assert_eq!(body, sealed);
        assert!(cipher.open(&nonce, &mut body));
        assert_eq!(body[..text.len()], text);
        assert!(!cipher.open(&nonce, &mut sealed[1..].to_vec()));
        assert!(!cipher.open(&nonce, &mut [0; TAG - 1]), "shorter than a tag");
    }
}
