//! `--timeline`: the page of plots of a run, or of a log that an earlier run wrote.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use farcast_capture::history::{self, History};
use farcast_capture::output::{Output, StagedFile};
use farcast_capture::packets;
use farcast_core::Span;
use farcast_emu::emulation::Report;
use farcast_report::emulation::{
    Count, Delay, DirectionTraffic, Lateness, LossCause, Run, TerminalPackets, TimeBin, page,
};

use super::events::Events;
use super::plan::Wish;
use crate::args::EmulateArgs;
use crate::{Failure, outputs};

/// History that the recorder fills for the page.
pub(crate) type Shared = Arc<Mutex<History>>;

/// Writes the page of a run that is over.
pub(crate) fn write(
    path: &Path,
    wish: &Wish,
    report: &Report,
    history: &Shared,
    events: Events,
) -> Result<(), Failure> {
    let history = history.lock().unwrap_or_else(PoisonError::into_inner);
    let mut run = drawn(&history, wish.plan.link.terminals());
    run.title.clone_from(&wish.name);
    run.facts = vec![fact("seed", &report.seed), fact("farcast", env!("CARGO_PKG_VERSION"))];
    run.command = command_line(std::env::args_os().skip(1));
    run.duration_s = report.duration_s;
    run.lateness.limit_s = Some(report.lateness.limit_s);
    run.lateness.valid = Some(report.valid);
    run.lateness.remark = remark(report);
    for (way, events) in [&mut run.forward, &mut run.back].into_iter().zip(events.ways) {
        (way.rates_bps, way.outages) = (events.rates_bps, events.outages);
    }
    run.events = events.list;
    run.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let missing = [
        (report.not_recorded, "packets are missing here: the files were too slow for them."),
        (events.left_out, "more programs and changes are not shown."),
    ];
    run.notes.extend(missing.iter().filter(|one| one.0 > 0).map(|(count, what)| format!("{count} {what}")));
    put(path, &run)
}

/// Writes the page for a log that an earlier run wrote.
pub(crate) fn from_log(args: &EmulateArgs, log: &Path, path: &Path) -> Result<(), Failure> {
    outputs::distinct(&[("--from", Some(log)), ("--timeline", Some(path))])?;
    let mut history = History::new();
    let about = packets::read(log, |record| history.record(record))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let of = |key: &str| about.iter().find(|pair| pair.0 == key).map(|pair| pair.1.as_str());
    let terminals = history.terminals().keys().next_back().map_or(0, |last| last.saturating_add(1));
    let mut run = drawn(&history, terminals);
    run.title = of("link").map_or_else(|| log.display().to_string(), ToOwned::to_owned);
    let known = ["seed", "farcast"].into_iter().filter_map(|key| of(key).map(|value| fact(key, value)));
    run.facts = known.collect();
    run.facts.push(fact("log", &log.display()));
    run.duration_s = history.end().as_secs_f64();
    run.notes.push(
        "Drawn from a log, which knows no rates, programs, changes, or limit of lateness; it ends with its last packet."
            .into(),
    );
    put(path, &run)?;
    if !args.quiet {
        let packets = run.forward.entered.packets.saturating_add(run.back.entered.packets);
        super::show::line(&format!("{}: {packets} packets of {}", path.display(), log.display()));
    }
    Ok(())
}

/// Writes the page, whole or not at all.
fn put(path: &Path, run: &Run) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let mut file = Box::new(StagedFile::create(path)?);
        file.write_all(page(run).as_bytes())?;
        file.commit()
    };
    write()
        .map_err(|error| Failure::usage(format!("cannot write the timeline \"{}\": {error}", path.display())))
}

fn fact(name: &str, value: &(impl ToString + ?Sized)) -> (String, String) {
    (name.to_owned(), value.to_string())
}

/// Returns the reasons besides lateness that make a run invalid.
fn remark(report: &Report) -> String {
    let stalled = format!("not read in time in {:.1} % of the time", 100.0 * report.lateness.stalled_share);
    match report.dropped_by_devices {
        0 => stalled,
        dropped => format!("{stalled}, and {dropped} packets were dropped before they entered the link"),
    }
}

