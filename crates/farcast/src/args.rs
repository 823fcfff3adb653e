//! The command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use farcast_core::units::Bytes;
use farcast_core::{BitRate, Probability, Span};
use farcast_mftp::StatusRetry;
use ipnet::IpNet;

use crate::model::ModelArgs;
use crate::partials::{PartialsArgs, QuotaArgs};

/// MFTP's port.
const PORT: u16 = 5402;

/// Deliver files reliably to many receivers over links that break ordinary transfer: satellites, polar modems,
/// lossy multicast.
#[derive(Parser, Debug)]
#[command(name = "farcast", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str =
    "Exit codes: 0 done, 1 failed, 2 wrong usage or bad file, 3 some receivers incomplete.";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Send files and directories to every receiver of a group.
    #[command(after_help = EXIT_CODES)]
    Send(Box<SendArgs>),
    /// Receive what is sent to a group.
    #[command(after_help = EXIT_CODES)]
    Receive(Box<ReceiveArgs>),
    /// Predict a transfer: run its engines in virtual time over simulated links.
    #[command(after_help = EXIT_CODES)]
    Simulate(SimulateArgs),
    /// Say what a closed-form model makes of a transfer: throughput, time, and what bounds them.
    #[command(after_help = EXIT_CODES)]
    Model(ModelArgs),
    /// Repeat published studies: their numbers beside ours, with intervals and verdicts.
    #[command(after_help = EXIT_CODES)]
    Reproduce(ReproduceArgs),
    /// Run programs behind an emulated link, in real time.
    #[command(after_help = EMULATE_HELP)]
    Emulate(Box<EmulateArgs>),
    /// Show what is kept of products that are not complete, or remove it.
    #[command(after_help = EXIT_CODES)]
    Partials(PartialsArgs),
    /// Send a file to three receivers on this machine over lossy multicast, and show it.
    Demo(DemoArgs),
}

const EMULATE_HELP: &str = "\
Programs see FARCAST_PEER (the other end's address), FARCAST_ADDRESS, FARCAST_HUB, FARCAST_TERMINALS, FARCAST_TERMINAL \
and FARCAST_DEVICE. The near end is the terminal (10.64.0.1), the far end the hub (10.0.0.1); forward runs from far to \
near.

Examples:
  farcast emulate geo --far 'python3 -m http.server 8000' -- sh -c 'curl -O http://$FARCAST_PEER:8000/file'
  farcast emulate leo --set link.forward.per=0.01 --shell
  farcast emulate --control '{\"set\": {\"outage\": \"5 s\"}}'

Exit codes: the near program's; 125 if farcast itself failed.";

/// What is emulated, and what runs there.
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
    /// The seed of all random numbers: it fixes which packets are lost, not when programs send them.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write what became of each packet to a file.
    #[arg(long, value_name = "FILE.csv|FILE.parquet")]
    pub(crate) log: Option<PathBuf>,
    /// Write the packets of all hosts to a file for Wireshark or tshark.
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) trace: Option<PathBuf>,
    /// Write what came of the run to a file as one JSON object.
    #[arg(long, value_name = "FILE.json")]
    pub(crate) report: Option<PathBuf>,
    /// Draw the run as a page: throughput, delay and losses of both ways.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) timeline: Option<PathBuf>,
    /// Draw the timeline of a log that an earlier run wrote, and run nothing.
    #[arg(long, value_name = "FILE.csv|FILE.parquet", requires = "timeline", conflicts_with_all = ["link", "far", "shell", "set", "log", "trace", "report", "list", "command"])]
    pub(crate) from: Option<PathBuf>,
    /// The run is invalid if more than 1 % of the packets leave later than this share of the round-trip time, or than
    /// 1 ms [default: 1 %].
    #[arg(long, value_name = "SHARE")]
    pub(crate) late_share: Option<Probability>,
    /// Print errors only; programs print as they like.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// List the links that ship with farcast.
    #[arg(long)]
    pub(crate) list: bool,
    /// Look at a running emulation, the one of this process number or the only one, or send it one request.
    #[arg(long, num_args = 0..=2, value_names = ["PID", "REQUEST"], conflicts_with_all = ["far", "shell", "set", "log", "trace", "report", "timeline", "command"])]
    pub(crate) control: Option<Vec<String>>,
    /// The lifeline of the inner process.
    #[arg(long, hide = true, value_name = "FD")]
    pub(crate) inside: Option<i32>,
    /// What runs at the near end.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// What is simulated, and how often.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the command line")]
