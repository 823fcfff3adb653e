//! Numbers that come from a network: every wrong one has its error, and none a panic.

use farcast_fec::{
    BlockCode, CodeError, DecodeError, EncodeError, MAX_SYMBOL_LEN, ParitySymbol, PointSet, ReedSolomon,
};
use proptest::prelude::*;

/// One code over each field, both with 4 parity symbols of 6 bytes.
fn codes() -> [BlockCode; 2] {
    [BlockCode::new(5, 4, 6).unwrap(), BlockCode::new(300, 4, 6).unwrap()]
}

fn refused(source: usize, parity: usize, len: usize) -> CodeError {
    BlockCode::new(source, parity, len).unwrap_err()
}

#[test]
fn codes_out_of_range() {
    assert_eq!(refused(0, 4, 6), CodeError::SourceSymbols { given: 0, max: 32_768 });
    assert_eq!(refused(32_769, 4, 6), CodeError::SourceSymbols { given: 32_769, max: 32_768 });
    assert_eq!(refused(usize::MAX, 4, 6), CodeError::SourceSymbols { given: usize::MAX, max: 32_768 });
    assert_eq!(refused(255, 0, 6), CodeError::ParitySymbols { given: 0, max: 32_768 });
    assert_eq!(refused(4, 32_769, 6), CodeError::ParitySymbols { given: 32_769, max: 32_768 });
    assert_eq!(refused(1, usize::MAX, 6), CodeError::ParitySymbols { given: usize::MAX, max: 32_768 });
    assert_eq!(refused(4, 4, 0), CodeError::SymbolLength { given: 0, max: MAX_SYMBOL_LEN });
    assert_eq!(refused(4, 4, 65_536), CodeError::SymbolLength { given: 65_536, max: MAX_SYMBOL_LEN });
    assert_eq!(refused(300, 4, 7), CodeError::OddSymbolLength { given: 7 });
    assert!(BlockCode::new(251, 4, 7).is_ok(), "GF(2^8) takes odd lengths");
}

#[test]
fn reed_solomon_codes_out_of_range() {
    let refused = |k, p| ReedSolomon::new(PointSet::Rfc5510, k, p, 1).unwrap_err();
    assert_eq!(refused(0, 1), CodeError::SourceSymbols { given: 0, max: 254 });
    assert_eq!(refused(255, 1), CodeError::SourceSymbols { given: 255, max: 254 });
    assert_eq!(refused(200, 0), CodeError::ParitySymbols { given: 0, max: 55 });
    assert_eq!(refused(200, 56), CodeError::ParitySymbols { given: 56, max: 55 });
}

#[test]
fn encoding_of_what_does_not_fit() {
    for code in codes() {
        let (k, source) = (code.source_symbols(), vec![0; 6 * code.source_symbols() + 6]);
        for given in [0, 5, 7, 6 * k + 6] {
            assert_eq!(
                code.encode(&source[..given], 0, &mut [0; 6]),
                Err(EncodeError::BlockLength { given, symbol_len: 6, source_symbols: k })
            );
        }
        assert_eq!(
            code.encode(&source[..12], 0, &mut [0; 13]),
            Err(EncodeError::ParityLength { given: 13, symbol_len: 6 })
        );
        for (first, count) in [(0, 5), (4, 1), (usize::MAX, 1)] {
            assert_eq!(
                code.encode(&source[..12], first, &mut vec![0; count * 6]),
                Err(EncodeError::ParityRange { first, count, parity_symbols: 4 })
            );
        }
        assert_eq!(code.encode(&source[..12], 4, &mut []), Ok(()), "no parity at the end is no parity");
    }
}

#[test]
fn decoding_of_what_makes_no_sense() {
    let symbol = |index| ParitySymbol { index, bytes: &[1; 6] };
    for code in codes() {
        let source_symbols = code.source_symbols();
        let mut block = vec![7; 24];
        let mut decode = |missing: &[usize], parity: &[ParitySymbol<'_>]| {
            let result = code.decode(&mut block, missing, parity);
            assert!(block.iter().all(|&byte| byte == 7), "an error leaves the block alone");
            result.unwrap_err()
        };
        assert_eq!(decode(&[4], &[symbol(0)]), DecodeError::MissingIndex { index: 4, symbols: 4 });
        assert_eq!(
            decode(&[usize::MAX], &[symbol(0)]),
            DecodeError::MissingIndex { index: usize::MAX, symbols: 4 }
        );
        assert_eq!(decode(&[2, 1], &[symbol(0), symbol(1)]), DecodeError::MissingOrder { index: 1 });
        assert_eq!(decode(&[2, 2], &[symbol(0), symbol(1)]), DecodeError::MissingOrder { index: 2 });
        assert_eq!(decode(&[1], &[symbol(4)]), DecodeError::ParityIndex { index: 4, parity_symbols: 4 });
        assert_eq!(decode(&[0, 1], &[symbol(3), symbol(3)]), DecodeError::DuplicateParity { index: 3 });
        assert_eq!(
            decode(&[1], &[symbol(0), ParitySymbol { index: 2, bytes: &[1; 5] }]),
            DecodeError::ParityLength { index: 2, given: 5, symbol_len: 6 }
        );
        assert_eq!(decode(&[0, 1, 3], &[symbol(1)]), DecodeError::NotEnough { missing: 3, short_by: 2 });
        for given in [0, 23, 6 * source_symbols + 6] {
            assert_eq!(
                code.decode(&mut vec![0; given], &[0], &[symbol(0)]),
                Err(DecodeError::BlockLength { given, symbol_len: 6, source_symbols })
            );
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let error = DecodeError::NotEnough { missing: 3, short_by: 2 };
    assert_eq!(error.to_string(), "2 more parity symbols are needed for 3 missing source symbols");
}

/// Small numbers mixed with those around the limits and the largest there are.
fn number() -> impl Strategy<Value = usize> {
    prop_oneof![0..12_usize, 250..260_usize, Just(32_768), Just(65_535), Just(usize::MAX)]
}

proptest! {
    #[test]
    fn no_input_panics(
        (k, p, len) in (prop_oneof![0..12_usize, 250..260_usize], number(), 0..10_usize),
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        missing in prop::collection::vec(number(), 0..6),
        parity in prop::collection::vec((number(), 0..10_usize), 0..6),
        first in number(),
    ) {
        if let Ok(code) = BlockCode::new(k, p, len) {
            let parity: Vec<_> =
                parity.iter().map(|&(index, len)| ParitySymbol { index, bytes: &[9; 10][..len] }).collect();
            let mut block = bytes.clone();
            let _ = code.decode(&mut block, &missing, &parity);
            let _ = code.encode(&bytes, first, &mut block);
        }
    }
}
