//! The page of all keys of scenarios.
//!
//! The keys, their possible values and their defaults come from the reader of scenarios. The reader records its
//! questions while it reads the samples ([`SAMPLES`]), first unchanged, then with one key changed at a time. Sections
//! ([`sections()`]) give the meaning of each key and the order of the page. A key that was asked for and is in no
//! section is an error. A key in a section that was not asked for is an error too.

mod explore;
mod row;
mod samples;
mod sections;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use farcast_core::Setting;
use farcast_scenario::document::{Asked, Question};

pub use explore::{Reading, explore};
pub use samples::{ATTACHED, SAMPLES, Sample};
pub use sections::sections;

/// Place of the keys that a protocol declares, with the meanings of the declarations.
pub const DECLARED: &str = "*";

/// A table of the page, with keys that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Heading in Markdown, followed by the anchor for links.
    pub title: &'static str,
    /// Text before the table; may be empty.
    pub intro: &'static str,
    /// Headers of the tables that have these keys, such as `link.forward`; empty for the top.
    pub tables: &'static [&'static str],
    /// Samples in which the keys are asked for.
    pub samples: &'static [&'static str],
    /// The same keys are asked for in other samples too, and have the same meaning there.
    pub everywhere: bool,
    /// Keys and their meanings; [`DECLARED`] stands for the keys that a protocol declares.
    pub keys: &'static [(&'static str, &'static str)],
}

/// Returns the page.
///
/// # Errors
/// The keys that were asked for and are not described, or are described and were not asked for, a line each.
pub fn page() -> Result<String, String> {
    let readings = explore()?;
    let sections = sections();
    let wrong: Vec<_> =
        undescribed(&sections, &readings).into_iter().chain(unasked(&sections, &readings)).collect();
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    let lists = lists(&readings);
    let mut page = sections::HEAD.to_owned();
    for section in &sections {
        // A write to a String cannot fail.
        let _ = match section.title.strip_suffix('}').and_then(|title| title.split_once(" {#")) {
            // Other pages show mdBook's syntax for the anchor as text; this form works everywhere.
            Some((title, anchor)) => write!(page, "\n<a id=\"{anchor}\"></a>\n\n{title}\n\n"),
            None => write!(page, "\n{}\n\n", section.title),
        };
        if !section.intro.is_empty() {
            let _ = write!(page, "{}\n\n", section.intro);
        }
        let paths: Vec<_> = section.tables.iter().map(|table| reached(table, &lists)).collect();
        let _ = write!(
            page,
            "`--set` {}\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
            paths.join(", ")
        );
        for &(key, meaning) in section.keys {
            if key == DECLARED {
                for setting in settings(section, &readings) {
                    page.push_str(&row::row(section, &readings, setting.key, &row::meaning(setting)));
                }
            } else {
                page.push_str(&row::row(section, &readings, key, meaning));
            }
        }
    }
    Ok(page)
}

/// Returns the declared settings of a section, in the order in which they are asked for.
fn settings(section: &Section, readings: &[Reading]) -> Vec<&'static Setting> {
    let mut all: Vec<&'static Setting> = Vec::new();
    let own = readings.iter().filter(|reading| section.samples.contains(&reading.sample));
    for question in own.flat_map(|reading| &reading.questions) {
        let Some(setting) = question.setting else { continue };
        if section.tables.contains(&&*table(question)) && all.iter().all(|other| other.key != setting.key) {
            all.push(setting);
        }
    }
    all
}

/// Returns keys that were asked for in a sample and are in no section.
fn undescribed(sections: &[Section], readings: &[Reading]) -> BTreeSet<String> {
    let is_described = |reading: &Reading, question: &Question| {
        sections.iter().any(|section| {
            (section.everywhere || section.samples.contains(&reading.sample))
                && section.tables.contains(&&*table(question))
                && section.keys.iter().any(|(key, _)| match question.setting {
                    Some(_) => *key == DECLARED,
                    None => *key == question.key,
                })
        })
    };
    let mut wrong = BTreeSet::new();
    for reading in readings {
        for question in reading.questions.iter().filter(|question| !is_described(reading, question)) {
            let (sample, table, key) = (reading.sample, table(question), question.key);
            wrong.insert(format!("sample {sample}: [{table}] {key} is in no section"));
        }
    }
    wrong
}

/// Returns keys in a section that were not asked for in its samples.
fn unasked(sections: &[Section], readings: &[Reading]) -> BTreeSet<String> {
    let mut wrong = BTreeSet::new();
    for section in sections {
        let mut asked = BTreeSet::new();
        for reading in readings.iter().filter(|reading| section.samples.contains(&reading.sample)) {
            let here =
                reading.questions.iter().filter(|question| section.tables.contains(&&*table(question)));
            asked.extend(here.map(|question| question.key));
        }
        let never = section.keys.iter().filter(|(key, _)| *key != DECLARED && !asked.contains(key));
        wrong.extend(never.map(|(key, _)| format!("{}: nobody asks for {key}", section.title)));
    }
    wrong
}

/// Returns the table of a key as sections call it: an edge's link is a link, and a tree's flow is traffic except for
/// its ends.
fn table(question: &Question) -> String {
    let table = &question.table;
    if let Some(link) = table.strip_prefix("edge.").filter(|rest| rest.starts_with("link")) {
        return link.to_owned();
    }
    match table.strip_prefix("flow") {
        Some(rest) if !matches!(question.key, "from" | "to") => format!("traffic{rest}"),
        _ => table.clone(),
    }
}

/// Returns the lists of tables, by header.
fn lists(readings: &[Reading]) -> BTreeSet<String> {
    let questions = readings.iter().flat_map(|reading| &reading.questions);
    let list = |question: &Question| match (&question.asked, &*question.table) {
        (Asked::Tables, "") => Some(question.key.to_owned()),
        (Asked::Tables, table) => Some(format!("{table}.{}", question.key)),
        _ => None,
    };
    questions.filter_map(list).collect()
}

/// Returns the path by which `--set` reaches the keys of a table.
fn reached(table: &str, lists: &BTreeSet<String>) -> String {
    let (mut header, mut path) = (String::new(), String::new());
    for part in table.split('.').filter(|part| !part.is_empty()) {
        if !header.is_empty() {
            header.push('.');
        }
        header.push_str(part);
        path.push_str(part);
        path.push_str(if lists.contains(&header) { ".NAME." } else { "." });
    }
    format!("`{path}KEY=VALUE`")
}
