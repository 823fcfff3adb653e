//! Plots of curves: SVG that needs nothing else, in the light or dark style of the reader's browser.
//!
//! ```
//! use farcast_report::plot::{Axis, Curve, Plot, Point};
//!
//! let curve = Curve { name: "goodput".into(), points: vec![Point { x: 1e-4, y: 1.9, half: 0.1 }] };
//! let plot = Plot {
//!     title: "goodput over losses".into(),
//!     x: Axis { label: "packet error rate".into(), is_logarithmic: true },
//!     y: Axis { label: "Mbit/s".into(), is_logarithmic: false },
//!     curves: vec![curve],
//! };
//! assert!(plot.svg().starts_with("<svg "));
//! ```

mod axis;

use std::fmt::Write as _;

use crate::svg::{Anchor, Area, Escaped, Svg, text_width};
use axis::Along;

/// An axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Label of the axis, with the unit.
    pub label: String,
    /// True if equal ratios are equally far apart. Values not above zero then stand at the near end, left of a gap.
    pub is_logarithmic: bool,
}

/// A point of a curve. A point that is not finite is left out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Value at that place.
    pub y: f64,
    /// Half the width of its interval, drawn as a bar; 0 for none.
    pub half: f64,
}

/// A curve.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Points of the curve, ordered by `x`.
    pub points: Vec<Point>,
}

/// A plot of curves.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// Title above the plot.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis; unless it is logarithmic, it begins at zero.
    pub y: Axis,
    /// The curves. Colours and markers repeat after six.
    pub curves: Vec<Curve>,
}

const STYLE: &str = include_str!("plot.css");
const WIDTH: f64 = 720.0;
/// Height with one row of the legend.
const HEIGHT: f64 = 420.0;
/// Area of the curves.
const FIELD: Area = Area { x: 76.0, y: 44.0, width: 620.0, height: 282.0 };
/// Font size.
const SIZE: f64 = 13.0;
/// Place of the first row of the legend, and below the distance to the next row.
const LEGEND: f64 = 392.0;
const ROW: f64 = 22.0;
/// Distance from a curve's line in the legend to its name, and below that from the name to the next line.
const KEY: f64 = 33.0;
const GAP: f64 = 18.0;
/// Half the size of a marker, and half the width of the ends of a bar.
const MARK: f64 = 4.0;
/// Markers, as paths around their middle.
const MARKS: [&str; 6] = [
    "m-4 -4l8 8m0 -8l-8 8",
    "m-5 0h10m-5 -5v10",
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "m-4 -4h8v8h-8z",
    "m0 -5l5 9h-10z",
    "m0 -5l5 5l-5 5l-5 -5z",
];

