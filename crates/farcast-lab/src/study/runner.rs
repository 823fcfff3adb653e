//! Runner of the replications of a study's settings, with progress.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use farcast_core::Span;
use farcast_sim::replicate::{HowMany, Plan, Replicable, Standing, run as replicate};
use farcast_sim::star::Pulse;

use super::{Effort, Options, Study, StudyError};
use crate::Progress;

/// Interval between two reports of progress.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the replications of one setting after the other.
pub(crate) struct Runner<'a> {
    options: &'a Options<'a>,
    plan: Plan,
    replications: u64,
    study: &'static str,
    begin: Instant,
    /// Number of replications that are done; `total` is the number of all.
    done: Cell<u64>,
    total: u64,
    progress: RefCell<&'a mut dyn FnMut(Progress)>,
}

impl<'a> Runner<'a> {
    /// Creates a runner of all settings of `study`.
    #[expect(clippy::disallowed_methods, reason = "somebody waits in real time")]
    pub(crate) fn new(
        study: &Study,
        options: &'a Options<'a>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Self {
        let replications = study.replications(options.effort);
        let (seed, threads) = (options.seed, options.threads.get());
        Self {
            options,
            plan: Plan { seed, how_many: HowMany::Count(replications), threads, per_receiver: false },
            replications,
            study: study.name,
            begin: Instant::now(),
            done: Cell::new(0),
            total: replications.saturating_mul(study.settings),
            progress: RefCell::new(progress),
        }
    }

    /// Returns every replication of `scenario`, in order. All settings of a study have the same seed, so their
    /// replications of one index have common random numbers.
    pub(crate) fn run<S: Replicable>(&self, scenario: &S) -> Result<Vec<S::Outcome>, StudyError> {
        self.run_at_most(scenario, self.replications)
    }

    /// Returns the replications of `scenario`, `most` at most: a scenario without random numbers need not be
    /// repeated.
    pub(crate) fn run_at_most<S: Replicable>(
        &self,
        scenario: &S,
        most: u64,
    ) -> Result<Vec<S::Outcome>, StudyError> {
        let wanted = self.replications.min(most);
        let plan = Plan { how_many: HowMany::Count(wanted), ..self.plan };
        let (before, total) = (self.done.get(), self.total);
        let mut watch = |Standing { done, .. }| {
            self.tell(Progress::Replications { elapsed: self.elapsed(), done: before + done, total });
            !self.interrupted().load(Ordering::Relaxed)
        };
        let replications = replicate(scenario, &plan, &mut watch)?;
        self.done.set(before + self.replications);
        if replications.len() as u64 == wanted {
            return Ok(replications);
        }
        Err(StudyError::Interrupted { study: self.study })
    }

    /// Returns the results of `one` for the index of each replication, in order: as many as a setting has, but `most`
    /// at most. After its pulse has stopped, `one` returns `None`.
    ///
    /// # Errors
    /// The first error of `one`; [`StudyError::Interrupted`].
    pub(crate) fn map<T: Send>(
        &self,
        most: u64,
        one: impl Fn(u64, &Pulse) -> Result<Option<T>, StudyError> + Sync,
    ) -> Result<Vec<T>, StudyError> {
        let wanted = self.replications.min(most);
        let (before, total) = (self.done.get(), self.total);
        let (next, pulse) = (AtomicU64::new(0), Pulse::default());
        let mut results: Vec<(u64, Result<Option<T>, StudyError>)> = Vec::new();
        std::thread::scope(|scope| {
            let (sender, finished) = mpsc::channel();
            for _ in 0..(self.plan.threads as u64).clamp(1, wanted.max(1)) {
                let (sender, next, pulse, one) = (sender.clone(), &next, &pulse, &one);
                scope.spawn(move || {
                    while !pulse.is_stopped() {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        // The receiver may be gone already.
                        if index >= wanted || sender.send((index, one(index, pulse))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            loop {
                match finished.recv_timeout(LOOK) {
                    Ok(result) => results.push(result),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let done = before + results.len() as u64;
                self.tell(Progress::Replications { elapsed: self.elapsed(), done, total });
                if self.interrupted().load(Ordering::Relaxed) {
                    pulse.stop();
                }
            }
        });
        self.done.set(before + self.replications);
        results.sort_unstable_by_key(|(index, _)| *index);
        let results = results.into_iter().filter_map(|(_, result)| result.transpose());
        let results = results.collect::<Result<Vec<T>, StudyError>>()?;
        if results.len() as u64 == wanted {
            return Ok(results);
        }
        Err(StudyError::Interrupted { study: self.study })
    }

    /// Returns the seed of all random numbers.
    pub(crate) fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// Returns the effort.
    pub(crate) fn effort(&self) -> Effort {
        self.options.effort
    }

    /// Returns the number of replications of each setting.
    pub(crate) fn replications(&self) -> u64 {
        self.replications
    }

    /// Returns the flag by which the caller ends the study.
    pub(crate) fn interrupted(&self) -> &AtomicBool {
        self.options.stop
    }

    /// Returns the program `farcast`, if the caller gave it.
    pub(crate) fn executable(&self) -> Option<&Path> {
        self.options.executable
    }

    /// Reports the number of runs in real time that are done.
    pub(crate) fn show_runs(&self, done: u64, total: u64) {
        self.tell(Progress::Runs { elapsed: self.elapsed(), done, total });
    }

    fn elapsed(&self) -> Span {
        Span::from_secs_f64(self.begin.elapsed().as_secs_f64())
    }

    fn tell(&self, how: Progress) {
        (self.progress.borrow_mut())(how);
    }
}
