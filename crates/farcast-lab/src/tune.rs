//! Tuning: the search for settings with the least value of a figure, within bounds of other figures, and the confidence
//! of the result.
//!
//! Every combination of the varied values races against all others (see [`Tuning::run`]). The scenario's own settings
//! take part, so that the result shows the gain over them. If properties of the link are unknown, settings are judged
//! by the mean over a range of these properties.

mod objective;
mod plan;
mod race;
mod tune_table;

use std::collections::BTreeMap;

use farcast_core::Span;
use farcast_scenario::document::{Document, DocumentError};
use farcast_sim::replicate::HowMany;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::points::{self, PointError, PointRequest, PointResult, Resources};
use crate::sweep::{Sweep, SweepError};
use crate::vary::Grid;
pub use objective::{Bound, Measured, ObjectiveError, Side, Statistic};
pub use plan::plan;
use race::{Difference, Standings, Values};
pub use tune_table::{Case, TuneTable};

/// Number of settings above which the worse half is dropped after each round, with or without confidence.
pub const HALVED_ABOVE: usize = 32;

/// A task for tuning.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The scenario.
    pub document: Document,
    /// The settings that race.
    pub settings: Grid,
    /// Unknown conditions: settings are judged by the mean over all of these points.
    pub conditions: Grid,
    /// Figure to minimise.
    pub minimise: Measured,
    /// Bounds that must hold.
    pub bounds: Vec<Bound>,
    /// Replications of each setting in the first round, and in all rounds at most.
    pub replications: (u64, u64),
    /// Probability with which the best setting is not dropped; above 0 and below 1.
    pub level: f64,
}

/// Progress of a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RaceProgress {
    /// Time since the race began, in real time.
    pub elapsed: Span,
    /// The round, from 1.
    pub round: u32,
    /// Number of settings that are still in the race.
    pub racing: usize,
    /// Number of replications that were run.
    pub replications: u64,
    /// Number of replications that will be run if no more settings are dropped.
    pub total: u64,
}

/// Fate of a setting in the race.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingFate {
    /// It is the best.
    Best,
    /// At the end it did not differ from the best with confidence.
    Tied,
    /// It is worse than the best, with confidence.
    Worse,
    /// It was in the worse half of many settings; the confidence is unknown.
    Halved,
    /// It exceeds a bound.
    OutOfBounds,
}

/// Result of a setting.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The settings in words; the scenario's settings have a name of their own.
    pub name: String,
    /// The settings, as arguments of `--set`.
    pub assignments: Vec<String>,
    /// True if these are the scenario's own settings.
    pub is_default: bool,
    /// Fate of the setting.
    pub fate: SettingFate,
    /// Number of replications of each condition.
    pub replications: u64,
    /// Value of the statistic.
    pub value: f64,
    /// Standard error of the value.
    pub standard_error: f64,
    /// Excess over the best, on the replications that both have.
    pub above_best: f64,
    /// Standard error of the excess.
    pub above_best_error: f64,
    /// Share of resamples in which the setting is the best of those in the last round; 0 for settings that were dropped
    /// before.
    pub chance: f64,
    /// Value of the statistic at each condition.
    pub conditions: Vec<f64>,
    /// Value of each bounded figure: the worst over conditions.
    pub bounded: Vec<f64>,
}

impl Entry {
    /// Returns the probability of an excess over the best at least as great by chance (one-sided, Student's t). `None`
    /// if it is unknown, because a replication was not finished, or there is only one.
    pub fn chance_of_difference(&self) -> Option<f64> {
        let t = if self.above_best == 0.0 { 0.0 } else { self.above_best / self.above_best_error };
        if !self.above_best.is_finite() || !self.above_best_error.is_finite() || t.is_nan() {
            return None;
        }
        // All replications differ by the same amount.
        if t.is_infinite() {
            return Some(if t > 0.0 { 0.0 } else { 1.0 });
        }
        let freedom = self.replications.saturating_sub(1).max(1) as f64;
        StudentsT::new(0.0, 1.0, freedom).ok().map(|distribution| distribution.sf(t))
    }
}

