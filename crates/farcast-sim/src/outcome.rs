//! Outcomes: results of one replication, and of all replications together.

mod flows;
mod shortfall;
mod stages;
mod transfer;
mod tree;

use farcast_core::stage::Totals;
use farcast_delivery::Protocol;
use farcast_stats::{StatsError, Summary, quantile};
use serde::Serialize;

use crate::traffic::End;
use crate::world::{Group, Layout, SealCounts, World};

pub use flows::{CbrCounts, Direction, FlowCounts, FlowOutcome, FlowTogether};
pub use shortfall::{Limit, Remedies, Shortfall, reasons};
pub use stages::{StageOutcome, StageTogether};
pub use transfer::{FigureTogether, ReceiverTimes, TransferOutcome, TransferTogether};
pub use tree::{EdgeDirection, EdgeOutcome, ElementOutcome, HeardOutcome, NodeOutcome, TreeReplication};

/// Traffic of one direction.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Carried {
    /// Datagrams that entered the direction.
    pub datagrams: u64,
    /// Octets of the datagrams with all headers.
    pub octets: u64,
    /// Datagrams that a queue or a limit dropped.
    pub dropped: u64,
    /// Datagrams that a link layer gave up after repeating them.
    pub given_up: u64,
    /// Time in seconds for which the channel was in use: the transfer's cost in channel time. Of several stages, the
    /// longest counts. 0 for a link without a rate.
    pub airtime_s: f64,
}

/// Outcome of one replication. Times count from its beginning, when the sender opens.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Replication {
    /// Number of the replication, from 0.
    pub index: u64,
    /// Time at which the last receiver had everything and the last flow with a size was complete. `None` if one never
    /// was, or if there are none.
    pub completion_time_s: Option<f64>,
    /// Outcome of the multicast transfer, if there is one.
    #[serde(flatten)]
    pub transfer: Option<TransferOutcome>,
    /// Traffic from the hub to the receivers and terminals.
    pub forward: Carried,
    /// Traffic from the receivers and terminals to the hub.
    #[serde(rename = "return")]
    pub back: Carried,
    /// Counters of the seal around the transfer, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seal: Option<SealCounts>,
    /// Outcomes of the flows, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowOutcome>,
    /// Figures of the stages that have some to report, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageOutcome>,
    /// `true` if anything in the replication has an end: a transfer, or a flow with a size.
    #[serde(skip)]
    pub has_end: bool,
}

impl AsRef<Self> for Replication {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Replication {
    /// Returns the outcome of `world`, which has run.
    pub fn of<P: Protocol, L: Layout<P>>(index: u64, world: &World<'_, P, L>, per_receiver: bool) -> Self {
        let transfer = world.sender().map(|sender| TransferOutcome::of(world, sender, per_receiver));
        // Merged NAKs do not pass the return path one by one, so the populations' own counts are added.
        let unseen: Vec<_> = world.groups().iter().map(Group::counts).collect();
        let mut ends = flows::ends(world.flows());
        ends.extend(transfer.as_ref().map(|transfer| transfer.completion_time_s));
        let has_end = !ends.is_empty();
        let last = ends.into_iter().try_fold(0.0, |last: f64, end| end.map(|end| last.max(end)));
        let mut back = carried(world, End::Hub);
        back.datagrams += unseen.iter().map(|counts| counts.merged).sum::<u64>();
        back.octets += unseen.iter().map(|counts| counts.merged_octets).sum::<u64>();
        let figures = world.layout.figures();
        Self {
            index,
            completion_time_s: last.filter(|_| has_end),
            transfer,
            forward: carried(world, End::Terminal),
            back,
            seal: world.seal_counts().copied(),
            flows: world.flows().iter().map(|flow| FlowOutcome::of(flow, world.end())).collect(),
            stages: figures.map(|(name, figures)| StageOutcome::of(name, figures)).collect(),
            has_end,
        }
    }

