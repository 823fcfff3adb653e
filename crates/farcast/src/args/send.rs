//! The command line of `farcast send`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_mftp::StatusRetry;
use farcast_mftp::settings::Parity;

use super::{OutputArgs, PageArgs, RateArg, SocketArgs};
use crate::host::Endpoint;
use crate::names;
use crate::protocols::{MFTP_AND_PGM, Speaks};
use crate::sealing::SealArgs;
use crate::send::{MdpArgs, NackArgs, NormArgs, OneWayArgs, PgmArgs, StreamArgs};

/// What becomes of a transmission of which a file changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum ChangingArg {
    /// It goes on without that file.
    #[default]
    Skip,
    /// What there is now is sent again.
    Again,
    /// It fails.
    Fail,
}

impl ChangingArg {
    pub(crate) fn of(self) -> farcast_net::Changing {
        match self {
            Self::Skip => farcast_net::Changing::Skip,
            Self::Again => farcast_net::Changing::Again,
            Self::Fail => farcast_net::Changing::Fail,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct SendArgs {
    /// Files and directories; all of them travel as one product.
    #[arg(required_unless_present = "stream", conflicts_with = "stream", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The group (or one receiver) that announcements and data go to, by address or host name; the port is 5402 if none
    /// is given.
    #[arg(long, value_name = "GROUP[:PORT]")]
    pub(crate) to: Endpoint,
    /// What the slowest link on the way carries ("20 Mbit/s"), or "max": as fast as receivers acknowledge.
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<RateArg>,
    /// What receivers see as the product's name [default: the first path's].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// By which protocol; receivers must be told the same.
    #[arg(long = "protocol", value_enum, default_value_t, value_name = "PROTOCOL")]
    pub(crate) speaks: Speaks,
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    #[command(flatten)]
    pub(crate) one_way: OneWayArgs,
    #[command(flatten)]
    pub(crate) protocol: ProtocolArgs,
    #[command(flatten)]
    pub(crate) nack: NackArgs,
    #[command(flatten)]
    pub(crate) norm: NormArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    #[command(flatten)]
    pub(crate) mdp: MdpArgs,
    #[command(flatten)]
    pub(crate) pgm: PgmArgs,
    /// Announce on this group instead, and send only data to --to.
    #[arg(help_heading = "MFTP", long, value_name = "GROUP[:PORT]")]
    pub(crate) announce: Option<Endpoint>,
    /// Compress files that become shorter by it, before they are sent, into TMPDIR or else /var/tmp; for receivers that
    /// know of it.
    #[arg(help_heading = "Protocol", long)]
    pub(crate) compress: bool,
    /// What becomes of it where the content of a file changes, or a file is removed, while it is sent: it goes on without
    /// that file, it is ended and what there is now is sent again, or it fails. A file that was only touched, or has
    /// grown, is sent on as it was.
    #[arg(help_heading = "Protocol", long, value_enum, default_value_t, value_name = "HOW")]
    pub(crate) changing: ChangingArg,
    #[command(flatten)]
    pub(crate) seal: SealArgs,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Say at the end what was sent and what was left out.
    #[arg(help_heading = "MFTP", long, conflicts_with = "predict")]
    pub(crate) stats: bool,
}

impl SendArgs {
    /// By which protocol, however that was said.
    pub(crate) fn speaks(&self) -> Speaks {
        if self.one_way.one_way { Speaks::OneWay } else { self.speaks }
    }
}

/// Who receives, and when it begins.
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the command line")]
#[derive(Args, Debug)]
#[command(next_help_heading = "Receivers")]
pub(crate) struct GroupArgs {
    /// The receivers, by name or address; nobody else is served [default: whoever registers]. Sealed, nobody else gets the
    /// keys, also where nobody registers [default: all that are trusted].
    #[arg(long, value_name = "A,B,..", value_delimiter = ',', value_parser = names::trimmed)]
    pub(crate) receivers: Vec<String>,
    /// Serve at most this many receivers that are not listed.
    #[arg(help_heading = "MFTP", long, default_value_t = 1024, value_name = "N", conflicts_with = "receivers", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Serve whoever listens, without registration: nobody is known, nobody confirms.
    #[arg(help_heading = "MFTP", long, conflicts_with_all = ["limit", "wait_for"])]
    pub(crate) unlimited: bool,
    /// Begin as soon as this many receivers have registered.
    #[arg(help_heading = "MFTP", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) wait_for: Option<u32>,
    /// Begin with whoever has registered by then [default: 3 s for open groups, none with --receivers or --wait-for].
    #[arg(help_heading = "MFTP", long, value_name = "TIME")]
    pub(crate) start_after: Option<Span>,
    /// Begin when Enter is pressed.
    #[arg(help_heading = "MFTP", long)]
    pub(crate) start_on_enter: bool,
    /// Where another sender has the group, wait until it is free, as long as it takes or this long at most, instead of
    /// giving up.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = WITHOUT_END, value_parser = wait)]
    pub(crate) wait: Option<Span>,
    /// Give up when nobody has registered by then [default: 180 s].
    #[arg(help_heading = "MFTP", long, value_name = "TIME")]
    pub(crate) announce_time: Option<Span>,
    /// Serve nobody who registers after data has begun.
    #[arg(help_heading = "MFTP", long)]
    pub(crate) no_late_entry: bool,
    /// Believe what receivers say without proof, as MFTP's draft does: for receivers that are not farcast, or that
    /// unicast from here does not reach.
    #[arg(help_heading = "MFTP", long)]
    pub(crate) draft: bool,
}

/// How the protocol behaves.
#[derive(Args, Debug)]
#[command(next_help_heading = "Protocol")]
pub(crate) struct ProtocolArgs {
    /// Product bytes in a datagram, 1 B to 65000 B; a bare number means bytes [default: what fits 1500 bytes with all
    /// headers].
    #[arg(help_heading = "MFTP", long, value_name = "SIZE", value_parser = dtu_size)]
    pub(crate) dtu_size: Option<u32>,
    /// DTUs in a block; receivers report losses block by block [default: a quarter of a second's; by PGM, with parity,
    /// 16].
    #[arg(long, value_name = "DTUS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) block_size: Option<u32>,
    /// Parity symbols that a block may have: they replace lost DTUs where fewer of them do. "auto": as many as suit the
    /// block, some of them before they are asked for where asking takes long [default: auto; by PGM, where it is one
    /// of the words, off].
    #[arg(long, value_name = "N|auto|off", value_parser = parity)]
    pub(crate) parity: Option<Parity>,
    /// When the next pass begins: at once when something is missing (draft), or after a whole Status Retry Timer
    /// (fixed), as in the BGAN study [default: draft].
    #[arg(help_heading = "MFTP", long, value_enum, value_name = "WHEN")]
    pub(crate) pass_wait: Option<PassWaitArg>,
    /// When receivers are asked what they miss: after every block, or in the first pass at its end only [default:
    /// each-block].
    #[arg(help_heading = "MFTP", long, value_enum, value_name = "WHEN")]
    pub(crate) nak_timing: Option<NakTimingArg>,
    /// Status Retry Timer: a time, "block+4rtt", or "measured" (one and a half round trips) [default: measured].
    #[arg(help_heading = "MFTP", long, value_name = "TIMER", value_parser = status_retry)]
    pub(crate) status_retry: Option<StatusRetry>,
    /// Unanswered status requests after which a receiver is given up [default: 5].
    #[arg(help_heading = "MFTP", long, value_name = "N")]
    pub(crate) status_retries: Option<u32>,
    /// A receiver is given up only after this much silence, however many requests it left unanswered: a minute's rain
    /// or handover is survived [default: 120 s].
    #[arg(help_heading = "MFTP", long, value_name = "TIME")]
    pub(crate) silence: Option<Span>,
    /// The round trip to assume until one is measured; by PGM, which measures none, receivers have the same option
    /// [default: 1 s, by others than MFTP 500 ms].
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<Span>,
    /// Receivers spread their answers over this time, against implosion in large groups [default: 0 s; by PGM by their
    /// number].
    #[arg(help_heading = MFTP_AND_PGM, long, value_name = "TIME")]
    pub(crate) spread: Option<Span>,
    /// Datagrams that may leave together, at most: ahead of their time (1 ms at most), or to make up for a late wake-up
    /// (5 ms at least, 20 ms at most) [default: 64 KiB].
    #[arg(long, value_name = "SIZE")]
    pub(crate) burst: Option<Bytes>,
    /// Abort after this long; MFTP counts from the first data on [default: 24 h].
    #[arg(long, value_name = "TIME")]
    pub(crate) time_limit: Option<Span>,
    /// Settings from this file: a TOML table "protocol" with the keys that a scenario's has, whose name is the protocol
    /// unless --protocol says another. Options of the command line go before it.
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Send nothing; say what this command would take over LINK: one that ships with farcast (see farcast emulate
    /// --list) or a file of TOML with a link alone.
    #[arg(long, value_name = "LINK")]
    pub(crate) predict: Option<String>,
    /// How often --predict simulates it.
    #[arg(long, default_value_t = 100, value_name = "N", requires = "predict", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) replications: u32,
}

fn parity(text: &str) -> Result<Parity, String> {
    match text {
        "auto" => Ok(Parity::Auto),
        "off" => Ok(Parity::Symbols(0)),
        number => {
            let symbols = number.parse().ok().filter(|symbols| *symbols <= 32_768);
            let wrong = || "it must be \"auto\", \"off\", or a number of symbols up to 32768".into();
            symbols.map(Parity::Symbols).ok_or_else(wrong)
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

/// What `--wait` alone means.
const WITHOUT_END: &str = "without end";

/// How long is waited for the group at most.
fn wait(text: &str) -> Result<Span, String> {
    if text == WITHOUT_END {
        return Ok(Span::MAX);
    }
    let wrong =
        "it must be a time, as in \"10 min\"; to wait as long as it takes, write --wait behind the paths";
    text.parse().map_err(|_| wrong.into())
}

/// A size of DTUs: a quantity, or a number of bytes.
fn dtu_size(text: &str) -> Result<u32, String> {
    let number = || text.parse::<u64>().ok();
    let quantity = || text.parse().ok().map(|Bytes(bytes)| bytes);
    let size = number().or_else(quantity).and_then(|bytes| u32::try_from(bytes).ok());
    let fits = size.filter(|size| (1..=65_000).contains(size));
    fits.ok_or_else(|| "it must be a size from 1 B to 65000 B, as in \"1400 B\"".into())
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
