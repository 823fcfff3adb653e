use proptest::prelude::*;
use std::vec::Vec;

use super::naive::{register, residue};
use super::*;
use crate::framing::{PROTOCOL_IPCP, PROTOCOL_IPV4, PROTOCOL_LCP, PROTOCOL_MP};
use farcast_core::random::RandomStream;

/// The check values of the catalogue of CRC algorithms: CRC-16/IBM-SDLC and CRC-32/ISO-HDLC.
#[test]
fn check_sequences_have_their_published_values() {
    assert_eq!(Fcs::Fcs16.of(b"1234", b"56789")[..2], 0x906E_u16.to_le_bytes());
    assert_eq!(Fcs::Fcs32.of(b"", b"123456789"), 0xCBF4_3926_u32.to_le_bytes());
}

proptest! {
    #[test]
    fn a_frame_with_its_check_sequence_leaves_the_residue(
        header in any::<[u8; 3]>(), information in proptest::collection::vec(any::<u8>(), 0..200), bit in any::<u16>(),
    ) {
        for fcs in [Fcs::Fcs16, Fcs::Fcs32] {
            let sequence = fcs.of(&header, &information);
            let mut frame = [&header[..], &information, &sequence[..fcs.octets() as usize]].concat();
            prop_assert_eq!(register(fcs, &frame), residue(fcs));
            prop_assert!(fcs.is_good(&frame));
            let bit = usize::from(bit) % (frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!fcs.is_good(&frame));
        }
    }
}

#[test]
fn headers_are_as_long_as_what_was_negotiated_leaves_them() {
    let with = |acfc, pfc| Framing { acfc, pfc, ..Framing::default() };
    for (acfc, pfc, protocol, header) in [
        (false, false, PROTOCOL_IPV4, &[0xFF, 0x03, 0x00, 0x21][..]),
        (true, false, PROTOCOL_IPV4, &[0x00, 0x21]),
        (false, true, PROTOCOL_MP, &[0xFF, 0x03, 0x3D]),
        (true, true, PROTOCOL_MP, &[0x3D]),
        // High octet of a protocol above 255.
        (true, true, PROTOCOL_IPCP, &[0x80, 0x21]),
        (true, true, PROTOCOL_LCP, &[0xFF, 0x03, 0xC0, 0x21]),
        // No protocols; but short they would be read as something else.
        (true, true, 0x00FE, &[0x00, 0xFE]),
        (true, true, 0x00FF, &[0x00, 0xFF]),
    ] {
        assert_eq!(with(acfc, pfc).header(protocol)[..], *header, "{protocol:#06x}");
        assert_eq!(with(acfc, pfc).header_octets(protocol), header.len() as u64);
    }
    // IPv4 as pppd negotiates it: 1 octet before, 2 behind. FCS-32 and full headers: 4 and 4.
    assert_eq!(Framing::default().frame_octets(PROTOCOL_IPV4, 1500), 1503);
    assert_eq!(Framing { fcs: Fcs::Fcs32, ..Framing::UNCONFIGURED }.frame_octets(PROTOCOL_IPV4, 1500), 1508);
    assert_eq!(Framing::default().frame_octets(PROTOCOL_IPV4, u64::MAX), u64::MAX);
}

#[test]
fn escaped_octets_are_those_of_the_accm_and_two_more() {
    let framing = Framing { accm: 1 << 0x11 | 1 << 0x13 | 1 << 31, ..Framing::default() };
    let all: Vec<u8> = (0..=255).collect();
    let escaped: Vec<u8> = all.iter().copied().filter(|&octet| framing.is_escaped(octet)).collect();
    assert_eq!(escaped, [0x11, 0x13, 0x1F, 0x7D, 0x7E]);
    assert_eq!(framing.count_escapes(&all), 5);
    assert_eq!(Framing::UNCONFIGURED.count_escapes(&all), 34);
    assert_eq!(Framing::default().count_escapes(&all), 2);
}

