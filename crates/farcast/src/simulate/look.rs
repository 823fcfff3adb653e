//! Files about one replication: its packets, and its timeline.

use std::fmt::Display;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use farcast_core::Time;
use farcast_delivery::{Figure, FigureValue, Milestone, NakFate, Protocol, Routes, SenderEngine, Words};
use farcast_report::timeline::{self, Timeline};
use farcast_sim::history::{History, HistoryConfig, Lane, Point, Record, Wait, WaitFor, total};
use farcast_sim::outcome::Replication;
use farcast_sim::scenario::{Scenario, Task, TreeScenario, TreeTask};
use farcast_sim::star::{Observer, Pulse, Star, StarConfig};
use farcast_sim::trace::{Trace, TraceConfig};
use farcast_sim::tree::{OnTree, Tree, TreeConfig};
use tempfile::NamedTempFile;

use crate::args::SimulateArgs;
use crate::output::Output;
use crate::{Failure, outputs};

use super::show::unit_of;

/// Writes the files that `args` ask for.
pub(super) fn look(
    args: &SimulateArgs,
    scenario: &impl Watched,
    interrupted: &Arc<AtomicBool>,
    output: &Output,
) -> Result<(), Failure> {
    let pulse = &Pulse::new(Arc::clone(interrupted));
    let scenario_file = args.scenario.as_deref().map(Path::new).filter(|path| path.is_file());
    outputs::distinct(&[
        ("the scenario", scenario_file),
        ("--trace", args.trace.as_deref()),
        ("--timeline", args.timeline.as_deref()),
    ])?;
    if let Some(path) = &args.trace {
        let packets = trace(args, scenario, path, pulse)?;
        output.line(&format!("{}: {packets} packets of replication {}", path.display(), args.replication));
    }
    if let Some(path) = &args.timeline {
        if !scenario.has_transfer() {
            let sentence = "a timeline is drawn of a multicast transfer, and this scenario has flows alone: --report draws what they came \
                            to, and --trace keeps their packets";
            return Err(Failure::usage(sentence.to_owned()));
        }
        let page = page(args, scenario, pulse)?;
        let mut file = beside(path)?;
        file.write_all(page.as_bytes()).map_err(|error| cannot_write(path, &error))?;
        keep(file, path)?;
        output.line(&format!("{}: the timeline of replication {}", path.display(), args.replication));
    }
    Ok(())
}

/// Scenario of a star or of a tree, one replication of which is looked at.
pub(super) trait Watched {
    /// Name of the scenario; empty if it has none.
    fn name(&self) -> &str;

    /// `true` if there is a multicast transfer.
    fn has_transfer(&self) -> bool;

    /// Number of receivers.
    fn receivers(&self) -> u64;

    /// Runs a task on a replication.
    fn visit<T>(&self, args: &SimulateArgs, task: T) -> Result<<T as Task>::Output, Failure>
    where
        T: Task + TreeTask<Output = <T as Task>::Output>;
}

impl Watched for Scenario {
    fn name(&self) -> &str {
        self.name()
    }

    fn has_transfer(&self) -> bool {
        self.has_transfer()
    }

    fn receivers(&self) -> u64 {
        self.receivers()
    }

    fn visit<T>(&self, args: &SimulateArgs, task: T) -> Result<<T as Task>::Output, Failure>
    where
        T: Task + TreeTask<Output = <T as Task>::Output>,
    {
        self.visit(args.seed, args.replication, task).map_err(super::bad_file)
    }
}

impl Watched for TreeScenario {
    fn name(&self) -> &str {
        self.name()
    }

    fn has_transfer(&self) -> bool {
        self.remedies().is_some()
    }

    fn receivers(&self) -> u64 {
        self.receivers().into()
    }

    fn visit<T>(&self, args: &SimulateArgs, task: T) -> Result<<T as Task>::Output, Failure>
    where
        T: Task + TreeTask<Output = <T as Task>::Output>,
    {
        self.visit(args.seed, args.replication, task).map_err(super::bad_file)
    }
}

