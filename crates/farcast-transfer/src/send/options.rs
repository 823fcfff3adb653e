//! Choices of a sender: what is sent where, by which protocol, and how it behaves.

use std::path::PathBuf;

use farcast_core::units::Bytes;
use farcast_core::{BitRate, Probability, Span};
use farcast_delivery::Parity;
use farcast_mftp::StatusRetry;
use farcast_mftp::settings::Rate;

use crate::headings::{MFTP_AND_PGM, NORM_AND_MDP, NORM_AND_PGM, NORM_MDP_AND_PGM};
use crate::host::Endpoint;
use crate::options::{NetworkOptions, SealOptions};
use crate::protocol::ProtocolName;
#[cfg(feature = "clap")]
use crate::{names, parse};

/// Files to send, with the choices of their transfer.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SendJob {
    /// Files and directories, sent together as one product.
    #[cfg_attr(
        feature = "clap",
        arg(required_unless_present = "stream", conflicts_with = "stream", value_name = "PATH")
    )]
    pub paths: Vec<PathBuf>,
    /// Destination of announcements and data: a group or one receiver, by address or host name; the default port is
    /// 5402.
    #[cfg_attr(feature = "clap", arg(long, value_name = "GROUP[:PORT]"))]
    pub to: Endpoint,
    /// Rate of the slowest link on the path ("20 Mbit/s"), or "max": as fast as receivers acknowledge.
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATE", value_parser = parse::rate))]
    pub rate: Option<Rate>,
    /// Name of the product for receivers [default: the name of the first path].
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub name: Option<String>,
    /// Protocol; receivers must use the same.
    #[cfg_attr(
        feature = "clap",
        arg(id = "speaks", long = "protocol", value_enum, default_value_t, value_name = "PROTOCOL")
    )]
    pub by: ProtocolName,
    /// Receivers, and the beginning.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub group: GroupOptions,
    /// Choices for one way.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub one_way: OneWayOptions,
    /// Choices that several protocols share.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub protocol: ProtocolOptions,
    /// Choices of NORM, MDP and PGM.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub nack: NackOptions,
    /// Choices of NORM.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub norm: NormOptions,
    /// Choices for streams.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub stream: StreamOptions,
    /// Choices of MDP.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub mdp: MdpOptions,
    /// Choices of PGM.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub pgm: PgmOptions,
    /// Announce on this group, and send only data to --to.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "GROUP[:PORT]"))]
    pub announce: Option<Endpoint>,
    /// Compress files that become shorter, before they are sent. The compressed files are in TMPDIR, or else in
    /// /var/tmp. Receivers must support it.
    #[cfg_attr(feature = "clap", arg(help_heading = "Protocol", long))]
    pub compress: bool,
    /// Reaction to a file whose content changes, or that is removed, while it is sent: continue without that file, end
    /// and send the current files again, or fail. A file that was only touched, or that has grown, is sent as it was.
    #[cfg_attr(
        feature = "clap",
        arg(help_heading = "Protocol", long, value_enum, default_value_t, value_name = "HOW")
    )]
    pub changing: Changing,
    /// Choices of the seal.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub seal: SealOptions,
    /// Choices of sockets.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub socket: NetworkOptions,
}

/// Reaction to a file that changes during its transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Changing {
    /// Continue without that file.
    #[default]
    Skip,
    /// End the transmission and send the current files again.
    Again,
    /// Fail.
    Fail,
}

