//! `farcast tune`: finds the best settings, and tells how certain that is.

use std::path::Path;

use farcast_core::{Span, Time};
use farcast_lab::World;
use farcast_lab::points::PointError;
use farcast_lab::report;
use farcast_lab::tune::{
    Bound, Case, Entry, Measured, ObjectiveError, RaceProgress, SettingFate, TuneError, TuneTable, Tuned,
    Tuning, plan,
};
use farcast_lab::vary::{Axis, Grid, VaryError};
use farcast_report::text::visible;
use farcast_scenario::document::Document;
use serde::Serialize;

use crate::args::TuneArgs;
use crate::laboratory::{self, VERSION, failed, point_failed, rounded, write_page};
use crate::output::Output;
use crate::progress::Progress;
use crate::text::Text;
use crate::{Exit, Failure, outputs};

mod show;

/// Result for programs.
#[derive(Serialize)]
struct Result_<'a> {
    scenario: &'a str,
    seed: u64,
    minimise: String,
    confidence: f64,
    cases: Vec<CaseResult<'a>>,
}

/// Result of one case.
#[derive(Serialize)]
struct CaseResult<'a> {
    case: &'a str,
    best: &'a Entry_<'a>,
    settings: &'a [Entry_<'a>],
    none_within_bounds: bool,
    rounds: u32,
    replications: u64,
    full_grid: u64,
    cpu_s: f64,
    full_grid_cpu_s: f64,
}

/// Result of one setting.
#[derive(Serialize)]
struct Entry_<'a> {
    set: &'a [String],
    is_default: bool,
    fate: SettingFate,
    replications: u64,
    value: Option<f64>,
    standard_error: Option<f64>,
    above_best: Option<f64>,
    above_best_error: Option<f64>,
    chance_of_best: f64,
    conditions: Vec<Option<f64>>,
    bounded: Vec<Option<f64>>,
}

/// Case after its tuning.
struct Finished {
    case: Case,
    document: Document,
    tuning: Tuning,
    tuned: Tuned,
}

/// Runs the command.
pub(crate) fn run(args: &TuneArgs) -> Result<Exit, Failure> {
    let output = Output::of(args.lab.json, args.lab.quiet);
    outputs::files(&[("--report", args.report.as_deref()), ("--plan", args.plan.as_deref())])?;
    let document = laboratory::document(&args.lab)?;
    let wish = TuneTable::read(&document).map_err(Failure::wrong)?;
    let (vary, _) = axes(args, &wish)?;
    let varied = Grid::new(vary).and_then(|grid| grid.check_beside(&document));
    varied.map_err(|error| Failure::usage(error.to_string()))?;
    let cases = cases(args, &wish, &document, &output)?;
    if args.plan.is_some() && cases.len() > 1 {
        return Err(Failure::usage(format!(
            "--plan holds the settings of one case, and there are {}: choose one with --case",
            cases.len()
        )));
    }
    let (interrupted, memory) = (crate::interrupt::interrupted()?, laboratory::memory(&args.lab));
    let work = laboratory::work(&args.lab, &memory, &interrupted);
    let mut finished = Vec::new();
    for case in cases {
        let mut document = document.clone();
        for assignment in &case.set {
            document.set(assignment).map_err(Failure::wrong)?;
        }
        let tuning = tuning(args, &wish, &document)?;
        let mut progress = Progress::new(&output);
        let mut tell = |standing: RaceProgress| {
            let RaceProgress { elapsed, round, racing, replications, total } = standing;
            let message = format!("{racing} settings in round {round}, {replications} replications");
            progress.update(&output, Time::ZERO + elapsed, ("tuning", &message), (replications, total), &[]);
        };
        let tuned = tuning.run(&work, &mut tell);
        progress.clear();
        let tuned = tuned.map_err(|error| {
            let failure = laboratory::said_by("--vary", &args.vary, failure(error));
            laboratory::said_by("--robust", tuning.conditions.axes(), failure)
        })?;
        finished.push(Finished { case, document, tuning, tuned });
    }
    if args.lab.json {
        print_json(args, &finished, &output);
    } else {
        let texts = finished.iter().map(|one| show::text(&args.lab.scenario, one));
        let apart = |above: Option<Text>, below| match above {
            Some(above) => Some(above.blank().blank().then(below)),
            None => Some(below),
        };
        output.result(&texts.fold(None, apart).unwrap_or_default());
    }
    if let Some(path) = &args.report {
        write_report(path, args, &finished, &output)?;
    }
    if let (Some(path), Some(one)) = (&args.plan, finished.first()) {
        let text = plan_of(&args.lab.scenario, one)?;
        farcast_lab::study::files::write_text(path, &text).map_err(Failure::wrong)?;
        output.line(&format!("{} holds the settings, for farcast send --plan", path.display()));
    }
    let outside = finished.iter().any(|one| one.tuned.none_within_bounds);
    Ok(if outside { Exit::Incomplete } else { Exit::Done })
}

