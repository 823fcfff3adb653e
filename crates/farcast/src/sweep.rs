//! `farcast sweep`: simulates every combination of some settings.

use farcast_core::Span;
use farcast_lab::report;
use farcast_lab::sweep::{Directory, EarlierResults, NAMES, Point, Store, Sweep, Swept, summary};
use farcast_lab::vary::Grid;
use farcast_sim::outcome::Measure;
use farcast_sim::replicate::HowMany;
use farcast_stats::Precision;
use serde::Serialize;

use crate::args::SweepArgs;
use crate::laboratory::{self, VERSION, Waiting, failed};
use crate::output::Output;
use crate::table::{Align, Table};
use crate::text::Text;
use crate::{Exit, Failure, outputs};
use farcast_transfer::words::counted;

/// Number of replications of a point if the user gives none.
const REPLICATIONS: u64 = 100;
/// Most rows of a table for a person.
const MOST_ROWS: usize = 60;

/// Result for programs.
#[derive(Serialize)]
struct Result_<'a> {
    scenario: &'a str,
    seed: u64,
    /// Processor time in replications, in seconds.
    cpu_s: f64,
    points: Vec<PointResult<'a>>,
}

/// Result of a point.
#[derive(Serialize)]
struct PointResult<'a> {
    settings: serde_json::Map<String, serde_json::Value>,
    replications: usize,
    unfinished: usize,
    #[serde(flatten)]
    figures: std::collections::BTreeMap<&'a str, Measure>,
}

/// Runs the command.
pub(crate) fn run(args: &SweepArgs) -> Result<Exit, Failure> {
    let output = Output::of(args.lab.json, args.lab.quiet);
    let document = laboratory::document(&args.lab)?;
    let grid = Grid::new(args.vary.clone()).map_err(|error| Failure::usage(error.to_string()))?;
    grid.check_beside(&document).map_err(|error| Failure::usage(error.to_string()))?;
    let how_many = match args.precision {
        Some(share) => HowMany::Until(Precision { relative: share.get() }, args.most),
        None => HowMany::Count(args.replications.unwrap_or(REPLICATIONS)),
    };
    outputs::directory("--out", args.out.as_deref())?;
    // Signals are caught before anything is written, so that none ends the program in between.
    let interrupted = crate::interrupt::interrupted()?;
    let resumable = args.out.is_some();
    let fail = |error| laboratory::said_by("--vary", &args.vary, failed(error, resumable));
    let sweep = Sweep::new(document, grid, args.lab.seed, how_many, VERSION).map_err(fail)?;
    let (mut directory, found) = match &args.out {
        Some(path) => {
            let (directory, found, lost) = Directory::open(path).map_err(fail)?;
            if lost > 0 {
                output.line(&format!(
                    "{}: {lost} octets at the end were of a point that was cut short: it is run again",
                    path.join(NAMES[3]).display()
                ));
            }
            (Some(directory), found)
        }
        None => (None, EarlierResults::new()),
    };
    let memory = laboratory::memory(&args.lab);
    let work = laboratory::work(&args.lab, &memory, &interrupted);
    let mut waiting = Waiting::new(&output, "sweeping");
    let mut nothing = ();
    let store: &mut dyn Store = match &mut directory {
        Some(directory) => &mut directory.journal,
        None => &mut nothing,
    };
    let swept = sweep.run(found, store, &work, &mut |standing| waiting.tell(standing));
    waiting.clear();
    let swept = swept.map_err(fail)?;
    let columns = columns(args, &swept)?;
    if args.lab.json {
        output.object(&result(args, &swept)?);
    } else {
        output.result(&shown(args, &swept, &columns)?);
    }
    if let (Some(directory), Some(path)) = (&directory, &args.out) {
        directory.write(&sweep, &swept).map_err(fail)?;
        let page = report::sweep(&args.lab.scenario, &sweep, &swept, &columns)?;
        directory.write_page(&page).map_err(fail)?;
        output.line(&format!("{} holds {}", path.display(), NAMES[..3].join(", ")));
    }
    let open = (0..swept.points.len()).find(|&point| swept.points[point].unfinished() > 0);
    if let Some(first) = open {
        let points = swept.points.iter().filter(|point| point.unfinished() > 0).count();
        output.line(&format!(
            "{points} of {} points have replications that ended incomplete; why the first does: {}",
            swept.points.len(),
            look_at(args, &sweep, first)
        ));
    }
    Ok(if open.is_some() { Exit::Incomplete } else { Exit::Done })
}

/// Returns the command that tells why replications of a point were left incomplete.
fn look_at(args: &SweepArgs, sweep: &Sweep, point: usize) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let set = args.lab.set.iter().cloned().chain(sweep.grid().assignments(point));
    let set = set.map(|set| format!("--set {}", quoted(&set)));
    let traffic = args.lab.traffic.iter().map(|traffic| format!("--traffic {}", quoted(traffic)));
    let words: Vec<String> = set.chain(traffic).collect();
    format!("farcast simulate {} {} --seed {}", args.lab.scenario, words.join(" "), args.lab.seed)
}

