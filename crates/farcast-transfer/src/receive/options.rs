//! Choices of a receiver: what is received from where, by which protocol, and where it goes.
#![expect(clippy::doc_markdown, reason = "doc comments are what --help prints")]

use std::path::PathBuf;

use farcast_core::units::Bytes;
use farcast_core::{Probability, Span};
use farcast_files::Quota;

#[cfg(feature = "clap")]
use crate::headings::{NORM_AND_MDP, NORM_AND_PGM, NORM_MDP_AND_PGM};
use crate::host::{Accepted, Endpoint, Host};
use crate::options::{NetworkOptions, SealOptions};
use crate::protocol::ProtocolName;
#[cfg(feature = "clap")]
use crate::{names, parse};

/// Reception of what a sender sends, with its choices.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct ReceiveJob {
    /// Group (or own address) to listen on, by address or host name; the default port is 5402.
    #[cfg_attr(feature = "clap", arg(long, value_name = "GROUP[:PORT]"))]
    pub from: Endpoint,
    /// Directory for received files; it is made if it does not exist.
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "DIR",
            required = false,
            required_unless_present = "stream",
            conflicts_with = "stream",
            default_value_if("stream", "true", "-")
        )
    )]
    pub into: PathBuf,
    /// Name of this receiver. Receivers that share an address need one [default: the name of its key, else its
    /// address].
    #[cfg_attr(feature = "clap", arg(long, value_parser = names::trimmed))]
    pub name: Option<String>,
    /// Protocol; the sender must use the same.
    #[cfg_attr(
        feature = "clap",
        arg(id = "speaks", long = "protocol", value_enum, default_value_t, value_name = "PROTOCOL")
    )]
    pub by: ProtocolName,
    /// End after the first transmission.
    #[cfg_attr(feature = "clap", arg(long))]
    pub once: bool,
    /// Receive from this sender only, by address or host name: source-specific multicast. Groups in 232.0.0.0/8 and
    /// ff3x::/32 need it.
    #[cfg_attr(feature = "clap", arg(help_heading = "Senders", long, value_name = "HOST"))]
    pub source: Option<Host>,
    /// Receive from these senders only, by address, host name or prefix ("10.1.2.0/24"). Datagrams of others are
    /// dropped unread [default: all].
    #[cfg_attr(
        feature = "clap",
        arg(help_heading = "Senders", long, value_name = "HOST,..", value_delimiter = ',')
    )]
    pub accept: Vec<Accepted>,
    /// Keep existing files: a product that would replace one with other content is refused.
    #[cfg_attr(feature = "clap", arg(help_heading = "Files", long))]
    pub keep_existing: bool,
    /// Receive names with a leading dot too, such as .ssh or .profile; otherwise a product that has one is refused.
    #[cfg_attr(feature = "clap", arg(help_heading = "Files", long))]
    pub hidden: bool,
    /// Longest wait for room when the disk is full. Data that could not be stored is requested again.
    #[cfg_attr(
        feature = "clap",
        arg(help_heading = "Files", long, default_value = "10 min", value_name = "TIME")
    )]
    pub wait_for_room: Span,
    /// Do not wait until files are safe from a power loss.
    #[cfg_attr(feature = "clap", arg(help_heading = "Files", long))]
    pub no_sync: bool,
    /// Stop waiting for a sender that is silent for this long. Received data is kept for its return.
    #[cfg_attr(
        feature = "clap",
        arg(help_heading = "Senders", long, default_value = "120 s", value_name = "TIME")
    )]
    pub patience: Span,
    /// Drop this share of the arriving datagrams, for trials ("5 %").
    #[cfg_attr(
        feature = "clap",
        arg(help_heading = "Trials", long, default_value = "0 %", value_name = "PART")
    )]
    pub simulate_loss: Probability,
    /// Discard data instead of storing it, for benchmarks. The reception never ends as a success.
    #[cfg_attr(feature = "clap", arg(long, hide = true))]
    pub discard: bool,
    /// Seed of simulated losses and of random waits [default: from the name].
    #[cfg_attr(feature = "clap", arg(help_heading = "Trials", long))]
    pub seed: Option<u64>,
    /// Choices of NORM, MDP and PGM.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub nack: NackOptions,
    /// Choices of MDP.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub mdp: MdpOptions,
    /// Choices of PGM.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub pgm: PgmOptions,
    /// Choices for streams.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub stream: StreamOptions,
    /// Choices for one way.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub one_way: OneWayOptions,
    /// Limits of what is kept of incomplete products.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub quota: QuotaOptions,
    /// Receive from these trusted senders only, by their names (farcast key list).
    #[cfg_attr(feature = "clap", arg(
        help_heading = "Senders",
        long,
        value_name = "NAME,..",
        value_delimiter = ',',
        value_parser = names::trimmed,
        conflicts_with = "unsealed"
    ))]
    pub trust: Vec<String>,
    /// Choices of the seal.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub seal: SealOptions,
    /// Choices of sockets.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub socket: NetworkOptions,
}

