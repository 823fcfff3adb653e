//! `farcast simulate`: predicts a transfer.

mod look;
mod show;
mod tree;

use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::Time;
use farcast_lab::replications::{self, Limit, Memory, MemoryError, RunError};
use farcast_lab::report;
use farcast_lab::traffic::{TrafficError, send_over};
use farcast_lab::{Progress as Standing, shipped};
use farcast_scenario::document::{Document, Origin};
use farcast_scenario::links::DefaultQueue as Queue;
use farcast_sim::advice::Naming;
use farcast_sim::outcome::{Replication, Together};
use farcast_sim::replicate::{HowMany, Plan, Replicable};
use farcast_sim::scenario::{Scenario, TreeScenario};
use farcast_stats::Precision;
use farcast_transfer::words::counted;
use serde::Serialize;

use crate::args::SimulateArgs;
use crate::laboratory::{VERSION, write_page};
use crate::output::Output;
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::text::Text;
use crate::{Exit, Failure, outputs};
pub(crate) use show::unit_of;

/// Number of replications if the user gives none.
const REPLICATIONS: u64 = 20;

/// Result for programs.
#[derive(Serialize)]
struct Result_<'a, R> {
    scenario: &'a str,
    seed: u64,
    default_queues: Vec<DefaultQueue<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unused: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    advice: &'a [String],
    replications: &'a [R],
    summary: &'a Together,
}

/// Queue that got a default limit.
#[derive(Serialize)]
struct DefaultQueue<'a> {
    stage: &'a str,
    octets: u64,
}

/// Runs the command.
pub(crate) fn run(args: &SimulateArgs) -> Result<Exit, Failure> {
    let output = Output::of(args.json, args.quiet);
    let Some(name) = args.scenario.as_ref().filter(|_| !args.list) else {
        for scenario in shipped::scenarios() {
            output.result(&Text::line(&format!("{:<14}  {}", scenario.name(), scenario.title())));
        }
        output.result(&Text::default().blank().then(Text::line("Links, for emulate and with --traffic:")));
        for link in shipped::links() {
            output.result(&Text::line(&format!("{:<14}  {}", link.name(), link.title())));
        }
        return Ok(Exit::Done);
    };
    outputs::files(&[
        ("--trace", args.trace.as_deref()),
        ("--timeline", args.timeline.as_deref()),
        ("--report", args.report.as_deref()),
    ])?;
    let mut document = shipped::open(name).map_err(Failure::wrong)?;
    for assignment in &args.set {
        document.set(assignment).map_err(bad_file)?;
    }
    send_over(&mut document, &args.traffic).map_err(no_traffic)?;
    if TreeScenario::is_one(&document) {
        return tree::run(args, name, &document, &output);
    }
    let scenario = Scenario::read(&document).map_err(bad_file)?;
    if args.show {
        output.result(&shown(&document, scenario.default_queues()));
        return Ok(Exit::Done);
    }
    tell_queues(scenario.default_queues(), &output);
    let unused = tell_unused(&document, &output);
    let plan = plan(args, scenario.receivers());
    let memory = memory(args, &scenario, &plan)?;
    let advice = scenario.advice(Naming::Keys);
    tell_advice(&advice, &output);
    let interrupted = crate::interrupt::interrupted()?;
    look::look(args, &scenario, &interrupted, &output)?;
    let replications = replications(&scenario, &plan, &memory, &interrupted, &output)?;
    let summary = Together::of(&replications)?;
    if let Some(path) = &args.report {
        let title = if scenario.name().is_empty() { name } else { scenario.name() };
        write_page(path, &report::simulation(title, &document, &replications, args.seed, VERSION)?, &output)?;
    }
    let replications = if args.per_receiver { replications } else { without_receivers(replications) };
    if args.json {
        output.object(&Result_ {
            scenario: name,
            seed: args.seed,
            default_queues: default_queues(scenario.default_queues()),
            unused: &unused,
            advice: &advice,
            replications: &replications,
            summary: &summary,
        });
    } else {
        output.result(&show::summary(name, &scenario, args.seed, &replications)?);
    }
    Ok(if summary.unfinished > 0 { Exit::Incomplete } else { Exit::Done })
}

fn default_queues(queues: &[Queue]) -> Vec<DefaultQueue<'_>> {
    queues.iter().map(|queue| DefaultQueue { stage: &queue.stage, octets: queue.octets }).collect()
}

fn tell_queues(queues: &[Queue], output: &Output) {
    for queue in queues {
        let (stage, octets) = (&queue.stage, queue.octets);
        let what = if queue.is_product() { "one bandwidth-delay product" } else { "ten packets of 1500 B" };
        output.line(&format!("the queue of {stage} holds {what}, {octets} B"));
    }
}

/// Prints the settings that have no effect beside the others, and returns them.
fn tell_unused(document: &Document, output: &Output) -> Vec<String> {
    let unused = farcast_lab::unused(document);
    for key in &unused {
        output.line(&format!("{key} changes nothing: the other settings leave no use for it"));
    }
    unused
}

