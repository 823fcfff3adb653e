//! Scenario documents: TOML whose errors name the line and the key.
//!
//! This module knows no schema. Code with a schema reads a document through [`Reader`]s, one for each table. It asks
//! each reader for the keys of the schema and ends with [`Reader::finish`], which refuses every key that was not
//! asked for. The first error ends the reading. It is one sentence of the form
//! `scenarios/x.toml:12: link.forward.per: <what is wrong>; <what is allowed>`.
//! If an assignment brought the value, `--set KEY=VALUE` stands in place of file and line.
//!
//! ```
//! use farcast_scenario::document::Document;
//! # fn main() -> Result<(), farcast_scenario::document::DocumentError> {
//! let mut document = Document::parse("x.toml", "[link]\nrate = \"20 Mbit/s\"\n")?;
//! document.set("link.per=0.005")?;
//! let mut top = document.root();
//! let mut link = top.table("link")?;
//! let rate = link.rate("rate")?;
//! let per = link.probability("per")?;
//! link.finish()?;
//! top.finish()?;
//! assert_eq!((rate.as_bps(), per.get()), (20_000_000, 0.005));
//! # Ok(())
//! # }
//! ```
//!
//! Quantities are text with a unit (see [`farcast_core::units`]). A path reaches the members of a list of tables by
//! their key `name`: in errors, in [`Document::set`] and in [`Document::keys_read`], as in `link.stages.uplink.rate`.

mod assignment;
mod build;
mod error;
mod file;
mod given;
mod kinds;
mod nesting;
mod questions;
mod reader;
mod setting;
mod suggestion;
mod tree;

use std::cell::RefCell;
use std::collections::BTreeMap;

pub use error::{DocumentError, ErrorPosition, Problem};
pub use file::text_of;
pub use given::Given;
pub use questions::{Asked, Presence, Question};
pub use reader::Reader;

use error::Fault;
use tree::{Entry, KeySource, Table, Value};

/// Limit on the depth of tables and lists within each other.
pub const NESTING_LIMIT: usize = 16;

/// Origin of the value of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The document's text.
    File,
    /// A later [`Document::set`].
    Setting,
    /// The schema: the key was not given.
    Default,
}

/// A document with the assignments laid over it.
#[derive(Clone, Debug)]
pub struct Document {
    name: String,
    top: Table,
    /// Assignments laid over the document, for error messages.
    assignments: Vec<String>,
    /// Options of a command line that made assignments, by the index of the assignment.
    options: BTreeMap<usize, String>,
    /// Contents of files that the document may name, by their path in the document.
    attached: BTreeMap<String, String>,
    reads: RefCell<Vec<(String, String, Origin)>>,
    /// Text of the files that readers opened, by their path in the document.
    files: RefCell<BTreeMap<String, String>>,
    /// Keys that readers asked for; `None` unless [`Document::keep_questions`] was called.
    questions: Option<RefCell<Vec<Question>>>,
}

impl Document {
    /// Reads the TOML document `text`; errors call it `name`, which is usually its path.
    ///
    /// Refuses text that is not TOML 1.0, tables and lists more than [`NESTING_LIMIT`] deep, and numbers that fit
    /// neither 64-bit integers nor doubles.
    pub fn parse(name: &str, text: &str) -> Result<Self, DocumentError> {
        let mut document = Self {
            name: name.to_owned(),
            top: Table::default(),
            assignments: Vec::new(),
            options: BTreeMap::new(),
            attached: BTreeMap::new(),
            reads: RefCell::default(),
            files: RefCell::default(),
            questions: None,
        };
        match build::document(text) {
            Ok(top) => document.top = top,
            Err(fault) => return Err(document.error(fault)),
        }
        Ok(document)
    }

    /// Lays `KEY=VALUE` over the document, as in `link.forward.per=0.005`.
    ///
    /// The key is a path of keys with dots between them. A part with a dot or an equals sign in it is quoted as in
    /// TOML. If the path meets a list of tables, the next part is the `name` of a member. Absent tables and keys are
    /// created; absent members of lists are an error. The value is read as TOML if it is TOML, and otherwise as text:
    /// `20 Mbit/s` needs no quotes. A key that the schema does not have is found when the document is read.
    pub fn set(&mut self, assignment: &str) -> Result<(), DocumentError> {
        let index = self.assignments.len();
        self.assignments.push(assignment.to_owned());
        assignment::apply(&mut self.top, assignment, index).map_err(|fault| {
            let error = self.error(fault);
            self.assignments.pop();
            error
        })
    }