/// Result of a race.
#[derive(Clone, PartialEq, Debug)]
pub struct Tuned {
    /// All settings: the best first, then the others by value, those out of bounds last. There is at least one.
    pub entries: Vec<Entry>,
    /// True if no setting keeps the bounds; the first is then the one that exceeds them least.
    pub none_within_bounds: bool,
    /// Number of rounds that were run.
    pub rounds: u32,
    /// Number of replications that were run.
    pub replications: u64,
    /// Replications of a full grid: the greatest number for every setting.
    pub full_grid: u64,
    /// Time that cores spent on replications, in seconds.
    pub cpu_s: f64,
    /// Time that cores would spend on a full grid, in seconds, estimated from the time per replication of each
    /// setting.
    pub full_grid_cpu_s: f64,
    /// Duration of the race, in real time.
    pub elapsed: Span,
}

/// Error of tuning.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The scenario is wrong with some setting.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// A setting cannot be run.
    #[error(transparent)]
    Point(#[from] PointError),
    /// The requested figure or bound is wrong.
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
    /// The figure to minimise is infinite or absent for all settings.
    #[error(
        "no setting has a finite {0}: nothing can be compared; name another figure with --minimise, or look at a setting with farcast simulate"
    )]
    Nothing(String),
}

/// A setting in the race.
struct Racer {
    /// Its point of the grid of settings; `None` for the scenario's own settings.
    point: Option<usize>,
    values: Values,
    bounded: Vec<Values>,
    cpu_s: f64,
    fate: Option<SettingFate>,
}

impl Tuning {
    /// Runs the race in rounds of replications. Each round doubles the replications of every setting, until one
    /// setting is left or all have the greatest number. All settings and conditions have common random numbers;
    /// `work.seed` is the seed of all.
    ///
    /// # Errors
    /// A setting that cannot be run, or a figure that does not exist.
    pub fn run(
        &self,
        work: &Resources<'_>,
        progress: &mut dyn FnMut(RaceProgress),
    ) -> Result<Tuned, TuneError> {
        let count = HowMany::Count(1);
        let check =
            |grid: &Grid| Sweep::new(self.document.clone(), grid.clone(), work.seed, count, "").map(drop);
        check(&self.settings)?;
        check(&self.conditions)?;
        // A key cannot be both varied and unknown.
        Grid::new(self.settings.axes().iter().chain(self.conditions.axes()).cloned().collect())
            .map_err(SweepError::from)?;
        let mut race = Race::new(self, work);
        let (first, most) = (self.replications.0.max(2), self.replications.1.max(2));
        let (mut done, mut round) = (0, 0);
        // The probability of an error is divided by the number of all comparisons to come (Bonferroni).
        let rounds = (most as f64 / first as f64).log2().ceil().max(0.0) + 1.0;
        let others = race.racers.len().saturating_sub(1).max(1) as f64;
        let tail = (1.0 - self.level) / (others * rounds);
        while done < most && (race.racing().len() > 1 || done == 0) {
            round += 1;
            let until = if done == 0 { first.min(most) } else { (done * 2).min(most) };
            race.run(done..until, round, most, progress)?;
            done = until;
            if !race.drop_some(threshold(tail, done), round, done == most)? {
                break;
            }
        }
        Ok(race.result(most, round))
    }
}

/// Returns the number of standard errors that is exceeded by chance with probability `tail` at most. It uses Student's
/// t, because the errors are estimated from the same `replications`.
fn threshold(tail: f64, replications: u64) -> f64 {
    let below = 1.0 - tail;
    // A tail this small cannot be reached, so nothing is dropped. For a tail above one half the number is zero.
    if below >= 1.0 || replications < 2 {
        return f64::INFINITY;
    }
    let quantile = |t: StudentsT| t.inverse_cdf(below.max(0.5));
    StudentsT::new(0.0, 1.0, replications as f64 - 1.0).map_or(f64::INFINITY, quantile)
}

struct Race<'a> {
    tuning: &'a Tuning,
    work: &'a Resources<'a>,
    racers: Vec<Racer>,
    documents: Vec<Vec<String>>,
    replications: u64,
    elapsed: Span,
}

