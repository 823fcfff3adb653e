//! Messages that violate the specification, and the error with which each is refused.

use std::vec;
use std::vec::Vec;

use super::vectors::{Vector, all, get};
use super::{Parameters, assemble, assert_stable, parameters, with_length};
use crate::wire::{DecodeError, decode};

/// A parameter that no specification knows, of a length that needs padding.
const UNKNOWN: u16 = 0x7EEE;
/// The vectors that have ordered parameters, each of them mandatory.
const ORDERED: [&str; 12] = [
    "announce",
    "announce_minimal",
    "announce_ipv6",
    "registration",
    "registration_farcast",
    "registration_decline",
    "nak",
    "nak_partial",
    "nak_ipv6_parity",
    "ack",
    "done",
    "end",
];

fn kind(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[2], message[3]])
}

/// Returns the number of a message's leading parameters whose order is fixed.
fn ordered(message: &[u8]) -> usize {
    let registration = |parameter: &(u16, Vec<u8>)| parameter.0 < 0x7F00;
    match kind(message) {
        0x04 | 0x0B | 0x0F => 5,
        0x07 => 8,
        0x0A => parameters(message).iter().filter(|p| registration(p)).count(),
        0x15 => 4,
        _ => 0,
    }
}

/// Returns the IPv4 type of an address parameter, which errors name; other types are returned unchanged.
fn named(parameter: u16) -> u16 {
    match parameter {
        0x7F02 => 0x0120,
        0x7F04 => 0x011D,
        0x7F05 => 0x0118,
        0x7F0A => 0x010A,
        other => other,
    }
}

fn error(message: &[u8]) -> Option<DecodeError> {
    decode(message).err()
}

/// Returns the error of the vector `name` after `change` of its parameters.
fn changed(name: &str, change: impl FnOnce(&mut Parameters)) -> Option<DecodeError> {
    let vector = get(name);
    let mut found = parameters(&vector);
    change(&mut found);
    error(&assemble(kind(&vector), &found))
}

/// Returns the error of the vector `name` with another value of its parameter `kind`.
fn with_value(name: &str, kind: u16, value: &[u8]) -> Option<DecodeError> {
    changed(name, |found| {
        let parameter =
            found.iter_mut().find(|parameter| parameter.0 == kind).expect("a parameter of this type");
        parameter.1 = value.to_vec();
    })
}

fn value(parameter: u16) -> DecodeError {
    DecodeError::Value { parameter }
}

fn length(parameter: u16) -> DecodeError {
    DecodeError::ParameterLength { parameter }
}

#[test]
fn every_truncation_fails() {
    for Vector { name, bytes, .. } in all() {
        for len in 0..bytes.len() {
            let expected = if len < 12 { DecodeError::Truncated } else { DecodeError::Length };
            assert_eq!(error(&bytes[..len]), Some(expected), "{name} cut to {len}");
        }
    }
}

#[test]
fn truncation_with_a_matching_length_field_cuts_a_parameter_or_omits_it() {
    for Vector { name, bytes, .. } in all() {
        let whole = parameters(&bytes);
        let mut boundary = 12;
        let mut boundaries = vec![boundary];
        for (_, value) in &whole {
            boundary += 4 + value.len().next_multiple_of(4);
            boundaries.push(boundary);
        }
        for len in 0..bytes.len() {
            let cut = with_length(bytes[..len].to_vec());
            assert_stable(&cut);
            if !boundaries.contains(&len) {
                assert!(decode(&cut).is_err(), "{name} cut to {len}");
            }
        }
    }
}

#[test]
fn every_changed_byte_fails_or_makes_another_good_message() {
    for Vector { bytes, .. } in all() {
        for unchecked in [false, true] {
            let original = if unchecked { with_length(bytes.clone()) } else { bytes.clone() };
            for at in 0..original.len() {
                for flip in 1..=u8::MAX {
                    let mut message = original.clone();
                    message[at] ^= flip;
                    assert_stable(&message);
                }
            }
        }
    }
}

