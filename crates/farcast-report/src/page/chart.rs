//! Figures of a page, as specifications of Vega-Lite.

mod rows;

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::svg::Escaped;

/// A chart with its title and note.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Title above the chart.
    pub title: String,
    /// Note below the chart: its content, and the meaning of bars and bands.
    pub note: String,
    /// Chart of the figure.
    pub chart: Chart,
}

/// An axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Label of the axis, with the unit.
    pub label: String,
    /// True if equal ratios are equally far apart.
    pub is_logarithmic: bool,
    /// True if the axis begins at zero.
    pub has_zero: bool,
    /// True if the axis marks whole numbers only.
    pub is_whole: bool,
}

impl Axis {
    /// Creates an axis on which equal differences are equally far apart; it shows zero if the values come near it.
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), is_logarithmic: false, has_zero: false, is_whole: false }
    }

    /// Creates an axis on which equal ratios are equally far apart, for values above zero.
    pub fn logarithmic(label: &str) -> Self {
        Self { label: label.to_owned(), is_logarithmic: true, has_zero: false, is_whole: false }
    }

    /// Returns the axis beginning at zero.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { has_zero: true, ..self }
    }

    /// Returns the axis with marks at whole numbers only.
    #[must_use]
    pub fn of_counts(self) -> Self {
        Self { is_whole: true, ..self }
    }

    fn scale(&self) -> Value {
        if self.is_logarithmic {
            json!({"type": "log", "nice": false})
        } else {
            json!({"zero": self.has_zero, "nice": true})
        }
    }
}

/// A point with its interval, low and high, if it has one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Value at that place.
    pub y: f64,
    /// Low and high end of the interval.
    pub interval: Option<(f64, f64)>,
}

/// A curve.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points of the curve.
    pub points: Vec<Point>,
}

/// A value with its interval, in a row of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Interval {
    /// Name of the row.
    pub name: String,
    /// Kind of the value, which sets its colour; empty for none.
    pub kind: String,
    /// The value itself.
    pub value: f64,
    /// Low and high end of the interval.
    pub interval: Option<(f64, f64)>,
}

/// A part of a bar.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// Name of the bar.
    pub name: String,
    /// Name of the part.
    pub part: String,
    /// Length of the part.
    pub value: f64,
}

/// A cell of two settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The first setting.
    pub x: String,
    /// The second.
    pub y: String,
    /// Value for the two settings.
    pub value: f64,
}

/// Kind of chart with its data. Values that are not finite are left out.
#[derive(Clone, PartialEq, Debug)]
pub enum Chart {
    /// Curves, with bars for intervals.
    Lines {
        /// Horizontal axis.
        x: Axis,
        /// Vertical axis.
        y: Axis,
        /// The curves.
        series: Vec<Series>,
    },
    /// Curves over time, without a mark for each point.
    Course {
        /// Horizontal axis.
        x: Axis,
        /// Vertical axis.
        y: Axis,
        /// The curves, each with its points in order.
        series: Vec<Series>,
        /// True if a value holds until the next; otherwise a straight line leads there.
        has_steps: bool,
    },
    /// Parts of a whole over time, stacked; a value holds until the next.
    Stack {
        /// Horizontal axis.
        x: Axis,
        /// Vertical axis.
        y: Axis,
        /// The parts, all with points at the same places.
        series: Vec<Series>,
    },
    /// Empirical distribution function of each sample: the share of values up to each value.
    Distribution {
        /// Axis of the values.
        x: Axis,
        /// Name and values of each sample.
        samples: Vec<(String, Vec<f64>)>,
    },
    /// Values with intervals, one below the other.
    Intervals {
        /// Axis of the values.
        x: Axis,
        /// Rows from top to bottom.
        rows: Vec<Interval>,
        /// Vertical line at a value for comparison.
        reference: Option<f64>,
    },
    /// Bars of parts, one below the other.
    Bars {
        /// Axis of the lengths.
        x: Axis,
        /// Parts of the bars; bars stand in the order in which their names first appear.
        bars: Vec<Bar>,
    },
    /// A value for each combination of two settings.
    Heat {
        /// Names of the two settings and of the value.
        labels: [String; 3],
        /// The cells.
        cells: Vec<Cell>,
    },
}

