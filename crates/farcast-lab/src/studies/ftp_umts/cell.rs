//! Cells: the replications of one setting, and the comparison of two settings.

use std::cmp::Ordering;

use farcast_sim::outcome::{FlowCounts, Measure, Replication};
use farcast_sim::scenario::Scenario;
use farcast_stats::{StatsError, Summary};

use super::{CurveParameters, ErasureUnit, STUDY};
use crate::shipped;
use crate::study::{Runner, StudyError};

/// Half widths of the 95 % interval of the mean of paired differences. Two settings differ if this mean is farther
/// from 0. The bound is about three standard errors, because there are hundreds of comparisons.
const HALF_WIDTHS: f64 = 1.5;
/// Standard deviations at which the sign test decides, if there is no mean.
const SIGMAS: f64 = 3.0;

/// Measured quantity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    /// Time from RETR to the last octet, in seconds; none for transfers that do not end.
    Time,
    /// Size of the file over that time, in kbit/s.
    Throughput,
    /// Status PDUs on the uplink for each hundred data PDUs on the downlink.
    Overhead,
    /// Mean time from the entry of an SDU into the bearer until its delivery, on the downlink, in seconds.
    Delay,
    /// Data PDUs retransmitted on the downlink, for each that was erased.
    Repeats,
}

/// Replications of one setting.
pub(super) struct BearerCell {
    pub(super) max_dat: u32,
    /// Result of each replication.
    transfers: Vec<Transfer>,
}

#[derive(Clone, Copy)]
struct Transfer {
    bits: f64,
    time: Option<f64>,
    overhead: Option<f64>,
    delay: Option<f64>,
    repeats: Option<f64>,
}

impl BearerCell {
    /// Simulates the setting, as `farcast simulate umts` with these settings does.
    pub(super) fn simulate(
        runner: &Runner<'_>,
        reading: ErasureUnit,
        line: CurveParameters,
        max_dat: u32,
    ) -> Result<Self, StudyError> {
        let mut document = shipped::document("umts")?;
        for setting in settings(reading, line, max_dat) {
            document.set(&setting)?;
        }
        let replications = runner.run(&Scenario::read(&document)?)?;
        let bits = f64::from(line.file) * 8.0 * 1024.0;
        let transfers = replications.iter().map(|one| Transfer::of(one, bits)).collect::<Option<_>>();
        let transfers = transfers.ok_or_else(|| {
            StudyError::Internal(format!("{}: a replication has no session or no bearer", STUDY.name).into())
        })?;
        Ok(Self { max_dat, transfers })
    }

    /// Returns the metric of each replication.
    fn values(&self, metric: Metric) -> impl Iterator<Item = Option<f64>> + '_ {
        self.transfers.iter().map(move |one| one.value(metric))
    }

    /// Returns the summary over the replications that have the metric. It is `None` if the metric needs an end and a
    /// replication has none.
    pub(super) fn summary(&self, metric: Metric) -> Result<Option<Summary>, StatsError> {
        let values: Vec<f64> = self.values(metric).flatten().collect();
        let whole = values.len() == self.transfers.len() || !metric.needs_end();
        (whole && !values.is_empty()).then(|| Summary::of(&values)).transpose()
    }

    /// Returns the median time. Transfers that do not end are later than all others.
    pub(super) fn median_time(&self) -> Result<Option<f64>, StatsError> {
        Ok(Measure::of(self.values(Metric::Time))?.p50)
    }

    /// Returns the number of transfers that have ended, and the number of all.
    pub(super) fn ended(&self) -> (u64, u64) {
        (self.values(Metric::Time).flatten().count() as u64, self.transfers.len() as u64)
    }

    /// Tells whether the metric is less or greater than that of `other`; equal if the replications do not show a
    /// difference.
    pub(super) fn compare(&self, other: &Self, metric: Metric) -> Result<Ordering, StatsError> {
        let pairs = || self.values(metric).zip(other.values(metric));
        let both: Vec<f64> = pairs().filter_map(|(a, b)| Some(a? - b?)).collect();
        if metric.needs_end() && both.len() < self.transfers.len() {
            return Ok(sign_test(pairs()));
        }
        if both.len() < 2 {
            return Ok(Ordering::Equal);
        }
        let summary = Summary::of(&both)?;
        let doubt = HALF_WIDTHS * summary.ci95_half_width.unwrap_or(f64::INFINITY);
        let is_clear = summary.mean.abs() > doubt;
        Ok(if is_clear { summary.mean.total_cmp(&0.0) } else { Ordering::Equal })
    }
}

