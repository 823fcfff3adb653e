//! Zaghloul, Frost and Mohammad, "Modeling TCP long file transfer latency over long delay wireless multilink PPP" (IEEE
//! Communications Letters 2005): its closed-form model, and TCP over an emulated bundle whose calls drop.
//!
//! Units and windows are inferred: 1 MB is 1 024 000 octets, 1 KB is 1024, and a window is in whole packets, rounded
//! up. Of the readings that were tried, only this one gives all ten printed predictions. Their agreement therefore
//! says little by itself; that a single reading serves all ten says more.

mod calls;
mod simulated;

use std::num::NonZeroU32;

use farcast_core::units::Bytes;
use farcast_core::{Probability, Span};
use farcast_model::mlppp::{Bundle, Model};
use farcast_model::{ModelError, Path};
use farcast_stats::Summary;

use simulated::{Iridium, Transfers};

use crate::study::{Judged, Row, RowPlace, Rule, Runner, Study, StudyError, Verdict, rules};

pub(super) const STUDY: Study = Study {
    name: "tcp-mlppp",
    citation: "S. Zaghloul, V. Frost and A. J. Mohammad, Modeling TCP long file transfer latency over long delay \
               wireless multilink PPP (IEEE Communications Letters 2005)",
    settings: (TABLE_1.len() + TABLE_2.len() + FIGURE_4.len() + FIGURE_5.0.len() * FIGURE_5.1.len()) as u64,
    replications: (200, 4),
    columns: super::PUBLISHED,
    needs: super::nothing,
    reproduce,
    plots: super::no_plots,
};

/// Rule for the verdict on a prediction.
const RULE: &str =
    "a prediction of the model agrees if it lies within 0.5 % of the printed one or rounds to its digits";
/// Reason for which a measurement beside the model's number has no verdict.
const MODELLED: &str =
    "a measurement beside the model's number has no verdict, it has one beside the simulated";
/// Reason for which the round trip has no verdict.
const INPUT: &str = "the round trip is an input of the paper's model, the same for all bundles; ours comes out of the \
                     simulation, by Little's law, and the simulated transfer times have the verdict";
/// Reason for which counts have no verdict.
const UNCOUNTED: &str = "the paper does not print it; its model takes a timeout for every call that drops";
/// Reason for which a figure has no verdict.
const FIGURE: &str = "the paper has it in a figure only";
const FIGURE_5_ONLY: &str = "the paper has it in a figure only; ours are 10 replications at most";
/// Share of the printed number in the rule.
const CLOSE: f64 = 0.005;
/// Octets of the paper's 1 MB and, below, 1 KB; inferred.
const MEGABYTE: f64 = 1_024_000.0;
const KILOBYTE: u32 = 1024;

/// One column of a table.
struct ColumnCell {
    links: u32,
    megabytes: f64,
    /// Window in packets.
    window: u32,
    /// Predicted time in minutes, and the number of its printed decimals.
    predicted: f64,
    decimals: i32,
    /// Measured time in minutes.
    measured: f64,
}

impl ColumnCell {
    /// Returns the model's time in minutes.
    fn modelled(&self) -> Result<f64, ModelError> {
        minutes(iridium(self.links, self.window, DROPS), self.megabytes, 1448)
    }

    fn simulate(&self, runner: &Runner<'_>) -> Result<Transfers, StudyError> {
        let Self { links, megabytes, window, .. } = *self;
        Iridium { links, megabytes, window, interval_min: DROPS }.simulate(runner)
    }
}

const TABLE_1: [ColumnCell; 4] = [
    ColumnCell { links: 8, megabytes: 1.38, window: 34, predicted: 12.5, decimals: 1, measured: 11.0 },
    ColumnCell { links: 8, megabytes: 5.62, window: 34, predicted: 51.0, decimals: 0, measured: 46.0 },
    ColumnCell { links: 8, megabytes: 20.6, window: 34, predicted: 187.0, decimals: 0, measured: 180.0 },
    ColumnCell { links: 8, megabytes: 35.7, window: 34, predicted: 324.0, decimals: 0, measured: 315.0 },
];

/// Columns of Table II. At 7 links the printed window, 41 KB, gives 29 packets; 30 follow from any size between 41.01
/// and 42.42 KB.
const TABLE_2: [ColumnCell; 6] = [
    ColumnCell { links: 3, megabytes: 4.82, window: 12, predicted: 98.1, decimals: 1, measured: 96.0 },
    ColumnCell { links: 4, megabytes: 0.85, window: 16, predicted: 13.4, decimals: 1, measured: 15.0 },
    ColumnCell { links: 5, megabytes: 1.91, window: 21, predicted: 24.1, decimals: 1, measured: 21.0 },
    ColumnCell { links: 6, megabytes: 1.39, window: 25, predicted: 15.4, decimals: 1, measured: 13.0 },
    ColumnCell { links: 7, megabytes: 3.40, window: 30, predicted: 33.2, decimals: 1, measured: 30.0 },
    ColumnCell { links: 8, megabytes: 1.40, window: 34, predicted: 12.7, decimals: 1, measured: 12.0 },
];