#[test]
fn the_checksum_notices_every_changed_byte() {
    for Vector { name, bytes, .. } in all() {
        if bytes[6..8] == [0, 0] {
            continue;
        }
        // A checksum with a half of 0 could be changed to "not used"; no vector has one.
        for at in 0..bytes.len() {
            for flip in 1..=u8::MAX {
                let mut message = bytes.clone();
                message[at] ^= flip;
                assert!(decode(&message).is_err(), "{name}: byte {at} ^ {flip}");
            }
        }
    }
}

#[test]
fn versions_other_than_1_are_refused() {
    for version in [0u16, 2, 0x0100, 0xFFFF] {
        let mut message = get("query");
        message[..2].copy_from_slice(&version.to_be_bytes());
        assert_eq!(error(&message), Some(DecodeError::Version(version)));
    }
}

#[test]
fn a_length_field_that_is_not_the_datagrams_length_is_refused() {
    for Vector { name, bytes, .. } in all() {
        let mut trailing = bytes.clone();
        trailing.extend([0; 4]);
        assert_eq!(error(&trailing), Some(DecodeError::Length), "{name}");
        for len in [0, bytes.len() - 4, bytes.len() + 4, 0xFFFF] {
            let mut message = bytes.clone();
            message[4..6].copy_from_slice(&(len as u16).to_be_bytes());
            assert_eq!(error(&message), Some(DecodeError::Length), "{name} said to be {len}");
        }
    }
}

#[test]
fn a_bad_checksum_is_refused() {
    for name in ["data_checksum", "announce", "nak", "completion_over"] {
        let mut message = get(name);
        message[7] ^= 1;
        assert_eq!(error(&message), Some(DecodeError::Checksum), "{name}");
        let mut message = get(name);
        *message.last_mut().expect("not empty") ^= 0x80;
        assert_eq!(error(&message), Some(DecodeError::Checksum), "{name}");
    }
}

#[test]
fn a_checksum_that_comes_out_as_0_is_written_in_its_other_form() {
    // The words 0001 0008 000C add up to 0015: with a transmission of FFEA the sum is FFFF, its complement 0,
    // which would mean "not used".
    let message = [0, 1, 0, 8, 0, 12, 0xFF, 0xFF, 0, 0, 0xFF, 0xEA];
    let packet = decode(&message).expect("a good checksum");
    assert_eq!(super::encode_whole(&packet, &message), message);
    let mut wrong = message;
    wrong[6..8].copy_from_slice(&[0xFF, 0xFE]);
    assert_eq!(error(&wrong), Some(DecodeError::Checksum));
}

#[test]
fn types_that_are_not_assigned_are_refused() {
    for kind in [0, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x0105, 0xFFFF] {
        assert_eq!(error(&assemble(kind, &[])), Some(DecodeError::Type(kind)));
    }
}

#[test]
fn mandatory_parameters_must_be_there() {
    let mandatory: [(&str, &[u16]); 13] = [
        ("query", &[0x0102, 0x0115]),
        ("join", &[0x0102, 0x0116, 0x0115]),
        ("leave", &[0x0116]),
        ("echo", &[0x010D]),
        ("echo_response", &[0x010D]),
        ("announce", &[0x0100, 0x0101, 0x0102, 0x0105, 0x0108, 0x011A, 0x0109, 0x010C, 0x011B]),
        ("announce_ipv6", &[0x011B]),
        ("data", &[0x0117, 0x0103, 0x010A, 0x0119]),
        ("data_parity", &[0x0117, 0x0103, 0x7F0A, 0x0119]),
        ("status_request", &[0x0117, 0x0104, 0x010B, 0x0122]),
        ("abort", &[0x0106]),
        ("quit", &[0x0106]),
        ("grant", &[0x0107, 0x7F0F]),
    ];
    for (name, kinds) in mandatory {
        for &kind in kinds {
            let found = changed(name, |found| found.retain(|parameter| parameter.0 != kind));
            assert_eq!(
                found,
                Some(DecodeError::Missing { parameter: named(kind) }),
                "{name} without {kind:#06x}"
            );
        }
    }
}

