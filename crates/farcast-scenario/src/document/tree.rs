//! Tree of a document in which every key and value knows its source, and the TOML notation of its parts.

use core::fmt::Write as _;

/// Source of a key or a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeySource {
    /// The document as a whole.
    Document,
    /// A line of the document, from 1.
    Line(usize),
    /// An assignment that was laid over the document, by its index.
    Assignment(usize),
}

/// A value and its source.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ValueNode {
    pub(super) source: KeySource,
    pub(super) value: Value,
}

/// A value of TOML.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    /// A date, a time, or both, as written: scenarios have no use for them.
    Moment(String),
    List(Vec<ValueNode>),
    Table(Table),
}

/// Keys and their values, in the order in which they were given.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Table {
    pub(super) entries: Vec<Entry>,
}

/// A key, its source, and its value.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) source: KeySource,
    pub(super) node: ValueNode,
}

impl Table {
    /// A table without keys.
    pub(super) const EMPTY: &'static Self = &Self { entries: Vec::new() };

    /// Returns the value of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&ValueNode> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// Returns the value of `key` to change it.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node.value)
    }

    /// Returns the value of `key`, and inserts `node` first if the key is absent.
    pub(super) fn get_or_insert(&mut self, key: &str, node: impl FnOnce() -> ValueNode) -> &mut ValueNode {
        let index = self.entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            let node = node();
            self.entries.push(Entry { key: key.to_owned(), source: node.source, node });
            self.entries.len() - 1
        });
        &mut self.entries[index].node
    }

    /// Sets `key` to `node`, whether it had a value or not.
    pub(super) fn set(&mut self, key: &str, node: ValueNode) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.node = node,
            None => self.entries.push(Entry { key: key.to_owned(), source: node.source, node }),
        }
    }

    /// Returns the name by which paths reach this member of a list.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.get("name")?.value {
            Value::Text(name) => Some(name),
            _ => None,
        }
    }
}

/// Number of characters of a value that an error message shows.
const SHORT: usize = 40;
/// Number of characters of an assignment that an error message shows.
pub(super) const LONG: usize = 80;

impl Value {
    /// Returns the value as TOML.
    pub(super) fn literal(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Integer(integer) => integer.to_string(),
            // Unlike Display, Debug writes a form that TOML reads back as a float.
            Self::Float(float) => format!("{float:?}").to_lowercase(),
            Self::Flag(flag) => flag.to_string(),
            Self::Moment(moment) => moment.clone(),
            Self::List(nodes) => {
                format!("[{}]", nodes.iter().map(|node| node.value.literal()).collect::<Vec<_>>().join(", "))
            }
            Self::Table(table) => {
                let pair = |entry: &Entry| format!("{} = {}", key(&entry.key), entry.node.value.literal());
                format!("{{{}}}", table.entries.iter().map(pair).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Returns the value as an error message names it, in one short line.
    pub(super) fn brief(&self) -> String {
        match self {
            Self::Text(text) => quoted_brief(text),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::Moment(moment) => format!("the date or time {moment}"),
            _ => self.literal(),
        }
    }
}

/// Returns `text` in quotes, with the escapes of a basic string of TOML.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // A write to a String cannot fail.
            c if is_hidden(c) => drop(write!(out, "\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns `text` in quotes, cut to the length of an error message.
pub(super) fn quoted_brief(text: &str) -> String {
    quoted(&cut(text, SHORT))
}

/// Returns `key` as it is written in a path.
pub(super) fn key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { quoted(key) }
}

/// Returns the path of `name` below `path`.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { key(name) } else { format!("{path}.{}", key(name)) }
}

/// Returns `text` in one line of at most `limit` characters and an ellipsis.
pub(super) fn printable(text: &str, limit: usize) -> String {
    cut(text, limit).chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect()
}

/// Returns `text`, or its first `limit` characters and an ellipsis.
pub(super) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// Returns `true` for characters that would break a line or reorder it on a terminal.
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
