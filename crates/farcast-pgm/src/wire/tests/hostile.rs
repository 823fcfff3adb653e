//! Messages that violate RFC 3208, and the error for each.

use std::vec::Vec;

use super::vectors::{all, get};
use crate::wire::{DecodeError, decode, finish};

/// Returns the error of the vector `name` after `change`, with its checksum corrected.
fn with(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Option<DecodeError> {
    let mut bytes = get(name);
    change(&mut bytes);
    finish(&mut bytes);
    decode(&bytes).err()
}

fn set(at: usize, octet: u8) -> impl FnOnce(&mut Vec<u8>) {
    move |bytes| bytes[at] = octet
}

#[test]
fn what_is_cut_short_or_longer_is_refused() {
    for vector in all() {
        for len in 0..vector.bytes.len() {
            let mut bytes = vector.bytes[..len].to_vec();
            finish(&mut bytes);
            assert!(decode(&bytes).is_err(), "{} cut to {len}", vector.name);
        }
        let mut bytes = vector.bytes.clone();
        bytes.push(0);
        finish(&mut bytes);
        assert!(matches!(decode(&bytes), Err(DecodeError::TsduLength { .. })), "{}", vector.name);
    }
}

#[test]
fn every_octet_is_under_the_checksum() {
    for vector in all().into_iter().filter(|vector| decode(&vector.bytes).is_ok()) {
        for at in 0..vector.bytes.len() {
            let mut bytes = vector.bytes.clone();
            bytes[at] ^= 0x01;
            assert!(matches!(decode(&bytes), Err(DecodeError::Checksum(_))), "{} at {at}", vector.name);
        }
        // Without one: data are refused, all else is taken.
        let mut bytes = vector.bytes.clone();
        bytes[6..8].fill(0);
        let is_data = matches!(bytes[4], 4 | 5);
        assert_eq!(decode(&bytes).err(), is_data.then_some(DecodeError::Checksum(0)), "{}", vector.name);
    }
}

#[test]
fn each_field_is_refused_by_its_reason() {
    assert_eq!(with("spm_initial", set(4, 0x40)), Some(DecodeError::Version(4)));
    assert_eq!(with("spm_initial", set(4, 0x03)), Some(DecodeError::Type(3)));
    assert_eq!(with("spm_initial", set(29, 7)), Some(DecodeError::Family(7)));
    assert_eq!(with("spm_initial", set(29, 2)), Some(DecodeError::Truncated), "an IPv6 address is longer");
    assert_eq!(with("spm_initial", set(15, 4)), Some(DecodeError::TsduLength { said: 4, found: 0 }));
    assert_eq!(with("spm_initial", set(5, 1)), Some(DecodeError::Truncated), "options that are not there");
    assert_eq!(with("spm_fin", set(5, 0)), Some(DecodeError::TsduLength { said: 0, found: 8 }));
    assert_eq!(with("spm_parity_prm", set(47, 3)), Some(DecodeError::GroupSize(3)));
    assert_eq!(with("made_rdata_paritygrp", set(35, 0)), Some(DecodeError::GroupSize(0)));
}

#[test]
fn options_that_lie_about_their_lengths_are_refused() {
    // The option behind OPT_LENGTH begins at 40.
    assert_eq!(with("spm_fin", set(36, 1)), Some(DecodeError::OptionsLength(8)));
    assert_eq!(with("spm_fin", set(37, 8)), Some(DecodeError::OptionsLength(8)));
    assert_eq!(with("spm_fin", set(39, 200)), Some(DecodeError::OptionsLength(200)));
    assert_eq!(with("spm_fin", set(39, 3)), Some(DecodeError::OptionsLength(3)));
    assert_eq!(with("spm_fin", set(40, 0x0E)), Some(DecodeError::NoEnd));
    for len in [0, 3, 5, 255] {
        let error = with("spm_fin", set(41, len));
        assert_eq!(error, Some(DecodeError::OptionLength(0x0E)), "{len}");
    }
    assert_eq!(with("nak_list", set(41, 4)), Some(DecodeError::OptionLength(2)), "a list of nothing");
    // Two of a kind.
    assert_eq!(with("made_ncf_unreach", set(44, 0x8B)), Some(DecodeError::Repeated(0x0B)));
    // Seventeen.
    let many = |bytes: &mut Vec<u8>| {
        bytes.truncate(36);
        bytes.extend([0, 4, 0, 4 + 17 * 4]);
        bytes.extend((0..17u8).flat_map(|n| [if n == 16 { 0xD0 } else { 0x40 + n }, 4, 0, 0]));
    };
    assert_eq!(with("spm_fin", many), Some(DecodeError::Options));
    // Unknown ones are skipped.
    assert_eq!(with("spm_fin", set(40, 0xC1)), None);
}
