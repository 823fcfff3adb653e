//! Cost of an ideal code, of which any symbols are as good as any others, if receivers lose symbols independently.

/// Returns the expected number of symbols to send until each of `receivers` has `segments`, if each loses a part
/// `loss`.
///
/// The number for one receiver has the negative binomial distribution; the result is the mean of the greatest of
/// independent ones. This mean is the sum, over all numbers of symbols, of the probability that some receiver is not
/// complete by then.
pub(super) fn symbols(segments: u32, loss: f64, receivers: u32) -> f64 {
    let kept = f64::from(segments);
    // Logarithms of the probabilities that a receiver is complete with exactly `segments`, with one more, and so on,
    // until they are negligible. The first ones are too small for a double.
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
        // The term is 1 - (1 - beyond)^receivers; rounding may take the tail past 1.
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

    /// Each receiver needs a geometric number for one segment, and the greatest of n has a mean that is a sum of n
    /// terms.
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
