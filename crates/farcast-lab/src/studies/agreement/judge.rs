//! Verdicts on numbers from real time, by the simulated ones.

use farcast_stats::{StatsError, Summary};

use crate::study::{Judged, Rule, Verdict};

const RULE: &str = "a mean of runs in real time agrees if it is within 3 % of the simulated mean, or if the 95 % \
                    confidence intervals of both overlap";
/// Relative deviation of a mean that always agrees, however narrow the intervals.
const CLOSE: f64 = 0.03;

/// Returns the verdict on runs in `real` time, by those that were `simulated`.
pub(super) fn compare(simulated: &[f64], real: &[f64]) -> Result<Judged, StatsError> {
    let (simulated, real) = (Summary::of(simulated)?, Summary::of(real)?);
    let both = simulated.ci95_half_width.unwrap_or(0.0) + real.ci95_half_width.unwrap_or(0.0);
    let half = both.max(CLOSE * simulated.mean.abs());
    Ok(judged(simulated.mean, real.mean, real.ci95_half_width, half, RULE))
}

const BY_SIZE: &str = "where sizes differ from run to run, each run is set beside the simulated mean of its size, and the mean of \
                       all agrees if it is within 3 % of what is simulated, or if the 95 % confidence interval of the \
                       differences holds zero";

/// Returns the verdict on runs in `real` time by the `simulated` runs of each size. Runs in real time take the sizes
/// in turn. The interval is that of the differences.
pub(super) fn compare_sizes(simulated: &[Vec<f64>], real: &[f64]) -> Result<Judged, StatsError> {
    let means =
        simulated.iter().map(|runs| Ok(Summary::of(runs)?.mean)).collect::<Result<Vec<_>, StatsError>>()?;
    let expected: Vec<f64> = means.iter().cycle().take(real.len()).copied().collect();
    let differences: Vec<f64> = real.iter().zip(&expected).map(|(real, expected)| real - expected).collect();
    let (expected, difference) = (Summary::of(&expected)?.mean, Summary::of(&differences)?);
    let half = difference.ci95_half_width.unwrap_or(0.0).max(CLOSE * expected.abs());
    Ok(judged(expected, expected + difference.mean, difference.ci95_half_width, half, BY_SIZE))
}

/// Returns the verdict if a mean may be off by `half`.
fn judged(
    simulated: f64,
    real: f64,
    ci95_half_width: Option<f64>,
    half: f64,
    sentence: &'static str,
) -> Judged {
    let within = (simulated - half, simulated + half);
    let agrees = within.0 <= real && real <= within.1;
    Judged {
        published: Some(simulated),
        farcast: real,
        ci95_half_width,
        verdict: if agrees { Verdict::Agrees } else { Verdict::Differs },
        rule: Rule { sentence, agrees_within: Some(within) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(simulated: &[f64], real: &[f64]) -> Verdict {
        compare(simulated, real).unwrap().verdict
    }

    #[test]
    fn three_per_cent_are_close() {
        let real = |mean: f64| [mean - 0.001, mean + 0.001];
        assert_eq!(verdict(&[10.0], &real(10.28)), Verdict::Agrees);
        assert_eq!(verdict(&[10.0], &real(10.32)), Verdict::Differs);
        assert_eq!(verdict(&[10.0], &real(9.72)), Verdict::Agrees);
        assert_eq!(verdict(&[10.0], &real(9.68)), Verdict::Differs);
    }

    /// For two values a apart, the standard deviation is a / sqrt 2 and the interval a / 2 times 12.7062, Student's t
    /// of one degree of freedom.
    #[test]
    fn intervals_that_overlap_agree() {
        let spread = [11.0, 13.0];
        let judged = compare(&[10.0], &spread).unwrap();
        assert_eq!(judged.verdict, Verdict::Agrees);
        let half = judged.ci95_half_width.unwrap();
        assert!((half - 12.7062).abs() < 1e-3, "{half}");
        let (low, high) = judged.rule.agrees_within.unwrap();
        assert!((low - (10.0 - half)).abs() < 1e-9 && (high - (10.0 + half)).abs() < 1e-9);
        // Both intervals count: 5 and 15 are 63.5 wide to each side.
        assert_eq!(verdict(&[5.0, 15.0], &[80.0, 82.0]), Verdict::Agrees);
        assert_eq!(verdict(&[5.0, 15.0], &[90.0, 92.0]), Verdict::Differs);
    }

    /// Differences of 0.2 and 0.3 beside a mean of 3: their interval is 0.05 times 12.7062 to each side.
    #[test]
    fn sizes_agree_if_the_differences_may_be_zero() {
        let judged = compare_sizes(&[vec![1.0, 3.0], vec![4.0]], &[2.2, 4.3]).unwrap();
        assert_eq!((judged.published, judged.verdict), (Some(3.0), Verdict::Agrees));
        assert!((judged.farcast - 3.25).abs() < 1e-9);
        assert!((judged.ci95_half_width.unwrap() - 0.05 * 12.7062).abs() < 1e-4);
        // The verdict does not depend on the distance of the sizes, nor on the number of rounds.
        let sizes = [vec![2.0], vec![4.0]];
        assert_eq!(compare_sizes(&sizes, &[2.1, 4.1001]).unwrap().verdict, Verdict::Differs);
        assert_eq!(compare_sizes(&sizes, &[2.08, 4.0801, 2.08, 4.08]).unwrap().verdict, Verdict::Agrees);
    }
}
