//! `farcast reproduce`: published studies again, their numbers beside ours.

mod files;
mod ftp_umts;
mod mdp_ftp;
mod mftp_bgan;
mod row;
mod rules;
mod runner;
mod show;
mod tcp_mlppp;
mod tcp_reference;

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
    /// Does what the paper did, and compares.
    reproduce: fn(&Runner<'_>) -> Result<Vec<Row>, Failure>,
}

/// Every paper that is known.
const PAPERS: [Paper; 5] =
    [mftp_bgan::PAPER, mdp_ftp::PAPER, ftp_umts::PAPER, tcp_mlppp::PAPER, tcp_reference::PAPER];

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
    let results = papers.into_iter().map(|paper| reproduce(paper, args, &output));
    let results = results.collect::<Result<Vec<_>, _>>()?;
    if args.json {
        output.object(&results.iter().flat_map(|results| &results.rows).collect::<Vec<_>>())?;
    } else {
        output.result(&show::text(&results));
    }
    if let Some(dir) = &args.out {
        files::write(dir, &results)?;
        output.line(&format!("{} holds {}", dir.display(), files::NAMES.join(", ")));
    }
    Ok(Exit::Done)
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
