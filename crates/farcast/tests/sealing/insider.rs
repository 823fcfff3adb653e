//! Dishonest member of the group. It has the keys of docs/src/seal.md, in code that is independent of farcast-seal.

use farcast_seal::Identity;
use hkdf::Hkdf;
use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable as _, Kem, OpModeR, setup_receiver};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sha2::{Digest as _, Sha256};

/// Key of the group, as a member has it.
pub(crate) struct GroupKey {
    session: [u8; 16],
    epoch: u8,
    key: [u8; 32],
}

impl GroupKey {
    /// Returns the key in `keys`, a KEYS datagram with an entry for the owner of this signing key and agreement secret.
    pub(crate) fn of(keys: &[u8], (signing, secret): (&[u8; 32], &[u8; 32])) -> Option<Self> {
        let named = Sha256::new().chain_update(b"farcast seal 1 session").chain_update(&keys[3..84]);
        let session: [u8; 16] = named.finalize()[..16].try_into().unwrap();
        let epoch = keys[84];
        let info = [&b"farcast seal 1 keys"[..], &session, &[epoch], signing].concat();
        let own = <X25519HkdfSha256 as Kem>::PrivateKey::from_bytes(secret).unwrap();
        let opened = keys[86..keys.len() - 64].chunks(84).find_map(|entry| {
            let enc = <X25519HkdfSha256 as Kem>::EncappedKey::from_bytes(&entry[4..36]).ok()?;
            let mut context =
                setup_receiver::<AesGcm256, HkdfSha256, X25519HkdfSha256>(&OpModeR::Base, &own, &enc, &info)
                    .ok()?;
            context.open(&entry[36..84], &[]).ok()
        })?;
        let mut key = [0; 32];
        let info = [&b"farcast seal 1 group"[..], &[epoch]].concat();
        Hkdf::<Sha256>::new(Some(&session), &opened).expand(&info, &mut key).unwrap();
        Some(Self { session, epoch, key })
    }

    /// Seals `said` as a datagram of `kind`, a number of the seal's page, under this counter.
    pub(crate) fn seal(&self, kind: u8, counter: u64, said: &[u8]) -> Vec<u8> {
        let mut nonce = [0; 12];
        (nonce[0], nonce[1]) = (kind, self.epoch);
        nonce[2..6].copy_from_slice(&self.session[..4]);
        nonce[6..].copy_from_slice(&counter.to_be_bytes()[2..]);
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.key).unwrap());
        let mut body = said.to_vec();
        let at = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(at, Aad::empty(), &mut body).unwrap();
        [&nonce[..], &body].concat()
    }

    /// Opens a datagram that is sealed with this key.
    pub(crate) fn open(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let (nonce, body) = datagram.split_first_chunk::<12>()?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.key).unwrap());
        let mut body = body.to_vec();
        let at = Nonce::assume_unique_for_key(*nonce);
        Some(key.open_in_place(at, Aad::empty(), &mut body).ok()?.to_vec())
    }
}

/// Returns the signing key and the agreement secret of an identity.
pub(crate) fn own(identity: &Identity) -> ([u8; 32], [u8; 32]) {
    (*identity.public().signing(), identity.to_bytes()[32..64].try_into().unwrap())
}
