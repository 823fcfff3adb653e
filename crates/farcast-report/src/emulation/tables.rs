//! Tables of totals, terminals and events.

use std::fmt::Write as _;

use super::axis::Quantity;
use super::{Count, DirectionTraffic, Run, TerminalPackets};
use crate::svg::Escaped;
use crate::words::{count, time};

/// Most terminals that have rows of their own.
const MOST_TERMINALS: usize = 20;
/// Most events that are listed.
const MOST_EVENTS: usize = 200;

/// Writes a table whose first column names its rows.
fn table(page: &mut String, class: &str, caption: &str, head: &[&str], rows: &[Vec<String>]) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        page,
        "<div class=\"table {class}\"><table>\n<caption><span>{}</span> <span class=\"scrolls\">scrolls to the right \u{2192}</span></caption>",
        Escaped(caption)
    );
    *page += "<thead><tr>";
    for name in head {
        let _ = write!(page, "<th scope=\"col\">{}</th>", Escaped(name));
    }
    *page += "</tr></thead>\n<tbody>\n";
    for row in rows {
        let mut cells = row.iter();
        let name = cells.next().map_or("", String::as_str);
        let _ = write!(page, "<tr><th scope=\"row\">{}</th>", Escaped(name));
        for cell in cells {
            let _ = write!(page, "<td>{}</td>", Escaped(cell));
        }
        *page += "</tr>\n";
    }
    *page += "</tbody>\n</table></div>\n";
}

/// Returns packets and their octets: `1,902 (2.85 MB)`.
fn packets(sum: Count) -> String {
    format!("{} ({})", count(sum.packets), Quantity::Octets.words(sum.octets as f64))
}

/// Writes the totals of both directions.
pub(super) fn totals(page: &mut String, run: &Run) {
    let row = |name: &str, way: &DirectionTraffic| {
        let octets: u64 = way.bins.iter().fold(0, |sum, bin| sum.saturating_add(bin.carried.octets));
        let rate = if run.duration_s > 0.0 { octets as f64 * 8.0 / run.duration_s } else { 0.0 };
        let counts = [way.entered, way.delivered, way.lost, way.dropped, way.held].map(packets);
        [name.to_owned()].into_iter().chain(counts).chain([Quantity::Rate.words(rate)]).collect()
    };
    let head = ["way", "entered", "delivered", "lost", "dropped", "still inside", "mean throughput"];
    let caption = if run.terminals.len() > 1 {
        "Packets, with IP headers. One to several terminals enters once, and is delivered or lost at each; for throughput \
         it counts once."
    } else {
        "Packets, with IP headers."
    };
    table(page, "counts", caption, &head, &[row("forward", &run.forward), row("return", &run.back)]);
}

/// Writes the packets that each terminal got and lost; only the first terminals have rows of their own.
pub(super) fn terminals(page: &mut String, run: &Run) {
    let terminals = &run.terminals;
    if terminals.len() < 2 {
        return;
    }
    let mut rows: Vec<Vec<String>> = terminals.iter().take(MOST_TERMINALS).map(terminal).collect();
    let rest = terminals.get(MOST_TERMINALS..).unwrap_or_default();
    if !rest.is_empty() {
        for (name, q) in [("5 %", 0.05), ("median", 0.5), ("95 %", 0.95)] {
            let cells = COLUMNS.map(|(_, pick)| count(quantile(rest, q, pick)));
            let name = format!("{} more, {name}", count(rest.len() as u64));
            rows.push([name].into_iter().chain(cells).collect());
        }
    }
    let head: Vec<&str> = ["terminal"].into_iter().chain(COLUMNS.map(|column| column.0)).collect();
    table(page, "counts", "Packets of each terminal: to it (forward) and from it (return)", &head, &rows);
}

/// Selects one figure of a terminal.
type TerminalFigure = fn(&TerminalPackets) -> u64;

/// Columns of the table of terminals.
const COLUMNS: [(&str, TerminalFigure); 6] = [
    ("delivered to it", |t| t.delivered[0].packets),
    ("lost", |t| t.lost[0].packets),
    ("dropped", |t| t.dropped[0].packets),
    ("delivered from it", |t| t.delivered[1].packets),
    ("lost", |t| t.lost[1].packets),
    ("dropped", |t| t.dropped[1].packets),
];

fn terminal(one: &TerminalPackets) -> Vec<String> {
    let cells = COLUMNS.map(|(_, pick)| count(pick(one)));
    [one.terminal.to_string()].into_iter().chain(cells).collect()
}

/// Returns the value that a share `q` of the terminals does not exceed: the value of rank ⌈qn⌉.
fn quantile(terminals: &[TerminalPackets], q: f64, pick: TerminalFigure) -> u64 {
    let mut values: Vec<u64> = terminals.iter().map(pick).collect();
    values.sort_unstable();
    let rank = (q * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Lists the events, for readers who do not see them in the drawings.
pub(super) fn events(page: &mut String, run: &Run) {
    if run.events.is_empty() {
        return;
    }
    let row = |event: &super::Event| vec![time(event.at_s), event.words.clone()];
    let rows: Vec<Vec<String>> = run.events.iter().take(MOST_EVENTS).map(row).collect();
    let left_out = run.events.len().saturating_sub(MOST_EVENTS);
    let caption = if left_out > 0 {
        format!("Programs and changes of the link; {} more are not listed", count(left_out as u64))
    } else {
        "Programs and changes of the link".to_owned()
    };
    table(page, "events", &caption, &["at", "what"], &rows);
}
