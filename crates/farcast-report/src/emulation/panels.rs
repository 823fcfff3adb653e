//! Panels of a direction, and the panel of lateness.

use std::fmt::Write as _;

use super::axis::{Axis, Quantity};
use super::chart::{Chart, LETTERS, SMALL};
use super::{Delay, DirectionTraffic, LossCause, TimeBin};
use crate::svg::{Anchor, Area, text_width};
use crate::words::{counted, span, time};

/// Height of the panels of throughput and delay.
const HIGH: f64 = 120.0;
/// Height of the panels of octets inside and of lateness.
const LOW: f64 = 64.0;
/// Height of a row of losses.
const ROW: f64 = 26.0;
/// Most causes that have rows of their own.
const MOST_ROWS: usize = 6;
/// Least width of a bin with something in it, so that it is visible.
const LEAST: f64 = 2.5;
/// Ratio of the set rate to the traffic above which the rate is not drawn: the traffic would be too low to see.
const FAR_ABOVE: f64 = 4.0;
/// Ratio of the entered traffic to the delivered traffic or the rate above which the curve is cut.
const CUT: f64 = 2.0;

/// Draws the traffic that entered and that was delivered, and the set rate. If there are many bins, a step covers
/// several of them: single packets would be visible in small bins.
pub(super) fn throughput(chart: &mut Chart<'_>, way: &DirectionTraffic) {
    let together = way.bins.len().div_ceil(chart.format.steps).max(1);
    let step_s = together as f64 * chart.run.bin_s;
    let values = |pick: fn(&TimeBin) -> u64| -> Vec<f64> {
        let octets = |bins: &[TimeBin]| bins.iter().map(pick).fold(0, u64::saturating_add);
        way.bins.chunks(together).map(|bins| octets(bins) as f64 * 8.0 / step_s).collect()
    };
    let (entered, delivered) = (values(|bin| bin.entered.octets), values(|bin| bin.carried.octets));
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let (most_entered, carried) = (most(&entered), most(&delivered));
    let set = way.rates_bps.iter().filter_map(|rate| rate.1).fold(0.0, f64::max);
    let far = set > FAR_ABOVE * most_entered.max(carried);
    let drawn = if far { carried } else { carried.max(set) };
    let top = if drawn > 0.0 { drawn.max(most_entered.min(CUT * drawn)) } else { most_entered };
    // Writing to a String cannot fail.
    let in_steps = format!("in steps of {}", span(step_s));
    let mut note = in_steps.clone();
    if far {
        let _ = write!(note, "; the set rate, {}, is far above", Quantity::Rate.words(set));
    } else if most_entered > 1.001 * top {
        let _ = write!(note, "; entered up to {}, cut", Quantity::Rate.words(most_entered));
    }
    let axis = panel(chart, "throughput", Quantity::Rate, top, HIGH, &[note, in_steps]);
    steps(chart, "delivered-area", &axis, &delivered, together, true);
    steps(chart, "entered", &axis, &entered, together, false);
    steps(chart, "delivered", &axis, &delivered, together, false);
    if !far {
        set_rate(chart, &axis, &way.rates_bps);
    }
}

/// Draws the set rate as a line, where it is known.
fn set_rate(chart: &mut Chart<'_>, axis: &Axis, rates: &[(f64, Option<f64>)]) {
    let ends = rates.iter().skip(1).map(|rate| rate.0).chain([f64::INFINITY]);
    let mut path = String::new();
    let mut begun = false;
    for (&(begin, rate), end) in rates.iter().zip(ends) {
        let Some(rate) = rate else {
            begun = false;
            continue;
        };
        let (x, y, end) = (chart.scale.x(begin), axis.y(rate), chart.scale.x(end));
        let join = if begun { format!("V{y:.1}") } else { format!("M{x:.1} {y:.1}") };
        let _ = write!(path, "{join}H{end:.1}");
        begun = true;
    }
    if !path.is_empty() {
        chart.svg.path("set-rate", &path, "");
    }
}

/// Draws the delays of packets.
pub(super) fn delay(chart: &mut Chart<'_>, way: &DirectionTraffic) {
    let delays = || way.bins.iter().filter_map(|bin| bin.delay);
    let most = delays().map(|delay| delay.max_s).fold(0.0, f64::max);
    let notes = if delays().next().is_none() { vec!["nothing was delivered".to_owned()] } else { Vec::new() };
    let axis = panel(chart, "delay", Quantity::Time, most, HIGH, &notes);
    let mut groups: Vec<Vec<(usize, Delay)>> = Vec::new();
    let numbered = || way.bins.iter().enumerate();
    for group in numbered().collect::<Vec<_>>().chunk_by(|a, b| a.1.delay.is_some() == b.1.delay.is_some()) {
        let group: Vec<_> = group.iter().filter_map(|(n, bin)| Some((*n, bin.delay?))).collect();
        groups.extend((!group.is_empty()).then_some(group));
    }
    for (class, low, high) in BANDS {
        let path: String = groups.iter().map(|group| band(chart, &axis, group, low, high)).collect();
        if !path.is_empty() {
            chart.svg.path(class, &path, "");
        }
    }
    let median: String = groups.iter().map(|group| line(chart, &axis, group)).collect();
    if !median.is_empty() {
        chart.svg.path("median", &median, "");
    }
}

