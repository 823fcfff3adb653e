//! Outcomes of flows.

use farcast_core::Time;
use farcast_stats::StatsError;
use serde::Serialize;

use super::{Measure, Replication};
use crate::star::FlowState;
use crate::traffic::{Counts, End, FtpReport, TcpReport};

/// Direction of a flow's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the hub to the flow's terminal.
    Forward,
    /// From the flow's terminal to the hub.
    Return,
}

/// Outcome of one flow in one replication.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowOutcome {
    /// Name of the flow.
    pub name: String,
    /// Direction of the flow's data.
    pub direction: Direction,
    /// Goodput in bit/s: data that arrived, in order where the protocol keeps order, divided by the time from the
    /// flow's start. Both count until the flow was complete or stopped, or until the replication was over.
    pub goodput_bit_per_s: f64,
    /// Time from the flow's start until everything had arrived; `None` for a flow without a size, or if not everything
    /// arrived.
    pub completion_time_s: Option<f64>,
    /// Octets that `goodput_bit_per_s` is computed from.
    pub octets: u64,
    /// Packets of both directions that stages dropped, lost or gave up.
    pub dropped: u64,
    /// Packets of both directions that were lost behind the links.
    pub lost: u64,
    /// Counters of the flow's protocol.
    #[serde(flatten)]
    pub counts: FlowCounts,
    /// `true` if the flow has a size.
    #[serde(skip)]
    pub has_end: bool,
}

/// Counters of a protocol, serialized with the protocol's name.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "protocol", rename_all = "lowercase")]
pub enum FlowCounts {
    /// TCP.
    Tcp(TcpReport),
    /// Datagrams at a constant rate.
    Cbr(CbrCounts),
    /// FTP.
    Ftp(FtpReport),
}

impl FlowCounts {
    /// Returns the protocol's name.
    const fn protocol(&self) -> &'static str {
        match self {
            Self::Tcp(_) => "tcp",
            Self::Cbr(_) => "cbr",
            Self::Ftp(_) => "ftp",
        }
    }

    /// Returns the counters of TCP, for protocols over TCP.
    const fn tcp(&self) -> Option<&TcpReport> {
        match self {
            Self::Tcp(counts) => Some(counts),
            Self::Ftp(counts) => Some(&counts.tcp),
            Self::Cbr(_) => None,
        }
    }

    const fn cbr(&self) -> Option<&CbrCounts> {
        if let Self::Cbr(counts) = self { Some(counts) } else { None }
    }

    const fn ftp(&self) -> Option<&FtpReport> {
        if let Self::Ftp(counts) = self { Some(counts) } else { None }
    }
}

/// Counters of datagrams at a constant rate. Delays are one-way, of datagrams that arrived.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CbrCounts {
    /// Datagrams that left.
    pub sent: u64,
    /// Datagrams that arrived.
    pub received: u64,
    /// Share of datagrams that were dropped or lost, of those that left. Datagrams under way at the end are neither. 0
    /// if nothing left.
    pub loss: f64,
    /// Mean delay; `None` if nothing arrived.
    pub delay_mean_s: Option<f64>,
    /// 95 % quantile of the delay, exact to a thousandth.
    pub delay_p95_s: Option<f64>,
    /// Mean absolute difference of two consecutive delays (RFC 3393); `None` if less than two datagrams arrived.
    pub jitter_s: Option<f64>,
}

impl FlowOutcome {
    /// Returns the outcome of the flow `state` in a replication that was over at `end`.
    pub(super) fn of(state: &FlowState, end: Time) -> Self {
        let report = state.flow().report();
        let completed = state.flow().completed();
        let until = completed.unwrap_or(Time::NEVER).min(state.stop().unwrap_or(Time::NEVER)).min(end);
        let seconds = until.since(state.start()).as_secs_f64();
        let (sink, source) = (state.passage(state.source().other()), state.passage(state.source()));
        Self {
            name: state.name().to_owned(),
            direction: match state.source() {
                End::Hub => Direction::Forward,
                End::Terminal => Direction::Return,
            },
            goodput_bit_per_s: if seconds > 0.0 { report.octets as f64 * 8.0 / seconds } else { 0.0 },
            completion_time_s: completed.map(|at| at.since(state.start()).as_secs_f64()),
            octets: report.octets,
            dropped: sink.dropped() + source.dropped(),
            lost: sink.lost + source.lost,
            counts: match report.counts {
                Counts::Tcp(tcp) => FlowCounts::Tcp(tcp),
                Counts::Ftp(ftp) => FlowCounts::Ftp(ftp),
                Counts::Cbr(cbr) => FlowCounts::Cbr(CbrCounts {
                    sent: cbr.sent,
                    received: cbr.received,
                    loss: (sink.dropped() + sink.lost) as f64 / cbr.sent.max(1) as f64,
                    delay_mean_s: cbr.delay_mean_s,
                    delay_p95_s: cbr.delay_p95_s,
                    jitter_s: cbr.jitter_s,
                }),
            },
            has_end: state.flow().has_end(),
        }
    }
}

