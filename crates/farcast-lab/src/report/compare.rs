//! Page of a comparison.

use farcast_report::page::{Axis, Cell, Chart, Column, Download, Figure, Interval, Mood, Page, Part, Table};

use super::{inline, label};
use crate::compare::{Compared, Comparison};
use crate::table::{Column as Values, Table as Data};

/// Most rows of a figure with rows, and below most sentences above it.
const MOST_ROWS: usize = 60;
const MOST_SENTENCES: usize = 8;

/// Returns the page of a comparison, from the names and tables of both sides and the result.
pub fn compare(names: [&str; 2], tables: [&Data; 2], compared: &Compared, version: &str) -> Page {
    let Compared { all, left_out } = compared;
    let mut parts = Vec::new();
    if let [one] = all.as_slice()
        && one.settings.is_empty()
    {
        let sample = |(name, table): (&str, &Data)| match table.column(&one.column) {
            Some(Values::Numbers(values)) => (name.to_owned(), values.clone()),
            _ => (name.to_owned(), Vec::new()),
        };
        let samples = names.into_iter().zip(tables).map(sample).collect();
        parts.push(Part::Figure(Figure {
            title: "Both distributions".into(),
            note: "the share of replications with at most so much".into(),
            chart: Chart::Distribution { x: Axis::linear(&label(&one.column)), samples },
        }));
    }
    let row = |one: &Comparison| Interval {
        name: named(one),
        kind: if one.differs { "differs".into() } else { "does not differ for sure".into() },
        value: share(one, one.difference),
        interval: Some((
            share(one, one.difference - one.half_width),
            share(one, one.difference + one.half_width),
        )),
    };
    parts.push(Part::Figure(Figure {
        title: "B less A".into(),
        note: "in per cent of A's mean, with intervals".into(),
        chart: Chart::Intervals {
            x: Axis::linear("difference, % of A"),
            rows: all.iter().take(MOST_ROWS).map(row).collect(),
            reference: Some(0.0),
        },
    }));
    let table = table(all);
    let downloads = vec![Download { name: "comparison.csv".into(), mime: "text/csv", text: table.csv() }];
    parts.push(Part::Table(table));
    let mut lead: Vec<String> = all.iter().take(MOST_SENTENCES).map(sentence).collect();
    if all.len() > MOST_SENTENCES {
        let differ = all.iter().filter(|one| one.differs).count();
        lead.push(format!("In all {differ} of {} comparisons the means differ.", all.len()));
    }
    lead.extend(left_out.iter().take(MOST_SENTENCES).map(|one| format!("Not compared: {}.", one.words())));
    Page {
        title: "What differs".into(),
        lead,
        settings: vec![("A".into(), names[0].to_owned()), ("B".into(), names[1].to_owned())],
        parts,
        downloads,
        made_by: format!("farcast {version}"),
    }
}

/// Returns a value in per cent of the first's mean.
fn share(one: &Comparison, value: f64) -> f64 {
    100.0 * value / one.a.mean.abs()
}

/// Returns the result of a comparison as a sentence, with the figure's name for people.
fn sentence(one: &Comparison) -> String {
    format!("{}.", one.words().replace(&one.column, &inline(&one.column)))
}

fn named(one: &Comparison) -> String {
    let settings: Vec<String> = one.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    [vec![inline(&one.column)], settings].concat().join(", ")
}

fn table(all: &[Comparison]) -> Table {
    let mut columns = vec![Column::text("what")];
    let numbers =
        ["A: mean", "sd", "n", "B: mean", "sd", "n", "B less A", "interval", "p (Holm)", "p of shape (KS)"];
    columns.extend(numbers.map(Column::number));
    columns.push(Column::text("verdict"));
    let row = |one: &Comparison| {
        let mut cells = vec![Cell::text(named(one))];
        for sample in [&one.a, &one.b] {
            cells.extend([Some(sample.mean), sample.sd, Some(sample.n as f64)].map(Cell::number));
        }
        cells.push(Cell::number(Some(one.difference)));
        cells.push(Cell::half_width(Some(one.half_width)));
        cells.extend([one.p_adjusted, one.ks_p].map(|p| Cell::number(Some(p))));
        cells.push(if one.differs {
            Cell::text("differs").with(Mood::Bad)
        } else {
            Cell::text("not for sure").with(Mood::Unsure)
        });
        cells
    };
    Table { caption: "Every comparison".into(), columns, rows: all.iter().map(row).collect() }
}
