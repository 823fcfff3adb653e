//! Messages that violate the draft, and the error for each.

use std::vec::Vec;

use super::assert_stable;
use super::vectors::{all, octets};
use crate::message::{Body, FromSender};
use crate::wire::{DecodeError, decode};

fn get(name: &str) -> Vec<u8> {
    let (_, _, hex, payload) = all().into_iter().find(|(of, ..)| *of == name).expect("a vector");
    octets(hex, payload)
}

/// Returns the error of the vector `name` with the octet `at` replaced.
fn with(name: &str, at: usize, octet: u8) -> Option<DecodeError> {
    let mut datagram = get(name);
    datagram[at] = octet;
    assert_stable(&datagram);
    decode(&datagram).err()
}

#[test]
fn what_is_cut_short_is_refused_or_says_less() {
    for (name, _, hex, payload) in all() {
        let header = octets(hex, 0).len();
        let whole = octets(hex, payload);
        for len in 0..header {
            assert_stable(&whole[..len]);
            let lists = [
                "INFO",
                "INFO that vouches",
                "CMD(SQUELCH)",
                "CMD(ACK_REQ)",
                "CMD(GRTT_REQ)",
                "CMD(NACK_ADV)",
                "NACK",
            ];
            let error = decode(&whole[..len]).err();
            assert!(error.is_some() || lists.contains(&name), "{name} cut to {len}");
        }
    }
}

/// Vouched data in another format are part of the name, as for any other implementation.
#[test]
fn what_does_not_vouch_is_a_name() {
    let said = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut datagram = get("INFO that vouches");
        change(&mut datagram);
        assert_stable(&datagram);
        let Body::Sender(_, FromSender::Info(info)) = decode(&datagram).expect("INFO").message.body else {
            panic!("INFO")
        };
        (info.content.len(), info.vouched.is_some())
    };
    assert_eq!(said(&|_| ()), (4, true));
    assert_eq!(said(&|info| info[26] = b'.'), (51, false), "no end of a name");
    assert_eq!(said(&|info| info[30] = b'T'), (51, false), "another mark");
    assert_eq!(said(&|info| info[31] = 2), (51, false), "a mode that no file has");
    assert_eq!(said(&|info| info.push(0)), (52, false), "longer");
    assert_eq!(said(&|info| info.truncate(72)), (50, false), "shorter");
    // Of an object without a name.
    assert_eq!(said(&|info| _ = info.drain(22..26)), (0, true));
}

#[test]
fn each_field_is_refused_by_its_reason() {
    assert_eq!(with("DATA", 1, 8), Some(DecodeError::Version(8)));
    assert_eq!(with("DATA", 0, 1), Some(DecodeError::Type(1)), "REPORT says nothing");
    assert_eq!(with("DATA", 0, 8), Some(DecodeError::Type(8)));
    assert_eq!(with("DATA", 16, 0), Some(DecodeError::Block));
    assert_eq!(with("DATA", 23, 0xE9), Some(DecodeError::Offset(1001)), "no segment begins there");
    assert_eq!(with("DATA", 20, 1), Some(DecodeError::Offset(0x0100_03E8)), "past the end");
    assert_eq!(with("DATA", 18, 0x94), Some(DecodeError::Offset(1000)), "a runt of segments of 21,845");
    assert_eq!(
        with("DATA that is a runt", 18, 0x90),
        Some(DecodeError::Offset(2000)),
        "502 octets are no segment"
    );
    assert_eq!(with("DATA that is a runt", 24, 0), Some(DecodeError::Offset(2000)), "segments of 232");
    assert_eq!(with("PARITY of a full block", 24, 1), Some(DecodeError::Symbol(1)), "a segment");
    assert_eq!(with("PARITY of a full block", 24, 3), Some(DecodeError::Symbol(3)), "more than there is");
    assert_eq!(with("PARITY of a full block", 23, 1), Some(DecodeError::Offset(1)));
    assert_eq!(with("PARITY of the last block, which has one segment", 24, 2), Some(DecodeError::Symbol(2)));
    assert_eq!(with("CMD(FLUSH)", 9, 6), Some(DecodeError::Command(6)));
    assert_eq!(with("ACK of a probe", 21, 3), Some(DecodeError::Ack(3)));
    assert_eq!(with("NACK", 27, 5), Some(DecodeError::Request(5)));
    assert_eq!(with("NACK", 26, 0x14), Some(DecodeError::Truncated), "more requests than there are");
    assert_eq!(with("NACK", 26, 0x12), Some(DecodeError::Truncated), "what is left is no object");
    assert_eq!(with("NACK", 35, 0xFF), Some(DecodeError::RequestLength(19)), "a mask that is longer");
    let mut info = get("INFO");
    (info[20], info[21]) = (0, 3);
    assert_eq!(decode(&info).err(), Some(DecodeError::Payload(4)), "longer than a segment");
    let mut list = get("CMD(ACK_REQ)");
    list.push(0);
    assert_eq!(decode(&list).err(), Some(DecodeError::ListLength(5)));
    let mut empty = get("DATA");
    empty.truncate(24);
    assert_eq!(decode(&empty).err(), Some(DecodeError::Payload(0)));
    let mut long = get("DATA");
    long.resize(24 + 70_000, 0);
    assert_eq!(decode(&long).err(), Some(DecodeError::Payload(70_000)));
    // A runt in an object whose segments have no length.
    let mut none = get("DATA that is a runt");
    (none[24], none[25], none[22], none[23]) = (0, 0, 0, 0);
    assert!(decode(&none).is_err());
}