/// Returns the command line as it was typed, quoted for a shell.
fn command_line(arguments: impl Iterator<Item = OsString>) -> String {
    let mut words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    // The first argument of the inner process is its lifeline.
    if words.get(1).is_some_and(|word| word == "--inside") {
        words.drain(1..3.min(words.len()));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let quoted = |word: &String| {
        let is_plain = !word.is_empty() && word.chars().all(plain);
        if is_plain { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    ["farcast".to_owned()].into_iter().chain(words.iter().map(quoted)).collect::<Vec<_>>().join(" ")
}

/// Returns the page's data from a history, with a row for each of `terminals` terminals.
fn drawn(history: &History, terminals: u32) -> Run {
    let lateness = history.lateness();
    let quantile = |q| lateness.quantile(q).as_secs_f64();
    let (first, rest) = (history.terminals(), terminals.min(MOST_TERMINALS));
    Run {
        bin_s: history.width().as_secs_f64(),
        forward: way(history.way(packets::PacketDirection::Forward)),
        back: way(history.way(packets::PacketDirection::Return)),
        terminals: (0..rest)
            .map(|number| terminal(number, &first.get(&number).copied().unwrap_or_default()))
            .collect(),
        lateness: Lateness {
            packets: lateness.count(),
            p50_s: quantile(0.5),
            p99_s: quantile(0.99),
            p999_s: quantile(0.999),
            max_s: lateness.max().as_secs_f64(),
            ..Lateness::default()
        },
        ..Run::default()
    }
}

/// Most terminals of an emulation. A log may give any terminal numbers.
const MOST_TERMINALS: u32 = farcast_emu::route::MOST_TERMINALS;

fn count(sum: history::PacketTotals) -> Count {
    Count { packets: sum.packets, octets: sum.octets }
}

fn terminal(number: u32, history: &history::TerminalHistory) -> TerminalPackets {
    let history::TerminalHistory { delivered, lost, dropped } = history;
    TerminalPackets {
        terminal: number,
        delivered: delivered.map(count),
        lost: lost.map(count),
        dropped: dropped.map(count),
    }
}

fn way(history: &history::DirectionHistory) -> DirectionTraffic {
    let mut inside = 0_u64;
    let bins = history.bins.iter().map(|bin| {
        inside = inside.saturating_add(bin.entered.octets).saturating_sub(bin.ended.octets);
        TimeBin {
            entered: count(bin.entered),
            carried: count(bin.carried),
            inside_octets: inside,
            delay: delay(&bin.delays),
            latest_s: bin.latest.as_secs_f64(),
        }
    });
    let bins = bins.collect();
    let causes = (0_u16..).zip(&history.causes).map(|(index, cause)| LossCause {
        dropped: cause.dropped,
        name: cause.name.clone(),
        bins: (0..)
            .zip(&history.bins)
            .filter_map(|(number, bin)| Some((number, *bin.failed.get(&index)?)))
            .collect(),
    });
    DirectionTraffic {
        entered: count(history.entered),
        delivered: count(history.delivered),
        lost: count(history.lost),
        dropped: count(history.dropped),
        held: count(history.held),
        bins,
        causes: causes.collect(),
        ..DirectionTraffic::default()
    }
}

fn delay(delays: &history::Delays) -> Option<Delay> {
    let quantile = |q| delays.quantile(q).as_secs_f64();
    let seconds = Span::as_secs_f64;
    (delays.count() > 0).then(|| Delay {
        min_s: seconds(delays.min()),
        p5_s: quantile(0.05),
        p50_s: quantile(0.5),
        p95_s: quantile(0.95),
        max_s: seconds(delays.max()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_one_that_a_shell_takes() {
        let words = ["emulate", "--inside", "7", "geo", "--far", "it's far", "--", "sh", "-c", "echo $X", ""];
        let line = command_line(words.iter().map(OsString::from));
        assert_eq!(line, r"farcast emulate geo --far 'it'\''s far' -- sh -c 'echo $X' ''");
    }
}
