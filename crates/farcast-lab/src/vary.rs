//! Varied settings, and their values.
//!
//! | argument | values |
//! |---|---|
//! | `KEY=a,b,c` | `a`, `b` and `c` |
//! | `KEY=1..10` | every whole number from 1 to 10 |
//! | `KEY=10 ms..50 ms/5` | five, evenly apart: 10, 20, 30, 40, 50 ms |
//! | `KEY=0.001..0.1*3` | three in equal ratios: 0.001, 0.01, 0.1 |
//!
//! Each of these forms may be one of several, with commas between them: `1..3,5,8`. Commas in brackets, braces or
//! quotes belong to a value.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use farcast_core::Span;
use farcast_core::units::{BitRate, Bytes, Probability};
use farcast_scenario::document::Document;

/// Most values of a key, and most points of a grid.
pub const MOST_POINTS: usize = 1_000_000;

/// A key of a scenario with the values that it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    key: String,
    values: Vec<String>,
}

/// Error of a description of varied settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaryError {
    /// The text has no key or no values.
    #[error("\"{0}\" does not say what to vary: KEY=VALUE,VALUE,... or KEY=FROM..TO")]
    Form(String),
    /// A text that is not a valid range.
    #[error("{key}: \"{range}\" is no range: {fault}")]
    Range {
        /// Key that is varied.
        key: String,
        /// Text of the range.
        range: String,
        /// Description of what is wrong with it.
        fault: RangeFault,
    },
    /// A comma with nothing beside it.
    #[error("\"{0}\" has a comma with no value beside it: KEY=VALUE,VALUE,...")]
    Gap(String),
    /// A value comes twice.
    #[error("{key}: the value {value} comes twice{}", again.as_ref().map_or_else(String::new, |again| format!(", also as {again}")))]
    Twice {
        /// Key that is varied.
        key: String,
        /// The value.
        value: String,
        /// The other spelling.
        again: Option<String>,
    },
    /// A key is varied and set.
    #[error("{key} is varied, and set as well ({set}): say one of the two")]
    AlsoSet {
        /// Name of the key.
        key: String,
        /// Assignment that sets it.
        set: String,
    },
    /// A key is varied twice.
    #[error("{0} is varied twice: give all its values at once")]
    SameKey(String),
    /// More points than can be run.
    #[error("that is {points} points, more than the {MOST_POINTS} that there may be: vary fewer values")]
    TooMany {
        /// Number of points, at least.
        points: u128,
    },
}

/// Fault of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RangeFault {
    /// The text does not have the form of a range.
    #[error(
        "FROM..TO for whole numbers, FROM..TO/N for N values evenly apart, FROM..TO*N for N in equal ratios, with one unit"
    )]
    Form,
    /// The range descends.
    #[error("it goes down; begin with the lesser value")]
    Descending,
    /// The range ends where it begins.
    #[error("it ends where it begins; give that value alone")]
    Empty,
    /// Equal ratios begin at zero or below.
    #[error(
        "equal ratios cannot begin at zero or below; begin above it, or say FROM..TO/N for values evenly apart"
    )]
    Ratios,
    /// The range has fewer than two values.
    #[error("it needs at least 2 values, its ends")]
    Steps,
    /// The ends are not whole numbers, and the number of values is not given.
    #[error(
        "its ends are not both whole numbers, so say how many values: FROM..TO/N evenly apart, FROM..TO*N in equal ratios"
    )]
    HowMany,
    /// The ends have different units.
    #[error("its ends need one unit")]
    Units,
}

impl FromStr for Axis {
    type Err = VaryError;

    fn from_str(text: &str) -> Result<Self, VaryError> {
        let form = || VaryError::Form(text.to_owned());
        let (key, values) = text.split_once('=').ok_or_else(form)?;
        let key = key.trim();
        let parts = parts(values);
        if key.is_empty() || values.trim().is_empty() {
            return Err(form());
        }
        if parts.iter().any(|part| part.is_empty()) {
            return Err(VaryError::Gap(text.to_owned()));
        }
        let mut all = Vec::new();
        for part in parts {
            // A path may have two dots, but not behind a number.
            let is_text = |from: &str| from.is_empty() || part.starts_with(['"', '\'', '[', '{']);
            match part.split_once("..").filter(|(from, _)| !is_text(from)) {
                None => all.push(part.to_owned()),
                Some((from, to)) => {
                    let range =
                        |fault| VaryError::Range { key: key.to_owned(), range: part.to_owned(), fault };
                    all.extend(self::range(from.trim(), to.trim()).map_err(range)??);
                }
            }
        }
        Self::new(key, all)
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.values.join(","))
    }
}