pub(crate) struct SimulateArgs {
    /// A scenario: a TOML file, or the name of one that ships with farcast (see --list). A link alone, as for emulate,
    /// needs --traffic.
    #[arg(required_unless_present = "list", value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Send this over a link that says nothing of what is sent: tcp, ftp or cbr with the keys of a member of traffic, as in
    /// "tcp, size = 10 MB"; may be given again.
    #[arg(long, value_name = "PROTOCOL[,KEY=VALUE]...")]
    pub(crate) traffic: Vec<String>,
    /// Set a key of the scenario, as in link.forward.per=0.005 or protocol.srt.n=4; may be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// How many replications, each with random numbers of its own [default: 20].
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "until_precision")]
    pub(crate) replications: Option<u64>,
    /// Run replications until the 95 % confidence interval of the mean completion time is so narrow, as in 2 %.
    #[arg(long, value_name = "SHARE")]
    pub(crate) until_precision: Option<Probability>,
    /// At most so many replications with --until-precision.
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) most: u64,
    /// The seed of all random numbers: the same seed gives the same results, on any number of threads.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// The memory that it may take [default: nine tenths of what the machine has available].
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// Keep each receiver's completion time (in the JSON).
    #[arg(long)]
    pub(crate) per_receiver: bool,
    /// Write the packets of one replication to a file for Wireshark or tshark.
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) trace: Option<PathBuf>,
    /// Draw one replication as a page: passes, NAKs, and who waited for what.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) timeline: Option<PathBuf>,
    /// Which replication --trace and --timeline show.
    #[arg(long, default_value_t = 0, value_name = "INDEX")]
    pub(crate) replication: u64,
    /// Print every key of the scenario with its value in effect, and where that came from, and do nothing else.
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

/// Which studies are repeated, and how thoroughly.
#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// A paper by its short name, as in mftp-bgan, or "all".
    #[arg(default_value = "all", value_name = "PAPER")]
    pub(crate) paper: String,
    /// Fewer replications: a first look, with wider intervals.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the results into this directory: reproduce.csv, reproduce.json, and the tables in reproduce.md.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// The seed of all random numbers: the same seed gives the same results, on any number of threads.
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

/// How sockets are made.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Network")]
pub(crate) struct SocketArgs {
    /// The interface for multicast, by name or address [default: the routing table's choice].
    #[arg(long, value_name = "IFACE")]
    pub(crate) interface: Option<String>,
    /// Time to live (hop limit) of multicast; 1 stays on the local network.
    #[arg(long, default_value_t = 1, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(0..=255))]
    pub(crate) ttl: u8,
    /// Differentiated services code point of what is sent.
    #[arg(long, default_value_t = 0, value_name = "0..63", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub(crate) dscp: u8,
    /// Kernel buffer for receiving; above the system's limit only with privileges.
    #[arg(long, default_value = "16 MiB", value_name = "SIZE")]
    pub(crate) receive_buffer: Bytes,
    /// Send and receive datagrams one by one, without segmentation offload.
    #[arg(long)]
    pub(crate) no_offload: bool,
}

/// What is shown.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print one JSON object a line for every event, instead of progress for people.
    #[arg(long)]
    pub(crate) json: bool,
    /// Append the same JSON lines to FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Print errors only.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SendArgs {
    /// Files and directories; all of them travel as one product.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The group (or one receiver's address) that announcements and data go to; the port is 5402 if none is given.
    #[arg(long, value_name = "GROUP[:PORT]", value_parser = endpoint)]
    pub(crate) to: SocketAddr,
    /// Announce on this group instead, and send only data to --to.
    #[arg(long, value_name = "GROUP", value_parser = endpoint)]
    pub(crate) announce: Option<SocketAddr>,
    /// What the slowest link on the way carries ("20 Mbit/s"), or "max": as fast as receivers acknowledge.
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<RateArg>,
    /// What receivers see as the product's name [default: the first path's].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    #[command(flatten)]
    pub(crate) protocol: ProtocolArgs,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Who receives, and when it begins.
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the command line")]
#[derive(Args, Debug)]
#[command(next_help_heading = "Receivers")]
pub(crate) struct GroupArgs {
    /// The receivers, by name or address; nobody else is served [default: whoever registers].
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    pub(crate) receivers: Vec<String>,
    /// Serve at most this many receivers that are not listed.
    #[arg(long, default_value_t = 1024, value_name = "N", conflicts_with = "receivers", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Serve whoever listens, without registration: nobody is known, nobody confirms.
    #[arg(long, conflicts_with_all = ["receivers", "limit", "wait_for"])]
    pub(crate) unlimited: bool,
    /// Begin as soon as this many receivers have registered.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) wait_for: Option<u32>,
    /// Begin with whoever has registered by then [default: 3 s for open groups, none with --receivers or --wait-for].
    #[arg(long, value_name = "TIME")]
    pub(crate) start_after: Option<Span>,
    /// Begin when Enter is pressed.
    #[arg(long)]
    pub(crate) start_on_enter: bool,
    /// Give up when nobody has registered by then.
    #[arg(long, default_value = "180 s", value_name = "TIME")]
    pub(crate) announce_time: Span,
    /// Serve nobody who registers after data has begun.
    #[arg(long)]
    pub(crate) no_late_entry: bool,
    /// Believe what receivers say without proof, as MFTP's draft does: for receivers that are not farcast, or that
    /// unicast from here does not reach.
    #[arg(long)]
    pub(crate) draft: bool,
}

