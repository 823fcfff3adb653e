//! `farcast simulate`: predict a transfer.

pub(crate) mod bounds;
mod look;
mod over;
mod show;

use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::Time;
use farcast_scenario::document::{Document, Origin};
use farcast_sim::outcome::{Replication, Together};
use farcast_sim::replicate::{HowMany, Plan, ReplicationError, Standing, run as replicate};
use farcast_sim::scenario::Scenario;
use farcast_stats::Precision;
use serde::Serialize;

use crate::args::SimulateArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::{Exit, Failure, shipped};

use bounds::{Patience, Room};

/// Replications where nobody says how many.
const REPLICATIONS: u64 = 20;

/// The result for programs.
#[derive(Serialize)]
struct Result_<'a> {
    scenario: &'a str,
    seed: u64,
    default_queues: Vec<DefaultQueue<'a>>,
    replications: &'a [Replication],
    summary: &'a Together,
}

/// A queue that was given a limit.
#[derive(Serialize)]
struct DefaultQueue<'a> {
    stage: &'a str,
    octets: u64,
}

/// Runs it.
pub(crate) fn run(args: &SimulateArgs) -> Result<Exit, Failure> {
    let output = Output::of(args.json, args.quiet);
    let Some(name) = args.scenario.as_ref().filter(|_| !args.list) else {
        for (name, what) in shipped::scenarios() {
            output.result(&format!("{name:<14}  {what}"));
        }
        output.result("\nLinks, for emulate and with --traffic:");
        for (name, what) in shipped::links() {
            output.result(&format!("{name:<14}  {what}"));
        }
        return Ok(Exit::Done);
    };
    let mut document = shipped::document(name)?;
    for assignment in &args.set {
        document.set(assignment).map_err(bad_file)?;
    }
    over::send_over(&mut document, &args.traffic)?;
    let scenario = Scenario::read(&document).map_err(bad_file)?;
    if args.show {
        output.result(&shown(&document, &scenario));
        return Ok(Exit::Done);
    }
    for queue in scenario.default_queues() {
        let (stage, octets) = (&queue.stage, queue.octets);
        let what = if queue.is_product() { "one bandwidth-delay product" } else { "ten packets of 1500 B" };
        output.line(&format!("the queue of {stage} holds {what}, {octets} B"));
    }
    let plan = plan(args);
    let room = Room::of(args.memory);
    room.check(&scenario, &plan)?;
    let interrupted = crate::interrupt::interrupted()?;
    look::look(args, &scenario, &interrupted, &output)?;
    let replications = replications(&scenario, &plan, &room, &interrupted, &output)?;
    let summary = Together::of(&replications)?;
    if args.json {
        output.object(&Result_ {
            scenario: name,
            seed: args.seed,
            default_queues: default_queues(&scenario),
            replications: &replications,
            summary: &summary,
        });
    } else {
        output.result(&show::summary(name, &scenario, args.seed, &summary));
    }
    Ok(if summary.unfinished > 0 { Exit::Incomplete } else { Exit::Done })
}

fn default_queues(scenario: &Scenario) -> Vec<DefaultQueue<'_>> {
    let queues = scenario.default_queues().iter();
    queues.map(|queue| DefaultQueue { stage: &queue.stage, octets: queue.octets }).collect()
}

fn bad_file(error: impl std::error::Error) -> Failure {
    Failure::usage(error.to_string())
}

fn plan(args: &SimulateArgs) -> Plan {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let how_many = match args.until_precision {
        Some(share) => HowMany::Until(Precision { relative: share.get() }, args.most),
        None => HowMany::Count(args.replications.unwrap_or(REPLICATIONS)),
    };
    Plan {
        seed: args.seed,
        how_many,
        threads: args.threads.map_or_else(cores, usize::from),
        per_receiver: args.per_receiver,
    }
}

/// Runs them, with progress, until done or interrupted: what there is then is summed up.
pub(crate) fn replications(
    scenario: &Scenario,
    plan: &Plan,
    room: &Room,
    interrupted: &AtomicBool,
    output: &Output,
) -> Result<Vec<Replication>, Failure> {
    let mut patience = Patience::new(scenario, plan);
    let mut progress = Progress::new(output);
    let mut full = None;
    let total = match plan.how_many {
        HowMany::Count(n) | HowMany::Until(_, n) => n,
    };
    let mut watch = |standing: Standing| {
        let (now, n) = (Time::ZERO + patience.elapsed(), standing.done);
        progress.update(output, now, ("simulating", &format!("{n} replications")), (n, total), &[]);
        patience.look(standing, output);
        full = room.look().err();
        full.is_none() && !interrupted.load(Ordering::Relaxed)
    };
    let replications = replicate(scenario, plan, &mut watch);
    progress.clear();
    let replications = replications.map_err(|error| match error {
        ReplicationError::Star(error) => Failure::usage(error.to_string()),
        ReplicationError::Stats(error) => Failure::usage(error.to_string()),
    })?;
    if let Some(full) = full {
        return Err(full);
    }
    if replications.is_empty() {
        return Err(interrupted_before("the first replication was done"));
    }
    if interrupted.load(Ordering::Relaxed) {
        output.line(&format!("interrupted after {} replications", replications.len()));
    }
    Ok(replications)
}

fn interrupted_before(what: &str) -> Failure {
    Failure { sentence: format!("interrupted before {what}"), exit: Exit::Failed }
}

/// Every key in effect, those of queues that were given a limit among them.
fn shown(document: &Document, scenario: &Scenario) -> String {
    let mut table = Table::new(&[("key", Align::Left), ("value", Align::Left), ("from", Align::Left)]);
    for (key, value, origin) in document.keys_read() {
        let from = match origin {
            Origin::File => "file",
            Origin::Setting => "--set",
            Origin::Default => "default",
        };
        table.row([key, value, from.into()]);
    }
    for queue in scenario.default_queues() {
        table.row([queue.key.clone(), format!("\"{} B\"", queue.octets), "default".into()]);
    }
    table.render()
}