impl<'a> Race<'a> {
    fn new(tuning: &'a Tuning, work: &'a Resources<'a>) -> Self {
        let default = tuning.default_point();
        let points = (0..tuning.settings.points()).map(Some);
        let points = points.chain(default.is_none().then_some(None));
        let conditions = tuning.conditions.points();
        let racer = |point| Racer {
            point,
            values: vec![Vec::new(); conditions],
            bounded: vec![vec![Vec::new(); conditions]; tuning.bounds.len()],
            cpu_s: 0.0,
            fate: None,
        };
        let racers: Vec<Racer> = points.map(racer).collect();
        let documents = racers.iter().map(|racer| tuning.assignments(racer.point)).collect();
        Self { tuning, work, racers, documents, replications: 0, elapsed: Span::ZERO }
    }

    /// Returns the settings that were not dropped.
    fn racing(&self) -> Vec<usize> {
        (0..self.racers.len()).filter(|&racer| self.racers[racer].fate.is_none()).collect()
    }

    /// Returns the settings to run. The scenario's own settings are run to the end, so that the excess over them is
    /// known as exactly as that over the best.
    fn running(&self) -> Vec<usize> {
        let default = self.tuning.default_point();
        let is_run = |racer: &Racer| racer.fate.is_none() || racer.point == default;
        (0..self.racers.len()).filter(|&racer| is_run(&self.racers[racer])).collect()
    }

    /// Runs replications `range` of all settings to run.
    fn run(
        &mut self,
        range: std::ops::Range<u64>,
        round: u32,
        most: u64,
        progress: &mut dyn FnMut(RaceProgress),
    ) -> Result<(), TuneError> {
        let (running, racing) = (self.running(), self.racing().len());
        let conditions = self.tuning.conditions.points();
        let how_many = HowMany::Count(range.end - range.start);
        let wanted: Vec<PointRequest> = running
            .iter()
            .flat_map(|&racer| (0..conditions).map(move |condition| racer * conditions + condition))
            .map(|point| PointRequest { point, first: range.start, how_many })
            .collect();
        let mut results: BTreeMap<usize, PointResult> = BTreeMap::new();
        let documents = std::sync::Mutex::new(self.tuning.document.clone());
        let (assignments, grid) = (&self.documents, &self.tuning.conditions);
        let make = |point: usize| -> Result<crate::World, DocumentError> {
            let mut document = documents.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
            let set = assignments[point / conditions].iter().cloned();
            for assignment in set.chain(grid.assignments(point % conditions)) {
                document.set(&assignment)?;
            }
            crate::World::read(&document)
        };
        let mut done = |done: PointResult| -> Result<(), TuneError> {
            results.insert(done.point, done);
            Ok(())
        };
        let (before, so_far) = (self.elapsed, self.replications);
        let total = so_far + (running.len() * conditions) as u64 * (most - range.start);
        let mut elapsed = Span::ZERO;
        points::run(&wanted, self.work, &make, &mut done, &mut |now| {
            elapsed = now.elapsed;
            progress(RaceProgress {
                elapsed: before + now.elapsed,
                round,
                racing,
                replications: so_far + now.replications,
                total,
            });
        })?;
        self.elapsed = before + elapsed;
        for (point, done) in results {
            let (racer, condition) = (&mut self.racers[point / conditions], point % conditions);
            self.replications += done.figures.len() as u64;
            racer.cpu_s += done.cpu_s;
            racer.values[condition].extend(self.tuning.minimise.values(&done.figures)?);
            for (bound, values) in self.tuning.bounds.iter().zip(&mut racer.bounded) {
                values[condition].extend(bound.measured.values(&done.figures)?);
            }
        }
        Ok(())
    }

