//! Result of a race, for people.

use farcast_lab::tune::{Entry, SettingFate};

use super::{Finished, Span, rounded};
use crate::table::{Align, Table};
use crate::text::Text;
use farcast_transfer::words::counted;

/// Most rows of a table for a person.
const MOST_ROWS: usize = 40;
/// Number of standard errors in half of a 95 % interval.
const HALF: f64 = 1.959_964;

/// Returns the result of a case: a table of the settings in their order, and its meaning.
pub(super) fn text(scenario: &str, one: &Finished) -> Text {
    let case = if one.case.name.is_empty() { String::new() } else { format!(", {}", one.case.name) };
    let heading = format!("{scenario}{case}: the least {}", one.tuning.minimise);
    Text::paragraphs([Text::line(&heading), table(one), Text::lines(verdict(one))])
}

fn table(one: &Finished) -> Text {
    let axes = one.tuning.settings.axes();
    let mut heading: Vec<(&str, Align)> = axes.iter().map(|axis| (axis.key(), Align::Right)).collect();
    let minimised = one.tuning.minimise.to_string();
    heading.push((&minimised, Align::Right));
    heading.extend(["95 % interval", "above the best", "95 % interval"].map(|name| (name, Align::Right)));
    let bounds: Vec<String> = one.tuning.bounds.iter().map(|bound| bound.measured.to_string()).collect();
    heading.extend(bounds.iter().map(|name| (name.as_str(), Align::Right)));
    heading.extend([("n", Align::Right), ("", Align::Left)]);
    let mut table = Table::new(&heading);
    for entry in one.tuned.entries.iter().take(MOST_ROWS) {
        let mut cells: Vec<String> = if entry.assignments.is_empty() {
            axes.iter().map(|_| "default".to_owned()).collect()
        } else {
            entry
                .assignments
                .iter()
                .map(|set| set.split_once('=').map_or("", |(_, value)| value).to_owned())
                .collect()
        };
        let is_best = entry.fate == SettingFate::Best;
        cells.extend([significant(entry.value), half(entry.standard_error)]);
        cells.extend(if is_best || one.tuned.none_within_bounds {
            [String::new(), String::new()]
        } else {
            [significant(entry.above_best), half(entry.above_best_error)]
        });
        cells.extend(entry.bounded.iter().map(|&value| significant(value)));
        cells.extend([entry.replications.to_string(), fate(entry)]);
        table.row(cells);
    }
    let more = one.tuned.entries.len().saturating_sub(MOST_ROWS);
    let more = (more > 0).then(|| format!("and {more} settings more: --json has them all"));
    table.render().then(Text::lines(more))
}

fn fate(entry: &Entry) -> String {
    let what = match entry.fate {
        SettingFate::Best => "best",
        SettingFate::Tied => "not told from the best",
        SettingFate::Worse => "worse",
        SettingFate::Halved => "in the worse half of many",
        SettingFate::OutOfBounds => "out of bounds",
    };
    if entry.is_default { format!("{what} (as the scenario has it)") } else { what.to_owned() }
}

/// Returns the meaning of the table in sentences.
pub(super) fn verdict(one: &Finished) -> Vec<String> {
    let tuned = &one.tuned;
    let mut lines = Vec::new();
    let Some(best) = tuned.entries.first() else { return lines };
    if tuned.none_within_bounds {
        let bounds: Vec<&str> = one.tuning.bounds.iter().map(|bound| bound.text.as_str()).collect();
        lines.push(format!("No setting keeps {}: the first passes it least.", bounds.join(" and ")));
    } else {
        let tied: Vec<&str> = tuned
            .entries
            .iter()
            .filter(|entry| entry.fate == SettingFate::Tied)
            .map(|entry| entry.name.as_str())
            .collect();
        lines.push(match tied.as_slice() {
            [] => format!(
                "The best is {}: with a confidence of {} all others are worse.",
                best.name,
                percent(one.tuning.level)
            ),
            tied => format!(
                "The best is {}, in {} of resamples; {} cannot be told from it.",
                best.name,
                percent(best.chance),
                tied.join(" and ")
            ),
        });
    }
    if let Some(default) = tuned.entries.iter().find(|entry| entry.is_default) {
        let name = if default.assignments.is_empty() {
            "What the scenario has".to_owned()
        } else {
            format!("{}, which the scenario has,", default.name)
        };
        lines.push(of_default(&name, default, best, one));
    }
    lines.push(format!(
        "{} in {}, {} of cores in {}: {} of what a full grid of {} replications takes.",
        counted(tuned.replications, "replication"),
        counted(tuned.rounds.into(), "round"),
        seconds(tuned.cpu_s),
        rounded(tuned.elapsed),
        percent(if tuned.full_grid_cpu_s > 0.0 { tuned.cpu_s / tuned.full_grid_cpu_s } else { 1.0 }),
        tuned.full_grid,
    ));
    lines
}

/// Compares the scenario's own setting with the best one, in a sentence.
fn of_default(name: &str, default: &Entry, best: &Entry, one: &Finished) -> String {
    let minimised = &one.tuning.minimise;
    match default.fate {
        SettingFate::Best => return format!("{name} is the best."),
        SettingFate::OutOfBounds => return format!("{name} is out of bounds."),
        _ => {}
    }
    let verdict =
        if default.fate == SettingFate::Tied { "may be the best as well" } else { "is not the optimum" };
    if !default.value.is_finite() {
        return format!(
            "{name} {verdict}: not all of its replications were finished, so it has no {minimised} (the best's is {}).",
            significant(best.value)
        );
    }
    let share = match default.above_best / best.value {
        share if share.is_finite() => format!("{} of the best's {}", percent(share), significant(best.value)),
        _ => format!("where the best's is {}", significant(best.value)),
    };
    let chance = match default.chance_of_difference() {
        None => "cannot be told".to_owned(),
        Some(p) if p < 1e-6 => "less than one in a million".to_owned(),
        Some(p) => format!("{p:.1e}"),
    };
    format!(
        "{name} {verdict}: {minimised} of it is {} ({}) more, {share}; the chance of seeing that if it were no more: {chance}.",
        significant(default.above_best),
        half(default.above_best_error),
    )
}

fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { rounded(Span::from_secs_f64(seconds)) }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let places = usize::from((0.05..99.95).contains(&percent));
    format!("{percent:.places$} %")
}

fn half(error: f64) -> String {
    if error.is_finite() { format!("\u{b1} {}", significant(HALF * error)) } else { "-".to_owned() }
}

/// Returns a number with as many decimal places as a person reads.
pub(super) fn significant(value: f64) -> String {
    if value.is_finite() { crate::sweep::significant(value) } else { "-".to_owned() }
}
