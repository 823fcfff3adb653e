//! Plan of an emulation: a link with two ends or a scenario with a hub and terminals, and the programs that run there.

use farcast_core::Span;
use farcast_emu::emulation::Plan;
use farcast_emu::host::HostPosition;
use farcast_lab::shipped;
use farcast_scenario::document::{Document, Origin};
use farcast_scenario::links::DefaultQueue;
use farcast_scenario::programs::{self, On};
use farcast_scenario::receivers::{self, Group};
use farcast_scenario::{DocumentError, Links};
use farcast_sim::scenario::Scenario;

use crate::Failure;
use crate::args::EmulateArgs;

/// A program and the host that runs it.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Name in messages.
    pub(crate) name: String,
    pub(crate) place: HostPosition,
    pub(crate) command: Command,
    pub(crate) start: Span,
    pub(crate) background: bool,
}

/// Command line of a job.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// A line for `sh -c`.
    Line(String),
    /// A program and its arguments, with the user's own input and output.
    Near(Vec<String>),
}

/// All that the user asks for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Name of the link or scenario, as the user gave it.
    pub(crate) name: String,
    pub(crate) plan: Plan,
    pub(crate) jobs: Vec<Job>,
    /// Set for a link with two ends, near and far; unset for a scenario.
    pub(crate) is_link: bool,
    /// Time at which everything ends at the latest.
    pub(crate) limit: Option<Span>,
    /// Queues for which the link's file gives no limit.
    pub(crate) queues: Vec<DefaultQueue>,
    /// Keys of the link with their values, and `true` where the user or the file gave the value.
    pub(crate) keys: Vec<(String, String, bool)>,
}

impl Wish {
    /// Returns the name of a place in messages.
    pub(crate) fn name_of(&self, place: HostPosition) -> String {
        match place {
            HostPosition::Hub if self.is_link => "far".into(),
            HostPosition::Terminal(_) if self.is_link => "near".into(),
            HostPosition::Hub => "hub".into(),
            HostPosition::Terminal(number) => format!("terminal {number}"),
        }
    }
}