/// Options of receivers and of the start.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Receivers"))]
pub struct GroupOptions {
    /// Receivers, by name or address; no other receiver is served [default: every receiver that registers]. In a sealed
    /// transfer no other receiver gets the keys [default: all trusted receivers].
    #[cfg_attr(feature = "clap", arg(long, value_name = "A,B,..", value_delimiter = ',', value_parser = names::trimmed))]
    pub receivers: Vec<String>,
    /// Serve at most this many receivers that are not listed.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, default_value_t = 1024, value_name = "N", conflicts_with = "receivers", value_parser = clap::value_parser!(u32).range(1..)))]
    pub limit: u32,
    /// Serve every listener without registration: receivers are unknown and do not confirm.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, conflicts_with_all = ["limit", "wait_for"]))]
    pub unlimited: bool,
    /// Begin as soon as this many receivers have registered.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    pub wait_for: Option<u32>,
    /// Begin after this time with the receivers that have registered [default: 3 s for open groups, none with
    /// --receivers or --wait-for].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "TIME"))]
    pub start_after: Option<Span>,
    /// Begin when Enter is pressed.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long))]
    pub start_on_enter: bool,
    /// Wait until the group is free if another sender uses it, without limit or for this long at most, instead of
    /// giving up.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = parse::WITHOUT_END, value_parser = parse::wait))]
    pub wait: Option<Span>,
    /// Give up if no receiver has registered after this time [default: 180 s].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "TIME"))]
    pub announce_time: Option<Span>,
    /// Refuse receivers that register after data has begun.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long))]
    pub no_late_entry: bool,
    /// Accept answers of receivers without proof of origin, as MFTP's draft does. Needed by receivers that are not
    /// farcast, or that unicast from this host does not reach.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long))]
    pub draft: bool,
}

/// Options of the protocol.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Protocol"))]
pub struct ProtocolOptions {
    /// Product bytes in a datagram, 1 B to 65000 B; a bare number means bytes [default: the most that fits 1500 bytes
    /// with all headers].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "SIZE", value_parser = parse::dtu_size))]
    pub dtu_size: Option<u32>,
    /// DTUs in a block; receivers report losses block by block [default: as many as leave in a quarter of a second; PGM
    /// with parity: 16].
    #[cfg_attr(feature = "clap", arg(long, value_name = "DTUS", value_parser = clap::value_parser!(u32).range(1..)))]
    pub block_size: Option<u32>,
    /// Most parity symbols of a block. They are sent in place of lost DTUs if fewer of them suffice. "auto" chooses a
    /// number that suits the block, and sends some unasked if round trips are long [default: auto; PGM: off].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N|auto|off", value_parser = parse::parity))]
    pub parity: Option<Parity>,
    /// Start of the next pass: as soon as something is missing (draft), or after a whole Status Retry Timer (fixed), as
    /// in the BGAN study [default: draft].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_enum, value_name = "WHEN"))]
    pub pass_wait: Option<PassWaitChoice>,
    /// Time of status requests: after every block, or in the first pass only at its end [default: each-block].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_enum, value_name = "WHEN"))]
    pub nak_timing: Option<NakTimingChoice>,
    /// Status Retry Timer: a time, "block+4rtt", or "measured" (one and a half round trips) [default: measured].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "TIMER", value_parser = parse::status_retry))]
    pub status_retry: Option<StatusRetry>,
    /// Give up a receiver after this many unanswered status requests [default: 5].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "N"))]
    pub status_retries: Option<u32>,
    /// Give up a receiver only after this much silence, however many requests it left unanswered. The default survives
    /// a minute of rain or a handover [default: 120 s].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "TIME"))]
    pub silence: Option<Span>,
    /// Round trip to assume until one is measured. PGM measures none, so its receivers have the same option [default: 1
    /// s; other protocols than MFTP: 500 ms].
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub rtt: Option<Span>,
    /// Time over which receivers spread their answers, against implosion in large groups [default: 0 s; PGM: from their
    /// number].
    #[cfg_attr(feature = "clap", arg(help_heading = MFTP_AND_PGM, long, value_name = "TIME"))]
    pub spread: Option<Span>,
    /// Most bytes that leave together, ahead of their time (1 ms at most) or after a late wake-up (5 ms to 20 ms)
    /// [default: 64 KiB].
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    pub burst: Option<Bytes>,
    /// Abort after this long; MFTP counts from the first data on [default: 24 h].
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub time_limit: Option<Span>,
    /// Settings from this file: a TOML table "protocol" with the keys of a scenario. Its name selects the protocol,
    /// unless --protocol does. Options of the command line override it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub plan: Option<PathBuf>,
    /// Keys of that table with their values, as in `parity` and `16`. They go before the file.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub keys: Vec<(String, String)>,
}