/// Compares by the number of pairs in which one ends before the other. Pairs in which neither ends do not count.
fn sign_test(pairs: impl Iterator<Item = (Option<f64>, Option<f64>)>) -> Ordering {
    let late = |time: Option<f64>| time.unwrap_or(f64::INFINITY);
    let signs = pairs.map(|(a, b)| late(a).total_cmp(&late(b))).filter(|sign| sign.is_ne());
    let (mut before, mut all) = (0.0_f64, 0.0_f64);
    for sign in signs {
        all += 1.0;
        before += f64::from(u8::from(sign.is_lt()));
    }
    let excess = 2.0 * before - all;
    if excess.abs() <= SIGMAS * all.sqrt() { Ordering::Equal } else { 0.0_f64.total_cmp(&excess) }
}

impl Metric {
    const fn needs_end(self) -> bool {
        matches!(self, Self::Time | Self::Throughput)
    }
}

impl Transfer {
    fn of(replication: &Replication, bits: f64) -> Option<Self> {
        let FlowCounts::Ftp(report) = &replication.flows.first()?.counts else { return None };
        let bearer = replication.stages.first()?;
        let file = report.files.first();
        let repeats = || {
            let erased = bearer.figure("forward_erased_pdus").filter(|&erased| erased > 0.0)?;
            Some(bearer.figure("forward_retransmissions")? / erased)
        };
        Some(Self {
            bits,
            time: file.and_then(|file| Some(file.delivered_s? - file.commanded_s?)),
            overhead: bearer.figure("status_overhead_percent"),
            delay: bearer.figure("forward_sdu_delay_s"),
            repeats: repeats(),
        })
    }

    fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Time => self.time,
            Metric::Throughput => self.time.map(|time| self.bits / time / 1000.0),
            Metric::Overhead => self.overhead,
            Metric::Delay => self.delay,
            Metric::Repeats => self.repeats,
        }
    }
}

/// Returns the assignments that make this setting of the shipped scenario.
fn settings(reading: ErasureUnit, line: CurveParameters, max_dat: u32) -> [String; 6] {
    let bearer = |setting: String| format!("link.stages.bearer.{setting}");
    [
        format!("traffic.file.size=\"{} KiB\"", line.file),
        bearer(format!("max_transmissions={max_dat}")),
        bearer(format!("poll.timer=\"{} ms\"", line.poll)),
        bearer(format!("status.prohibit=\"{} ms\"", line.prohibit)),
        bearer(format!("forward.tti=\"{} ms\"", reading.tti)),
        bearer(format!("forward.erasure_unit=\"{}\"", reading.unit)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(times: &[Option<f64>]) -> BearerCell {
        let of = |&time| Transfer { bits: 1000.0, time, overhead: None, delay: None, repeats: None };
        BearerCell { max_dat: 1, transfers: times.iter().map(of).collect() }
    }

    #[test]
    fn means_differ_by_three_standard_errors() {
        // Differences of 1 and 3: their mean is 2, its standard error sqrt(8 / 7) / sqrt(8), and t of 7 is 2.3646.
        let later =
            |shift: f64| cell(&[1.0, 3.0].repeat(4).iter().map(|one| Some(one + shift)).collect::<Vec<_>>());
        let zero = cell(&[Some(0.0); 8]);
        let threshold = 1.5 * 2.3646 * (1.0_f64 / 7.0).sqrt();
        for (excess, expected) in
            [(1.01, Ordering::Greater), (0.99, Ordering::Equal), (-1.01, Ordering::Less)]
        {
            let shifted = later(excess * threshold - 2.0);
            assert_eq!(shifted.compare(&zero, Metric::Time).unwrap(), expected, "{excess}");
        }
    }

    #[test]
    fn without_a_mean_signs_decide() {
        let ended = |count: usize| cell(&(0..16).map(|n| (n < count).then_some(1.0)).collect::<Vec<_>>());
        // All of ten differ: more than three of the root of ten. Of nine it is just three.
        assert_eq!(ended(10).compare(&ended(0), Metric::Time).unwrap(), Ordering::Less);
        assert_eq!(ended(0).compare(&ended(10), Metric::Time).unwrap(), Ordering::Greater);
        assert_eq!(ended(9).compare(&ended(0), Metric::Time).unwrap(), Ordering::Equal);
        assert_eq!(ended(8).compare(&ended(8), Metric::Time).unwrap(), Ordering::Equal);
        assert!(ended(15).summary(Metric::Time).unwrap().is_none(), "one has not ended");
        assert_eq!((ended(15).ended(), ended(7).median_time().unwrap()), ((15, 16), None));
    }
}
