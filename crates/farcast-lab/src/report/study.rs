//! Page of repeated published studies.

use farcast_report::page::{Axis, Cell, Chart, Column, Download, Figure, Interval, Mood, Page, Part, Table};

use crate::study::{Results, Row, Verdict};

/// Most rows of a figure with rows.
const MOST_ROWS: usize = 60;

/// Returns one page of all studies: the verdicts first, then each study's numbers.
pub fn studies(results: &[Results], version: &str) -> Page {
    let mut parts = vec![Part::Table(verdicts(results))];
    for one in results {
        parts.push(Part::Heading(one.name.to_owned()));
        parts.push(Part::Text(format!("{}.", one.citation)));
        parts.extend(ratios(one));
        parts.push(Part::Table(numbers(one)));
        let mut rules: Vec<&str> = Vec::new();
        for row in &one.rows {
            if !rules.contains(&row.rule.sentence) {
                rules.push(row.rule.sentence);
            }
        }
        parts.extend(rules.into_iter().map(|rule| Part::Text(format!("Rule: {rule}."))));
    }
    let all = || results.iter().flat_map(|one| &one.rows);
    let count = |verdict| all().filter(|row| row.verdict == verdict).count();
    let judged = count(Verdict::Agrees) + count(Verdict::Differs) + count(Verdict::Undetermined);
    let lead = format!(
        "Of {judged} published numbers {} agree, {} differ, and for {} our replications cannot tell; {} of ours have no \
         published counterpart.",
        count(Verdict::Agrees),
        count(Verdict::Differs),
        count(Verdict::Undetermined),
        count(Verdict::NotPublished),
    );
    let downloads = results
        .iter()
        .map(|one| Download { name: format!("{}.csv", one.name), mime: "text/csv", text: numbers(one).csv() })
        .collect();
    let title = match results {
        [one] => format!("{}: published and ours", one.name),
        _ => "Published studies, and ours".to_owned(),
    };
    Page {
        title,
        lead: vec![lead],
        settings: results
            .iter()
            .map(|one| {
                let how = one.replications.map_or_else(
                    || "a closed form".to_owned(),
                    |count| format!("{count} replications, seed {}", one.seed),
                );
                (one.name.to_owned(), how)
            })
            .collect(),
        parts,
        downloads,
        made_by: format!("farcast {version}"),
    }
}

fn verdicts(results: &[Results]) -> Table {
    let mut columns = vec![Column::text("study")];
    columns.extend(["agree", "differ", "undetermined", "not published"].map(Column::number));
    let row = |one: &Results| {
        let count = |verdict| one.rows.iter().filter(|row| row.verdict == verdict).count() as f64;
        let mut cells = vec![Cell::text(one.name)];
        for (verdict, mood) in [
            (Verdict::Agrees, Mood::Good),
            (Verdict::Differs, Mood::Bad),
            (Verdict::Undetermined, Mood::Unsure),
            (Verdict::NotPublished, Mood::Plain),
        ] {
            let count = count(verdict);
            cells.push(Cell::number(Some(count)).with(if count > 0.0 { mood } else { Mood::Plain }));
        }
        cells
    };
    Table { caption: "Verdicts, study by study".into(), columns, rows: results.iter().map(row).collect() }
}

/// Returns the figure of our numbers over the published ones, where both are above zero.
fn ratios(one: &Results) -> Option<Part> {
    let row = |row: &Row| {
        let published = row.published.filter(|published| *published > 0.0 && row.farcast > 0.0)?;
        let half = row.ci95_half_width.unwrap_or(0.0);
        let of = |value: f64| 100.0 * value / published;
        Some(Interval {
            name: name(row),
            kind: row.verdict.words().to_owned(),
            value: of(row.farcast),
            interval: Some((of(row.farcast - half), of(row.farcast + half))),
        })
    };
    let mut rows: Vec<Interval> = one.rows.iter().filter_map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let more = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    let [published, ours] = one.columns;
    let rest = if more > 0 { format!("; {more} more are in the table") } else { String::new() };
    Some(Part::Figure(Figure {
        title: format!("{ours} over {published}"),
        note: format!("with the 95 % interval of {ours}{rest}"),
        chart: Chart::Intervals {
            x: Axis::linear(&format!("{ours}, % of {published}")),
            rows,
            reference: Some(100.0),
        },
    }))
}

fn name(row: &Row) -> String {
    [row.row.as_str(), row.item.as_str(), row.column.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

fn numbers(one: &Results) -> Table {
    let [published, ours] = one.columns;
    let mut columns = ["case", "what", "setting"].map(Column::text).to_vec();
    columns.extend([published, ours, "95 % interval"].map(Column::number));
    columns.push(Column::text("verdict"));
    let row = |row: &Row| {
        let decimals = row.decimals;
        let shown =
            |value: f64| Cell { shown: format!("{value:.decimals$}"), exact: Some(value), mood: Mood::Plain };
        let mood = match row.verdict {
            Verdict::Agrees => Mood::Good,
            Verdict::Differs => Mood::Bad,
            Verdict::Undetermined => Mood::Unsure,
            Verdict::NotPublished => Mood::Plain,
        };
        vec![
            Cell::text(&row.row),
            Cell::text(&row.item),
            Cell::text(&row.column),
            row.published.map_or_else(Cell::default, shown),
            shown(row.farcast),
            Cell::half_width(row.ci95_half_width),
            Cell::text(row.verdict.words()).with(mood),
        ]
    };
    Table {
        caption: format!("Every number of {}", one.name),
        columns,
        rows: one.rows.iter().map(row).collect(),
    }
}
