//! Choices of a sender: what is sent where, by which protocol, and how it behaves.
#![expect(clippy::doc_markdown, reason = "doc comments are what --help prints")]

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
    /// Files and directories; all of them travel as one product.
    #[cfg_attr(
        feature = "clap",
        arg(required_unless_present = "stream", conflicts_with = "stream", value_name = "PATH")
    )]
    pub paths: Vec<PathBuf>,
    /// The group (or one receiver) that announcements and data go to, by address or host name; the port is 5402 if none
    /// is given.
    #[cfg_attr(feature = "clap", arg(long, value_name = "GROUP[:PORT]"))]
    pub to: Endpoint,
    /// What the slowest link on the way carries ("20 Mbit/s"), or "max": as fast as receivers acknowledge.
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATE", value_parser = parse::rate))]
    pub rate: Option<Rate>,
    /// What receivers see as the product's name [default: the first path's].
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub name: Option<String>,
    /// By which protocol; receivers must be told the same.
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
    /// Announce on this group instead, and send only data to --to.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "GROUP[:PORT]"))]
    pub announce: Option<Endpoint>,
    /// Compress files that become shorter by it, before they are sent, into TMPDIR or else /var/tmp; for receivers that
    /// know of it.
    #[cfg_attr(feature = "clap", arg(help_heading = "Protocol", long))]
    pub compress: bool,
    /// What becomes of it where the content of a file changes, or a file is removed, while it is sent: it goes on without
    /// that file, it is ended and what there is now is sent again, or it fails. A file that was only touched, or has
    /// grown, is sent on as it was.
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

/// What becomes of a transmission of which a file changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Changing {
    /// It goes on without that file.
    #[default]
    Skip,
    /// What there is now is sent again.
    Again,
    /// It fails.
    Fail,
}

/// Who receives, and when it begins.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Receivers"))]
pub struct GroupOptions {
    /// The receivers, by name or address; nobody else is served [default: whoever registers]. Sealed, nobody else gets the
    /// keys, also where nobody registers [default: all that are trusted].
    #[cfg_attr(feature = "clap", arg(long, value_name = "A,B,..", value_delimiter = ',', value_parser = names::trimmed))]
    pub receivers: Vec<String>,
    /// Serve at most this many receivers that are not listed.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, default_value_t = 1024, value_name = "N", conflicts_with = "receivers", value_parser = clap::value_parser!(u32).range(1..)))]
    pub limit: u32,
    /// Serve whoever listens, without registration: nobody is known, nobody confirms.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, conflicts_with_all = ["limit", "wait_for"]))]
    pub unlimited: bool,
    /// Begin as soon as this many receivers have registered.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    pub wait_for: Option<u32>,
    /// Begin with whoever has registered by then [default: 3 s for open groups, none with --receivers or --wait-for].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "TIME"))]
    pub start_after: Option<Span>,
    /// Begin when Enter is pressed.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long))]
    pub start_on_enter: bool,
    /// Where another sender has the group, wait until it is free, as long as it takes or this long at most, instead of
    /// giving up.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = parse::WITHOUT_END, value_parser = parse::wait))]
    pub wait: Option<Span>,
    /// Give up when nobody has registered by then [default: 180 s].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "TIME"))]
    pub announce_time: Option<Span>,
    /// Serve nobody who registers after data has begun.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long))]
    pub no_late_entry: bool,
    /// Believe what receivers say without proof, as MFTP's draft does: for receivers that are not farcast, or that
    /// unicast from here does not reach.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long))]
    pub draft: bool,
}

