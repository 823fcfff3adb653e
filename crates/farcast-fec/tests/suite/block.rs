//! Blocks of all sizes lose symbols and come back.

use farcast_fec::{
    BlockCode, CodeError, DecodeError, Field, ParitySymbol, PointSet, ReedSolomon, WideReedSolomon, WordOrder,
};
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::common::{pattern, symbols};

/// Encodes a block of `present` symbols, loses the symbols in `missing`, rebuilds them from the parity in
/// `arrived`.
fn round_trip(
    code: &BlockCode,
    present: usize,
    missing: &[usize],
    arrived: &[usize],
) -> Result<(), DecodeError> {
    let len = code.symbol_len();
    let source = pattern(present * len);
    let mut parity = vec![0xFF; code.parity_symbols() * len];
    code.encode(&source, 0, &mut parity).unwrap();
    let all = symbols(&parity, len);
    let arrived: Vec<ParitySymbol<'_>> = arrived.iter().map(|&index| all[index]).collect();

    let mut block = source.clone();
    for &index in missing {
        block[index * len..][..len].fill(0xDB);
    }
    let damaged = block.clone();
    let result = code.decode(&mut block, missing, &arrived);
    assert_eq!(block, if result.is_ok() { source } else { damaged });
    result
}

/// Loses the first and then the last `p` symbols of a block (or all of it) and uses all parity.
fn lose_the_most(k: usize, p: usize, len: usize) {
    let code = BlockCode::new(k, p, len).unwrap();
    let all: Vec<usize> = (0..k).collect();
    let parity: Vec<usize> = (0..p).collect();
    let most = p.min(k);
    round_trip(&code, k, &all[..most], &parity).unwrap();
    round_trip(&code, k, &all[k - most..], &parity).unwrap();
}

#[test]
fn one_source_symbol() {
    lose_the_most(1, 1, 1);
    lose_the_most(1, 254, 3);
    lose_the_most(1, 255, 2);
    let code = BlockCode::new(1, 9, 5).unwrap();
    let mut parity = [0; 45];
    code.encode(b"alone", 0, &mut parity).unwrap();
    assert_eq!(parity, *b"alone".repeat(9), "the polynomial is constant");
}

#[test]
fn the_field_changes_above_255_symbols() {
    for (k, p) in [(1, 254), (254, 1), (251, 4), (128, 127)] {
        assert_eq!(BlockCode::new(k, p, 2).unwrap().field(), Field::Gf256, "k = {k}, p = {p}");
        assert_eq!(BlockCode::new(k + 1, p, 2).unwrap().field(), Field::Gf65536, "k = {}, p = {p}", k + 1);
        assert_eq!(BlockCode::new(k, p + 1, 2).unwrap().field(), Field::Gf65536, "k = {k}, p = {}", p + 1);
        lose_the_most(k, p, 6);
        lose_the_most(k + 1, p, 6);
        lose_the_most(k, p + 1, 6);
    }
}

#[test]
fn a_whole_object_as_one_block() {
    let code = BlockCode::new(11_104, 64, 46).unwrap();
    let missing: Vec<usize> = (0..64).map(|i| i * 173 + 5).collect();
    let parity: Vec<usize> = (0..64).rev().collect();
    round_trip(&code, 11_104, &missing, &parity).unwrap();
    assert_eq!(
        round_trip(&code, 11_104, &missing, &parity[1..]),
        Err(DecodeError::NotEnough { missing: 64, short_by: 1 })
    );
}

#[test]
fn the_largest_block() {
    let code = BlockCode::new(32_768, 32_768, 2).unwrap();
    let all: Vec<usize> = (0..32_768).collect();
    round_trip(&code, 32_768, &all, &all).unwrap();
}

#[test]
fn nothing_missing_is_nothing_to_do() {
    for k in [4, 400] {
        let code = BlockCode::new(k, 2, 8).unwrap();
        round_trip(&code, k, &[], &[]).unwrap();
        round_trip(&code, k, &[], &[1]).unwrap();
    }
}

#[test]
fn memory_over_the_large_field_is_told_beforehand() {
    assert_eq!(BlockCode::new(200, 55, 1400).unwrap().working_memory(), 0);
    assert_eq!(BlockCode::new(11_104, 64, 1400).unwrap().working_memory(), 16_384 * 1408);
    assert_eq!(BlockCode::new(32_768, 32_768, 2).unwrap().working_memory(), 65_536 * 64);
    assert_eq!(BlockCode::new(1, 300, 64).unwrap().working_memory(), 512 * 64);
}

