//! Drawing of one direction: panels above one another, and the axis of time.

use super::axis::Axis;
use super::{Direction, DirectionTraffic, Run, events, panels};
use crate::scale::Scale;
use crate::svg::{Anchor, Area, Escaped, Svg, text_width};
use crate::words::time;

/// Font size of axes and notes.
pub(super) const SMALL: f64 = 11.0;
/// Font size of headings.
pub(super) const LETTERS: f64 = 12.0;
/// Height of the line above a panel.
const HEADING: f64 = 26.0;
/// Height of the axis of time.
const FOOT: f64 = 24.0;

/// Dimensions of a drawing, and the details for which it has room.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Format {
    /// Name of the format, which is the CSS class of the element around the drawing.
    pub(super) name: &'static str,
    pub(super) width: f64,
    /// Left edge of the panels; `right` is their right edge.
    pub(super) left: f64,
    pub(super) right: f64,
    /// Most steps of the throughput curve.
    pub(super) steps: usize,
    /// True if bins have tooltips.
    pub(super) tips: bool,
}

/// Formats for windows of 700 pixels and more, and for narrower ones.
pub(super) const FORMATS: [Format; 2] = [
    Format { name: "wide", width: 1100.0, left: 64.0, right: 1092.0, steps: 120, tips: true },
    Format { name: "narrow", width: 380.0, left: 46.0, right: 376.0, steps: 60, tips: false },
];

/// A drawing that grows from its top to its foot.
pub(super) struct Chart<'a> {
    pub(super) run: &'a Run,
    pub(super) format: Format,
    pub(super) scale: Scale,
    pub(super) svg: Svg,
    /// Background, drawn below everything else.
    pub(super) back: Svg,
    /// Top of the next panel.
    pub(super) y: f64,
    /// Top of the first panel.
    pub(super) top: f64,
}

impl<'a> Chart<'a> {
    fn new(run: &'a Run, format: Format) -> Self {
        let scale = Scale::new(format.left, format.right, run.duration_s);
        Self { run, format, scale, svg: Svg::default(), back: Svg::default(), y: 0.0, top: 0.0 }
    }

    /// Draws the line above a panel: its name, and the first of `notes` that fits.
    pub(super) fn heading(&mut self, name: &str, notes: &[String]) {
        let (x, y) = (self.format.left, self.y + HEADING - 8.0);
        let name = cut(name, self.format.width - x);
        self.svg.text("heading", (x, y), Anchor::Start, &name);
        let begin = x + text_width(&name, LETTERS) + 10.0;
        if let Some(note) = notes.iter().find(|note| begin + text_width(note, SMALL) <= self.format.width) {
            self.svg.text("note", (begin, y), Anchor::Start, note);
        }
        self.y += HEADING;
    }

    /// Draws the background of a panel of this height, and moves the top of the next panel below it. Returns the
    /// bottom and the top of the panel.
    pub(super) fn ground(&mut self, height: f64) -> (f64, f64) {
        let (x, width) = (self.format.left, self.format.right - self.format.left);
        self.back.rect("ground", Area { x, y: self.y, width, height }, "");
        let edges = (self.y + height, self.y);
        self.y += height;
        edges
    }

    /// Draws the marks of an axis, with lines through the panel.
    pub(super) fn axis(&mut self, axis: &Axis) {
        let (left, right) = (self.format.left, self.format.right);
        for (value, text) in axis.marks() {
            let y = axis.y(value);
            self.back.line("grid", (left, y), (right, y), "");
            self.svg.text("tick", (left - 6.0, y + 4.0), Anchor::End, &text);
        }
    }

    /// Returns the left and right edge of a bin, at least `least` apart.
    pub(super) fn column(&self, bin: usize, least: f64) -> (f64, f64) {
        let begin = self.scale.x(bin as f64 * self.run.bin_s);
        let end = self.scale.x((bin as f64 + 1.0) * self.run.bin_s).max(begin + least).min(self.format.right);
        (begin.min(end - least), end)
    }

