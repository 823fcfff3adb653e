//! Tuning tasks that scenarios contain.
//!
//! ```toml
//! [tune]
//! vary = ["protocol.srt.n=1..10"]
//! minimise = "completion_time_s.mean"
//! subject_to = ["forward.octets < 1.5 * protocol.file"]
//!
//! [[tune.case]]
//! name = "40 receivers"
//! set = ["receivers=40", "link.forward.per=0.005"]
//! ```

use farcast_scenario::document::{Document, DocumentError};

/// Content of the table `tune`, which simulations ignore.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TuneTable {
    /// Varied settings, as arguments of `--vary`.
    pub vary: Vec<String>,
    /// Figure to minimise.
    pub minimise: Option<String>,
    /// Bounds, as arguments of `--subject-to`.
    pub subject_to: Vec<String>,
    /// Unknown conditions, as arguments of `--robust`.
    pub robust: Vec<String>,
    /// Cases, each of which is tuned by itself.
    pub cases: Vec<Case>,
}

/// A case of tuning.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Case {
    /// Name of the case.
    pub name: String,
    /// Settings of the case, as arguments of `--set`.
    pub set: Vec<String>,
}

impl TuneTable {
    /// Reads the table, if there is one.
    ///
    /// # Errors
    /// A key is unknown, or a value is of another kind.
    pub fn read(document: &Document) -> Result<Self, DocumentError> {
        let mut top = document.root();
        let Some(mut table) = top.optional_table("tune")? else { return Ok(Self::default()) };
        let mut cases = Vec::new();
        for mut case in table.optional_tables("case")?.unwrap_or_default() {
            cases.push(Case { name: case.text("name")?, set: case.list_of_texts("set")? });
            case.finish()?;
        }
        let wish = Self {
            vary: table.list_of_texts_or("vary", Vec::new())?,
            minimise: table.optional_text("minimise")?,
            subject_to: table.list_of_texts_or("subject_to", Vec::new())?,
            robust: table.list_of_texts_or("robust", Vec::new())?,
            cases,
        };
        table.finish()?;
        Ok(wish)
    }
}

impl Case {
    /// Creates a case from an argument of the command line: settings with commas between them.
    pub fn of(text: &str) -> Self {
        let set = crate::vary::parts(text).into_iter().map(str::to_owned).collect();
        Self { name: text.trim().to_owned(), set }
    }
}
