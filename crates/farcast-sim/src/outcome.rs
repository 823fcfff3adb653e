//! What a replication comes to, and what replications come to together.

mod flows;
mod shortfall;
mod stages;
mod transfer;
mod tree;

use farcast_core::stage::Totals;
use farcast_delivery::Protocol;
use farcast_stats::{StatsError, Summary, quantile};
use serde::Serialize;

use crate::star::{Group, SealCounts, Star};

pub use flows::{CbrCounts, Direction, FlowCounts, FlowOutcome, FlowTogether};
pub use shortfall::{Limit, Remedies, Shortfall, Stop, reasons};
pub use stages::{StageOutcome, StageTogether};
pub use transfer::{FigureTogether, ReceiverTimes, TransferOutcome, TransferTogether};
pub use tree::{EdgeDirection, EdgeOutcome, ElementOutcome, HeardOutcome, NodeOutcome, TreeReplication};

/// What one direction carried.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Carried {
    /// Datagrams that were sent into it.
    pub datagrams: u64,
    /// Their octets with all headers.
    pub octets: u64,
    /// Datagrams that a queue or a limit dropped.
    pub dropped: u64,
    /// Datagrams that a link layer gave up after repeating them.
    pub given_up: u64,
    /// How long its channel was in use, in seconds: what the transfer costs of it. 0 for a link without a rate.
    pub airtime_s: f64,
}

/// One replication. Times count from its beginning, when the sender opens.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Replication {
    /// Its number, from 0.
    pub index: u64,
    /// When the last receiver had everything and the last flow of a size was complete; `None` if one never was, or if
    /// there are none.
    pub completion_time_s: Option<f64>,
    /// The multicast transfer, if there is one.
    #[serde(flatten)]
    pub transfer: Option<TransferOutcome>,
    /// From the hub to the receivers and terminals.
    pub forward: Carried,
    /// From the receivers and terminals to the hub.
    #[serde(rename = "return")]
    pub back: Carried,
    /// What the seal around the transfer came to, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seal: Option<SealCounts>,
    /// The flows, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowOutcome>,
    /// What stages report of themselves, in the order of the scenario; of those that have something to report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageOutcome>,
    /// Whether anything in it has an end: a transfer, or a flow of a size.
    #[serde(skip)]
    pub has_end: bool,
}

impl AsRef<Self> for Replication {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Replication {
    /// What `star`, which has run, came to.
    pub fn of<P: Protocol>(index: u64, star: &Star<'_, P>, per_receiver: bool) -> Self {
        let transfer = star.sender().map(|sender| TransferOutcome::of(star, sender, per_receiver));
        let tally = star.tally();
        // Merged NAKs do not pass the way back one by one, so the populations' own counts are added.
        let unseen: Vec<_> = star.groups().iter().map(Group::counts).collect();
        let flows: Vec<_> = star.flows().iter().map(|flow| FlowOutcome::of(flow, star.end())).collect();
        let mut ends = flows::ends(star.flows());
        ends.extend(transfer.as_ref().map(|transfer| transfer.completion_time_s));
        let has_end = !ends.is_empty();
        let last = ends.into_iter().try_fold(0.0, |last: f64, end| end.map(|end| last.max(end)));
        Self {
            index,
            completion_time_s: last.filter(|_| has_end),
            transfer,
            forward: carried(tally.forward_datagrams, tally.forward_octets, star.forward_totals()),
            back: carried(
                tally.return_datagrams + unseen.iter().map(|stats| stats.merged).sum::<u64>(),
                tally.return_octets + unseen.iter().map(|stats| stats.merged_octets).sum::<u64>(),
                star.return_totals(),
            ),
            seal: star.seal_counts().copied(),
            flows,
            stages: star.figures().map(|(name, figures)| StageOutcome::of(name, figures)).collect(),
            has_end,
        }
    }

    /// What tells how exactly replications are known: the completion time, or where nothing has an end the goodput of
    /// the first flow.
    pub fn aim(&self) -> Option<f64> {
        if self.has_end {
            return self.completion_time_s;
        }
        self.flows.first().map(|flow| flow.goodput_bit_per_s)
    }
}

fn carried(datagrams: u64, octets: u64, totals: impl Iterator<Item = Totals>) -> Carried {
    let mut carried = Carried { datagrams, octets, ..Carried::default() };
    for totals in totals {
        carried.dropped += totals.dropped;
        carried.given_up += totals.given_up;
        carried.airtime_s = carried.airtime_s.max(totals.airtime.as_secs_f64());
    }
    carried
}

/// One measure over all replications.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Measure {
    /// Replications that have it.
    pub n: u64,
    /// The mean; absent if a replication was not finished, for then there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95_half_width: Option<f64>,
    /// The 5 % quantile. With unfinished replications, which count as later than all others, it may be absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p05: Option<f64>,
    /// The median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// The 95 % quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
}

impl Measure {
    /// Over `values`; `None` is one that was not reached, later than every other.
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

/// What one direction carried, over all replications.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CarriedTogether {
    /// Octets with all headers.
    pub octets: Measure,
    /// How long its channel was in use, in seconds.
    pub airtime_s: Measure,
}

impl CarriedTogether {
    fn of<'a>(carried: impl Iterator<Item = &'a Carried> + Clone) -> Result<Self, StatsError> {
        let octets = Measure::of(carried.clone().map(|one| Some(one.octets as f64)))?;
        Ok(Self { octets, airtime_s: Measure::of(carried.map(|one| Some(one.airtime_s)))? })
    }
}

/// All replications together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Together {
    /// Replications.
    pub replications: u64,
    /// Of these, how many have a receiver that never had everything, or a flow of a size that was never complete.
    pub unfinished: u64,
    /// When the last receiver had everything and the last flow of a size was complete, in seconds.
    pub completion_time_s: Measure,
    /// The multicast transfer, if there is one.
    #[serde(flatten)]
    pub transfer: Option<TransferTogether>,
    /// From the hub to the receivers and terminals.
    pub forward: CarriedTogether,
    /// From the receivers and terminals to the hub.
    #[serde(rename = "return")]
    pub back: CarriedTogether,
    /// The flows, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowTogether>,
    /// The stages, likewise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageTogether>,
}

impl Together {
    /// The summary of `replications`.
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