impl Axis {
    /// Creates an axis of a key with these values, each as an argument of `--set`.
    ///
    /// # Errors
    /// There is no key or no value, or a value comes twice.
    pub fn new(key: &str, values: Vec<String>) -> Result<Self, VaryError> {
        if key.is_empty() || values.is_empty() {
            return Err(VaryError::Form(key.to_owned()));
        }
        let mut known: HashMap<String, &String> = HashMap::with_capacity(values.len());
        for value in &values {
            if let Some(first) = known.insert(one_spelling(value), value) {
                let again = (first != value).then(|| value.clone());
                return Err(VaryError::Twice { key: key.to_owned(), value: first.clone(), again });
            }
        }
        drop(known);
        Ok(Self { key: key.to_owned(), values })
    }

    /// Parses an unknown condition, as an argument of `--robust`. The form is that of any axis. In addition,
    /// `FROM..TO` of numbers that are not both whole gives five values, in equal ratios, or evenly apart if it begins
    /// at zero.
    ///
    /// # Errors
    /// The text has nothing to vary.
    pub fn unknown(text: &str) -> Result<Self, VaryError> {
        let Err(error) = text.parse::<Self>() else { return text.parse() };
        let from_zero = text
            .split_once('=')
            .is_some_and(|(_, range)| split(range.trim()).is_some_and(|(low, _)| low == 0.0));
        format!("{text}{}", if from_zero { "/5" } else { "*5" }).parse().map_err(|_| error)
    }

    /// Returns the key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the values, each as an argument of `--set`.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Returns the values as numbers with one unit, if all of them are.
    pub fn numbers(&self) -> Option<Numbers> {
        let all: Vec<(f64, &'static str)> =
            self.values.iter().map(|value| number(value)).collect::<Option<_>>()?;
        let unit = all.first()?.1;
        let values = all.iter().map(|&(value, _)| value).collect();
        all.iter().all(|&(_, other)| other == unit).then_some(Numbers { values, unit })
    }
}

/// Values of an axis as numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Numbers {
    /// Number for each value.
    pub values: Vec<f64>,
    /// Unit of the numbers: `s`, `bit/s`, `B`, or nothing.
    pub unit: &'static str,
}

/// Returns a value in a spelling that all equal values share: a number in its base unit, or text without quotes.
fn one_spelling(value: &str) -> String {
    match number(value) {
        // Minus zero is zero.
        Some((number, unit)) => format!("{:?} {unit}", number + 0.0),
        None => value.trim().trim_matches(['"', '\'']).to_owned(),
    }
}

/// Returns a value as a number in its base unit.
pub(crate) fn number(value: &str) -> Option<(f64, &'static str)> {
    let value = value.trim().trim_matches('"');
    if let Ok(number) = value.parse::<f64>() {
        return number.is_finite().then_some((number, ""));
    }
    if let Ok(span) = value.parse::<Span>() {
        return Some((span.as_secs_f64(), "s"));
    }
    if let Ok(rate) = value.parse::<BitRate>() {
        return Some((rate.as_bps() as f64, "bit/s"));
    }
    if let Ok(Bytes(octets)) = value.parse::<Bytes>() {
        return Some((octets as f64, "B"));
    }
    value.parse::<Probability>().ok().map(|part| (part.get(), ""))
}

/// Combinations of the values of axes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid {
    axes: Vec<Axis>,
    points: usize,
}

impl Grid {
    /// Creates the grid of every combination of the values of `axes`; one point if there are none.
    ///
    /// # Errors
    /// A key is varied twice, or there are more than [`MOST_POINTS`].
    pub fn new(axes: Vec<Axis>) -> Result<Self, VaryError> {
        for (number, axis) in axes.iter().enumerate() {
            if axes[..number].iter().any(|other| other.key == axis.key) {
                return Err(VaryError::SameKey(axis.key.clone()));
            }
        }
        let points = axes.iter().fold(1u128, |all, axis| all.saturating_mul(axis.values.len() as u128));
        match usize::try_from(points) {
            Ok(points) if points <= MOST_POINTS => Ok(Self { axes, points }),
            _ => Err(VaryError::TooMany { points }),
        }
    }

