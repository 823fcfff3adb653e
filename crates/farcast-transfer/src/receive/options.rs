//! Choices of a receiver: what is received from where, by which protocol, and where it goes.
#![expect(clippy::doc_markdown, reason = "doc comments are what --help prints")]

use std::path::PathBuf;

use farcast_core::units::Bytes;
use farcast_core::{Probability, Span};
use farcast_files::Quota;

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
    /// The group (or our own address) to listen on, by address or host name; the port is 5402 if none is given.
    #[cfg_attr(feature = "clap", arg(long, value_name = "GROUP[:PORT]"))]
    pub from: Endpoint,
    /// Where files go; made if it is not there.
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
    /// This receiver's name; needed where several share an address [default: that of its key, else its address].
    #[cfg_attr(feature = "clap", arg(long, value_parser = names::trimmed))]
    pub name: Option<String>,
    /// By which protocol; the sender must use the same.
    #[cfg_attr(
        feature = "clap",
        arg(id = "speaks", long = "protocol", value_enum, default_value_t, value_name = "PROTOCOL")
    )]
    pub by: ProtocolName,
    /// End after the first transmission.
    #[cfg_attr(feature = "clap", arg(long))]
    pub once: bool,
    /// Hear this sender only, by address or host name (source-specific multicast; groups in 232.0.0.0/8 and ff3x::/32
    /// need it).
    #[cfg_attr(feature = "clap", arg(help_heading = "Senders", long, value_name = "HOST"))]
    pub source: Option<Host>,
    /// Hear these senders only, by address, host name or prefix ("10.1.2.0/24"); what others send is dropped unread
    /// [default: all].
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
    /// When the disk is full, wait for room this long; what could not be stored is asked for again.
    #[cfg_attr(
        feature = "clap",
        arg(help_heading = "Files", long, default_value = "10 min", value_name = "TIME")
    )]
    pub wait_for_room: Span,
    /// Do not wait until files are safe from a power loss.
    #[cfg_attr(feature = "clap", arg(help_heading = "Files", long))]
    pub no_sync: bool,
    /// Without any sign of the sender for this long, stop waiting for it; what came is kept for its return.
    #[cfg_attr(
        feature = "clap",
        arg(help_heading = "Senders", long, default_value = "120 s", value_name = "TIME")
    )]
    pub patience: Span,
    /// Lose this part of what arrives, to try things ("5 %").
    #[cfg_attr(
        feature = "clap",
        arg(help_heading = "Trials", long, default_value = "0 %", value_name = "PART")
    )]
    pub simulate_loss: Probability,
    /// Drop what arrives instead of storing it (for benchmarks); the end is never a success.
    #[cfg_attr(feature = "clap", arg(long, hide = true))]
    pub discard: bool,
    /// The seed of simulated losses and of random answers [default: from the name].
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
    /// Of those whom this host trusts, hear these senders only, by their names (farcast key list).
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

/// How they behave.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = NORM_AND_MDP))]
pub struct NackOptions {
    /// Whom to answer: the group, so that who hears it need not ask for the same, or the sender alone, where others
    /// would not hear it [default: the group, if it is one that anybody may send to].
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "WHOM"))]
    pub answers: Option<Answers>,
    /// Never say anything: receive what comes, as over a one-way link.
    #[cfg_attr(feature = "clap", arg(help_heading = NORM_MDP_AND_PGM, long))]
    pub silent: bool,
}

/// Whom a receiver answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Answers {
    /// The group.
    Group,
    /// The sender alone.
    Sender,
}

/// How MDP behaves.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "MDP"))]
pub struct MdpOptions {
    /// How many receivers there are, which MDP does not say: each waits the longer before it asks, the more they are
    /// [default: 1000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    pub group_size: Option<u32>,
}

/// How PGM behaves.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "PGM"))]
pub struct PgmOptions {
    /// The round trip to the sender, at most: how long to wait until a request that was not answered is made again
    /// [default: 500 ms].
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = parse::some_time))]
    pub rtt: Option<Span>,
    /// Receive IP protocol 113, without UDP, which takes IPv4 and the right to open raw sockets; the sender does the same.
    #[cfg_attr(feature = "clap", arg(long))]
    pub raw: bool,
    /// With --stream, ask for repair at this UDP port of the source, as OpenPGM's sources want it
    /// (`PGM_UDP_ENCAP_UCAST_PORT`) [default: where the stream comes from].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PORT", requires = "stream", value_parser = clap::value_parser!(u16).range(1..)))]
    pub unicast_port: Option<u16>,
}

/// Streams.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = NORM_AND_PGM))]
pub struct StreamOptions {
    /// Write the stream that is sent to standard output, until its end.
    #[cfg_attr(feature = "clap", arg(long))]
    pub stream: bool,
    /// With --stream, begin with the next message instead of what the sender can still repair.
    #[cfg_attr(feature = "clap", arg(long, requires = "stream"))]
    pub from_now: bool,
    /// With --stream, go on with the next message where octets cannot be had; otherwise that is the end.
    #[cfg_attr(feature = "clap", arg(long, requires = "stream"))]
    pub skip_gaps: bool,
}

/// What comes one way.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "One-way"))]
pub struct OneWayOptions {
    /// What comes is sent one way, by farcast send --one-way: nothing is ever said. The same as --protocol one-way.
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "speaks"))]
    pub one_way: bool,
}

/// How much is kept of what is not complete.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Products that are not complete"))]
pub struct QuotaOptions {
    /// What all of them may take on disk; the oldest makes room [default: 95 % of what is free].
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    pub quota: Option<Bytes>,
    /// For how long one is kept after something of it last came.
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
