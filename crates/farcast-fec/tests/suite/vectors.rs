//! Parity bytes that others computed, and farcast's own over GF(2^16), which must never change.

use farcast_fec::{BlockCode, Field, ParitySymbol, PointSet, ReedSolomon};
use hex_literal::hex;

use crate::common::pattern;

/// 8 source symbols of 4 bytes: byte `j` of symbol `i` is `17 i + 31 j + 1` modulo 256.
fn test_block() -> Vec<u8> {
    (0..8).flat_map(|i| (0..4).map(move |j| (17 * i + 31 * j + 1) as u8)).collect()
}

fn parity_of_test_block(points: PointSet) -> Vec<u8> {
    let code = ReedSolomon::new(points, 8, 4, 4).unwrap();
    let mut parity = vec![0; 16];
    code.encode(&test_block(), 0, &mut parity).unwrap();
    parity
}

/// Parity from NRL NORM's own encoder (`normEncoderRS8.cpp`).
#[test]
fn rizzo_points_are_those_of_nrl_norm() {
    assert_eq!(parity_of_test_block(PointSet::Rizzo), hex!("25f43ceb e7c28773 d9d6f4c0 746d3d92"));
}

/// Parity from the generator matrix in the text of RFC 5510 §8.2.
#[test]
fn rfc_5510_points_are_those_of_its_text() {
    assert_eq!(parity_of_test_block(PointSet::Rfc5510), hex!("63ab2010 eed4bc4a 4d865ad2 d7054078"));
}

/// Parity from the crates reed-solomon-erasure and rustfs-erasure-codec.
#[test]
fn integer_points_are_those_of_the_backblaze_family() {
    assert_eq!(parity_of_test_block(PointSet::Integers), hex!("e16e0e92 147f4ba9 5cc37fd7 1dd29836"));
}

/// From a capture of libnorm on the wire (FEC Encoding IDs 5 and 129 alike): an object of 112 bytes in
/// segments of 16 with blocks of at most 4, so of 4 and 3; the short one is coded with a fourth symbol of
/// zeros.
#[test]
fn libnorm_on_the_wire() {
    let object: Vec<u8> = (0..112).map(|i| (7 * i + i / 256) as u8).collect();
    let parity_of_first = hex!(
        "b2b5bcd8d12c25fff6f1717a9b943e35 d1d6df575e9099dcd5d2242fdcd3d5de"
        "7671780d04939afff6f14249232c242f 4d4a437e77474eddd4d3bab1c5ca7279"
    );
    let parity_of_second = hex!(
        "173a4df18690e796e1ccd7be9bceabc2 2c32109dbf6f4d72504e2ed6f8a9c43c"
        "13a97ad20180537ba8125ef1386ff35c bc83c2713076372f6e51c192780ff1a2"
    );
    let code = ReedSolomon::new(PointSet::Rizzo, 4, 4, 16).unwrap();
    for (source, expected) in [(&object[..64], parity_of_first), (&object[64..], parity_of_second)] {
        let mut parity = [0; 64];
        code.encode(source, 0, &mut parity).unwrap();
        assert_eq!(parity, expected);

        let mut block = vec![0xAA; source.len()];
        block[..16].copy_from_slice(&source[..16]);
        let arrived: Vec<_> =
            (1..4).map(|index| ParitySymbol { index, bytes: &expected[index * 16..][..16] }).collect();
        let missing: Vec<usize> = (1..source.len() / 16).collect();
        code.decode(&mut block, &missing, &arrived).unwrap();
        assert_eq!(block, source);
    }
}

/// Sender and receiver may run different releases: an upgrade of the library must not change these.
#[test]
fn large_blocks_keep_their_bytes() {
    for (k, p, len, expected) in LARGE {
        let code = BlockCode::new(k, p, len).unwrap();
        assert_eq!(code.field(), Field::Gf65536);
        let mut parity = vec![0; p * len];
        code.encode(&pattern(k * len), 0, &mut parity).unwrap();
        assert_eq!(folded(&parity), expected, "k = {k}, p = {p}, symbols of {len}");
    }
}

/// `k`, `p`, symbol length and the folded parity of the pattern: more source, more parity, alike.
const LARGE: [(usize, usize, usize, [u8; 16]); 4] = [
    (252, 4, 16, hex!("e6b7f2806af18013748d818e242572fe")),
    (1000, 64, 70, hex!("2f9fa4bc5d4544a85a38082822ba5995")),
    (60, 300, 128, hex!("fb1934270f3f81f642995bc13f2ea3db")),
    (200, 150, 34, hex!("ea0b76481bbdfb4c8f1c8a98badff2a0")),
];

/// 16 running sums, each over every 16th byte, that depend on the order of the bytes as well.
fn folded(bytes: &[u8]) -> [u8; 16] {
    let mut sum = [0_u8; 16];
    for (i, &byte) in bytes.iter().enumerate() {
        sum[i % 16] = sum[i % 16].rotate_left(3).wrapping_mul(31) ^ byte;
    }
    sum
}
