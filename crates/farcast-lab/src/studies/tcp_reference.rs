//! Study of TCP's goodput over one link: that measured by ns-2, ns-3 and the Linux kernel, beside that of farcast's
//! TCP.

use farcast_core::Span;
use farcast_model::{Path, pftk};
use farcast_sim::outcome::{FlowCounts, Replication};
use farcast_sim::scenario::Scenario;
use farcast_stats::Summary;

use crate::shipped;
use crate::study::{Judged, Row, RowPlace, Rule, Runner, Study, StudyError, Verdict, rules};

pub(super) const STUDY: Study = Study {
    name: "tcp-reference",
    citation: "TCP over one link of 2 Mbit/s, as ns-2.35, ns-3.37 and Linux 6.18 measured it (vectors/tcp/reference.csv)",
    settings: CELLS,
    replications: (10, 2),
    columns: super::PUBLISHED,
    needs: super::nothing,
    reproduce,
    plots: super::no_plots,
};

/// Table of the measurements.
const TABLE: &str = include_str!("../../vectors/tcp/reference.csv");
/// Number of the measurements.
const CELLS: u64 = 138;

const LIMITED: &str =
    "where the window or the link limits (the PFTK formula gives more), goodput agrees within 3 %";
const LOSSY: &str = "where loss limits, goodput agrees within 10 %, or within the 95 % prediction interval for the \
                     mean of as many runs as were measured";
const COUNTED: &str = "goodput has the verdict";
/// Relative deviation of goodput that always agrees, without losses and, below, with random losses.
const CLOSE: f64 = 0.03;
const NEAR: f64 = 0.10;

/// A measurement by another implementation.
struct MeasuredCell<'a> {
    peer: &'a str,
    flavour: &'a str,
    rtt_ms: u32,
    /// Window in packets; `None` if buffers tune themselves.
    window: Option<u32>,
    per: &'a str,
    duration_s: u32,
    runs: u64,
    goodput_bps: f64,
    retransmits: Option<f64>,
}

impl<'a> MeasuredCell<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [peer, flavour, rtt, window, loss, duration, runs, goodput, _, _, again] = fields[..] else {
            return None;
        };
        Some(Self {
            peer,
            flavour,
            rtt_ms: rtt.parse().ok()?,
            window: window.parse().ok(),
            per: loss,
            duration_s: duration.parse().ok()?,
            runs: runs.parse().ok()?,
            goodput_bps: goodput.parse().ok()?,
            retransmits: again.parse().ok(),
        })
    }

    fn is_linux(&self) -> bool {
        self.peer.starts_with("linux")
    }

    fn lossless(&self) -> bool {
        self.per == "0"
    }

    /// Returns the assignments that make this cell of the shipped scenario.
    fn settings(&self) -> Vec<String> {
        let mut settings = vec![format!("time_limit=\"{} s\"", self.duration_s)];
        for direction in ["forward", "return"] {
            settings.push(format!("link.{direction}.delay=\"{} us\"", 500 * self.rtt_ms));
        }
        settings.push(format!("link.forward.per={}", self.per));
        let mut bulk = |setting: String| settings.push(format!("traffic.bulk.{setting}"));
        if let Some(window) = self.window {
            bulk(format!("window=\"{window} packets\""));
        }
        if self.peer.starts_with("ns-2") {
            bulk(format!("recovery=\"{}\"", self.flavour));
        } else {
            let congestion = if self.flavour == "cubic" { "cubic" } else { "reno" };
            bulk(format!("congestion=\"{congestion}\""));
            bulk(format!("hystart={}", self.flavour == "cubic"));
        }
        if self.peer.starts_with("ns-3") {
            // These are 22 octets of PPP and IP, no timestamps, and an acknowledgment for every segment; the rest is
            // as RFCs recommend.
            bulk("preset=\"rfc\"".to_owned());
            bulk("packet_overhead=\"22 B\"".to_owned());
            bulk("delayed_ack=\"off\"".to_owned());
            bulk("timestamps=false".to_owned());
        }
        if self.is_linux() {
            for setting in ["preset=\"modern\"", "recovery=\"rack\"", "mss=\"1460 B\"", "window=\"6 MiB\""] {
                bulk(setting.to_owned());
            }
            settings.push(format!("link.return.per={}", self.per));
            // The limit is 130,000 octets, in packets of 1500.
            for direction in ["forward", "return"] {
                settings.push(format!("link.{direction}.queue_packets=86"));
            }
        }
        settings
    }

    /// Returns `true` if the window or the link limits goodput: losses alone would let more pass.
    fn is_limited(&self) -> Result<bool, StudyError> {
        if self.lossless() {
            return Ok(true);
        }
        let rtt = Span::from_millis(self.rtt_ms.into());
        let loss = self.per.parse().ok().and_then(farcast_core::Probability::new).unwrap_or_default();
        let path =
            Path { loss, rtt, timeout: rtt.max(Span::from_millis(200)), packets_per_ack: 1, window: None };
        let by_loss = pftk::approximate(&path)?.packets_per_s;
        let by_window = self.window.map_or(f64::INFINITY, |window| f64::from(window) / rtt.as_secs_f64());
        Ok(by_loss >= by_window.min(LINK_PACKETS_PER_S))
    }
}

