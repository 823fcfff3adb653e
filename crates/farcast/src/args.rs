//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use farcast_core::Probability;
use farcast_core::units::Bytes;
use farcast_delivery::settings::SendRate;
use farcast_transfer::ProtocolName;
use farcast_transfer::host::{Endpoint, Host};

mod element;
mod lab;
mod receive;
mod send;

pub(crate) use element::{ElementArgs, RepairArgs};
pub(crate) use lab::{CompareArgs, LabArgs, SweepArgs, TuneArgs};
pub(crate) use receive::ReceiveArgs;
pub(crate) use send::SendArgs;

use crate::keys::KeyArgs;
use crate::model::ModelArgs;
use crate::partials::PartialsArgs;
use crate::protocols;
use crate::report::{Chosen, options};

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

/// Arguments of `farcast emulate`: the link, and the programs behind it.
#[derive(Args, Debug)]
pub(crate) struct EmulateArgs {
    /// A link or a scenario: a TOML file, or the name of a link that ships with farcast (see --list).
    #[arg(required_unless_present_any = ["control", "list", "from"], value_name = "LINK|SCENARIO")]
    pub(crate) link: Option<String>,
    /// Run this at the far end, by sh -c; may be given again.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) far: Vec<String>,
    /// Run your shell at the near end.
    #[arg(long, conflicts_with = "command")]
    pub(crate) shell: bool,
    /// Set a key of the link, as in link.forward.per=0.005; may be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random numbers. It fixes which packets are lost, but not when programs send them.
    #[arg(help_heading = "Conditions", long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the times and the fate of each packet to a file.
    #[arg(help_heading = "Records", long, value_name = "FILE.csv|FILE.parquet")]
    pub(crate) log: Option<PathBuf>,
    /// Write the packets of all hosts to a file for Wireshark or tshark.
    #[arg(help_heading = "Records", long, value_name = "FILE.pcapng")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the results of the run to a file as one JSON object.
    #[arg(help_heading = "Records", long, value_name = "FILE.json")]
    pub(crate) report: Option<PathBuf>,
    /// Draw the run as a page: throughput, delay and losses of both directions.
    #[arg(help_heading = "Records", long, value_name = "FILE.html")]
    pub(crate) timeline: Option<PathBuf>,
    /// Draw the timeline of a log that an earlier run wrote, and run nothing.
    #[arg(help_heading = "Records", long, value_name = "FILE.csv|FILE.parquet", requires = "timeline", conflicts_with_all = ["link", "far", "shell", "set", "log", "trace", "report", "list", "command"])]
    pub(crate) from: Option<PathBuf>,
    /// The run is invalid if more than 1 % of the packets leave later than this share of the round-trip time, or than
    /// 1 ms [default: 1 %].
    #[arg(help_heading = "Conditions", long, value_name = "SHARE")]
    pub(crate) late_share: Option<Probability>,
    /// Print errors only; programs print as they like.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// List the links that ship with farcast.
    #[arg(long)]
    pub(crate) list: bool,
    /// Show a running emulation, or send it one request. Without a process number there must be only one.
    #[arg(long, num_args = 0..=2, value_names = ["PID", "REQUEST"], conflicts_with_all = ["far", "shell", "set", "log", "trace", "report", "timeline", "command"])]
    pub(crate) control: Option<Vec<String>>,
    /// File descriptor of the lifeline of the inner process.
    #[arg(long, hide = true, value_name = "FD")]
    pub(crate) inside: Option<i32>,
    /// Command to run at the near end.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Arguments of `farcast simulate`: the scenario, and its replications.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the command line")]
pub(crate) struct SimulateArgs {
    /// A scenario: a TOML file, or the name of one that ships with farcast (see --list). A link alone, as for emulate,
    /// needs --traffic.
    #[arg(required_unless_present = "list", value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Send this over a link that describes no traffic: tcp, ftp or cbr, with the keys of a member of traffic, as in
    /// "tcp, size = 10 MB"; may be given again.
    #[arg(long, value_name = "PROTOCOL[,KEY=VALUE]...")]
    pub(crate) traffic: Vec<String>,
    /// Set a key of the scenario, as in link.forward.per=0.005 or protocol.srt.n=4; may be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Number of replications, each with random numbers of its own [default: 20].
    #[arg(help_heading = "Replications", long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "until_precision")]
    pub(crate) replications: Option<u64>,
    /// Run replications until the 95 % confidence interval of the mean completion time is this narrow, as in 2 %.
    #[arg(help_heading = "Replications", long, value_name = "SHARE")]
    pub(crate) until_precision: Option<Probability>,
    /// Most replications with --until-precision.
    #[arg(help_heading = "Replications", long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) most: u64,
    /// Seed of all random numbers. The same seed gives the same results, on any number of threads.
    #[arg(help_heading = "Replications", long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads [default: one for each core].
    #[arg(help_heading = "Replications", long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Most memory to use [default: nine tenths of the machine's available memory].
    #[arg(help_heading = "Replications", long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// Keep each receiver's completion time (in the JSON).
    #[arg(help_heading = "Replications", long)]
    pub(crate) per_receiver: bool,
    /// Write the packets of one replication to a file for Wireshark or tshark.
    #[arg(help_heading = "Packets", long, value_name = "FILE.pcapng")]
    pub(crate) trace: Option<PathBuf>,
    /// Draw one replication as a page: passes, NAKs and waits.
    #[arg(help_heading = "Packets", long, value_name = "FILE.html")]
    pub(crate) timeline: Option<PathBuf>,
    /// Draw the results of all replications as a page: delivery over time, costs, every figure and setting.
    #[arg(help_heading = "Replications", long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Number of the replication that --trace and --timeline show.
    #[arg(help_heading = "Packets", long, default_value_t = 0, value_name = "INDEX")]
    pub(crate) replication: u64,
    /// Print every key of the scenario with its value in effect and the source of that value, and do nothing else.
    #[arg(long)]
    pub(crate) show: bool,
    /// List the scenarios that ship with farcast.
    #[arg(long)]
    pub(crate) list: bool,
    /// Print one JSON object: every replication, and the summary.
    #[arg(long, conflicts_with_all = ["show", "list"])]
    pub(crate) json: bool,
    /// Print errors only, and with --json the result.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Arguments of `farcast completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell. For bash: farcast completions bash > /etc/bash_completion.d/farcast
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Arguments of `farcast manual`.
#[derive(Args, Debug)]
pub(crate) struct ManualArgs {
    /// Directory for the pages, as in /usr/local/share/man/man1.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// A shell that completes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl From<Shell> for clap_complete::Shell {
    fn from(shell: Shell) -> Self {
        match shell {
            Shell::Bash => Self::Bash,
            Shell::Zsh => Self::Zsh,
            Shell::Fish => Self::Fish,
        }
    }
}

/// Arguments of `farcast reproduce`: the studies to repeat, and how thoroughly.
#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// A paper by its short name, as in mftp-bgan, or "all".
    #[arg(default_value = "all", value_name = "PAPER")]
    pub(crate) paper: String,
    /// Fewer replications: a first look, with wider intervals.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the results into this directory: a page, report.html, with the verdicts first; reproduce.csv,
    /// reproduce.json, and the tables in reproduce.md.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Seed of all random numbers. The same seed gives the same results, on any number of threads.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Print a JSON array: one object for each number.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors only, and with --json the result.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Options of output.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print a line with a JSON object for each event, instead of progress for people.
    #[arg(long)]
    pub(crate) json: bool,
    /// Append the same JSON lines to FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Print errors only.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Option for a page about the transfer.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Output")]
pub(crate) struct PageArgs {
    /// Draw the transfer as a page: delivery, rates and requests for repair over time, receivers or products, every
    /// setting. The page is written at the end, also after a failure. A receiver that continues writes it anew after
    /// each product.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Every option, for the page.
    #[arg(skip)]
    pub(crate) options: Vec<Chosen>,
    /// Name of the protocol for people.
    #[arg(skip)]
    pub(crate) protocol: &'static str,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Size of the file.
    #[arg(long, default_value = "64 MiB", value_name = "SIZE")]
    pub(crate) size: Bytes,
    /// Number of receivers.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) receivers: u32,
    /// Share of the datagrams that each receiver loses.
    #[arg(long, default_value = "2 %", value_name = "PART")]
    pub(crate) loss: Probability,
    /// Rate of sending.
    #[arg(long, default_value = "100 Mbit/s", value_parser = farcast_transfer::parse::rate)]
    pub(crate) rate: SendRate,
}
