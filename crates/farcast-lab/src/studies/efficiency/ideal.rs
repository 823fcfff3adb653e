//! What a code takes of which any symbols are as good as any others, where receivers lose symbols independently.

/// How many symbols must be sent until each of `receivers`, of which each loses a part `loss` of them, has `segments`.
///
/// Each needs a number with the negative binomial distribution; the greatest of independent ones is wanted. Its mean is
/// the sum of the probabilities that somebody lacks something after so many.
pub(super) fn symbols(segments: u32, loss: f64, receivers: u32) -> f64 {
    let kept = f64::from(segments);
    // That a receiver is complete with exactly `segments`, with one more, and so on, until that is out of question: as
    // logarithms, for the first are too small for a number.
    let mut exactly = vec![kept * (-loss).ln_1p()];
    let mut more = 0.0;
    while let Some(&last) = exactly.last().filter(|&&last| more < kept || last > f64::MIN_POSITIVE.ln()) {
        more += 1.0;
        exactly.push(last + ((kept + more - 1.0) / more * loss).ln());
    }
    let mut beyond = 0.0;
    let mut expected = kept;
    for part in exactly[1..].iter().rev() {
        beyond += part.exp();
        // 1 - (1 - beyond)^receivers; rounding may take the tail past 1.
        expected -= (f64::from(receivers) * (-f64::min(beyond, 1.0 - f64::EPSILON)).ln_1p()).exp_m1();
    }
    expected
}

#[cfg(test)]
mod tests {
    use super::symbols;

    #[test]
    fn one_receiver_needs_what_its_loss_leaves() {
        for loss in [0.01, 0.05, 0.2] {
            for segments in [1, 715, 7143] {
                let expected = f64::from(segments) / (1.0 - loss);
                assert!((symbols(segments, loss, 1) / expected - 1.0).abs() < 1e-9, "{segments} {loss}");
            }
        }
    }

    /// Of one segment each receiver needs a geometric number, and the greatest of n has a mean that is a sum of n terms.
    #[test]
    fn the_greatest_of_geometric_numbers_is_a_sum() {
        let (loss, receivers) = (0.2_f64, 30);
        let (mut expected, mut ways) = (0.0, 1.0);
        for k in 1..=receivers {
            ways *= -f64::from(receivers - k + 1) / f64::from(k);
            expected -= ways / (1.0 - loss.powi(k));
        }
        assert!((symbols(1, loss, receivers as u32) - expected).abs() < 1e-6, "{expected}");
    }
}
