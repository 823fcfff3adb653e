//! A sweep.

use farcast_report::page::{
    Axis, Chart, Column, Download, Figure, HeatCell, Interval, Page, Part, Point, Series, Table,
};
use farcast_stats::StatsError;

use super::{MEASURED, label, measured};
use crate::sweep::{Sweep, Swept, summary};
use crate::vary::Axis as Varied;

/// Curves that a person can tell apart.
const MOST_CURVES: usize = 7;
/// Rows of a figure with rows.
const MOST_ROWS: usize = 60;
/// What a page shows of a sweep besides what was asked for, where it is there: delivery, overhead, feedback.
const USUAL: [&str; 5] =
    ["completion_time_s", "receiver_time_s.p50", "forward.octets", "return.octets", "naks.sent"];

/// The page of a sweep: `columns` are the figures that were asked for.
///
/// # Errors
/// A figure that cannot be summed up.
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

/// What was run, and where the first figure is least and greatest.
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
            "Mean {}: from {:.4} ({}) to {:.4} ({}).",
            label(figure),
            least.1,
            swept.grid.name(least.0),
            greatest.1,
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
            .map(|((said, all), index)| farcast_report::page::Cell {
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

/// Curves over an axis of numbers, a curve for each combination of the others; where there are two axes and too many
/// curves a map; where nothing is a number rows.
fn charts(swept: &Swept, figure: &str) -> Result<Vec<Part>, StatsError> {
    let axes = swept.grid.axes();
    let over = (0..axes.len())
        .filter(|&place| axes[place].numbers().is_some() && axes[place].values().len() > 1)
        .max_by_key(|&place| axes[place].values().len());
    let y = Axis::linear(&label(figure));
    let mut title = "Point by point".to_owned();
    let chart = match over {
        None => rows(swept, figure)?,
        Some(place) => {
            let numbers =
                axes[place].numbers().unwrap_or(crate::vary::Numbers { values: Vec::new(), unit: "" });
            let mut series: Vec<Series> = Vec::new();
            for (number, point) in swept.points.iter().enumerate() {
                let indices = swept.grid.indices(number);
                let values = swept.grid.values(number);
                let others =
                    (0..axes.len()).filter(|&other| other != place && axes[other].values().len() > 1);
                let name = others
                    .map(|other| format!("{} = {}", axes[other].key(), values[other]))
                    .collect::<Vec<_>>()
                    .join(", ");
                let measure = summary(point, figure)?;
                let Some(mean) = measure.mean else { continue };
                let interval = measure.ci95_half_width.map(|half| (mean - half, mean + half));
                let point = Point { x: numbers.values[indices[place]], y: mean, interval };
                match series.iter_mut().find(|one| one.name == name) {
                    Some(one) => one.points.push(point),
                    None => series.push(Series { name, points: vec![point] }),
                }
            }
            if series.len() > MOST_CURVES && axes.len() == 2 {
                title = format!("Over {} and {}", axes[place].key(), axes[1 - place].key());
                map(swept, figure, place)?
            } else {
                series.truncate(MOST_CURVES);
                title = format!("Over {}", axes[place].key());
                let named = if numbers.unit.is_empty() {
                    axes[place].key().to_owned()
                } else {
                    format!("{}, {}", axes[place].key(), numbers.unit)
                };
                let (least, greatest) = numbers
                    .values
                    .iter()
                    .fold((f64::INFINITY, 0.0f64), |(low, high), &value| (low.min(value), high.max(value)));
                let x = if least > 0.0 && greatest / least >= 20.0 {
                    Axis::logarithmic(&named)
                } else {
                    Axis::linear(&named)
                };
                Chart::Lines { x, y, series }
            }
        }
    };
    let note = "mean and 95 % interval of it".to_owned();
    Ok(vec![Part::Figure(Figure { title, note, chart })])
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

fn map(swept: &Swept, figure: &str, across: usize) -> Result<Chart, StatsError> {
    let axes = swept.grid.axes();
    let down = 1 - across;
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