/// Reads the link or scenario and the options.
///
/// # Errors
/// One sentence about the first thing that is wrong.
pub(crate) fn read(args: &EmulateArgs) -> Result<Wish, Failure> {
    let name = args.link.as_deref().unwrap_or_default();
    let mut document = shipped::open(name).map_err(Failure::wrong)?;
    for assignment in &args.set {
        document.set(assignment).map_err(bad)?;
    }
    let mut wish =
        if Links::are_all_of(&document) { of_link(args, &document)? } else { of_scenario(args, &document)? };
    if wish.plan.link.links.data_only {
        return Err(Failure::usage(
            "link.forward.loses: an emulated link does not know which packets are data; leave it out",
        ));
    }
    wish.name = name.into();
    if let Some(share) = args.late_share {
        wish.plan.late_share = share;
    }
    let link = |(key, value, origin): (String, String, Origin)| {
        key.starts_with("link.").then_some((key, value, origin != Origin::Default))
    };
    wish.keys = document.keys_read().into_iter().filter_map(link).collect();
    Ok(wish)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn bad(error: DocumentError) -> Failure {
    Failure::usage(error.to_string())
}

/// Returns the near program and the far ones.
fn of_link(args: &EmulateArgs, document: &Document) -> Result<Wish, Failure> {
    let (links, queues) = Links::read_alone(document).map_err(bad)?;
    let near = match (args.shell, args.command.is_empty()) {
        (true, _) => vec![shell()],
        (false, false) => args.command.clone(),
        (false, true) => {
            return Err(Failure::usage(
                "there is nothing to run behind the link: give a command behind --, as in \
                 `farcast emulate geo -- ping -c 3 10.0.0.1`, or --shell",
            ));
        }
    };
    let several = args.far.len() > 1;
    let far = args.far.iter().enumerate().map(|(number, line)| Job {
        name: if several { format!("far {}", number + 1) } else { "far".into() },
        place: HostPosition::Hub,
        command: Command::Line(line.clone()),
        start: Span::ZERO,
        background: true,
    });
    let near = Job {
        name: "near".into(),
        place: HostPosition::Terminal(0),
        command: Command::Near(near),
        start: Span::ZERO,
        background: false,
    };
    Ok(Wish {
        name: String::new(),
        plan: Plan::between_two(links, args.seed),
        jobs: far.chain([near]).collect(),
        is_link: true,
        limit: None,
        queues,
        keys: Vec::new(),
    })
}

/// Returns the user's shell.
#[expect(clippy::disallowed_methods, reason = "the environment says which it is")]
fn shell() -> String {
    std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".into())
}

/// Returns the programs of a scenario.
fn of_scenario(args: &EmulateArgs, document: &Document) -> Result<Wish, Failure> {
    if args.shell || !args.command.is_empty() || !args.far.is_empty() {
        return Err(Failure::usage(
            "a scenario names its programs itself, in [[programs]]: leave --far, --shell and the command out",
        ));
    }
    let mut top = document.root();
    let can_be_simulated = top.holds("protocol") || top.holds("traffic");
    // Reading the scenario reports errors in the keys that belong to the simulator.
    let simulated = can_be_simulated.then(|| Scenario::read(document).map_err(bad)).transpose()?;
    top.text_or("name", String::new()).map_err(bad)?;
    let limit = top.optional_span("time_limit").map_err(bad)?;
    let has_receivers = top.holds("receivers") || top.holds("groups");
    // Without receivers there is a terminal for each flow, as in a simulation.
    let flows = simulated.filter(|_| !has_receivers).map_or(0, |scenario| scenario.flows() as u32);
    let groups = match flows {
        _ if has_receivers => receivers::read(&mut top).map_err(bad)?,
        0 => vec![one_receiver()],
        _ => Vec::new(),
    };
    let mut links = Links::read(&mut top).map_err(bad)?;
    let programs = programs::read(&mut top).map_err(bad)?;
    if !can_be_simulated {
        top.finish().map_err(bad)?;
    }
    let queues = links.default_queues(groups.iter().map(|group| group.delay).max().unwrap_or_default());
    let mut plan = Plan::new(links, groups, args.seed);
    plan.link.flows = flows;
    let jobs = jobs(programs, plan.link.terminals())?;
    Ok(Wish { name: String::new(), plan, jobs, is_link: false, limit, queues, keys: Vec::new() })
}

fn one_receiver() -> Group {
    Group { receivers: 1, delay: Span::ZERO, losses: None }
}

fn jobs(programs: Vec<programs::Program>, terminals: u32) -> Result<Vec<Job>, Failure> {
    if programs.iter().all(|program| program.background) {
        return Err(Failure::usage(
            "no program of the scenario is waited for: it needs a [[programs]] without background = true",
        ));
    }
    let mut jobs = Vec::new();
    for program in programs {
        let places: Vec<HostPosition> = match program.on {
            On::Hub => vec![HostPosition::Hub],
            On::Terminals => (0..terminals).map(HostPosition::Terminal).collect(),
            On::Terminal(number) if number < terminals => vec![HostPosition::Terminal(number)],
            On::Terminal(number) => {
                return Err(Failure::usage(format!(
                    "programs.{}.on: there is no terminal {number}; there are 0 to {}",
                    program.name,
                    terminals - 1
                )));
            }
        };
        let several = places.len() > 1;
        for place in places {
            let name = match place {
                HostPosition::Terminal(number) if several => format!("{} {number}", program.name),
                _ => program.name.clone(),
            };
            let command = Command::Line(program.command.clone());
            jobs.push(Job { name, place, command, start: program.start, background: program.background });
        }
    }
    Ok(jobs)
}