impl Plot {
    /// Returns the plot as an SVG file, which may also stand inside a page.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        let keys = self.keys();
        let height = HEIGHT + keys.last().map_or(0.0, |&(_, y)| y - LEGEND);
        svg.raw(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" \
             width=\"{WIDTH:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{}\">\n<style>\n{STYLE}</style>\n",
            Escaped(&self.title)
        ));
        svg.rect("ground", Area { x: 0.0, y: 0.0, width: WIDTH, height }, "");
        svg.text("title", (FIELD.x, 26.0), Anchor::Start, &self.title);
        let points = || self.curves.iter().flat_map(|curve| curve.points.iter().filter(|one| one.is_drawn()));
        let bottom = FIELD.y + FIELD.height;
        let x = Along::of(&self.x, &points().map(|one| one.x), FIELD.x + 14.0, FIELD.x + FIELD.width - 14.0);
        let y = Along::of(&self.y, &points().map(|one| one.y + one.half), bottom, FIELD.y + 6.0);
        self.frame(&mut svg, &x, &y);
        let axes = PlotAxes { x, y, labels: [&self.x.label, &self.y.label] };
        for (number, curve) in self.curves.iter().enumerate() {
            draw(&mut svg, number % MARKS.len(), curve, &axes);
        }
        self.legend(&mut svg, &keys);
        svg.raw("</svg>\n");
        svg.into_string()
    }

    fn frame(&self, svg: &mut Svg, x: &Along, y: &Along) {
        let (bottom, right) = (FIELD.y + FIELD.height, FIELD.x + FIELD.width);
        for (at, text) in y.ticks() {
            svg.line("grid", (FIELD.x, at), (right, at), "");
            svg.text("tick", (FIELD.x - 8.0, at + 4.0), Anchor::End, &text);
        }
        for (at, text) in x.ticks() {
            svg.line("grid", (at, FIELD.y), (at, bottom), "");
            svg.text("tick", (at, bottom + 18.0), Anchor::Middle, &text);
        }
        svg.line("axis", (FIELD.x, bottom), (right, bottom), "");
        svg.line("axis", (FIELD.x, FIELD.y), (FIELD.x, bottom), "");
        let middle = FIELD.x + FIELD.width / 2.0;
        svg.text("label", (middle, bottom + 40.0), Anchor::Middle, &self.x.label);
        svg.raw("<g transform=\"rotate(-90)\">\n");
        let middle = -(FIELD.y + FIELD.height / 2.0);
        svg.text("label", (middle, 18.0), Anchor::Middle, &self.y.label);
        svg.raw("</g>\n");
    }

    /// Returns the place of each curve in the legend, as many in a row as there is room for.
    fn keys(&self) -> Vec<(f64, f64)> {
        let (mut at, mut row) = (FIELD.x, LEGEND);
        let place = |curve: &Curve| {
            let width = KEY + text_width(&curve.name, SIZE);
            if at > FIELD.x && at + width > WIDTH {
                (at, row) = (FIELD.x, row + ROW);
            }
            let key = (at, row);
            at += width + GAP;
            key
        };
        self.curves.iter().map(place).collect()
    }

    fn legend(&self, svg: &mut Svg, keys: &[(f64, f64)]) {
        for (number, (curve, &(x, y))) in self.curves.iter().zip(keys).enumerate() {
            let number = number % MARKS.len();
            svg.line(&format!("curve c{number}"), (x, y), (x + 26.0, y), "");
            svg.shape(&format!("mark c{number}"), (x + 13.0, y), MARKS[number], "");
            svg.text("name", (x + KEY, y + 4.0), Anchor::Start, &curve.name);
        }
    }
}

impl Point {
    fn is_drawn(&self) -> bool {
        self.x.is_finite() && self.y.is_finite() && self.half.is_finite()
    }
}

/// Axes of a plot, with their labels.
struct PlotAxes<'a> {
    x: Along,
    y: Along,
    labels: [&'a str; 2],
}

/// Draws a curve: its line, its bars, and its markers with tooltips.
fn draw(svg: &mut Svg, number: usize, curve: &Curve, axes: &PlotAxes<'_>) {
    let PlotAxes { x, y, labels } = axes;
    let points: Vec<_> = curve.points.iter().filter(|point| point.is_drawn()).collect();
    let mut path = String::new();
    for point in &points {
        let verb = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{verb}{:.1} {:.1}", x.at(point.x), y.at(point.y));
    }
    if points.len() > 1 {
        svg.path(&format!("curve c{number}"), &path, &curve.name);
    }
    for point in points {
        let at = (x.at(point.x), y.at(point.y));
        if point.half > 0.0 {
            let [low, high] = [point.y - point.half, point.y + point.half].map(|end| y.at(end));
            let class = format!("bar c{number}");
            svg.line(&class, (at.0, low), (at.0, high), "");
            for end in [low, high] {
                svg.line(&class, (at.0 - MARK, end), (at.0 + MARK, end), "");
            }
        }
        let tip = format!(
            "{}: {} {}, {} {:.4} ± {:.4}",
            curve.name, labels[0], point.x, labels[1], point.y, point.half
        );
        svg.shape(&format!("mark c{number}"), at, MARKS[number], &tip);
    }
}

#[cfg(test)]
mod tests;