/// A share of 2/256 of random octets is escaped with an ACCM of 0, and 34/256 with the default one. Mean and variance
/// of 20,000 draws lie within four of their standard errors: √(npq/N) and √((μ₄ - σ⁴)/N). The fourth central moment of
/// a binomial number is npq (1 + 3 (n - 2) pq).
#[test]
fn drawn_escapes_are_binomial_in_mean_and_variance() {
    for (accm, octets, seed) in
        [(0, 1500, 1), (u32::MAX, 1500, 2), (0x000A_0000, 576, 3), (1, 63, 4), (u32::MAX, 64, 5), (7, 65, 6)]
    {
        let framing = Framing { accm, ..Framing::default() };
        let mut stream = RandomStream::derive(seed, &[50]);
        let count = 20_000;
        let draws: Vec<f64> = (0..count).map(|_| framing.escapes(octets, &mut stream) as f64).collect();
        let (n, draws_n) = (octets as f64, f64::from(count));
        let p = f64::from(2 + accm.count_ones()) / 256.0;
        let variance = n * p * (1.0 - p);
        let fourth = variance * (1.0 + 3.0 * (n - 2.0) * p * (1.0 - p));
        let mean = draws.iter().sum::<f64>() / draws_n;
        let spread = draws.iter().map(|draw| (draw - n * p).powi(2)).sum::<f64>() / draws_n;
        assert!((mean - n * p).abs() < 4.0 * (variance / draws_n).sqrt(), "{accm:#x}: mean {mean}");
        let error = ((fourth - variance * variance) / draws_n).sqrt();
        assert!((spread - variance).abs() < 4.0 * error, "{accm:#x}: variance {spread} for {variance}");
    }
}

/// Every frequency within 4.5 standard errors of the binomial probability, by its recurrence.
#[test]
fn drawn_escapes_are_binomial_in_every_probability() {
    let framing = Framing { accm: u32::MAX, ..Framing::default() };
    let mut stream = RandomStream::derive(8, &[51]);
    let (n, p, count) = (70_u32, 34.0 / 256.0, 200_000);
    let mut seen = [0_u32; 71];
    (0..count).for_each(|_| seen[framing.escapes(n.into(), &mut stream) as usize] += 1);
    let mut probability = f64::powi(1.0 - p, 70);
    for (k, &seen) in (0..n).zip(&seen) {
        let expected = f64::from(count) * probability;
        let bound = 4.5 * (expected * (1.0 - probability)).sqrt() + 1.0;
        assert!((f64::from(seen) - expected).abs() < bound, "{k}: {seen} for {expected}");
        probability *= f64::from(n - k) / f64::from(k + 1) * p / (1.0 - p);
    }
}

#[test]
fn what_is_counted_of_random_octets_is_what_is_drawn() {
    let mut stream = RandomStream::derive(9, &[52]);
    for framing in [Framing::default(), Framing::UNCONFIGURED] {
        let octets: Vec<u8> = (0..400_000).map(|_| stream.below(256) as u8).collect();
        let (n, p) = (octets.len() as f64, (2.0 + f64::from(framing.accm.count_ones())) / 256.0);
        let counted = framing.count_escapes(&octets) as f64;
        let drawn = framing.escapes(octets.len() as u64, &mut stream) as f64;
        let error = (n * p * (1.0 - p)).sqrt();
        assert!((counted - n * p).abs() < 4.0 * error && (drawn - n * p).abs() < 4.0 * error);
    }
}

#[test]
fn lengths_that_no_packet_has_take_the_mean() {
    let mut stream = RandomStream::derive(10, &[]);
    let before = stream.clone();
    assert_eq!(Framing::default().escapes(0, &mut stream), 0);
    assert_eq!(Framing::default().escapes(u64::MAX, &mut stream), u64::MAX / 128);
    assert_eq!(Framing::UNCONFIGURED.escapes(256 << 20, &mut stream), 34 << 20);
    assert_eq!(stream, before);
}
