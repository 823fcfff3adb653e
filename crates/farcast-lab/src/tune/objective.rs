//! What is asked of a figure: the least of one, within bounds of others.

use std::fmt;
use std::str::FromStr;

use farcast_scenario::document::Document;
use farcast_stats::quantile;

use crate::figures::Figures;
use crate::vary;

/// What replications' values of a figure come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Statistic {
    /// The mean; infinite if a replication was not finished.
    Mean,
    /// A quantile (Hyndman and Fan's type 7), in per cent; replications that were not finished are later than others.
    Quantile(u8),
    /// The least.
    Least,
    /// The greatest.
    Greatest,
}

const STATISTICS: [(&str, Statistic); 9] = [
    ("mean", Statistic::Mean),
    ("p05", Statistic::Quantile(5)),
    ("p10", Statistic::Quantile(10)),
    ("p50", Statistic::Quantile(50)),
    ("p90", Statistic::Quantile(90)),
    ("p95", Statistic::Quantile(95)),
    ("p99", Statistic::Quantile(99)),
    ("min", Statistic::Least),
    ("max", Statistic::Greatest),
];

/// What is wrong with what is asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectiveError {
    /// A bound that is none.
    #[error(
        "\"{0}\" bounds nothing: FIGURE[.STATISTIC] < NUMBER, or < FACTOR * KEY with a key of the scenario, or with <=, \
         >, >="
    )]
    Form(String),
    /// A key that a bound names and the scenario does not have as a number.
    #[error("\"{bound}\": the scenario has no number called {key}")]
    Key {
        /// The bound.
        bound: String,
        /// The key.
        key: String,
    },
    /// A figure that nothing has.
    #[error("there is no figure {figure}, but {}", known.join(", "))]
    Figure {
        /// Which.
        figure: String,
        /// What there is.
        known: Vec<String>,
    },
}

/// A statistic of a figure, as in `completion_time_s.p95`; the mean where none is said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured {
    /// The figure.
    pub figure: String,
    /// Of its values.
    pub statistic: Statistic,
}

impl FromStr for Measured {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let known = |word: &str| STATISTICS.iter().find(|(name, _)| *name == word).map(|&(_, known)| known);
        let said = text.rsplit_once('.').and_then(|(figure, word)| Some((figure, known(word)?)));
        let (figure, statistic) = said.unwrap_or((text, Statistic::Mean));
        if figure.is_empty() || figure.contains(char::is_whitespace) {
            return Err(ObjectiveError::Form(text.to_owned()));
        }
        Ok(Self { figure: crate::figures::canonical(figure).to_owned(), statistic })
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            STATISTICS.iter().find(|(_, known)| *known == self.statistic).map_or("mean", |(name, _)| name);
        write!(f, "{}.{name}", self.figure)
    }
}

impl Statistic {
    /// Of `values`, in any order; infinite where that is what it comes to, and not a number for none.
    pub fn of(self, values: &[f64]) -> f64 {
        let mut sorted: Vec<f64>;
        match self {
            Self::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Self::Least => values.iter().copied().fold(f64::NAN, f64::min),
            Self::Greatest => values.iter().copied().fold(f64::NAN, f64::max),
            Self::Quantile(percent) => {
                sorted = values.to_vec();
                sorted.sort_unstable_by(f64::total_cmp);
                quantile_of_sorted(&sorted, f64::from(percent) / 100.0)
            }
        }
    }
}

/// The quantile of values that ascend and may end in infinities.
fn quantile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    let finite = sorted.partition_point(|value| value.is_finite());
    if finite == sorted.len() {
        return quantile(sorted, p).unwrap_or(f64::NAN);
    }
    let place = p * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    if high.is_finite() {
        low + (high - low) * place.fract()
    } else if place.fract() == 0.0 {
        low
    } else {
        high
    }
}

impl Measured {
    /// The values of the figure, infinite for a time that was not reached.
    ///
    /// # Errors
    /// There is no such figure.
    pub fn values(&self, figures: &Figures) -> Result<Vec<f64>, ObjectiveError> {
        let Some(values) = figures.find(&self.figure).and_then(|name| figures.column(name)) else {
            let known = figures.columns().map(|(name, _)| name.to_owned()).collect();
            return Err(ObjectiveError::Figure { figure: self.figure.clone(), known });
        };
        Ok(values.iter().map(|&value| if value.is_nan() { f64::INFINITY } else { value }).collect())
    }
}

/// Which side of a bound is allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// At most so much.
    Below,
    /// At least so much.
    Above,
}

/// A bound of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// As it was said.
    pub text: String,
    /// What is bounded.
    pub measured: Measured,
    /// On which side.
    pub side: Side,
    /// The bound, in the figure's unit.
    pub limit: f64,
}

impl Bound {
    /// A bound as a user says it, `forward.octets < 1.2 * protocol.file`; keys are those of `document`, which has been
    /// read, in their base units (s, bit/s, B). `file` stands for `protocol.file`.
    ///
    /// # Errors
    /// It is none, or its key is not there.
    pub fn parse(text: &str, document: &Document) -> Result<Self, ObjectiveError> {
        let form = || ObjectiveError::Form(text.to_owned());
        let at = text.find(['<', '>']).ok_or_else(form)?;
        let side = if text.as_bytes()[at] == b'<' { Side::Below } else { Side::Above };
        let name = text[..at].trim();
        let limit = text[at + 1..].trim_start_matches('=').trim();
        let (factor, key) = match limit.split_once('*') {
            Some((factor, key)) => (factor.trim().parse::<f64>().map_err(|_| form())?, key.trim()),
            None => (1.0, limit),
        };
        let value = match vary::number(key) {
            Some((value, _)) => value,
            None => self::key(document, key)
                .ok_or_else(|| ObjectiveError::Key { bound: text.to_owned(), key: key.to_owned() })?,
        };
        let limit = factor * value;
        if !limit.is_finite() {
            return Err(form());
        }
        Ok(Self { text: text.trim().to_owned(), measured: name.parse().map_err(|_| form())?, side, limit })
    }

    /// By how much `value` is on the wrong side; negative on the right one.
    pub fn excess(&self, value: f64) -> f64 {
        match self.side {
            Side::Below => value - self.limit,
            Side::Above => self.limit - value,
        }
    }
}

/// The number at a key of a document that has been read.
fn key(document: &Document, key: &str) -> Option<f64> {
    let key = if key == "file" { "protocol.file" } else { key };
    let read = document.keys_read();
    let (_, value, _) = read.iter().find(|(name, ..)| name == key)?;
    vary::number(value).map(|(value, _)| value)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the same digits are asked for")]
mod tests;
