//! Lanes of the receivers: the number of complete ones, and each on its own.

use std::cmp::Ordering;

use super::chart::{Chart, LEFT, RIGHT, SMALL};
use super::marks::{FATES, Mark, meaning};
use super::{Lane, LaneNak};
use crate::svg::{Anchor, text_width};
use crate::words::{count, counted, counted_as, share, time};

/// Height of the curve of complete receivers.
const CURVE: f64 = 96.0;
/// Height of a receiver's lane.
const ROW: f64 = 17.0;
/// Most receivers that have lanes.
const MOST_LANES: usize = 60;
/// Most NAKs drawn of one receiver: more could not be told apart.
const MOST_NAKS: usize = 150;

/// Draws the number of receivers that have everything, over time.
pub(super) fn complete(chart: &mut Chart<'_>) {
    let receivers = chart.timeline.receivers;
    let (top, bottom) = (chart.y, chart.y + CURVE);
    chart.ground(CURVE);
    chart.heading(top + 14.0, "receivers complete", "have everything");
    let height = |complete: u64| bottom - CURVE * (complete as f64 / receivers.max(1) as f64).min(1.0);
    let mut complete = 0u64;
    let mut points = Vec::new();
    for column in chart.scale.columns(&chart.timeline.completions, 1.0) {
        complete = complete.saturating_add(column.count);
        points.push((chart.scale.x(column.last_s), height(complete)));
    }
    let tip = format!(
        "{} of {} ({}) have everything at the end",
        count(complete),
        counted(receivers, "receiver"),
        share(complete as f64, receivers as f64)
    );
    let begin = (LEFT, bottom);
    chart.svg.steps("curve-area", begin, &points, &format!("H{RIGHT}V{bottom}Z"), &tip);
    chart.svg.steps("curve", begin, &points, &format!("H{RIGHT}"), "");
    chart.svg.text("tick", (LEFT - 6.0, bottom), Anchor::End, "0");
    chart.svg.text("tick", (LEFT - 6.0, bottom - CURVE / 2.0 + 4.0), Anchor::End, "50 %");
    chart.svg.line("base", (LEFT, bottom - CURVE / 2.0), (RIGHT, bottom - CURVE / 2.0), "");
    let right = height(complete).clamp(top + 10.0, bottom - 14.0);
    chart.at_the_right(right, &[count(complete)]);
    chart.at_the_right(right + 14.0, &[format!("of {}", count(receivers))]);
    chart.below(CURVE);
}

/// Draws a lane for each receiver, if there are few.
pub(super) fn lanes(chart: &mut Chart<'_>) {
    let lanes = &chart.timeline.lanes;
    if lanes.is_empty() || lanes.len() > MOST_LANES {
        return;
    }
    let height = ROW * lanes.len() as f64;
    chart.ground(height);
    let top = chart.y;
    let mut requests: Vec<f64> = chart.timeline.requests.iter().map(|point| point.at_s).collect();
    requests.sort_by(f64::total_cmp);
    for (index, lane) in (0u8..).zip(lanes) {
        draw_lane(chart, lane, &requests, top + ROW * (f64::from(index) + 0.5));
    }
    chart.below(height);
}

fn draw_lane(chart: &mut Chart<'_>, lane: &Lane, requests: &[f64], y: f64) {
    chart.svg.line("base", (LEFT, y), (RIGHT, y), "");
    if text_width(&lane.name, SMALL) <= LEFT - 20.0 {
        chart.svg.text("row", (LEFT - 12.0, y + 4.0), Anchor::End, &lane.name);
    }
    asked(chart, lane, requests, y);
    lacking(chart, lane, y);
    let mut naks: Vec<LaneNak> = lane.naks.iter().copied().take(MOST_NAKS).collect();
    // NAKs that leave at one instant and have the same outcome are drawn once.
    naks.sort_by(order);
    for alike in naks.chunk_by(|a, b| order(a, b).is_eq()) {
        draw_naks(chart, lane, alike, y);
    }
    if let Some(at) = lane.completed_s {
        let tip = format!("{} has everything at {}", lane.name, time(at));
        Mark::Complete.draw(&mut chart.svg, (chart.scale.x(at), y), &tip);
    }
    let left_out = lane.naks.len() - naks.len();
    match (left_out, lane.completed_s) {
        (0, Some(_)) => {}
        (0, None) => chart.at_the_right(y + 4.0, &[String::from("incomplete")]),
        _ => chart
            .at_the_right(y + 4.0, &[format!("+{}", counted_as(left_out as u64, chart.timeline.words.nak))]),
    }
}