/// Runs a replication of a star, watched by `observer`.
fn watch_star<P: Protocol>(
    look: Look<'_>,
    world: StarConfig<P>,
    observer: &mut dyn Observer<P>,
) -> Result<Replication, Failure> {
    let mut star = Star::new(world, Some(observer)).map_err(super::bad_file)?;
    check_over(star.run_while(look.pulse))?;
    Ok(Replication::of(look.index, &star, false))
}

/// Runs a replication of a tree, watched by `observer`.
fn watch_tree<P: OnTree>(
    look: Look<'_>,
    world: TreeConfig<P>,
    observer: &mut dyn Observer<P>,
) -> Result<Replication, Failure> {
    let mut tree = Tree::new(world, Some(observer)).map_err(super::bad_file)?;
    check_over(tree.run_while(look.pulse))?;
    Ok(Replication::of(look.index, &tree, false))
}

/// Replication to look at.
#[derive(Clone, Copy)]
struct Look<'a> {
    index: u64,
    pulse: &'a Pulse,
}

/// Returns the failure of a replication that was interrupted before it was `over`.
fn check_over(over: bool) -> Result<(), Failure> {
    if over { Ok(()) } else { Err(super::interrupted_before("the replication to be looked at was over")) }
}

fn trace(args: &SimulateArgs, scenario: &impl Watched, path: &Path, pulse: &Pulse) -> Result<u64, Failure> {
    let comment = format!("{}, seed {}, replication {}", title(args, scenario), args.seed, args.replication);
    let config = TraceConfig { comment, ..TraceConfig::default() };
    let look = Look { index: args.replication, pulse };
    scenario.visit(args, Traced { look, config, path })?
}

/// Task that writes the packets of a replication and returns their number.
struct Traced<'a> {
    look: Look<'a>,
    config: TraceConfig,
    path: &'a Path,
}

impl Traced<'_> {
    /// Writes the packets of the replication that `run` runs.
    fn write<P: Protocol>(
        &self,
        routes: Option<Routes>,
        codec: P::Codec,
        run: impl FnOnce(&mut dyn Observer<P>) -> Result<Replication, Failure>,
    ) -> Result<u64, Failure> {
        let file = beside(self.path)?;
        let writer = BufWriter::with_capacity(1 << 20, file.reopen()?);
        let mut trace = Trace::<_, P>::new(writer, routes, codec, &self.config).map_err(super::bad_file)?;
        run(&mut trace)?;
        let packets = trace.packets();
        let written = trace.finish().and_then(|mut writer| writer.flush());
        written.map_err(|error| cannot_write(self.path, &error))?;
        keep(file, self.path)?;
        Ok(packets)
    }
}

impl Task for Traced<'_> {
    type Output = Result<u64, Failure>;

    fn on<P: Protocol>(self, world: StarConfig<P>, codec: P::Codec) -> Result<u64, Failure> {
        let routes = world.sender.as_ref().map(SenderEngine::routes);
        self.write::<P>(routes, codec, |observer| watch_star(self.look, world, observer))
    }
}

impl TreeTask for Traced<'_> {
    type Output = Result<u64, Failure>;

    fn on<P: OnTree>(self, world: TreeConfig<P>, codec: P::Codec) -> Result<u64, Failure> {
        let routes = world.sender.as_ref().map(|(_, sender)| sender.routes());
        self.write::<P>(routes, codec, |observer| watch_tree(self.look, world, observer))
    }
}

/// Replication with its record and the protocol's words, for drawing.
type Drawing = (Replication, Record, Words);

/// Task that returns a replication for drawing.
struct Drawn<'a> {
    look: Look<'a>,
    receivers: u32,
}

impl Drawn<'_> {
    fn record<P: Protocol>(
        &self,
        run: impl FnOnce(&mut dyn Observer<P>) -> Result<Replication, Failure>,
    ) -> Result<Drawing, Failure> {
        let mut history = History::new(self.receivers, HistoryConfig::default());
        let replication = run(&mut history)?;
        Ok((replication, history.finish(), P::WORDS))
    }
}