    /// Returns the value that shows whether there are enough replications: the completion time, or the goodput of the
    /// first flow where nothing has an end.
    pub fn aim(&self) -> Option<f64> {
        if self.has_end {
            return self.completion_time_s;
        }
        self.flows.first().map(|flow| flow.goodput_bit_per_s)
    }
}

/// Returns the traffic of a world in the direction to `to`.
fn carried<P: Protocol, L: Layout<P>>(world: &World<'_, P, L>, to: End) -> Carried {
    let (datagrams, octets) = world.layout.entered(to);
    Carried { datagrams, octets, ..Carried::of(world.layout.totals(to)) }
}

impl Carried {
    /// Returns the traffic that stages in a row count.
    fn of(all: impl Iterator<Item = Totals>) -> Self {
        let mut carried = Self::default();
        for totals in all {
            carried.dropped += totals.dropped;
            carried.given_up += totals.given_up;
            carried.airtime_s = carried.airtime_s.max(totals.airtime.as_secs_f64());
        }
        carried
    }
}

/// Summary of one measure over all replications.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Measure {
    /// Replications that have a value.
    pub n: u64,
    /// Mean; absent if a replication was not finished, because then no mean exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95_half_width: Option<f64>,
    /// 5 % quantile. Unfinished replications count as later than all others, so the quantile may be absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p05: Option<f64>,
    /// Median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// 95 % quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
}

impl Measure {
    /// Returns the summary of `values`. `None` stands for a value that was not reached, and counts as later than every
    /// other.
    ///
    /// # Errors
    /// A value that is not a finite number.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Result<Self, StatsError> {
        let (mut reached, mut unfinished) = (Vec::new(), 0u64);
        for value in values {
            match value {
                Some(value) => reached.push(value),
                None => unfinished += 1,
            }
        }
        let whole = (unfinished == 0 && !reached.is_empty()).then(|| Summary::of(&reached)).transpose()?;
        reached.sort_unstable_by(f64::total_cmp);
        let n = reached.len() as u64;
        reached.resize(reached.len() + unfinished as usize, f64::MAX);
        let at = |p| quantile(&reached, p).ok().filter(|&value| value < f64::MAX / 1e9);
        Ok(Self {
            n,
            mean: whole.map(|summary| summary.mean),
            sd: whole.and_then(|summary| summary.sd),
            ci95_half_width: whole.and_then(|summary| summary.ci95_half_width),
            p05: at(0.05),
            p50: at(0.5),
            p95: at(0.95),
        })
    }
}

/// Traffic of one direction, over all replications.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CarriedTogether {
    /// Octets with all headers.
    pub octets: Measure,
    /// Time in seconds for which the channel was in use.
    pub airtime_s: Measure,
}

impl CarriedTogether {
    fn of<'a>(carried: impl Iterator<Item = &'a Carried> + Clone) -> Result<Self, StatsError> {
        let octets = Measure::of(carried.clone().map(|one| Some(one.octets as f64)))?;
        Ok(Self { octets, airtime_s: Measure::of(carried.map(|one| Some(one.airtime_s)))? })
    }
}

/// Summary of all replications.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Together {
    /// Number of replications.
    pub replications: u64,
    /// Replications with a receiver that never had everything, or with a flow of a size that was never complete.
    pub unfinished: u64,
    /// Time in seconds at which the last receiver had everything and the last flow with a size was complete.
    pub completion_time_s: Measure,
    /// Summary of the multicast transfer, if there is one.
    #[serde(flatten)]
    pub transfer: Option<TransferTogether>,
    /// Traffic from the hub to the receivers and terminals.
    pub forward: CarriedTogether,
    /// Traffic from the receivers and terminals to the hub.
    #[serde(rename = "return")]
    pub back: CarriedTogether,
    /// Summaries of the flows, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowTogether>,
    /// Summaries of the stages, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageTogether>,
}

impl Together {
    /// Returns the summary of `replications`.
    ///
    /// # Errors
    /// A value that is not a finite number.
    pub fn of(replications: &[Replication]) -> Result<Self, StatsError> {
        Ok(Self {
            replications: replications.len() as u64,
            unfinished: replications.iter().filter(|r| r.has_end && r.completion_time_s.is_none()).count()
                as u64,
            completion_time_s: Measure::of(replications.iter().map(|r| r.completion_time_s))?,
            transfer: transfer::together(replications)?,
            forward: CarriedTogether::of(replications.iter().map(|one| &one.forward))?,
            back: CarriedTogether::of(replications.iter().map(|one| &one.back))?,
            flows: flows::together(replications)?,
            stages: stages::together(replications)?,
        })
    }
}