/// Writes the results as a page.
fn write_report(path: &Path, args: &TuneArgs, finished: &[Finished], output: &Output) -> Result<(), Failure> {
    let words: Vec<Vec<String>> = finished.iter().map(show::verdict).collect();
    // A scenario without a transfer has no plan.
    let plans: Vec<Option<String>> =
        finished.iter().map(|one| plan_of(&args.lab.scenario, one).ok()).collect();
    let cases: Vec<report::Case<'_>> = finished
        .iter()
        .zip(&words)
        .zip(&plans)
        .map(|((one, words), plan)| report::Case {
            name: &one.case.name,
            tuning: &one.tuning,
            tuned: &one.tuned,
            plan: plan.as_deref(),
            words,
        })
        .collect();
    write_page(path, &report::tune(&args.lab.scenario, VERSION, &cases), output)
}

/// Returns the cases to tune: those of the command line, or those of the scenario, or the scenario as it is.
///
/// A case of the command line that sets a key of --set is refused. If a case of the scenario sets a key that the
/// command line sets or varies, all cases of the scenario are passed over, and the scenario is tuned as it is.
fn cases(
    args: &TuneArgs,
    wish: &TuneTable,
    document: &Document,
    output: &Output,
) -> Result<Vec<Case>, Failure> {
    if !args.case.is_empty() {
        // A case of the command line may set a varied key. Its value is then the scenario's own.
        let cases: Vec<Case> = args.case.iter().map(|text| Case::of(text)).collect();
        return match cases.iter().find_map(|case| contradicted(&[], case, document)) {
            Some((key, said)) => Err(Failure::usage(format!(
                "{key} is set by --case, and by {said} as well: say one of the two"
            ))),
            None => Ok(cases),
        };
    }
    if let Some((key, said)) = wish.cases.iter().find_map(|case| contradicted(&args.vary, case, document)) {
        output.line(&format!(
            "the scenario's cases set {key}, as {said} does: they are passed over, and the scenario is tuned as it is"
        ));
        return Ok(vec![Case::default()]);
    }
    Ok(if wish.cases.is_empty() { vec![Case::default()] } else { wish.cases.clone() })
}

/// Returns a key that both the case and the command line set, with the option that sets it.
fn contradicted(vary: &[Axis], case: &Case, document: &Document) -> Option<(String, String)> {
    case.set.iter().find_map(|assignment| {
        let key = assignment.split_once('=')?.0.trim();
        let set = document.setting_of(key).map(|set| format!("--set {set}"));
        let varied = || vary.iter().find(|axis| axis.key() == key).map(|axis| format!("--vary {axis}"));
        Some((key.to_owned(), set.or_else(varied)?))
    })
}

/// Returns the tuning that the command line asks for. The scenario fills what the command line leaves out.
fn tuning(args: &TuneArgs, wish: &TuneTable, document: &Document) -> Result<Tuning, Failure> {
    let usage = |error: VaryError| Failure::usage(error.to_string());
    let objective = |error: ObjectiveError| Failure::usage(error.to_string());
    let (vary, conditions) = axes(args, wish)?;
    World::read(document).map_err(Failure::wrong)?;
    let minimise =
        args.minimise.as_ref().or(wish.minimise.as_ref()).map_or("completion_time_s", String::as_str);
    let bounds = if args.subject_to.is_empty() { &wish.subject_to } else { &args.subject_to };
    let bounds = bounds.iter().map(|text| Bound::parse(text, document)).collect::<Result<_, _>>();
    Ok(Tuning {
        document: document.clone(),
        settings: Grid::new(vary).map_err(usage)?,
        conditions: Grid::new(conditions).map_err(usage)?,
        minimise: minimise.parse::<Measured>().map_err(objective)?,
        bounds: bounds.map_err(objective)?,
        replications: (args.first, args.replications),
        level: args.confidence.get(),
    })
}