/// Rate of the link in packets per second: 2 Mbit/s in packets of 1040 octets.
const LINK_PACKETS_PER_S: f64 = 2e6 / 8.0 / 1040.0;

/// Returns the verdict on a cell's goodput, in kbit/s.
fn compare(cell: &MeasuredCell<'_>, ours: &[f64]) -> Result<Judged, StudyError> {
    let published = cell.goodput_bps / 1e3;
    let limited = cell.is_limited()?;
    let share = if limited { CLOSE } else { NEAR };
    let mut within = (published * (1.0 - share), published * (1.0 + share));
    let summary = Summary::of(ours)?;
    if !limited && cell.runs > 1 && summary.n > 1 {
        let (low, high) = rules::mean(published, cell.runs, &summary)?.rule.agrees_within.unwrap_or(within);
        // The interval for their mean, about ours, has the same width as one for ours, about theirs.
        let half = (high - low) / 2.0;
        within = (within.0.min(published - half), within.1.max(published + half));
    }
    let agrees = within.0 <= summary.mean && summary.mean <= within.1;
    Ok(Judged {
        published: Some(published),
        farcast: summary.mean,
        ci95_half_width: summary.ci95_half_width,
        verdict: if agrees { Verdict::Agrees } else { Verdict::Differs },
        rule: Rule { sentence: if limited { LIMITED } else { LOSSY }, agrees_within: Some(within) },
    })
}

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let cells: Vec<_> = TABLE.lines().filter_map(MeasuredCell::read).collect();
    let mut rows = Vec::new();
    for cell in &cells {
        let ours = simulate(runner, cell)?;
        let case = format!("{} {}, round trip {} ms", cell.peer, cell.flavour, cell.rtt_ms);
        let window = cell.window.map_or_else(String::new, |window| format!("window {window}, "));
        let column = format!("{window}PER {}", cell.per);
        let goodput = |(one, _): &(f64, f64)| one / 1e3;
        let place = RowPlace { item: "goodput, kbit/s", row: &case, column: &column };
        rows.push(Row::new(
            STUDY.name,
            place,
            1,
            compare(cell, &ours.iter().map(goodput).collect::<Vec<_>>())?,
        ));
        if let Some(published) = cell.retransmits {
            let again = Summary::of(&ours.iter().map(|one| one.1).collect::<Vec<_>>())?;
            let rule = Rule { sentence: COUNTED, agrees_within: None };
            let judged = Judged {
                published: Some(published),
                farcast: again.mean,
                ci95_half_width: again.ci95_half_width,
                verdict: Verdict::Undetermined,
                rule,
            };
            rows.push(Row::new(
                STUDY.name,
                RowPlace { item: "segments sent again", row: &case, column: &column },
                1,
                judged,
            ));
        }
    }
    rows.sort_by(|a, b| a.row.cmp(&b.row).then(a.item.cmp(&b.item)));
    Ok(rows)
}

/// Returns the goodput in bit/s and the segments sent again, of each replication.
fn simulate(runner: &Runner<'_>, cell: &MeasuredCell<'_>) -> Result<Vec<(f64, f64)>, StudyError> {
    let mut document = shipped::document("tcp-geo")?;
    for setting in cell.settings() {
        document.set(&setting)?;
    }
    let scenario = Scenario::read(&document)?;
    let one = |replication: &Replication| {
        let flow = replication.flows.first()?;
        let FlowCounts::Tcp(counts) = &flow.counts else { return None };
        Some((flow.goodput_bit_per_s, counts.retransmits as f64))
    };
    // Without loss, no random numbers are drawn.
    let most = if cell.lossless() { 1 } else { u64::MAX };
    let replications = runner.run_at_most(&scenario, most)?;
    replications
        .iter()
        .map(one)
        .collect::<Option<_>>()
        .ok_or_else(|| StudyError::Internal(format!("{}: a replication has no flow", STUDY.name).into()))
}
