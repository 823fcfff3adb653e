//! Report of an emulation that is over.

use farcast_capture::recorder::Summary;
use farcast_core::Span;
use farcast_core::stage::Figure;
use serde::Serialize;

use super::Plan;
use crate::link::{Counts, TerminalCounts};
use crate::relay::{RelayView, Scheduling, Strays, WayView};

/// Report of a run. Times are in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Seed of all random draws.
    pub seed: u64,
    /// The relay kept time: the 99th percentile of lateness is within its limit, and no packet was dropped at a device.
    /// A run that is not valid permits no conclusions about the link.
    pub valid: bool,
    /// Duration of the run.
    pub duration_s: f64,
    /// Direction from the hub to the terminals.
    pub forward: WayReport,
    /// Direction from the terminals to the hub.
    #[serde(rename = "return")]
    pub back: WayReport,
    /// Counts of each terminal, by number.
    pub terminals: Vec<TerminalCounts>,
    /// Lateness of packets.
    pub lateness: LatenessReport,
    /// Packets of hosts that the link does not carry.
    pub strays: Strays,
    /// Packets that the kernel dropped at devices because the relay did not read them in time. They are not losses of
    /// the link.
    pub dropped_by_devices: u64,
    /// Figures that stages report.
    pub stages: Vec<StageReport>,
    /// Records and captured packets that the writer could not keep up with.
    pub not_recorded: u64,
}

/// Report of one direction.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WayReport {
    /// Counts of packets.
    #[serde(flatten)]
    pub counts: Counts,
    /// Delivered rate, in bit/s over the whole run.
    pub delivered_bit_per_s: f64,
}

/// Lateness of packets: the delay between the release by the link and the write to the device.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LatenessReport {
    /// Number of packets.
    pub packets: u64,
    /// The median.
    pub p50_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
    /// The 99.9th percentile.
    pub p999_s: f64,
    /// The longest.
    pub max_s: f64,
    /// Limit of the 99th percentile.
    pub limit_s: f64,
    /// Share of the time in which an arriving packet would have waited longer than the limit to be read.
    pub stalled_share: f64,
    /// The 99th percentile is within its limit, and the stalled share is at most one in a hundred. Of fewer than 250
    /// packets two may be late: one timer in a thousand is late by milliseconds on any machine.
    pub within: bool,
    /// Scheduling of the relay's thread.
    pub scheduling: Scheduling,
    /// The histogram.
    pub histogram: Vec<LatenessRow>,
}

/// A row of the histogram.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LatenessRow {
    /// Lower bound, included.
    pub from_s: f64,
    /// Upper bound, excluded; the last row has none.
    pub below_s: Option<f64>,
    /// Number of packets.
    pub packets: u64,
}

/// Figures of a stage.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StageReport {
    /// Name of the stage.
    pub stage: String,
    /// Figures: a name with its unit, and a number, if there is one.
    pub figures: Vec<(&'static str, Option<f64>)>,
}

impl Report {
    pub(super) fn new(
        plan: &Plan,
        view: &RelayView,
        figures: &[(String, Vec<Figure>)],
        recorded: Option<Summary>,
        dropped_by_devices: u64,
    ) -> Self {
        let duration_s = view.state.now.as_secs_f64();
        let way = |view: &WayView| {
            let bits = view.counts.delivered.octets as f64 * 8.0;
            let delivered_bit_per_s = if duration_s > 0.0 { bits / duration_s } else { 0.0 };
            WayReport { counts: view.counts, delivered_bit_per_s }
        };
        let stage = |(stage, figures): &(String, Vec<Figure>)| StageReport {
            stage: stage.clone(),
            figures: figures.iter().map(|figure| (figure.name, figure.value)).collect(),
        };
        let lateness = LatenessReport::new(plan.latest(), view);
        // A run that carried nothing cannot be judged.
        let passed = [&view.forward, &view.back].iter().any(|way| way.counts.delivered.packets > 0);
        Self {
            seed: plan.link.seed,
            valid: passed && lateness.within && dropped_by_devices == 0,
            duration_s,
            forward: way(&view.forward),
            back: way(&view.back),
            terminals: view.terminals.clone(),
            lateness,
            strays: view.state.strays,
            dropped_by_devices,
            stages: figures.iter().map(stage).collect(),
            not_recorded: recorded.map_or(0, |summary| summary.missed),
        }
    }
}

/// Quantile of lateness that decides validity.
const JUDGED_AT: f64 = 0.99;
/// Number of packets that may always be late, and a half, so that the quantile lies between two packets.
const LATE_ALLOWED: f64 = 2.5;

impl LatenessReport {
    /// Computes the report of a run so far.
    pub fn new(limit: Span, view: &RelayView) -> Self {
        let lateness = &view.state.lateness;
        let p99 = lateness.quantile(0.99);
        let judged = lateness
            .quantile(JUDGED_AT.min(1.0 - LATE_ALLOWED / (lateness.count() as f64).max(LATE_ALLOWED)));
        let duration = view.state.now.as_secs_f64();
        let stalled_share = if duration > 0.0 { view.state.stalled.as_secs_f64() / duration } else { 0.0 };
        let row = |row: &farcast_capture::lateness::LatenessRow| LatenessRow {
            from_s: row.from.as_secs_f64(),
            below_s: row.below.map(Span::as_secs_f64),
            packets: row.count,
        };
        Self {
            packets: lateness.count(),
            p50_s: lateness.quantile(0.5).as_secs_f64(),
            p99_s: p99.as_secs_f64(),
            p999_s: lateness.quantile(0.999).as_secs_f64(),
            max_s: lateness.max().as_secs_f64(),
            limit_s: limit.as_secs_f64(),
            stalled_share,
            within: judged <= limit && stalled_share <= 1.0 - JUDGED_AT,
            scheduling: view.state.scheduling,
            histogram: lateness.rows().iter().map(row).collect(),
        }
    }
}