/// Returns the axes of the settings that are varied, and those of the conditions that are unknown.
fn axes(args: &TuneArgs, wish: &TuneTable) -> Result<(Vec<Axis>, Vec<Axis>), Failure> {
    let usage = |error: VaryError| Failure::usage(error.to_string());
    let vary = if args.vary.is_empty() {
        wish.vary.iter().map(|text| text.parse()).collect::<Result<Vec<Axis>, _>>().map_err(usage)?
    } else {
        args.vary.clone()
    };
    if vary.is_empty() {
        return Err(Failure::usage(
            "nothing is varied: say what with --vary, as in --vary protocol.srt.n=1..10, or in the scenario's table \
             \"tune\"",
        ));
    }
    let robust = if args.robust.is_empty() { &wish.robust } else { &args.robust };
    let conditions =
        robust.iter().map(|text| Axis::unknown(text)).collect::<Result<Vec<Axis>, _>>().map_err(usage)?;
    Ok((vary, conditions))
}

fn failure(error: TuneError) -> Failure {
    match error {
        TuneError::Sweep(error) => failed(error, false),
        TuneError::Point(PointError::Interrupted) => {
            Failure { sentence: "interrupted before the race was over".into(), exit: Exit::Failed }
        }
        TuneError::Point(error) => point_failed(error, false),
        TuneError::Objective(error) => Failure::usage(error.to_string()),
        TuneError::Nothing(_) => Failure { sentence: error.to_string(), exit: Exit::Incomplete },
        error => error.into(),
    }
}

/// Returns the plan of the best settings, with a comment about them.
fn plan_of(scenario: &str, one: &Finished) -> Result<String, Failure> {
    let Some(best) = one.tuned.entries.first() else { return Err(Failure::usage("nothing was tuned")) };
    let case = if one.case.name.is_empty() { String::new() } else { format!(", {}", one.case.name) };
    let place = format!("{scenario}{case}");
    let about = format!(
        "Tuned by farcast {VERSION} in {}: {} for the least {},\n{} with a standard error of {}.",
        visible(&place),
        visible(&best.name),
        one.tuning.minimise,
        show::significant(best.value),
        show::significant(best.standard_error),
    );
    let text = plan(&one.document, &best.assignments, &about).map_err(Failure::wrong)?;
    text.ok_or_else(|| Failure::usage("--plan is for transfers: this scenario has none, only flows"))
}

fn print_json(args: &TuneArgs, finished: &[Finished], output: &Output) {
    let number = |value: f64| value.is_finite().then_some(value);
    let entries: Vec<Vec<Entry_<'_>>> = finished
        .iter()
        .map(|one| {
            let entry = |entry: &'_ Entry| Entry_ {
                set: &[],
                is_default: entry.is_default,
                fate: entry.fate,
                replications: entry.replications,
                value: number(entry.value),
                standard_error: number(entry.standard_error),
                above_best: number(entry.above_best),
                above_best_error: number(entry.above_best_error),
                chance_of_best: entry.chance,
                conditions: entry.conditions.iter().map(|&value| number(value)).collect(),
                bounded: entry.bounded.iter().map(|&value| number(value)).collect(),
            };
            one.tuned.entries.iter().map(|one| Entry_ { set: &one.assignments, ..entry(one) }).collect()
        })
        .collect();
    let cases = finished.iter().zip(&entries).filter_map(|(one, settings)| {
        Some(CaseResult {
            case: &one.case.name,
            best: settings.first()?,
            settings,
            none_within_bounds: one.tuned.none_within_bounds,
            rounds: one.tuned.rounds,
            replications: one.tuned.replications,
            full_grid: one.tuned.full_grid,
            cpu_s: one.tuned.cpu_s,
            full_grid_cpu_s: one.tuned.full_grid_cpu_s,
        })
    });
    output.object(&Result_ {
        scenario: &args.lab.scenario,
        seed: args.lab.seed,
        minimise: finished.first().map_or_else(String::new, |one| one.tuning.minimise.to_string()),
        confidence: args.confidence.get(),
        cases: cases.collect(),
    });
}
