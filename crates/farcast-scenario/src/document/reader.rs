//! Reader of a table, key by key.

use core::fmt::Display;
use core::ops::RangeInclusive;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use farcast_core::units::{BitRate, Bytes, Probability};
use farcast_core::{Setting, Span};

use super::error::{Fault, Problem};
use super::kinds::{self, Choice, Flag, Integer, Kind, List, Number, OrWord, Text, WithUnit};
use super::questions::{Asked, Presence, Question};
use super::suggestion::nearest;
use super::tree::{self, KeySource, Table, Value, ValueNode};
use super::{Document, DocumentError, Origin};

/// Words that count as absence at an optional key, unless the key has such a value.
const NOTHING: [&str; 2] = ["none", "never"];

/// A table of a [`Document`] that is being read.
///
/// Each kind of value has three methods: `rate(key)` for a required key, `rate_or(key, default)` for one with a
/// default, and `optional_rate(key)` for one without a default. All refuse a value of another kind. After all keys of
/// the schema have been asked for, [`finish`](Self::finish) refuses any other key.
///
/// An inner table has a reader of its own, which is read and finished like this one, before or after it.
#[derive(Debug)]
#[must_use = "unknown keys show only at finish()"]
pub struct Reader<'d> {
    document: &'d Document,
    table: &'d Table,
    /// Source at which the table begins.
    source: KeySource,
    /// The path of the table as errors and assignments write it.
    path: String,
    /// The path as the header of the table in the file writes it, without names of members.
    header: String,
    asked: Vec<&'static str>,
}

/// Defines the three methods of a kind of value that needs nothing but its key.
macro_rules! methods {
    ($($kind:expr => $value:ty, $required:ident, $or:ident, $optional:ident, $what:literal;)*) => { $(
        #[doc = concat!("The value of `key`, ", $what, "; an error if it is absent.")]
        pub fn $required(&mut self, key: &'static str) -> Result<$value, DocumentError> {
            self.required(key, &$kind)
        }

        #[doc = concat!("The value of `key`, ", $what, "; `default` if it is absent.")]
        pub fn $or(&mut self, key: &'static str, default: $value) -> Result<$value, DocumentError> {
            self.or(key, &$kind, default)
        }

        #[doc = concat!("The value of `key`, ", $what, "; `None` if it is absent.")]
        pub fn $optional(&mut self, key: &'static str) -> Result<Option<$value>, DocumentError> {
            self.optional(key, &$kind)
        }
    )* };
}

impl<'d> Reader<'d> {
    methods! {
        WithUnit::<BitRate>::NEW => BitRate, rate, rate_or, optional_rate,
            "a bit rate with its unit, 1 bit/s to 1000 Gbit/s (`\"20 Mbit/s\"`)";
        WithUnit::<Span>::NEW => Span, span, span_or, optional_span,
            "a time with its unit, 0 s to 1e9 s (`\"250 ms\"`)";
        WithUnit::<Bytes>::NEW => Bytes, bytes, bytes_or, optional_bytes,
            "a size with its unit, 0 B to 9000 TB (`\"1 MiB\"`)";
        WithUnit::<Probability>::NEW => Probability, probability, probability_or, optional_probability,
            "a probability, 0 to 1, as a number or as text (`0.005`, `\"0.5 %\"`)";
        List(WithUnit::<Bytes>::NEW) => Vec<Bytes>, list_of_bytes, list_of_bytes_or, optional_list_of_bytes,
            "a list of sizes with their units (`[\"1 MiB\", \"10 kB\"]`)";
        List(Text) => Vec<String>, list_of_texts, list_of_texts_or, optional_list_of_texts,
            "a list of texts (`[\"R1\", \"R2\"]`)";
        Text => String, text, text_or, optional_text, "any text";
        Flag => bool, flag, flag_or, optional_flag, "true or false";
    }

    /// Returns the value of `key`, a size with its unit or the word that stands for one; `None` if it is absent.
    pub fn optional_bytes_or(
        &mut self,
        key: &'static str,
        word: &str,
        stands_for: Bytes,
    ) -> Result<Option<Bytes>, DocumentError> {
        self.optional(key, &OrWord((word, stands_for)))
    }