/// How MFTP behaves.
#[derive(Args, Debug)]
#[command(next_help_heading = "Protocol")]
pub(crate) struct ProtocolArgs {
    /// Product bytes in a datagram, 1 B to 65000 B; a bare number means bytes [default: what fits 1500 bytes with all
    /// headers].
    #[arg(long, value_name = "SIZE", value_parser = dtu_size)]
    pub(crate) dtu_size: Option<u32>,
    /// DTUs in a block; receivers report losses block by block [default: a quarter of a second's].
    #[arg(long, value_name = "DTUS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) block_size: Option<u32>,
    /// Parity symbols that a block may have: they replace lost DTUs where fewer of them do. "auto": as many as suit the
    /// block, some of them before they are asked for where asking takes long.
    #[arg(long, value_name = "N|auto|off", default_value = "auto", value_parser = parity)]
    pub(crate) parity: ParityArg,
    /// When the next pass begins: at once when something is missing, or after a whole Status Retry Timer.
    #[arg(long, value_enum, default_value_t = PassWaitArg::Draft)]
    pub(crate) pass_wait: PassWaitArg,
    /// When receivers are asked what they miss.
    #[arg(long, value_enum, default_value_t = NakTimingArg::EachBlock)]
    pub(crate) nak_timing: NakTimingArg,
    /// Status Retry Timer: a time, "block+4rtt", or "measured" (one and a half round trips).
    #[arg(long, default_value = "measured", value_name = "TIMER", value_parser = status_retry)]
    pub(crate) status_retry: StatusRetry,
    /// Unanswered status requests after which a receiver is given up.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) status_retries: u32,
    /// A receiver is given up only after this much silence, however many requests it left unanswered: a minute's rain or
    /// handover is survived.
    #[arg(long, default_value = "120 s", value_name = "TIME")]
    pub(crate) silence: Span,
    /// The round trip to assume until one is measured.
    #[arg(long, default_value = "1 s", value_name = "TIME")]
    pub(crate) rtt: Span,
    /// Receivers spread their answers over this time, against implosion in large groups.
    #[arg(long, default_value = "0 s", value_name = "TIME")]
    pub(crate) spread: Span,
    /// Datagrams that may leave together, at most: ahead of their time (1 ms at most), or to make up for a late wake-up
    /// (5 ms at least, 20 ms at most).
    #[arg(long, default_value = "64 KiB", value_name = "SIZE")]
    pub(crate) burst: Bytes,
    /// Abort after this long.
    #[arg(long, default_value = "24 h", value_name = "TIME")]
    pub(crate) time_limit: Span,
}

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the command line")]
pub(crate) struct ReceiveArgs {
    /// The group (or our own address) to listen on; the port is 5402 if none is given.
    #[arg(long, value_name = "GROUP[:PORT]", value_parser = endpoint)]
    pub(crate) from: SocketAddr,
    /// Where files go; made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub(crate) into: PathBuf,
    /// This receiver's name; needed where several share an address [default: its address].
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// End after the first transmission.
    #[arg(long)]
    pub(crate) once: bool,
    /// Hear this sender only (source-specific multicast; groups in 232.0.0.0/8 and ff3x::/32 need it).
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) source: Option<IpAddr>,
    /// Hear these senders only, by address or prefix ("10.1.2.0/24"); what others send is dropped unread [default: all].
    #[arg(long, value_name = "ADDRESS,..", value_delimiter = ',', value_parser = prefix)]
    pub(crate) accept: Vec<IpNet>,
    /// Keep existing files: a product that would replace one with other content is refused.
    #[arg(long)]
    pub(crate) keep_existing: bool,
    /// Receive names with a leading dot too, such as .ssh or .profile; otherwise a product that has one is refused.
    #[arg(long)]
    pub(crate) hidden: bool,
    /// When the disk is full, wait for room this long; what could not be stored is asked for again.
    #[arg(long, default_value = "10 min", value_name = "TIME")]
    pub(crate) wait_for_room: Span,
    /// Do not wait until files are safe from a power loss.
    #[arg(long)]
    pub(crate) no_sync: bool,
    /// Run this shell command when a product is complete; FARCAST_DIR, FARCAST_PRODUCT, FARCAST_SENDER tell about it.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_complete: Option<String>,
    /// Without any sign of the sender for this long, stop waiting for it; what came is kept for its return.
    #[arg(long, default_value = "120 s", value_name = "TIME")]
    pub(crate) patience: Span,
    /// Lose this part of what arrives, to try things ("5 %").
    #[arg(long, default_value = "0 %", value_name = "PART")]
    pub(crate) simulate_loss: Probability,
    /// Drop what arrives instead of storing it (for benchmarks); the end is never a success.
    #[arg(long, hide = true)]
    pub(crate) discard: bool,
    /// The seed of simulated losses and of random answers [default: from the name].
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) quota: QuotaArgs,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// The size of the file that is sent.
    #[arg(long, default_value = "64 MiB", value_name = "SIZE")]
    pub(crate) size: Bytes,
    /// How many receivers.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) receivers: u32,
    /// What each of them loses.
    #[arg(long, default_value = "2 %", value_name = "PART")]
    pub(crate) loss: Probability,
    /// How fast.
    #[arg(long, default_value = "100 Mbit/s")]
    pub(crate) rate: RateArg,
}