#[test]
fn ordered_parameters_must_be_there() {
    for name in ORDERED {
        let vector = get(name);
        let whole = parameters(&vector);
        for at in 0..ordered(&vector) {
            let parameter = named(whole[at].0);
            let missing = Some(DecodeError::Missing { parameter });
            assert_eq!(changed(name, |found| found.truncate(at)), missing, "{name} up to {parameter:#06x}");
            let expected = if at + 1 == whole.len() {
                missing
            } else {
                Some(DecodeError::OutOfOrder { expected: parameter })
            };
            let without = changed(name, |found| drop(found.remove(at)));
            assert_eq!(without, expected, "{name} without {parameter:#06x}");
        }
    }
}

#[test]
fn ordered_parameters_must_be_in_order() {
    for name in ORDERED {
        let vector = get(name);
        let whole = parameters(&vector);
        for at in 1..ordered(&vector) {
            let expected = named(whole[at - 1].0);
            let swapped = changed(name, |found| found.swap(at - 1, at));
            assert_eq!(swapped, Some(DecodeError::OutOfOrder { expected }), "{name}, {at}");
        }
    }
}

#[test]
fn each_client_of_an_aggregated_registration_is_complete_and_in_order() {
    let name = "registration_aggregated";
    let expected = |expected| Some(DecodeError::OutOfOrder { expected });
    // The third parameter is the first client, the fourth its serial number, the fifth its response.
    assert_eq!(changed(name, |found| found.swap(2, 3)), expected(0x0107));
    assert_eq!(changed(name, |found| drop(found.remove(4))), expected(0x011C));
    assert_eq!(changed(name, |found| drop(found.pop())), Some(DecodeError::Missing { parameter: 0x011C }));
    assert_eq!(changed(name, |found| found.truncate(9)), Some(DecodeError::Missing { parameter: 0x011C }));
    // An aggregator need not number its clients.
    assert_eq!(changed(name, |found| found.retain(|parameter| parameter.0 != 0x011F)), None);
}

#[test]
fn parameters_without_an_order_may_come_in_any() {
    for Vector { name, bytes, message } in all() {
        let fixed = if kind(&bytes) == 0x0A { continue } else { ordered(&bytes) };
        let mut found = parameters(&bytes);
        found[fixed..].reverse();
        let packet = decode(&assemble(kind(&bytes), &found)).expect("any order is good");
        assert_eq!(packet.message.body, message.body, "{name}");
    }
}

#[test]
fn no_parameter_comes_twice() {
    for Vector { name, bytes, .. } in all() {
        let whole = parameters(&bytes);
        for (parameter, value) in whole.iter().skip(ordered(&bytes)) {
            let twice = changed(name, |found| found.push((*parameter, value.clone())));
            assert_eq!(twice, Some(DecodeError::Repeated { parameter: *parameter }), "{name}");
        }
    }
    // Two forms of one parameter count as a repetition.
    let both = changed("data", |found| found.push((0x7F0A, vec![0, 0, 0, 1])));
    assert_eq!(both, Some(DecodeError::Repeated { parameter: 0x7F0A }));
    let both = changed("leave", |found| found.push((0x7F06, vec![0xFF; 16])));
    assert_eq!(both, Some(DecodeError::Repeated { parameter: 0x7F06 }));
}

#[test]
fn unknown_parameters_are_skipped() {
    for Vector { name, bytes, message } in all() {
        let whole = parameters(&bytes);
        for at in ordered(&bytes)..=whole.len() {
            for len in 0..=5 {
                let mut found = whole.clone();
                found.insert(at, (UNKNOWN, vec![0xA5; len]));
                let more = assemble(kind(&bytes), &found);
                let packet = decode(&more).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(packet.message.body, message.body, "{name}");
                let payload = decode(&bytes).expect("a vector").payload;
                assert_eq!(more[packet.payload], bytes[payload], "{name}");
            }
        }
    }
}