/// Height of a figure in pixels.
const HEIGHT: f64 = 320.0;
/// Most decades of a logarithmic axis that has room for more marks than the powers of ten.
const FEW_DECADES: f64 = 3.0;
/// Most points of a distribution's curve: a screen has no more.
const MOST_STEPS: usize = 2000;
/// Characters in one line of a legend on the narrowest screen, and below the characters that a symbol takes of them.
const NARROWEST: usize = 40;
const SIGN: usize = 4;
/// Most points of a course that have tooltips: each is an element of the page.
const MOST_POINTERS: usize = 2000;

impl Figure {
    /// Writes the element of the figure, which is empty until the script draws into it.
    pub(super) fn html(&self, number: usize, out: &mut String) {
        // A String takes all that is written.
        let _ = writeln!(
            out,
            "<figure>\n<h3>{}</h3>\n<div class=\"plot\" id=\"figure-{number}\" role=\"img\" aria-label=\"{}\"></div>\n\
             <noscript>This figure needs scripts; its numbers are in the tables.</noscript>\n\
             <figcaption>{}</figcaption>\n</figure>",
            Escaped(&self.title),
            Escaped(&self.title),
            Escaped(&self.note),
        );
    }
}

impl Chart {
    /// Returns the chart as a specification of Vega-Lite.
    pub(super) fn specification(&self) -> Value {
        let mut specification = match self {
            Self::Lines { x, y, series } => lines(x, y, series),
            Self::Course { x, y, series, has_steps } => course(x, y, series, *has_steps),
            Self::Stack { x, y, series } => stack(x, y, series),
            Self::Distribution { x, samples } => distribution(x, samples),
            Self::Intervals { x, rows, reference } => rows::intervals(x, rows, *reference),
            Self::Bars { x, bars } => rows::bars(x, bars),
            Self::Heat { labels, cells } => heat(labels, cells),
        };
        specification["$schema"] = "https://vega.github.io/schema/vega-lite/v6.json".into();
        specification["width"] = "container".into();
        specification["autosize"] = json!({"type": "fit-x", "contains": "padding"});
        specification
    }
}

/// Returns an axis with labels for people: large numbers with an SI prefix, small ones as they are.
fn ticks() -> Value {
    let label = "abs(datum.value) >= 1e5 ? format(datum.value, '~s') : format(datum.value, '~g')";
    json!({"labelOverlap": true, "labelExpr": label})
}

/// Returns a quantitative channel.
fn number(field: &str, axis: &Axis) -> Value {
    let mut ticks = ticks();
    if axis.is_whole {
        ticks["tickMinStep"] = 1.into();
    }
    json!({"field": field, "type": "quantitative", "title": axis.label, "scale": axis.scale(), "axis": ticks})
}

/// Returns the numbers that a logarithmic axis marks: few enough to be legible beside each other, from the least to
/// the greatest of `values`. Returns none if the values are too close for two marks.
fn round_numbers(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let positive = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
    let (least, greatest) =
        positive.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if least > greatest {
        return Vec::new();
    }
    let (least, greatest) = (least.log10() - 1e-9, greatest.log10() + 1e-9);
    let factors: &[f64] = if greatest - least < FEW_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let powers = least.floor() as i32..=greatest.floor() as i32;
    let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
    let numbers: Vec<f64> = all.filter(|number| (least..=greatest).contains(&number.log10())).collect();
    if numbers.len() < 2 { Vec::new() } else { numbers }
}

/// Replaces the marks of a logarithmic axis, which would overlap, by round numbers.
fn spread(axis: &Axis, channel: &mut Value, values: impl IntoIterator<Item = f64>) {
    let numbers = if axis.is_logarithmic { round_numbers(values) } else { Vec::new() };
    if !numbers.is_empty() {
        channel["axis"]["values"] = json!(numbers);
    }
}

/// Returns marks for a horizontal axis, whose labels need more room than those of a vertical one.
fn ticks_across(mut ticks: Value) -> Value {
    ticks["tickCount"] = json!({"expr": "ceil(width / 80)"});
    ticks
}

/// Returns a quantitative channel on the horizontal axis; for whole numbers it labels no fractions.
fn across(field: &str, axis: &Axis, values: impl Iterator<Item = f64> + Clone) -> Value {
    let mut channel = number(field, axis);
    channel["axis"] = ticks_across(channel["axis"].take());
    if values.clone().all(|value| value.fract() == 0.0) {
        channel["axis"]["tickMinStep"] = 1.into();
    }
    spread(axis, &mut channel, values);
    channel
}