/// Orders NAKs: less useful ones come first, so that the marks of others lie above theirs.
fn order(a: &LaneNak, b: &LaneNak) -> Ordering {
    let parts = |nak: &LaneNak| nak.reached.map_or((0.0, None), |(at, fate)| (at, Some(fate)));
    let ((a_at, a_fate), (b_at, b_fate)) = (parts(a), parts(b));
    b_fate.cmp(&a_fate).then(a.sent_s.total_cmp(&b.sent_s)).then(a_at.total_cmp(&b_at))
}

/// Draws lines from a status request to the first NAK behind it: the propagation, and the back-off that spreads
/// answers.
fn asked(chart: &mut Chart<'_>, lane: &Lane, requests: &[f64], y: f64) {
    let mut last = None;
    for nak in lane.naks.iter().take(MOST_NAKS) {
        let before = requests.partition_point(|&at| at <= nak.sent_s);
        if before > 0 && last != Some(before) {
            let request = requests[before - 1];
            let tip =
                format!("{} is asked at {} and answers at {}", lane.name, time(request), time(nak.sent_s));
            chart.svg.line("asked", (chart.scale.x(request), y), (chart.scale.x(nak.sent_s), y), &tip);
        }
        last = Some(before);
    }
}

/// Draws the time in which a receiver lacks DTUs that it asked for, from its first NAK on.
fn lacking(chart: &mut Chart<'_>, lane: &Lane, y: f64) {
    let Some(first) = lane.naks.iter().map(|nak| nak.sent_s).reduce(f64::min) else { return };
    let until = lane.completed_s.unwrap_or(chart.scale.duration());
    let (begin, end) = (chart.scale.x(first), chart.scale.x(until));
    if begin < end {
        let tip = format!(
            "{} waits for {} that it asked for, from {} to {}",
            lane.name,
            chart.timeline.words.segment.many,
            time(first),
            time(until)
        );
        chart.svg.line("lacking", (begin, y), (end, y), &tip);
    }
}

fn draw_naks(chart: &mut Chart<'_>, lane: &Lane, alike: &[LaneNak], y: f64) {
    let nak = &alike[0];
    let dtus = alike.iter().map(|nak| u64::from(nak.dtus)).sum();
    let words = &chart.timeline.words;
    let (naks, asked) = (counted_as(alike.len() as u64, words.nak), counted_as(dtus, words.segment));
    let said = format!("{}: {naks} for {asked}, sent at {}", lane.name, time(nak.sent_s));
    let x = chart.scale.x(nak.sent_s);
    if let Some((at, fate)) = nak.reached {
        let name = FATES.iter().find(|(other, _)| *other == fate).map_or("", |(_, name)| name);
        let tip = format!("{said}, reached the sender at {}, {name}: {}", time(at), meaning(fate, words));
        let mark = Mark::Reached(fate);
        chart.svg.line(&format!("flight {}", mark.class()), (x, y), (chart.scale.x(at), y), &tip);
        mark.draw(&mut chart.svg, (chart.scale.x(at), y), &tip);
    } else {
        let tip = format!("{said}, lost on the way");
        let end = (x + 12.0).min(RIGHT);
        chart.svg.line("flight lost", (x, y), (end, y), &tip);
        Mark::Lost.draw(&mut chart.svg, (end, y), &tip);
    }
    Mark::Sent.draw(&mut chart.svg, (x, y), &said);
}
