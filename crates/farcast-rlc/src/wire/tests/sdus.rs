//! SDUs that are cut into PDUs come out whole, whatever their lengths: a plain sender and a plain receiver, of which
//! only the sender asks the format what fits.

use std::vec::Vec;

use farcast_core::random::RandomStream;

use super::{data_pdu, encoded, owned, segment};
use crate::format::{Format, Placement};
use crate::pdu::{DataPdu, EndedBefore, LastEnd, Pdu};
use crate::wire::decode;

/// Cuts `sdus` into PDUs, each as full as it can be.
fn cut(sdus: &[Vec<u8>], format: Format) -> Vec<DataPdu<Vec<u8>>> {
    let mut pdus: Vec<DataPdu<Vec<u8>>> = Vec::new();
    let (mut open, mut room) = (data_pdu(0), format.room(None));
    let mut ended = None;
    for sdu in sdus {
        let mut rest = &sdu[..];
        while !rest.is_empty() {
            if room == 0 {
                let number = pdus.len() as u16 + 1;
                pdus.push(core::mem::replace(&mut open, data_pdu(number)));
                open.ended_before = core::mem::take(&mut ended);
                room = format.room(open.ended_before);
            }
            let first = open.segments.is_empty() && open.ended_before.is_none();
            let (octets, ends) = match format.place(room, rest.len()) {
                Placement::Part { octets } => (usize::from(octets), false),
                Placement::Exactly if format.header_extension && first => {
                    open.last_end = LastEnd::HeaderExtension;
                    (rest.len(), true)
                }
                Placement::Exactly => {
                    ended = Some(EndedBefore::Exactly);
                    (rest.len(), false)
                }
                Placement::OneOctetShort => {
                    ended = Some(EndedBefore::OneOctetShort);
                    (rest.len(), false)
                }
                Placement::Ends { .. } => (rest.len(), true),
            };
            open.segments.push(segment(rest[..octets].to_vec(), ends));
            room = match format.place(room, rest.len()) {
                Placement::Ends { left } => left,
                _ => 0,
            };
            rest = &rest[octets..];
        }
    }
    let number = pdus.len() as u16 + 1;
    pdus.push(open);
    if ended.is_some() {
        pdus.push(DataPdu { ended_before: ended, ..data_pdu(number) });
    }
    pdus
}

/// Joins the SDUs of `pdus`, which have arrived in order.
fn join(pdus: &[DataPdu<Vec<u8>>], format: Format) -> Vec<Vec<u8>> {
    let mut sdus = Vec::new();
    let mut open = Vec::new();
    let mut full = false;
    for pdu in pdus {
        if pdu.ended_before == Some(EndedBefore::OneOctetShort) && full {
            open.pop();
        }
        if pdu.ended_before.is_some() {
            sdus.push(core::mem::take(&mut open));
        }
        for segment in &pdu.segments {
            open.extend(&segment.data);
            if segment.ends {
                sdus.push(core::mem::take(&mut open));
            }
        }
        full = pdu.is_full(format);
    }
    assert!(open.is_empty(), "an SDU without an end");
    sdus
}

fn check(sdus: &[Vec<u8>], format: Format) -> Vec<DataPdu<Vec<u8>>> {
    let pdus = cut(sdus, format);
    assert_eq!(join(&pdus, format), sdus, "typed, {format:?}");
    let read: Vec<_> = pdus
        .iter()
        .map(|pdu| {
            let octets = encoded(&Pdu::Data(pdu.clone()), format).unwrap();
            match owned(decode(&octets, format).unwrap()) {
                Pdu::Data(pdu) => pdu,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert_eq!(join(&read, format), sdus, "read, {format:?}");
    pdus
}

fn sdu(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + len) as u8).collect()
}

#[test]
fn every_pair_of_lengths() {
    for pdu_octets in [6, 7, 12, 126, 127] {
        for header_extension in [false, true] {
            let format = Format { pdu_octets, header_extension };
            let most = usize::from(pdu_octets) + 4;
            for first in 1..most {
                for second in (1..most).step_by(if most > 100 { 3 } else { 1 }) {
                    check(&[sdu(first), sdu(second), sdu(2)], format);
                }
            }
        }
    }
}

#[test]
fn random_lengths() {
    let mut stream = RandomStream::derive(11, &[]);
    for pdu_octets in [6, 10, 42, 82, 126, 127, 130, 624, 1505] {
        for round in 0..60 {
            let most = [8, 60, 1500][round % 3];
            let sdus: Vec<_> = (0..30).map(|_| sdu(1 + stream.below(most) as usize)).collect();
            check(&sdus, Format { pdu_octets, header_extension: round % 2 == 0 });
        }
    }
}

/// Section 9.2.2.8 by hand, for the bearers of 40 octets of data.
#[test]
fn the_pdus_of_known_packets() {
    let short = Format::new(42);
    // 37 PDUs of 40 octets, and one more that only says that the packet has ended.
    let pdus = check(&[sdu(1480)], short);
    assert_eq!(pdus.len(), 38);
    assert_eq!((pdus[37].ended_before, pdus[37].segments.len()), (Some(EndedBefore::Exactly), 0));
    // With the header extension, the last octet of the 37th says so.
    assert_eq!(check(&[sdu(1480)], Format { header_extension: true, ..short }).len(), 37);
    // 37 PDUs, 20 octets with an indicator, and padding.
    let pdus = check(&[sdu(1500)], short);
    assert_eq!((pdus.len(), pdus[37].left(short)), (38, 42 - 2 - 1 - 20));
    // One octet short: the indicator is where the octet would be.
    let pdus = check(&[sdu(39), sdu(1)], short);
    assert_eq!((pdus.len(), pdus[0].segments.len(), pdus[0].left(short)), (2, 1, 0));
    // Two octets short: an indicator and an octet of the next packet.
    let pdus = check(&[sdu(38), sdu(2)], short);
    assert_eq!(pdus[0].segments[1].data.len(), 1);
}

/// The same with indicators of two octets.
#[test]
fn the_pdus_of_known_packets_with_long_indicators() {
    let long = Format::new(130);
    let ends = |len| {
        let pdus = check(&[sdu(len), sdu(5)], long);
        (pdus[0].segments.len(), pdus[1].ended_before)
    };
    let left =
        |len| DataPdu { segments: [segment(sdu(len), true)].into_iter().collect(), ..data_pdu(0) }.left(long);
    assert_eq!(ends(128), (1, Some(EndedBefore::Exactly)));
    assert_eq!(ends(127), (1, Some(EndedBefore::OneOctetShort)));
    assert_eq!(ends(126), (1, None));
    // The octet behind the end is no one's.
    assert_eq!((ends(125), left(125)), ((1, None), 0));
    assert_eq!((ends(124), left(124)), ((2, None), 2));
}
