//! `farcast reproduce`: published studies again, their numbers beside ours.

mod agreement;
mod files;
mod ftp_emulated;
mod ftp_umts;
mod mdp_ftp;
mod mftp_bgan;
mod row;
mod rules;
mod runner;
mod show;
mod tcp_mlppp;
mod tcp_reference;

use std::sync::atomic::Ordering;

use crate::args::ReproduceArgs;
use crate::output::Output;
use crate::{Exit, Failure};

use row::Row;
use runner::Runner;

/// A study that can be repeated.
struct Paper {
    /// What the command line calls it.
    name: &'static str,
    /// Authors, title, where it appeared.
    citation: &'static str,
    /// Settings that are simulated, for the progress; none where a closed form is all there is.
    settings: u64,
    /// Replications of each, and with `--quick`.
    replications: (u64, u64),
    /// What the two columns of numbers are: the reference, and what is compared with it.
    columns: [&'static str; 2],
    /// Whether this machine has what it takes; if not, one sentence that says what is missing.
    needs: fn() -> Result<(), Failure>,
    /// Does what the paper did, and compares.
    reproduce: fn(&Runner<'_>) -> Result<Vec<Row>, Failure>,
}

/// The columns of a published study.
const PUBLISHED: [&str; 2] = ["published", "farcast"];

/// Of a machine that simulates nothing is needed.
#[expect(clippy::unnecessary_wraps, reason = "others need something")]
fn nothing() -> Result<(), Failure> {
    Ok(())
}

/// Every paper that is known.
const PAPERS: [Paper; 7] = [
    mftp_bgan::PAPER,
    mdp_ftp::PAPER,
    ftp_umts::PAPER,
    tcp_mlppp::PAPER,
    tcp_reference::PAPER,
    agreement::PAPER,
    ftp_emulated::PAPER,
];

/// A paper's numbers beside ours.
struct Results {
    paper: &'static Paper,
    seed: u64,
    replications: u64,
    rows: Vec<Row>,
}

/// Runs it.
pub(crate) fn run(args: &ReproduceArgs) -> Result<Exit, Failure> {
    let output = Output::of(args.json, args.quiet);
    let papers = chosen(&args.paper)?;
    // Whoever waits for results wants to know before that they cannot be written.
    args.out.as_deref().map(files::make).transpose()?;
    let several = papers.len() > 1;
    let (mut results, mut failed) = (Vec::new(), None);
    let interrupted = crate::interrupt::interrupted()?;
    for paper in papers {
        match (paper.needs)() {
            Err(missing) if several => {
                output.line(&format!("{} is left out: {}", paper.name, missing.sentence));
                continue;
            }
            needs => needs?,
        }
        match reproduce(paper, args, &output) {
            Ok(result) => results.push(result),
            Err(failure) if !several || interrupted.load(Ordering::Relaxed) => return Err(failure),
            // What the others find is worth having; it comes first.
            Err(failure) => drop(failed.get_or_insert(failure)),
        }
    }
    if args.json {
        output.object(&results.iter().flat_map(|results| &results.rows).collect::<Vec<_>>());
    } else {
        output.result(&show::text(&results));
    }
    if let Some(dir) = &args.out {
        files::write(dir, &results)?;
        output.line(&format!("{} holds {}", dir.display(), files::NAMES.join(", ")));
    }
    failed.map_or(Ok(Exit::Done), Err)
}

fn reproduce(paper: &'static Paper, args: &ReproduceArgs, output: &Output) -> Result<Results, Failure> {
    let (full, quick) = paper.replications;
    let replications = if args.quick { quick } else { full };
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let threads = args.threads.map_or_else(cores, usize::from);
    let runner = Runner::new(output, (args.seed, replications, threads), (paper.name, paper.settings))?;
    let rows = (paper.reproduce)(&runner)?;
    Ok(Results { paper, seed: args.seed, replications, rows })
}

/// The papers that `name` means.
fn chosen(name: &str) -> Result<Vec<&'static Paper>, Failure> {
    let wanted: Vec<_> = PAPERS.iter().filter(|paper| name == "all" || name == paper.name).collect();
    if wanted.is_empty() {
        let names: Vec<_> = PAPERS.iter().map(|paper| paper.name).collect();
        return Err(Failure::usage(format!(
            "{name} is no paper that farcast reproduces; it knows: {}, or all of them: all",
            names.join(", ")
        )));
    }
    Ok(wanted)
}
