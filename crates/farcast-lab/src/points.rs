//! Runs the replications of many points on all cores.
//!
//! A thread takes some replications of the earliest point that still has some to run. So a few points with many
//! replications keep all cores busy, and so do many points with few replications. All points have the same seed:
//! replication 7 of one has the random numbers of replication 7 of every other. Points are therefore compared on common
//! random numbers.

mod open;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use farcast_core::Span;
use farcast_scenario::document::DocumentError;
use farcast_sim::replicate::{HowMany, Plan, Replicable as _, ReplicationError};
use farcast_sim::star::Pulse;
use farcast_stats::StatsError;

use crate::figures::Figures;
use crate::replications::{Memory, MemoryError};
use crate::world::{Outcome, World};
use open::OpenPoint;

/// Interval between two reports of progress.
const LOOK: Duration = Duration::from_millis(100);
/// Approximate time that a thread works before it takes more replications.
const SLICE: Duration = Duration::from_millis(20);

/// Replications of one point to run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PointRequest {
    /// Number by which the caller knows the point.
    pub point: usize,
    /// The first replication.
    pub first: u64,
    /// Number of replications from there on; a precision applies to all from `first` on.
    pub how_many: HowMany,
}

/// Results of a point.
#[derive(Clone, PartialEq, Debug)]
pub struct PointResult {
    /// Number by which the caller knows the point.
    pub point: usize,
    /// Figures of its replications, in order.
    pub figures: Figures,
    /// Time that cores spent on its replications, in seconds.
    pub cpu_s: f64,
}

/// Resources for running points.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'a> {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of threads, at least 1; figures do not depend on it.
    pub threads: usize,
    /// Memory that the replications may take.
    pub memory: &'a Memory,
    /// Flag by which the caller ends the work; points that are incomplete by then are thrown away.
    pub stop: &'a AtomicBool,
}

/// Progress of points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointsProgress {
    /// Time since the work began, in real time.
    pub elapsed: Span,
    /// Number of points that are done.
    pub points: usize,
    /// Number of replications that are done.
    pub replications: u64,
}

/// Error of running points.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PointError {
    /// The scenario of a point is wrong.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The replications take more memory than they may.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A replication cannot be run.
    #[error(transparent)]
    Replication(#[from] ReplicationError),
    /// The caller's flag was set.
    #[error("interrupted")]
    Interrupted,
}

impl From<StatsError> for PointError {
    fn from(error: StatsError) -> Self {
        Self::Replication(error.into())
    }
}

/// Runs the replications in `wanted`, in that order as far as cores allow.
///
/// `make` reads the scenario of a point. `done` is called for each point when it is complete, in any order.
/// `progress` is called ten times a second or more often.
///
/// # Errors
/// The first error of a point or of `done`; [`PointError::Interrupted`] if `stop` was set before all points were
/// done.
pub fn run<E: From<PointError>>(
    wanted: &[PointRequest],
    work: &Resources<'_>,
    make: &(dyn Fn(usize) -> Result<World, DocumentError> + Sync),
    done: &mut dyn FnMut(PointResult) -> Result<(), E>,
    progress: &mut dyn FnMut(PointsProgress),
) -> Result<(), E> {
    #[expect(clippy::disallowed_methods, reason = "somebody waits in real time")]
    let begin = Instant::now();
    let shared = SharedWork { queue: Mutex::default(), pulse: Pulse::default(), work, make };
    shared.lock().waiting = wanted.iter().copied().collect();
    let mut standing = PointsProgress { elapsed: Span::ZERO, points: 0, replications: 0 };
    let mut failed = None;
    std::thread::scope(|scope| {
        let (sender, finished) = mpsc::channel();
        for _ in 0..work.threads.max(1) {
            let (sender, shared) = (sender.clone(), &shared);
            scope.spawn(move || shared.work(&sender));
        }
        drop(sender);
        loop {
            let result = match finished.recv_timeout(LOOK) {
                Ok(WorkerMessage::Replications(count)) => {
                    standing.replications += count;
                    Ok(())
                }
                Ok(WorkerMessage::Point(point)) => {
                    standing.points += 1;
                    if failed.is_none() { done(*point) } else { Ok(()) }
                }
                Ok(WorkerMessage::Failed(error)) => Err(error.into()),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    work.memory.look().map_err(|error| PointError::from(error).into())
                }
            };
            if let Err(error) = result {
                failed.get_or_insert(error);
                shared.pulse.stop();
            }
            standing.elapsed = Span::from_secs_f64(begin.elapsed().as_secs_f64());
            progress(standing);
            if work.stop.load(Ordering::Relaxed) {
                shared.pulse.stop();
            }
        }
    });
    match failed {
        Some(error) => Err(error),
        None if standing.points < wanted.len() => Err(PointError::Interrupted.into()),
        None => Ok(()),
    }
}

