//! Messages on the wire.

mod hostile;
mod properties;
mod vectors;

use std::vec::Vec;

use super::{decode, encode, encoded_len};

/// Asserts that a datagram that can be decoded is encoded to one that decodes to the same, of the announced length.
fn assert_stable(datagram: &[u8]) {
    let Ok(packet) = decode(datagram) else { return };
    let mut again = Vec::new();
    encode(&packet.message, 0, &mut again);
    again.extend_from_slice(&datagram[packet.payload.clone()]);
    assert_eq!(again.len(), encoded_len(&packet.message, 0));
    let second = decode(&again).expect("what was decoded can be encoded and decoded");
    assert_eq!(second.message, packet.message);
    assert_eq!(again[second.payload], datagram[packet.payload]);
}
