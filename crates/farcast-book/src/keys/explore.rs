//! Reading of samples, unchanged and with one key changed at a time, to learn the keys that are asked for.

use std::collections::BTreeSet;

use farcast_lab::World;
use farcast_lab::tune::TuneTable;
use farcast_scenario::document::{Asked, Document, DocumentError, Presence, Question};
use farcast_scenario::links::Links;

use super::samples::{ATTACHED, SAMPLES, Sample};

/// Keys that select other keys, for which there are samples: they are not changed.
const KINDS: [(&str, &str); 10] = [
    ("link.forward", "kind"),
    ("link.return", "kind"),
    ("link.stages", "kind"),
    ("link.stages", "direction"),
    ("edge.link.forward", "kind"),
    ("edge.link.return", "kind"),
    ("node", "kind"),
    ("protocol", "name"),
    ("traffic", "protocol"),
    ("flow", "protocol"),
];

/// Keys that were asked for while a sample was read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Name of the sample.
    pub sample: &'static str,
    /// Change that was made to it.
    pub change: Option<Change>,
    /// Questions of the reader; up to the error, if the change has caused one.
    pub questions: Vec<Question>,
    /// Keys by their paths, with the value that was read or the default.
    values: Vec<(String, String)>,
}

/// A key that was changed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Change {
    /// Table of the key, as in a header.
    pub table: String,
    /// The key.
    pub key: &'static str,
    /// New value, as TOML; `None` for a value that only has to be present.
    pub word: Option<String>,
}

/// Reads all samples, unchanged and with each change.
///
/// # Errors
/// An error in a sample, or a value that selects other keys and has no sample.
pub fn explore() -> Result<Vec<Reading>, String> {
    let mut readings = Vec::new();
    for sample in SAMPLES {
        let plain = read(sample, None, &[])?;
        let changes = changes(&plain.questions);
        readings.push(plain);
        for (assignment, change) in changes {
            readings.push(changed(sample, assignment, &change)?);
        }
    }
    let missing = unread(&readings);
    if missing.is_empty() { Ok(readings) } else { Err(missing.join("\n")) }
}

/// Reads a sample with `assignment`, and with the keys that it makes necessary.
fn changed(sample: &Sample, assignment: String, change: &Change) -> Result<Reading, String> {
    let mut assignments = vec![assignment];
    loop {
        let reading = read(sample, Some(change), &assignments)?;
        match reading.questions.last() {
            Some(Question {
                path,
                asked: Asked::Value { example, .. },
                presence: Presence::Required,
                given: false,
                ..
            }) if assignments.len() < MOST => {
                assignments.push(format!("{path}={example}"));
            }
            _ => return Ok(reading),
        }
    }
}

/// Most keys that are added to a sample.
const MOST: usize = 4;

/// Reads a sample and returns its questions. With a `change` the sample may be invalid.
fn read(sample: &Sample, change: Option<&Change>, assignments: &[String]) -> Result<Reading, String> {
    let wrong = |error: DocumentError| format!("sample {}: {error}", sample.name);
    let mut document = Document::parse(sample.name, sample.text).map_err(wrong)?;
    for (path, text) in ATTACHED {
        document.attach(path, text);
    }
    for assignment in assignments {
        document.set(assignment).map_err(wrong)?;
    }
    document.keep_questions();
    let result = if Links::are_all_of(&document) {
        Links::read_alone(&document).map(drop)
    } else {
        World::read(&document).map(drop)
    };
    let result = result.and_then(|()| TuneTable::read(&document).map(drop));
    if change.is_none() {
        result.map_err(wrong)?;
    }
    let values = document.keys_read().into_iter().map(|(path, value, _)| (path, value)).collect();
    Ok(Reading { sample: sample.name, change: change.cloned(), questions: document.questions(), values })
}

/// Returns all changes of one key: to each other word that it may be, or to an example if it is absent and has no
/// default.
fn changes(questions: &[Question]) -> Vec<(String, Change)> {
    let mut changes = Vec::new();
    let mut seen = BTreeSet::new();
    for question in questions {
        let Asked::Value { words, example, .. } = &question.asked else { continue };
        let Question { path, table, key, presence, given, .. } = question;
        if KINDS.contains(&(table, *key)) || !seen.insert(path) {
            continue;
        }
        let change = |word| Change { table: table.clone(), key, word };
        for word in words {
            if !matches!(presence, Presence::Default(default) if default == word && !given) {
                changes.push((format!("{path}={word}"), change(Some(word.clone()))));
            }
        }
        if words.is_empty() && *presence == Presence::Optional && !given {
            changes.push((format!("{path}={example}"), change(None)));
        }
    }
    changes
}

/// Returns values that select other keys and that no sample has.
fn unread(readings: &[Reading]) -> Vec<String> {
    let (mut all, mut read) = (BTreeSet::new(), BTreeSet::new());
    for reading in readings.iter().filter(|reading| reading.change.is_none()) {
        for Question { path, table, key, asked, .. } in &reading.questions {
            let Asked::Value { words, .. } = asked else { continue };
            // A link is the same in a star and at an edge, traffic the same as a flow.
            if !KINDS.contains(&(table, *key)) || table.starts_with("edge.") || table == "flow" {
                continue;
            }
            all.extend(words.iter().map(|word| (table, key, word)));
            let values = reading.values.iter().filter(|(other, _)| other == path);
            read.extend(values.map(|(_, value)| (table, key, value)));
        }
    }
    let missing = all.difference(&read);
    missing.map(|(table, key, word)| format!("no sample has {key} = {word} in [{table}]")).collect()
}