    /// Refuses a key that is varied and set by an assignment of `document` as well.
    ///
    /// # Errors
    /// There is such a key.
    pub fn check_beside(&self, document: &Document) -> Result<(), VaryError> {
        let set = |axis: &Axis| Some((axis.key.clone(), document.setting_of(&axis.key)?.to_owned()));
        match self.axes.iter().find_map(set) {
            Some((key, set)) => Err(VaryError::AlsoSet { key, set }),
            None => Ok(()),
        }
    }

    /// Returns the varied axes.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns the number of points.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Returns the index of each axis's value at `point`: the last axis changes fastest.
    pub fn indices(&self, point: usize) -> Vec<usize> {
        let mut rest = point;
        let mut indices: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let index = rest % axis.values.len();
                rest /= axis.values.len();
                index
            })
            .collect();
        indices.reverse();
        indices
    }

    /// Returns the value of each axis at `point`.
    pub fn values(&self, point: usize) -> Vec<&str> {
        let indices = self.indices(point);
        self.axes.iter().zip(indices).map(|(axis, index)| axis.values[index].as_str()).collect()
    }

    /// Returns the settings at `point`, as arguments of `--set`.
    pub fn assignments(&self, point: usize) -> Vec<String> {
        let values = self.values(point);
        self.axes.iter().zip(values).map(|(axis, value)| format!("{}={value}", axis.key)).collect()
    }

    /// Returns the point in words: `protocol.srt.n=4, receivers=20`.
    pub fn name(&self, point: usize) -> String {
        self.assignments(point).join(", ")
    }
}

/// Splits a text at commas that are not within brackets, braces or quotes.
pub(crate) fn parts(text: &str) -> Vec<&str> {
    let (mut all, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0i32, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth <= 0 => {
                all.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    all.push(text[begin..].trim());
    all
}

/// Returns the values of `FROM..TO`, `FROM..TO/N` and `FROM..TO*N`.
fn range(from: &str, to: &str) -> Result<Result<Vec<String>, VaryError>, RangeFault> {
    let (to, steps) = match to.rfind(['/', '*']) {
        // A rate has a slash in its unit.
        Some(at) if to[at + 1..].trim().parse::<usize>().is_ok() => {
            let steps = to[at + 1..].trim().parse::<usize>().map_err(|_| RangeFault::Form)?;
            (to[..at].trim(), Some((to.as_bytes()[at], steps)))
        }
        _ => (to, None),
    };
    let Some((kind, steps)) = steps else {
        return whole_numbers(from, to);
    };
    let (low, high, unit) = ends(from, to)?;
    if steps < 2 {
        return Err(RangeFault::Steps);
    }
    if kind == b'*' && low <= 0.0 {
        return Err(RangeFault::Ratios);
    }
    if steps > MOST_POINTS {
        return Ok(Err(VaryError::TooMany { points: steps as u128 }));
    }
    let at = |step: usize| {
        let share = step as f64 / (steps - 1) as f64;
        if kind == b'/' { low + (high - low) * share } else { low * (high / low).powf(share) }
    };
    let space = if unit.is_empty() { "" } else { " " };
    let mut values: Vec<String> =
        (0..steps).map(|step| format!("{}{space}{unit}", rounded(at(step)))).collect();
    values.dedup();
    Ok(Ok(values))
}

/// Returns every whole number from one to the other.
fn whole_numbers(from: &str, to: &str) -> Result<Result<Vec<String>, VaryError>, RangeFault> {
    let (Ok(from), Ok(to)) = (from.parse::<i64>(), to.parse::<i64>()) else {
        // A fault of the ends is reported first.
        return Err(ends(from, to).err().unwrap_or(RangeFault::HowMany));
    };
    ascends(from as f64, to as f64)?;
    let points = i128::from(to) - i128::from(from) + 1;
    if points > MOST_POINTS as i128 {
        return Ok(Err(VaryError::TooMany { points: points.unsigned_abs() }));
    }
    Ok(Ok((from..=to).map(|value| value.to_string()).collect()))
}

/// Returns the ends of a range, and their one unit.
fn ends<'a>(from: &'a str, to: &'a str) -> Result<(f64, f64, &'a str), RangeFault> {
    let (low, low_unit) = split(from).ok_or(RangeFault::Form)?;
    let (high, high_unit) = split(to).ok_or(RangeFault::Form)?;
    let unit = if low_unit.is_empty() { high_unit } else { low_unit };
    if high_unit != unit || (low_unit != unit && low != 0.0) {
        return Err(RangeFault::Units);
    }
    ascends(low, high)?;
    Ok((low, high, unit))
}

fn ascends(low: f64, high: f64) -> Result<(), RangeFault> {
    match low.partial_cmp(&high) {
        Some(std::cmp::Ordering::Less) => Ok(()),
        Some(std::cmp::Ordering::Greater) => Err(RangeFault::Descending),
        _ => Err(RangeFault::Empty),
    }
}

/// Splits a text into a number and the text behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(text.len());
    let number = text[..end].trim().parse::<f64>().ok().filter(|number| number.is_finite())?;
    Some((number, text[end..].trim()))
}

