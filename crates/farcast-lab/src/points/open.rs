//! Points that have begun.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use farcast_sim::replicate::HowMany;
use farcast_stats::StoppingRule;

use super::{PointError, PointRequest, PointResult, SLICE, Slice};
use crate::figures::Figures;
use crate::world::{Outcome, World};

/// A point whose replications are running.
pub(super) struct OpenPoint {
    wanted: PointRequest,
    /// Scenario of the point, once it has been read.
    world: Option<Arc<World>>,
    rule: Option<StoppingRule>,
    /// The next replication that no thread has begun, counted from the first.
    next: u64,
    /// Greatest number of replications.
    most: u64,
    /// Outcomes that came before those of earlier replications.
    early: BTreeMap<u64, Vec<Outcome>>,
    figures: Figures,
    spent: Duration,
    runs: u32,
}

impl OpenPoint {
    pub(super) fn new(wanted: PointRequest) -> Result<Self, PointError> {
        let (most, rule) = match wanted.how_many {
            HowMany::Count(count) => (count, None),
            HowMany::Until(precision, most) => (most, Some(StoppingRule::new(precision, most)?)),
        };
        Ok(Self {
            wanted,
            world: None,
            rule,
            next: 0,
            most,
            early: BTreeMap::new(),
            figures: Figures::new(),
            spent: Duration::ZERO,
            runs: 0,
        })
    }

    pub(super) fn is(&self, wanted: &PointRequest) -> bool {
        self.wanted.point == wanted.point
    }

    pub(super) fn is_of(&self, slice: &Slice) -> bool {
        self.wanted.point == slice.point
    }

    pub(super) fn begin(&mut self, world: Arc<World>) {
        self.world = Some(world);
    }

    /// Takes replications that no thread has begun: as many as fit into a slice of time. With a stopping rule, these
    /// are not many more than up to its next check.
    pub(super) fn slice(&mut self) -> Option<Slice> {
        let world = self.world.clone()?;
        let ahead = if self.rule.is_some() {
            let fed = self.figures.len() as u64;
            self.most.min(fed + (fed / 4).max(10))
        } else {
            self.most
        };
        let count = ahead.saturating_sub(self.next).min(self.per_slice());
        if count == 0 {
            return None;
        }
        let first = self.wanted.first + self.next;
        self.next += count;
        Some(Slice { point: self.wanted.point, world, range: first..first + count })
    }

    fn per_slice(&self) -> u64 {
        if self.runs == 0 {
            return 1;
        }
        let one = (self.spent / self.runs).max(Duration::from_micros(1));
        (SLICE.as_nanos() / one.as_nanos()).clamp(1, 10_000) as u64
    }

    /// Takes the outcomes of replications from `first` on. Returns `true` if the point is complete.
    pub(super) fn put(
        &mut self,
        first: u64,
        outcomes: Vec<Outcome>,
        spent: Duration,
    ) -> Result<bool, PointError> {
        self.spent += spent;
        self.runs = self.runs.saturating_add(outcomes.len() as u32);
        self.early.insert(first - self.wanted.first, outcomes);
        while let Some(entry) = self.early.first_entry() {
            if *entry.key() != self.figures.len() as u64 {
                break;
            }
            for outcome in entry.remove() {
                if self.is_done() {
                    return Ok(true);
                }
                if let Some(rule) = &mut self.rule {
                    rule.push(self.figures.len() as u64, outcome.as_ref().aim())?;
                }
                self.figures.push(&outcome);
            }
        }
        Ok(self.is_done())
    }

    fn is_done(&self) -> bool {
        let is_ruled = self.rule.as_ref().is_some_and(|rule| rule.stop().is_some());
        is_ruled || self.figures.len() as u64 >= self.most
    }

    pub(super) fn into_done(self) -> PointResult {
        PointResult { point: self.wanted.point, figures: self.figures, cpu_s: self.spent.as_secs_f64() }
    }
}
