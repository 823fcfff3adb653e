//! A row of the page: the possible values of a key, and its default.

use std::collections::{BTreeMap, BTreeSet};

use farcast_core::Setting;
use farcast_scenario::document::{Asked, Presence, Question};

use super::explore::{Change, Reading};
use super::{Section, table};

/// Default of a key, as one reading shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Absent {
    Required,
    Nothing,
    Value(String),
    /// A value that follows from other keys.
    Follows(String),
}

/// Returns the meaning of a declared key, with its default in words and its option.
pub(super) fn meaning(setting: &Setting) -> String {
    let default = match setting.otherwise {
        "" => String::new(),
        otherwise => format!("; by default {otherwise}"),
    };
    let option = setting.option.map(|option| format!(" (`--{}`)", option.name)).unwrap_or_default();
    format!("{}{default}{option}", setting.meaning)
}

/// Returns the row of `key`, which is in `section` and is asked for.
pub(super) fn row(section: &Section, readings: &[Reading], key: &str, meaning: &str) -> String {
    let own = readings.iter().filter(|reading| section.samples.contains(&reading.sample));
    let asked: Vec<(&Reading, Vec<&Question>)> = own
        .map(|reading| {
            let is =
                |question: &&Question| question.key == key && section.tables.contains(&&*table(question));
            (reading, reading.questions.iter().filter(is).collect::<Vec<_>>())
        })
        .filter(|(_, questions)| !questions.is_empty())
        .collect();
    let kind = asked.first().map(|(_, questions)| kind(&questions[0].asked)).unwrap_or_default();
    let default = default(key, &asked);
    let place = place(section, &asked);
    format!("| `{key}` | {kind} | {default} | {meaning}{place} |\n")
}

/// Returns the default of `key` in the first sample that is asked for it, and the changes that alter it.
fn default(key: &str, asked: &[(&Reading, Vec<&Question>)]) -> String {
    let plain = asked.iter().find(|(reading, _)| reading.change.is_none());
    let changed = asked
        .iter()
        .filter_map(|(reading, questions)| Some((reading, reading.change.as_ref()?, absent(questions))));
    let Some((sample, questions)) = plain else {
        let with: BTreeSet<_> = changed.clone().map(|(_, change, _)| said(change)).collect();
        let with: Vec<_> = with.into_iter().collect();
        let value = changed.map(|(_, _, absent)| absent.in_words()).next().unwrap_or_default();
        return format!("{value}; only with {}", with.join(" or "));
    };
    let mut plain = asked.iter().filter(|(reading, _)| reading.change.is_none());
    let base = match absent(questions) {
        // Samples differ in the keys from which it follows.
        Absent::Value(value)
            if plain.any(
                |(_, questions)| matches!(absent(questions), Absent::Value(other) if other != value),
            ) =>
        {
            Absent::Follows(value)
        }
        base => base,
    };
    let others = changed.filter(|(reading, change, other)| {
        reading.sample == sample.sample
            && change.word.is_some()
            && change.key != key
            && other.value() != base.value()
    });
    let others: BTreeMap<_, _> = others.map(|(_, change, other)| (said(change), other.value())).collect();
    let others = others.iter().map(|(change, other)| format!("; with {change}: {other}"));
    format!("{}{}", base.in_words(), others.collect::<String>())
}

/// Returns the default of the key of these questions.
fn absent(questions: &[&Question]) -> Absent {
    let is = |presence: &Presence| questions.iter().any(|question| question.presence == *presence);
    let default = questions.iter().find_map(|question| match &question.presence {
        Presence::Default(value) => Some(value.clone()),
        _ => None,
    });
    match default {
        _ if is(&Presence::Required) => Absent::Required,
        Some(value) if is(&Presence::Optional) => Absent::Follows(value),
        Some(value) => Absent::Value(value),
        None => Absent::Nothing,
    }
}

impl Absent {
    fn in_words(&self) -> String {
        match self {
            Self::Follows(value) => format!("follows from others, as `{value}`"),
            _ => self.value(),
        }
    }

    fn value(&self) -> String {
        match self {
            Self::Required => "required".to_owned(),
            Self::Nothing => "none".to_owned(),
            Self::Value(value) | Self::Follows(value) => format!("`{value}`"),
        }
    }
}

fn said(change: &Change) -> String {
    match &change.word {
        Some(word) => format!("`{} = {word}`", change.key),
        None => format!("`{}`", change.key),
    }
}

fn kind(asked: &Asked) -> String {
    match asked {
        Asked::Table => "a table".to_owned(),
        Asked::Tables => "a list of tables".to_owned(),
        Asked::Value { noun, words, .. } if words.is_empty() || noun == "true or false" => noun.clone(),
        Asked::Value { words, .. } => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Names the section's tables that have the key, if not all of them do.
fn place(section: &Section, asked: &[(&Reading, Vec<&Question>)]) -> String {
    let tables: BTreeSet<_> =
        asked.iter().flat_map(|(_, questions)| questions).map(|question| table(question)).collect();
    let has = |table: &&&str| tables.contains(**table);
    let with: Vec<_> = section.tables.iter().filter(has).map(|table| format!("`{table}`")).collect();
    if with.len() == section.tables.len() { String::new() } else { format!(" (only {})", with.join(", ")) }
}
