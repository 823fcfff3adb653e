//! What an emulation has to say when it is over.

use farcast_capture::recorder::Summary;
use farcast_core::Span;
use farcast_core::stage::Figure;
use serde::Serialize;

use super::Plan;
use crate::link::{Counts, TerminalCounts};
use crate::relay::{Scheduling, Strays, View, WayView};

/// Everything about a run. Times are in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// What all draws followed from.
    pub seed: u64,
    /// Whether the relay kept time: the 99th percentile of lateness is within its limit, and no packet was dropped at a
    /// device. Of a run that is not valid nothing can be concluded about the link.
    pub valid: bool,
    /// How long it ran.
    pub duration_s: f64,
    /// From the hub to the terminals.
    pub forward: WayReport,
    /// From the terminals to the hub.
    #[serde(rename = "return")]
    pub back: WayReport,
    /// Each terminal, by number.
    pub terminals: Vec<TerminalCounts>,
    /// How late packets left.
    pub lateness: LatenessReport,
    /// What hosts sent that is not the link's to carry.
    pub strays: Strays,
    /// Packets that the kernel dropped at devices because the relay did not read them in time: no losses of the link.
    pub dropped_by_devices: u64,
    /// What stages report of themselves.
    pub stages: Vec<StageReport>,
    /// Records and captured packets that the writer could not keep up with.
    pub not_recorded: u64,
}

/// One way.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WayReport {
    /// What has passed.
    #[serde(flatten)]
    pub counts: Counts,
    /// What was delivered, in bit/s over the whole run.
    pub delivered_bit_per_s: f64,
}

/// How late packets were written, beside when the link let them go.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LatenessReport {
    /// Packets.
    pub packets: u64,
    /// The median.
    pub p50_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
    /// The 99.9th percentile.
    pub p999_s: f64,
    /// The longest.
    pub max_s: f64,
    /// What the 99th percentile may be.
    pub limit_s: f64,
    /// The share of the time in which a packet that came would have waited to be read for longer than the limit.
    pub stalled_share: f64,
    /// Whether the 99th percentile is no more than its limit, and that share no more than one in a hundred. Of fewer
    /// than 250 packets two may be late: one timer in a thousand is late by milliseconds on any machine.
    pub within: bool,
    /// How the relay was scheduled.
    pub scheduling: Scheduling,
    /// The histogram.
    pub histogram: Vec<LatenessRow>,
}

/// A row of the histogram.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LatenessRow {
    /// From this on.
    pub from_s: f64,
    /// To below this; the last has no end.
    pub below_s: Option<f64>,
    /// Packets.
    pub packets: u64,
}

/// A stage.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StageReport {
    /// What it is called.
    pub stage: String,
    /// What it reports: a name with its unit, and a number, if there is one.
    pub figures: Vec<(&'static str, Option<f64>)>,
}

impl Report {
    pub(super) fn new(
        plan: &Plan,
        view: &View,
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
        // Of what carried nothing there is nothing to judge.
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

/// The quantile of lateness that is judged.
const JUDGED_AT: f64 = 0.99;
/// Packets that may be late where they are few, and a half, so that a quantile lies between two of them.
const LATE_ALLOWED: f64 = 2.5;

impl LatenessReport {
    /// That of a run so far.
    pub fn new(limit: Span, view: &View) -> Self {
        let lateness = &view.state.lateness;
        let p99 = lateness.quantile(0.99);
        let judged = lateness
            .quantile(JUDGED_AT.min(1.0 - LATE_ALLOWED / (lateness.count() as f64).max(LATE_ALLOWED)));
        let duration = view.state.now.as_secs_f64();
        let stalled_share = if duration > 0.0 { view.state.stalled.as_secs_f64() / duration } else { 0.0 };
        let row = |row: &farcast_capture::lateness::Row| LatenessRow {
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
