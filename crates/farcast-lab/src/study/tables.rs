//! Tables of results: their text and cells, and all of them as Markdown.

use super::Results;
use super::row::{Row, Verdict, short};

/// Number of columns of a table.
pub const COLUMNS: usize = 7;

/// A part of the display of results, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResultPart {
    /// Lines of text.
    Text(String),
    /// A table.
    Table(ResultTable),
}

/// The table of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultTable {
    /// Headings of the columns.
    pub heading: [&'static str; COLUMNS],
    /// The cells, row by row.
    pub rows: Vec<[String; COLUMNS]>,
}

impl ResultTable {
    /// Returns `true` for a column of numbers, which is aligned to the right.
    pub const fn is_of_numbers(column: usize) -> bool {
        2 <= column && column <= 5
    }
}

/// Returns the display of all results: the title of each study, a table for each of its cases, its rules, and the
/// number of each verdict.
pub fn parts(results: &[Results]) -> Vec<ResultPart> {
    let mut parts = Vec::new();
    for Results { name, citation, columns: [reference, ours], seed, replications, rows, .. } in results {
        let how = match replications {
            Some(count) => format!("{count} replications of each setting, seed {seed}"),
            None => "by its formulas, no chance is in them".to_owned(),
        };
        parts.push(ResultPart::Text(format!("{name}: {citation}; {how}")));
        let heading = ["", "", reference, ours, "95 % interval", "agrees within", "verdict"];
        for (title, rows) in cases(rows) {
            parts.push(ResultPart::Text(title.to_owned()));
            parts.push(ResultPart::Table(ResultTable { heading, rows: cells(&rows) }));
        }
        parts.push(ResultPart::Text(rules(rows)));
    }
    let chance = results.iter().any(|results| results.replications.is_some());
    parts.push(ResultPart::Text(closing(results.iter().flat_map(|results| &results.rows), chance)));
    parts
}

/// Returns all results as a Markdown page.
pub fn markdown(results: &[Results]) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let table = |ResultTable { heading, rows }: ResultTable| {
        let rule: Vec<_> = (0..COLUMNS)
            .map(|at| if ResultTable::is_of_numbers(at) { "--:" } else { "---" }.to_owned())
            .collect();
        let head = [line(&heading.map(str::to_owned)), line(&rule)];
        head.into_iter().chain(rows.iter().map(|row| line(row))).collect::<Vec<_>>().join("\n")
    };
    let text = parts(results).into_iter().map(|part| match part {
        ResultPart::Text(text) => text,
        ResultPart::Table(cells) => table(cells),
    });
    format!("# Published results and farcast's\n\n{}\n", text.collect::<Vec<_>>().join("\n\n"))
}

/// Returns the rows of each case, in the order in which cases first appear.
fn cases(rows: &[Row]) -> Vec<(&str, Vec<&Row>)> {
    let mut cases: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        match cases.iter_mut().find(|(case, _)| *case == row.row) {
            Some((_, rows)) => rows.push(row),
            None => cases.push((&row.row, vec![row])),
        }
    }
    cases
}

fn cells(rows: &[&Row]) -> Vec<[String; 7]> {
    let mut before = "";
    let mut cells = Vec::new();
    for row in rows {
        // An item is named only in its first row.
        let item = if row.item == before { "" } else { &row.item };
        before = &row.item;
        let number = |number: f64| format!("{number:.*}", row.decimals);
        let within = row.rule.agrees_within.map(|(low, high)| format!("{} .. {}", number(low), number(high)));
        let dash = || "-".to_owned();
        cells.push([
            item.to_owned(),
            row.column.clone(),
            row.published.map_or_else(dash, short),
            number(row.farcast),
            row.ci95_half_width.map_or_else(dash, |half| format!("\u{b1} {}", number(half))),
            within.unwrap_or_else(dash),
            row.verdict.words().to_owned(),
        ]);
    }
    cells
}

/// Returns a list with every rule once.
fn rules(rows: &[Row]) -> String {
    let mut sentences: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| row.verdict != Verdict::NotPublished) {
        if !sentences.contains(&row.rule.sentence) {
            sentences.push(row.rule.sentence);
        }
    }
    let lines: Vec<_> = sentences.iter().map(|sentence| format!("- {sentence}")).collect();
    format!("Rules:\n\n{}", lines.join("\n"))
}

fn closing<'a>(rows: impl Iterator<Item = &'a Row>, chance: bool) -> String {
    let mut counts = [0_usize; 4];
    for row in rows {
        counts[row.verdict as usize] += 1;
    }
    let [agree, differ, undetermined, unpublished] = counts;
    let counts = format!(
        "{} numbers compared: {agree} agree, {differ} differ, {undetermined} undetermined; not published: {unpublished}.",
        agree + differ + undetermined
    );
    if chance {
        counts + " Of like and like, about one comparison in twenty differs by chance."
    } else {
        counts
    }
}

#[cfg(test)]
mod tests;
