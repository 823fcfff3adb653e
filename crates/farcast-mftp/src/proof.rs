//! Proofs of the origin of messages: tokens, proofs, and the key that ends a transmission.
//!
//! The draft has no defence against a host that speaks in another's name. Without keys agreed on beforehand, this much
//! can be had: a host that does not see a member's unicast cannot speak for it.
//!
//! * A receiver's registration carries a **nonce**. The sender answers it, at its source and nowhere else, with a GRANT
//!   of a **token**. The proof of the GRANT is a digest of the nonce and of the sender's announcement. So the receiver
//!   knows that the granting host has seen its registration, and that the announcement is really the sender's. The
//!   sender knows, from the first valid proof, that the receiver is at the address that it claims.
//! * From then on each of the receiver's messages carries a **proof**: a keyed digest of the message.
//! * Each announcement carries a **commitment**, the digest of a key. ABORT to all, END and the last COMPLETION show
//!   the key, which only the sender can have known before.
//!
//! Tokens are not stored: they are derived from the sender's secret and the receiver's id, address and nonce. A
//! stranger costs no memory. Digests are keyed BLAKE3, cut to 64 bits: each guess has to be sent, and gets no answer.

use core::net::{IpAddr, SocketAddr};

use crate::message::{Announce, Body, ClientId, Message};
use crate::wire;

/// Secret of 256 bits, from which an engine derives the values that others must not guess.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Token with which a member of a session proves its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token(pub [u8; 16]);

/// Proof of 64 bits that requires the knowledge of a token, a nonce or a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Proof(pub [u8; 8]);

/// Purpose of a digest, so that no digest is valid for any other.
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

    /// Derives the token of the receiver `client` at `address` that registered with `nonce`.
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

    /// Derives the nonce of a registration with `server`. It is always the same for one server, so that the sender
    /// recognises a receiver that was started again. It differs between servers, so that none can use it with another.
    pub(crate) fn nonce(&self, transmission: u32, server: SocketAddr) -> Proof {
        let mut hasher = self.hasher(Purpose::Nonce, transmission);
        hash_address(&mut hasher, server);
        Proof(first(&hasher))
    }

    /// Derives the key that proves the end of a transmission.
    pub(crate) fn end_key(&self, transmission: u32) -> Proof {
        Proof(first(&self.hasher(Purpose::EndKey, transmission)))
    }
}

impl Token {
    /// Computes the proof of `message`, regardless of the proof that it carries.
    pub(crate) fn prove(&self, message: &Message) -> Proof {
        let mut key = [0; 32];
        key[..16].copy_from_slice(&self.0);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        hasher.update(&[Purpose::Message as u8]);
        wire::hash(message, &mut hasher);
        Proof(first(&hasher))
    }
}

/// Computes the commitment in an announcement to the key that will prove its end.
pub(crate) fn commitment(transmission: u32, key: Proof) -> Proof {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[Purpose::Commitment as u8]).update(&transmission.to_be_bytes()).update(&key.0);
    Proof(first(&hasher))
}

/// Computes a digest of the terms of an announcement, which do not depend on its host list, its time and its turn.
pub(crate) fn terms(transmission: u32, m: &Announce) -> Proof {
    let mut fixed = m.clone();
    (fixed.hosts, fixed.host_set, fixed.turn) = (None, None, None);
    (fixed.announce_duration_s, fixed.options.restart) = (0, false);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[Purpose::Terms as u8]);
    wire::hash(&Message::new(transmission, Body::Announce(fixed.into())), &mut hasher);
    Proof(first(&hasher))
}

/// Computes the proof of a grant: the granting host has seen the registration's nonce, and announces these terms.
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
