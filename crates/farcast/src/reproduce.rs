//! `farcast reproduce`: repeats published studies, and compares their numbers with ours.

mod show;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{Span, Time};
use farcast_lab::Progress as Standing;
use farcast_lab::studies;
use farcast_lab::study::files::{self, NAMES};
use farcast_lab::study::{Effort, Options, Results, Row, Study, StudyError};

use crate::args::ReproduceArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::{Exit, Failure, outputs};

/// Path of the program that studies in real time run: this program, even if its file was replaced meanwhile.
const EXECUTABLE: &str = "/proc/self/exe";

/// Name of the page, which a reader opens first.
const PAGE: &str = "report.html";

/// Time after which a study's progress is shown.
const PATIENCE: Span = Span::from_secs(2);

/// Runs the command.
pub(crate) fn run(args: &ReproduceArgs) -> Result<Exit, Failure> {
    let output = Output::of(args.json, args.quiet);
    let studies = chosen(&args.paper)?;
    outputs::directory("--out", args.out.as_deref())?;
    // A user should learn that results cannot be written before they are there.
    args.out.as_deref().map(files::make).transpose().map_err(Failure::wrong)?;
    let several = studies.len() > 1;
    let (mut results, mut failed, mut left_out) = (Vec::new(), None, Vec::new());
    let interrupted = crate::interrupt::interrupted()?;
    let options = options(args, &interrupted);
    for study in studies {
        match study.needs(&options) {
            Err(missing) if several => {
                left_out.push(format!("{} is left out: {missing}", study.name()));
                continue;
            }
            needs => needs.map_err(failure)?,
        }
        match reproduce(study, &options, &output) {
            Ok(rows) => results.push(Results::new(study, &options, rows)),
            Err(error) if !several || interrupted.load(Ordering::Relaxed) => return Err(failure(error)),
            // The results of the other studies are still worth having, and are printed before the error.
            Err(error) => drop(failed.get_or_insert(error)),
        }
    }
    if args.json {
        output.object(&results.iter().flat_map(|results| &results.rows).collect::<Vec<&Row>>());
    } else {
        output.result(&show::text(&results));
    }
    // These lines follow the results, where they are still seen. A user who reads results alone gets them too.
    for one in &left_out {
        crate::output::error(one);
    }
    if let Some(dir) = &args.out {
        files::write(dir, &results).map_err(Failure::wrong)?;
        let page = farcast_lab::report::studies(&results, crate::laboratory::VERSION);
        files::write_text(&dir.join(PAGE), &page.html()).map_err(Failure::wrong)?;
        output.line(&format!("{} holds {PAGE}, {}", dir.display(), NAMES.join(", ")));
    }
    failed.map_or(Ok(Exit::Done), |error| Err(failure(error)))
}

fn options<'a>(args: &ReproduceArgs, stop: &'a AtomicBool) -> Options<'a> {
    let default = Options::new(stop);
    let threads = args.threads.and_then(|threads| NonZeroUsize::new(threads.into()));
    Options {
        seed: args.seed,
        effort: if args.quick { Effort::Quick } else { Effort::Full },
        threads: threads.unwrap_or(default.threads),
        executable: Some(Path::new(EXECUTABLE)),
        stop,
    }
}

/// Runs a study. After [`PATIENCE`] it shows the progress.
fn reproduce(study: &Study, options: &Options<'_>, output: &Output) -> Result<Vec<Row>, StudyError> {
    let mut bars: Option<Progress> = None;
    let mut show = |elapsed, done, total, what| {
        let bars = bars.get_or_insert_with(|| Progress::new(output));
        let message = format!("{done} of {total} {what}");
        bars.update(output, Time::ZERO + elapsed, (study.name(), &message), (done, total), &[]);
    };
    let rows = study.run(options, &mut |standing| match standing {
        Standing::Replications { elapsed, done, total } if elapsed >= PATIENCE => {
            show(elapsed, done, total, "replications");
        }
        Standing::Runs { elapsed, done, total } => show(elapsed, done, total, "runs in real time"),
        _ => {}
    });
    if let Some(bars) = &mut bars {
        bars.clear();
    }
    rows
}

/// Returns the studies that `name` means.
fn chosen(name: &str) -> Result<Vec<&'static Study>, Failure> {
    if name == "all" {
        return Ok(studies::all().iter().collect());
    }
    studies::named(name).map(|study| vec![study]).map_err(failure)
}

fn failure(error: StudyError) -> Failure {
    match error {
        StudyError::Unknown { name, known } => Failure::usage(format!(
            "{name} is no paper that farcast reproduces; it knows: {}, or all of them: all",
            known.join(", ")
        )),
        StudyError::Unfinished(sentence) => Failure { sentence, exit: Exit::Incomplete },
        error => error.into(),
    }
}
