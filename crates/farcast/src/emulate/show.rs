//! Output of an emulation. It goes to standard error, because standard output is the near program's.

use farcast_emu::emulation::{Report, WayReport};
use farcast_emu::relay::Scheduling;

use super::inside::nothing_passed;
use super::live::stages;
use super::plan::Wish;
use super::session::places;
use super::{INVALID, NOTHING_PASSED, OWN_FAILURE};
use crate::stdio;
use crate::table::{Align, Table};
use crate::text::Text;

/// Prints a line.
pub(crate) fn line(text: &str) {
    stdio::say(&format!("farcast: {text}"));
}

fn block(text: &Text) {
    text.each().for_each(stdio::say);
}

/// Prints the stages and hosts of an emulation that begins.
pub(crate) fn begin(wish: &Wish, pid: u32) {
    let mut table = Table::new(&[("stage", Align::Left), ("way", Align::Left), ("what", Align::Left)]);
    for stage in stages(wish) {
        let way = match stage.way {
            Some(farcast_emu::control::LinkDirection::Forward) => "forward",
            Some(farcast_emu::control::LinkDirection::Return) => "return",
            None => "both",
        };
        let shown = |key: &str| {
            let key = format!(".{key}");
            wish.keys.iter().any(|(name, _, given)| *given && name.ends_with(&key))
                || wish.queues.iter().any(|queue| queue.key.ends_with(&key))
        };
        let settings = stage.settings.iter().filter(|(key, _)| shown(key));
        let settings: Vec<String> = settings.map(|(key, value)| format!("{key} {value}")).collect();
        if stage.kind == "pipe" && settings.is_empty() {
            continue;
        }
        let what = [vec![stage.kind.clone()], settings].concat().join(", ");
        table.row([stage.name.clone().unwrap_or_default(), way.into(), what]);
    }
    let hosts: Vec<String> = places(&wish.plan)
        .take(4)
        .map(|place| format!("{} {}", wish.name_of(place), place.address()))
        .collect();
    let more = if wish.plan.link.terminals() > 3 { ", ..." } else { "" };
    line(&format!("{}, seed {}: {}{more}", wish.name, wish.plan.link.seed, hosts.join(", ")));
    block(&table.render());
    line(&format!("forward runs from the hub to terminals; see it live: farcast emulate --control {pid}"));
}

/// Prints the result of an emulation that has ended.
pub(crate) fn end(wish: &Wish, report: &Report, programs: u8) {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("way", Align::Left),
        ("entered", right),
        ("delivered", right),
        ("lost", right),
        ("given up", right),
        ("dropped", right),
        ("delivered", right),
        ("mean rate", right),
    ]);
    let count = report.terminals.len().max(1);
    // A packet from the hub to all terminals counts once for each, so the sum is no rate of the link.
    for (name, way, share) in [("forward", &report.forward, count), ("return", &report.back, 1)] {
        table.row(row(name, way, share));
    }
    line(&format!("{}, seed {}, {:.1} s", wish.name, report.seed, report.duration_s));
    block(&table.render());
    if count > 1 {
        line(&format!(
            "forward: packets and octets are of all {count} terminals together, the rate is of one of them on the mean"
        ));
        block(&terminals(report));
    }
    stage_figures(report);
    verdict(report);
    if [INVALID, NOTHING_PASSED, OWN_FAILURE].contains(&programs) {
        line(&format!("{programs} is what the program ended with, no verdict of farcast's"));
    }
}

/// Returns the counts of a direction, and its mean rate divided by `share`.
fn row(name: &str, way: &WayReport, share: usize) -> [String; 8] {
    let counts = &way.counts;
    [
        name.into(),
        counts.entered.packets.to_string(),
        counts.delivered.packets.to_string(),
        counts.lost.packets.to_string(),
        counts.given_up.packets.to_string(),
        counts.dropped.packets.to_string(),
        farcast_core::units::Bytes(counts.delivered.octets).to_string(),
        rate(way.delivered_bit_per_s / share as f64),
    ]
}

