//! Plots of the figures.

use farcast_report::plot::{Axis, Curve, Plot, Point};

use crate::study::{Row, StudyPlot};

/// Returns the figures among `rows`, in order of appearance.
pub(crate) fn of(rows: &[Row]) -> Vec<StudyPlot> {
    let mut plots: Vec<(String, Plot)> = Vec::new();
    for row in rows {
        let Some((name, plot)) = begun(row) else { continue };
        let known = plots.iter().position(|(other, _)| *other == name);
        let at = known.unwrap_or_else(|| {
            plots.push((name, plot));
            plots.len() - 1
        });
        let curves = &mut plots[at].1.curves;
        let place = curves.iter().position(|curve| curve.name == row.item).unwrap_or_else(|| {
            curves.push(Curve { name: row.item.clone(), points: Vec::new() });
            curves.len() - 1
        });
        let half = row.ci95_half_width.unwrap_or(0.0);
        curves[place].points.extend(x(&row.column).map(|x| Point { x, y: row.farcast, half }));
    }
    plots.into_iter().map(|(name, plot)| StudyPlot { name, svg: plot.svg() }).collect()
}

/// Returns the empty plot of a row of a figure: `Figure 3a: what over what, unit`.
fn begun(row: &Row) -> Option<(String, Plot)> {
    let (number, _) = row.row.strip_prefix("Figure ")?.split_once(": ")?;
    let (x, is_logarithmic) = match row.column.split(' ').next()? {
        "payload" => ("payload of a packet, B", true),
        "PER" => ("packet error rate on the satellite", true),
        _ => ("one-way delay of the satellite, ms", false),
    };
    let axis = |label: &str, is_logarithmic| Axis { label: label.to_owned(), is_logarithmic };
    let plot = Plot {
        title: row.row.clone(),
        x: axis(x, is_logarithmic),
        y: axis("kbit/s", false),
        curves: Vec::new(),
    };
    Some((format!("{}-figure-{number}.svg", row.paper), plot))
}

/// Returns the number in a column's name.
fn x(column: &str) -> Option<f64> {
    column.split(' ').find_map(|word| word.parse().ok())
}