/// Round trip of the tables, in seconds.
const ROUND_TRIP_S: f64 = 19.0;
/// Minutes between drops of a link in the tables.
const DROPS: u64 = 50;
/// Links, megabytes, and window in packets, of figure 4.
const SIX_LINKS: (u32, f64, u32) = (6, 10.0, 25);
/// Minutes between drops of a link in figure 4, and loss probabilities and minutes in figure 5.
const FIGURE_4: [u64; 3] = [50, 30, 20];
const FIGURE_5: ([(&str, f64); 4], [u64; 5]) =
    ([("1e-5", 1e-5), ("1e-4", 1e-4), ("5e-4", 5e-4), ("1e-3", 1e-3)], [10, 20, 30, 50, 100]);

/// Most replications of a point of figure 5.
const FEW: u64 = 10;

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let mut rows = Vec::new();
    table(runner, "Table I: 8 links", &TABLE_1, |cell| format!("{} MB", cell.megabytes), &mut rows)?;
    let name = |cell: &ColumnCell| format!("{} links, {:.2} MB", cell.links, cell.megabytes);
    table(runner, "Table II: 3 to 8 links", &TABLE_2, name, &mut rows)?;
    let count = figure_4(runner, &mut rows)?;
    let quick = count < STUDY.replications.0;
    figure_5(runner, quick, &mut rows)?;
    rows.push(drops(if quick { 100 } else { 1000 })?);
    Ok(rows)
}

/// Adds the rows of a table: the model's predictions, the measurements beside the simulation and beside the model,
/// and further results of the simulation.
fn table(
    runner: &Runner<'_>,
    title: &str,
    cells: &[ColumnCell],
    name: impl Fn(&ColumnCell) -> String,
    rows: &mut Vec<Row>,
) -> Result<(), StudyError> {
    let transfers = cells.iter().map(|cell| cell.simulate(runner)).collect::<Result<Vec<_>, _>>()?;
    let items: [(&str, usize, Item); 6] = [
        ("predicted transfer time, min", 2, |cell, _| {
            Ok(prediction(cell.predicted, cell.decimals, cell.modelled()?))
        }),
        ("simulated transfer time, min", 2, |cell, ours| {
            Ok(rules::mean(cell.measured, 1, &ours.minutes()?)?)
        }),
        ("measured transfer time, min", 2, |cell, _| {
            Ok(beside(cell.measured, cell.modelled()?, None, MODELLED))
        }),
        ("round trip, s", 1, |_, ours| {
            let Summary { mean, ci95_half_width, .. } = ours.round_trip_s()?;
            Ok(beside(ROUND_TRIP_S, mean, ci95_half_width, INPUT))
        }),
        ("calls that drop in a transfer", 1, |_, ours| Ok(counted(&ours.drops()?))),
        ("timeouts in a transfer", 1, |_, ours| Ok(counted(&ours.timeouts()?))),
    ];
    for (item, decimals, judge) in items {
        for (cell, ours) in cells.iter().zip(&transfers) {
            let place = RowPlace { item, row: title, column: &name(cell) };
            rows.push(Row::new(STUDY.name, place, decimals, judge(cell, ours)?));
        }
    }
    Ok(())
}

/// Returns the verdict on an item of a table.
type Item = fn(&ColumnCell, &Transfers) -> Result<Judged, StudyError>;

/// Adds the rows of figure 4: the paper plots the model as a line, and means of eight measured transfers with
/// quartiles. Returns the least number of replications of a point.
fn figure_4(runner: &Runner<'_>, rows: &mut Vec<Row>) -> Result<u64, StudyError> {
    let (links, megabytes, window) = SIX_LINKS;
    let simulate = |interval_min| {
        Iridium { links, megabytes, window, interval_min }.simulate(runner).map(|it| (interval_min, it))
    };
    let points = FIGURE_4.into_iter().map(simulate).collect::<Result<Vec<_>, _>>()?;
    let mut add = |item: &str, interval_min: u64, (ours, half): (f64, Option<f64>)| {
        let column = format!("a drop of a link every {interval_min} min");
        let place = RowPlace { item, row: "Figure 4: 10 MB over 6 links", column: &column };
        rows.push(Row::new(STUDY.name, place, 2, rules::unpublished(ours, half, FIGURE)));
    };
    for interval_min in FIGURE_4 {
        let ours = minutes(iridium(links, window, interval_min), megabytes, 1448)?;
        add("transfer time, min", interval_min, (ours, None));
    }
    for (interval_min, transfers) in &points {
        let ours = transfers.minutes()?;
        add("simulated transfer time, min", *interval_min, (ours.mean, ours.ci95_half_width));
    }
    for (name, p) in [("25 %", 0.25), ("75 %", 0.75)] {
        for (interval_min, transfers) in &points {
            let item = format!("{name} quantile of the simulated, min");
            add(&item, *interval_min, (transfers.quantile(p)?, None));
        }
    }
    Ok(points.iter().map(|(_, transfers)| transfers.count() as u64).min().unwrap_or(0))
}