    /// Lays `key = value` over the document for an option of a command line, as [`set`](Self::set) does. Errors in the
    /// value name the `option`.
    ///
    /// # Errors
    /// The key leads through something that is no table.
    pub fn set_by_option(&mut self, option: &str, key: &str, value: &str) -> Result<(), DocumentError> {
        let assignment = format!("{key}={value}");
        let index = self.assignments.len();
        self.assignments.push(assignment.clone());
        self.options.insert(index, option.to_owned());
        assignment::apply(&mut self.top, &assignment, index).map_err(|fault| self.error(fault))
    }

    /// Removes a key, if the document has it. The key is a path of bare keys of tables, with dots between them.
    pub fn remove(&mut self, key: &str) {
        let mut table = &mut self.top;
        let mut rest = key;
        while let Some((first, behind)) = rest.split_once('.') {
            let Some(Value::Table(inner)) = table.get_mut(first) else { return };
            (table, rest) = (inner, behind);
        }
        table.entries.retain(|entry| entry.key != rest);
    }

    /// Returns the last assignment that sets `key`, a table around it, or something in it.
    pub fn setting_of(&self, key: &str) -> Option<&str> {
        let assignments = self.assignments.iter().rev();
        assignments.map(String::as_str).find(|assignment| assignment::touches(assignment, key))
    }

    /// Attaches a file: if the document names `path`, it gets `text`, whatever is on the disk.
    pub fn attach(&mut self, path: &str, text: &str) {
        self.attached.insert(path.to_owned(), text.to_owned());
    }

    /// Records from now on the keys that readers ask for, for [`questions`](Self::questions).
    pub fn keep_questions(&mut self) {
        self.questions = Some(RefCell::default());
    }

    /// Returns the keys that readers asked for since [`keep_questions`](Self::keep_questions), in order: the schema
    /// as far as this document leads into it. Keys are listed whether given or absent, and even if an error ended the
    /// reading.
    pub fn questions(&self) -> Vec<Question> {
        self.questions.as_ref().map(|questions| questions.borrow().clone()).unwrap_or_default()
    }

    /// Returns a reader of the topmost table.
    pub fn root(&self) -> Reader<'_> {
        Reader::top(self)
    }

    /// Returns every key that readers asked for and that has a value: its path, the value in effect as TOML, and the
    /// origin of the value. They come in the order of reading; a key that was read again stands where it was read
    /// last.
    pub fn keys_read(&self) -> Vec<(String, String, Origin)> {
        let reads = self.reads.borrow();
        let last: BTreeMap<&str, usize> =
            reads.iter().enumerate().map(|(index, (key, ..))| (key.as_str(), index)).collect();
        let is_last = |(index, read): &(usize, &(String, String, Origin))| last[read.0.as_str()] == *index;
        reads.iter().enumerate().filter(is_last).map(|(_, read)| read.clone()).collect()
    }

    /// Returns the document with its assignments as TOML, a line for each key of the topmost table, without comments.
    /// Documents with equal content in equal order have the same text.
    pub fn in_effect(&self) -> String {
        let line = |entry: &Entry| format!("{} = {}\n", tree::key(&entry.key), entry.node.value.literal());
        self.top.entries.iter().map(line).collect()
    }

    /// Returns the text of the files that readers opened, by their path in the document.
    pub fn files_read(&self) -> BTreeMap<String, String> {
        self.files.borrow().clone()
    }

    fn record(&self, key: String, value: String, origin: Origin) {
        self.reads.borrow_mut().push((key, value, origin));
    }

    fn error(&self, fault: Fault) -> DocumentError {
        let place = match fault.source {
            KeySource::Document => ErrorPosition::File { name: self.name.clone(), line: None },
            KeySource::Line(line) => ErrorPosition::File { name: self.name.clone(), line: Some(line) },
            KeySource::Assignment(index) if self.options.contains_key(&index) => {
                let place = ErrorPosition::Option(self.options[&index].clone());
                return DocumentError { place, key: String::new(), problem: Box::new(fault.problem) };
            }
            KeySource::Assignment(index) => {
                ErrorPosition::Setting(tree::printable(&self.assignments[index], tree::LONG))
            }
        };
        let key = tree::cut(&fault.key, tree::LONG);
        DocumentError { place, key, problem: Box::new(fault.problem) }
    }
}

#[cfg(test)]
mod tests;
