//! One number of a paper beside ours.

use serde::{Serialize, Serializer};

/// What comes of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rule finds no contradiction.
    Agrees,
    /// The rule finds one.
    Differs,
    /// Our replications cannot tell.
    Undetermined,
    /// The paper has no such number.
    NotPublished,
}

impl Verdict {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Undetermined => "undetermined",
            Self::NotPublished => "not published",
        }
    }
}

/// By which rule a verdict is reached.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// One sentence without a full stop, the same for all numbers of a kind.
    pub sentence: &'static str,
    /// What would agree here, both ends included.
    pub agrees_within: Option<(f64, f64)>,
}

/// The sentence, and what would agree here.
impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl Rule {
    /// The sentence, and what would agree here.
    pub fn text(&self) -> String {
        match self.agrees_within {
            Some((low, high)) => format!("{}; here {} to {}", self.sentence, short(low), short(high)),
            None => self.sentence.to_owned(),
        }
    }
}

/// Four decimals at most.
pub(super) fn short(number: f64) -> String {
    let fixed = format!("{number:.4}");
    fixed.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What a comparison says, wherever it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// The paper's number.
    pub published: Option<f64>,
    /// Ours.
    pub farcast: f64,
    /// Half the width of the 95 % confidence interval of ours, where it has one.
    pub ci95_half_width: Option<f64>,
    /// What comes of it.
    pub verdict: Verdict,
    /// Why.
    pub rule: Rule,
}

/// One number of a paper beside ours, and where it stands.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The paper's short name.
    pub paper: &'static str,
    /// What is compared, with its unit.
    pub item: String,
    /// The case; each is a table.
    pub row: String,
    /// The setting within the case; empty where the number is of all.
    pub column: String,
    /// The paper's number.
    pub published: Option<f64>,
    /// Ours.
    pub farcast: f64,
    /// Half the width of the 95 % confidence interval of ours, where it has one.
    pub ci95_half_width: Option<f64>,
    /// What comes of it.
    pub verdict: Verdict,
    /// Why.
    pub rule: Rule,
    /// Decimals for people.
    #[serde(skip)]
    pub decimals: usize,
}

impl Row {
    /// `judged` at its place: (item, row, column).
    pub(crate) fn new(
        paper: &'static str,
        (item, row, column): (&str, &str, &str),
        decimals: usize,
        judged: Judged,
    ) -> Self {
        let Judged { published, farcast, ci95_half_width, verdict, rule } = judged;
        let (item, row, column) = (item.to_owned(), row.to_owned(), column.to_owned());
        Self { paper, item, row, column, published, farcast, ci95_half_width, verdict, rule, decimals }
    }
}
