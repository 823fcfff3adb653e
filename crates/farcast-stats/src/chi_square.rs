//! Chi-square test of goodness of fit, for distributions whose classes are known.

use statrs::distribution::{ChiSquared, ContinuousCDF as _};

use crate::StatsError;

/// The outcome of a chi-square test of goodness of fit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChiSquareTest {
    /// The sum over the classes of (observed - expected)² / expected.
    pub statistic: f64,
    /// Number of classes less 1, and less 1 for each estimated parameter.
    pub degrees_of_freedom: u64,
    /// The probability of a statistic at least this great if the distribution is right.
    pub p_value: f64,
}

/// Least expected count of a class; below this the statistic is far from its distribution (Cochran 1954).
const LEAST_EXPECTED: u64 = 5;

/// Tests whether `values`, none of them negative, are exponential with a mean that is estimated from them.
///
/// The values fall into `classes` classes that are equally probable under the fitted density `exp(-t / mean) / mean`.
/// Because the mean is estimated from the values and not from the counts, the statistic is a little greater than
/// chi-square with `classes - 2` degrees of freedom says (Chernoff and Lehmann 1954): at a level of 5 % and 20 classes
/// the test rejects 5 to 6 % of exponential samples.
///
/// # Errors
/// [`StatsError::Value`] for a value that is negative or not finite, [`StatsError::TooFew`] with less than 3 classes,
/// or less than 5 values a class.
pub fn chi_square_exponential(values: &[f64], classes: u64) -> Result<ChiSquareTest, StatsError> {
    if classes < 3 {
        return Err(StatsError::TooFew { given: classes, needed: 3 });
    }
    let n = values.len() as u64;
    let needed = classes.saturating_mul(LEAST_EXPECTED);
    if n < needed {
        return Err(StatsError::TooFew { given: n, needed });
    }
    if let Some(&value) = values.iter().find(|value| !(value.is_finite() && **value >= 0.0)) {
        return Err(StatsError::Value { value });
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let mut observed = vec![0_u64; classes as usize];
    for value in values {
        // The distribution function of the fitted density, cut into equal parts; all zeros are of the first class.
        let class = if mean > 0.0 { -(-value / mean).exp_m1() * classes as f64 } else { 0.0 };
        observed[(class as usize).min(classes as usize - 1)] += 1;
    }
    let expected = n as f64 / classes as f64;
    let statistic = observed.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
    let degrees_of_freedom = classes - 2;
    Ok(ChiSquareTest { statistic, degrees_of_freedom, p_value: survival(statistic, degrees_of_freedom) })
}

/// Returns the probability that chi-square with `degrees_of_freedom`, at least 1, exceeds `x`.
fn survival(x: f64, degrees_of_freedom: u64) -> f64 {
    ChiSquared::new(degrees_of_freedom as f64).map_or(f64::NAN, |distribution| distribution.sf(x))
}

#[cfg(test)]
mod tests {
    use farcast_core::random::RandomStream;

    use super::{chi_square_exponential, survival};
    use crate::StatsError;

    #[test]
    fn critical_points_are_those_of_the_tables() {
        // Points of the upper tail as every table of chi-square has them (Pearson and Hartley, table 8).
        for (degrees_of_freedom, five, one) in
            [(1, 3.841_459, 6.634_897), (5, 11.070_498, 15.086_272), (18, 28.869_299, 34.805_306)]
        {
            assert!((survival(five, degrees_of_freedom) - 0.05).abs() < 1e-7);
            assert!((survival(one, degrees_of_freedom) - 0.01).abs() < 1e-7);
        }
    }

    #[test]
    fn a_statistic_by_hand() {
        // Mean 1; with 4 classes the bounds are ln(4/3), ln 2, ln 4: 15 values of 0 in the first, 5 of 4 in the last.
        let values: Vec<f64> = [vec![0.0; 15], vec![4.0; 5]].concat();
        let test = chi_square_exponential(&values, 4).unwrap();
        let by_hand = (100.0 + 25.0 + 25.0 + 0.0) / 5.0;
        assert!((test.statistic - by_hand).abs() < 1e-12, "{test:?}");
        assert_eq!(test.degrees_of_freedom, 2);
        // With two degrees of freedom the tail is exp(-x/2).
        assert!((test.p_value - (-by_hand / 2.0).exp()).abs() < 1e-12);
    }

    #[test]
    fn it_rejects_five_per_cent_of_exponential_samples_and_others_more_often() {
        let mut stream = RandomStream::derive(11, &[]);
        let mut rejected = |shape: fn(f64) -> f64| {
            let sample = |_| (0..394).map(|_| shape(-(1.0 - stream.unit()).ln())).collect::<Vec<f64>>();
            let tests = (0..2000).map(sample).map(|values| chi_square_exponential(&values, 20).unwrap());
            tests.filter(|test| test.p_value < 0.05).count()
        };
        // 5 to 6 % of 2,000, and five sigma.
        let right = rejected(|t| 50.0 * t);
        assert!((52..=175).contains(&right), "{right}");
        // A Weibull density of shape 1.2 is seen most of the time.
        let wrong = rejected(|t| t.powf(1.0 / 1.2));
        assert!(wrong > 1000, "{wrong}");
    }

    #[test]
    fn what_cannot_be_tested_is_refused() {
        let too_few = |given, needed| Err(StatsError::TooFew { given, needed });
        assert_eq!(chi_square_exponential(&[1.0; 10], 2), too_few(2, 3));
        assert_eq!(chi_square_exponential(&[1.0; 14], 3), too_few(14, 15));
        assert_eq!(chi_square_exponential(&[-1.0; 15], 3), Err(StatsError::Value { value: -1.0 }));
    }
}