/// How the protocol behaves.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Protocol"))]
pub struct ProtocolOptions {
    /// Product bytes in a datagram, 1 B to 65000 B; a bare number means bytes [default: what fits 1500 bytes with all
    /// headers].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "SIZE", value_parser = parse::dtu_size))]
    pub dtu_size: Option<u32>,
    /// DTUs in a block; receivers report losses block by block [default: a quarter of a second's; by PGM, with parity,
    /// 16].
    #[cfg_attr(feature = "clap", arg(long, value_name = "DTUS", value_parser = clap::value_parser!(u32).range(1..)))]
    pub block_size: Option<u32>,
    /// Parity symbols that a block may have: they replace lost DTUs where fewer of them do. "auto": as many as suit the
    /// block, some of them before they are asked for where asking takes long [default: auto; by PGM, where it is one
    /// of the words, off].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N|auto|off", value_parser = parse::parity))]
    pub parity: Option<Parity>,
    /// When the next pass begins: at once when something is missing (draft), or after a whole Status Retry Timer
    /// (fixed), as in the BGAN study [default: draft].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_enum, value_name = "WHEN"))]
    pub pass_wait: Option<PassWaitChoice>,
    /// When receivers are asked what they miss: after every block, or in the first pass at its end only [default:
    /// each-block].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_enum, value_name = "WHEN"))]
    pub nak_timing: Option<NakTimingChoice>,
    /// Status Retry Timer: a time, "block+4rtt", or "measured" (one and a half round trips) [default: measured].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "TIMER", value_parser = parse::status_retry))]
    pub status_retry: Option<StatusRetry>,
    /// Unanswered status requests after which a receiver is given up [default: 5].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "N"))]
    pub status_retries: Option<u32>,
    /// A receiver is given up only after this much silence, however many requests it left unanswered: a minute's rain
    /// or handover is survived [default: 120 s].
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, value_name = "TIME"))]
    pub silence: Option<Span>,
    /// The round trip to assume until one is measured; by PGM, which measures none, receivers have the same option
    /// [default: 1 s, by others than MFTP 500 ms].
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub rtt: Option<Span>,
    /// Receivers spread their answers over this time, against implosion in large groups [default: 0 s; by PGM by their
    /// number].
    #[cfg_attr(feature = "clap", arg(help_heading = MFTP_AND_PGM, long, value_name = "TIME"))]
    pub spread: Option<Span>,
    /// Datagrams that may leave together, at most: ahead of their time (1 ms at most), or to make up for a late wake-up
    /// (5 ms at least, 20 ms at most) [default: 64 KiB].
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    pub burst: Option<Bytes>,
    /// Abort after this long; MFTP counts from the first data on [default: 24 h].
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub time_limit: Option<Span>,
    /// Settings from this file: a TOML table "protocol" with the keys that a scenario's has, whose name is the protocol
    /// unless --protocol says another. Options of the command line go before it.
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
    /// As soon as something is to be sent again (draft §9.5).
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

/// How they behave.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = NORM_AND_MDP))]
pub struct NackOptions {
    /// Octets of a segment [default: by NORM and PGM what fits 1500 bytes with all headers, by MDP 1024].
    #[cfg_attr(feature = "clap", arg(help_heading = NORM_MDP_AND_PGM, long, value_name = "OCTETS", value_parser = clap::value_parser!(u16).range(4..=65_000)))]
    pub segment_size: Option<u16>,
    /// Parity symbols that leave with each block before anybody has asked, or "auto": by NORM as many as what is
    /// expected to be lost asks for, by MDP none [default: auto; by PGM, where it is a number, 0].
    #[cfg_attr(feature = "clap", arg(help_heading = NORM_MDP_AND_PGM, long, value_name = "N|auto", value_parser = parse::parity_ahead))]
    pub parity_ahead: Option<Parity>,
    /// How many receivers there are, where they are not named: they wait the longer before they ask, the more they are
    /// [default: as many as named, or 10000, by PGM 64; by MDP receivers are told themselves].
    #[cfg_attr(feature = "clap", arg(help_heading = NORM_MDP_AND_PGM, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    pub group_size: Option<u32>,
    /// Whom receivers answer, for --predict: the group, or the sender alone. They decide [default: group].
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "WHOM"))]
    pub answers: Option<Answers>,
    /// How often the end is said, and named receivers are asked whether they have it [default: 20].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000)))]
    pub robust: Option<u32>,
    /// The sender's own node id, 1 to 4294967294 [default: from its address].
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID", value_parser = clap::value_parser!(u32).range(1..=0xFFFF_FFFE)))]
    pub node: Option<u32>,
}