/// Selects one figure of a delay.
type DelayFigure = fn(&Delay) -> f64;

/// Bands of delays, each between two figures.
const BANDS: [(&str, DelayFigure, DelayFigure); 2] =
    [("range", |d| d.min_s, |d| d.max_s), ("percentiles", |d| d.p5_s, |d| d.p95_s)];

/// Returns the path of a band over adjacent bins.
fn band(
    chart: &Chart<'_>,
    axis: &Axis,
    group: &[(usize, Delay)],
    low: DelayFigure,
    high: DelayFigure,
) -> String {
    let mut path = String::new();
    for (index, (bin, delay)) in group.iter().enumerate() {
        let (begin, end) = chart.column(*bin, LEAST);
        let begin = if index == 0 { format!("M{begin:.1} ") } else { "V".to_owned() };
        let _ = write!(path, "{begin}{:.1}H{end:.1}", axis.y(high(delay)));
    }
    for (bin, delay) in group.iter().rev() {
        let _ = write!(path, "V{:.1}H{:.1}", axis.y(low(delay)), chart.column(*bin, LEAST).0);
    }
    path + "Z"
}

/// Returns the path of the median over adjacent bins.
fn line(chart: &Chart<'_>, axis: &Axis, group: &[(usize, Delay)]) -> String {
    let mut path = String::new();
    for (index, (bin, delay)) in group.iter().enumerate() {
        let (begin, end) = chart.column(*bin, LEAST);
        let begin = if index == 0 { format!("M{begin:.1} ") } else { "V".to_owned() };
        let _ = write!(path, "{begin}{:.1}H{end:.1}", axis.y(delay.p50_s));
    }
    path
}

/// Draws the octets inside the link.
pub(super) fn inside(chart: &mut Chart<'_>, way: &DirectionTraffic) {
    let values: Vec<f64> = way.bins.iter().map(|bin| bin.inside_octets as f64).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let axis = panel(chart, "inside", Quantity::Octets, most, LOW, &["at the end of each bin".to_owned()]);
    steps(chart, "inside-area", &axis, &values, 1, true);
    steps(chart, "inside", &axis, &values, 1, false);
}

/// Draws a row for each cause of losses and drops, with bars whose height is the number of packets.
pub(super) fn failures(chart: &mut Chart<'_>, way: &DirectionTraffic) {
    if way.causes.is_empty() {
        chart.heading("losses", &["no packet was lost or dropped".to_owned()]);
    }
    let (own, others) = way.causes.split_at(way.causes.len().min(MOST_ROWS));
    for cause in own {
        row(chart, cause);
    }
    if !others.is_empty() {
        let packets = others.iter().map(packets_of).fold(0, u64::saturating_add);
        let note = format!("{} more causes: {}", others.len(), counted(packets, "packet"));
        chart.heading("other", &[note, counted(packets, "packet")]);
    }
}

fn packets_of(cause: &LossCause) -> u64 {
    cause.bins.iter().fold(0, |sum, bin| sum.saturating_add(bin.1))
}

/// Returns the label of a cause.
pub(super) fn name_of(cause: &LossCause) -> String {
    let verdict = if cause.dropped { "dropped" } else { "lost" };
    if cause.name.is_empty() { verdict.to_owned() } else { format!("{verdict}: {}", cause.name) }
}

fn row(chart: &mut Chart<'_>, cause: &LossCause) {
    let most = cause.bins.iter().map(|bin| bin.1).max().unwrap_or(0);
    let packets = counted(packets_of(cause), "packet");
    let notes = [format!("{packets}, up to {most} in a bin"), packets];
    chart.heading(&name_of(cause), &notes);
    let (foot, head) = chart.ground(ROW);
    let axis = Axis::new(Quantity::Packets, most as f64, foot, head + 2.0, 2.0);
    let class = if cause.dropped { "drop-bar" } else { "loss-bar" };
    for &(bin, count) in &cause.bins {
        let (x, end) = chart.column(bin, LEAST);
        // Even one loss among many has a visible bar.
        let height = (foot - axis.y(count as f64)).max(3.0);
        chart.svg.rect(class, Area { x, y: foot - height, width: end - x, height }, "");
    }
}