/// Rounds to six digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<Axis>().unwrap().values
    }

    fn error(text: &str) -> String {
        text.parse::<Axis>().unwrap_err().to_string()
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(values("a.b=0.001,0.005"), ["0.001", "0.005"]);
        assert_eq!(values("n=1..4"), ["1", "2", "3", "4"]);
        assert_eq!(values("n=-1..1, 5"), ["-1", "0", "1", "5"]);
        assert_eq!(values("d=10 ms..50 ms/5"), ["10 ms", "20 ms", "30 ms", "40 ms", "50 ms"]);
        assert_eq!(values("d=0..1 s/3"), ["0 s", "0.5 s", "1 s"]);
        assert_eq!(values("per=0.001..0.1*3"), ["0.001", "0.01", "0.1"]);
        assert_eq!(values("r=64 kbit/s..256 kbit/s*3"), ["64 kbit/s", "128 kbit/s", "256 kbit/s"]);
        assert_eq!(values("r=1 Mbit/s,2 Mbit/s"), ["1 Mbit/s", "2 Mbit/s"]);
        assert_eq!(values("list=[1, 2],[3]"), ["[1, 2]", "[3]"]);
        assert_eq!(values("text=\"a,b\",c"), ["\"a,b\"", "c"]);
        assert_eq!(values("file=../a.csv").len(), 1, "a path is no range: {:?}", values("file=../a.csv"));
    }

    #[test]
    fn what_is_not_known_is_a_range_of_ratios() {
        let values = |text: &str| Axis::unknown(text).map(|axis| axis.values);
        assert_eq!(values("p=0.001..0.1").unwrap(), ["0.001", "0.00316228", "0.01", "0.0316228", "0.1"]);
        assert_eq!(values("d=0 ms..80 ms").unwrap(), ["0 ms", "20 ms", "40 ms", "60 ms", "80 ms"]);
        assert_eq!(values("p=0.1,0.2").unwrap(), ["0.1", "0.2"]);
        assert!(values("p=0.2..0.1").is_err());
    }

    #[test]
    fn what_is_no_range_is_said() {
        for wrong in ["n=4..1", "n=1..1", "d=1 ms..2 s/3", "p=0..1*3", "p=0.1..0.5", "p=1..9/1", "r=a..b"] {
            assert!(error(wrong).contains("is no range"), "{wrong}: {}", error(wrong));
        }
        for wrong in ["n", "=1", "n="] {
            assert!(error(wrong).contains("does not say what to vary"), "{wrong}: {}", error(wrong));
        }
        assert_eq!(error("n=1,2,1"), "n: the value 1 comes twice");
        assert!(error("n=0..99999999").starts_with("that is 100000000 points"));
    }

    #[test]
    fn it_is_said_what_is_wrong_with_a_range() {
        for (wrong, why) in [
            ("n=4..1", "goes down"),
            ("p=0.1..0.001*3", "goes down"),
            ("p=0.1..0.001", "goes down"),
            ("d=5 ms..1 ms/3", "goes down"),
            ("n=1..1", "ends where it begins"),
            ("p=0..0.1*3", "cannot begin at zero"),
            ("p=-1..1*3", "cannot begin at zero"),
            ("p=1..9/1", "at least 2 values"),
            ("p=0.1..0.5", "say how many values"),
            ("d=1 ms..2 ms", "say how many values"),
            ("d=1 ms..2 s/3", "one unit"),
            ("r=a..b", "FROM..TO for whole numbers"),
        ] {
            assert!(error(wrong).contains(why), "{wrong}: {}", error(wrong));
        }
        for wrong in ["receivers=10,", "n=,1", "n=1,,2"] {
            assert!(error(wrong).contains("a comma with no value beside it"), "{wrong}: {}", error(wrong));
        }
    }

    #[test]
    fn a_value_in_another_spelling_comes_twice() {
        assert_eq!(error("n=0.1,0.10"), "n: the value 0.1 comes twice, also as 0.10");
        assert_eq!(error("d=10 ms,0.01 s"), "d: the value 10 ms comes twice, also as 0.01 s");
        assert_eq!(error("p=0.01,1 %"), "p: the value 0.01 comes twice, also as 1 %");
        assert_eq!(error("w=auto,\"auto\""), "w: the value auto comes twice, also as \"auto\"");
        assert_eq!(values("d=1 s,1"), ["1 s", "1"], "a number without a unit is another");
    }

    #[test]
    fn what_is_varied_is_not_set_besides() {
        let mut document = Document::parse("x.toml", "").unwrap();
        for set in ["receivers=5", "protocol.srt={ n = 4 }", "link.forward.per=0.1"] {
            document.set(set).unwrap();
        }
        let conflict = |text: &str| {
            let grid = Grid::new(vec![text.parse().unwrap()]).unwrap();
            grid.check_beside(&document).err().map(|error| error.to_string())
        };
        assert_eq!(
            conflict("receivers=2,3").as_deref(),
            Some("receivers is varied, and set as well (receivers=5): say one of the two")
        );
        assert!(conflict("protocol.srt.n=1..3").is_some(), "it is in a table that is set");
        assert!(conflict("link.forward={}").is_some(), "something in it is set");
        assert!(conflict("link.forward.delay=1 s,2 s").is_none());
    }

    #[test]
    fn numbers_have_one_unit() {
        let numbers = |text: &str| text.parse::<Axis>().unwrap().numbers().map(|n| (n.values, n.unit));
        assert_eq!(numbers("d=10 ms,1 s"), Some((vec![0.01, 1.0], "s")));
        assert_eq!(numbers("r=64 kbit/s,1 Mbit/s"), Some((vec![64e3, 1e6], "bit/s")));
        assert_eq!(numbers("f=1 MB,1 KiB"), Some((vec![1e6, 1024.0], "B")));
        assert_eq!(numbers("p=0.5 %,0.02"), Some((vec![0.005, 0.02], "")));
        assert_eq!(numbers("p=0.5 %,open"), None);
        assert_eq!(numbers("p=1 s,5"), None);
    }

    #[test]
    fn the_last_axis_changes_fastest() {
        let axes = ["a=1..2", "b=x,y,z"].map(|axis| axis.parse().unwrap());
        let grid = Grid::new(axes.to_vec()).unwrap();
        let names: Vec<_> = (0..grid.points()).map(|point| grid.name(point)).collect();
        assert_eq!(names, ["a=1, b=x", "a=1, b=y", "a=1, b=z", "a=2, b=x", "a=2, b=y", "a=2, b=z"]);
        assert_eq!(Grid::new(Vec::new()).unwrap().points(), 1);
        let twice = ["a=1..2", "a=3,4"].map(|axis| axis.parse().unwrap());
        assert_eq!(Grid::new(twice.to_vec()).unwrap_err(), VaryError::SameKey("a".into()));
        let many = ["a=1..2000", "b=1..2000"].map(|axis| axis.parse().unwrap());
        assert_eq!(Grid::new(many.to_vec()).unwrap_err(), VaryError::TooMany { points: 4_000_000 });
    }
}
