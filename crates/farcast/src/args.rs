//! Arguments of the commands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use farcast_core::Probability;
use farcast_core::units::Bytes;
use farcast_delivery::settings::SendRate;

mod element;
mod lab;
mod receive;
mod send;

pub(crate) use element::{ElementArgs, RepairArgs};
pub(crate) use lab::{CompareArgs, LabArgs, SweepArgs, TuneArgs};
pub(crate) use receive::ReceiveArgs;
pub(crate) use send::SendArgs;

use crate::options::Chosen;

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
