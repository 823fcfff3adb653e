//! Keys given by a document, and a copy of the document without one of them.

use super::Document;
use super::tree::{Entry, Table, Value, join};

/// A key to which a document gives a value other than a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    path: String,
    value: String,
    /// Index of each entry on the path to the key; in a list of tables, the index of the member as well.
    places: Vec<usize>,
}

impl Given {
    /// Returns the path of the key, as errors and assignments write it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the value as TOML.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl Document {
    /// Returns every key with a value other than a table, in the order of the document.
    pub fn given(&self) -> Vec<Given> {
        let mut all = Vec::new();
        collect(&self.top, "", &[], &mut all);
        all
    }

    /// Returns a copy of the document without one of its keys, and as if it had not been read yet.
    #[must_use]
    pub fn without(&self, key: &Given) -> Self {
        let mut document = self.clone();
        // No reader has read the copy.
        (document.reads, document.files) = Default::default();
        remove(&mut document.top, &key.places);
        document
    }
}

fn collect(table: &Table, path: &str, places: &[usize], all: &mut Vec<Given>) {
    for (place, Entry { key, node, .. }) in table.entries.iter().enumerate() {
        let (path, places) = (join(path, key), [places, &[place]].concat());
        match &node.value {
            Value::Table(inner) => collect(inner, &path, &places, all),
            Value::List(nodes) if nodes.iter().any(|node| matches!(node.value, Value::Table(_))) => {
                for (member, node) in nodes.iter().enumerate() {
                    let Value::Table(inner) = &node.value else { continue };
                    let name = inner.name();
                    let path = name.map_or_else(|| format!("{path}[{member}]"), |name| join(&path, name));
                    collect(inner, &path, &[&places[..], &[member]].concat(), all);
                }
            }
            value => all.push(Given { path, value: value.literal(), places }),
        }
    }
}

/// Removes the entry to which `places` lead.
fn remove(table: &mut Table, places: &[usize]) {
    match places {
        [] => {}
        [last] if *last < table.entries.len() => drop(table.entries.remove(*last)),
        [place, rest @ ..] => match table.entries.get_mut(*place).map(|entry| &mut entry.node.value) {
            Some(Value::Table(inner)) => remove(inner, rest),
            Some(Value::List(nodes)) => {
                let member = rest.first().and_then(|member| nodes.get_mut(*member));
                if let (Some(Value::Table(inner)), [_, rest @ ..]) =
                    (member.map(|node| &mut node.value), rest)
                {
                    remove(inner, rest);
                }
            }
            _ => {}
        },
    }
}
