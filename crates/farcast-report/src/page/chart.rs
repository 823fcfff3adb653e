//! Figures: what is drawn, as specifications of Vega-Lite.

mod rows;

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::svg::Escaped;

/// A figure with what it says.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Above it.
    pub title: String,
    /// Below it: what is shown, and what bars and bands mean.
    pub note: String,
    /// What is drawn.
    pub chart: Chart,
}

/// An axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// Whether equal ratios are equally far apart.
    pub is_logarithmic: bool,
    /// Whether it begins at zero.
    pub has_zero: bool,
    /// Whether it has whole numbers only.
    pub is_whole: bool,
}

impl Axis {
    /// Equal differences are equally far apart; zero is shown where the values come near it.
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), is_logarithmic: false, has_zero: false, is_whole: false }
    }

    /// Equal ratios are equally far apart; values above zero only.
    pub fn logarithmic(label: &str) -> Self {
        Self { label: label.to_owned(), is_logarithmic: true, has_zero: false, is_whole: false }
    }

    /// The same from zero on.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { has_zero: true, ..self }
    }

    /// The same with whole numbers only.
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

/// A point with its interval, low and high, where it has one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// What was found there.
    pub y: f64,
    /// From where to where it may be.
    pub interval: Option<(f64, f64)>,
}

/// A curve.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Its points.
    pub points: Vec<Point>,
}

/// A value with its interval, in a row of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Interval {
    /// What it is of.
    pub name: String,
    /// Which kind, for the colour; empty for none.
    pub kind: String,
    /// What was found.
    pub value: f64,
    /// From where to where it may be.
    pub interval: Option<(f64, f64)>,
}

/// A part of a bar.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// Which bar.
    pub name: String,
    /// Which part.
    pub part: String,
    /// How long.
    pub value: f64,
}

/// A cell of two settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The first setting.
    pub x: String,
    /// The second.
    pub y: String,
    /// What was found there.
    pub value: f64,
}

/// What is drawn. Values that are not finite are left out.
#[derive(Clone, PartialEq, Debug)]
pub enum Chart {
    /// Curves, with bars for intervals.
    Lines {
        /// From left to right.
        x: Axis,
        /// From the bottom up.
        y: Axis,
        /// The curves.
        series: Vec<Series>,
    },
    /// Curves over time, without a mark for each point.
    Course {
        /// From left to right.
        x: Axis,
        /// From the bottom up.
        y: Axis,
        /// The curves, each with its points in order.
        series: Vec<Series>,
        /// Whether a value stays until the next; otherwise a straight line goes there.
        has_steps: bool,
    },
    /// Parts of a whole over time, one upon the other; a value stays until the next.
    Stack {
        /// From left to right.
        x: Axis,
        /// From the bottom up.
        y: Axis,
        /// The parts, all with points at the same places.
        series: Vec<Series>,
    },
    /// The share of values that are at most so much: the empirical distribution function of each sample.
    Distribution {
        /// What the values are.
        x: Axis,
        /// Name and values of each sample.
        samples: Vec<(String, Vec<f64>)>,
    },
    /// Values with intervals, one below the other.
    Intervals {
        /// What the values are.
        x: Axis,
        /// From the top down.
        rows: Vec<Interval>,
        /// A line to compare them with.
        reference: Option<f64>,
    },
    /// Bars of parts, one below the other.
    Bars {
        /// What their lengths are.
        x: Axis,
        /// In the order of their names' first appearance.
        bars: Vec<Bar>,
    },
    /// A value for each combination of two settings.
    Heat {
        /// What the settings and the value are called.
        labels: [String; 3],
        /// The cells.
        cells: Vec<Cell>,
    },
}

/// Pixels of a figure's height.
const HEIGHT: f64 = 320.0;
/// Decades of a logarithmic axis within which there is room for more than powers of ten.
const FEW_DECADES: f64 = 3.0;
/// Points of a distribution's curve at most: a screen has no more.
const MOST_STEPS: usize = 2000;
/// Characters of a legend in one line on the narrowest screen, and what a sign takes of them.
const NARROWEST: usize = 40;
const SIGN: usize = 4;
/// Points of a course at most that the pointer finds: each is an element of the page.
const MOST_POINTERS: usize = 2000;

impl Figure {
    /// Where the figure comes, which is empty until the script has drawn it.
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
    /// What Vega-Lite takes.
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

/// Labels as people read them: large numbers with a prefix of the SI, small ones as they are.
fn ticks() -> Value {
    let label = "abs(datum.value) >= 1e5 ? format(datum.value, '~s') : format(datum.value, '~g')";
    json!({"labelOverlap": true, "labelExpr": label})
}

/// A quantitative channel.
fn number(field: &str, axis: &Axis) -> Value {
    let mut ticks = ticks();
    if axis.is_whole {
        ticks["tickMinStep"] = 1.into();
    }
    json!({"field": field, "type": "quantitative", "title": axis.label, "scale": axis.scale(), "axis": ticks})
}

/// Numbers that a logarithmic axis is marked with: few enough to be read beside each other, from the least to the
/// greatest of `values`. None where they are too close for two of them.
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

/// Marks of a logarithmic axis in place of those that would stand one upon the other.
fn spread(axis: &Axis, channel: &mut Value, values: impl IntoIterator<Item = f64>) {
    let numbers = if axis.is_logarithmic { round_numbers(values) } else { Vec::new() };
    if !numbers.is_empty() {
        channel["axis"]["values"] = json!(numbers);
    }
}

/// The same from left to right, where labels need more room than from the bottom up.
fn ticks_across(mut ticks: Value) -> Value {
    ticks["tickCount"] = json!({"expr": "ceil(width / 80)"});
    ticks
}

/// A quantitative channel from left to right; of whole numbers no halves are labelled.
fn across(field: &str, axis: &Axis, values: impl Iterator<Item = f64> + Clone) -> Value {
    let mut channel = number(field, axis);
    channel["axis"] = ticks_across(channel["axis"].take());
    if values.clone().all(|value| value.fract() == 0.0) {
        channel["axis"]["tickMinStep"] = 1.into();
    }
    spread(axis, &mut channel, values);
    channel
}

/// A legend below, which lines of a colour and a dash share; none for one name. All stand side by side where they
/// are short; else how many do follows from the reader's width.
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

/// A dash for each name, so that lines can be told apart without colours.
fn dash(names: &[&str]) -> Value {
    json!({"field": "series", "type": "nominal", "sort": names, "scale": {"domain": names}, "legend": legend(names)})
}

/// A colour for each name, in their order.
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

/// Where the points of all series are from left to right.
fn places(series: &[Series]) -> impl Iterator<Item = f64> + Clone {
    series.iter().flat_map(|one| one.points.iter().map(|point| point.x))
}

/// The points of all series.
fn points(series: &[Series]) -> Vec<Value> {
    let all = series.iter().flat_map(|one| one.points.iter().map(move |point| (one, point)));
    let drawn = all.filter(|(_, point)| point.x.is_finite() && point.y.is_finite());
    drawn.map(|(one, point)| json!({"x": point.x, "y": point.y, "series": one.name})).collect()
}

/// What the pointer shows of a point.
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
        // Nobody sees these; they are what the pointer finds.
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
