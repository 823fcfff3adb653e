//! Assignments laid over a document: `KEY=VALUE`.

use super::error::{Fault, Problem};
use super::tree::{self, KeySource, Table, Value, ValueNode};
use super::{NESTING_LIMIT, build, nesting};

/// Lays assignment `index` over `top`; an error changes nothing.
pub(super) fn apply(top: &mut Table, assignment: &str, index: usize) -> Result<(), Fault> {
    let source = KeySource::Assignment(index);
    let fault = |key: &str, problem| Fault { source, key: key.to_owned(), problem };
    let (keys, text) = split(assignment).ok_or_else(|| fault("", Problem::Assignment))?;
    let Some((last, tables)) = keys.split_last() else { return Err(fault("", Problem::Assignment)) };
    if keys.len() > NESTING_LIMIT {
        return Err(fault("", Problem::TooDeep { limit: NESTING_LIMIT }));
    }
    let path = keys.iter().fold(String::new(), |path, key| tree::join(&path, key));
    let node = build::assigned(text, &path, keys.len(), index)?;

    let (mut table, mut path) = (top, String::new());
    let mut tables = tables.iter();
    while let Some(key) = tables.next() {
        path = tree::join(&path, key);
        let node = table.get_or_insert(key, || ValueNode { source, value: Value::Table(Table::default()) });
        table = match &mut node.value {
            Value::Table(table) => table,
            Value::List(members) => {
                let name = tables.next();
                path = tree::join(&path, name.unwrap_or(last));
                let member = find(members, name.unwrap_or(last)).map_err(|problem| fault(&path, problem))?;
                name.map(|_| member).ok_or_else(|| fault(&path, Problem::WholeMember))?
            }
            other => {
                let allowed = "a table for something in it to be set".to_owned();
                let problem = Problem::Kind { value: other.brief(), noun: "a table", allowed };
                return Err(fault(&path, problem));
            }
        };
    }
    table.set(last, node);
    Ok(())
}

/// Returns `true` if `assignment` sets `key`, a table around it, or something in it.
pub(super) fn touches(assignment: &str, key: &str) -> bool {
    let named = format!("{key}=");
    let Some(((set, _), (asked, _))) = split(assignment).zip(split(&named)) else { return false };
    set.iter().zip(&asked).all(|(a, b)| a == b)
}

/// Finds the member of a list by its name.
fn find<'a>(members: &'a mut [ValueNode], name: &str) -> Result<&'a mut Table, Problem> {
    let names = |node: &ValueNode| match &node.value {
        Value::Table(table) => table.name().map(tree::quoted_brief),
        _ => None,
    };
    let known = members.iter().filter_map(names).take(SHOWN).collect();
    let table = |node: &'a mut ValueNode| match &mut node.value {
        Value::Table(table) => (table.name() == Some(name)).then_some(table),
        _ => None,
    };
    members.iter_mut().find_map(table).ok_or(Problem::NoMember { known })
}

/// Number of names of members that an error lists at most.
const SHOWN: usize = 20;

/// Splits an assignment into the keys before the equals sign and the text behind it.
fn split(assignment: &str) -> Option<(Vec<String>, &str)> {
    let mut keys = Vec::new();
    let mut rest = assignment;
    loop {
        let (key, behind) = next_key(rest.trim_start())?;
        keys.push(key);
        let behind = behind.trim_start();
        match behind.strip_prefix('.') {
            Some(more) => rest = more,
            None => return Some((keys, behind.strip_prefix('=')?.trim())),
        }
    }
}

/// Splits off the key at the front, in quotes or bare, from the text that follows it.
fn next_key(text: &str) -> Option<(String, &str)> {
    if text.starts_with(['"', '\'']) {
        let (key, rest) = text.split_at(nesting::string_end(text.as_bytes(), 0));
        return Some((build::string(key)?, rest));
    }
    let (key, rest) = text.split_at(text.find(['.', '='])?);
    let key = key.trim_end();
    (!key.is_empty()).then(|| (key.to_owned(), rest))
}
