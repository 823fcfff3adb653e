//! Lanes of the sender: its passes and waits, and its status requests.

use std::fmt::Write as _;

use farcast_delivery::{Noun, Words};

use super::chart::{Chart, LETTERS, RIGHT, SMALL};
use super::marks::{FATES, Mark};
use super::{Pass, Wait};
use crate::svg::{Anchor, Area, longest_that_fits, wrapped};
use crate::words::{count, counted, counted_as, span, time};

/// Height of the line with the names of passes.
const NAMES: f64 = 18.0;
/// Height of passes and waits.
const BAR: f64 = 78.0;
/// Distance between lines of text.
const LINE: f64 = 13.5;
/// Height of the lane of status requests.
const REQUESTS: f64 = 22.0;

/// Draws passes as bars with their data darker, and the waits between them hatched.
pub(super) fn passes_and_waits(chart: &mut Chart<'_>) {
    let what = format!("sends {}, then waits", chart.timeline.words.round.many);
    chart.heading(chart.y + NAMES + 34.0, "sender", &what);
    chart.y += NAMES;
    chart.ground(BAR);
    waits(chart);
    passes(chart);
    data(chart);
    names(chart);
    chart.below(BAR);
}

fn passes(chart: &mut Chart<'_>) {
    let mut drawn = f64::NEG_INFINITY;
    for pass in &chart.timeline.passes {
        let (x, end) = (chart.scale.x(pass.begin_s), chart.scale.x(pass.end_s));
        // A pass narrower than a line, just behind the one before, would be invisible.
        if end.max(x + 2.0) < drawn + 0.5 {
            continue;
        }
        let area = Area { x, y: chart.y, width: (end - x).max(2.0), height: BAR };
        chart.svg.rect("pass", area, &told(pass, &chart.timeline.words));
        drawn = area.x + area.width;
    }
}

fn told(pass: &Pass, words: &Words) -> String {
    let (round, segments) = (words.round.one, counted_as(pass.dtus, words.segment));
    let (begin, end) = (time(pass.begin_s), time(pass.end_s));
    let long = span(pass.end_s - pass.begin_s);
    format!("{round} {}: {segments} in {long}, from {begin} to {end}", pass.number)
}

/// Draws the times within passes in which data left: a pass may pause.
fn data(chart: &mut Chart<'_>) {
    let mut drawn = f64::NEG_INFINITY;
    for interval in &chart.timeline.data {
        let (x, end) = (chart.scale.x(interval.begin_s), chart.scale.x(interval.end_s));
        if end.max(x + 2.0) < drawn + 0.5 {
            continue;
        }
        let area = Area { x, y: chart.y + BAR - 8.0, width: (end - x).max(2.0), height: 8.0 };
        let (begin, until) = (time(interval.begin_s), time(interval.end_s));
        chart.svg.rect("data", area, &format!("data leaves from {begin} to {until}"));
        drawn = area.x + area.width;
    }
}

/// Draws the names of passes above their bars, each as long as there is room before the next.
fn names(chart: &mut Chart<'_>) {
    let passes = &chart.timeline.passes;
    let begins = passes.iter().skip(1).map(|pass| chart.scale.x(pass.begin_s)).chain([RIGHT + 70.0]);
    let mut free = f64::NEG_INFINITY;
    for (pass, next) in passes.iter().zip(begins) {
        let x = chart.scale.x(pass.begin_s);
        let words = &chart.timeline.words;
        let name = format!("{} {}", words.round.one, pass.number);
        let segments = counted_as(pass.dtus, words.segment);
        let texts = [
            format!("{name}: {segments} in {}", span(pass.end_s - pass.begin_s)),
            format!("{name}: {segments}"),
            name,
            format!("{}", pass.number),
        ];
        if x < free {
            continue;
        }
        if let Some(text) = longest_that_fits(&texts, LETTERS, next - x - 6.0) {
            chart.svg.text("name", (x, chart.y - 5.0), Anchor::Start, text);
            free = next;
        }
    }
}

fn waits(chart: &mut Chart<'_>) {
    let timeline = chart.timeline;
    let mut drawn = f64::NEG_INFINITY;
    // A wait that repeats without a gap has one label.
    for waits in timeline.waits.chunk_by(goes_on) {
        let begin = chart.scale.x(waits[0].begin_s);
        let mut end = begin;
        for wait in waits {
            let x = chart.scale.x(wait.begin_s);
            end = chart.scale.x(wait.end_s);
            if end.max(x + 1.0) < drawn + 0.5 {
                continue;
            }
            let area = Area { x, y: chart.y, width: (end - x).max(1.0), height: BAR };
            chart.svg.rect("wait-ground", area, "");
            chart.svg.rect("wait", area, &why(wait, timeline.words.nak));
            drawn = area.x + area.width;
        }
        write(chart, waits, begin, end);
    }
}

