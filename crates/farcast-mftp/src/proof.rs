//! Who says what: tokens, proofs, and the key that ends a transmission.
//!
//! The draft has nothing against a host that speaks in another's name. Without keys agreed on beforehand, what can be
//! had is this: whoever does not see a member's unicast cannot speak for it.
//!
//! * A receiver's registration carries a **nonce**. The sender answers it, at its source and nowhere else, with a GRANT
//!   of a **token** whose proof is a digest of the nonce and of what the sender announces. So the receiver knows that
//!   whoever grants has seen its registration, and that what it took for the sender's announcement is; and the sender
//!   knows, from the first proof that fits, that the receiver is where it says.
//! * From then on each of the receiver's messages carries a **proof**: a keyed digest of what it says.
//! * Each announcement carries a **commitment**, the digest of a key. ABORT to all, END and the last COMPLETION
//!   show the key, which nobody but the sender can have known before.
//!
//! Tokens are not kept: they follow from a secret of the sender's, the receiver's id, address and nonce. A stranger
//! costs no memory. Digests are keyed BLAKE3, cut to 64 bits: each guess has to be sent, and is answered with nothing.

use core::net::{IpAddr, SocketAddr};

use crate::message::{Announce, Body, ClientId, Message};
use crate::wire;

/// 256 bits that nobody else knows, from which an engine makes what others must not guess.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What a member of a session proves itself with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token(pub [u8; 16]);

/// 64 bits that only one who knows a token, a nonce or a key can have made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Proof(pub [u8; 8]);

/// What a digest is for: no digest is good for anything else.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Purpose {
    Token = 1,
    Nonce = 2,
    EndKey = 3,
    Commitment = 4,
    Message = 5,
    Terms = 6,
    Grant = 7,
}

impl Secret {
    fn hasher(&self, purpose: Purpose, transmission: u32) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[purpose as u8]).update(&transmission.to_be_bytes());
        hasher
    }

    /// The token of the receiver `client` at `address` that registered with `nonce`.
    pub(crate) fn token(
        &self,
        transmission: u32,
        client: ClientId,
        address: SocketAddr,
        nonce: Proof,
    ) -> Token {
        let mut hasher = self.hasher(Purpose::Token, transmission);
        hasher.update(&client.0.to_be_bytes()).update(&nonce.0);
        hash_address(&mut hasher, address);
        Token(first(&hasher))
    }

    /// The nonce of a registration with `server`. It is the same whenever this receiver asks, so that one that was
    /// started again is known by it, and another for each server, so that none can use it with another.
    pub(crate) fn nonce(&self, transmission: u32, server: SocketAddr) -> Proof {
        let mut hasher = self.hasher(Purpose::Nonce, transmission);
        hash_address(&mut hasher, server);
        Proof(first(&hasher))
    }

    /// The key that shows that a transmission is over.
    pub(crate) fn end_key(&self, transmission: u32) -> Proof {
        Proof(first(&self.hasher(Purpose::EndKey, transmission)))
    }
}

impl Token {
    /// The proof of `message`, whatever proof it carries.
    pub(crate) fn prove(&self, message: &Message) -> Proof {
        let mut key = [0; 32];
        key[..16].copy_from_slice(&self.0);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        hasher.update(&[Purpose::Message as u8]);
        wire::hash(message, &mut hasher);
        Proof(first(&hasher))
    }
}

/// What an announcement says of the key that will show its end.
pub(crate) fn commitment(transmission: u32, key: Proof) -> Proof {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[Purpose::Commitment as u8]).update(&transmission.to_be_bytes()).update(&key.0);
    Proof(first(&hasher))
}

/// What an announcement promises, whomever it lists and whenever it is sent: a digest of it.
pub(crate) fn terms(transmission: u32, m: &Announce) -> Proof {
    let mut fixed = m.clone();
    (fixed.hosts, fixed.announce_duration_s, fixed.options.restart) = (None, 0, false);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[Purpose::Terms as u8]);
    wire::hash(&Message::new(transmission, Body::Announce(fixed.into())), &mut hasher);
    Proof(first(&hasher))
}

/// The proof of a grant: whoever grants has seen the registration's nonce, and announces these terms.
pub(crate) fn grant(nonce: Proof, terms: Proof) -> Proof {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[Purpose::Grant as u8]).update(&nonce.0).update(&terms.0);
    Proof(first(&hasher))
}

fn hash_address(hasher: &mut blake3::Hasher, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => hasher.update(&[4]).update(&ip.octets()),
        IpAddr::V6(ip) => hasher.update(&[6]).update(&ip.octets()),
    };
    hasher.update(&address.port().to_be_bytes());
}

fn first<const N: usize>(hasher: &blake3::Hasher) -> [u8; N] {
    let mut octets = [0; N];
    hasher.finalize_xof().fill(&mut octets);
    octets
}