/// Whom receivers answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Answers {
    /// The group, so that who hears it need not ask for the same.
    Group,
    /// The sender alone.
    Sender,
}

/// How NORM behaves.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "NORM"))]
pub struct NormOptions {
    /// Lets receivers decide how fast: as fast as TCP would send to the one that can take least, and at most --rate
    /// (NORM-CC; by PGM PGMCC).
    #[cfg_attr(feature = "clap", arg(help_heading = NORM_AND_PGM, long))]
    pub cc: bool,
    /// With --cc, how slow nobody makes it [default: a thousandth of --rate].
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATE", requires = "cc"))]
    pub least_rate: Option<BitRate>,
    /// What part of the datagrams receivers are expected to lose [default: 0 %].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PART"))]
    pub expected_loss: Option<Probability>,
    /// Over how many round trips of the group receivers spread what they ask for, 0 to 15 [default: by their number].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=15)))]
    pub backoff: Option<u8>,
}

/// How MDP behaves.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "MDP"))]
pub struct MdpOptions {
    /// How long after the last segment of a file the next one begins [default: 0 s].
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub gap: Option<Span>,
    /// What --rate counts [default: packet].
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "WHAT"))]
    pub counts: Option<Counted>,
    /// Says of a file its name and nothing else, for receivers that are not farcast and take what stands behind the
    /// name for part of it: then nothing vouches for files, and what is stopped begins anew.
    #[cfg_attr(feature = "clap", arg(long))]
    pub names_alone: bool,
}

/// What a rate counts.
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

/// How PGM behaves.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "PGM"))]
pub struct PgmOptions {
    /// After everything was sent, how long to stay while named receivers say nothing [default: 20 s, longer where round
    /// trips are].
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = parse::some_time))]
    pub linger: Option<Span>,
    /// Send as IP protocol 113, without UDP, which takes IPv4 and the right to open raw sockets; receivers do the same.
    #[cfg_attr(feature = "clap", arg(long))]
    pub raw: bool,
    /// With --stream, send from this UDP port, where OpenPGM's receivers ask for repair (its option
    /// `PGM_UDP_ENCAP_UCAST_PORT`); others ask where the stream comes from [default: any that is free].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PORT", requires = "stream", value_parser = clap::value_parser!(u16).range(1..)))]
    pub unicast_port: Option<u16>,
}

/// How it is sent to receivers that cannot answer.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "One-way"))]
pub struct OneWayOptions {
    /// Send to receivers that cannot answer: symbols of a large code, of which any do that are about as large as the
    /// files. Nobody can tell who has received them, so the exit code is 4. The same as --protocol one-way.
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "speaks"))]
    pub one_way: bool,
    /// Go on for so long.
    #[cfg_attr(feature = "clap", arg(long = "for", value_name = "TIME", conflicts_with = "repeat"))]
    pub duration: Option<Span>,
    /// Go round so often; each time other symbols leave, until the code is used up [default: 1].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    pub repeat: Option<u32>,
    /// What a round sends more than the files have, in per cent, 0 to 900 [default: 10].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=900)))]
    pub overhead: Option<u32>,
    /// Octets of a symbol [default: what fits 1500 bytes with all headers].
    #[cfg_attr(feature = "clap", arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(u16).range(2..=65_000)))]
    pub symbol_size: Option<u16>,
}

/// Streams.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = NORM_AND_PGM))]
pub struct StreamOptions {
    /// Send what standard input gives, until its end, as one stream to whoever runs `receive --stream`.
    #[cfg_attr(feature = "clap", arg(long))]
    pub stream: bool,
    /// With --stream, each line is a message, with which receivers that come late may begin.
    #[cfg_attr(feature = "clap", arg(long, requires = "stream"))]
    pub lines: bool,
    /// With --stream, how many octets of what was sent are kept for repair [default: what leaves while receivers ask
    /// three times, 1 MiB to 64 MiB].
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
