//! Against exact sorting of the same values.

use farcast_core::random::RandomStream;

use super::*;

/// Shares as fractions, so that a rank is exact.
const SHARES: [(u64, u64); 8] = [(0, 1), (1, 1000), (1, 4), (1, 2), (9, 10), (99, 100), (999, 1000), (1, 1)];

/// Values over all magnitudes up to 2^`bits` ns.
fn values(seed: u64, count: usize, bits: u64) -> Vec<u64> {
    let mut stream = RandomStream::derive(seed, &[]);
    (0..count)
        .map(|_| {
            let magnitude = 1 + stream.below(bits);
            stream.below(1 << magnitude)
        })
        .collect()
}

fn recorded(values: &[u64]) -> Lateness {
    let mut lateness = Lateness::new();
    for &value in values {
        lateness.record(Span::from_nanos(value));
    }
    lateness
}

/// The value of rank ⌈qn⌉, from 1.
fn exact(sorted: &[u64], (numerator, denominator): (u64, u64)) -> u64 {
    let rank = (numerator * sorted.len() as u64).div_ceil(denominator).max(1);
    sorted[rank as usize - 1]
}

#[test]
fn quantiles_are_those_of_sorting_to_a_thousandth() {
    // Up to 69 s; counts of which all shares' ranks are whole, so that no rounding of `q` matters, and the small ones.
    for (seed, count) in [(1, 1000), (2, 20_000), (3, 100_000)] {
        let mut values = values(seed, count, 36);
        let lateness = recorded(&values);
        values.sort_unstable();
        for share in SHARES {
            let exact = exact(&values, share);
            let got = lateness.quantile(share.0 as f64 / share.1 as f64).as_nanos();
            assert!(
                got >= exact && (got - exact) * 1000 <= exact,
                "{share:?} of {count}: {got}, not {exact}"
            );
            assert!(exact > 2000 || got == exact, "{share:?} of {count}: {got}, not {exact}");
        }
        assert_eq!(lateness.max().as_nanos(), *values.last().unwrap());
        assert_eq!(lateness.quantile(1.0), lateness.max());
    }
}

#[test]
fn count_mean_and_rows_are_exact() {
    // Up to 275 s, beyond the resolution of quantiles.
    let values = values(4, 50_000, 38);
    let lateness = recorded(&values);
    assert_eq!(lateness.count(), 50_000);
    let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
    assert_eq!(u128::from(lateness.mean().as_nanos()), sum / 50_000);
    let rows = lateness.rows();
    assert_eq!((rows[0].from, rows.last().unwrap().below), (Span::ZERO, None));
    for row in &rows {
        let below = row.below.map_or(u64::MAX, Span::as_nanos);
        let count = values.iter().filter(|&&value| value >= row.from.as_nanos() && value < below).count();
        assert_eq!(row.count, count as u64, "{row:?}");
    }
    assert!(rows.windows(2).all(|pair| pair[0].below == Some(pair[1].from)));
    assert_eq!(rows.len(), 18);
}

#[test]
fn rows_begin_and_end_with_what_was_counted() {
    let lateness = recorded(&[1_000, 2_999, 9_999, 10_000]);
    let row = |from, below, count| LatenessRow {
        from: Span::from_nanos(from),
        below: Some(Span::from_nanos(below)),
        count,
    };
    let expected = [row(1_000, 3_000, 2), row(3_000, 10_000, 1), row(10_000, 30_000, 1)];
    assert_eq!(lateness.rows(), expected);
}

#[test]
fn merging_is_counting_both() {
    let (one, two) = (values(5, 3000, 38), values(6, 500, 20));
    let mut merged = recorded(&one);
    merged.merge(&recorded(&two));
    assert_eq!(merged, recorded(&[one, two].concat()));
    merged.merge(&Lateness::new());
    assert_eq!(merged.count(), 3500);
}

#[test]
fn nothing_and_the_ends_of_ranges() {
    let none = Lateness::default();
    assert_eq!((none.count(), none.mean(), none.max()), (0, Span::ZERO, Span::ZERO));
    assert_eq!((none.quantile(0.5), none.quantile(1.0)), (Span::ZERO, Span::ZERO));
    assert_eq!(none.rows(), []);

    let zero = recorded(&[0]);
    assert_eq!((zero.quantile(0.0), zero.quantile(1.0), zero.rows().len()), (Span::ZERO, Span::ZERO, 1));

    let mut endless = recorded(&[5]);
    endless.record(Span::MAX);
    endless.record(Span::MAX);
    assert_eq!((endless.max(), endless.quantile(0.9)), (Span::MAX, Span::MAX));
    assert_eq!(endless.mean().as_nanos(), ((2 * u128::from(u64::MAX) + 5) / 3) as u64);
    for (beyond, expected) in [(-1.0, 5), (f64::NAN, 5), (7.0, u64::MAX), (f64::INFINITY, u64::MAX)] {
        assert_eq!(endless.quantile(beyond).as_nanos(), expected, "{beyond}");
    }
}
