//! Runs in real time: several at once, each on hosts and a link of its own, and repeated if the relay was late.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;

use farcast_core::{Span, Time};
use farcast_emu::Clock;
use farcast_emu::emulation::{Emulation, Plan};
use farcast_scenario::receivers::Group;

use super::cases::{Protocol, RECEIVERS, RealMethod, Setting, Size};
use super::{STUDY, kernel, mftp, tunnel};
use crate::study::{Runner, StudyError};

/// Number of runs at once: links of 2 Mbit/s leave a machine idle, and more runs would delay each other's wake-ups.
const AT_ONCE: usize = 4;
/// Most repetitions of an invalid run.
const REPEATS: u32 = 5;
/// Longest time of a run, far above what any run takes.
const LIMIT: Span = Span::from_secs(60);

/// Outcome of a run or a replication.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Outcome {
    /// Completion time, in seconds.
    pub(super) seconds: f64,
    /// Number of passes; MFTP only.
    pub(super) passes: Option<f64>,
    /// Number of data segments sent, if they are counted.
    pub(super) segments: Option<f64>,
}

/// A run to be made.
pub(super) struct AgreementRun<'a> {
    pub(super) setting: &'a Setting,
    pub(super) size: &'a Size,
    pub(super) way: RealMethod,
    pub(super) seed: u64,
}

/// Conditions under which a run must end: its time limit, or an interruption.
#[derive(Clone, Copy)]
pub(super) struct Ending<'a> {
    pub(super) clock: Clock,
    interrupted: &'a AtomicBool,
}

impl Ending<'_> {
    /// Returns `true` if the run must end now.
    pub(super) fn is_due(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.clock.now() >= Time::ZERO + LIMIT
    }
}

/// A run that waits: its number, and how often it was invalid.
type WaitingRun = (usize, u32);

/// Makes all runs, and returns their outcomes in the same order.
pub(super) fn all(runner: &Runner<'_>, jobs: &[AgreementRun<'_>]) -> Result<Vec<Outcome>, StudyError> {
    let waiting: Mutex<VecDeque<WaitingRun>> =
        Mutex::new((0..jobs.len()).map(|number| (number, 0)).collect());
    let (sender, results) = mpsc::channel();
    let mut outcomes = vec![None; jobs.len()];
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            let (waiting, sender, interrupted) = (&waiting, sender.clone(), runner.interrupted());
            scope.spawn(move || work(jobs, waiting, interrupted, &sender));
        }
        drop(sender);
        for (done, (number, result)) in (1..).zip(results) {
            outcomes[number] = Some(result?);
            runner.show_runs(done, jobs.len() as u64);
        }
        Ok::<_, StudyError>(())
    })?;
    outcomes.into_iter().collect::<Option<_>>().ok_or_else(|| failure("a run has no outcome"))
}

/// Makes runs until none waits.
fn work(
    jobs: &[AgreementRun<'_>],
    waiting: &Mutex<VecDeque<WaitingRun>>,
    interrupted: &AtomicBool,
    results: &Sender<(usize, Result<Outcome, StudyError>)>,
) {
    let queue = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let Some((number, late)) = queue().pop_front() else { return };
        let result = match judged(&jobs[number], late, interrupted) {
            Ok(Some(outcome)) => Ok(outcome),
            // The run goes to the end of the queue, when the machine may have less to do.
            Ok(None) => {
                queue().push_back((number, late + 1));
                continue;
            }
            Err(failure) => {
                queue().clear();
                Err(failure)
            }
        };
        // The receiver stops at the first failure and may be gone.
        let _ = results.send((number, result));
    }
}

/// Makes a run that was invalid `late` times before; `None` if it is to be repeated.
fn judged(
    job: &AgreementRun<'_>,
    late: u32,
    interrupted: &AtomicBool,
) -> Result<Option<Outcome>, StudyError> {
    let name = format!("{}: {}, {}", STUDY.name, job.setting.case.name, job.way.column());
    let outcome = once(job, interrupted);
    if interrupted.load(Ordering::Relaxed) {
        return Err(StudyError::Interrupted { study: STUDY.name });
    }
    let outcome = outcome.map_err(|error| failure(&format!("{name}: {error}")))?;
    if outcome.is_none() && late == REPEATS {
        return Err(StudyError::Busy(format!(
            "{name}: not judged, because a run was late {} times: repeat it while the machine has less to do",
            REPEATS + 1
        )));
    }
    // A repetition has the same draws, so that the choice of repeated runs does not depend on them.
    Ok(outcome)
}

/// Makes a run once; `None` if the relay was late.
fn once(job: &AgreementRun<'_>, interrupted: &AtomicBool) -> Result<Option<Outcome>, StudyError> {
    let links = job.setting.links.clone();
    let plan = match job.setting.case.protocol {
        Protocol::Mftp { .. } => Plan::new(links, vec![group()], job.seed),
        Protocol::Tcp { .. } => Plan::between_two(links, job.seed),
    };
    let emulation = Emulation::start(plan, None)?;
    let ending = Ending { clock: Clock::start(), interrupted };
    let outcome = match job.way {
        RealMethod::Sockets => mftp::run(job, &emulation, ending),
        RealMethod::Tunnel => tunnel::run(job, &emulation, ending),
        RealMethod::Kernel => kernel::run(job, &emulation, ending),
    };
    // An error of the relay explains the errors of the ends.
    let report = emulation.finish()?;
    if report.valid { outcome.map(Some) } else { Ok(None) }
}

fn group() -> Group {
    Group { receivers: RECEIVERS, delay: Span::ZERO, losses: None }
}

/// Raises the priority of this thread, and of those that it starts, above other programs but below the relay: an end
/// that wakes late is not a property of its link.
pub(super) fn hurry() {
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };
    const BEHIND_THE_RELAY: u8 = 20;
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let Ok(priority) = ThreadPriorityValue::try_from(BEHIND_THE_RELAY) else { return };
    // If the system refuses, the priority stays as it is.
    let _ =
        set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(priority), policy);
}

/// Returns the error of a failed run.
pub(super) fn failure(sentence: &str) -> StudyError {
    StudyError::Run(sentence.into())
}
