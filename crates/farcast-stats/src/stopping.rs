//! Stopping rule: the number of replications after which a mean is known well enough.

use crate::{Accumulator, StatsError, Summary};

/// Precision to which a mean is to be known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Precision {
    /// The most that the half width of the 95 % confidence interval may be, as a share of the mean; above 0.
    pub relative: f64,
}

impl Precision {
    /// Returns `true` if the mean is known to this precision. With fewer than two values it never is, nor is a mean
    /// of zero that varies.
    pub fn reached(&self, summary: &Summary) -> bool {
        summary.ci95_half_width.is_some_and(|half_width| half_width <= self.relative * summary.mean.abs())
    }
}

/// Rule for the number of replications: stops when the [`Precision`] is reached, or at a greatest number.
///
/// Results are fed in the order of their indices, whatever the order in which they were computed. The precision is
/// checked only after 10, 20 and 40 results and then after a quarter more each time (50, 63, 79, ...). The number of
/// replications therefore depends on the results alone and not on how many threads ran ahead. The caller throws away
/// results past that number.
///
/// # What stopping does to the interval
///
/// A sample whose standard deviation happens to be small stops sooner. The interval at the stop therefore covers the
/// true mean somewhat less often than its 95 %, and the standard deviation is somewhat too small; the effect goes to
/// zero as the precision asked for becomes finer (Chow and Robbins, Annals of Mathematical Statistics 36, 1965). Few
/// looks, far apart, keep it small: the intervals of normal results cover the mean 93.5 % of the time where the
/// first three looks decide, and 94.5 % or more where a hundred replications are needed. Where the last per cent
/// matters, fix the number of replications instead.
#[derive(Clone, PartialEq, Debug)]
pub struct StoppingRule {
    precision: Precision,
    most: u64,
    results: Accumulator,
    /// Number of results that were fed, including those without a value.
    fed: u64,
    /// Number of results after which the precision is checked next.
    look: u64,
    stopped: bool,
}

impl StoppingRule {
    /// Creates a rule that stops after `most` replications at the latest. Refuses a precision that is not finite and
    /// above 0, and `most` below 1.
    pub fn new(precision: Precision, most: u64) -> Result<Self, StatsError> {
        let value = precision.relative;
        if !(value.is_finite() && value > 0.0) {
            return Err(StatsError::Precision { value });
        }
        if most == 0 {
            return Err(StatsError::TooFew { given: most, needed: 1 });
        }
        let look = FIRST_LOOK.min(most);
        Ok(Self { precision, most, results: Accumulator::new(), fed: 0, look, stopped: false })
    }

    /// Takes the result of replication `index`, counted from 0, and returns [`stop`](Self::stop).
    ///
    /// `None` is a replication without a value, because it did not finish. There is then no mean any more, so the
    /// rule runs to its greatest number. After the stop, further results are ignored. Before the stop, a result out
    /// of order is refused, and so is a value that [`Accumulator::push`] refuses; neither changes anything.
    pub fn push(&mut self, index: u64, result: Option<f64>) -> Result<Option<u64>, StatsError> {
        if self.stopped {
            return Ok(self.stop());
        }
        if index != self.fed {
            return Err(StatsError::Order { expected: self.fed, given: index });
        }
        if let Some(value) = result {
            self.results.push(value)?;
        }
        self.fed += 1;
        if self.fed == self.look {
            self.stopped = self.fed == self.most || self.reached();
            self.look = next_look(self.look).min(self.most);
        }
        Ok(self.stop())
    }

    /// Returns the number of replications to keep, or `None` before the stop.
    pub fn stop(&self) -> Option<u64> {
        self.stopped.then_some(self.fed)
    }

    /// Returns the summary of the results fed so far, without those that have no value.
    pub fn summary(&self) -> Option<Summary> {
        self.results.summary()
    }

    fn reached(&self) -> bool {
        let complete = self.results.n() == self.fed;
        complete && self.results.summary().is_some_and(|summary| self.precision.reached(&summary))
    }
}

const FIRST_LOOK: u64 = 10;

/// Returns the next number of results to check at: doubled up to 40, then a quarter more, rounded up.
const fn next_look(look: u64) -> u64 {
    look.saturating_add(if look < 40 { look } else { look.div_ceil(4) })
}

#[cfg(test)]
mod tests;
