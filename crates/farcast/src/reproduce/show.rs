//! The tables, for the terminal and as Markdown.

use super::row::{Row, Verdict, short};
use super::{Paper, Results};
use crate::table::{Align, Table};

/// The heading of a paper's tables.
const fn heading(paper: &Paper) -> [&'static str; 7] {
    let [reference, ours] = paper.columns;
    ["", "", reference, ours, "95 % interval", "agrees within", "verdict"]
}
const ALIGN: [Align; 7] =
    [Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Left];

/// All results for a terminal.
pub(super) fn text(results: &[Results]) -> String {
    whole(results, |heading, cells| {
        let heading: Vec<_> = heading.into_iter().zip(ALIGN).collect();
        let mut table = Table::new(&heading);
        for row in cells {
            table.row(row);
        }
        table.render()
    })
}

/// All results as a Markdown page.
pub(super) fn markdown(results: &[Results]) -> String {
    let tables = whole(results, |heading, cells| {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let rule = ALIGN.map(|align| if align == Align::Left { "---" } else { "--:" }.to_owned());
        let head = [line(&heading.map(str::to_owned)), line(&rule)];
        head.into_iter().chain(cells.iter().map(|row| line(row))).collect::<Vec<_>>().join("\n")
    });
    format!("# Published results and farcast's\n\n{tables}\n")
}

fn whole(results: &[Results], render: impl Fn([&'static str; 7], Vec<[String; 7]>) -> String) -> String {
    let mut parts = Vec::new();
    for Results { paper, seed, replications, rows } in results {
        let Paper { name, citation, settings, .. } = paper;
        parts.push(if *settings > 0 {
            format!("{name}: {citation}; {replications} replications of each setting, seed {seed}")
        } else {
            format!("{name}: {citation}; by its formulas, no chance is in them")
        });
        for (title, rows) in cases(rows) {
            parts.push(title.to_owned());
            parts.push(render(heading(paper), cells(&rows)));
        }
        parts.push(rules(rows));
    }
    let chance = results.iter().any(|results| results.paper.settings > 0);
    parts.push(closing(results.iter().flat_map(|results| &results.rows), chance));
    parts.join("\n\n")
}

/// The rows of each case, in the order in which cases first come.
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
        // An item is named once.
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

/// Every rule once.
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
