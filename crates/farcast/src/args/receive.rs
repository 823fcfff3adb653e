//! The command line of `farcast receive`.

use std::path::PathBuf;

use clap::Args;
use farcast_core::{Probability, Span};

use super::{OutputArgs, PageArgs, SocketArgs};
use crate::host::{Accepted, Endpoint, Host};
use crate::names;
use crate::partials::QuotaArgs;
use crate::protocols::Speaks;
use crate::receive::{MdpArgs, NackArgs, OneWayArgs, PgmArgs, StreamArgs};
use crate::sealing::SealArgs;

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the command line")]
pub(crate) struct ReceiveArgs {
    /// The group (or our own address) to listen on, by address or host name; the port is 5402 if none is given.
    #[arg(long, value_name = "GROUP[:PORT]")]
    pub(crate) from: Endpoint,
    /// Where files go; made if it is not there.
    #[arg(
        long,
        value_name = "DIR",
        required = false,
        required_unless_present = "stream",
        conflicts_with = "stream",
        default_value_if("stream", "true", "-")
    )]
    pub(crate) into: PathBuf,
    /// This receiver's name; needed where several share an address [default: that of its key, else its address].
    #[arg(long, value_parser = names::trimmed)]
    pub(crate) name: Option<String>,
    /// By which protocol; the sender must use the same.
    #[arg(long = "protocol", value_enum, default_value_t, value_name = "PROTOCOL")]
    pub(crate) speaks: Speaks,
    /// End after the first transmission.
    #[arg(long)]
    pub(crate) once: bool,
    /// Hear this sender only, by address or host name (source-specific multicast; groups in 232.0.0.0/8 and ff3x::/32
    /// need it).
    #[arg(help_heading = "Senders", long, value_name = "HOST")]
    pub(crate) source: Option<Host>,
    /// Hear these senders only, by address, host name or prefix ("10.1.2.0/24"); what others send is dropped unread
    /// [default: all].
    #[arg(help_heading = "Senders", long, value_name = "HOST,..", value_delimiter = ',')]
    pub(crate) accept: Vec<Accepted>,
    /// Keep existing files: a product that would replace one with other content is refused.
    #[arg(help_heading = "Files", long)]
    pub(crate) keep_existing: bool,
    /// Receive names with a leading dot too, such as .ssh or .profile; otherwise a product that has one is refused.
    #[arg(help_heading = "Files", long)]
    pub(crate) hidden: bool,
    /// When the disk is full, wait for room this long; what could not be stored is asked for again.
    #[arg(help_heading = "Files", long, default_value = "10 min", value_name = "TIME")]
    pub(crate) wait_for_room: Span,
    /// Do not wait until files are safe from a power loss.
    #[arg(help_heading = "Files", long)]
    pub(crate) no_sync: bool,
    /// Run this shell command when a product is complete; FARCAST_DIR, FARCAST_PRODUCT, FARCAST_SENDER tell about it.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_complete: Option<String>,
    /// Without any sign of the sender for this long, stop waiting for it; what came is kept for its return.
    #[arg(help_heading = "Senders", long, default_value = "120 s", value_name = "TIME")]
    pub(crate) patience: Span,
    /// Lose this part of what arrives, to try things ("5 %").
    #[arg(help_heading = "Trials", long, default_value = "0 %", value_name = "PART")]
    pub(crate) simulate_loss: Probability,
    /// Drop what arrives instead of storing it (for benchmarks); the end is never a success.
    #[arg(long, hide = true)]
    pub(crate) discard: bool,
    /// The seed of simulated losses and of random answers [default: from the name].
    #[arg(help_heading = "Trials", long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) nack: NackArgs,
    #[command(flatten)]
    pub(crate) mdp: MdpArgs,
    #[command(flatten)]
    pub(crate) pgm: PgmArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    #[command(flatten)]
    pub(crate) one_way: OneWayArgs,
    #[command(flatten)]
    pub(crate) quota: QuotaArgs,
    /// Of those whom this host trusts, hear these senders only, by their names (farcast key list).
    #[arg(
        help_heading = "Senders",
        long,
        value_name = "NAME,..",
        value_delimiter = ',',
        value_parser = names::trimmed,
        conflicts_with = "unsealed"
    )]
    pub(crate) trust: Vec<String>,
    #[command(flatten)]
    pub(crate) seal: SealArgs,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

impl ReceiveArgs {
    /// By which protocol, however that was said.
    pub(crate) fn speaks(&self) -> Speaks {
        if self.one_way.one_way { Speaks::OneWay } else { self.speaks }
    }
}