fn rate(bit_per_s: f64) -> String {
    farcast_core::BitRate::from_bps(bit_per_s as u64)
        .map_or_else(|| "0 bit/s".into(), |rate| rate.to_string())
}

/// Most rows of terminals that are shown. The report has all of them.
const MOST_ROWS: usize = 20;

fn terminals(report: &Report) -> Text {
    let right = Align::Right;
    let mut table =
        Table::new(&[("terminal", right), ("delivered", right), ("lost", right), ("lost share", right)]);
    for (number, counts) in report.terminals.iter().enumerate().take(MOST_ROWS) {
        let (delivered, lost) = (counts.delivered[0].packets, counts.lost[0].packets);
        let share = if delivered + lost > 0 { 100.0 * lost as f64 / (delivered + lost) as f64 } else { 0.0 };
        table.row([number.to_string(), delivered.to_string(), lost.to_string(), format!("{share:.2} %")]);
    }
    let left_out = report.terminals.len().saturating_sub(MOST_ROWS);
    let more = (left_out > 0).then(|| format!("({left_out} more in --report)"));
    Text::default().blank().then(table.render()).then(Text::lines(more))
}

fn stage_figures(report: &Report) {
    if report.stages.is_empty() {
        return;
    }
    let mut table = Table::new(&[("stage", Align::Left), ("figure", Align::Left), ("value", Align::Right)]);
    for stage in &report.stages {
        for (name, value) in &stage.figures {
            let value = value.map_or_else(|| "-".into(), |value| format!("{value:.4}"));
            let value = value.trim_end_matches('0').trim_end_matches('.').to_owned();
            table.row([stage.stage.clone(), (*name).to_owned(), value]);
        }
    }
    block(&Text::default().blank().then(table.render()));
}

fn verdict(report: &Report) {
    let late = &report.lateness;
    let ms = |seconds: f64| format!("{:.3} ms", 1e3 * seconds);
    for (name, way) in [("forward", &report.forward), ("return", &report.back)] {
        let (held, not_taken) = (way.counts.held.packets, way.counts.not_taken.packets);
        if held + not_taken > 0 {
            line(&format!(
                "{name}: {held} packets were still inside at the end, {not_taken} their device did not take"
            ));
        }
    }
    let scheduling = match late.scheduling {
        Scheduling::Fifo => "real-time priority",
        Scheduling::Normal => "no real-time priority: run as root for one",
    };
    if nothing_passed(report) {
        return line(
            "NOTHING PASSED: no packet came through the link, so there is nothing to judge; check that programs \
             use FARCAST_PEER",
        );
    }
    let verdict = if report.valid { "VALID" } else { "INVALID" };
    line(&format!(
        "{verdict}: packets left late by {} (p50), {} (p99, limit {}), {} (p99.9), {} at most; not \
         read in time in {:.1} % of the time; {scheduling}",
        ms(late.p50_s),
        ms(late.p99_s),
        ms(late.limit_s),
        ms(late.p999_s),
        ms(late.max_s),
        1e2 * late.stalled_share,
    ));
    if report.dropped_by_devices > 0 {
        line(&format!(
            "{} packets were dropped before they entered the link, because this machine was too busy",
            report.dropped_by_devices
        ));
    }
    if !report.valid {
        line(
            "this machine was too busy for the link: what programs measured is not the link's; run it again",
        );
    }
    if report.not_recorded > 0 {
        line(&format!("{} packets are missing in the files, which were too slow", report.not_recorded));
    }
}

#[cfg(test)]
mod tests {
    use farcast_emu::emulation::WayReport;
    use farcast_emu::link::Counts;

    use super::row;

    #[test]
    fn the_rate_of_a_link_is_not_that_of_all_its_terminals_together() {
        // 4.2 Mbit/s that 13 terminals hear.
        let way = WayReport { counts: Counts::default(), delivered_bit_per_s: 13.0 * 4.2e6 };
        let rate = |share| row("forward", &way, share)[7].clone();
        assert_eq!((rate(13), rate(1)), ("4.2 Mbit/s".to_owned(), "54.6 Mbit/s".to_owned()));
    }
}
