//! Pages of results: one self-contained file each.
//!
//! A page begins with the outcome. Settings, figures with intervals, tables and data for download follow.

mod compare;
mod simulation;
mod study;
mod sweep;
mod tune;

use farcast_report::page::Cell;
use farcast_scenario::document::{Document, Origin};

use crate::tune::Measured;

pub use compare::compare;
pub use simulation::simulation;
pub use study::studies;
pub use sweep::sweep;
pub use tune::{Case, tune};

/// Returns every key of a document that was read, with the value in effect; defaults are marked.
fn settings(document: &Document) -> Vec<(String, String)> {
    let read = document.keys_read().into_iter();
    read.map(|(key, value, origin)| match origin {
        Origin::Default => (key, format!("{value} (default)")),
        _ => (key, value),
    })
    .collect()
}

/// Returns a figure's name for people: its words and its unit.
pub(crate) fn label(figure: &str) -> String {
    const UNITS: [(&str, &str); 3] = [("_bit_per_s", "bit/s"), ("_s", "s"), ("_percent", "%")];
    let plain = |text: &str| text.replace(['_', '.'], " ");
    // The text behind a dot may be a part of a figure with a unit: receiver_time_s.p50.
    let (figure, part) = match figure.rsplit_once('.') {
        Some((whole, part)) if UNITS.iter().any(|(ending, _)| whole.ends_with(ending)) => (whole, part),
        _ => (figure, ""),
    };
    let part = if part.is_empty() { String::new() } else { format!(" {}", plain(part)) };
    let unit = UNITS.into_iter().find_map(|(ending, unit)| Some((figure.strip_suffix(ending)?, unit)));
    unit.map_or_else(|| plain(figure) + &part, |(words, unit)| format!("{}{part}, {unit}", plain(words)))
}

/// Returns a figure's name for a sentence or a list, with its unit in brackets.
fn inline(figure: &str) -> String {
    let label = label(figure);
    label.rsplit_once(", ").map_or_else(|| label.clone(), |(words, unit)| format!("{words} ({unit})"))
}

/// Returns a statistic of a figure in words, with the unit in brackets.
fn statistic(measured: &Measured) -> String {
    let key = measured.to_string();
    let name = key.rsplit_once('.').map_or("mean", |(_, name)| name);
    let what = inline(&measured.figure);
    match name {
        "p50" | "median" => format!("median {what}"),
        "min" => format!("least {what}"),
        "max" => format!("greatest {what}"),
        _ => match name.strip_prefix('p').and_then(|percent| percent.parse::<u8>().ok()) {
            Some(percent) => format!("{percent} % quantile of {what}"),
            None => format!("{name} {what}"),
        },
    }
}

/// Returns the cells of a summary: mean, half the width of its interval, standard deviation, quantiles, and count.
fn measured(measure: &farcast_sim::outcome::Measure) -> Vec<Cell> {
    let mut cells = vec![Cell::number(measure.mean), Cell::half_width(measure.ci95_half_width)];
    cells.extend(
        [measure.sd, measure.p05, measure.p50, measure.p95, Some(measure.n as f64)].map(Cell::number),
    );
    cells
}

/// Headings of these cells.
const MEASURED: [&str; 7] = ["mean", "95 % interval", "sd", "5 %", "median", "95 %", "n"];

#[cfg(test)]
mod tests {
    use super::{inline, label, statistic};

    #[test]
    fn figures_have_words_and_units() {
        for (figure, words) in [
            ("completion_time_s", "completion time, s"),
            ("forward.octets", "forward octets"),
            ("flows.a.goodput_bit_per_s", "flows a goodput, bit/s"),
            ("naks.sent", "naks sent"),
            ("receiver_time_s.p50", "receiver time p50, s"),
        ] {
            assert_eq!(label(figure), words);
        }
    }

    #[test]
    fn statistics_are_words() {
        assert_eq!(inline("naks.sent"), "naks sent");
        for (key, words) in [
            ("completion_time_s.mean", "mean completion time (s)"),
            ("completion_time_s.p95", "95 % quantile of completion time (s)"),
            ("completion_time_s.max", "greatest completion time (s)"),
            ("forward.octets", "mean forward octets"),
        ] {
            assert_eq!(statistic(&key.parse().expect(key)), words);
        }
    }
}
