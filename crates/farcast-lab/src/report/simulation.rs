//! Page of a simulation.

use farcast_report::page::{Axis, Bar, Cell, Chart, Column, Download, Figure, Page, Part, Table};
use farcast_scenario::document::Document;
use farcast_sim::outcome::{Measure, Replication};
use farcast_stats::StatsError;

use super::{MEASURED, label, measured};
use crate::figures::Figures;

/// Returns the page of `replications` of a scenario that was read from `document`. It shows the times of single
/// receivers if replications have them.
///
/// # Errors
/// A figure cannot be summed up.
pub fn simulation<R: AsRef<Replication> + serde::Serialize>(
    name: &str,
    document: &Document,
    replications: &[R],
    seed: u64,
    version: &str,
) -> Result<Page, StatsError> {
    let mut figures = Figures::new();
    for one in replications {
        figures.push(one);
    }
    let mut parts = Vec::new();
    parts.extend(times(replications));
    parts.extend(octets(replications));
    let (table, measures) = table(&figures)?;
    let mut lead = vec![format!("{} replications, seed {seed}.", replications.len())];
    if let Some(time) =
        measures.iter().find(|(name, _)| *name == "completion_time_s").map(|(_, measure)| measure)
    {
        lead.extend(match (time.mean, time.ci95_half_width, time.p95) {
            (Some(mean), Some(half), Some(p95)) => Some(format!(
                "It is complete after {mean:.2} s on average (95 % interval \u{b1} {half:.2} s); in 95 % of replications \
                 after {p95:.2} s at most."
            )),
            (Some(mean), ..) => Some(format!("It is complete after {mean:.2} s.")),
            _ => None,
        });
        let unfinished = replications.len() as u64 - time.n;
        if unfinished > 0 && figures.has_end() {
            lead.push(format!("{unfinished} replications reached the time limit before all was complete."));
        }
    }
    parts.push(Part::Heading("Every figure".into()));
    let downloads = vec![
        Download { name: "summary.csv".into(), mime: "text/csv", text: table.csv() },
        Download { name: "replications.csv".into(), mime: "text/csv", text: csv(&figures) },
    ];
    parts.push(Part::Table(table));
    Ok(Page {
        title: name.to_owned(),
        lead,
        settings: super::settings(document),
        parts,
        downloads,
        made_by: format!("farcast {version}, seed {seed}"),
    })
}

/// Measures by name.
type Named<'a> = Vec<(&'a str, Measure)>;

/// Returns the figure of the times at which receivers had everything, and at which all had.
fn times<R: AsRef<Replication>>(replications: &[R]) -> Option<Part> {
    let all = || replications.iter().map(AsRef::as_ref);
    let never = |time: Option<f64>| time.unwrap_or(f64::NAN);
    let whole: Vec<f64> = all().map(|one| never(one.completion_time_s)).collect();
    let each: Vec<f64> = all()
        .filter_map(|one| one.transfer.as_ref()?.receivers.as_ref())
        .flat_map(|times| times.iter().map(|&time| never(time)))
        .collect();
    let mut samples = Vec::new();
    if !each.is_empty() {
        samples.push(("a receiver has it".to_owned(), each));
    }
    if whole.iter().any(|time| time.is_finite()) {
        samples.push(("all is complete".to_owned(), whole));
    }
    (!samples.is_empty()).then(|| {
        Part::Figure(Figure {
            title: "Delivery over time".into(),
            note: "the share of receivers of all replications, and of replications".into(),
            chart: Chart::Distribution { x: Axis::linear("time, s"), samples },
        })
    })
}

/// Returns the figure of octets in both directions, mean of replications.
fn octets<R: AsRef<Replication>>(replications: &[R]) -> Option<Part> {
    if replications.is_empty() {
        return None;
    }
    let mean = |value: &dyn Fn(&Replication) -> f64| {
        replications.iter().map(|one| value(one.as_ref())).sum::<f64>() / replications.len() as f64
    };
    let bar = |name: &str, value: f64| Bar { name: name.to_owned(), part: "octets".to_owned(), value };
    let bars = vec![
        bar("forward", mean(&|one| one.forward.octets as f64)),
        bar("return", mean(&|one| one.back.octets as f64)),
    ];
    Some(Part::Figure(Figure {
        title: "What it took".into(),
        note: "octets with all headers, mean of replications".into(),
        chart: Chart::Bars { x: Axis::linear("octets"), bars },
    }))
}

/// Returns the table of all figures, and the measure of each by its name.
fn table(figures: &Figures) -> Result<(Table, Named<'_>), StatsError> {
    let mut columns = vec![Column::text("figure")];
    columns.extend(MEASURED.map(Column::number));
    let (mut rows, mut measures) = (Vec::new(), Vec::new());
    for (name, values) in figures.columns() {
        let measure = crate::sweep::measure(name, values)?;
        let mut row = vec![Cell::text(label(name))];
        row.extend(measured(&measure));
        rows.push(row);
        measures.push((name, measure));
    }
    Ok((Table { caption: "Over replications".into(), columns, rows }, measures))
}

/// Returns all replications as CSV.
fn csv(figures: &Figures) -> String {
    let columns: Vec<(&str, &[f64])> = figures.columns().collect();
    let table = Table {
        caption: String::new(),
        columns: columns.iter().map(|(name, _)| Column::number(name)).collect(),
        rows: (0..figures.len())
            .map(|row| columns.iter().map(|(_, values)| Cell::number(Some(values[row]))).collect())
            .collect(),
    };
    table.csv()
}