/// Returns a legend below the chart, shared by colours and dashes; none for a single name. Short names stand in one
/// row; otherwise the number of columns follows from the window's width.
pub(super) fn legend(names: &[&str]) -> Value {
    if names.len() < 2 {
        return Value::Null;
    }
    let mut legend = json!({"title": null, "orient": "bottom", "direction": "horizontal", "labelLimit": 320});
    let room: usize = names.iter().map(|name| name.chars().count() + SIGN).sum();
    if room <= NARROWEST {
        legend["columns"] = names.len().into();
    }
    legend
}

/// Returns a dash for each name, so that lines differ even without colours.
fn dash(names: &[&str]) -> Value {
    json!({"field": "series", "type": "nominal", "sort": names, "scale": {"domain": names}, "legend": legend(names)})
}

/// Returns a colour for each name, in their order.
fn colour(names: &[&str]) -> Value {
    let legend = legend(names);
    json!({"field": "series", "type": "nominal", "sort": names, "scale": {"domain": names}, "legend": legend})
}

fn lines(x: &Axis, y: &Axis, series: &[Series]) -> Value {
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    let values: Vec<Value> = series
        .iter()
        .flat_map(|one| one.points.iter().map(move |point| (one, point)))
        .filter(|(_, point)| point.x.is_finite() && point.y.is_finite())
        .map(|(one, point)| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            json!({"x": point.x, "y": point.y, "low": low, "high": high, "series": one.name})
        })
        .collect();
    let up = |field: &str| {
        let mut channel = number(field, y);
        spread(y, &mut channel, series.iter().flat_map(|one| one.points.iter().map(|point| point.y)));
        channel
    };
    let tooltip = json!([
        {"field": "series", "title": " "},
        {"field": "x", "title": x.label, "format": ".5~g"},
        {"field": "y", "title": y.label, "format": ".5~g"},
        {"field": "low", "title": "from", "format": ".5~g"},
        {"field": "high", "title": "to", "format": ".5~g"},
    ]);
    json!({
        "data": {"values": values},
        "height": HEIGHT,
        "encoding": {"x": across("x", x, places(series)), "color": colour(&names)},
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2},
             "encoding": {"y": up("y"), "strokeDash": dash(&names)}},
            {"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": {"y": up("low"), "y2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": true, "size": 45, "opacity": 1},
             "encoding": {"y": up("y"), "tooltip": tooltip}},
        ],
    })
}

/// Returns the horizontal places of the points of all series.
fn places(series: &[Series]) -> impl Iterator<Item = f64> + Clone {
    series.iter().flat_map(|one| one.points.iter().map(|point| point.x))
}

/// Returns the points of all series.
fn points(series: &[Series]) -> Vec<Value> {
    let all = series.iter().flat_map(|one| one.points.iter().map(move |point| (one, point)));
    let drawn = all.filter(|(_, point)| point.x.is_finite() && point.y.is_finite());
    drawn.map(|(one, point)| json!({"x": point.x, "y": point.y, "series": one.name})).collect()
}

/// Returns the tooltip of a point.
fn told(x: &Axis, y: &Axis) -> Value {
    json!([
        {"field": "series", "title": " "},
        {"field": "x", "title": x.label, "format": ".5~g"},
        {"field": "y", "title": y.label, "format": ".5~g"},
    ])
}

fn course(x: &Axis, y: &Axis, series: &[Series], has_steps: bool) -> Value {
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    let interpolate = if has_steps { "step-after" } else { "linear" };
    let line = json!({"type": "line", "interpolate": interpolate, "strokeWidth": 2});
    let mut layer =
        vec![json!({"mark": line, "encoding": {"y": number("y", y), "strokeDash": dash(&names)}})];
    let values = points(series);
    if values.len() <= MOST_POINTERS {
        // Invisible points, on which the tooltips appear.
        layer.push(json!({"mark": {"type": "point", "filled": true, "size": 60, "opacity": 0},
                          "encoding": {"y": number("y", y), "tooltip": told(x, y)}}));
    }
    json!({
        "data": {"values": values},
        "height": HEIGHT,
        "encoding": {"x": across("x", x, places(series)), "color": colour(&names)},
        "layer": layer,
    })
}