/// Options of NACK-oriented protocols.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = NORM_AND_MDP))]
pub struct NackOptions {
    /// Destination of answers: the group, so that other receivers need not ask for the same, or the sender alone, if
    /// others would not hear the group [default: the group, if receivers may send to it].
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "WHOM"))]
    pub answers: Option<Answers>,
    /// Send nothing, as over a one-way link.
    #[cfg_attr(feature = "clap", arg(help_heading = NORM_MDP_AND_PGM, long))]
    pub silent: bool,
}

/// Destination of a receiver's answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Answers {
    /// The group.
    Group,
    /// The sender alone.
    Sender,
}

/// Options of MDP.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "MDP"))]
pub struct MdpOptions {
    /// Number of receivers. The more they are, the longer each waits before it asks [default: 1000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    pub group_size: Option<u32>,
}

/// Options of PGM.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "PGM"))]
pub struct PgmOptions {
    /// Longest round trip to the sender. A request that is not answered in this time is repeated [default: 500 ms].
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = parse::some_time))]
    pub rtt: Option<Span>,
    /// Receive IP protocol 113 without UDP. It needs IPv4 and the right to open raw sockets. The sender needs the same
    /// option.
    #[cfg_attr(feature = "clap", arg(long))]
    pub raw: bool,
    /// Ask for repair of a stream at this UDP port of the source, for OpenPGM's sources (`PGM_UDP_ENCAP_UCAST_PORT`)
    /// [default: the port that the stream comes from].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PORT", requires = "stream", value_parser = clap::value_parser!(u16).range(1..)))]
    pub unicast_port: Option<u16>,
}

/// Options of streams.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = NORM_AND_PGM))]
pub struct StreamOptions {
    /// Write a stream to standard output, until its end.
    #[cfg_attr(feature = "clap", arg(long))]
    pub stream: bool,
    /// Begin the stream with the next message, instead of the oldest one that the sender can still repair.
    #[cfg_attr(feature = "clap", arg(long, requires = "stream"))]
    pub from_now: bool,
    /// Continue with the next message if octets of the stream cannot be repaired. Without this option the reception
    /// ends.
    #[cfg_attr(feature = "clap", arg(long, requires = "stream"))]
    pub skip_gaps: bool,
}

/// Option of one-way reception.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "One-way"))]
pub struct OneWayOptions {
    /// Receive from farcast send --one-way, and send nothing. The same as --protocol one-way.
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "speaks"))]
    pub one_way: bool,
}

/// Limits of incomplete products.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Products that are not complete"))]
pub struct QuotaOptions {
    /// Most disk space of incomplete products; the oldest one makes room [default: 95 % of the free space].
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    pub quota: Option<Bytes>,
    /// Time to keep an incomplete product after its last data.
    #[cfg_attr(feature = "clap", arg(long, default_value = "14 d", value_name = "TIME"))]
    pub keep_partials: Span,
}

impl ReceiveJob {
    /// Returns a job that receives what is sent to `from` into the directory `into`, with every choice at its default.
    pub fn new(from: Endpoint, into: PathBuf) -> Self {
        Self {
            from,
            into,
            name: None,
            by: ProtocolName::default(),
            once: false,
            source: None,
            accept: Vec::new(),
            keep_existing: false,
            hidden: false,
            wait_for_room: Span::from_secs(600),
            no_sync: false,
            patience: Span::from_secs(120),
            simulate_loss: Probability::ZERO,
            discard: false,
            seed: None,
            nack: NackOptions::default(),
            mdp: MdpOptions::default(),
            pgm: PgmOptions::default(),
            stream: StreamOptions::default(),
            one_way: OneWayOptions::default(),
            quota: QuotaOptions::default(),
            trust: Vec::new(),
            seal: SealOptions::default(),
            socket: NetworkOptions::default(),
        }
    }

    /// Returns the protocol, however it was chosen.
    pub fn protocol_name(&self) -> ProtocolName {
        if self.one_way.one_way { ProtocolName::OneWay } else { self.by }
    }
}

impl Default for QuotaOptions {
    fn default() -> Self {
        Self { quota: None, keep_partials: Span::from_secs(14 * 24 * 3600) }
    }
}

impl QuotaOptions {
    /// Returns the limits as the store takes them.
    pub fn quota(&self) -> Quota {
        Quota {
            octets: self.quota.map(|Bytes(octets)| octets),
            age: std::time::Duration::from_nanos(self.keep_partials.as_nanos()),
            ..Quota::default()
        }
    }
}

impl StreamOptions {
    /// Checks that options for streams come with `stream`. A command line's parser does not check this where another
    /// option conflicts with it.
    pub(super) fn check(&self) -> Result<(), crate::Error> {
        if (self.from_now || self.skip_gaps) && !self.stream {
            return Err(crate::Error::usage("--from-now and --skip-gaps go with --stream"));
        }
        Ok(())
    }
}