/// Prints advice on settings that cannot work over the links.
pub(crate) fn tell_advice(advice: &[String], output: &Output) {
    for sentence in advice {
        output.line(&format!("note: {sentence}"));
    }
}

/// Returns the memory for replications, after checking that they fit.
fn memory(args: &SimulateArgs, scenario: &impl Replicable, plan: &Plan) -> Result<Memory, Failure> {
    let memory = args.memory.map_or_else(Memory::of_machine, Memory::at_most);
    memory.check(scenario, plan).map_err(too_large)?;
    Ok(memory)
}

fn bad_file(error: impl std::error::Error) -> Failure {
    Failure::usage(error.to_string())
}

/// Most times of receivers that a page draws.
const MOST_TIMES: u64 = 2_000_000;

/// Removes the times of receivers, which only the page needed.
fn without_receivers(mut replications: Vec<Replication>) -> Vec<Replication> {
    for transfer in replications.iter_mut().filter_map(|one| one.transfer.as_mut()) {
        (transfer.receivers, transfer.symbols_needed) = (None, None);
    }
    replications
}

fn plan(args: &SimulateArgs, receivers: u64) -> Plan {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let how_many = match args.until_precision {
        Some(share) => HowMany::Until(Precision { relative: share.get() }, args.most),
        None => HowMany::Count(args.replications.unwrap_or(REPLICATIONS)),
    };
    let (HowMany::Count(count) | HowMany::Until(_, count)) = how_many;
    let drawn = args.report.is_some() && receivers.saturating_mul(count) <= MOST_TIMES;
    Plan {
        seed: args.seed,
        how_many,
        threads: args.threads.map_or_else(cores, usize::from),
        per_receiver: args.per_receiver || drawn,
    }
}

/// Runs replications, with progress, until they are done or interrupted. Replications that are done before an interrupt
/// are returned.
pub(crate) fn replications<S: Replicable>(
    scenario: &S,
    plan: &Plan,
    memory: &Memory,
    interrupted: &AtomicBool,
    output: &Output,
) -> Result<Vec<S::Outcome>, Failure> {
    let mut progress = Progress::new(output);
    let mut tell = |standing| match standing {
        Standing::Replications { elapsed, done, total } => {
            let message = counted(done, "replication");
            progress.update(output, Time::ZERO + elapsed, ("simulating", &message), (done, total), &[]);
        }
        Standing::Long { left, at_worst } => {
            let most = if at_worst { ", if replications go on to their time limit" } else { "" };
            output.line(&format!(
                "this takes about {left} more{most}; Ctrl-C ends it with the replications that are done by then"
            ));
        }
        _ => {}
    };
    let replications = replications::run(scenario, plan, memory, interrupted, &mut tell);
    progress.clear();
    let replications = replications.map_err(|error| match error {
        RunError::Memory(error) => too_large(error),
        RunError::Replication(error) => Failure::wrong(error),
        error => error.into(),
    })?;
    if interrupted.load(Ordering::Relaxed) {
        output.line(&format!("interrupted after {}", counted(replications.len() as u64, "replication")));
    }
    Ok(replications)
}

/// Returns the failure for replications that need too much memory, with the options that reduce it.
pub(crate) fn too_large(MemoryError { need, most, limit }: MemoryError) -> Failure {
    let whose = match limit {
        Limit::Caller => "--memory allows",
        Limit::Machine => "this machine can give (--memory sets another limit)",
    };
    let sentence = format!(
        "{need}, more than the {most} that {whose}: simulate fewer receivers, fewer at once (--threads 1), or a shorter \
         file"
    );
    Failure { sentence, exit: Exit::Failed }
}

/// Returns the failure for a missing or superfluous --traffic.
pub(crate) fn no_traffic(error: TrafficError) -> Failure {
    match error {
        TrafficError::Scenario => Failure::usage(
            "--traffic is for links alone: this scenario says itself what is sent; set its keys with --set",
        ),
        TrafficError::Nothing => Failure::usage(
            "this is a link, and nothing is sent over it: say what with --traffic, as in --traffic \"tcp, size = 10 MB\"",
        ),
        error => Failure::wrong(error),
    }
}

fn interrupted_before(what: &str) -> Failure {
    Failure { sentence: format!("interrupted before {what}"), exit: Exit::Failed }
}

/// Returns a table of every key in effect, default limits of queues included.
fn shown(document: &Document, queues: &[Queue]) -> Text {
    let mut table = Table::new(&[("key", Align::Left), ("value", Align::Left), ("from", Align::Left)]);
    for (key, value, origin) in document.keys_read() {
        let from = match origin {
            Origin::File => "file",
            Origin::Setting => "--set",
            Origin::Default => "default",
        };
        table.row([key, value, from.into()]);
    }
    for queue in queues {
        table.row([queue.key.clone(), format!("\"{} B\"", queue.octets), "default".into()]);
    }
    table.render()
}
