//! What a scenario says of how it is tuned.
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

/// What the table `tune` says; simulating passes it over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wish {
    /// What is varied, as `--vary` has it.
    pub vary: Vec<String>,
    /// What is to be least.
    pub minimise: Option<String>,
    /// Bounds.
    pub subject_to: Vec<String>,
    /// What is not known.
    pub robust: Vec<String>,
    /// Cases that are tuned by themselves.
    pub cases: Vec<Case>,
}

/// A case.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Case {
    /// What it is called.
    pub name: String,
    /// What it sets, as `--set` has it.
    pub set: Vec<String>,
}

impl Wish {
    /// Reads the table, if there is one.
    ///
    /// # Errors
    /// A key that it does not have, or a value of another kind.
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
    /// A case as the command line has it: settings with commas between them.
    pub fn of(text: &str) -> Self {
        let set = crate::vary::parts(text).into_iter().map(str::to_owned).collect();
        Self { name: text.trim().to_owned(), set }
    }
}
