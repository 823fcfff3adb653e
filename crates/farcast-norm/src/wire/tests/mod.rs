//! Codec against captures of NRL's library, and against itself.

mod hostile;
mod properties;
mod vectors;

use std::vec::Vec;

use super::{Packet, decode, encode, encoded_len};

/// Field size m of FEC Encoding ID 2 where a datagram does not have it.
const FIELD_BITS: u8 = 16;

/// Returns the whole datagram for `packet`, which was found in `datagram`; a driver adds the payload.
fn encode_whole(packet: &Packet, datagram: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&packet.message, 0, &mut out);
    out.extend(&datagram[packet.payload.clone()]);
    assert_eq!(out.len(), encoded_len(&packet.message, 0));
    out
}

/// Checks that a decoded message is encoded to something that decodes to the same.
fn assert_stable(datagram: &[u8]) -> bool {
    let Ok(packet) = decode(datagram, FIELD_BITS) else { return false };
    let again = encode_whole(&packet, datagram);
    let second = decode(&again, FIELD_BITS).expect("what was decoded can be encoded and decoded");
    assert_eq!(second.message, packet.message);
    assert_eq!(again[second.payload], datagram[packet.payload]);
    true
}