impl Task for Drawn<'_> {
    type Output = Result<Drawing, Failure>;

    fn on<P: Protocol>(self, world: StarConfig<P>, _codec: P::Codec) -> Result<Drawing, Failure> {
        self.record::<P>(|observer| watch_star(self.look, world, observer))
    }
}

impl TreeTask for Drawn<'_> {
    type Output = Result<Drawing, Failure>;

    fn on<P: OnTree>(self, world: TreeConfig<P>, _codec: P::Codec) -> Result<Drawing, Failure> {
        self.record::<P>(|observer| watch_tree(self.look, world, observer))
    }
}

/// Creates a file beside `path`, which gets its name once it is whole.
fn beside(path: &Path) -> Result<NamedTempFile, Failure> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The mode is that of any new file, not that of a secret.
    let mode = std::fs::Permissions::from_mode(0o666);
    let file = tempfile::Builder::new().permissions(mode).tempfile_in(parent);
    file.map_err(|error| cannot_write(path, &error))
}

fn keep(file: NamedTempFile, path: &Path) -> Result<(), Failure> {
    file.persist(path).map(drop).map_err(|error| cannot_write(path, &error.error))
}

fn cannot_write(path: &Path, error: &impl Display) -> Failure {
    Failure::usage(format!("cannot write {}: {error}", path.display()))
}

fn title<'a>(args: &'a SimulateArgs, scenario: &'a impl Watched) -> &'a str {
    let name = args.scenario.as_deref().unwrap_or_default();
    if scenario.name().is_empty() { name } else { scenario.name() }
}

fn page(args: &SimulateArgs, scenario: &impl Watched, pulse: &Pulse) -> Result<String, Failure> {
    let receivers = u32::try_from(scenario.receivers()).unwrap_or(u32::MAX);
    let task = Drawn { look: Look { index: args.replication, pulse }, receivers };
    let (replication, record, words) = scenario.visit(args, task)??;
    let set: Vec<&str> = args.set.iter().map(String::as_str).collect();
    let changes = if set.is_empty() { String::new() } else { format!(", {}", set.join(", ")) };
    Ok(timeline::page(&Timeline {
        title: title(args, scenario).to_owned(),
        subtitle: format!(
            "{}, seed {}, replication {}{changes}",
            super::show::who(receivers.into(), 0),
            args.seed,
            args.replication
        ),
        words,
        figures: figures(&replication),
        duration_s: record.end.as_secs_f64(),
        receivers: receivers.into(),
        passes: record.passes.iter().map(pass).collect(),
        data: record.data.iter().map(interval).collect(),
        waits: record.waits.iter().map(|one| wait(one, &words)).collect(),
        requests: points(&record.status_requests),
        naks_sent: points(&record.naks_sent),
        naks_reached: vec![
            (timeline::NakFate::Used, points(&record.naks_used)),
            (timeline::NakFate::Known, points(&record.naks_known)),
            (timeline::NakFate::Late, points(&record.naks_late)),
        ],
        completions: points(&record.completions),
        milestones: record.milestones.iter().filter_map(milestone).collect(),
        lanes: (0..).zip(&record.lanes).map(|(n, one)| lane(n, one)).collect(),
        notes: notes(&record, &words),
    }))
}

