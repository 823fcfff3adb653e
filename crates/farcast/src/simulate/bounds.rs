//! What a simulation may take: memory, and somebody's time.

use std::time::Instant;

use farcast_core::units::Bytes;
use farcast_core::{Span, Time};
use farcast_sim::replicate::{HowMany, Plan, Standing};
use farcast_sim::scenario::Scenario;

use crate::output::Output;
use crate::{Exit, Failure};

/// After so long it can be told how long it will take.
const FIRST_MOMENTS: Span = Span::from_secs(5);
/// What is said to be long.
const LONG: Span = Span::from_secs(600);
/// What would make it smaller.
const SMALLER: &str = "simulate fewer receivers, fewer at once (--threads 1), or a shorter file";

/// The memory that a simulation may take, in octets.
pub(crate) struct Room {
    most: u64,
    whose: &'static str,
}

impl Room {
    /// What was given, or what there is; no bound where the system does not say.
    pub(crate) fn of(memory: Option<Bytes>) -> Self {
        if let Some(Bytes(most)) = memory {
            return Self { most, whose: "--memory allows" };
        }
        let most = available().map_or(u64::MAX, |octets| octets / 10 * 9);
        Self { most, whose: "this machine can give (--memory sets another limit)" }
    }

    /// Refuses what cannot fit.
    pub(crate) fn check(&self, scenario: &Scenario, plan: &Plan) -> Result<(), Failure> {
        let (HowMany::Count(replications) | HowMany::Until(_, replications)) = plan.how_many;
        let at_once = replications.min(plan.threads as u64).max(1);
        let needed = scenario.memory().saturating_mul(at_once);
        if needed <= self.most {
            return Ok(());
        }
        let together =
            if at_once > 1 { format!(" for {at_once} replications at once") } else { String::new() };
        Err(self.refusal(&format!("the simulation would take about {} of memory{together}", shown(needed))))
    }

    /// Ends what has passed it.
    pub(crate) fn look(&self) -> Result<(), Failure> {
        match resident() {
            Some(octets) if octets > self.most => {
                Err(self.refusal(&format!("the simulation has taken {} of memory", shown(octets))))
            }
            _ => Ok(()),
        }
    }

    fn refusal(&self, what: &str) -> Failure {
        let (most, whose) = (shown(self.most), self.whose);
        let sentence = format!("{what}, more than the {most} that {whose}: {SMALLER}");
        Failure { sentence, exit: Exit::Failed }
    }
}

/// Tells once, after the first moments or later, if it will take long.
pub(super) struct Patience {
    begin: Instant,
    limit: Time,
    threads: u64,
    total: u64,
    told: bool,
    /// When was looked last, and how far the furthest replication was then.
    last: (Span, Time),
}

impl Patience {
    #[expect(clippy::disallowed_methods, reason = "somebody waits in real time")]
    pub(super) fn new(scenario: &Scenario, plan: &Plan) -> Self {
        let total = match plan.how_many {
            HowMany::Count(n) => n,
            // How many it will be is not known; so many it is at least.
            HowMany::Until(_, most) => most.min(10),
        };
        let (limit, threads) = (scenario.time_limit(), plan.threads.max(1) as u64);
        Self { begin: Instant::now(), limit, threads, total, told: false, last: (Span::ZERO, Time::ZERO) }
    }

    /// How long it has taken so far.
    pub(super) fn elapsed(&self) -> Span {
        Span::from_secs_f64(self.begin.elapsed().as_secs_f64())
    }

    pub(super) fn look(&mut self, standing: Standing, output: &Output) {
        let elapsed = self.elapsed();
        let passed = elapsed.saturating_sub(self.last.0);
        if self.told || passed < FIRST_MOMENTS {
            return;
        }
        let left = self.left(standing, elapsed, passed);
        self.last = (elapsed, standing.furthest);
        if left > LONG {
            self.told = true;
            let most = if standing.done == 0 { ", if replications go on to their time limit" } else { "" };
            output.line(&format!(
                "this takes about {left} more{most}; Ctrl-C ends it with the replications that are done by then"
            ));
        }
    }

    /// How long it takes yet: by the replications that are done, or while there are none by the pace of the last moments,
    /// which changes where a link fills up.
    fn left(&self, standing: Standing, elapsed: Span, passed: Span) -> Span {
        let seconds = if standing.done > 0 {
            let left = self.total.saturating_sub(standing.done) as f64;
            elapsed.as_secs_f64() * left / standing.done as f64
        } else {
            let pace = standing.furthest.since(self.last.1).as_secs_f64() / passed.as_secs_f64();
            let one = self.limit.since(standing.furthest).as_secs_f64() / pace.max(1e-9);
            let others = self.total.div_ceil(self.threads).saturating_sub(1) as f64;
            one + others * (elapsed.as_secs_f64() + one)
        };
        Span::from_secs_f64(seconds.clamp(0.0, 1e9))
    }
}

fn shown(octets: u64) -> String {
    // The nearest that a person can use.
    Bytes(if octets >= 10_000_000 { octets / 1_000_000 * 1_000_000 } else { octets }).to_string()
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