/// Beginning of the next pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum PassWaitChoice {
    /// As soon as something is missing (draft §9.5).
    Draft,
    /// After a whole Status Retry Timer, as in the BGAN study.
    Fixed,
}

/// Times at which receivers are asked for their losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum NakTimingChoice {
    /// After every block.
    EachBlock,
    /// At the end of the first pass, after each block later, as in the BGAN study.
    EndOfFirstPass,
}

/// Options of NACK-oriented protocols.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = NORM_AND_MDP))]
pub struct NackOptions {
    /// Octets of a segment [default: the most that fits 1500 bytes with all headers; MDP: 1024].
    #[cfg_attr(feature = "clap", arg(help_heading = NORM_MDP_AND_PGM, long, value_name = "OCTETS", value_parser = clap::value_parser!(u16).range(4..=65_000)))]
    pub segment_size: Option<u16>,
    /// Parity symbols that leave with each block unasked, or "auto": NORM sends as many as the expected loss needs, MDP
    /// none [default: auto; PGM takes only a number: 0].
    #[cfg_attr(feature = "clap", arg(help_heading = NORM_MDP_AND_PGM, long, value_name = "N|auto", value_parser = parse::parity_ahead))]
    pub parity_ahead: Option<Parity>,
    /// Number of receivers, if they are not named. The more they are, the longer each waits before it asks [default:
    /// the number of named receivers, or 10000; PGM: 64; an MDP receiver has the same option].
    #[cfg_attr(feature = "clap", arg(help_heading = NORM_MDP_AND_PGM, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    pub group_size: Option<u32>,
    /// Destination of the receivers' answers, for --predict: the group, or the sender alone. In a real transfer
    /// receivers decide [default: group].
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "WHOM"))]
    pub answers: Option<Answers>,
    /// Number of times that the sender announces the end, and asks named receivers to confirm [default: 20].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000)))]
    pub robust: Option<u32>,
    /// Node id of this sender, 1 to 4294967294 [default: from its address].
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID", value_parser = clap::value_parser!(u32).range(1..=0xFFFF_FFFE)))]
    pub node: Option<u32>,
}

/// Destination of the receivers' answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Answers {
    /// The group: receivers that hear an answer need not repeat it.
    Group,
    /// The sender alone.
    Sender,
}

/// Options of NORM.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "NORM"))]
pub struct NormOptions {
    /// Control congestion: send as fast as TCP would to the slowest receiver, and at most at --rate (NORM-CC; PGM:
    /// PGMCC).
    #[cfg_attr(feature = "clap", arg(help_heading = NORM_AND_PGM, long))]
    pub cc: bool,
    /// Lowest rate with --cc [default: a thousandth of --rate].
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATE", requires = "cc"))]
    pub least_rate: Option<BitRate>,
    /// Expected share of lost datagrams [default: 0 %].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PART"))]
    pub expected_loss: Option<Probability>,
    /// Round trips of the group over which receivers spread their requests, 0 to 15 [default: from their number].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=15)))]
    pub backoff: Option<u8>,
}

/// Options of MDP.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "MDP"))]
pub struct MdpOptions {
    /// Pause between the last segment of a file and the next file [default: 0 s].
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub gap: Option<Span>,
    /// Octets that --rate counts [default: packet].
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "WHAT"))]
    pub counts: Option<Counted>,
    /// Describe a file by its name alone. Other implementations may take farcast's description for a part of the name.
    /// Files are then not verified, and an interrupted transfer starts anew.
    #[cfg_attr(feature = "clap", arg(long))]
    pub names_alone: bool,
}

/// Octets that a rate counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Counted {
    /// File content and parity alone.
    Payload,
    /// MDP's messages.
    Message,
    /// Whole packets.
    Packet,
}