#[test]
fn parameters_of_fixed_length_have_that_length() {
    let fixed = |kind: u16| match kind {
        0x0100..=0x0124 => ![0x0102, 0x010E, 0x0112, 0x0113, 0x0114, 0x0119, 0x011A, 0x0123].contains(&kind),
        0x7F07 | 0x7F0D | 0x7F17 => false,
        other => other > 0x7F00,
    };
    for Vector { name, bytes, .. } in all() {
        for (kind, value) in parameters(&bytes) {
            let len = value.len();
            for wrong in [0, len - 1, len + 1, len + 4, 2 * len] {
                let mut value = value.clone();
                value.resize(wrong, 1);
                if fixed(kind) {
                    assert_eq!(
                        with_value(name, kind, &value),
                        Some(length(kind)),
                        "{name}: {kind:#06x} of {wrong}"
                    );
                }
            }
        }
    }
}

#[test]
fn parameters_of_variable_length_keep_their_limits() {
    let limits = [
        ("query", 0x0102, 64),
        ("join", 0x0102, 64),
        ("announce", 0x0102, 64),
        ("announce", 0x011A, 256),
        ("announce", 0x0123, 64),
        ("echo", 0x010E, 4096),
        ("echo_response", 0x010E, 4096),
        ("registration_farcast", 0x7F07, 64),
        ("abort_text", 0x7F0D, 256),
    ];
    for (name, kind, most) in limits {
        assert_eq!(with_value(name, kind, &[]), Some(length(kind)), "{name}: {kind:#06x}");
        assert_eq!(with_value(name, kind, &vec![b'x'; most]), None, "{name}: {kind:#06x}");
        assert_eq!(with_value(name, kind, &vec![b'x'; most + 1]), Some(length(kind)), "{name}: {kind:#06x}");
    }
}

#[test]
fn host_lists_are_whole_records() {
    for name in ["join", "leave", "echo", "status_request", "completion", "abort"] {
        for len in [1, 3, 5, 6] {
            assert_eq!(with_value(name, 0x0114, &vec![1; len]), Some(length(0x0114)), "{name}");
        }
    }
    for len in [4, 7, 12] {
        assert_eq!(with_value("announce", 0x0113, &vec![b'A'; len]), Some(length(0x0113)));
    }
}

#[test]
fn host_sets_are_whole_and_in_order() {
    let set = |octets: &[u8]| with_value("announce_many", 0x7F17, &[&[b'P', 0, 0, 0], octets].concat());
    let largest = [0x8F, 0xFF, 0xFF, 0xFF, 0x7F];
    for good in [&[5][..], &largest, &[0; 2000], &[0x7F, 0x81, 0, 0]] {
        assert_eq!(set(good), None, "{good:?}");
    }
    let wrong: [&[u8]; 9] = [
        // Nobody, a needless octet, and one that is missing.
        &[],
        &[0x80, 1],
        &[5, 0x80, 0],
        &[0x81],
        &[5, 0xFF],
        // Ids beyond the largest.
        &[0x90, 0x80, 0x80, 0x80, 0],
        &[0x8F, 0xFF, 0xFF, 0xFF, 0x7F, 0],
        &[0, 0x8F, 0xFF, 0xFF, 0xFF, 0x7F],
        &[0xFF; 300],
    ];
    for octets in wrong {
        assert_eq!(set(octets), Some(value(0x7F17)), "{octets:?}");
    }
    for state in [[0, 0, 0, 0], [b'p', 0, 0, 0], [b'D', 0, 0, 0], [b'D', 9, 0, 0]] {
        let octets = [&state[..], &[5]].concat();
        assert_eq!(with_value("announce_many", 0x7F17, &octets), Some(value(0x7F17)), "{state:?}");
    }
    for len in 0..4 {
        assert_eq!(with_value("announce_many", 0x7F17, &vec![b'P'; len]), Some(length(0x7F17)), "{len}");
    }
    let twice = changed("announce_many", |found| found.push((0x7F17, vec![b'P', 0, 0, 0, 5])));
    assert_eq!(twice, Some(DecodeError::Repeated { parameter: 0x7F17 }));
}

