//! Codes over GF(2^16) that a protocol prescribes.

use farcast_fec::{CodeError, ParitySymbol, PointSet, WideReedSolomon, WordOrder};
use hex_literal::hex;
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::common::{pattern, symbols};

/// From a capture of libnorm on the wire (FEC Encoding ID 2, `m` = 16): an object of 112 bytes in segments of 16 with
/// blocks of at most 4, so of 4 and 3.
#[test]
fn libnorm_on_the_wire() {
    let object: Vec<u8> = (0..112).map(|i| (7 * i + i / 256) as u8).collect();
    let parity_of_first = hex!(
        "2ecdbebe92d11b48494be03dda721df7 d27e4f75c82a295bbb0567d2e99cc1b6"
        "0b2f2c920288d104d56386f8cdff4c7b 87e4b0bdc04a6abec88252d90b8682b9"
    );
    let parity_of_second = hex!(
        "867d3f03e0598a30646271d20a89c63c 10ea4f17ea4eef69f339aef4723548ed"
        "153a8e1a3ff7799b6b529f06432a1146 9f4c5dcd7fdcc2235289eef625f93ce3"
    );
    let code = WideReedSolomon::new(PointSet::Rizzo, WordOrder::LittleEndian, 4, 4, 16).unwrap();
    for (source, expected) in [(&object[..64], parity_of_first), (&object[64..], parity_of_second)] {
        let mut parity = [0; 64];
        code.encode(source, 0, &mut parity).unwrap();
        assert_eq!(parity, expected);
        let mut third = [0; 16];
        code.encode(source, 2, &mut third).unwrap();
        assert_eq!(third, expected[32..48]);
    }
}

/// RFC 5510 §8.2 by hand for k = 2: the points are 1, 2 and 4, and the polynomial through (1, a) and (2, b) has at 4
/// the value a (4 - 2) / (1 - 2) + b (4 - 1) / (2 - 1), which is a 6 / 3 + b 5 / 3 where minus is exclusive or.
#[test]
fn rfc_5510_points_are_those_of_its_text() {
    let code = WideReedSolomon::new(PointSet::Rfc5510, WordOrder::BigEndian, 2, 1, 2).unwrap();
    let mut parity = [0; 2];
    // a = b: the polynomial is constant.
    code.encode(&[0x12, 0x34, 0x12, 0x34], 0, &mut parity).unwrap();
    assert_eq!(parity, [0x12, 0x34]);
    code.encode(&[0, 3, 0, 0], 0, &mut parity).unwrap();
    assert_eq!(parity, [0, 6]);
    code.encode(&[0, 0, 0, 3], 0, &mut parity).unwrap();
    assert_eq!(parity, [0, 5]);
}

proptest! {
    #[test]
    fn any_k_symbols_give_the_block_back(
        (k, lost) in (1..40usize).prop_flat_map(|k| {
            (Just(k), subsequence((0..k).collect::<Vec<_>>(), 0..=k.min(20)))
        }),
        (p, order) in (20..60usize, prop_oneof![Just(WordOrder::BigEndian), Just(WordOrder::LittleEndian)]),
        (short, offset, words) in (0..40usize, any::<usize>(), 1..20usize),
    ) {
        let len = words * 2;
        let code = WideReedSolomon::new(PointSet::Rizzo, order, k + short % 3, p, len).unwrap();
        let source = pattern(k * len);
        let mut parity = vec![0xFF; p * len];
        code.encode(&source, 0, &mut parity).unwrap();
        let all = symbols(&parity, len);
        let arrived: Vec<ParitySymbol<'_>> =
            (0..lost.len()).map(|n| all[(offset % p + n) % p]).collect();
        let mut block = source.clone();
        for &index in &lost {
            block[index * len..][..len].fill(0xDB);
        }
        code.decode(&mut block, &lost, &arrived).unwrap();
        prop_assert_eq!(block, source);
    }
}

#[test]
fn blocks_may_pass_the_small_field() {
    let (k, p) = (700, 300);
    let code = WideReedSolomon::new(PointSet::Rizzo, WordOrder::LittleEndian, k, p, 4).unwrap();
    let source = pattern(k * 4);
    let mut parity = vec![0; p * 4];
    code.encode(&source, 0, &mut parity).unwrap();
    let missing: Vec<usize> = (0..p).map(|n| n * 2).collect();
    let mut block = source.clone();
    for &index in &missing {
        block[index * 4..][..4].fill(0);
    }
    code.decode(&mut block, &missing, &symbols(&parity, 4)).unwrap();
    assert_eq!(block, source);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let new = |k, p, len| WideReedSolomon::new(PointSet::Rizzo, WordOrder::BigEndian, k, p, len).err();
    assert_eq!(new(0, 1, 2), Some(CodeError::SourceSymbols { given: 0, max: 8192 }));
    assert_eq!(new(8193, 1, 2), Some(CodeError::SourceSymbols { given: 8193, max: 8192 }));
    assert_eq!(new(1, 8193, 2), Some(CodeError::ParitySymbols { given: 8193, max: 8192 }));
    assert_eq!(new(1, 1, 3), Some(CodeError::OddSymbolLength { given: 3 }));
}