/// Figure that most users ask for.
const TIME: &str = "completion_time_s";

/// Returns the figures that are shown.
fn columns(args: &SweepArgs, swept: &Swept) -> Result<Vec<String>, Failure> {
    let all = swept.columns();
    if args.column.is_empty() {
        let with_end = swept.points.iter().any(Point::has_end);
        let goodput = all.iter().find(|name| name.ends_with(".goodput_bit_per_s"));
        let name = if with_end { TIME } else { goodput.copied().unwrap_or(TIME) };
        return Ok(vec![name.to_owned()]);
    }
    let meant = |column: &String| {
        swept.find(column).map(str::to_owned).ok_or_else(|| {
            Failure::usage(format!("--column {column}: there is no such figure, but {}", all.join(", ")))
        })
    };
    let mut columns: Vec<String> = Vec::new();
    for column in args.column.iter().map(meant) {
        let column = column?;
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    Ok(columns)
}

fn result<'a>(args: &'a SweepArgs, swept: &'a Swept) -> Result<Result_<'a>, Failure> {
    let point = |(number, point): (usize, &'a Point)| -> Result<_, Failure> {
        let values =
            swept.grid.values(number).into_iter().map(|value| serde_json::Value::from(value.to_owned()));
        let keys = swept.grid.axes().iter().map(|axis| axis.key().to_owned());
        let figures = point.figures.columns().map(|(name, _)| Ok((name, summary(point, name)?)));
        Ok(PointResult {
            settings: keys.zip(values).collect(),
            replications: point.figures.len(),
            unfinished: point.unfinished(),
            figures: figures.collect::<Result<_, farcast_stats::StatsError>>()?,
        })
    };
    Ok(Result_ {
        scenario: &args.lab.scenario,
        seed: args.lab.seed,
        cpu_s: swept.cpu_s(),
        points: swept.points.iter().enumerate().map(point).collect::<Result<_, _>>()?,
    })
}

/// Returns a table for each figure, and a line with the cost of the sweep.
fn shown(args: &SweepArgs, swept: &Swept, columns: &[String]) -> Result<Text, Failure> {
    let mut parts = Vec::new();
    for column in columns {
        parts.push(table(swept, column)?);
    }
    let (points, replications) = (swept.points.len(), swept.replications());
    let more = points.saturating_sub(MOST_ROWS);
    if more > 0 {
        parts.push(Text::line(&format!("and {more} points more: --out DIR or --json has them all")));
    }
    let kept = match swept.kept {
        0 => String::new(),
        kept => format!(" ({kept} of them had been run before)"),
    };
    parts.push(Text::line(&format!(
        "{}{kept}, {}, seed {}: {} of cores in {}",
        counted(points as u64, "point"),
        counted(replications as u64, "replication"),
        args.lab.seed,
        laboratory::rounded(Span::from_secs_f64(swept.cpu_s())),
        laboratory::rounded(swept.elapsed),
    )));
    Ok(Text::paragraphs(parts))
}

fn table(swept: &Swept, column: &str) -> Result<Text, Failure> {
    let mut heading: Vec<(&str, Align)> =
        swept.grid.axes().iter().map(|axis| (axis.key(), Align::Right)).collect();
    let (what, unit) = crate::simulate::unit_of(column);
    let title = if unit.is_empty() { what.to_owned() } else { format!("{what}, {unit}") };
    heading.push((&title, Align::Right));
    heading.extend(["95 % interval", "sd", "5 %", "median", "95 %", "n"].map(|name| (name, Align::Right)));
    let mut table = Table::new(&heading);
    for (number, point) in swept.points.iter().enumerate().take(MOST_ROWS) {
        let measure = summary(point, column)?;
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), significant);
        let interval = measure
            .ci95_half_width
            .map_or_else(|| "-".to_owned(), |half| format!("\u{b1} {}", significant(half)));
        let numbers = [
            cell(measure.mean),
            interval,
            cell(measure.sd),
            cell(measure.p05),
            cell(measure.p50),
            cell(measure.p95),
        ];
        let values = swept.grid.values(number).into_iter().map(str::to_owned);
        table.row(values.chain(numbers).chain([measure.n.to_string()]));
    }
    Ok(table.render())
}

/// Returns a number with as many decimal places as a person reads.
pub(crate) fn significant(value: f64) -> String {
    let places = match value.abs() {
        magnitude if magnitude >= 1000.0 || magnitude == 0.0 => 0,
        magnitude if magnitude >= 1.0 => 2,
        magnitude => ((-magnitude.log10()).ceil() as usize + 2).min(9),
    };
    format!("{value:.places$}")
}
