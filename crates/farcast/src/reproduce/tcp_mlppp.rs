//! Zaghloul, Frost and Mohammad, "Modeling TCP long file transfer latency over long delay wireless multilink PPP" (IEEE
//! Communications Letters 2005): its closed-form model. The bundle itself is not simulated here.
//!
//! Units and windows are inferred: 1 MB is 1 024 000 octets, 1 KB is 1024, and a window is in whole packets, rounded up.
//! Of the readings that were tried only this one gives all ten printed predictions, so that these agree says little by
//! itself; that one reading serves all ten says more.

use std::num::NonZeroU32;

use farcast_core::units::Bytes;
use farcast_core::{Probability, Span};
use farcast_model::mlppp::{Bundle, Model};
use farcast_model::{ModelError, Path};

use super::Paper;
use super::row::{Judged, Row, Rule, Verdict};
use super::rules;
use super::runner::Runner;
use crate::Failure;

pub(super) const PAPER: Paper = Paper {
    name: "tcp-mlppp",
    citation: "S. Zaghloul, V. Frost and A. J. Mohammad, Modeling TCP long file transfer latency over long delay \
               wireless multilink PPP (IEEE Communications Letters 2005)",
    settings: 0,
    replications: (0, 0),
    reproduce,
};

/// When a prediction agrees.
const RULE: &str =
    "a prediction of the model agrees if it lies within 0.5 % of the printed one or rounds to its digits";
/// Why a measurement has no verdict.
const MEASURED: &str =
    "a measurement has no verdict until the bundle is simulated; the number beside it is the model's";
/// Why a figure has none.
const FIGURE: &str = "the paper has it in a figure only";
/// The rule's share of the printed number.
const CLOSE: f64 = 0.005;
/// 1 MB and 1 KB of the paper, inferred.
const MEGABYTE: f64 = 1_024_000.0;
const KILOBYTE: u32 = 1024;

/// One column of a table.
struct Cell {
    links: u32,
    megabytes: f64,
    /// In packets.
    window: f64,
    /// In minutes, and with how many decimals it is printed.
    predicted: (f64, i32),
    /// In minutes.
    measured: f64,
}

impl Cell {
    const fn new(links: u32, megabytes: f64, window: f64, predicted: (f64, i32), measured: f64) -> Self {
        Self { links, megabytes, window, predicted, measured }
    }

    fn ours(&self) -> Result<f64, ModelError> {
        minutes(iridium(self.links, self.window, 50), self.megabytes, 1448)
    }
}

const TABLE_1: [Cell; 4] = [
    Cell::new(8, 1.38, 34.0, (12.5, 1), 11.0),
    Cell::new(8, 5.62, 34.0, (51.0, 0), 46.0),
    Cell::new(8, 20.6, 34.0, (187.0, 0), 180.0),
    Cell::new(8, 35.7, 34.0, (324.0, 0), 315.0),
];

/// At 7 links the printed window, 41 KB, gives 29 packets; 30 follow from any size between 41.01 and 42.42 KB.
const TABLE_2: [Cell; 6] = [
    Cell::new(3, 4.82, 12.0, (98.1, 1), 96.0),
    Cell::new(4, 0.85, 16.0, (13.4, 1), 15.0),
    Cell::new(5, 1.91, 21.0, (24.1, 1), 21.0),
    Cell::new(6, 1.39, 25.0, (15.4, 1), 13.0),
    Cell::new(7, 3.40, 30.0, (33.2, 1), 30.0),
    Cell::new(8, 1.40, 34.0, (12.7, 1), 12.0),
];

/// Minutes between drops of a link in figure 4, and loss probabilities and minutes in figure 5.
const FIGURE_4: [u64; 3] = [50, 30, 20];
const FIGURE_5: ([(&str, f64); 4], [u64; 5]) =
    ([("1e-5", 1e-5), ("1e-4", 1e-4), ("5e-4", 5e-4), ("1e-3", 1e-3)], [10, 20, 30, 50, 100]);

fn reproduce(_: &Runner<'_>) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    table("Table I: 8 links", &TABLE_1, |cell| format!("{} MB", cell.megabytes), &mut rows)?;
    let name = |cell: &Cell| format!("{} links, {:.2} MB", cell.links, cell.megabytes);
    table("Table II: 3 to 8 links", &TABLE_2, name, &mut rows)?;
    figure_4(&mut rows)?;
    figure_5(&mut rows)?;
    Ok(rows)
}

/// The predictions of a table, then its measurements.
fn table(
    title: &str,
    cells: &[Cell],
    name: impl Fn(&Cell) -> String,
    rows: &mut Vec<Row>,
) -> Result<(), ModelError> {
    for cell in cells {
        let place = ("predicted transfer time, min", title, &*name(cell));
        rows.push(Row::new(PAPER.name, place, 2, prediction(cell.predicted, cell.ours()?)));
    }
    for cell in cells {
        let place = ("measured transfer time, min", title, &*name(cell));
        rows.push(Row::new(PAPER.name, place, 2, measurement(cell.measured, cell.ours()?)));
    }
    Ok(())
}

/// What the paper plots as a line; its measurements are means of eight transfers each.
fn figure_4(rows: &mut Vec<Row>) -> Result<(), ModelError> {
    for interval_min in FIGURE_4 {
        let ours = minutes(iridium(6, 25.0, interval_min), 10.0, 1448)?;
        let column = format!("a drop of a link every {interval_min} min");
        let place = ("transfer time, min", "Figure 4: 10 MB over 6 links", &*column);
        rows.push(Row::new(PAPER.name, place, 2, rules::unpublished(ours, None, FIGURE)));
    }
    Ok(())
}

fn figure_5(rows: &mut Vec<Row>) -> Result<(), ModelError> {
    let (losses, intervals_min) = FIGURE_5;
    for (name, p) in losses {
        for interval_min in intervals_min {
            let ours = minutes(inmarsat(p, interval_min), 100.0, KILOBYTE)?;
            let (item, column) =
                (format!("transfer time at p = {name}, min"), format!("every {interval_min} min"));
            let place = (&*item, "Figure 5: 100 MB over 4 Inmarsat links, a drop of a link", &*column);
            rows.push(Row::new(PAPER.name, place, 2, rules::unpublished(ours, None, FIGURE)));
        }
    }
    Ok(())
}

/// The bundle of the tables and of figure 4.
fn iridium(links: u32, window: f64, interval_min: u64) -> Bundle {
    let (rtt, timeout) = (Span::from_secs(19), Span::from_secs(60));
    bundle(links, interval_min, path(5e-4, rtt, timeout, window))
}

/// The bundle of figure 5, for which T0 is not given: as in the tables.
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

fn prediction((published, decimals): (f64, i32), farcast: f64) -> Judged {
    // Half a unit of the last printed digit, or the share, whichever is more.
    let half = (CLOSE * published).max(0.5 * 10_f64.powi(-decimals));
    let within = (published - half, published + half);
    let agrees = within.0 <= farcast && farcast <= within.1;
    let verdict = if agrees { Verdict::Agrees } else { Verdict::Differs };
    let rule = Rule { sentence: RULE, agrees_within: Some(within) };
    Judged { published: Some(published), farcast, ci95_half_width: None, verdict, rule }
}

fn measurement(published: f64, farcast: f64) -> Judged {
    let rule = Rule { sentence: MEASURED, agrees_within: None };
    Judged {
        published: Some(published),
        farcast,
        ci95_half_width: None,
        verdict: Verdict::Undetermined,
        rule,
    }
}