fn figures(replication: &Replication) -> Vec<(String, String)> {
    let seconds = |value: Option<f64>| value.map_or("never".into(), |value| format!("{value:.2} s"));
    let median = replication.transfer.as_ref().and_then(|one| Some(one.receiver_time_s?.p50));
    let mut figures = vec![
        ("last receiver complete", seconds(replication.completion_time_s)),
        ("median receiver", seconds(median)),
    ];
    let of_protocol = replication.transfer.iter().flat_map(|transfer| &transfer.figures);
    figures.extend(of_protocol.filter_map(|figure| Some((figure.label?, written(figure)))));
    figures.push(("forward channel in use", format!("{:.2} s", replication.forward.airtime_s)));
    figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the value of a protocol's figure in words. A list is shown as its sum.
fn written(figure: &Figure) -> String {
    match &figure.value {
        FigureValue::Count(count) => count.to_string(),
        FigureValue::Counts(counts) => counts.iter().sum::<u64>().to_string(),
        FigureValue::Number(number) => match (number, unit_of(figure.name).1) {
            (Some(number), unit) => format!("{number:.2} {unit}").trim_end().to_owned(),
            (None, _) => "-".into(),
        },
    }
}

fn pass(pass: &farcast_sim::history::Pass) -> timeline::Pass {
    let (begin_s, end_s) = (pass.begin.as_secs_f64(), pass.end.as_secs_f64());
    timeline::Pass { number: pass.number, begin_s, end_s, dtus: pass.dtus }
}

fn interval(interval: &farcast_sim::history::Interval) -> timeline::TimeSpan {
    timeline::TimeSpan { begin_s: interval.begin.as_secs_f64(), end_s: interval.end.as_secs_f64() }
}

fn wait(wait: &Wait, words: &Words) -> timeline::Wait {
    let what = match wait.waits_for {
        WaitFor::Registrations => "registrations",
        WaitFor::Joining => "receivers to join",
        WaitFor::Answers => words.answers,
        WaitFor::Closing => "the last confirmations",
    };
    let counts = [
        (timeline::NakFate::Used, wait.naks.used),
        (timeline::NakFate::Known, wait.naks.known),
        (timeline::NakFate::Late, wait.naks.late),
    ];
    let naks = if wait.waits_for == WaitFor::Answers { counts.into() } else { Vec::new() };
    let (begin_s, end_s) = (wait.begin.as_secs_f64(), wait.end.as_secs_f64());
    timeline::Wait { begin_s, end_s, what: what.into(), naks }
}

/// Returns a milestone of the transmission in words, with its time in seconds. Returns `None` for those that are drawn
/// otherwise.
fn milestone(&(at, milestone): &(Time, Milestone)) -> Option<(f64, String)> {
    let words = match milestone {
        Milestone::Began { .. } => "data begins",
        Milestone::Delivered => "the sender knows that all are done",
        Milestone::Ended { alone: false } => "over",
        Milestone::Ended { alone: true } => "over, with nobody to receive",
        Milestone::Joined | Milestone::Round { .. } | Milestone::Done | Milestone::Left => return None,
    };
    Some((at.as_secs_f64(), words.to_owned()))
}

fn points(points: &[Point]) -> Vec<timeline::EventPoint> {
    let middle = |point: &Point| f64::midpoint(point.from.as_secs_f64(), point.to.as_secs_f64());
    points.iter().map(|point| timeline::EventPoint { at_s: middle(point), count: point.count }).collect()
}

fn lane(number: usize, lane: &Lane) -> timeline::Lane {
    let naks = lane.naks.iter().map(|nak| timeline::LaneNak {
        sent_s: nak.sent.as_secs_f64(),
        reached: nak.reached.map(|(at, fate)| (at.as_secs_f64(), of(fate))),
        dtus: nak.dtus,
    });
    timeline::Lane {
        name: format!("receiver {number}"),
        naks: naks.collect(),
        completed_s: lane.completed.map(Time::as_secs_f64),
    }
}

fn of(fate: NakFate) -> timeline::NakFate {
    match fate {
        NakFate::Used => timeline::NakFate::Used,
        NakFate::Known => timeline::NakFate::Known,
        NakFate::Late => timeline::NakFate::Late,
    }
}

/// Returns facts that the drawing does not show.
fn notes(record: &Record, words: &Words) -> Vec<String> {
    let mut notes = Vec::new();
    let complete = total(&record.completions);
    if complete < u64::from(record.receivers) {
        let lacking = super::show::who(u64::from(record.receivers) - complete, 0);
        notes.push(format!("{lacking} never had everything."));
    }
    for (count, what) in [(record.passes_left_out, words.round.many), (record.waits_left_out, "waits")] {
        if count > 0 {
            notes.push(format!("{count} more {what} are not drawn."));
        }
    }
    notes
}