/// Adds the rows of figure 5, which the paper only predicts. All its points are simulated, or two of them if `quick`.
fn figure_5(runner: &Runner<'_>, quick: bool, rows: &mut Vec<Row>) -> Result<(), StudyError> {
    let (losses, intervals_min) = FIGURE_5;
    let mut add = |item: &str, interval_min: u64, judged| {
        let column = format!("every {interval_min} min");
        let place = RowPlace {
            item,
            row: "Figure 5: 100 MB over 4 Inmarsat links, a drop of a link",
            column: &column,
        };
        rows.push(Row::new(STUDY.name, place, 2, judged));
    };
    for (name, p) in losses {
        for interval_min in intervals_min {
            let ours = minutes(inmarsat(p, interval_min), 100.0, KILOBYTE)?;
            let item = format!("transfer time at p = {name}, min");
            add(&item, interval_min, rules::unpublished(ours, None, FIGURE));
        }
        for interval_min in intervals_min {
            if quick && !QUICK_POINTS.contains(&(name, interval_min)) {
                continue;
            }
            let most = if quick { 1 } else { FEW };
            let ours = simulated::inmarsat(runner, most, name, interval_min)?.minutes()?;
            let item = format!("simulated transfer time at p = {name}, min");
            add(&item, interval_min, rules::unpublished(ours.mean, ours.ci95_half_width, FIGURE_5_ONLY));
        }
    }
    Ok(())
}

/// Returns the row of the share of our samples of calls that the paper's test rejects. Our calls are exponential, so
/// it rejects as often as its level says, and a little more because the mean is estimated.
fn drops(samples: u64) -> Result<Row, StudyError> {
    const WHY: &str = "the test of the times between drops agrees if its level, 5 %, lies in the 95 % interval of the share of \
                       our samples that it rejects (a fitted mean makes it 5 to 6 %); the paper's sample passed";
    let (rejected, half) = rules::our_share(calls::rejected(DRAWS, samples)?, samples)?;
    let mut judged = rules::unpublished(rejected, Some(half), WHY);
    judged.published = Some(5.0);
    judged.verdict = if (rejected - 5.0).abs() <= half { Verdict::Agrees } else { Verdict::Differs };
    let place = RowPlace {
        item: "samples that chi-square rejects, %",
        row: "Figure 2: 394 calls of a channel",
        column: "20 classes",
    };
    Ok(Row::new(STUDY.name, place, 1, judged))
}

/// Seed of the samples of calls.
const DRAWS: u64 = 1;

/// Points of figure 5 that are simulated with `--quick`.
const QUICK_POINTS: [(&str, u64); 2] = [("1e-5", 50), ("1e-3", 50)];

/// Returns the bundle of the tables and of figure 4.
fn iridium(links: u32, window: u32, interval_min: u64) -> Bundle {
    let (rtt, timeout) = (Span::from_secs_f64(ROUND_TRIP_S), Span::from_secs(60));
    bundle(links, interval_min, path(5e-4, rtt, timeout, window.into()))
}

/// Returns the bundle of figure 5. The paper does not give its T0; this one is that of the tables.
fn inmarsat(p: f64, interval_min: u64) -> Bundle {
    let (rtt, timeout) = (Span::from_millis(610), Span::from_secs(60));
    bundle(4, interval_min, path(p, rtt, timeout, 40.0))
}

fn bundle(links: u32, interval_min: u64, path: Path) -> Bundle {
    Bundle { links, time_between_drops: Span::from_secs(60 * interval_min), path }
}

fn path(p: f64, rtt: Span, timeout: Span, window: f64) -> Path {
    let loss = Probability::new(p).unwrap_or_default();
    Path { loss, rtt, timeout, packets_per_ack: 2, window: Some(window) }
}

fn minutes(bundle: Bundle, megabytes: f64, mss: u32) -> Result<f64, ModelError> {
    let mss = NonZeroU32::new(mss).unwrap_or(NonZeroU32::MIN);
    let size = Bytes((megabytes * MEGABYTE).round() as u64);
    Ok(Model::new(bundle)?.transfer_time_s(size, mss) / 60.0)
}

fn prediction(published: f64, decimals: i32, farcast: f64) -> Judged {
    // Half a unit of the last printed digit, or the share if that is more.
    let half = (CLOSE * published).max(0.5 * 10_f64.powi(-decimals));
    let within = (published - half, published + half);
    let agrees = within.0 <= farcast && farcast <= within.1;
    let verdict = if agrees { Verdict::Agrees } else { Verdict::Differs };
    let rule = Rule { sentence: RULE, agrees_within: Some(within) };
    Judged { published: Some(published), farcast, ci95_half_width: None, verdict, rule }
}

/// Returns a published number beside another, without a verdict.
fn beside(published: f64, farcast: f64, ci95_half_width: Option<f64>, sentence: &'static str) -> Judged {
    let rule = Rule { sentence, agrees_within: None };
    Judged { published: Some(published), farcast, ci95_half_width, verdict: Verdict::Undetermined, rule }
}

fn counted(ours: &Summary) -> Judged {
    rules::unpublished(ours.mean, ours.ci95_half_width, UNCOUNTED)
}