/// Options of PGM.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "PGM"))]
pub struct PgmOptions {
    /// Longest wait for silent named receivers after everything was sent [default: 20 s, more if round trips are long].
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = parse::some_time))]
    pub linger: Option<Span>,
    /// Send as IP protocol 113 without UDP. It needs IPv4 and the right to open raw sockets. Receivers need the same
    /// option.
    #[cfg_attr(feature = "clap", arg(long))]
    pub raw: bool,
    /// Send a stream from this UDP port. OpenPGM's receivers ask for repair at it (its option
    /// `PGM_UDP_ENCAP_UCAST_PORT`); others use the port that the stream comes from [default: any free port].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PORT", requires = "stream", value_parser = clap::value_parser!(u16).range(1..)))]
    pub unicast_port: Option<u16>,
}

/// Options for receivers that cannot answer.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "One-way"))]
pub struct OneWayOptions {
    /// Send to receivers that cannot answer, as symbols of a large code. A receiver needs about as many octets of them
    /// as the files have, no matter which. Reception cannot be confirmed, so the exit code is 4. The same as --protocol
    /// one-way.
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "speaks"))]
    pub one_way: bool,
    /// Send for this long.
    #[cfg_attr(feature = "clap", arg(long = "for", value_name = "TIME", conflicts_with = "repeat"))]
    pub duration: Option<Span>,
    /// Number of rounds; each round sends other symbols, until the code is used up [default: 1].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    pub repeat: Option<u32>,
    /// Octets that a round sends beyond the size of the files, in per cent, 0 to 900 [default: 10].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=900)))]
    pub overhead: Option<u32>,
    /// Octets of a symbol [default: the most that fits 1500 bytes with all headers].
    #[cfg_attr(feature = "clap", arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(u16).range(2..=65_000)))]
    pub symbol_size: Option<u16>,
}

/// Options of streams.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = NORM_AND_PGM))]
pub struct StreamOptions {
    /// Send standard input, until its end, as one stream to receivers that run `receive --stream`.
    #[cfg_attr(feature = "clap", arg(long))]
    pub stream: bool,
    /// Take each line of the stream as a message. A late receiver begins with a message.
    #[cfg_attr(feature = "clap", arg(long, requires = "stream"))]
    pub lines: bool,
    /// Octets of the stream that are kept for repair [default: as many as leave while receivers ask three times, 1 MiB
    /// to 64 MiB].
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE", requires = "stream"))]
    pub window: Option<Bytes>,
}

impl SendJob {
    /// Returns a job that sends nothing yet to `to`, with every choice at its default.
    pub fn new(to: Endpoint) -> Self {
        Self {
            paths: Vec::new(),
            to,
            rate: None,
            name: None,
            by: ProtocolName::default(),
            group: GroupOptions::default(),
            one_way: OneWayOptions::default(),
            protocol: ProtocolOptions::default(),
            nack: NackOptions::default(),
            norm: NormOptions::default(),
            stream: StreamOptions::default(),
            mdp: MdpOptions::default(),
            pgm: PgmOptions::default(),
            announce: None,
            compress: false,
            changing: Changing::default(),
            seal: SealOptions::default(),
            socket: NetworkOptions::default(),
        }
    }

    /// Returns the protocol, however it was chosen.
    pub fn protocol_name(&self) -> ProtocolName {
        if self.one_way.one_way { ProtocolName::OneWay } else { self.by }
    }
}

impl Default for GroupOptions {
    fn default() -> Self {
        Self {
            receivers: Vec::new(),
            limit: 1024,
            unlimited: false,
            wait_for: None,
            start_after: None,
            start_on_enter: false,
            wait: None,
            announce_time: None,
            no_late_entry: false,
            draft: false,
        }
    }
}

impl Changing {
    /// Returns the choice as the network driver takes it.
    pub(crate) fn of(self) -> farcast_net::Changing {
        match self {
            Self::Skip => farcast_net::Changing::Skip,
            Self::Again => farcast_net::Changing::Again,
            Self::Fail => farcast_net::Changing::Fail,
        }
    }
}

impl StreamOptions {
    /// Checks that options for streams come with `stream`. A command line's parser does not check this where another
    /// option conflicts with it.
    pub(super) fn check(&self) -> Result<(), crate::Error> {
        if (self.lines || self.window.is_some()) && !self.stream {
            return Err(crate::Error::usage("--lines and --window go with --stream"));
        }
        Ok(())
    }
}
