//! Scenario documents: TOML read with errors that say where they are.
//!
//! This module knows no schema. Whoever does reads a document through [`Reader`]s, one for each table, asks each for
//! the keys that the schema has, and ends with [`Reader::finish`], which refuses every key that nobody asked for. The
//! first error ends the reading; it is one sentence of the form
//! `scenarios/x.toml:12: link.forward.per: <what is wrong>; <what is allowed>`, with `--set KEY=VALUE` in place of
//! file and line where that is what brought it.
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
//! Quantities are text with a unit (see [`farcast_core::units`]). The members of a list of tables are reached by their
//! key `name`, in errors, in [`Document::set`] and in [`Document::keys_read`] alike: `link.stages.uplink.rate`.

mod assignment;
mod build;
mod error;
mod given;
mod kinds;
mod nesting;
mod questions;
mod reader;
mod suggestion;
mod tree;

use std::cell::RefCell;
use std::collections::BTreeMap;

pub use error::{DocumentError, Place, Problem};
pub use given::Given;
pub use questions::{Asked, Presence, Question};
pub use reader::Reader;

use error::Fault;
use tree::{Entry, Source, Table};

/// How many tables and lists may lie within each other.
pub const NESTING_LIMIT: usize = 16;

/// Where the value of a key came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The document's text.
    File,
    /// A later [`Document::set`].
    Setting,
    /// The schema: the key was not given.
    Default,
}

/// A document, with what was laid over it.
#[derive(Clone, Debug)]
pub struct Document {
    name: String,
    top: Table,
    /// The assignments that were laid over it, for error messages.
    assignments: Vec<String>,
    /// Files that it may name, by that name.
    attached: BTreeMap<String, String>,
    reads: RefCell<Vec<(String, String, Origin)>>,
    /// The files that readers opened: path and text.
    files: RefCell<BTreeMap<String, String>>,
    /// What readers asked for, where somebody wants to know.
    questions: Option<RefCell<Vec<Question>>>,
}

impl Document {
    /// Reads the TOML document `text`; errors call it `name`, which is usually its path.
    ///
    /// Refused is what is not TOML 1.0, tables and lists more than [`NESTING_LIMIT`] deep, and numbers that fit neither
    /// 64-bit integers nor doubles.
    pub fn parse(name: &str, text: &str) -> Result<Self, DocumentError> {
        let mut document = Self {
            name: name.to_owned(),
            top: Table::default(),
            assignments: Vec::new(),
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
    /// The key is a path of keys with dots between them; a part with a dot or an equals sign in it is quoted as in
    /// TOML. Where the path meets a list of tables, the next part is the `name` of one. Tables and keys that are absent
    /// are created, members of lists are not. The value is read as TOML if it is, else it is text: `20 Mbit/s` needs no
    /// quotes. Whether the schema has the key shows when the document is read.
    pub fn set(&mut self, assignment: &str) -> Result<(), DocumentError> {
        let index = self.assignments.len();
        self.assignments.push(assignment.to_owned());
        assignment::apply(&mut self.top, assignment, index).map_err(|fault| {
            let error = self.error(fault);
            self.assignments.pop();
            error
        })
    }

    /// The last of what was laid over the document that sets `key`, a table around it, or something in it.
    pub fn setting_of(&self, key: &str) -> Option<&str> {
        let assignments = self.assignments.iter().rev();
        assignments.map(String::as_str).find(|assignment| assignment::touches(assignment, key))
    }

    /// Gives the document a file: where it names `path`, the text is this one's, whatever there is on the disk.
    pub fn attach(&mut self, path: &str, text: &str) {
        self.attached.insert(path.to_owned(), text.to_owned());
    }

    /// Keeps from now on what readers ask for, for [`questions`](Self::questions).
    pub fn keep_questions(&mut self) {
        self.questions = Some(RefCell::default());
    }

    /// What readers asked for since [`keep_questions`](Self::keep_questions), in order, whether it was there or not, and
    /// whether the reading came to its end or not: the schema as far as this document leads into it.
    pub fn questions(&self) -> Vec<Question> {
        self.questions.as_ref().map(|questions| questions.borrow().clone()).unwrap_or_default()
    }

    /// A reader of the topmost table.
    pub fn root(&self) -> Reader<'_> {
        Reader::top(self)
    }

    /// Every key that readers asked for and that has a value: its path, the value in effect as TOML, and where that
    /// came from. In the order of reading; a key that was read again stands where it was read last.
    pub fn keys_read(&self) -> Vec<(String, String, Origin)> {
        let reads = self.reads.borrow();
        let last: BTreeMap<&str, usize> =
            reads.iter().enumerate().map(|(index, (key, ..))| (key.as_str(), index)).collect();
        let is_last = |(index, read): &(usize, &(String, String, Origin))| last[read.0.as_str()] == *index;
        reads.iter().enumerate().filter(is_last).map(|(_, read)| read.clone()).collect()
    }

    /// The document with what was laid over it as TOML, a line for each key of the topmost table, without comments.
    /// Documents that say the same in the same order have the same text.
    pub fn in_effect(&self) -> String {
        let line = |entry: &Entry| format!("{} = {}\n", tree::key(&entry.key), entry.node.value.literal());
        self.top.entries.iter().map(line).collect()
    }

    /// The files whose text readers asked for, by the path that the document names, and their text.
    pub fn files_read(&self) -> BTreeMap<String, String> {
        self.files.borrow().clone()
    }

    fn record(&self, key: String, value: String, origin: Origin) {
        self.reads.borrow_mut().push((key, value, origin));
    }

    fn error(&self, fault: Fault) -> DocumentError {
        let place = match fault.source {
            Source::Document => Place::File { name: self.name.clone(), line: None },
            Source::Line(line) => Place::File { name: self.name.clone(), line: Some(line) },
            Source::Assignment(index) => {
                Place::Setting(tree::printable(&self.assignments[index], tree::LONG))
            }
        };
        let key = tree::cut(&fault.key, tree::LONG);
        DocumentError { place, key, problem: Box::new(fault.problem) }
    }
}

#[cfg(test)]
mod tests;