/// Returns the completion time of each flow that has an end, in seconds from the beginning of the replication.
pub(super) fn ends(flows: &[FlowState]) -> Vec<Option<f64>> {
    let finite = flows.iter().filter(|state| state.flow().has_end());
    finite.map(|state| state.flow().completed().map(Time::as_secs_f64)).collect()
}

/// Summary of one flow over all replications. Counters that its protocol does not have are absent.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowTogether {
    /// Name of the flow.
    pub name: String,
    /// Protocol of the flow.
    pub protocol: &'static str,
    /// Direction of the flow's data.
    pub direction: Direction,
    /// Goodput in bit/s.
    pub goodput_bit_per_s: Measure,
    /// Time from the flow's start until completion, for a flow with a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time_s: Option<Measure>,
    /// Packets dropped.
    pub dropped: Measure,
    /// Packets lost.
    pub lost: Measure,
    /// Segments with data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<Measure>,
    /// Segments sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<Measure>,
    /// Timeouts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Measure>,
    /// Share of datagrams that were dropped or lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Measure>,
    /// Mean delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_mean_s: Option<Measure>,
    /// 95 % quantile of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_p95_s: Option<Measure>,
    /// Mean absolute difference of consecutive delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_s: Option<Measure>,
    /// Final reading of the FTP client's clock, the mean of all files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_time_s: Option<Measure>,
    /// Time from the start of the FTP client's clock until a file had arrived, the mean of all files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_time_s: Option<Measure>,
    /// Time of the whole FTP session, from the first SYN to the reply to QUIT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_s: Option<Measure>,
}

/// Returns the summaries of the flows of `replications`, which all have the same flows.
pub(super) fn together(replications: &[Replication]) -> Result<Vec<FlowTogether>, StatsError> {
    let flows = replications.first().map_or(&[][..], |first| &first.flows);
    let column = |number: usize| replications.iter().filter_map(move |one| one.flows.get(number));
    flows.iter().enumerate().map(|(number, flow)| one_of(flow, &column(number).collect::<Vec<_>>())).collect()
}

fn one_of(first: &FlowOutcome, all: &[&FlowOutcome]) -> Result<FlowTogether, StatsError> {
    let over = |value: &dyn Fn(&FlowOutcome) -> Option<f64>| Measure::of(all.iter().map(|flow| value(flow)));
    // A counter that the protocol does not have is absent.
    let counted = |value: &dyn Fn(&FlowCounts) -> Option<Option<f64>>| {
        let known = value(&first.counts).is_some();
        known.then(|| over(&|flow| value(&flow.counts).flatten())).transpose()
    };
    let tcp = |value: fn(&TcpReport) -> u64| {
        counted(&|counts| counts.tcp().map(|counts| Some(value(counts) as f64)))
    };
    let cbr = |value: fn(&CbrCounts) -> Option<f64>| counted(&|counts| counts.cbr().map(value));
    let ftp = |value: fn(&FtpReport) -> Option<f64>| counted(&|counts| counts.ftp().map(value));
    let completion = first.has_end.then(|| over(&|flow| flow.completion_time_s)).transpose()?;
    Ok(FlowTogether {
        name: first.name.clone(),
        protocol: first.counts.protocol(),
        direction: first.direction,
        goodput_bit_per_s: over(&|flow| Some(flow.goodput_bit_per_s))?,
        completion_time_s: completion,
        dropped: over(&|flow| Some(flow.dropped as f64))?,
        lost: over(&|flow| Some(flow.lost as f64))?,
        segments: tcp(|counts| counts.segments)?,
        retransmits: tcp(|counts| counts.retransmits)?,
        timeouts: tcp(|counts| counts.timeouts)?,
        loss: cbr(|counts| Some(counts.loss))?,
        delay_mean_s: cbr(|counts| counts.delay_mean_s)?,
        delay_p95_s: cbr(|counts| counts.delay_p95_s)?,
        jitter_s: cbr(|counts| counts.jitter_s)?,
        client_time_s: ftp(|counts| counts.client_time_s)?,
        delivery_time_s: ftp(|counts| counts.delivery_time_s)?,
        session_s: ftp(|counts| counts.session_s)?,
    })
}
