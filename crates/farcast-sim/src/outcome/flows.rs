//! What flows come to.

use farcast_core::Time;
use farcast_stats::StatsError;
use serde::Serialize;

use super::{Measure, Replication};
use crate::star::FlowState;
use crate::traffic::{Counts, End, FtpReport, TcpReport};

/// Which way a flow's data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the hub to its terminal.
    Forward,
    /// From its terminal to the hub.
    Return,
}

/// One flow in one replication.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowOutcome {
    /// What it is called.
    pub name: String,
    /// Which way its data goes.
    pub direction: Direction,
    /// Octets of data that arrived, in order where the protocol keeps order, until it was complete or stopped or the
    /// replication was over; in bits, by the time from its start until then.
    pub goodput_bit_per_s: f64,
    /// The time from its start until everything had arrived; `None` for a flow without a size, or if that never was.
    pub completion_time_s: Option<f64>,
    /// The octets of which `goodput_bit_per_s` tells.
    pub octets: u64,
    /// Packets of both directions that stages dropped, lost or gave up.
    pub dropped: u64,
    /// Packets of both directions that were lost behind the links.
    pub lost: u64,
    /// What its protocol counts.
    #[serde(flatten)]
    pub counts: FlowCounts,
    /// Whether it has a size.
    #[serde(skip)]
    pub has_end: bool,
}

/// What protocols count, with the protocol's name.
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
    /// The protocol's name.
    const fn protocol(&self) -> &'static str {
        match self {
            Self::Tcp(_) => "tcp",
            Self::Cbr(_) => "cbr",
            Self::Ftp(_) => "ftp",
        }
    }

    /// What TCP counts, where data goes by it.
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

/// What became of datagrams at a constant rate. Delays are one-way and of what arrived.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CbrCounts {
    /// Datagrams that left.
    pub sent: u64,
    /// Datagrams that arrived.
    pub received: u64,
    /// The share of those that left that was dropped or lost: what is under way in the end is neither. 0 if nothing
    /// left.
    pub loss: f64,
    /// The mean delay; `None` if nothing arrived.
    pub delay_mean_s: Option<f64>,
    /// The 95 % quantile of the delay, to a thousandth.
    pub delay_p95_s: Option<f64>,
    /// The mean absolute difference of two consecutive delays (RFC 3393); `None` if less than two datagrams arrived.
    pub jitter_s: Option<f64>,
}

impl FlowOutcome {
    /// What `state` came to in a replication that was over at `end`.
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

/// When each flow that has an end was complete, in seconds from the beginning of the replication.
pub(super) fn ends(flows: &[FlowState]) -> Vec<Option<f64>> {
    let finite = flows.iter().filter(|state| state.flow().has_end());
    finite.map(|state| state.flow().completed().map(Time::as_secs_f64)).collect()
}

/// One flow over all replications. What its protocol does not count is absent.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowTogether {
    /// What it is called.
    pub name: String,
    /// Its protocol.
    pub protocol: &'static str,
    /// Which way its data goes.
    pub direction: Direction,
    /// Its goodput.
    pub goodput_bit_per_s: Measure,
    /// The time that it took; of a flow of a size.
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
    /// The share of datagrams that was dropped or lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Measure>,
    /// The mean delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_mean_s: Option<Measure>,
    /// The 95 % quantile of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_p95_s: Option<Measure>,
    /// The difference of consecutive delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_s: Option<Measure>,
    /// What the client's clock showed, the mean of all files; of FTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_time_s: Option<Measure>,
    /// The time from the start of the client's clock until a file had arrived, the mean of all files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_time_s: Option<Measure>,
    /// The time of the whole session, from the first SYN to the reply to QUIT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_s: Option<Measure>,
}

/// The flows of `replications`, which all have the same.
pub(super) fn together(replications: &[Replication]) -> Result<Vec<FlowTogether>, StatsError> {
    let flows = replications.first().map_or(&[][..], |first| &first.flows);
    let column = |number: usize| replications.iter().filter_map(move |one| one.flows.get(number));
    flows.iter().enumerate().map(|(number, flow)| one_of(flow, &column(number).collect::<Vec<_>>())).collect()
}

fn one_of(first: &FlowOutcome, all: &[&FlowOutcome]) -> Result<FlowTogether, StatsError> {
    let over = |value: &dyn Fn(&FlowOutcome) -> Option<f64>| Measure::of(all.iter().map(|flow| value(flow)));
    // What the protocol does not count is absent.
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
