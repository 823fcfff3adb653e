//! The code against its definition, a Vandermonde matrix inverted by elimination, and against another
//! library.

use farcast_fec::{ParitySymbol, PointSet, ReedSolomon, gf256};
use proptest::prelude::*;

use crate::common::symbols;

const ALL_POINTS: [PointSet; 3] = [PointSet::Rizzo, PointSet::Rfc5510, PointSet::Integers];

fn power(x: u8, exponent: usize) -> u8 {
    (0..exponent).fold(1, |product, _| gf256::mul(product, x))
}

fn point(points: PointSet, index: usize) -> u8 {
    match points {
        PointSet::Rizzo if index == 0 => 0,
        PointSet::Rizzo => power(2, index - 1),
        PointSet::Rfc5510 => power(2, index),
        _ => index as u8,
    }
}

/// Returns the `p` rows below the unit matrix of `V · (top k rows of V)^-1`, by Gauss-Jordan elimination of columns:
/// the steps that turn the top of `V` into the unit matrix turn the rest into the parity rows.
fn parity_rows(points: PointSet, k: usize, p: usize) -> Vec<Vec<u8>> {
    let mut rows: Vec<Vec<u8>> =
        (0..k + p).map(|row| (0..k).map(|column| power(point(points, row), column)).collect()).collect();
    for pivot in 0..k {
        let column = (pivot..k).find(|&column| rows[pivot][column] != 0).expect("V is regular");
        let inverse = power(rows[pivot][column], 254);
        for row in &mut rows {
            row.swap(pivot, column);
            row[pivot] = gf256::mul(row[pivot], inverse);
        }
        for other in (0..k).filter(|&other| other != pivot) {
            let factor = rows[pivot][other];
            for row in &mut rows {
                row[other] ^= gf256::mul(row[pivot], factor);
            }
        }
    }
    rows.split_off(k)
}

/// The code's own parity rows: the parity of unit vectors.
fn rows_of(code: &ReedSolomon) -> Vec<Vec<u8>> {
    let (k, p) = (code.source_symbols(), code.parity_symbols());
    let mut rows = vec![vec![0; k]; p];
    for column in 0..k {
        let mut unit = vec![0; k];
        unit[column] = 1;
        let mut parity = vec![0; p];
        code.encode(&unit, 0, &mut parity).unwrap();
        for (row, value) in rows.iter_mut().zip(parity) {
            row[column] = value;
        }
    }
    rows
}

#[test]
fn equals_the_inverted_vandermonde_matrix() {
    for points in ALL_POINTS {
        for (k, p) in [(1, 1), (1, 254), (2, 3), (4, 4), (8, 4), (64, 16), (128, 127), (254, 1)] {
            let code = ReedSolomon::new(points, k, p, 1).unwrap();
            assert_eq!(rows_of(&code), parity_rows(points, k, p), "{points:?}, k = {k}, p = {p}");
        }
    }
}

fn block() -> impl Strategy<Value = (PointSet, usize, usize, usize, Vec<u8>)> {
    (prop::sample::select(ALL_POINTS.to_vec()), 1..60_usize, 1..20_usize, 1..40_usize).prop_flat_map(
        |(points, k, p, len)| {
            prop::collection::vec(any::<u8>(), k * len).prop_map(move |source| (points, k, p, len, source))
        },
    )
}

proptest! {
    #[test]
    fn another_library_agrees_both_ways((points, k, p, len, source) in block(), seed in any::<u64>()) {
        let mut other = fec_rs::ReedSolomon::new(k, p).unwrap();
        other.set_parity_matrix(&parity_rows(points, k, p).concat()).unwrap();
        let mut shards: Vec<Vec<u8>> = source.chunks(len).map(<[u8]>::to_vec).collect();
        shards.resize(k + p, vec![0; len]);
        other.encode(&mut shards).unwrap();

        let code = ReedSolomon::new(points, k, p, len).unwrap();
        let mut parity = vec![0; p * len];
        code.encode(&source, 0, &mut parity).unwrap();
        prop_assert_eq!(&parity, &shards[k..].concat());

        // The other library repairs blocks that this one coded, and this one those that the other coded.
        let lost: Vec<usize> = (0..k).filter(|i| seed >> (i % 64) & 1 == 1).take(p).collect();
        let mut received: Vec<Option<Vec<u8>>> =
            source.chunks(len).chain(parity.chunks(len)).map(|symbol| Some(symbol.to_vec())).collect();
        let mut damaged = source.clone();
        for &index in &lost {
            received[index] = None;
            damaged[index * len..][..len].fill(0xDB);
        }
        other.reconstruct_data(&mut received).unwrap();
        prop_assert_eq!(received.into_iter().take(k).flatten().flatten().collect::<Vec<_>>(), source.clone());
        code.decode(&mut damaged, &lost, &symbols(&shards[k..].concat(), len)).unwrap();
        prop_assert_eq!(damaged, source);
    }

    #[test]
    fn any_parity_symbol_alone((points, k, p, len, source) in block(), pick in any::<prop::sample::Index>()) {
        let code = ReedSolomon::new(points, k, p, len).unwrap();
        let mut all = vec![0; p * len];
        code.encode(&source, 0, &mut all).unwrap();
        let first = pick.index(p);
        let mut one = vec![0xFF; len];
        code.encode(&source, first, &mut one).unwrap();
        prop_assert_eq!(&one, &all[first * len..][..len]);

        // And it alone brings back any single symbol.
        let lost = pick.index(k);
        let mut damaged = source.clone();
        damaged[lost * len..][..len].fill(0xDB);
        code.decode(&mut damaged, &[lost], &[ParitySymbol { index: first, bytes: &one }]).unwrap();
        prop_assert_eq!(damaged, source);
    }
}
