//! NAKs of all receivers: those sent, and the fates of those that reached the sender.

use super::EventPoint;
use super::chart::{Chart, LEFT, RIGHT, SMALL};
use super::marks::{FATES, Mark, meaning};
use crate::scale::Column;
use crate::svg::{Anchor, longest_that_fits};
use crate::words::{count, counted_as, time};

/// Height of a row.
const ROW: f64 = 34.0;
/// Width of a column in which NAKs are counted together.
const COLUMN: f64 = 10.0;

/// A row of the lane.
struct NakRow {
    mark: Mark,
    name: String,
    /// Explanation of a NAK in this row.
    said: String,
    columns: Vec<Column>,
    total: u64,
}

/// Draws a row for NAKs that were sent, and one for each fate. The height of a mark shows the number of NAKs in its
/// column.
pub(super) fn naks(chart: &mut Chart<'_>) {
    let rows = rows(chart);
    let most = rows.iter().flat_map(|row| &row.columns).map(|column| column.count).max().unwrap_or(0);
    let height = ROW * rows.len() as f64;
    chart.ground(height);
    chart.heading(chart.y + 14.0, chart.timeline.words.nak.many, "what receivers ask for again");
    if most > 1 {
        let texts = [format!("taller: more, up to {}", count(most)), format!("up to {}", count(most))];
        if let Some(text) = longest_that_fits(&texts, SMALL, LEFT - 20.0) {
            chart.svg.text("note", (LEFT - 12.0, chart.y + 42.0), Anchor::End, text);
        }
    }
    let top = chart.y;
    for (index, row) in (0u8..).zip(&rows) {
        let base = top + ROW * f64::from(index + 1) - 7.0;
        draw_row(chart, row, base, most);
    }
    chart.below(height);
}

fn rows(chart: &Chart<'_>) -> Vec<NakRow> {
    let timeline = chart.timeline;
    let row = |mark, name: &str, said: String, points: &[EventPoint]| NakRow {
        mark,
        name: name.to_owned(),
        said,
        columns: chart.scale.columns(points, COLUMN),
        total: points.iter().fold(0, |sum, point| sum.saturating_add(point.count)),
    };
    let mut rows = Vec::new();
    // Without data on NAKs that were sent, there is no row for them.
    if !timeline.naks_sent.is_empty() {
        rows.push(row(Mark::Sent, "sent", String::from("sent by receivers"), &timeline.naks_sent));
    }
    for (fate, name) in FATES {
        let points: Vec<EventPoint> = timeline
            .naks_reached
            .iter()
            .filter(|naks| naks.0 == fate)
            .flat_map(|naks| naks.1.clone())
            .collect();
        rows.push(row(
            Mark::Reached(fate),
            name,
            format!("{name}: {}", meaning(fate, &timeline.words)),
            &points,
        ));
    }
    rows
}

fn draw_row(chart: &mut Chart<'_>, row: &NakRow, base: f64, most: u64) {
    let class = row.mark.class();
    chart.svg.line("base", (LEFT, base), (RIGHT, base), "");
    chart.at_the_right(base - 2.0, &[format!("{} {}", count(row.total), row.name), count(row.total)]);
    for column in &row.columns {
        let x = chart.scale.x(f64::midpoint(column.first_s, column.last_s));
        // A single NAK is a mark on the line, and the greatest number stands as high as there is room. In between,
        // every doubling adds the same height.
        let y = base - (ROW - 16.0) * doublings(column.count) / doublings(most).max(1.0);
        let when = if column.count == 1 {
            format!("at {}", time(column.first_s))
        } else {
            format!("from {} to {}", time(column.first_s), time(column.last_s))
        };
        if column.count > 1 {
            chart.svg.line(&format!("stem {class}"), (x, base), (x, y), "");
        }
        let tip = format!("{} {when}, {}", counted_as(column.count, chart.timeline.words.nak), row.said);
        row.mark.draw(&mut chart.svg, (x, y), &tip);
    }
}

/// Returns how often 1 is doubled to make `value`, at least 1; linear between powers of two.
fn doublings(value: u64) -> f64 {
    let whole = value.max(1).ilog2();
    f64::from(whole) + value.max(1) as f64 / (1u64 << whole) as f64 - 1.0
}