    /// Returns the finished drawing, with the axis of time at its foot.
    fn finish(mut self, label: &str) -> String {
        let (top, bottom) = (self.top, self.y);
        time_axis(&mut self, top, bottom);
        let mut whole = Svg::default();
        let (width, height) = (self.format.width, bottom + FOOT);
        let label = Escaped(label);
        whole.raw(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{label}\">\n"
        ));
        whole.raw(self.back.as_str());
        whole.raw(self.svg.as_str());
        whole.raw("</svg>\n");
        whole.into_string()
    }
}

/// Returns as much of a heading as fits `width`.
fn cut(name: &str, width: f64) -> String {
    if text_width(name, LETTERS) <= width {
        return name.to_owned();
    }
    let mut room = width - text_width("\u{2026}", LETTERS);
    let fits = |letter: &char| {
        room -= text_width(letter.encode_utf8(&mut [0; 4]), LETTERS);
        room >= 0.0
    };
    name.chars().take_while(fits).chain(['\u{2026}']).collect()
}

/// Draws lines at round times through all panels, and the times below them.
fn time_axis(chart: &mut Chart<'_>, top: f64, bottom: f64) {
    let mut free = 0.0;
    let width = chart.format.width;
    for (at, text) in chart.scale.ticks() {
        let x = chart.scale.x(at);
        chart.back.line("grid", (x, top), (x, bottom), "");
        let half = text_width(&text, SMALL) / 2.0;
        // The last label may touch the edge of the drawing.
        let middle = x.min(width - half);
        if middle - half >= free {
            chart.svg.text("tick", (middle, bottom + 16.0), Anchor::Middle, &text);
            free = middle + half + 8.0;
        }
    }
}

/// Draws the traffic of one direction.
pub(super) fn draw_way(run: &Run, direction: Direction, format: Format) -> String {
    let way = way_of(run, direction);
    let mut chart = Chart::new(run, format);
    events::strip(&mut chart, Some(direction));
    chart.top = chart.y;
    panels::throughput(&mut chart, way);
    panels::delay(&mut chart, way);
    panels::inside(&mut chart, way);
    panels::failures(&mut chart, way);
    let (top, bottom) = (chart.top, chart.y);
    outages(&mut chart, way, top, bottom, &format!("hatch-{}-{}", name_of(direction), format.name));
    events::lines(&mut chart, Some(direction), top, bottom);
    if format.tips {
        panels::tips(&mut chart, way, top, bottom);
    }
    let name = name_of(direction);
    chart
        .finish(&format!("{name}: throughput, delay, octets inside and losses over {}", time(run.duration_s)))
}

/// Draws the lateness of packets.
pub(super) fn draw_lateness(run: &Run, format: Format) -> String {
    let mut chart = Chart::new(run, format);
    panels::lateness(&mut chart);
    chart.finish(&format!("lateness of packets over {}", time(run.duration_s)))
}

/// Draws outages as hatched areas.
fn outages(chart: &mut Chart<'_>, way: &DirectionTraffic, top: f64, bottom: f64, id: &str) {
    if way.outages.is_empty() {
        return;
    }
    chart.back.raw(&format!(
        "<defs><pattern id=\"{id}\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><line class=\"hatching\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\"/></pattern></defs>\n"
    ));
    for outage in &way.outages {
        let (begin, end) = (chart.scale.x(outage.begin_s), chart.scale.x(outage.end_s));
        let (x, y, width, height) = (begin, top, (end - begin).max(1.0), bottom - top);
        chart.back.raw(&format!(
            "<rect class=\"outage\" fill=\"url(#{id})\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>\n"
        ));
    }
}

pub(super) fn way_of(run: &Run, direction: Direction) -> &DirectionTraffic {
    match direction {
        Direction::Forward => &run.forward,
        Direction::Return => &run.back,
    }
}

pub(super) fn name_of(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Return => "return",
    }
}
