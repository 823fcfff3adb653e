//! Tests of the codec against its specification.
//!
//! The vectors in `vectors/mftp` were worked out from the specification by hand, and their messages are written out
//! here, so neither side of the codec vouches for the other.

mod hostile;
mod properties;
mod vectors;

use std::vec::Vec;

use super::{
    DATA_HEADER_LEN, HEADER_LEN, NAK_FIXED_LEN, Packet, block_size_for, data_len, decode, dtu_size_for,
    encode, encoded_len,
};
use crate::message::Body;

/// Parameters of a message as (type, value), in order.
type Parameters = Vec<(u16, Vec<u8>)>;

/// Splits a message into its parameters. The message must be valid.
fn parameters(message: &[u8]) -> Parameters {
    let mut rest = &message[12..];
    let mut found = Vec::new();
    while let [k0, k1, l0, l1, body @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*l0, *l1]));
        found.push((u16::from_be_bytes([*k0, *k1]), body[..len].to_vec()));
        rest = &body[len.next_multiple_of(4)..];
    }
    found
}

/// Assembles a message of type `kind`, without a checksum.
fn assemble(kind: u16, parameters: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut message = std::vec![0, 1, 0, 0, 0, 0, 0, 0, 0x5E, 0xED, 0, 1];
    message[2..4].copy_from_slice(&kind.to_be_bytes());
    for (parameter, value) in parameters {
        message.extend(parameter.to_be_bytes());
        message.extend((value.len() as u16).to_be_bytes());
        message.extend(value);
        message.resize(message.len().next_multiple_of(4), 0);
    }
    with_length(message)
}

/// Sets the length field to the actual length and switches the checksum off, so that the parameters are decoded.
fn with_length(mut message: Vec<u8>) -> Vec<u8> {
    let len = message.len() as u16;
    if let Some(fields) = message.get_mut(4..8) {
        fields.copy_from_slice(&[(len >> 8) as u8, len as u8, 0, 0]);
    }
    message
}

/// Encodes the whole datagram of `packet`, which was decoded from `datagram`, with payload and padding as a driver adds
/// them.
fn encode_whole(packet: &Packet, datagram: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&packet.message, 0, &mut out);
    if matches!(packet.message.body, Body::Data(_)) {
        out.extend(&datagram[packet.payload.clone()]);
        out.resize(encoded_len(&packet.message, 0), 0);
    }
    assert_eq!(out.len(), encoded_len(&packet.message, 0));
    out
}

/// Asserts that an accepted datagram survives its own encoding; otherwise two hops would see two messages.
fn assert_stable(datagram: &[u8]) {
    let Ok(packet) = decode(datagram) else { return };
    let again = encode_whole(&packet, datagram);
    let second = decode(&again).expect("what was decoded can be encoded and decoded");
    assert_eq!(second.message, packet.message);
    assert_eq!(again[second.payload], datagram[packet.payload]);
}

#[test]
fn header_lengths_are_the_specifications() {
    assert_eq!(HEADER_LEN, 12);
    assert_eq!(DATA_HEADER_LEN, 40);
    assert_eq!(NAK_FIXED_LEN, 84);
}

#[test]
fn block_size_is_what_one_nak_can_report() {
    // IP MTU 1500 and 576, less 28 bytes of IPv4 and UDP.
    assert_eq!(block_size_for(1472, 0), 11_104);
    assert_eq!(block_size_for(548, 0), 3_712);
    // An IPv6 server address and a parity count take 12 and 8 bytes, each worth 8 DTUs.
    assert_eq!(block_size_for(1472, 20), 11_104 - 160);
    // The event list is padded, so a datagram of 1471 bytes holds no more than one of 1468.
    assert_eq!(block_size_for(1471, 0), block_size_for(1468, 0));
    assert_eq!(block_size_for(84, 0), 0);
    assert_eq!(block_size_for(0, usize::MAX - NAK_FIXED_LEN), 0);
}

#[test]
fn dtu_size_is_what_one_data_message_can_carry() {
    assert_eq!(dtu_size_for(1472), 1432);
    assert_eq!(dtu_size_for(548), 508);
    assert_eq!(dtu_size_for(1475), 1432);
    assert_eq!(dtu_size_for(39), 0);
}

#[test]
fn data_is_padded_to_a_multiple_of_four() {
    let lengths = [1, 2, 3, 4, 5, 1432].map(data_len);
    assert_eq!(lengths, [44, 44, 44, 44, 48, 1472]);
}