    /// Drops settings that exceed a bound or are worse than the best, both with confidence, and the worse half of
    /// many. Returns `false` if the race should end, because all settings exceed a bound.
    fn drop_some(&mut self, threshold: f64, round: u32, is_last: bool) -> Result<bool, TuneError> {
        let racing = self.racing();
        let standings = self.standings(&racing);
        let excess: Vec<f64> = racing.iter().map(|&racer| self.excess(racer, threshold, round)).collect();
        let within: Vec<usize> = (0..racing.len()).filter(|&place| excess[place] <= 0.0).collect();
        let Some(best) = standings.best(within.iter().copied()) else { return Ok(false) };
        if !standings.values[best].is_finite() && is_last {
            return Err(TuneError::Nothing(self.tuning.minimise.to_string()));
        }
        let mut fates: Vec<Option<SettingFate>> = (0..racing.len())
            .map(|place| {
                let difference = standings.difference(place, best);
                let unreached = !standings.values[place].is_finite() && standings.values[best].is_finite();
                if !within.contains(&place) {
                    return Some(SettingFate::OutOfBounds);
                }
                let is_worse = unreached || difference.value > threshold * difference.standard_error;
                (place != best && is_worse).then_some(SettingFate::Worse)
            })
            .collect();
        let mut left: Vec<usize> = (0..racing.len()).filter(|&place| fates[place].is_none()).collect();
        if left.len() > HALVED_ABOVE && !is_last {
            left.sort_by(|&a, &b| standings.values[a].total_cmp(&standings.values[b]));
            for &place in &left[left.len().div_ceil(2)..] {
                fates[place] = Some(SettingFate::Halved);
            }
        }
        for (place, fate) in fates.into_iter().enumerate().filter(|(_, fate)| fate.is_some()) {
            self.racers[racing[place]].fate = fate;
        }
        Ok(true)
    }

    /// Returns the amount by which a setting exceeds its bounds with confidence; zero or less if it may keep all
    /// bounds.
    fn excess(&self, racer: usize, threshold: f64, round: u32) -> f64 {
        let bounds = self.tuning.bounds.iter().zip(&self.racers[racer].bounded);
        let of = |(bound, values): (&Bound, &Values)| {
            let each = values.iter().map(|condition| {
                let one = vec![condition.clone()];
                let standings = Standings::of(&[&one], bound.measured.statistic, self.draws(round));
                let (value, error) = (standings.values[0], standings.error(0));
                if value.is_finite() { bound.excess(value) - threshold * error } else { bound.excess(value) }
            });
            each.fold(f64::NEG_INFINITY, f64::max)
        };
        bounds.map(of).fold(f64::NEG_INFINITY, f64::max)
    }

    fn standings(&self, racers: &[usize]) -> Standings {
        let values: Vec<&Values> = racers.iter().map(|&racer| &self.racers[racer].values).collect();
        Standings::of(&values, self.tuning.minimise.statistic, self.draws(0))
    }

    /// Returns the value of a setting, its standard error, and its excess over `best` on the replications that both
    /// have.
    fn beside(&self, racer: usize, best: usize) -> (f64, f64, Difference) {
        let own = self.standings(&[racer]);
        let [racer, best] = [racer, best].map(|racer| &self.racers[racer].values);
        let count = |values: &Values| values.first().map_or(0, Vec::len);
        let common = count(racer).min(count(best));
        let cut = |values: &Values| values.iter().map(|values| values[..common].to_vec()).collect::<Values>();
        let both = Standings::of(&[&cut(racer), &cut(best)], self.tuning.minimise.statistic, self.draws(0));
        (own.values[0], own.error(0), both.difference(0, 1))
    }

    /// Returns the seed of resamples, which differs from that of replications.
    fn draws(&self, round: u32) -> u64 {
        self.work.seed ^ 0xb007_57a9_0000_0000 ^ u64::from(round)
    }

    /// Returns what is known of a setting that has the fate of most, beside the `best`.
    fn entry(&self, number: usize, best: usize) -> Entry {
        let racer = &self.racers[number];
        let (value, standard_error, difference) = self.beside(number, best);
        let statistic = &self.tuning.minimise.statistic;
        let bounded = self.tuning.bounds.iter().zip(&racer.bounded);
        Entry {
            name: self.tuning.name(racer.point),
            assignments: self.documents[number].clone(),
            is_default: racer.point == self.tuning.default_point(),
            fate: SettingFate::Tied,
            replications: racer.values.first().map_or(0, |values| values.len() as u64),
            value,
            standard_error,
            above_best: difference.value,
            above_best_error: difference.standard_error,
            chance: 0.0,
            conditions: racer.values.iter().map(|values| statistic.of(values)).collect(),
            bounded: bounded.map(|(bound, values)| worst(bound, values)).collect(),
        }
    }

