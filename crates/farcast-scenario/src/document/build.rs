//! Conversion of TOML text into a tree.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{Fault, Problem};
use super::tree::{self, Entry, KeySource, Table, Value, ValueNode};
use super::{NESTING_LIMIT, nesting};

/// Builds the tree of a whole document.
pub(super) fn document(text: &str) -> Result<Table, Fault> {
    let origins = Origins::lines(text);
    check_nesting(text, &origins)?;
    let table = DeTable::parse(text).map_err(|error| syntax(text, &error, &origins))?;
    build_table(table.into_inner(), "", 1, &origins)
}

/// Builds the value of assignment `index`, at depth `depth` of the tree and at `path`. Text that is not TOML is taken
/// as a text value.
pub(super) fn assigned(text: &str, path: &str, depth: usize, index: usize) -> Result<ValueNode, Fault> {
    let origins = Origins::Assignment(index);
    check_nesting(text, &origins)?;
    match DeValue::parse(text) {
        Ok(value) => build(value, path, depth, &origins),
        Err(_) => Ok(ValueNode { source: KeySource::Assignment(index), value: Value::Text(text.to_owned()) }),
    }
}

/// Returns the text of a TOML string literal.
pub(super) fn string(literal: &str) -> Option<String> {
    DeValue::parse(literal).ok()?.get_ref().as_str().map(str::to_owned)
}

/// Mapping from offsets in a text to the source that errors name.
enum Origins {
    /// A document, with the offsets at which its lines begin.
    Lines(Vec<usize>),
    /// An assignment, with its index; every offset lies in it.
    Assignment(usize),
}

impl Origins {
    fn lines(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self::Lines(core::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    fn of(&self, offset: usize) -> KeySource {
        match self {
            Self::Lines(starts) => KeySource::Line(starts.partition_point(|start| *start <= offset)),
            Self::Assignment(index) => KeySource::Assignment(*index),
        }
    }
}

fn check_nesting(text: &str, origins: &Origins) -> Result<(), Fault> {
    match nesting::first_beyond(text, NESTING_LIMIT) {
        Some(offset) => Err(too_deep(origins.of(offset), "")),
        None => Ok(()),
    }
}

fn too_deep(source: KeySource, path: &str) -> Fault {
    Fault { source, key: path.to_owned(), problem: Problem::TooDeep { limit: NESTING_LIMIT } }
}

fn syntax(text: &str, error: &toml::de::Error, origins: &Origins) -> Fault {
    let span = error.span().unwrap_or_default();
    let source = origins.of(span.start);
    let span_text = text.get(span).unwrap_or_default();
    if error.message() == "duplicate key" {
        let key = tree::printable(span_text, tree::LONG);
        return Fault { source, key, problem: Problem::DuplicateKey };
    }
    let message = tree::printable(error.message(), tree::LONG * 2).replacen(", expected", "; expected", 1);
    Fault { source, key: String::new(), problem: Problem::Syntax(message) }
}

fn build_table(table: DeTable<'_>, path: &str, depth: usize, origins: &Origins) -> Result<Table, Fault> {
    let mut entries: Vec<_> = table.into_iter().collect();
    // The parser orders keys alphabetically; this restores their order in the text.
    entries.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (Spanned<DeString<'_>>, _)| {
        let source = origins.of(key.span().start);
        let key = key.into_inner().into_owned();
        let node = build(value, &tree::join(path, &key), depth, origins)?;
        Ok(Entry { key, source, node })
    };
    Ok(Table { entries: entries.into_iter().map(entry).collect::<Result<_, _>>()? })
}

/// Builds the node of `value`, which lies in the `depth`th table or list.
fn build(
    value: Spanned<DeValue<'_>>,
    path: &str,
    depth: usize,
    origins: &Origins,
) -> Result<ValueNode, Fault> {
    let source = origins.of(value.span().start);
    let too_large = |value: String, allowed| {
        let problem = Problem::TooLarge { value: tree::printable(&value, tree::LONG), allowed };
        Fault { source, key: path.to_owned(), problem }
    };
    let value = match value.into_inner() {
        DeValue::Array(_) | DeValue::Table(_) if depth == NESTING_LIMIT => {
            return Err(too_deep(source, path));
        }
        DeValue::String(text) => Value::Text(text.into()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(Value::Integer)
            .map_err(|_| too_large(integer.to_string(), "an integer must fit into 64 bits with its sign"))?,
        DeValue::Float(float) => finite(float.as_str())
            .map(Value::Float)
            .ok_or_else(|| too_large(float.to_string(), "a number must fit into a double"))?,
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(moment) => Value::Moment(moment.to_string()),
        DeValue::Array(values) => {
            let nodes = values.into_iter().map(|value| build(value, path, depth + 1, origins));
            Value::List(nodes.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Value::Table(build_table(table, path, depth + 1, origins)?),
    };
    Ok(ValueNode { source, value })
}

/// Parses a number; `None` if it is too large for a double. Infinity is a number only if written as `inf`.
fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|float: &f64| !float.is_infinite() || text.ends_with("inf"))
}
