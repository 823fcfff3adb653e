//! Reading samples, as they are and with one key changed at a time, to learn what is asked for.

use std::collections::BTreeSet;

use farcast_lab::World;
use farcast_lab::tune::Wish;
use farcast_scenario::document::{Asked, Document, DocumentError, Presence, Question};
use farcast_scenario::links::Links;

use super::samples::{ATTACHED, SAMPLES, Sample};

/// Words that lead to keys of another kind, for which there are samples: they are not changed.
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

/// What was asked for while a sample was read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Which sample.
    pub sample: &'static str,
    /// What was changed in it.
    pub change: Option<Change>,
    /// What was asked for; up to where it is wrong, if the change has made it so.
    pub questions: Vec<Question>,
    /// Keys by their paths, and what was read or holds.
    values: Vec<(String, String)>,
}

/// A key that was changed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Change {
    /// Its table, as a header has it.
    pub table: String,
    /// The key.
    pub key: &'static str,
    /// What it was set to, as TOML; `None` for a value that only has to be there.
    pub word: Option<String>,
}

/// Reads all samples in all ways.
///
/// # Errors
/// A sample that is wrong, or a word of those that lead to other keys for which there is no sample.
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

/// A sample with `assignment` and what must be there because of it.
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

/// Keys that are added to a sample at most.
const MOST: usize = 4;

/// What is asked for in a sample. With a `change` it may be wrong.
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
    let result = result.and_then(|()| Wish::read(&document).map(drop));
    if change.is_none() {
        result.map_err(wrong)?;
    }
    let values = document.keys_read().into_iter().map(|(path, value, _)| (path, value)).collect();
    Ok(Reading { sample: sample.name, change: change.cloned(), questions: document.questions(), values })
}

/// One key changed at a time: to each other word that it may be, or given where it is absent and has no default.
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

/// Words that lead to other keys and that no sample has.
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
