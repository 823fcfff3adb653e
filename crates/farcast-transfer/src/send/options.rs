//! Choices of a sender: what is sent where, by which protocol, and how it behaves.

use std::path::PathBuf;

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_delivery::settings::SendRate;

#[cfg(feature = "clap")]
use crate::headings::{NORM_AND_MDP, NORM_AND_PGM};
use crate::host::Endpoint;
use crate::names::list::{self, Origins};
use crate::options::{NetworkOptions, SealOptions};
use crate::protocol::ProtocolName;
use crate::send::settings::ProtocolOptions;
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
    pub rate: Option<SendRate>,
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
    /// Choices of NORM and MDP.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub nack: NackOptions,
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
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Receivers"))]
pub struct GroupOptions {
    /// Receivers, by name or address, or @FILE with one in each line; no other is served [default: every receiver that
    /// registers]. In a sealed transfer no other gets the keys [default: all trusted receivers].
    #[cfg_attr(feature = "clap", arg(long, value_name = "A,B,..", value_delimiter = ',', value_parser = names::trimmed))]
    pub receivers: Vec<String>,
    /// Lines of the files that name receivers, for errors.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub origins: Origins,
    /// Serve at most this many receivers that are not listed.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, default_value_t = 1024, value_name = "N", conflicts_with = "receivers", value_parser = clap::value_parser!(u32).range(1..)))]
    pub limit: u32,
    /// Serve every listener without registration: receivers are unknown and do not confirm.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long, conflicts_with_all = ["limit", "wait-for"]))]
    pub unlimited: bool,
    /// Begin when Enter is pressed.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long))]
    pub start_on_enter: bool,
    /// Wait until the group is free if another sender uses it, without limit or for this long at most.
    ///
    /// Without this option, MFTP gives up if another sender uses the group, and all protocols do if that sender is on this
    /// host. With it, other protocols than MFTP listen for two seconds before they begin.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = parse::WITHOUT_END, value_parser = parse::wait))]
    pub wait: Option<Span>,
    /// Accept answers of receivers without proof of origin, as MFTP's draft does. Needed by receivers that are not
    /// farcast, or that unicast from this host does not reach.
    #[cfg_attr(feature = "clap", arg(help_heading = "MFTP", long))]
    pub draft: bool,
}

/// Options of NORM and MDP.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = NORM_AND_MDP))]
pub struct NackOptions {
    /// Node id of this sender, 1 to 4294967294 [default: from its address].
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID", value_parser = clap::value_parser!(u32).range(1..=0xFFFF_FFFE)))]
    pub node: Option<u32>,
}

/// Options of MDP.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "MDP"))]
pub struct MdpOptions {
    /// Describe a file by its name alone. Other implementations may take farcast's description for a part of the name.
    /// Files are then not verified, and an interrupted transfer starts anew.
    #[cfg_attr(feature = "clap", arg(long))]
    pub names_alone: bool,
}

/// Options of PGM.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "PGM"))]
pub struct PgmOptions {
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

impl GroupOptions {
    /// Replaces each `@FILE` among the receivers by the receivers that the file names.
    ///
    /// # Errors
    /// A file cannot be read, a line is no receiver, or a receiver is named twice.
    pub fn read_files(&mut self) -> Result<(), crate::Error> {
        self.origins = list::read(&mut self.receivers)?;
        Ok(())
    }
}

impl Default for GroupOptions {
    fn default() -> Self {
        Self {
            receivers: Vec::new(),
            origins: Origins::default(),
            limit: 1024,
            unlimited: false,
            start_on_enter: false,
            wait: None,
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
