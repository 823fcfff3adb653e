//! Study of PGM without congestion control over a tree with a satellite link: ns-2's `Agent/PGM` beside farcast's.

mod cell;

use farcast_sim::outcome::{FlowCounts, TreeReplication};
use farcast_sim::scenario::TreeScenario;
use farcast_stats::Summary;

use crate::study::{Judged, Row, RowPlace, Rule, Runner, Study, StudyError, Verdict, rules};
use cell::ReferenceCell;

pub(super) const STUDY: Study = Study {
    name: "pgm-reference",
    citation: "PGM over a tree with a satellite link, as ns-2.35 does it (vectors/ns2/pgm.csv)",
    settings: CELLS,
    replications: (5, 2),
    columns: super::PUBLISHED,
    needs: super::nothing,
    reproduce,
    plots: super::no_plots,
};

/// Table of the measurements.
const TABLE: &str = include_str!("../../vectors/ns2/pgm.csv");
/// Number of the measurements.
const CELLS: u64 = 11;
/// Relative deviation from ns-2's number that always agrees.
const CLOSE: f64 = 0.05;
const RULE: &str = "a number agrees within 5 % of the measured mean, or if that lies in the 95 % prediction interval for \
                    the mean of as many runs as were measured";
/// Number of events below which a difference does not matter.
const FEW: f64 = 1.5;
const TINY: &str = "of one event or none it does not matter who had it";

/// A measure: its name, the column of the table, its decimals, and our value.
type Measure = (&'static str, &'static str, usize, fn(&ReferenceCell<'_>, &TreeReplication) -> Option<f64>);

const MEASURES: [Measure; 12] = [
    ("ODATA sent", "odata_sent", 0, |_, one| count(one, "odata")),
    ("RDATA sent", "rdata_sent", 0, |_, one| count(one, "rdata")),
    ("NAKs at the source", "naks_at_source", 0, |_, one| {
        Some(one.edge("access")?.back.packets_of("nak") as f64)
    }),
    ("goodput of R1, kbit/s", "r1_goodput_bps", 1, |cell, one| goodput(cell, one, "R1")),
    ("goodput of R6, kbit/s", "r6_goodput_bps", 1, |cell, one| goodput(cell, one, cell.first_of_b())),
    ("R6 recovered", "r6_recovered", 0, |cell, one| Some(heard(one, cell.first_of_b())?.repairs as f64)),
    ("NAKs of R6", "r6_naks", 0, |cell, one| Some(one.node(cell.first_of_b())?.naks as f64)),
    ("RDATA in vain at R1", "r1_duplicate_rdata", 0, |cell, one| useless(cell, one, "R1")),
    ("RDATA in vain at R6", "r6_duplicate_rdata", 0, |cell, one| useless(cell, one, cell.first_of_b())),
    ("repair latency of R6, mean, s", "r6_repair_latency_avg_s", 3, |cell, one| {
        heard(one, cell.first_of_b())?.repair_latency_mean_s
    }),
    ("repair latency of R6, longest, s", "r6_repair_latency_max_s", 3, |cell, one| {
        Some(heard(one, cell.first_of_b())?.repair_latency_max_s)
    }),
    ("goodput of TCP, kbit/s", "tcp_goodput_bps", 1, |_, one| {
        let flow = one.common.flows.first()?;
        let FlowCounts::Tcp(_) = &flow.counts else { return None };
        Some(flow.goodput_bit_per_s / 1e3)
    }),
];

fn count(one: &TreeReplication, figure: &str) -> Option<f64> {
    Some(one.common.transfer.as_ref()?.count(figure)? as f64)
}

fn heard<'a>(one: &'a TreeReplication, receiver: &str) -> Option<&'a farcast_sim::outcome::HeardOutcome> {
    one.node(receiver)?.heard.as_ref()
}

/// Returns the goodput in kbit/s over the time for which the source sends, as in the measurement.
fn goodput(cell: &ReferenceCell<'_>, one: &TreeReplication, receiver: &str) -> Option<f64> {
    Some(heard(one, receiver)?.useful_octets as f64 * 8.0 / cell.duration_s() / 1e3)
}

fn useless(cell: &ReferenceCell<'_>, one: &TreeReplication, receiver: &str) -> Option<f64> {
    Some(heard(one, receiver)?.useless_octets as f64 / cell.payload())
}

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let mut rows = Vec::new();
    for cell in ReferenceCell::all(TABLE) {
        let replications = runner.run(&TreeScenario::read(&cell.document()?)?)?;
        for (item, column, decimals, ours) in MEASURES {
            let published = cell.mean(column);
            let ours: Option<Vec<f64>> = replications.iter().map(|one| ours(&cell, one)).collect();
            let (Some(published), Some(ours)) = (published, ours) else { continue };
            let scale = if column.ends_with("_bps") { 1e3 } else { 1.0 };
            let judged = judge(published / scale, cell.runs(), &ours)?;
            rows.push(Row::new(
                STUDY.name,
                RowPlace { item, row: &cell.case(), column: &cell.column() },
                decimals,
                judged,
            ));
        }
    }
    rows.sort_by(|a, b| a.row.cmp(&b.row));
    Ok(rows)
}

/// Returns the verdict on one number.
fn judge(published: f64, runs: u64, ours: &[f64]) -> Result<Judged, StudyError> {
    let summary = Summary::of(ours)?;
    let mut within = (published * (1.0 - CLOSE), published * (1.0 + CLOSE));
    if summary.n > 1 {
        let (low, high) = rules::mean(published, runs, &summary)?.rule.agrees_within.unwrap_or(within);
        // The interval for their mean, about ours, has the same width as one for ours, about theirs.
        let half = (high - low) / 2.0;
        within = (within.0.min(published - half), within.1.max(published + half));
    }
    let (verdict, sentence) = match (within.0..=within.1).contains(&summary.mean) {
        true => (Verdict::Agrees, RULE),
        false if published.max(summary.mean) < FEW => (Verdict::Undetermined, TINY),
        false => (Verdict::Differs, RULE),
    };
    Ok(Judged {
        published: Some(published),
        farcast: summary.mean,
        ci95_half_width: summary.ci95_half_width,
        verdict,
        rule: Rule { sentence, agrees_within: Some(within) },
    })
}
