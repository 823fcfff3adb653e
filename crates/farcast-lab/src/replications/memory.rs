//! Limit on the memory of a simulation.

use std::fmt;

use farcast_core::units::Bytes;
use farcast_sim::replicate::{HowMany, Plan, Replicable};

/// Limit on the memory of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The limit in octets.
    most: u64,
    limit: Limit,
}

/// Origin of a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The caller set it.
    Caller,
    /// The machine has no more, or the control group of this process.
    Machine,
}

/// Memory that exceeds a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryNeed {
    /// Estimate for all replications that run at once.
    WouldTake {
        /// Amount of memory.
        memory: Bytes,
        /// Number of replications that run at once.
        at_once: u64,
    },
    /// Memory that this process has taken.
    HasTaken(Bytes),
}

impl fmt::Display for MemoryNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::WouldTake { memory, at_once } => {
                write!(f, "the simulation would take about {memory} of memory")?;
                if at_once > 1 { write!(f, " for {at_once} replications at once") } else { Ok(()) }
            }
            Self::HasTaken(memory) => write!(f, "the simulation has taken {memory} of memory"),
        }
    }
}

/// Error of a simulation that takes more memory than it may. Amounts from 10 MB on are in whole megabytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{need}, more than the {most} that {}: simulate fewer receivers, fewer at once, or a shorter file",
    match limit { Limit::Caller => "it may", Limit::Machine => "this machine can give" }
)]
pub struct MemoryError {
    /// Memory that it takes.
    pub need: MemoryNeed,
    /// Limit that it exceeds.
    pub most: Bytes,
    /// Origin of the limit.
    pub limit: Limit,
}

impl Memory {
    /// Creates a limit that the caller sets.
    pub const fn at_most(Bytes(most): Bytes) -> Self {
        Self { most, limit: Limit::Caller }
    }

    /// Creates a limit of nine tenths of the memory available without swapping; no limit if the system does not tell
    /// it.
    pub fn of_machine() -> Self {
        Self { most: available().map_or(u64::MAX, |octets| octets / 10 * 9), limit: Limit::Machine }
    }

    /// Refuses replications that cannot fit.
    ///
    /// # Errors
    /// The estimate exceeds the limit.
    pub fn check(&self, scenario: &impl Replicable, plan: &Plan) -> Result<(), MemoryError> {
        let (HowMany::Count(replications) | HowMany::Until(_, replications)) = plan.how_many;
        let at_once = replications.min(plan.threads as u64).max(1);
        let needed = scenario.memory().saturating_mul(at_once);
        if needed <= self.most {
            return Ok(());
        }
        Err(self.passed_by(MemoryNeed::WouldTake { memory: rounded(needed), at_once }))
    }

    /// Refuses the memory that this process has taken by now, if it exceeds the limit.
    ///
    /// # Errors
    /// The memory exceeds the limit.
    pub fn look(&self) -> Result<(), MemoryError> {
        match resident() {
            Some(octets) if octets > self.most => Err(self.passed_by(MemoryNeed::HasTaken(rounded(octets)))),
            _ => Ok(()),
        }
    }

    fn passed_by(&self, need: MemoryNeed) -> MemoryError {
        MemoryError { need, most: rounded(self.most), limit: self.limit }
    }
}

/// Rounds down to whole megabytes, from 10 MB on.
fn rounded(octets: u64) -> Bytes {
    Bytes(if octets >= 10_000_000 { octets / 1_000_000 * 1_000_000 } else { octets })
}

/// Returns the memory available without swapping, in octets: that of the machine, or what the control group has left.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let machine = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(1024);
    let number = |path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map_or(u64::MAX, |(most, taken)| most.saturating_sub(taken));
    Some(machine.min(group))
}

/// Returns the memory that this process has, in octets.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages = text.split_whitespace().nth(1)?.parse::<u64>().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}
