//! Rows: a published number beside ours.

use serde::{Serialize, Serializer};

/// Verdict of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rule finds no contradiction.
    Agrees,
    /// The rule finds a contradiction.
    Differs,
    /// Our replications cannot tell.
    Undetermined,
    /// The paper has no such number.
    NotPublished,
}

impl Verdict {
    /// Returns the verdict in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Undetermined => "undetermined",
            Self::NotPublished => "not published",
        }
    }
}

/// Rule by which a verdict is reached.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// One sentence without a full stop, the same for all numbers of a kind.
    pub sentence: &'static str,
    /// Range in which a number agrees here, both ends included.
    pub agrees_within: Option<(f64, f64)>,
}

/// Serializes a rule as its text.
impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl Rule {
    /// Returns the sentence, and the range in which a number agrees here.
    pub fn text(&self) -> String {
        match self.agrees_within {
            Some((low, high)) => format!("{}; here {} to {}", self.sentence, short(low), short(high)),
            None => self.sentence.to_owned(),
        }
    }
}

/// Returns a number with four decimals at most.
pub(super) fn short(number: f64) -> String {
    let fixed = format!("{number:.4}");
    fixed.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Result of a comparison, without its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// Published number.
    pub published: Option<f64>,
    /// Our number.
    pub farcast: f64,
    /// Half the width of the 95 % confidence interval of our number, if it has one.
    pub ci95_half_width: Option<f64>,
    /// Verdict of the comparison.
    pub verdict: Verdict,
    /// Rule behind the verdict.
    pub rule: Rule,
}

/// A published number beside ours, with its place.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Short name of the paper.
    pub paper: &'static str,
    /// Name of the compared item, with its unit.
    pub item: String,
    /// Name of the case; each case is a table.
    pub row: String,
    /// Setting within the case; empty if the number is that of the whole case.
    pub column: String,
    /// Published number.
    pub published: Option<f64>,
    /// Our number.
    pub farcast: f64,
    /// Half the width of the 95 % confidence interval of our number, if it has one.
    pub ci95_half_width: Option<f64>,
    /// Verdict of the comparison.
    pub verdict: Verdict,
    /// Rule behind the verdict.
    pub rule: Rule,
    /// Number of decimals that tables show.
    #[serde(skip)]
    pub decimals: usize,
}

/// Place of a row: its item, its case, and its setting within the case.
#[derive(Clone, Copy)]
pub(crate) struct RowPlace<'a> {
    pub(crate) item: &'a str,
    pub(crate) row: &'a str,
    pub(crate) column: &'a str,
}

impl Row {
    /// Creates the row of `judged` at its place.
    pub(crate) fn new(paper: &'static str, place: RowPlace<'_>, decimals: usize, judged: Judged) -> Self {
        let Judged { published, farcast, ci95_half_width, verdict, rule } = judged;
        let RowPlace { item, row, column } = place;
        let (item, row, column) = (item.to_owned(), row.to_owned(), column.to_owned());
        Self { paper, item, row, column, published, farcast, ci95_half_width, verdict, rule, decimals }
    }
}
