//! Estimate of the remaining time, for a report if it is long.

use std::time::Instant;

use farcast_core::{Span, Time};
use farcast_sim::replicate::{HowMany, Plan, Replicable, Standing};

use crate::Progress;

/// Time after which the remaining time can be estimated.
const FIRST_MOMENTS: Span = Span::from_secs(5);
/// Remaining time that counts as long.
const LONG: Span = Span::from_secs(600);

/// Reports once, after the first moments or later, that a simulation will take long.
pub(super) struct LengthNotice {
    begin: Instant,
    limit: Time,
    threads: u64,
    total: u64,
    told: bool,
    /// Time of the last estimate, and virtual time of the furthest replication then.
    last: (Span, Time),
}

impl LengthNotice {
    #[expect(clippy::disallowed_methods, reason = "somebody waits in real time")]
    pub(super) fn new(scenario: &impl Replicable, plan: &Plan) -> Self {
        let total = match plan.how_many {
            HowMany::Count(n) => n,
            // The number of replications is unknown; this is its lower bound.
            HowMany::Until(_, most) => most.min(10),
        };
        let (limit, threads) = (scenario.time_limit(), plan.threads.max(1) as u64);
        Self { begin: Instant::now(), limit, threads, total, told: false, last: (Span::ZERO, Time::ZERO) }
    }

    /// Returns the time so far.
    pub(super) fn elapsed(&self) -> Span {
        Span::from_secs_f64(self.begin.elapsed().as_secs_f64())
    }

    /// Returns the remaining time, if it is long and was not reported before.
    pub(super) fn look(&mut self, standing: Standing) -> Option<Progress> {
        let elapsed = self.elapsed();
        let passed = elapsed.saturating_sub(self.last.0);
        if self.told || passed < FIRST_MOMENTS {
            return None;
        }
        let left = self.left(standing, elapsed, passed);
        self.last = (elapsed, standing.furthest);
        self.told = left > LONG;
        self.told.then_some(Progress::Long { left, at_worst: standing.done == 0 })
    }

    /// Estimates the remaining time from the replications that are done. While there are none, it uses the pace of
    /// the last moments, which changes as a link fills up.
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