/// A rate, or as fast as receivers acknowledge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RateArg {
    Max,
    Rate(BitRate),
}

impl FromStr for RateArg {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "max" => Ok(Self::Max),
            _ => text
                .parse()
                .map(Self::Rate)
                .map_err(|error: farcast_core::units::UnitError| error.to_string()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ParityArg {
    /// As suits the block and the receivers.
    Auto,
    /// So many symbols a block; 0 for none.
    Symbols(u32),
}

fn parity(text: &str) -> Result<ParityArg, String> {
    match text {
        "auto" => Ok(ParityArg::Auto),
        "off" => Ok(ParityArg::Symbols(0)),
        number => {
            let symbols = number.parse().ok().filter(|symbols| *symbols <= 32_768);
            let wrong = || "it must be \"auto\", \"off\", or a number of symbols up to 32768".into();
            symbols.map(ParityArg::Symbols).ok_or_else(wrong)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PassWaitArg {
    /// As soon as something is to be sent again (draft §9.5).
    Draft,
    /// After a whole Status Retry Timer, as in the BGAN study.
    Fixed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum NakTimingArg {
    /// After every block.
    EachBlock,
    /// At the end of the first pass, after each block later, as in the BGAN study.
    EndOfFirstPass,
}

/// An address with a port, MFTP's by default.
fn endpoint(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>();
    let alone = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    with_port.or_else(|_| alone.map(|address| SocketAddr::new(address, PORT))).map_err(|_| {
        "it must be an address and a port, as in \"239.255.1.1:5402\" or \"[ff15::1]:5402\"".into()
    })
}

/// A size of DTUs: a quantity, or a number of bytes.
fn dtu_size(text: &str) -> Result<u32, String> {
    let number = || text.parse::<u64>().ok();
    let quantity = || text.parse().ok().map(|Bytes(bytes)| bytes);
    let size = number().or_else(quantity).and_then(|bytes| u32::try_from(bytes).ok());
    let fits = size.filter(|size| (1..=65_000).contains(size));
    fits.ok_or_else(|| "it must be a size from 1 B to 65000 B, as in \"1400 B\"".into())
}

/// An address, or a prefix of addresses.
fn prefix(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let prefix = text.parse::<IpNet>().ok();
    let alone = || text.parse::<IpAddr>().map(IpNet::from);
    prefix.map_or_else(alone, Ok).map_err(|_| {
        "it must be an address or a prefix, as in \"10.1.2.3\" or \"10.1.2.0/24\"; separate several by commas".into()
    })
}

fn status_retry(text: &str) -> Result<StatusRetry, String> {
    if text == "measured" {
        return Ok(StatusRetry::Measured);
    }
    if let Some(n) = text.strip_prefix("block+").and_then(|rest| rest.strip_suffix("rtt")) {
        let round_trips =
            n.parse().map_err(|_| "it must be a whole number of round trips, as in \"block+4rtt\"")?;
        return Ok(StatusRetry::BlockTime { round_trips });
    }
    match text.parse() {
        Ok(Span::ZERO) | Err(_) => Err("it must be a time (\"3 s\"), \"block+4rtt\", or \"measured\"".into()),
        Ok(span) => Ok(StatusRetry::Fixed(span)),
    }
}