/// Draws the lateness of the latest packet of each bin, and the limit.
pub(super) fn lateness(chart: &mut Chart<'_>) {
    let run = chart.run;
    let bins = run.forward.bins.len().max(run.back.bins.len());
    let of = |way: &DirectionTraffic, bin: usize| way.bins.get(bin).map_or(0.0, |bin| bin.latest_s);
    let values: Vec<f64> = (0..bins).map(|bin| of(&run.forward, bin).max(of(&run.back, bin))).collect();
    let limit = run.lateness.limit_s;
    let most = values.iter().copied().fold(limit.map_or(0.0, |limit| 1.2 * limit), f64::max);
    let axis =
        panel(chart, "lateness", Quantity::Time, most, LOW, &["of the latest packet of each bin".to_owned()]);
    chart.top = axis.head;
    steps(chart, "late-area", &axis, &values, 1, true);
    if let Some(limit) = limit {
        let (left, right, y) = (chart.format.left, chart.format.right, axis.y(limit));
        chart.svg.line("limit", (left, y), (right, y), "");
        let text = format!("limit of the 99th percentile: {}", span(limit));
        // The label stands below the line if there is no room above it.
        let text_y = if y - 4.0 < axis.head + 10.0 { y + 12.0 } else { y - 4.0 };
        chart.svg.text("limit-name", (right - 4.0, text_y), Anchor::End, &text);
    }
}

/// Draws a panel with its heading, which names the unit, and its axis.
fn panel(
    chart: &mut Chart<'_>,
    name: &str,
    quantity: Quantity,
    most: f64,
    height: f64,
    notes: &[String],
) -> Axis {
    let marks = if height > LOW { 5.0 } else { 3.0 };
    let unit = Axis::new(quantity, most, 0.0, 1.0, marks).unit();
    let name = format!("{name}, {unit}");
    let begin = chart.format.left + text_width(&name, LETTERS);
    let fits = |note: &&String| begin + text_width(note, SMALL) <= chart.format.width - 20.0;
    let notes: Vec<String> = notes.iter().filter(fits).cloned().collect();
    chart.heading(&name, &notes);
    let (foot, head) = chart.ground(height);
    let axis = Axis::new(quantity, most, foot, head, marks);
    chart.axis(&axis);
    axis
}

/// Draws a line with a step for each value, or the area below it. A step is `bins` bins wide.
fn steps(chart: &mut Chart<'_>, class: &str, axis: &Axis, values: &[f64], bins: usize, is_area: bool) {
    if values.is_empty() {
        return;
    }
    let x = |step: usize| chart.column(step * bins, 0.0).0;
    let places = values.iter().enumerate().map(|(step, value)| (x(step), axis.y(*value)));
    let points: Vec<(f64, f64)> = places.chain([(x(values.len()), axis.foot)]).collect();
    let end = if is_area { "Z".to_owned() } else { format!("H{:.1}", chart.format.right) };
    chart.svg.steps(class, (chart.format.left, axis.foot), &points, &end, "");
}

/// Adds tooltips with the traffic of each bin.
pub(super) fn tips(chart: &mut Chart<'_>, way: &DirectionTraffic, top: f64, bottom: f64) {
    for (number, bin) in way.bins.iter().enumerate() {
        let failed: Vec<(&LossCause, u64)> = way
            .causes
            .iter()
            .filter_map(|cause| {
                let at = cause.bins.binary_search_by_key(&number, |bin| bin.0).ok()?;
                Some((cause, cause.bins[at].1))
            })
            .collect();
        let is_still = [bin.entered.packets, bin.carried.packets, bin.inside_octets] == [0; 3];
        if is_still && failed.is_empty() {
            continue;
        }
        let (x, end) = chart.column(number, 0.0);
        let area = Area { x, y: top, width: end - x, height: bottom - top };
        chart.svg.rect("column", area, &told(chart.run.bin_s, number, bin, &failed));
    }
}

/// Returns the tooltip of a bin.
fn told(bin_s: f64, number: usize, bin: &TimeBin, failed: &[(&LossCause, u64)]) -> String {
    let rate = |octets: u64| Quantity::Rate.words(octets as f64 * 8.0 / bin_s);
    let begin = number as f64 * bin_s;
    let mut text = format!(
        "{} to {}: entered {}, delivered {}, inside {}",
        time(begin),
        time(begin + bin_s),
        rate(bin.entered.octets),
        rate(bin.carried.octets),
        Quantity::Octets.words(bin.inside_octets as f64),
    );
    if let Some(delay) = bin.delay {
        let [min, p5, p50, p95, max] =
            [delay.min_s, delay.p5_s, delay.p50_s, delay.p95_s, delay.max_s].map(|s| Quantity::Time.words(s));
        let _ = write!(text, "; delay {min} to {max}, 5 % to 95 %: {p5} to {p95}, median {p50}");
    }
    for (cause, count) in failed {
        let _ = write!(text, "; {} {}", name_of(cause), counted(*count, "packet"));
    }
    text
}
