//! Cells: the replications of a setting in a steady state.

use std::cell::RefCell;
use std::rc::Rc;

use farcast_core::{Span, Time};
use farcast_scenario::Document;
use farcast_sim::outcome::TreeReplication;
use farcast_sim::replicate::ReplicationError;
use farcast_sim::scenario::{TreeScenario, TreeTask};
use farcast_sim::star::Pulse;
use farcast_sim::tree::{OnTree, Tree, TreeConfig};
use farcast_stats::{StatsError, Summary};

use super::STUDY;
use super::setup::Setup;
use crate::shipped;
use crate::study::{Effort, Runner, StudyError};

/// Measured quantity, in kbit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Metric {
    /// Content that was new to R1.
    UsefulAtR1,
    /// Content that came to R1 and was not new.
    UselessAtR1,
    /// Content that was new to R6.
    UsefulAtR6,
    /// Traffic that entered the satellite link, with all headers.
    OnSatellite,
    /// Repairs on the path to R1, with all headers.
    RepairsToR1,
    /// Data of TCP that R11 received.
    Tcp,
}

const METRICS: usize = 6;

/// The rates of one replication, in the order of [`Metric`].
type Rates = [f64; METRICS];

/// Instants, in seconds, between which octets are counted.
type CountWindow = (u32, u32);

/// Windows for full and, below, for quick effort. The warm-up ends at the first instant; octets counted by then are
/// subtracted.
const FULL: CountWindow = (60, 300);
const QUICK: CountWindow = (20, 45);

/// Replications of a setting.
#[derive(Debug)]
pub(super) struct SatelliteCell {
    rates: Vec<Rates>,
}

impl SatelliteCell {
    /// Returns the metric of each replication.
    pub(super) fn values(&self, metric: Metric) -> Vec<f64> {
        self.rates.iter().map(|rates| rates[metric as usize]).collect()
    }

    pub(super) fn summary(&self, metric: Metric) -> Result<Summary, StatsError> {
        Summary::of(&self.values(metric))
    }
}

/// Settings that were simulated, each once.
pub(super) struct Cells<'r, 'o> {
    runner: &'r Runner<'o>,
    known: RefCell<Vec<(Setup, CountWindow, Rc<SatelliteCell>)>>,
}

impl<'r, 'o> Cells<'r, 'o> {
    pub(super) fn new(runner: &'r Runner<'o>) -> Self {
        Self { runner, known: RefCell::default() }
    }

    pub(super) fn is_quick(&self) -> bool {
        self.runner.effort() == Effort::Quick
    }

    /// Simulates a setting, unless that was done before.
    pub(super) fn of(&self, setup: Setup) -> Result<Rc<SatelliteCell>, StudyError> {
        self.between(setup, self.window())
    }

    fn window(&self) -> CountWindow {
        if self.is_quick() { QUICK } else { FULL }
    }

    /// Returns the cells of the first and the second half of the window.
    pub(super) fn halves(&self, setup: Setup) -> Result<[Rc<SatelliteCell>; 2], StudyError> {
        let (begin, end) = self.window();
        let middle = u32::midpoint(begin, end);
        Ok([self.between(setup, (begin, middle))?, self.between(setup, (middle, end))?])
    }

    fn between(&self, setup: Setup, window: CountWindow) -> Result<Rc<SatelliteCell>, StudyError> {
        let is =
            |(known, when, _): &&(Setup, CountWindow, Rc<SatelliteCell>)| *known == setup && *when == window;
        if let Some((.., cell)) = self.known.borrow().iter().find(is) {
            return Ok(Rc::clone(cell));
        }
        let cell = Rc::new(simulate(self.runner, &setup, window)?);
        self.known.borrow_mut().push((setup, window, Rc::clone(&cell)));
        Ok(cell)
    }
}

fn simulate(runner: &Runner<'_>, setup: &Setup, window: CountWindow) -> Result<SatelliteCell, StudyError> {
    let (begin, end) = window;
    let (scenario, seed) = (scenario(setup, end)?, runner.seed());
    let rates = runner.map(u64::MAX, |index, pulse| {
        let counted = CountingTask { index, pulse, from: Time::ZERO + Span::from_secs(begin.into()) };
        let octets = scenario.visit(seed, index, counted).map_err(ReplicationError::from)?;
        let seconds = f64::from(end - begin);
        Ok(octets?.map(|octets| octets.map(|octets| octets * 8.0 / 1000.0 / seconds)))
    })?;
    Ok(SatelliteCell { rates })
}

/// Task that runs a tree and counts from an instant on.
struct CountingTask<'a> {
    index: u64,
    pulse: &'a Pulse,
    from: Time,
}

impl TreeTask for CountingTask<'_> {
    type Output = Result<Option<Rates>, ReplicationError>;

    fn on<P: OnTree>(self, world: TreeConfig<P>, _codec: P::Codec) -> Self::Output {
        let mut tree = Tree::new(world, None)?;
        let count = |tree: &Tree<P>| octets(&TreeReplication::of(self.index, tree, false));
        let mut before = None;
        let over = tree.run_with_look(self.pulse, self.from, |tree| before = Some(count(tree)));
        let (before, whole) = (before.unwrap_or_default(), count(&tree));
        Ok(over.then(|| std::array::from_fn(|at| whole[at] - before[at])))
    }
}

/// Returns the shipped scenario with a setting, until an instant.
fn scenario(setup: &Setup, until: u32) -> Result<TreeScenario, StudyError> {
    let mut document = if setup.has_a { shipped::document(STUDY.name)? } else { without_a()? };
    for setting in setup.settings() {
        document.set(&setting)?;
    }
    document.set(&format!("time_limit=\"{until} s\""))?;
    Ok(TreeScenario::read(&document)?)
}

/// Returns the shipped scenario without network A.
fn without_a() -> Result<Document, StudyError> {
    let text = shipped::named(STUDY.name).map_or("", |shipped| shipped.text());
    let mut text = text.to_owned();
    for receiver in 1..=5 {
        text = text.replace(&format!("[[node]]\nname = \"R{receiver}\"\nkind = \"receiver\"\n"), "");
    }
    let is_kept = |part: &&str| !part.contains("name = \"A\"");
    let parts: Vec<_> = text.split("\n\n").filter(is_kept).collect();
    Ok(Document::parse("pgm-satellite without network A", &parts.join("\n\n"))?)
}

/// Returns the octets that a replication has counted, in the order of [`Metric`].
fn octets(one: &TreeReplication) -> Rates {
    let heard = |name: &str| one.node(name).and_then(|node| node.heard);
    let (first, sixth) = (heard("R1"), heard("R6"));
    let useful = |of: Option<farcast_sim::outcome::HeardOutcome>| of.map_or(0, |heard| heard.useful_octets);
    let counts = [
        useful(first),
        first.map_or(0, |heard| heard.useless_octets),
        useful(sixth),
        ["spm", "odata", "rdata", "ncf"].iter().map(|kind| carried(one, "satellite", kind)).sum(),
        carried(one, "A.R1", "rdata"),
        one.common.flows.first().map_or(0, |flow| flow.octets),
    ];
    counts.map(|octets| octets as f64)
}

/// Returns the octets of a kind of packet that entered an edge on the forward path.
fn carried(one: &TreeReplication, edge: &str, kind: &str) -> u64 {
    let octets = one.edge(edge).map_or(&[][..], |edge| &edge.forward.octets);
    octets.iter().find(|(name, _)| *name == kind).map_or(0, |(_, octets)| *octets)
}
