use proptest::prelude::*;

use super::*;

/// The IPv4 header of a Linux kernel (6.18) before a segment of 35 octets.
const CAPTURED: [u8; 20] =
    [0x45, 0x00, 0x00, 0x37, 0xD4, 0xD7, 0x40, 0x00, 0x40, 0x06, 0xE1, 0xE5, 192, 0, 2, 2, 192, 0, 2, 1];

fn v4() -> Addresses {
    Addresses::V4 { source: [192, 0, 2, 2].into(), destination: [192, 0, 2, 1].into() }
}

fn v6() -> Addresses {
    let address = |last| [0x2001, 0xDB8, 0, 0, 0, 0, 0, last].into();
    Addresses::V6 { source: address(1), destination: address(2) }
}

/// The header checksum of RFC 791 section 3.1, word by word, its own field taken as 0.
fn naive_checksum(header: &[u8]) -> u16 {
    let word =
        |(at, pair): (usize, &[u8])| if at == 5 { 0 } else { u32::from(pair[0]) * 256 + u32::from(pair[1]) };
    let sum: u32 = header.chunks(2).enumerate().map(word).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    !((sum & 0xFFFF) + (sum >> 16)) as u16
}

fn corrected(mut packet: Vec<u8>) -> Vec<u8> {
    let len = usize::from(packet[0] & 0x0F) * 4;
    let sum = naive_checksum(&packet[..len]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// A packet of the kernel's with `payload` octets behind the header.
fn captured(payload: usize) -> Vec<u8> {
    [&CAPTURED[..], &vec![7; payload]].concat()
}

/// The captured packet with one field different.
fn changed(at: usize, value: u8) -> Vec<u8> {
    let mut packet = captured(35);
    packet[at] = value;
    corrected(packet)
}

#[test]
fn a_kernels_packet_is_read() {
    let packet = captured(35);
    let read = decode(&packet).expect("a packet");
    assert_eq!(read, Packet { addresses: v4(), protocol: 6, ecn: 0, payload: &[7; 35] });
    assert_eq!(naive_checksum(&CAPTURED), 0xE1E5);
}

#[test]
fn what_a_link_adds_behind_is_no_payload() {
    let packet = captured(46);
    assert_eq!(decode(&packet).expect("a packet").payload.len(), 35);
}

#[test]
fn options_are_passed_over() {
    // Router alert (RFC 2113) in a header of six words.
    let mut packet = captured(0);
    packet.splice(20..20, [0x94, 0x04, 0, 0, 1, 2, 3]);
    packet[0] = 0x46;
    packet[3] = 27;
    assert_eq!(decode(&corrected(packet)).expect("a packet").payload, [1, 2, 3]);
}

#[test]
fn ecn_and_other_protocols_are_told() {
    assert_eq!(decode(&changed(1, 0xFF)).expect("a packet").ecn, 3);
    assert_eq!(decode(&changed(9, 1)).expect("a packet").protocol, 1);
}

#[test]
fn what_is_no_packet_is_refused_with_its_reason() {
    assert_eq!(decode(&[]), Err(PacketError::Truncated));
    let packet = captured(35);
    for len in 1..packet.len() {
        assert_eq!(decode(&packet[..len]), Err(PacketError::Truncated), "{len}");
    }
    for version in (0..16).filter(|version| ![4, 6].contains(version)) {
        assert_eq!(decode(&changed(0, version << 4 | 5)), Err(PacketError::Version));
    }
    assert_eq!(decode(&changed(0, 0x44)), Err(PacketError::Header));
    let mut damaged = packet;
    damaged[8] -= 1;
    assert_eq!(decode(&damaged), Err(PacketError::Checksum));
}

#[test]
fn fragments_are_refused() {
    // More fragments; a fragment offset.
    for (at, value) in [(6, 0x20), (7, 1)] {
        assert_eq!(decode(&changed(at, value)), Err(PacketError::Fragment));
    }
    // An IPv6 fragment header with an offset (RFC 8200 section 4.5).
    let mut packet = six(&[6, 0, 0, 8, 0, 0, 0, 1, 9, 9], 44);
    assert_eq!(decode(&packet), Err(PacketError::Fragment));
    packet[42..44].fill(0);
    assert_eq!(decode(&packet).expect("the whole in one piece").payload, [9, 9]);
}

/// An IPv6 packet as RFC 8200 section 3 has it.
fn six(behind: &[u8], next: u8) -> Vec<u8> {
    let Addresses::V6 { source, destination } = v6() else { unreachable!("IPv6") };
    let mut packet = vec![0x60, 0, 0, 0, 0, behind.len() as u8, next, 64];
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(behind);
    packet
}

#[test]
fn extension_headers_are_passed_over() {
    // Hop-by-hop options with padding of six octets, then TCP.
    let packet = six(&[6, 0, 1, 4, 0, 0, 0, 0, 1, 2, 3], 0);
    let read = decode(&packet).expect("a packet");
    assert_eq!(read, Packet { addresses: v6(), protocol: 6, ecn: 0, payload: &[1, 2, 3] });
}

#[test]
fn headers_are_as_the_rfcs_draw_them() {
    let mut out = [0xEE; MAX_HEADER_LEN];
    assert_eq!(encode_header(v4(), 35, &mut out), Some(20));
    let mut expected = CAPTURED;
    // No identification: the packet is never fragmented.
    expected[4..6].fill(0);
    assert_eq!(out[..20], corrected(expected.to_vec()));
    assert_eq!(out[20..], [0xEE; 20]);
    assert_eq!(encode_header(v6(), 3, &mut out), Some(40));
    assert_eq!(out[..], six(&[1, 2, 3], 6)[..40]);
}

#[test]
fn a_packet_holds_so_much() {
    let mut out = [0; MAX_HEADER_LEN];
    assert_eq!(encode_header(v4(), 65_515, &mut out), Some(20));
    assert_eq!(encode_header(v4(), 65_516, &mut out), None);
    assert_eq!(encode_header(v6(), 65_535, &mut out), Some(40));
    assert_eq!(encode_header(v6(), 65_536, &mut out), None);
}

proptest! {
    #[test]
    fn a_header_comes_back_as_it_was(source: [u8; 4], destination: [u8; 4], payload in 0..3000usize) {
        let addresses = Addresses::V4 { source: source.into(), destination: destination.into() };
        let mut header = [0; MAX_HEADER_LEN];
        let len = encode_header(addresses, payload, &mut header).expect("it fits");
        let packet = [&header[..len], &vec![1; payload]].concat();
        prop_assert_eq!(packet[10..12].to_vec(), naive_checksum(&packet[..20]).to_be_bytes().to_vec());
        let payload = &vec![1; payload][..];
        prop_assert_eq!(decode(&packet), Ok(Packet { addresses, protocol: 6, ecn: 0, payload }));
    }

    #[test]
    fn any_octets_are_read_or_refused(mut octets: Vec<u8>, version in prop_oneof![Just(4u8), Just(6)], ihl in 0..8u8) {
        if let Some(first) = octets.first_mut() {
            *first = version << 4 | ihl;
        }
        for packet in [octets.clone(), if version == 4 && octets.len() >= 28 { corrected(octets) } else { octets }] {
            if let Ok(read) = decode(&packet) {
                prop_assert!(read.payload.len() <= packet.len() - 20);
            }
        }
    }
}