/// Returns `true` if `next` repeats `wait` without a gap.
fn goes_on(wait: &Wait, next: &Wait) -> bool {
    wait.what == next.what && (wait.end_s - next.begin_s).abs() < 1e-9
}

/// Writes the cause of waits between `begin` and `end`, as much of it as there is room for.
fn write(chart: &mut Chart<'_>, waits: &[Wait], begin: f64, end: f64) {
    let lines = lines(waits, chart.timeline.words.nak, end - begin - 8.0);
    let middle = f64::midpoint(begin, end);
    let first = chart.y + BAR / 2.0 + 4.0 - LINE * (lines.len().saturating_sub(1) as f64 / 2.0);
    for (index, line) in (0u8..).zip(&lines) {
        chart.svg.text("why", (middle, first + LINE * f64::from(index)), Anchor::Middle, line);
    }
}

/// Returns the label of waits, in at most five lines of `width`.
fn lines(waits: &[Wait], nak: Noun, width: f64) -> Vec<String> {
    let each = span(waits[0].end_s - waits[0].begin_s);
    let alike = waits.iter().all(|wait| span(wait.end_s - wait.begin_s) == each);
    let all = match waits.len() {
        1 => each,
        n if alike => format!("{n} × {each}"),
        _ => span(waits.iter().map(|wait| wait.end_s - wait.begin_s).sum()),
    };
    let how_long = [format!("waits {all}"), all];
    let Some(how_long) = longest_that_fits(&how_long, SMALL, width) else { return Vec::new() };
    let what = &waits[0].what;
    let short = what.strip_prefix("the ").unwrap_or(what);
    let what = wrapped(&format!("for {what}"), SMALL, width, 3).or_else(|| wrapped(short, SMALL, width, 3));
    let counts = || waits.iter().flat_map(|wait| &wait.naks);
    let came = counts().fold(0u64, |sum, nak| sum.saturating_add(nak.1));
    let naks = match came {
        _ if counts().next().is_none() => Vec::new(),
        0 => vec![format!("no {} comes", nak.one), format!("no {}", nak.one)],
        1 => vec![format!("1 {} comes", nak.one), counted_as(1, nak)],
        _ => vec![format!("{} come", counted_as(came, nak)), counted_as(came, nak)],
    };
    let naks = longest_that_fits(&naks, SMALL, width).map(String::from);
    std::iter::once(how_long.to_owned()).chain(what.unwrap_or_default()).chain(naks).collect()
}

fn why(wait: &Wait, nak: Noun) -> String {
    let (begin, end) = (time(wait.begin_s), time(wait.end_s));
    let long = span(wait.end_s - wait.begin_s);
    let mut text = format!("from {begin} to {end} the sender waits {long} for {}", wait.what);
    let came: u64 = wait.naks.iter().map(|nak| nak.1).fold(0, u64::saturating_add);
    if came > 0 {
        let parts: Vec<String> = FATES
            .iter()
            .filter_map(|&(fate, name)| {
                let of = wait
                    .naks
                    .iter()
                    .filter(|nak| nak.0 == fate)
                    .fold(0u64, |sum, nak| sum.saturating_add(nak.1));
                (of > 0).then(|| format!("{} {name}", count(of)))
            })
            .collect();
        let _ = write!(text, "; meanwhile {} reach it: {}", counted_as(came, nak), parts.join(", "));
    }
    text
}

/// Draws status requests, one mark for each column.
pub(super) fn requests(chart: &mut Chart<'_>) {
    let total = chart.timeline.requests.iter().fold(0u64, |sum, point| sum.saturating_add(point.count));
    let middle = chart.y + REQUESTS / 2.0;
    let query = chart.timeline.words.query;
    chart.heading(middle - 2.0, query.many, "sender asks what is missing");
    chart.ground(REQUESTS);
    for column in chart.scale.columns(&chart.timeline.requests, 5.0) {
        let x = chart.scale.x(f64::midpoint(column.first_s, column.last_s));
        let tip = if column.count == 1 {
            format!("{} at {}", query.one, time(column.first_s))
        } else {
            let (first, last) = (time(column.first_s), time(column.last_s));
            format!("{} from {first} to {last}", counted_as(column.count, query))
        };
        Mark::Request.draw(&mut chart.svg, (x, middle), &tip);
    }
    chart.at_the_right(middle + 4.0, &[counted(total, "request"), count(total)]);
    chart.below(REQUESTS);
}
