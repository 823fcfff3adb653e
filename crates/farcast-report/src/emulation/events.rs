//! Actions of programs and people, on the axis of time.

use super::chart::{Chart, SMALL};
use super::{Direction, Event, EventKind};
use crate::svg::{Anchor, text_width};
use crate::words::time;

/// Height of a row of names.
const ROW: f64 = 13.5;
/// Height of the marks below the names.
const MARKS: f64 = 14.0;
/// Most rows of names; an event whose name finds no room has only a mark.
const MOST_ROWS: usize = 4;
/// Distance from a mark to its name.
const GAP: f64 = 8.0;

/// A mark with the place of its name.
struct Placed<'a> {
    event: &'a Event,
    x: f64,
    /// Row of the name, from the lowest, and the side of the mark on which it stands; `None` if there is no room.
    name: Option<(usize, Anchor)>,
}

/// Returns `true` if an event concerns this direction or both.
fn concerns(event: &Event, direction: Option<Direction>) -> bool {
    event.way.is_none() || event.way == direction
}

/// Draws the marks of events in a row, and above them their names, as far as there is room.
pub(super) fn strip(chart: &mut Chart<'_>, direction: Option<Direction>) {
    let placed = place(chart, direction);
    let Some(rows) = placed.iter().map(|placed| placed.name.map_or(0, |name| name.0 + 1)).max() else {
        return;
    };
    let base = chart.y + ROW * rows as f64 + MARKS / 2.0;
    for Placed { event, x, name } in &placed {
        let tip = format!("{}: {}", time(event.at_s), event.words);
        let (class, shape) = look(event.kind);
        chart.svg.shape(class, (*x, base), shape, &tip);
        let Some((row, anchor)) = name else { continue };
        let y = base - MARKS / 2.0 - ROW * *row as f64 - 3.0;
        let at = if matches!(anchor, Anchor::End) { x - GAP } else { x + GAP };
        chart.svg.text("event-name", (at, y), *anchor, &event.words);
        chart.back.line("leader", (*x, y - 6.0), (*x, base), "");
    }
    chart.y = base + MARKS / 2.0;
}

/// Returns the class of a kind of event, and its shape around a point.
pub(super) fn look(kind: EventKind) -> (&'static str, &'static str) {
    match kind {
        EventKind::Start => ("start", "m-3 -5v10l8 -5z"),
        EventKind::End => ("end", "m-4 -4h8v8h-8z"),
        EventKind::Change => ("change", "m0 -5l5 5l-5 5l-5 -5z"),
    }
}

/// Places events, each with its name in the lowest row that has room.
fn place<'a>(chart: &Chart<'a>, direction: Option<Direction>) -> Vec<Placed<'a>> {
    let width = chart.format.width;
    let mut free = [0.0; MOST_ROWS];
    let mut last = [f64::NEG_INFINITY; 3];
    let mut placed = Vec::new();
    for event in chart.run.events.iter().filter(|event| concerns(event, direction)) {
        let (x, long) = (chart.scale.x(event.at_s), text_width(&event.words, SMALL));
        let name = free.iter_mut().enumerate().find_map(|(row, free)| {
            let (begin, end, anchor) = if x + GAP + long <= width {
                (x + GAP, x + GAP + long, Anchor::Start)
            } else {
                (x - GAP - long, x + GAP, Anchor::End)
            };
            (begin >= *free).then(|| {
                *free = end + GAP;
                (row, anchor)
            })
        });
        // Marks of one kind that would cover each other are drawn once.
        let last = &mut last[event.kind as usize];
        if name.is_some() || x >= *last + 1.0 {
            *last = x;
            placed.push(Placed { event, x, name });
        }
    }
    placed
}

/// Draws lines through the panels at the times of events, unless two would be too close.
pub(super) fn lines(chart: &mut Chart<'_>, direction: Option<Direction>, top: f64, bottom: f64) {
    let mut last = f64::NEG_INFINITY;
    let run = chart.run;
    for event in run.events.iter().filter(|event| concerns(event, direction)) {
        let x = chart.scale.x(event.at_s);
        if x >= last + 3.0 {
            chart.back.line("event-line", (x, top), (x, bottom), "");
            last = x;
        }
    }
}
