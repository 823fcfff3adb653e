//! Any octets, with the checksum made right: decoding never panics, and what decodes and can be written decodes to the
//! same.
#![no_main]

use std::net::Ipv4Addr;

use farcast_tcp::wire::{self, Addresses, EncodeError};
use libfuzzer_sys::fuzz_target;

const HOSTS: Addresses =
    Addresses::V4 { source: Ipv4Addr::new(192, 0, 2, 1), destination: Ipv4Addr::new(192, 0, 2, 2) };

fuzz_target!(|input: &[u8]| {
    let _ = wire::decode(input, HOSTS);
    let mut octets = input.to_vec();
    repair(&mut octets);
    let (segment, payload) = match wire::decode(&octets, HOSTS) {
        Ok(read) => read,
        Err(wire::DecodeError::Checksum) => panic!("the checksum was made right"),
        Err(_) => return,
    };
    let mut again = vec![0; wire::MAX_HEADER_LEN];
    match wire::encode(&segment, HOSTS, &[payload], &mut again) {
        Ok(len) => again.truncate(len),
        // Options came without padding, and with ours there are too many of them.
        Err(EncodeError::Options(len)) if len > wire::MAX_OPTIONS_LEN => return,
        // The same, where the data leave no room for the padding.
        Err(EncodeError::TooLong(_)) if octets.len() > 65_495 => return,
        Err(other) => panic!("{other}"),
    }
    assert_eq!(again.len(), segment.header_len());
    again.extend_from_slice(payload);
    assert_eq!(wire::decode(&again, HOSTS), Ok((segment, payload)));
});

/// Puts the right checksum (RFC 9293 section 3.1) into `octets`, if they have a field for it.
fn repair(octets: &mut [u8]) {
    if octets.len() < wire::HEADER_LEN {
        return;
    }
    octets[16..18].fill(0);
    let pseudo = [192, 0, 2, 1, 192, 0, 2, 2, 0, wire::PROTOCOL];
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    let sum: u64 = pseudo.chunks(2).chain(octets.chunks(2)).map(word).sum::<u64>() + octets.len() as u64;
    let folded = if sum == 0 { 0 } else { (sum - 1) % 65_535 + 1 };
    octets[16..18].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}
