//! Objectives of tuning: a figure to minimise, within bounds of others.

use std::fmt;
use std::str::FromStr;

use farcast_scenario::document::Document;
use farcast_stats::quantile;

use crate::figures::Figures;
use crate::vary;

/// Statistic of the values of a figure over replications.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Statistic {
    /// The mean; infinite if a replication was not finished.
    Mean,
    /// A quantile (Hyndman and Fan's type 7), in per cent; unfinished replications are later than others.
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

/// Error of an objective.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectiveError {
    /// Text that is not a bound.
    #[error(
        "\"{0}\" bounds nothing: FIGURE[.STATISTIC] < NUMBER, or < FACTOR * KEY with a key of the scenario, or with <=, \
         >, >="
    )]
    Form(String),
    /// A bound names a key for which the scenario has no number.
    #[error("\"{bound}\": the scenario has no number called {key}")]
    Key {
        /// Text of the bound.
        bound: String,
        /// Name of the key.
        key: String,
    },
    /// A figure that no replication has.
    #[error("there is no figure {figure}, but {}", known.join(", "))]
    Figure {
        /// Name of the figure.
        figure: String,
        /// Names of the existing figures.
        known: Vec<String>,
    },
}

/// A statistic of a figure, as in `completion_time_s.p95`; the mean if none is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured {
    /// Name of the figure.
    pub figure: String,
    /// Statistic of its values.
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
    /// Returns the statistic of `values`, in any order; it may be infinite, and is not-a-number for no values.
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

/// Returns the quantile of ascending values, which may end in infinities.
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
    /// Returns the values of the figure; absent ones are infinite, as for a time that was not reached.
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

/// Side of a bound that is allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Values at most the limit.
    Below,
    /// Values at least the limit.
    Above,
}

/// A bound of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// Text of the bound.
    pub text: String,
    /// Bounded statistic.
    pub measured: Measured,
    /// Allowed side.
    pub side: Side,
    /// Limit, in the figure's unit.
    pub limit: f64,
}

impl Bound {
    /// Parses a bound such as `forward.octets < 1.2 * protocol.file`. Keys are those of `document`, which has been
    /// read, in their base units (s, bit/s, B). `file` stands for `protocol.file`.
    ///
    /// # Errors
    /// The text is not a bound, or its key does not exist.
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

    /// Returns by how much `value` is on the wrong side of the limit; negative on the right side.
    pub fn excess(&self, value: f64) -> f64 {
        match self.side {
            Side::Below => value - self.limit,
            Side::Above => self.limit - value,
        }
    }
}

/// Returns the number at a key of a document that has been read.
fn key(document: &Document, key: &str) -> Option<f64> {
    let key = if key == "file" { "protocol.file" } else { key };
    let read = document.keys_read();
    let (_, value, _) = read.iter().find(|(name, ..)| name == key)?;
    vary::number(value).map(|(value, _)| value)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the same digits are asked for")]
mod tests;