/// A code, how many symbols the block has (it may be shortened), and a shuffled list of all its parity
/// symbols.
fn code_and_block() -> impl Strategy<Value = (BlockCode, usize, Vec<usize>)> {
    (1..400_usize, 1..64_usize, 1..=32_usize).prop_flat_map(|(k, p, half)| {
        let code = BlockCode::new(k, p, 2 * half).expect("in range");
        let present = prop_oneof![Just(k), 1..=k];
        (Just(code), present, Just((0..p).collect::<Vec<_>>()).prop_shuffle())
    })
}

/// With the same numbers, three codes that cannot repair each other's blocks.
#[test]
fn a_protocol_may_prescribe_the_code() {
    let (k, p, len) = (10, 3, 6);
    let source = pattern(k * len);
    let parity = |code: &BlockCode| {
        let mut parity = vec![0; p * len];
        code.encode(&source, 0, &mut parity).unwrap();
        let mut block = source.clone();
        block[..p * len].fill(0xEE);
        code.decode(&mut block, &[0, 1, 2], &symbols(&parity, len)).unwrap();
        assert_eq!(block, source);
        parity
    };
    let narrow = BlockCode::narrow(k, p, len).unwrap();
    let mut expected = vec![0; p * len];
    ReedSolomon::new(PointSet::Rizzo, k, p, len).unwrap().encode(&source, 0, &mut expected).unwrap();
    assert_eq!((parity(&narrow), narrow.field()), (expected.clone(), Field::Gf256));
    let wide = BlockCode::wide(k, p, len).unwrap();
    let order = WordOrder::LittleEndian;
    WideReedSolomon::new(PointSet::Rizzo, order, k, p, len)
        .unwrap()
        .encode(&source, 0, &mut expected)
        .unwrap();
    assert_eq!((parity(&wide), wide.field()), (expected, Field::Gf65536));
    assert!(wide.makes_single_symbols() && wide.working_memory() == 0);
    assert!(!BlockCode::new(200, 100, len).unwrap().makes_single_symbols());
    let refused = BlockCode::narrow(200, 100, len).err();
    assert_eq!(refused, Some(CodeError::ParitySymbols { given: 100, max: 55 }));
}

proptest! {
    #[test]
    fn losses_up_to_the_parity_come_back(
        ((code, present, arrived), missing) in code_and_block().prop_flat_map(|(code, present, arrived)| {
            let most = present.min(arrived.len());
            let missing = subsequence((0..present).collect::<Vec<_>>(), 0..=most);
            (Just((code, present, arrived)), missing)
        })
    ) {
        // As many as are missing, from anywhere among the parity; then all of it.
        prop_assert_eq!(round_trip(&code, present, &missing, &arrived[..missing.len()]), Ok(()));
        prop_assert_eq!(round_trip(&code, present, &missing, &arrived), Ok(()));
    }

    #[test]
    fn fewer_parity_symbols_than_losses_is_an_error(
        ((code, present, arrived), missing) in code_and_block().prop_flat_map(|(code, present, arrived)| {
            let missing = subsequence((0..present).collect::<Vec<_>>(), 1..=present);
            (Just((code, present, arrived)), missing)
        }),
        have in any::<prop::sample::Index>(),
    ) {
        let have = have.index(missing.len().min(arrived.len() + 1));
        let short_by = missing.len() - have;
        prop_assert_eq!(
            round_trip(&code, present, &missing, &arrived[..have]),
            Err(DecodeError::NotEnough { missing: missing.len(), short_by })
        );
    }

    #[test]
    fn parity_of_any_range_equals_the_whole(
        (code, present, _) in code_and_block(),
        range in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let (len, p) = (code.symbol_len(), code.parity_symbols());
        let source = pattern(present * len);
        let mut whole = vec![0; p * len];
        code.encode(&source, 0, &mut whole).unwrap();
        let first = range.0.index(p);
        let count = range.1.index(p - first + 1);
        let mut part = vec![0xFF; count * len];
        code.encode(&source, first, &mut part).unwrap();
        prop_assert_eq!(&part, &whole[first * len..][..count * len]);
    }

    #[test]
    fn a_shortened_block_is_one_with_zeros((code, present, _) in code_and_block()) {
        let len = code.symbol_len();
        let mut source = pattern(present * len);
        let mut short = vec![0; code.parity_symbols() * len];
        code.encode(&source, 0, &mut short).unwrap();
        source.resize(code.source_symbols() * len, 0);
        let mut full = short.clone();
        code.encode(&source, 0, &mut full).unwrap();
        prop_assert_eq!(short, full);
    }
}