#[test]
fn parameters_that_run_over_the_end_are_refused() {
    // A value that is longer than the rest of the message, by one byte and by much.
    for len in [5u16, 8, 0xFFFF] {
        let mut message = get("quit_draft");
        message[14..16].copy_from_slice(&len.to_be_bytes());
        assert_eq!(error(&with_length(message)), Some(DecodeError::Truncated), "{len}");
    }
    // Half a parameter's header after the last parameter.
    for rest in 1..4 {
        let mut message = get("quit_draft");
        message.resize(message.len() + rest, 0);
        assert_eq!(error(&with_length(message)), Some(DecodeError::Truncated), "{rest}");
    }
    // A value without its padding, where it ends the message.
    let mut message = get("abort_text");
    message.pop();
    assert_eq!(error(&with_length(message)), Some(DecodeError::Truncated));
}

#[test]
fn numbers_that_count_from_1_are_not_0() {
    for (name, kind) in [("data", 0x0103), ("data", 0x010A), ("data_parity", 0x7F0A), ("nak", 0x0103)] {
        assert_eq!(with_value(name, kind, &[0; 4]), Some(value(kind)), "{name}: {kind:#06x}");
    }
    for (name, kind) in [("status_request", 0x0104), ("status_request", 0x010B), ("ack", 0x0104)] {
        let from_0 = [0, 0, 0, 0, 0, 0, 0, 4];
        assert_eq!(with_value(name, kind, &from_0), Some(value(kind)), "{name}: {kind:#06x}");
    }
}

#[test]
fn ranges_do_not_end_before_they_begin() {
    for (name, kind) in [("status_request", 0x0104), ("status_request", 0x010B), ("ack", 0x0104)] {
        for range in
            [[0, 0, 0, 2, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0, 0, 0], [0xFF, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF]]
        {
            assert_eq!(with_value(name, kind, &range), Some(value(kind)), "{name}: {kind:#06x} {range:?}");
        }
        let one = [0, 0, 0, 2, 0, 0, 0, 2];
        assert_eq!(with_value(name, kind, &one), None, "{name}: {kind:#06x}");
    }
}

#[test]
fn event_count_and_hash_agree_with_the_event_list() {
    let mismatch = Some(DecodeError::EventList);
    for name in ["nak", "nak_partial", "nak_ipv6_parity"] {
        assert_eq!(with_value(name, 0x0110, &[0, 0, 0, 5]), mismatch, "{name}");
        assert_eq!(with_value(name, 0x0110, &[0xFF; 4]), mismatch, "{name}");
        assert_eq!(with_value(name, 0x0111, &[0; 16]), mismatch, "{name}");
        // As many bits, at other places: the count agrees and the hash does not.
        let list = parameters(&get(name)).into_iter().find(|p| p.0 == 0x0112).expect("an event list").1;
        let reversed: Vec<u8> = list.iter().map(|byte| byte.rotate_left(1)).collect();
        assert_eq!(with_value(name, 0x0112, &reversed), mismatch, "{name}");
        // The same bits in a longer list: a block of another size.
        let longer = [&list[..], &[0]].concat();
        assert_eq!(with_value(name, 0x0112, &longer), mismatch, "{name}");
        assert_eq!(with_value(name, 0x0112, &[]), mismatch, "{name}");
    }
}

#[test]
fn the_64_bit_size_ends_in_the_32_bit_one() {
    let wrong = Some(value(0x7F01));
    assert_eq!(with_value("announce_ipv6", 0x7F01, &[0, 0, 0, 1, 0x40, 0, 0, 1]), wrong);
    assert_eq!(with_value("announce_ipv6", 0x7F01, &[0; 8]), wrong);
    assert_eq!(with_value("announce_ipv6", 0x011B, &[0; 4]), wrong);
    assert_eq!(with_value("announce_ipv6", 0x7F01, &[0xFF, 0, 0, 0, 0x40, 0, 0, 0]), None);
}

#[test]
fn announce_options_have_a_model_and_the_mark_of_files() {
    for options in [[b'F', 0, 5, 0], [b'F', 4, 5, 0], [b'A', 1, 5, 0], [0, 1, 5, 0], [b'f', 1, 5, 0]] {
        assert_eq!(with_value("announce", 0x0101, &options), Some(value(0x0101)), "{options:?}");
    }
}

