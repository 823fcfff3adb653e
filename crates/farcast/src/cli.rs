//! The command line.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use farcast_transfer::ProtocolName;
use farcast_transfer::host::{Endpoint, Host};

use crate::args::{
    CompareArgs, CompletionsArgs, DemoArgs, ElementArgs, EmulateArgs, ManualArgs, ReceiveArgs, RepairArgs,
    ReproduceArgs, SendArgs, SimulateArgs, SweepArgs, TuneArgs,
};
use crate::keys::KeyArgs;
use crate::model::ModelArgs;
use crate::options::options;
use crate::partials::PartialsArgs;
use crate::protocols;

/// Deliver files reliably to many receivers over links that break ordinary transfer: satellites, polar modems,
/// lossy multicast.
#[derive(Parser, Debug)]
#[command(name = "farcast", version = env!("FARCAST_VERSION"), after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the command line.
    ///
    /// # Errors
    /// It makes no sense, or asks for help.
    pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        let mut cli = Self::from_arg_matches(&matches)?;
        if let (Command::Send(args), Some((_, given))) = (&mut cli.command, matches.subcommand())
            && let Some(plan) = &args.job.protocol.plan
            && let Some(planned) = planned(plan)
        {
            let said = given.value_source("speaks") == Some(ValueSource::CommandLine);
            if said && planned != args.job.by {
                let [of, not] = [planned, args.job.by].map(ProtocolName::word);
                let plan = plan.display();
                let wrong =
                    format!("{plan} plans a transfer by {of}, and --protocol says {not}: leave one out");
                return Err(command.error(ErrorKind::ArgumentConflict, wrong));
            }
            args.job.by = planned;
        }
        let speaks = match &cli.command {
            Command::Send(args) => Some(args.job.protocol_name()),
            Command::Receive(args) => Some(args.job.protocol_name()),
            _ => None,
        };
        if let Err(wrong) = cli.follow_zones() {
            return Err(command.error(ErrorKind::ArgumentConflict, wrong));
        }
        if let (Some(speaks), Some((name, given))) = (speaks, matches.subcommand())
            && let Some(inner) = command.find_subcommand_mut(name)
            && let Err(wrong) = protocols::check(speaks, inner, given)
        {
            return Err(inner.error(ErrorKind::ArgumentConflict, wrong));
        }
        let page = match &mut cli.command {
            Command::Send(args) => Some(&mut args.page),
            Command::Receive(args) => Some(&mut args.page),
            _ => None,
        };
        if let (Some(page), Some(speaks), Some((name, given))) = (page, speaks, matches.subcommand())
            && let Some(inner) = command.find_subcommand(name)
        {
            page.options = options(inner, given, speaks);
            page.protocol = speaks.title();
        }
        Ok(cli)
    }

    /// Takes the zone of an IPv6 address for the interface that it names.
    fn follow_zones(&mut self) -> Result<(), String> {
        let (zones, socket) = match &mut self.command {
            Command::Send(args) => {
                let job = &mut args.job;
                (vec![job.to.zone(), job.announce.as_ref().and_then(Endpoint::zone)], &mut job.socket)
            }
            Command::Receive(args) => {
                let job = &mut args.job;
                (vec![job.from.zone(), job.source.as_ref().and_then(Host::zone)], &mut job.socket)
            }
            _ => return Ok(()),
        };
        for zone in zones.into_iter().flatten() {
            match &socket.interface {
                Some(chosen) if chosen != zone => {
                    return Err(format!(
                        "%{zone} names an interface, and --interface names {chosen}: leave one of them out"
                    ));
                }
                _ => socket.interface = Some(zone.to_owned()),
            }
        }
        Ok(())
    }
}

/// Protocol that a plan names. A plan that is wrong is refused later, when its settings are read; one from a pipe can
/// be read only then.
fn planned(plan: &Path) -> Option<ProtocolName> {
    if !plan.is_file() {
        return None;
    }
    let document = farcast_lab::shipped::file(plan).ok()?;
    let name = document.root().table("protocol").ok()?.optional_text("name").ok()??;
    ProtocolName::ALL.into_iter().find(|one| one.word() == name)
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage or bad file, 3 some receivers incomplete,\n\
    4 sent one way, and nobody can tell who has received it.";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Send files and directories to every receiver of a group.
    #[command(after_help = EXIT_CODES)]
    Send(Box<SendArgs>),
    /// Receive files that are sent to a group.
    #[command(after_help = EXIT_CODES)]
    Receive(Box<ReceiveArgs>),
    /// Predict a transfer: run its engines in virtual time over simulated links.
    #[command(after_help = EXIT_CODES)]
    Simulate(SimulateArgs),
    /// Simulate every combination of some settings: all cores, resumable, results as Parquet.
    #[command(after_help = EXIT_CODES)]
    Sweep(Box<SweepArgs>),
    /// Find the best settings, how sure that is, and by how much they beat the scenario's own.
    #[command(after_help = EXIT_CODES)]
    Tune(Box<TuneArgs>),
    /// Compare two sets of replications: the differences, and how sure they are.
    #[command(after_help = EXIT_CODES)]
    Compare(CompareArgs),
    /// Compute a transfer by a closed-form model: throughput, time, and their bound.
    #[command(after_help = EXIT_CODES)]
    Model(ModelArgs),
    /// Repeat published studies: their numbers beside ours, with intervals and verdicts.
    #[command(after_help = EXIT_CODES)]
    Reproduce(ReproduceArgs),
    /// Run programs behind an emulated link, in real time.
    #[command(after_help = EMULATE_HELP)]
    Emulate(Box<EmulateArgs>),
    /// Run a PGM network element on this router, between interfaces, over IP without UDP.
    #[command(after_help = EXIT_CODES)]
    Element(ElementArgs),
    /// Repair the losses of PGM receivers behind this host, in place of the source.
    #[command(after_help = EXIT_CODES)]
    Repair(RepairArgs),
    /// Show or remove the partial files of incomplete products.
    #[command(after_help = EXIT_CODES)]
    Partials(PartialsArgs),
    /// Make and show this host's key, and manage its trusted keys.
    #[command(after_help = EXIT_CODES)]
    Key(KeyArgs),
    /// Send a file to three receivers on this machine over lossy multicast, with progress.
    Demo(DemoArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write the manual: a page for man(1) of each command.
    Manual(ManualArgs),
}

const EMULATE_HELP: &str = "\
Programs see FARCAST_PEER (the other end's address), FARCAST_ADDRESS, FARCAST_HUB, FARCAST_TERMINALS, FARCAST_TERMINAL \
and FARCAST_DEVICE. The near end is the terminal (10.64.0.1), the far end the hub (10.0.0.1); forward runs from far to \
near.

Exit codes: the near program's; if that is 0, 122 if the run is invalid and 123 if no packet came through the link; 125 if \
farcast itself failed.";
