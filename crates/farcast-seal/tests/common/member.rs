//! Member of a group with a program of its own: it has the keys in KEYS, and seals arbitrary datagrams with them.

use std::net::SocketAddr;

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::{AeadInOut as _, Aes256Gcm, KeyInit as _};
use ed25519_dalek::{Signer as _, SigningKey};
use farcast_seal::{Identity, Kind, PublicIdentity, Receiver, Suite};
use hkdf::Hkdf;
use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable as _, Kem, OpModeR, setup_receiver};
use sha2::{Digest as _, Sha256};

const ENTRIES: usize = 86;
const ENTRY: usize = 84;

/// Computes the identifier of the session that KEYS announce.
pub(crate) fn session(keys: &[u8]) -> [u8; 16] {
    let digest = Sha256::new().chain_update(b"farcast seal 1 session").chain_update(&keys[3..84]).finalize();
    digest[..16].try_into().unwrap()
}

/// Computes the tag of a receiver in that session.
pub(crate) fn tag(keys: &[u8], of: &PublicIdentity) -> [u8; 4] {
    let digest = Sha256::new().chain_update(b"farcast seal 1 tag").chain_update(session(keys));
    let digest = digest.chain_update(of.signing()).chain_update(of.agreement()).finalize();
    digest[..4].try_into().unwrap()
}

/// Signs changed KEYS anew.
pub(crate) fn sign_keys(keys: &mut [u8], by: &Identity) {
    let end = keys.len() - 64;
    let signed = [b"farcast seal 1 keys", &keys[..end]].concat();
    keys[end..].copy_from_slice(&signing(by).sign(&signed).to_bytes());
}

/// Creates an identity that claims the agreement key of `other` as its own. It has the secret as well, which is not
/// needed: only the public key is signed.
pub(crate) fn claiming(own: &Identity, other: &Identity) -> Identity {
    let (own, other) = (own.to_bytes(), other.to_bytes());
    Identity::from_bytes(Suite::X25519, &[&own[..32], &other[32..64], &own[64..]].concat()).unwrap()
}

fn signing(identity: &Identity) -> SigningKey {
    SigningKey::from_bytes(identity.to_bytes()[..32].try_into().unwrap())
}

pub(crate) struct Member {
    identity: Identity,
    session: [u8; 16],
    epoch: u8,
    cipher: Aes256Gcm,
}

impl Member {
    /// Reads its keys from KEYS, where its entry is the `n`th.
    pub(crate) fn new(identity: Identity, keys: &[u8], n: usize) -> Self {
        let (session, epoch) = (session(keys), keys[84]);
        let entry = &keys[ENTRIES + ENTRY * n..][..ENTRY];
        let own = <X25519HkdfSha256 as Kem>::PrivateKey::from_bytes(&identity.to_bytes()[32..64]).unwrap();
        let enc = <X25519HkdfSha256 as Kem>::EncappedKey::from_bytes(&entry[4..36]).unwrap();
        let info = [b"farcast seal 1 keys", &session[..], &[epoch], identity.public().signing()].concat();
        let mut context =
            setup_receiver::<AesGcm256, HkdfSha256, X25519HkdfSha256>(&OpModeR::Base, &own, &enc, &info)
                .unwrap();
        let secret = context.open(&entry[36..], &[]).unwrap();
        let mut key = [0; 32];
        let info = [&b"farcast seal 1 group"[..], &[epoch]].concat();
        Hkdf::<Sha256>::new(Some(&session), &secret).expand(&info, &mut key).unwrap();
        Self { identity, session, epoch, cipher: Aes256Gcm::new(&key.into()) }
    }

    /// Seals `said` as content or control with any counter; control has the member's own signature.
    pub(crate) fn seal(&self, kind: Kind, counter: u64, said: &[u8]) -> Vec<u8> {
        let whose = &self.session[..4];
        let nonce = [&[kind as u8, self.epoch], whose, &counter.to_be_bytes()[2..]].concat();
        let mut body = said.to_vec();
        if kind == Kind::Control {
            let signed = [b"farcast seal 1 control", &self.session[..], &nonce, said].concat();
            body.extend_from_slice(&signing(&self.identity).sign(&signed).to_bytes());
        }
        let by = <&[u8; 12]>::try_from(&nonce[..]).unwrap().into();
        let tag = self.cipher.encrypt_inout_detached(by, &[], InOutBuf::from(&mut body[..])).unwrap();
        [&nonce, &body, tag.as_slice()].concat()
    }
}

/// Hears `datagram` from an address other than the sender's. Returns `true` if it was accepted.
pub(crate) fn hear_from(receiver: &mut Receiver, from: SocketAddr, datagram: &[u8]) -> bool {
    receiver.open(super::NOW, from, &mut datagram.to_vec()).is_ok()
}

/// Returns the line of an identity with `agreement` as its hybrid key.
pub(crate) fn hybrid_line(own: &Identity, agreement: &[u8]) -> String {
    let bound = [agreement, &[0; 4]].concat();
    let signature = signing(own).sign(&[b"farcast seal 1 hybrid", &bound[..]].concat()).to_bytes();
    let octets = [own.public().signing(), &bound[..], &signature].concat();
    let bits = octets.iter().flat_map(|octet| (0..8).rev().map(move |at| octet >> at & 1));
    let bits: Vec<u8> = bits.chain([0; 4]).collect();
    let letters = bits.chunks_exact(5).map(|five| {
        let value = five.iter().fold(0, |sum, bit| sum << 1 | usize::from(*bit));
        char::from(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[value])
    });
    letters.fold(String::from("farcast-key-2:"), |text, letter| text + &String::from(letter))
}
