use proptest::prelude::*;
use std::vec::Vec;

use super::*;
use crate::framing::PROTOCOL_LCP;
use crate::lcp;

fn framings() -> impl Strategy<Value = Framing> {
    let accm = prop_oneof![Just(0), Just(u32::MAX), any::<u32>()];
    (any::<bool>(), accm, any::<bool>(), any::<bool>()).prop_map(|(long, accm, acfc, pfc)| {
        let fcs = if long { Fcs::Fcs32 } else { Fcs::Fcs16 };
        Framing { fcs, accm, acfc, pfc }
    })
}

/// Numbers that are protocols: the last octet odd, the one before even.
fn protocols() -> impl Strategy<Value = u16> {
    any::<u16>().prop_map(|number| (number & 0xFEFF) | 1)
}

/// Octets of which many mean something on a line.
fn octets(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let octet =
        prop_oneof![3 => any::<u8>(), 1 => Just(0x7D), 1 => Just(0x7E), 1 => 0_u8..32, 1 => Just(0xFF)];
    proptest::collection::vec(octet, 0..most)
}

/// Returns the packets of `line`, handed over in pieces of these sizes in turn.
fn take(deframer: &mut Deframer, line: &[u8], sizes: &[usize]) -> Vec<(u16, Vec<u8>)> {
    let (mut rest, mut packets) = (line, Vec::new());
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |&size| size.min(rest.len()));
        let (mut piece, behind) = rest.split_at(size);
        while let Some(packet) = deframer.next(&mut piece) {
            packets.push((packet.protocol, packet.information.to_vec()));
        }
        assert!(piece.is_empty());
        rest = behind;
    }
    packets
}

/// The counters of `deframer` without those of octets, which the naive deframer does not keep.
fn fates(deframer: &Deframer) -> DeframerCounters {
    DeframerCounters { removed_octets: 0, skipped_octets: 0, ..*deframer.counters() }
}

proptest! {
    #[test]
    fn what_is_written_is_read_whatever_the_pieces(
        framing in framings(),
        packets in proptest::collection::vec((protocols(), octets(60), any::<bool>()), 1..6),
        sizes in proptest::collection::vec(1_usize..20, 0..5),
    ) {
        let (mut line, mut meant) = (Vec::new(), Vec::new());
        for (k, (protocol, mut information, leading)) in packets.into_iter().enumerate() {
            // Frames of less than 4 octets (6) are none.
            information.extend([0; 3]);
            framing.encode(protocol, &information, leading || k == 0, &mut line);
            meant.push((protocol, information));
        }
        let mut deframer = Deframer::new(framing, 63);
        prop_assert_eq!(take(&mut deframer, &line, &sizes), meant.clone());
        let good = DeframerCounters { good: meant.len() as u64, ..DeframerCounters::default() };
        prop_assert_eq!(deframer.counters(), &good);
        prop_assert_eq!(naive::deframe(framing, 63, &line), (meant, good));
    }

    #[test]
    fn a_second_deframer_reads_any_line_alike(
        framing in framings(), mru in 0_u16..40,
        parts in proptest::collection::vec((protocols(), octets(50), 0_u8..5, any::<u16>(), any::<u8>()), 0..8),
        sizes in proptest::collection::vec(1_usize..20, 0..5),
    ) {
        let mut line = Vec::new();
        for (protocol, information, kind, at, change) in parts {
            let begin = line.len();
            match kind {
                // As it is; with one octet changed; with a header that may not fit.
                0 => framing.encode(protocol, &information, true, &mut line),
                1 => {
                    framing.encode(protocol, &information, false, &mut line);
                    let length = line.len() - begin;
                    line[begin + usize::from(at) % length] ^= change;
                }
                2 => Framing { fcs: framing.fcs, ..Framing::default() }.encode(at, &information, true, &mut line),
                3 => Framing { acfc: true, ..framing }.encode(0xFF00 | at, &information, true, &mut line),
                _ => line.extend(information),
            }
        }
        // A frame that is never ended has its fate only if it is too long.
        line.push(0x7E);
        let (packets, counters) = naive::deframe(framing, mru, &line);
        let mut whole = Deframer::new(framing, mru);
        prop_assert_eq!(&take(&mut whole, &line, &[]), &packets);
        prop_assert_eq!(fates(&whole), counters);
        let mut pieces = Deframer::new(framing, mru);
        prop_assert_eq!(&take(&mut pieces, &line, &sizes), &packets);
        prop_assert_eq!(pieces.counters(), whole.counters());
        prop_assert!(pieces.frame.capacity() <= usize::from(mru) + 8);
    }
}

/// A frame with this content and a good check sequence.
fn sealed(content: &[u8]) -> Vec<u8> {
    let mut frame = std::vec![0x7E];
    let check = Fcs::Fcs16.of(content, &[]);
    Framing::default().stuff(content, &mut frame);
    Framing::default().stuff(&check[..2], &mut frame);
    frame.push(0x7E);
    frame
}

