//! The memory that a simulation may take.

use std::fmt;

use farcast_core::units::Bytes;
use farcast_sim::replicate::{HowMany, Plan, Replicable};

/// The memory that a simulation may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// In octets.
    most: u64,
    limit: Limit,
}

/// Whose limit it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The caller's.
    Caller,
    /// That of the machine, or of the group of processes to which this one belongs.
    Machine,
}

/// What passes a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// What all replications that run at once would take, by an estimate.
    WouldTake {
        /// How much.
        memory: Bytes,
        /// So many run at once.
        at_once: u64,
    },
    /// What this process has taken.
    HasTaken(Bytes),
}

impl fmt::Display for Need {
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

/// A simulation takes more than it may. Amounts from 10 MB on are in whole megabytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{need}, more than the {most} that {}: simulate fewer receivers, fewer at once, or a shorter file",
    match limit { Limit::Caller => "it may", Limit::Machine => "this machine can give" }
)]
pub struct MemoryError {
    /// What it takes.
    pub need: Need,
    /// What it may.
    pub most: Bytes,
    /// Who says so.
    pub limit: Limit,
}

impl Memory {
    /// At most so much.
    pub const fn at_most(Bytes(most): Bytes) -> Self {
        Self { most, limit: Limit::Caller }
    }

    /// Nine tenths of what there is without swapping; no bound where the system does not say.
    pub fn of_machine() -> Self {
        Self { most: available().map_or(u64::MAX, |octets| octets / 10 * 9), limit: Limit::Machine }
    }

    /// Refuses replications that cannot fit.
    ///
    /// # Errors
    /// They would take more.
    pub fn check(&self, scenario: &impl Replicable, plan: &Plan) -> Result<(), MemoryError> {
        let (HowMany::Count(replications) | HowMany::Until(_, replications)) = plan.how_many;
        let at_once = replications.min(plan.threads as u64).max(1);
        let needed = scenario.memory().saturating_mul(at_once);
        if needed <= self.most {
            return Ok(());
        }
        Err(self.passed_by(Need::WouldTake { memory: rounded(needed), at_once }))
    }

    /// Refuses what this process has taken by now, if that is more.
    ///
    /// # Errors
    /// It is more.
    pub fn look(&self) -> Result<(), MemoryError> {
        match resident() {
            Some(octets) if octets > self.most => Err(self.passed_by(Need::HasTaken(rounded(octets)))),
            _ => Ok(()),
        }
    }

    fn passed_by(&self, need: Need) -> MemoryError {
        MemoryError { need, most: rounded(self.most), limit: self.limit }
    }
}

/// The nearest that a person can use.
fn rounded(octets: u64) -> Bytes {
    Bytes(if octets >= 10_000_000 { octets / 1_000_000 * 1_000_000 } else { octets })
}

/// Memory that could be taken without swapping, in octets: the machine's, or what is left of this group of processes'.
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

/// Memory that this process has, in octets.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages = text.split_whitespace().nth(1)?.parse::<u64>().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}