    fn result(self, most: u64, rounds: u32) -> Tuned {
        let racing = self.racing();
        let standings = self.standings(&racing);
        let passes = |racer: usize| {
            let bounds = self.tuning.bounds.iter().zip(&self.racers[racer].bounded);
            let worst = |(bound, values): (&Bound, &Values)| bound.excess(worst(bound, values));
            bounds.map(worst).fold(f64::NEG_INFINITY, f64::max)
        };
        let kept: Vec<usize> = (0..racing.len()).filter(|&place| passes(racing[place]) <= 0.0).collect();
        let none_within_bounds = kept.is_empty();
        let best = if none_within_bounds {
            (0..racing.len()).min_by(|&a, &b| passes(racing[a]).total_cmp(&passes(racing[b])))
        } else {
            standings.best(kept.iter().copied())
        };
        let best = best.unwrap_or(0);
        let chances = standings.chances();
        let conditions = self.tuning.conditions.points() as u64;
        let mut entries = Vec::new();
        for (number, racer) in self.racers.iter().enumerate() {
            let place = racing.iter().position(|&one| one == number);
            let fate = match (racer.fate, place) {
                (Some(fate), _) => fate,
                (None, Some(_)) if passes(number) > 0.0 => SettingFate::OutOfBounds,
                (None, Some(place)) if place == best => SettingFate::Best,
                _ => SettingFate::Tied,
            };
            let chance = place.map_or(0.0, |place| chances[place]);
            entries.push(Entry { fate, chance, ..self.entry(number, racing[best]) });
        }
        let first = self.documents[racing[best]].clone();
        let rank =
            |entry: &Entry| (entry.assignments != first, matches!(entry.fate, SettingFate::OutOfBounds));
        entries.sort_by(|a, b| rank(a).cmp(&rank(b)).then(a.value.total_cmp(&b.value)));
        let cpu_s = self.racers.iter().map(|racer| racer.cpu_s).sum();
        let full: f64 = self
            .racers
            .iter()
            .map(|racer| racer.cpu_s * most as f64 / racer.values.first().map_or(1, Vec::len).max(1) as f64)
            .sum();
        Tuned {
            none_within_bounds,
            rounds,
            replications: self.replications,
            full_grid: self.racers.len() as u64 * conditions * most,
            cpu_s,
            full_grid_cpu_s: full,
            elapsed: self.elapsed,
            entries,
        }
    }
}

/// Returns the value of a bounded figure at the condition where it is worst.
fn worst(bound: &Bound, values: &Values) -> f64 {
    let each = values.iter().map(|condition| bound.measured.statistic.of(condition));
    match bound.side {
        Side::Below => each.fold(f64::NEG_INFINITY, f64::max),
        Side::Above => each.fold(f64::INFINITY, f64::min),
    }
}

impl Tuning {
    fn assignments(&self, point: Option<usize>) -> Vec<String> {
        point.map_or_else(Vec::new, |point| self.settings.assignments(point))
    }

    fn name(&self, point: Option<usize>) -> String {
        point.map_or_else(|| "as the scenario has it".to_owned(), |point| self.settings.name(point))
    }

    /// Returns the point of the grid that equals the scenario's own settings, if there is one.
    fn default_point(&self) -> Option<usize> {
        let document = self.document.clone();
        crate::World::read(&document).ok()?;
        let read = document.keys_read();
        let value = |key: &str| read.iter().find(|(name, ..)| name == key).map(|(_, value, _)| value.clone());
        let same = |said: &str, read: &str| match (crate::vary::number(said), crate::vary::number(read)) {
            (Some(said), Some(read)) => said == read,
            _ => said.trim_matches('"') == read.trim_matches('"'),
        };
        (0..self.settings.points()).find(|&point| {
            let values = self.settings.values(point);
            let axes = self.settings.axes().iter().zip(values);
            axes.into_iter().all(|(axis, said)| value(axis.key()).is_some_and(|read| same(said, &read)))
        })
    }
}