fn stack(x: &Axis, y: &Axis, series: &[Series]) -> Value {
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    let mut height = number("y", y);
    height["stack"] = "zero".into();
    json!({
        "data": {"values": points(series)},
        "height": HEIGHT,
        "mark": {"type": "area", "interpolate": "step-after", "opacity": 0.8},
        "encoding": {"x": across("x", x, places(series)), "y": height, "color": colour(&names), "order": {"field": "order"}},
        "transform": [{"calculate": format!("indexof({}, datum.series)", json!(names)), "as": "order"}],
    })
}

fn distribution(x: &Axis, samples: &[(String, Vec<f64>)]) -> Value {
    let names: Vec<&str> = samples.iter().map(|(name, _)| name.as_str()).collect();
    let mut values = Vec::new();
    for (name, sample) in samples {
        let mut sorted: Vec<f64> = sample.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let step = sorted.len().div_ceil(MOST_STEPS).max(1);
        let all = sample.len() as f64;
        for (place, value) in sorted.iter().enumerate() {
            if place % step == 0 || place + 1 == sorted.len() {
                values.push(json!({"x": value, "share": 100.0 * (place + 1) as f64 / all, "series": name}));
            }
        }
        if let Some(first) = sorted.first() {
            values.push(json!({"x": first, "share": 0.0, "series": name}));
        }
    }
    json!({
        "data": {"values": values},
        "height": HEIGHT,
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
        "encoding": {
            "x": across("x", x, samples.iter().flat_map(|(_, sample)| sample.iter().copied())),
            "y": {"field": "share", "type": "quantitative", "title": "share, %", "scale": {"domain": [0, 100]}},
            "order": {"field": "share"},
            "color": colour(&names),
            "strokeDash": dash(&names),
            "tooltip": [
                {"field": "series", "title": " "},
                {"field": "x", "title": x.label, "format": ".5~g"},
                {"field": "share", "title": "share, %", "format": ".3~g"},
            ],
        },
    })
}

fn heat(labels: &[String; 3], cells: &[Cell]) -> Value {
    let (mut columns, mut rows): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for cell in cells {
        if !columns.contains(&cell.x.as_str()) {
            columns.push(&cell.x);
        }
        if !rows.contains(&cell.y.as_str()) {
            rows.push(&cell.y);
        }
    }
    let values: Vec<Value> = cells
        .iter()
        .filter(|cell| cell.value.is_finite())
        .map(|cell| json!({"x": cell.x, "y": cell.y, "value": cell.value}))
        .collect();
    let axis = |field: &str, order: &[&str], title: &str| json!({"field": field, "type": "ordinal", "sort": order, "title": title, "axis": {"labelAngle": 0, "labelOverlap": true}});
    let (x, y) = (axis("x", &columns, &labels[0]), axis("y", &rows, &labels[1]));
    let tooltip = json!([
        {"field": "x", "title": labels[0]},
        {"field": "y", "title": labels[1]},
        {"field": "value", "title": labels[2], "format": ".5~g"},
    ]);
    json!({
        "data": {"values": values},
        "height": (rows.len() * 34).clamp(120, 640),
        "mark": "rect",
        "encoding": {
            "x": x,
            "y": y,
            "color": {"field": "value", "type": "quantitative", "scale": {"scheme": "viridis", "zero": false},
                      "legend": {"title": labels[2], "orient": "bottom", "gradientLength": 220, "format": "~s"}},
            "tooltip": tooltip,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_a_logarithmic_axis_have_room() {
        assert_eq!(round_numbers([0.001, 0.02]), [0.001, 0.002, 0.005, 0.01, 0.02]);
        assert_eq!(round_numbers([1.0, 1e6]).len(), 7);
        assert!(round_numbers([3.0, 4.0]).is_empty() && round_numbers([0.0, f64::NAN]).is_empty());
        let point = |x| Point { x, y: x, interval: None };
        let series = vec![Series { name: String::new(), points: vec![point(0.001), point(0.02)] }];
        let chart = Chart::Lines { x: Axis::logarithmic("x"), y: Axis::linear("y"), series };
        let specification = chart.specification();
        assert_eq!(specification["encoding"]["x"]["axis"]["values"].as_array().map(Vec::len), Some(5));
        assert!(specification["layer"][0]["encoding"]["y"]["axis"]["values"].is_null());
    }
}
