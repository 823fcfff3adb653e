//! Page of a sweep.

use std::fmt::Write as _;

use farcast_report::page::{
    Axis, Cell, Chart, Column, Download, Figure, HeatCell, Interval, Page, Part, Point, Series, Table,
};
use farcast_stats::StatsError;

use super::{MEASURED, label, measured};
use crate::sweep::{Sweep, Swept, summary};
use crate::vary::Axis as Varied;

/// Most curves that a reader can tell apart.
const MOST_CURVES: usize = 7;
/// Most rows of a figure with rows.
const MOST_ROWS: usize = 60;
/// Figures that a page shows in addition to the requested ones, if the sweep has them: delivery, overhead, feedback.
const USUAL: [&str; 5] =
    ["completion_time_s", "receiver_time_s.p50", "forward.octets", "return.octets", "naks.sent"];

/// Returns the page of a sweep; `columns` are the requested figures.
///
/// # Errors
/// A figure cannot be summed up.
pub fn sweep(name: &str, sweep: &Sweep, swept: &Swept, columns: &[String]) -> Result<Page, StatsError> {
    let all = swept.columns();
    let mut figures: Vec<&str> = columns.iter().map(String::as_str).collect();
    figures.extend(
        USUAL.into_iter().filter(|usual| all.contains(usual) && !columns.iter().any(|one| one == usual)),
    );
    figures.retain(|figure| all.contains(figure));
    let mut parts = Vec::new();
    for figure in &figures {
        parts.push(Part::Heading(label(figure)));
        parts.extend(charts(swept, figure)?);
        parts.push(Part::Table(table(swept, figure)?));
    }
    let axes = swept.grid.axes();
    let mut settings: Vec<(String, String)> =
        axes.iter().map(|axis| (axis.key().to_owned(), axis.values().join(", "))).collect();
    settings.push(("seed".into(), sweep.seed.to_string()));
    let document = sweep.document().clone();
    if crate::World::read(&document).is_ok() {
        let varied = |key: &String| axes.iter().any(|axis| axis.key() == key);
        settings.extend(super::settings(&document).into_iter().filter(|(key, _)| !varied(key)));
    }
    Ok(Page {
        title: format!("{name}: {}", axes.iter().map(Varied::key).collect::<Vec<_>>().join(", ")),
        lead: lead(swept, figures.first().copied())?,
        settings,
        parts,
        downloads: vec![Download {
            name: "summary.csv".into(),
            mime: "text/csv",
            text: crate::sweep::csv(swept, &swept.summary()?),
        }],
        made_by: format!("farcast {}, seed {}", sweep.version, sweep.seed),
    })
}

/// Returns the summary of the sweep, and where the first figure is least and greatest.
fn lead(swept: &Swept, figure: Option<&str>) -> Result<Vec<String>, StatsError> {
    let mut lead = vec![format!(
        "{} points with {} replications in all, on common random numbers; {:.1} s of cores.",
        swept.points.len(),
        swept.replications(),
        swept.cpu_s()
    )];
    let Some(figure) = figure else { return Ok(lead) };
    let mut means = Vec::new();
    for (number, point) in swept.points.iter().enumerate() {
        if let Some(mean) = summary(point, figure)?.mean {
            means.push((number, mean));
        }
    }
    let by_mean = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
    if let (Some(least), Some(greatest)) = (means.iter().min_by(by_mean), means.iter().max_by(by_mean)) {
        lead.push(format!(
            "Mean {}: from {} ({}) to {} ({}).",
            label(figure),
            Cell::number(Some(least.1)).shown,
            swept.grid.name(least.0),
            Cell::number(Some(greatest.1)).shown,
            swept.grid.name(greatest.0)
        ));
    }
    let unfinished = swept.points.iter().filter(|point| point.unfinished() > 0).count();
    if unfinished > 0 {
        lead.push(format!(
            "{unfinished} points have replications that reached the time limit: they have no mean."
        ));
    }
    Ok(lead)
}

fn table(swept: &Swept, figure: &str) -> Result<Table, StatsError> {
    let axes = swept.grid.axes();
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::number(axis.key())).collect();
    columns.extend(MEASURED.map(Column::number));
    let numbers: Vec<_> = axes.iter().map(Varied::numbers).collect();
    let mut rows = Vec::new();
    for (number, point) in swept.points.iter().enumerate() {
        let indices = swept.grid.indices(number);
        let values = swept.grid.values(number).into_iter().zip(&numbers).zip(indices);
        let mut row: Vec<_> = values
            .map(|((said, all), index)| Cell {
                shown: said.to_owned(),
                exact: all.as_ref().map(|all| all.values[index]),
                ..Default::default()
            })
            .collect();
        row.extend(measured(&summary(point, figure)?));
        rows.push(row);
    }
    Ok(Table { caption: label(figure), columns, rows })
}

/// The part of a sweep that one figure shows.
struct SweepView {
    /// The axis from left to right, which is one of numbers.
    over: usize,
    /// The axes that distinguish the curves.
    by: Vec<usize>,
    /// The drawn values of all other axes, by axis; also those of an axis in `by` of which only some curves are
    /// drawn.
    only: Vec<(usize, Vec<usize>)>,
}