/// Message of a thread to the caller of [`run`].
enum WorkerMessage {
    Replications(u64),
    Point(Box<PointResult>),
    Failed(PointError),
}

/// Points that wait, and points that have begun.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<PointRequest>,
    open: Vec<OpenPoint>,
}

/// Replications that a thread runs at once.
struct Slice {
    point: usize,
    world: Arc<World>,
    range: std::ops::Range<u64>,
}

struct SharedWork<'a> {
    queue: Mutex<Queue>,
    pulse: Pulse,
    work: &'a Resources<'a>,
    make: &'a (dyn Fn(usize) -> Result<World, DocumentError> + Sync),
}

impl SharedWork<'_> {
    /// Locks the queue. After a panic of another thread the queue is still valid, so the poison is ignored.
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, tell: &Sender<WorkerMessage>) {
        while !self.pulse.is_stopped() {
            let told = match self.take() {
                Ok(Some(slice)) => self.run(&slice, tell),
                Ok(None) => {
                    let queue = self.lock();
                    if queue.waiting.is_empty() && queue.open.is_empty() {
                        break;
                    }
                    drop(queue);
                    // Other threads still work, and their results may open up more replications.
                    std::thread::park_timeout(Duration::from_millis(1));
                    continue;
                }
                Err(error) => Err(error),
            };
            if let Err(error) = told {
                // The receiver may be gone already.
                drop(tell.send(WorkerMessage::Failed(error)));
                break;
            }
        }
    }

    /// Takes the next replications to run: of an open point, or of a waiting point that is opened for it. `None` if
    /// there are none at the moment.
    fn take(&self) -> Result<Option<Slice>, PointError> {
        let mut queue = self.lock();
        if let Some(slice) = queue.open.iter_mut().find_map(OpenPoint::slice) {
            return Ok(Some(slice));
        }
        let Some(wanted) = queue.waiting.pop_front() else { return Ok(None) };
        // The entry in the queue keeps other threads from ending while the scenario is read.
        queue.open.push(OpenPoint::new(wanted)?);
        drop(queue);
        let world = (self.make)(wanted.point)?;
        let plan = Plan {
            seed: self.work.seed,
            how_many: wanted.how_many,
            threads: self.work.threads.max(1),
            per_receiver: false,
        };
        self.work.memory.check(&world, &plan)?;
        let mut queue = self.lock();
        let open = queue.open.iter_mut().find(|open| open.is(&wanted));
        Ok(open.and_then(|open| {
            open.begin(Arc::new(world));
            open.slice()
        }))
    }

    fn run(&self, slice: &Slice, tell: &Sender<WorkerMessage>) -> Result<(), PointError> {
        let begin = cpu_time();
        let mut outcomes: Vec<Outcome> = Vec::new();
        for index in slice.range.clone() {
            match slice.world.replicate(self.work.seed, index, false, &self.pulse)? {
                Some(outcome) => outcomes.push(outcome),
                None => return Ok(()),
            }
        }
        let spent = cpu_time().saturating_sub(begin);
        drop(tell.send(WorkerMessage::Replications(outcomes.len() as u64)));
        let mut queue = self.lock();
        let Some(place) = queue.open.iter().position(|open| open.is_of(slice)) else { return Ok(()) };
        if queue.open[place].put(slice.range.start, outcomes, spent)? {
            let done = queue.open.remove(place).into_done();
            drop(queue);
            drop(tell.send(WorkerMessage::Point(Box::new(done))));
        }
        Ok(())
    }
}

/// Returns the processor time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
