//! Drawing of a timeline: lanes above one another, with one axis of time.

use super::Timeline;
use super::marks::Mark;
use super::{naks, receivers, sender};
use crate::scale::Scale;
use crate::svg::{Anchor, Area, Svg, longest_that_fits, text_width};
use crate::words::time;

/// Width of the drawing; on the page it scales with the window.
pub(super) const WIDTH: f64 = 1400.0;
/// Left edge of the lanes; their names stand left of it.
pub(super) const LEFT: f64 = 190.0;
/// Right edge of the lanes; numbers stand right of it.
pub(super) const RIGHT: f64 = 1285.0;
/// Font size of names.
pub(super) const LETTERS: f64 = 12.0;
/// Font size of notes and times.
pub(super) const SMALL: f64 = 11.0;
/// Distance between lanes.
const GAP: f64 = 14.0;
/// Height of the axis and of the milestones below it.
const HEAD: f64 = 44.0;
/// Height of the axis at the foot.
const FOOT: f64 = 26.0;

/// Drawing to which lanes are added.
#[derive(Debug)]
pub(super) struct Chart<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) scale: Scale,
    pub(super) svg: Svg,
    /// Background, drawn below all lines.
    back: Svg,
    /// Top of the next lane.
    pub(super) y: f64,
}

impl Chart<'_> {
    /// Draws the heading of a lane: its name, and a few words on its content.
    pub(super) fn heading(&mut self, y: f64, name: &str, words: &str) {
        self.svg.text("heading", (LEFT - 12.0, y), Anchor::End, name);
        self.svg.text("note", (LEFT - 12.0, y + 14.0), Anchor::End, words);
    }

    /// Draws the background of a lane.
    pub(super) fn ground(&mut self, height: f64) {
        let area = Area { x: LEFT, y: self.y, width: RIGHT - LEFT, height };
        self.back.rect("ground", area, "");
    }

    /// Draws a text at the right end of a lane: the first of `texts` that fits.
    pub(super) fn at_the_right(&mut self, y: f64, texts: &[String]) {
        if let Some(text) = longest_that_fits(texts, SMALL, WIDTH - RIGHT - 8.0) {
            self.svg.text("note", (RIGHT + 8.0, y), Anchor::Start, text);
        }
    }

    /// Moves the top of the next lane below a lane of this height.
    pub(super) fn below(&mut self, height: f64) {
        self.y += height + GAP;
    }
}

/// Returns the drawing of `timeline`.
pub(super) fn draw(timeline: &Timeline) -> String {
    let scale = Scale::new(LEFT, RIGHT, timeline.duration_s);
    let mut chart = Chart { timeline, scale, svg: Svg::default(), back: Svg::default(), y: HEAD };
    sender::passes_and_waits(&mut chart);
    sender::requests(&mut chart);
    naks::naks(&mut chart);
    receivers::complete(&mut chart);
    receivers::lanes(&mut chart);
    let bottom = chart.y - GAP;
    let mut under = Svg::default();
    axis(&mut under, &scale, bottom);
    pass_lines(&mut under, timeline, &scale, bottom);
    milestones(&mut under, timeline, &scale, bottom);
    let (height, duration) = (bottom + FOOT, scale.duration());
    let mut whole = Svg::default();
    whole.raw(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         data-left=\"{LEFT}\" data-right=\"{RIGHT}\" data-duration=\"{duration}\">\n\
         <defs><pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><line class=\"hatching\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\"/></pattern></defs>\n"
    ));
    whole.raw(chart.back.as_str());
    whole.raw(under.as_str());
    whole.raw(chart.svg.as_str());
    whole.line("pointer", (LEFT, HEAD), (LEFT, bottom), "");
    whole.text("pointer-time", (LEFT, bottom + 16.0), Anchor::Middle, "");
    whole.raw("</svg>\n");
    whole.into_string()
}

/// Draws lines at round times, with their times above and below.
fn axis(svg: &mut Svg, scale: &Scale, bottom: f64) {
    let mut free = 0.0;
    for (at, text) in scale.ticks() {
        let (x, half) = (scale.x(at), text_width(&text, SMALL) / 2.0);
        svg.line("grid", (x, 20.0), (x, bottom), "");
        if x - half >= free && x + half <= WIDTH {
            svg.text("tick", (x, 14.0), Anchor::Middle, &text);
            svg.text("tick", (x, bottom + 16.0), Anchor::Middle, &text);
            free = x + half + 4.0;
        }
    }
}

/// Draws lines through all lanes where passes begin, unless two would be too close.
fn pass_lines(svg: &mut Svg, timeline: &Timeline, scale: &Scale, bottom: f64) {
    let mut last = f64::NEG_INFINITY;
    for pass in &timeline.passes {
        let x = scale.x(pass.begin_s);
        if x >= last + 8.0 {
            svg.line("pass-line", (x, HEAD), (x, bottom), "");
            last = x;
        }
    }
}

/// Draws the milestones, with their words where there is room, and a line through all lanes when every receiver is
/// complete.
fn milestones(svg: &mut Svg, timeline: &Timeline, scale: &Scale, bottom: f64) {
    let mut turns: Vec<(f64, Mark, &str)> =
        timeline.milestones.iter().map(|(at, words)| (*at, Mark::Milestone, words.as_str())).collect();
    if let Some(at) = everyone_complete(timeline) {
        turns.push((at, Mark::Complete, "every receiver complete"));
        svg.line("complete-line", (scale.x(at), HEAD - 8.0), (scale.x(at), bottom), "");
    }
    turns.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = LEFT;
    for (index, &(at, mark, words)) in turns.iter().enumerate() {
        let x = scale.x(at);
        mark.draw(svg, (x, HEAD - 12.0), &format!("{words} at {}", time(at)));
        let next = turns.get(index + 1).map_or(WIDTH, |next| scale.x(next.0) - 8.0);
        let width = text_width(words, SMALL);
        if x + 10.0 >= free && x + 10.0 + width <= next {
            svg.text("note", (x + 10.0, HEAD - 8.0), Anchor::Start, words);
            free = x + 18.0 + width;
        } else if x - 8.0 - width >= free {
            svg.text("note", (x - 8.0, HEAD - 8.0), Anchor::End, words);
            free = x + 12.0;
        } else {
            free = free.max(x + 12.0);
        }
    }
}

/// Returns the time at which the last receiver was complete; `None` unless all are.
fn everyone_complete(timeline: &Timeline) -> Option<f64> {
    let complete = timeline.completions.iter().fold(0u64, |sum, point| sum.saturating_add(point.count));
    let last = timeline.completions.iter().map(|point| point.at_s).reduce(f64::max)?;
    (complete >= timeline.receivers).then_some(last)
}