/// Returns the charts of a figure. The first choice is curves over an axis of numbers, a curve for each combination
/// of the others. If there are too many curves, two axes give a map. More axes give a chart by each of the other
/// axes, with the rest held at their middle value. Without an axis of numbers, the chart has a row for each point.
fn charts(swept: &Swept, figure: &str) -> Result<Vec<Part>, StatsError> {
    let axes = swept.grid.axes();
    let lengths: Vec<usize> = axes.iter().map(|axis| axis.values().len()).collect();
    let note = "mean and 95 % interval of it".to_owned();
    let over = (0..axes.len())
        .filter(|&place| axes[place].numbers().is_some() && lengths[place] > 1)
        .max_by_key(|&place| lengths[place]);
    let Some(over) = over else {
        let (title, chart) = ("Point by point".to_owned(), rows(swept, figure)?);
        return Ok(vec![Part::Figure(Figure { title, note, chart })]);
    };
    let others: Vec<usize> = (0..axes.len()).filter(|&other| other != over && lengths[other] > 1).collect();
    let curves: usize = others.iter().map(|&other| lengths[other]).product();
    if curves <= MOST_CURVES {
        let view = SweepView { over, by: others, only: Vec::new() };
        return Ok(vec![lines(swept, figure, &view)?]);
    }
    if let [other] = others[..] {
        let title = format!("Over {} and {}", axes[over].key(), axes[other].key());
        let note = "mean".to_owned();
        return Ok(vec![Part::Figure(Figure { title, note, chart: map(swept, figure, over, other)? })]);
    }
    let held = |by: usize| others.iter().filter(move |&&other| other != by);
    let view = |&by: &usize| {
        let mut only: Vec<_> = held(by).map(|&other| (other, vec![lengths[other] / 2])).collect();
        let drawn = lengths[by].min(MOST_CURVES);
        // The drawn values are evenly spread, with the first and the last.
        only.push((by, (0..drawn).map(|curve| curve * (lengths[by] - 1) / (drawn - 1)).collect()));
        lines(swept, figure, &SweepView { over, by: vec![by], only })
    };
    others.iter().map(view).collect()
}

/// Returns the curves of a view.
fn lines(swept: &Swept, figure: &str, view: &SweepView) -> Result<Part, StatsError> {
    let axes = swept.grid.axes();
    let across = &axes[view.over];
    let numbers = across.numbers().unwrap_or(crate::vary::Numbers { values: Vec::new(), unit: "" });
    let named = |place: usize, value: &str| format!("{} = {value}", axes[place].key());
    let mut series: Vec<Series> = Vec::new();
    for (number, point) in swept.points.iter().enumerate() {
        let (indices, values) = (swept.grid.indices(number), swept.grid.values(number));
        if !view.only.iter().all(|(place, some)| some.contains(&indices[*place])) {
            continue;
        }
        let measure = summary(point, figure)?;
        let Some(mean) = measure.mean else { continue };
        let name: Vec<String> = view.by.iter().map(|&place| named(place, values[place])).collect();
        let name = name.join(", ");
        let interval = measure.ci95_half_width.map(|half| (mean - half, mean + half));
        let point = Point { x: numbers.values[indices[view.over]], y: mean, interval };
        match series.iter_mut().find(|one| one.name == name) {
            Some(one) => one.points.push(point),
            None => series.push(Series { name, points: vec![point] }),
        }
    }
    let mut title = format!("Over {}", across.key());
    let mut note = "mean and 95 % interval of it".to_owned();
    if let ([by], false) = (&view.by[..], view.only.is_empty()) {
        let _ = write!(title, ", by {}", axes[*by].key());
        let held = view.only.iter().filter(|(place, _)| place != by);
        let held: Vec<String> =
            held.map(|(place, some)| named(*place, &axes[*place].values()[some[0]])).collect();
        let _ = write!(note, "; for {}; the table has all combinations", held.join(", "));
    }
    let unit = if numbers.unit.is_empty() { String::new() } else { format!(", {}", numbers.unit) };
    let label_x = format!("{}{unit}", across.key());
    let (least, greatest) = numbers
        .values
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(low, high), &value| (low.min(value), high.max(value)));
    let is_wide = least > 0.0 && greatest / least >= 20.0;
    let x = if is_wide { Axis::logarithmic(&label_x) } else { Axis::linear(&label_x) };
    let chart = Chart::Lines { x, y: Axis::linear(&label(figure)), series };
    Ok(Part::Figure(Figure { title, note, chart }))
}

fn rows(swept: &Swept, figure: &str) -> Result<Chart, StatsError> {
    let mut rows = Vec::new();
    for (number, point) in swept.points.iter().enumerate().take(MOST_ROWS) {
        let measure = summary(point, figure)?;
        if let Some(value) = measure.mean {
            let interval = measure.ci95_half_width.map(|half| (value - half, value + half));
            rows.push(Interval { name: swept.grid.name(number), kind: String::new(), value, interval });
        }
    }
    Ok(Chart::Intervals { x: Axis::linear(&label(figure)), rows, reference: None })
}

fn map(swept: &Swept, figure: &str, across: usize, down: usize) -> Result<Chart, StatsError> {
    let axes = swept.grid.axes();
    let mut cells = Vec::new();
    for (number, point) in swept.points.iter().enumerate() {
        let values = swept.grid.values(number);
        if let Some(value) = summary(point, figure)?.mean {
            cells.push(HeatCell { x: values[across].to_owned(), y: values[down].to_owned(), value });
        }
    }
    let labels = [axes[across].key().to_owned(), axes[down].key().to_owned(), label(figure)];
    Ok(Chart::Heat { labels, cells })
}