    /// Returns the value of `key`, an integer within `range`; an error if it is absent.
    pub fn integer<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Result<T, DocumentError>
    where
        T: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        self.required(key, &Integer(range))
    }

    /// Returns the value of `key`, an integer within `range`; `default` if it is absent.
    pub fn integer_or<T>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
        default: T,
    ) -> Result<T, DocumentError>
    where
        T: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        self.or(key, &Integer(range), default)
    }

    /// Returns the value of `key`, an integer within `range`; `None` if it is absent.
    pub fn optional_integer<T>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Result<Option<T>, DocumentError>
    where
        T: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        self.optional(key, &Integer(range))
    }

    /// Returns the value of `key`, a number within `range`, with or without a fraction; an error if it is absent.
    pub fn number(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Result<f64, DocumentError> {
        self.required(key, &Number(range))
    }

    /// Returns the value of `key`, a number within `range`, with or without a fraction; `default` if it is absent.
    pub fn number_or(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
        default: f64,
    ) -> Result<f64, DocumentError> {
        self.or(key, &Number(range), default)
    }

    /// Returns the value of `key`, a number within `range`, with or without a fraction; `None` if it is absent.
    pub fn optional_number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, DocumentError> {
        self.optional(key, &Number(range))
    }

    /// Returns the value among `choices` for which the word at `key` stands; an error if it is absent.
    ///
    /// A table can so choose between alternatives: the value may decide which keys to ask for next.
    pub fn choice<T: Clone + PartialEq>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, DocumentError> {
        self.required(key, &Choice(choices))
    }

    /// Returns the value among `choices` for which the word at `key` stands; `default`, which should be one of them,
    /// if it is absent.
    pub fn choice_or<T: Clone + PartialEq>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
        default: T,
    ) -> Result<T, DocumentError> {
        self.or(key, &Choice(choices), default)
    }

    /// Returns the value among `choices` for which the word at `key` stands; `None` if it is absent.
    pub fn optional_choice<T: Clone + PartialEq>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, DocumentError> {
        self.optional(key, &Choice(choices))
    }

    /// Returns the list at `key`, integers within `range`; an error if it is absent.
    pub fn list_of_integers<T>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Result<Vec<T>, DocumentError>
    where
        T: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        self.required(key, &List(Integer(range)))
    }

    /// Returns the list at `key`, integers within `range`; `default` if it is absent.
    pub fn list_of_integers_or<T>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
        default: Vec<T>,
    ) -> Result<Vec<T>, DocumentError>
    where
        T: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        self.or(key, &List(Integer(range)), default)
    }

    /// Returns the list at `key`, integers within `range`; `None` if it is absent.
    pub fn optional_list_of_integers<T>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Result<Option<Vec<T>>, DocumentError>
    where
        T: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        self.optional(key, &List(Integer(range)))
    }

    /// Returns a reader of the table at `key`; an error if it is absent.
    pub fn table(&mut self, key: &'static str) -> Result<Reader<'d>, DocumentError> {
        self.note(key, || (Asked::Table, Presence::Required));
        let example = format!("[{}]", tree::join(&self.header, key));
        self.table_if_any(key)?.ok_or_else(|| self.missing(key, example))
    }

    /// Returns a reader of the table at `key`, or of a table without keys if it is absent. This suits tables all of
    /// whose keys have defaults.
    pub fn table_or_empty(&mut self, key: &'static str) -> Result<Reader<'d>, DocumentError> {
        self.note(key, || (Asked::Table, Presence::Optional));
        let found = self.table_if_any(key)?;
        Ok(found.unwrap_or_else(|| self.inner(Table::EMPTY, self.source, tree::join(&self.path, key), key)))
    }

    /// Returns a reader of the table at `key`; `None` if it is absent.
    pub fn optional_table(&mut self, key: &'static str) -> Result<Option<Reader<'d>>, DocumentError> {
        self.note(key, || (Asked::Table, Presence::Optional));
        self.table_if_any(key)
    }

    fn table_if_any(&mut self, key: &'static str) -> Result<Option<Reader<'d>>, DocumentError> {
        let Some(node) = self.ask(key) else { return Ok(None) };
        let path = tree::join(&self.path, key);
        match &node.value {
            Value::Table(table) => Ok(Some(self.inner(table, node.source, path, key))),
            other => {
                let allowed = format!("a table, headed [{}]", tree::join(&self.header, key));
                Err(self.error(node.source, path, kinds::kind(other, "a table", allowed)))
            }
        }
    }

    /// Returns readers of the tables in the list at `key`; an error if it is absent.
    ///
    /// Refuses two members with the same `name`.
    pub fn tables(&mut self, key: &'static str) -> Result<Vec<Reader<'d>>, DocumentError> {
        self.note(key, || (Asked::Tables, Presence::Required));
        let example = format!("[[{}]]", tree::join(&self.header, key));
        self.tables_if_any(key)?.ok_or_else(|| self.missing(key, example))
    }

    /// Returns readers of the tables in the list at `key`, as [`tables`](Self::tables); `None` if it is absent.
    pub fn optional_tables(&mut self, key: &'static str) -> Result<Option<Vec<Reader<'d>>>, DocumentError> {
        self.note(key, || (Asked::Tables, Presence::Optional));
        self.tables_if_any(key)
    }

    fn tables_if_any(&mut self, key: &'static str) -> Result<Option<Vec<Reader<'d>>>, DocumentError> {
        let Some(node) = self.ask(key) else { return Ok(None) };
        let path = tree::join(&self.path, key);
        let allowed = || format!("tables, each headed [[{}]]", tree::join(&self.header, key));
        let Value::List(nodes) = &node.value else {
            let problem = kinds::kind(&node.value, "a list of tables", allowed());
            return Err(self.error(node.source, path, problem));
        };
        let mut names = BTreeSet::new();
        let reader = |(index, node): (usize, &'d ValueNode)| {
            let numbered = || format!("{path}[{index}]");
            let Value::Table(table) = &node.value else {
                return Err(self.error(
                    node.source,
                    numbered(),
                    kinds::kind(&node.value, "a table", allowed()),
                ));
            };
            let name = table.name();
            if let Some(name) = name.filter(|name| !names.insert(*name)) {
                let problem = Problem::SameName { name: tree::quoted_brief(name) };
                return Err(self.error(node.source, path.clone(), problem));
            }
            let path = name.map_or_else(numbered, |name| tree::join(&path, name));
            Ok(self.inner(table, node.source, path, key))
        };
        nodes.iter().enumerate().map(reader).collect::<Result<_, _>>().map(Some)
    }

    /// Returns the text of the file that `key` names.
    ///
    /// A path in the document is relative to the directory of the document; a path in an assignment is relative to
    /// the working directory. A file that was [attached](Document::attach) under this name takes precedence.
    ///
    /// # Errors
    /// The key is absent, or the file cannot be read; the message then says that `what` is needed.
    pub fn file(&mut self, key: &'static str, what: &str) -> Result<String, DocumentError> {
        let path = self.text(key)?;
        self.contents(key, &path, what)
    }

    /// Returns the text of the file that `key` names, as [`file`](Self::file) finds it; `None` if the key is absent.
    pub fn optional_file(&mut self, key: &'static str, what: &str) -> Result<Option<String>, DocumentError> {
        let path = self.optional_text(key)?;
        path.map(|path| self.contents(key, &path, what)).transpose()
    }

    fn contents(&self, key: &'static str, path: &str, what: &str) -> Result<String, DocumentError> {
        let text = self.found(key, path, what)?;
        self.document.files.borrow_mut().insert(path.to_owned(), text.clone());
        Ok(text)
    }

    fn found(&self, key: &'static str, path: &str, what: &str) -> Result<String, DocumentError> {
        if let Some(text) = self.document.attached.get(path) {
            return Ok(text.clone());
        }
        let laid_over =
            self.table.get(key).is_some_and(|node| matches!(node.source, KeySource::Assignment(_)));
        let directory = Path::new(&self.document.name).parent().filter(|_| !laid_over);
        let path = directory.map_or_else(|| PathBuf::from(path), |directory| directory.join(path));
        std::fs::read_to_string(&path)
            .map_err(|error| self.refuse(key, format!("{}: {error}", path.display()), what))
    }

    /// Returns `true` if there is any value at `key`, of whatever kind.
    pub fn holds(&mut self, key: &'static str) -> bool {
        self.ask(key).is_some()
    }

    /// Returns the path of this table, as errors and assignments write it; empty for the top.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the error for a value at `key` that is of the right kind but of no use to the schema. `wrong` says
    /// what is wrong with it, `allowed` what would be right. Its place is the line of the key, or of the table if the
    /// key is absent.
    pub fn refuse(
        &self,
        key: &'static str,
        wrong: impl Into<String>,
        allowed: impl Into<String>,
    ) -> DocumentError {
        let source = self.table.get(key).map_or(self.source, |node| node.source);
        let problem = Problem::Refused { wrong: wrong.into(), allowed: allowed.into() };
        self.error(source, tree::join(&self.path, key), problem)
    }

    /// Ends the reading of this table; the first key that was not asked for is an error.
    pub fn finish(self) -> Result<(), DocumentError> {
        let unknown = self.table.entries.iter().find(|entry| !self.asked.contains(&entry.key.as_str()));
        let Some(entry) = unknown else { return Ok(()) };
        let problem = Problem::UnknownKey {
            suggestion: nearest(&entry.key, self.asked.iter().copied()).map(tree::key),
            known: self.asked.iter().copied().map(tree::key).collect(),
        };
        Err(self.error(entry.source, tree::join(&self.path, &entry.key), problem))
    }

    pub(super) fn top(document: &'d Document) -> Self {
        Self {
            document,
            table: &document.top,
            source: KeySource::Document,
            path: String::new(),
            header: String::new(),
            asked: Vec::new(),
        }
    }

    /// Returns a reader of a table inside this one.
    fn inner(&self, table: &'d Table, source: KeySource, path: String, key: &str) -> Self {
        let header = tree::join(&self.header, key);
        Self { document: self.document, table, source, path, header, asked: Vec::new() }
    }

    /// Returns `true` if the table has `key`.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    fn ask(&mut self, key: &'static str) -> Option<&'d ValueNode> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.table.get(key)
    }

    pub(super) fn optional<K: Kind + ?Sized>(
        &mut self,
        key: &'static str,
        kind: &K,
    ) -> Result<Option<K::Value>, DocumentError> {
        self.note(key, || (Asked::value(kind), Presence::Optional));
        let found = self.value(key, kind);
        // A word for the absence of the key may be given explicitly.
        let is_word =
            |node: &ValueNode| matches!(&node.value, Value::Text(text) if NOTHING.contains(&text.as_str()));
        match found {
            Err(_) if self.table.get(key).is_some_and(is_word) => Ok(None),
            found => found,
        }
    }

    pub(super) fn or<K: Kind + ?Sized>(
        &mut self,
        key: &'static str,
        kind: &K,
        default: K::Value,
    ) -> Result<K::Value, DocumentError> {
        self.note(key, || (Asked::value(kind), Presence::Default(kind.literal(&default))));
        if let Some(value) = self.value(key, kind)? {
            return Ok(value);
        }
        self.document.record(tree::join(&self.path, key), kind.literal(&default), Origin::Default);
        Ok(default)
    }

    pub(super) fn required<K: Kind + ?Sized>(
        &mut self,
        key: &'static str,
        kind: &K,
    ) -> Result<K::Value, DocumentError> {
        self.note(key, || (Asked::value(kind), Presence::Required));
        let found = self.value(key, kind)?;
        found.ok_or_else(|| self.missing(key, format!("{} = {}", tree::key(key), kind.example())))
    }

    /// Reads the value of `key`; `None` if it is absent.
    fn value<K: Kind + ?Sized>(
        &mut self,
        key: &'static str,
        kind: &K,
    ) -> Result<Option<K::Value>, DocumentError> {
        let Some(node) = self.ask(key) else { return Ok(None) };
        let path = tree::join(&self.path, key);
        match kind.read(node) {
            Ok(value) => {
                let origin = match node.source {
                    KeySource::Assignment(_) => Origin::Setting,
                    KeySource::Line(_) | KeySource::Document => Origin::File,
                };
                self.document.record(path, node.value.literal(), origin);
                Ok(Some(value))
            }
            Err((source, problem)) => Err(self.error(source, path, problem)),
        }
    }

    /// Records a key that is asked for, if questions are kept; otherwise `what` is not called.
    fn note(&self, key: &'static str, what: impl FnOnce() -> (Asked, Presence)) {
        let Some(questions) = &self.document.questions else { return };
        let (asked, presence) = what();
        let (path, table) = (tree::join(&self.path, key), self.header.clone());
        let given = self.table.get(key).is_some();
        let setting = None;
        questions.borrow_mut().push(Question { path, table, key, asked, presence, given, setting });
    }

    /// Adds the declaration of the key that was asked for last.
    pub(super) fn declare(&self, setting: &'static Setting) {
        let Some(questions) = &self.document.questions else { return };
        if let Some(question) = questions.borrow_mut().last_mut() {
            question.setting = Some(setting);
        }
    }

    fn missing(&self, key: &str, example: String) -> DocumentError {
        let problem = Problem::MissingKey { table: tree::cut(&self.path, tree::LONG), example };
        self.error(self.source, tree::join(&self.path, key), problem)
    }

    fn error(&self, source: KeySource, key: String, problem: Problem) -> DocumentError {
        self.document.error(Fault { source, key, problem })
    }
}