/// Returns the counters of a deframer with full headers and an MRU of 4.
fn counted(line: &[u8]) -> DeframerCounters {
    let framing = Framing { accm: 1 << 0x13, ..Framing { accm: 0, ..Framing::UNCONFIGURED } };
    let mut deframer = Deframer::new(framing, 4);
    assert!(deframer.next(&mut { line }).is_none());
    *deframer.counters()
}

#[test]
fn every_fate_has_its_counter() {
    let none = DeframerCounters::default();
    assert_eq!(counted(&[0x7E; 9]), none);
    assert_eq!(counted(&[1, 2, 3, 0x7D, 0x13]), DeframerCounters { skipped_octets: 5, ..none });
    assert_eq!(counted(&[0x7E, 1, 2, 3, 4, 0x7D, 0x7E]), DeframerCounters { aborted: 1, ..none });
    assert_eq!(counted(&[0x7E, 0x7D, 0x7E]), DeframerCounters { aborted: 1, ..none });
    assert_eq!(counted(&sealed(&[0x21])), DeframerCounters { too_short: 1, ..none });
    assert_eq!(counted(&[0x7E, 0xFF, 0x03, 0, 0x21, 5, 5, 0x7E]), DeframerCounters { bad_fcs: 1, ..none });
    assert_eq!(counted(&sealed(&[0x21, 5, 5])), DeframerCounters { bad_address: 1, ..none });
    assert_eq!(counted(&sealed(&[0xFF, 0x13 ^ 0x10, 0x21, 5])), DeframerCounters { bad_protocol: 1, ..none });
    assert_eq!(counted(&sealed(&[0xFF, 0x04, 0, 0x21, 5])), DeframerCounters { bad_control: 1, ..none });
    assert_eq!(counted(&sealed(&[0xFF, 0x03, 0, 0x20, 5])), DeframerCounters { bad_protocol: 1, ..none });
    assert_eq!(counted(&sealed(&[0xFF, 0x03])), DeframerCounters { bad_protocol: 1, ..none });
    // Ten octets have room; of twelve and a flag the eleventh is one too many, and it and the twelfth are skipped.
    let long = [0x7E, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x7E];
    assert_eq!(counted(&long), DeframerCounters { too_long: 1, skipped_octets: 12 - 10, ..none });
    assert_eq!(counted(&[0x7E, 0x13, 0x13, 0x7E]), DeframerCounters { removed_octets: 2, ..none });
}

#[test]
fn short_headers_leave_no_room_for_more_than_the_mru() {
    let mut deframer = Deframer::new(Framing::default(), 4);
    let mut line = sealed(&[0x21, 1, 2, 3, 4]);
    line.extend(sealed(&[0x21, 1, 2, 3, 4, 5]));
    assert_eq!(take(&mut deframer, &line, &[]), [(0x21, std::vec![1, 2, 3, 4])]);
    assert_eq!(deframer.counters().too_long, 1);
}

#[test]
fn noise_in_the_receive_accm_is_removed_even_behind_an_escape() {
    let framing = Framing { accm: u32::MAX, acfc: false, pfc: false, ..Framing::default() };
    let mut line = Vec::new();
    framing.encode(PROTOCOL_LCP, &lcp::echo(lcp::Code::EchoRequest, 0, 5), true, &mut line);
    let noisy: Vec<u8> = line.iter().flat_map(|&octet| [octet, 0x11]).collect();
    let mut deframer = Deframer::new(framing, 1500);
    let packet = deframer.next(&mut &noisy[..]).expect("a good frame");
    assert_eq!(packet.information, lcp::echo(lcp::Code::EchoRequest, 0, 5));
    assert!(deframer.next(&mut &[0x11][..]).is_none());
    // One behind every octet but the closing flag's, which was not taken, and one more; none is outside a frame.
    assert_eq!(deframer.counters().removed_octets, line.len() as u64);
}

#[test]
fn a_frame_behind_a_lost_one_is_read() {
    let mut deframer = Deframer::new(Framing::default(), 100);
    let mut line = Vec::new();
    for octet in 0..4 {
        Framing::default().encode(0x21, &[octet; 20], false, &mut line);
    }
    // The first has no flag before it, and an error merges the third with the fourth.
    line[24 * 3 - 1] ^= 1;
    assert_eq!(line.split(|&octet| octet == 0x7E).count(), 3 + 1);
    assert_eq!(take(&mut deframer, &line, &[7]), [(0x21, std::vec![1; 20])]);
    let DeframerCounters { good, bad_fcs, skipped_octets, .. } = *deframer.counters();
    assert_eq!((good, bad_fcs, skipped_octets), (1, 1, 23));
}
