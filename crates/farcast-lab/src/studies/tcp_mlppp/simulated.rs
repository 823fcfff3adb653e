//! Simulations of TCP over a bundle: the shipped scenarios with a setting's links, file, window, drops and losses.

use farcast_sim::outcome::{FlowCounts, Replication};
use farcast_sim::scenario::Scenario;
use farcast_stats::{StatsError, Summary, quantile};

use super::{KILOBYTE, MEGABYTE, STUDY};
use crate::shipped;
use crate::study::{Runner, StudyError};

/// One transfer.
#[derive(Clone, Copy)]
struct Transfer {
    minutes: f64,
    timeouts: u64,
    /// Number of calls that dropped until it was complete.
    drops: f64,
}

/// The transfers of one setting.
pub(super) struct Transfers {
    all: Vec<Transfer>,
    octets: f64,
    /// Window in octets.
    window: f64,
}

/// A setting of the tables or of figure 4.
pub(super) struct Iridium {
    pub(super) links: u32,
    pub(super) megabytes: f64,
    /// Window in packets.
    pub(super) window: u32,
    /// Minutes between drops of a link.
    pub(super) interval_min: u64,
}

/// Data octets in a packet of the tables and of figure 4.
const MSS: u32 = 1448;

impl Iridium {
    /// Simulates the setting, as does
    /// `farcast simulate iridium --set link.stages.bundle.links=.. --set traffic.file.size=..` and so on.
    pub(super) fn simulate(&self, runner: &Runner<'_>) -> Result<Transfers, StudyError> {
        let octets = (self.megabytes * MEGABYTE).round();
        let settings = [
            format!("link.stages.bundle.links={}", self.links),
            format!("traffic.file.size=\"{octets} B\""),
            format!("traffic.file.window=\"{} packets\"", self.window),
            format!("link.stages.bundle.time_between_drops=\"{} min\"", self.interval_min),
        ];
        let window = f64::from(self.window * MSS);
        simulate(runner, u64::MAX, "iridium", &settings).map(|all| Transfers { all, octets, window })
    }
}

/// Simulates a setting of figure 5 at most `most` times: the loss probability as text, and minutes between drops.
pub(super) fn inmarsat(
    runner: &Runner<'_>,
    most: u64,
    p: &str,
    interval_min: u64,
) -> Result<Transfers, StudyError> {
    let settings = [
        format!("link.return.per={p}"),
        format!("link.stages.bundle.time_between_drops=\"{interval_min} min\""),
    ];
    let all = simulate(runner, most, "inmarsat", &settings)?;
    Ok(Transfers { all, octets: 100.0 * MEGABYTE, window: f64::from(40 * KILOBYTE) })
}

fn simulate(
    runner: &Runner<'_>,
    most: u64,
    scenario: &str,
    settings: &[String],
) -> Result<Vec<Transfer>, StudyError> {
    let mut document = shipped::document(scenario)?;
    for setting in settings {
        document.set(setting)?;
    }
    let replications = runner.run_at_most(&Scenario::read(&document)?, most)?;
    // A mean over complete transfers alone would hide the others.
    replications.iter().map(transfer).collect::<Option<_>>().ok_or_else(|| {
        StudyError::Unfinished(format!(
            "{}: a transfer with {} was not complete within 48 h",
            STUDY.name,
            settings.join(", ")
        ))
    })
}

fn transfer(replication: &Replication) -> Option<Transfer> {
    let flow = replication.flows.first()?;
    let FlowCounts::Tcp(counts) = &flow.counts else { return None };
    let drops = replication.stages.first()?.figure("calls_dropped")?;
    Some(Transfer { minutes: flow.completion_time_s? / 60.0, timeouts: counts.timeouts, drops })
}

impl Transfers {
    /// Returns the number of transfers.
    pub(super) const fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the transfer times in minutes.
    pub(super) fn minutes(&self) -> Result<Summary, StatsError> {
        self.summary(|one| one.minutes)
    }

    /// Returns a quantile of the transfer times in minutes.
    pub(super) fn quantile(&self, p: f64) -> Result<f64, StatsError> {
        let mut minutes: Vec<_> = self.all.iter().map(|one| one.minutes).collect();
        minutes.sort_unstable_by(f64::total_cmp);
        quantile(&minutes, p)
    }

    /// Returns round trips in seconds by Little's law: the octets of a full window over the throughput.
    ///
    /// The window is less than full after a loss, so the result is an upper bound of the mean.
    pub(super) fn round_trip_s(&self) -> Result<Summary, StatsError> {
        self.summary(|one| self.window * one.minutes * 60.0 / self.octets)
    }

    /// Returns the retransmission timeouts of a transfer.
    pub(super) fn timeouts(&self) -> Result<Summary, StatsError> {
        self.summary(|one| one.timeouts as f64)
    }

    /// Returns the calls that dropped during a transfer.
    pub(super) fn drops(&self) -> Result<Summary, StatsError> {
        self.summary(|one| one.drops)
    }

    fn summary(&self, of: impl Fn(&Transfer) -> f64) -> Result<Summary, StatsError> {
        Summary::of(&self.all.iter().map(of).collect::<Vec<_>>())
    }
}
