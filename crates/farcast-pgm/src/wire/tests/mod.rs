//! The codec against captures of OpenPGM, and against itself.

mod hostile;
mod properties;
mod vectors;

use std::vec::Vec;

use super::{Packet, decode, encode, encoded_len, finish};

/// Returns the whole datagram to which `packet` is encoded. Its content is taken from `datagram`, as a driver would add
/// it.
fn encode_whole(packet: &Packet, datagram: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&packet.message, 0, &mut out);
    out.extend(&datagram[packet.payload.clone()]);
    finish(&mut out);
    assert_eq!(out.len(), encoded_len(&packet.message, 0));
    out
}

/// Asserts that a datagram that can be decoded is encoded to one that decodes to the same. Returns `true` if it can be.
fn assert_stable(datagram: &[u8]) -> bool {
    let Ok(packet) = decode(datagram) else { return false };
    let again = encode_whole(&packet, datagram);
    let second = decode(&again).expect("what was decoded can be encoded and decoded");
    assert_eq!(second.message, packet.message);
    assert_eq!(again[second.payload], datagram[packet.payload]);
    true
}
