//! Runs the replications of a paper's settings, with progress.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use farcast_core::{Span, Time};
use farcast_sim::outcome::Replication;
use farcast_sim::replicate::{HowMany, Plan, Standing, run as replicate};
use farcast_sim::scenario::Scenario;

use crate::output::Output;
use crate::progress::Progress;
use crate::{Exit, Failure};

/// Who is faster than this says nothing in between.
const PATIENCE: Span = Span::from_secs(2);

/// Runs the replications of one setting after the other.
pub(super) struct Runner<'a> {
    output: &'a Output,
    plan: Plan,
    replications: u64,
    paper: &'static str,
    begin: Instant,
    /// Replications done of so many in all.
    done: Cell<u64>,
    total: u64,
    progress: Mutex<Option<Progress>>,
    interrupted: Arc<AtomicBool>,
}

impl<'a> Runner<'a> {
    /// A runner of so many settings of a paper: (seed, replications of each, threads).
    #[expect(clippy::disallowed_methods, reason = "progress is shown in real time")]
    pub(super) fn new(
        output: &'a Output,
        (seed, replications, threads): (u64, u64, usize),
        (paper, settings): (&'static str, u64),
    ) -> Result<Self, Failure> {
        let interrupted = crate::interrupt::interrupted()?;
        Ok(Self {
            output,
            plan: Plan { seed, how_many: HowMany::Count(replications), threads, per_receiver: false },
            replications,
            paper,
            begin: Instant::now(),
            done: Cell::new(0),
            total: replications.saturating_mul(settings),
            progress: Mutex::new(None),
            interrupted,
        })
    }

    /// Every replication of `scenario`, in order. All settings of a paper have the same seed, so their replications of
    /// one index have common random numbers.
    pub(super) fn run(&self, scenario: &Scenario) -> Result<Vec<Replication>, Failure> {
        self.run_at_most(scenario, self.replications)
    }

    /// As many, but at most `most`: what draws nothing need not be repeated.
    pub(super) fn run_at_most(&self, scenario: &Scenario, most: u64) -> Result<Vec<Replication>, Failure> {
        let wanted = self.replications.min(most);
        let plan = Plan { how_many: HowMany::Count(wanted), ..self.plan };
        let before = self.done.get();
        let (output, total, begin) = (self.output, self.total, self.begin);
        let (paper, progress, interrupted) = (self.paper, &self.progress, &self.interrupted);
        let mut watch = |Standing { done: n, .. }| {
            let now = Time::ZERO + Span::from_secs_f64(begin.elapsed().as_secs_f64());
            if now >= Time::ZERO + PATIENCE
                && let Ok(mut progress) = progress.try_lock()
            {
                let progress = progress.get_or_insert_with(|| Progress::new(output));
                let message = format!("{} of {total} replications", before + n);
                progress.update(output, now, (paper, &message), (before + n, total), &[]);
            }
            !interrupted.load(Ordering::Relaxed)
        };
        let replications = replicate(scenario, &plan, &mut watch)?;
        self.done.set(before + self.replications);
        if replications.len() as u64 == wanted {
            return Ok(replications);
        }
        self.clear();
        Err(Failure { sentence: format!("{paper}: interrupted; there is no result"), exit: Exit::Failed })
    }

    /// What all draws follow from.
    pub(super) fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// Replications of each setting.
    pub(super) fn replications(&self) -> u64 {
        self.replications
    }

    /// Set when somebody wants it all to end.
    pub(super) fn interrupted(&self) -> &AtomicBool {
        &self.interrupted
    }

    /// Shows that so many of all runs in real time are done.
    pub(super) fn show_runs(&self, done: u64, total: u64) {
        let now = Time::ZERO + Span::from_secs_f64(self.begin.elapsed().as_secs_f64());
        if let Ok(mut progress) = self.progress.lock() {
            let progress = progress.get_or_insert_with(|| Progress::new(self.output));
            let message = format!("{done} of {total} runs in real time");
            progress.update(self.output, now, (self.paper, &message), (done, total), &[]);
        }
    }

    fn clear(&self) {
        if let Ok(mut progress) = self.progress.lock()
            && let Some(progress) = progress.as_mut()
        {
            progress.clear();
        }
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}
