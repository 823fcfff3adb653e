//! Page of tuning races.

use farcast_report::page::{
    Axis, Cell, Chart, Column, Download, Figure, Interval, Mood, Page, Part, Point, Series, Table,
};

use super::statistic;
use crate::tune::{Entry, SettingFate, Tuned, Tuning};

/// Standard errors in half the width of a 95 % interval.
const HALF: f64 = 1.959_964;
/// Most rows of a figure with rows.
const MOST_ROWS: usize = 40;

/// A case that was tuned, with its result.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Name of the case; empty if there is only one.
    pub name: &'a str,
    /// The task.
    pub tuning: &'a Tuning,
    /// The result.
    pub tuned: &'a Tuned,
    /// The best settings, as `send --plan` takes them.
    pub plan: Option<&'a str>,
    /// Conclusions, in sentences.
    pub words: &'a [String],
}

/// Returns the page of the races of `scenario`.
pub fn tune(scenario: &str, version: &str, cases: &[Case<'_>]) -> Page {
    let mut page = Page {
        title: format!("{scenario}: the best settings"),
        made_by: format!("farcast {version}"),
        ..Page::default()
    };
    for (number, case) in cases.iter().enumerate() {
        let (key, in_words) = (case.tuning.minimise.to_string(), statistic(&case.tuning.minimise));
        let sentences = case.words.iter().map(|words| words.replace(&key, &in_words));
        if case.name.is_empty() {
            page.lead.extend(sentences);
        } else {
            page.lead.extend(sentences.clone().take(1).map(|words| format!("{}: {words}", case.name)));
            page.parts.push(Part::Heading(case.name.to_owned()));
            page.parts.extend(sentences.map(Part::Text));
        }
        page.parts.extend(parts(case));
        let ending = if cases.len() > 1 { format!("-{}", number + 1) } else { String::new() };
        if let Some(Part::Table(table)) = page.parts.last() {
            page.downloads.push(Download {
                name: format!("settings{ending}.csv"),
                mime: "text/csv",
                text: table.csv(),
            });
        }
        if let Some(plan) = case.plan {
            page.downloads.push(Download {
                name: format!("plan{ending}.toml"),
                mime: "text/plain",
                text: plan.to_owned(),
            });
        }
    }
    if let Some(case) = cases.first() {
        let axes = case.tuning.settings.axes();
        page.settings = axes.iter().map(|axis| (axis.key().to_owned(), axis.values().join(", "))).collect();
        page.settings.push(("minimise".into(), case.tuning.minimise.to_string()));
        page.settings
            .extend(case.tuning.bounds.iter().map(|bound| ("subject to".into(), bound.text.clone())));
        let unknown = case.tuning.conditions.axes().iter();
        page.settings
            .extend(unknown.map(|axis| (format!("{} (not known)", axis.key()), axis.values().join(", "))));
    }
    page
}

fn parts(case: &Case<'_>) -> Vec<Part> {
    let what = statistic(&case.tuning.minimise);
    let mut parts = Vec::new();
    let row = |entry: &Entry| Interval {
        name: if entry.is_default { format!("{} (the scenario's)", entry.name) } else { entry.name.clone() },
        kind: words(entry.fate).to_owned(),
        value: entry.value,
        interval: interval(entry.value, entry.standard_error),
    };
    let default = case.tuned.entries.iter().find(|entry| entry.is_default);
    parts.push(Part::Figure(Figure {
        title: "Settings by how they did".into(),
        note: "with 95 % intervals; the dashed line is what the scenario has. Those of settings that were dropped early \
               are wide: what dropped them is the difference on the same replications."
            .into(),
        chart: Chart::Intervals {
            x: Axis::linear(&what),
            rows: case.tuned.entries.iter().take(MOST_ROWS).map(row).collect(),
            reference: default.map(|entry| entry.value),
        },
    }));
    if let [axis] = case.tuning.settings.axes()
        && let Some(numbers) = axis.numbers()
    {
        let mut points: Vec<Point> = case
            .tuned
            .entries
            .iter()
            .filter_map(|entry| {
                let said = entry.assignments.first()?.split_once('=')?.1;
                let place = axis.values().iter().position(|value| value == said)?;
                let interval = interval(entry.above_best, entry.above_best_error);
                Some(Point { x: numbers.values[place], y: entry.above_best, interval })
            })
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        parts.push(Part::Figure(Figure {
            title: "Above the best".into(),
            note: "the difference on the replications that both have, with its 95 % interval".into(),
            chart: Chart::Lines {
                x: Axis::linear(axis.key()),
                y: Axis::linear(&format!("above the best, {what}")).from_zero(),
                series: vec![Series { name: what, points }],
            },
        }));
    }
    parts.push(Part::Table(table(case)));
    parts
}

fn table(case: &Case<'_>) -> Table {
    let mut columns = vec![Column::text("settings"), Column::number(&statistic(&case.tuning.minimise))];
    columns.extend(["95 % interval", "above the best", "95 % interval"].map(Column::number));
    columns.extend(case.tuning.bounds.iter().map(|bound| Column::number(&statistic(&bound.measured))));
    columns.extend([Column::number("replications"), Column::text("what became of it")]);
    let row = |entry: &Entry| {
        let mood = match entry.fate {
            SettingFate::Best => Mood::Good,
            SettingFate::Tied => Mood::Unsure,
            SettingFate::OutOfBounds => Mood::Bad,
            _ => Mood::Plain,
        };
        let default = if entry.is_default { " (as the scenario has it)" } else { "" };
        let mut cells = vec![Cell::text(&entry.name), Cell::number(Some(entry.value))];
        cells.push(Cell::half_width(Some(HALF * entry.standard_error)));
        cells.push(Cell::number(Some(entry.above_best)));
        cells.push(Cell::half_width(Some(HALF * entry.above_best_error)));
        cells.extend(entry.bounded.iter().map(|&value| Cell::number(Some(value))));
        cells.push(Cell::number(Some(entry.replications as f64)));
        cells.push(Cell::text(format!("{}{default}", words(entry.fate))).with(mood));
        cells
    };
    Table { caption: "Every setting".into(), columns, rows: case.tuned.entries.iter().map(row).collect() }
}

fn interval(value: f64, error: f64) -> Option<(f64, f64)> {
    error.is_finite().then_some((value - HALF * error, value + HALF * error))
}

/// Returns the fate of a setting in words.
fn words(fate: SettingFate) -> &'static str {
    match fate {
        SettingFate::Best => "best",
        SettingFate::Tied => "not told from the best",
        SettingFate::Worse => "worse",
        SettingFate::Halved => "in the worse half of many",
        SettingFate::OutOfBounds => "out of bounds",
    }
}