#[test]
fn group_options_are_files_or_all() {
    for name in ["query", "join"] {
        for mark in [0, b'D', b'a', 0xFF] {
            assert_eq!(with_value(name, 0x0115, &[mark, 0, 0, 0]), Some(value(0x0115)), "{name}: {mark}");
        }
    }
}

#[test]
fn answers_and_standings_have_their_marks_and_known_reasons() {
    for answer in [[0, 0, 0, 0], [b'P', 0, 0, 0], [b'D', 0, 0, 0], [b'D', 9, 0, 0], [b'D', 0xEC, 0, 0]] {
        assert_eq!(with_value("registration_decline", 0x011C, &answer), Some(value(0x011C)), "{answer:?}");
    }
    for standing in [[0, 0, 0, 0], [b'a', 0, 0, 0], [b'D', 0, 0, 0], [b'D', 9, 0, 0]] {
        let record = [&[198, 51, 100, 7], &standing[..]].concat();
        assert_eq!(with_value("announce", 0x0113, &record), Some(value(0x0113)), "{standing:?}");
    }
}

#[test]
fn status_types_are_1_and_2() {
    for status in [[0, 0, 0, 0], [0, 0, 0, 3], [1, 0, 0, 1]] {
        assert_eq!(with_value("status_request", 0x0122, &status), Some(value(0x0122)), "{status:?}");
    }
}

#[test]
fn ports_have_16_bits() {
    for (name, kind) in [("announce", 0x0121), ("announce", 0x011E), ("end", 0x011E), ("nak", 0x0121)] {
        assert_eq!(with_value(name, kind, &[0, 1, 0, 0]), Some(value(kind)), "{name}: {kind:#06x}");
        assert_eq!(with_value(name, kind, &[0, 0, 0xFF, 0xFF]), None, "{name}: {kind:#06x}");
    }
}

#[test]
fn texts_are_utf_8() {
    for (name, kind) in
        [("query", 0x0102), ("announce", 0x011A), ("registration_farcast", 0x7F07), ("abort_text", 0x7F0D)]
    {
        assert_eq!(with_value(name, kind, &[b'a', 0xFF]), Some(value(kind)), "{name}: {kind:#06x}");
    }
}

#[test]
fn data_carries_at_least_a_byte() {
    for name in ["data", "data_checksum", "data_parity"] {
        assert_eq!(with_value(name, 0x0119, &[]), Some(length(0x0119)), "{name}");
        assert_eq!(with_value(name, 0x0119, &[0]), None, "{name}");
    }
}

#[test]
fn data_may_be_of_pass_0() {
    // If receivers compare, the list of files is sent before the first pass.
    assert_eq!(with_value("data", 0x0117, &[0; 4]), None);
}

#[test]
fn unknown_parameters_are_skipped_between_ordered_ones() {
    for Vector { name, bytes, .. } in all() {
        for at in 0..ordered(&bytes) {
            assert_eq!(changed(name, |found| found.insert(at, (UNKNOWN, vec![0; 4]))), None, "{name}, {at}");
        }
    }
}

#[test]
fn no_ordered_parameter_comes_twice() {
    for name in ORDERED {
        let vector = get(name);
        for (parameter, value) in parameters(&vector).into_iter().take(ordered(&vector)) {
            if (kind(&vector), parameter) == (0x0A, 0x0107) {
                // Another Client Address begins another entry.
                continue;
            }
            let twice = changed(name, |found| found.push((parameter, value)));
            assert_eq!(twice, Some(DecodeError::Repeated { parameter }), "{name}");
        }
    }
}

#[test]
fn an_echo_response_has_no_host_list() {
    let mut echo = get("echo");
    echo[3] = 0x0E;
    let packet = decode(&with_length(echo)).expect("the host list is skipped like any parameter of no use");
    assert_eq!(packet.message, decode(&get("echo_response")).expect("a vector").message);
}

#[test]
fn user_data_may_be_any_octets() {
    assert_eq!(with_value("announce", 0x0123, &[0xFF, 0x00, 0xC0]), None);
}
