//! The flags of `farcast element` and `farcast repair`.

use clap::Args;
use farcast_core::units::Bytes;

use super::OutputArgs;

/// Where a network element stands.
#[derive(Args, Debug)]
pub(crate) struct ElementArgs {
    /// The interfaces that it connects, two at least.
    #[arg(long, required = true, value_name = "IFACE,IFACE[,...]", value_delimiter = ',', value_parser = farcast_transfer::names::trimmed)]
    pub(crate) interfaces: Vec<String>,
    /// Groups to join at each interface, for switches and routers that send only what is asked for; may be given again.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Vec<String>,
    /// Kernel buffer for receiving; above the system's limit only with privileges.
    #[arg(help_heading = "Network", long, default_value = "16 MiB", value_name = "SIZE")]
    pub(crate) receive_buffer: Bytes,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Where a repairer stands, and what it keeps.
#[derive(Args, Debug)]
pub(crate) struct RepairArgs {
    /// The interface towards the source.
    #[arg(long, value_name = "IFACE")]
    pub(crate) upstream: String,
    /// The interface towards the receivers.
    #[arg(long, value_name = "IFACE")]
    pub(crate) downstream: String,
    /// How much of what passes it keeps in memory; the oldest goes first.
    #[arg(long, default_value = "64 MiB", value_name = "SIZE")]
    pub(crate) cache: Bytes,
    /// A group to join at both interfaces, with --udp and its port; may be given again.
    #[arg(long, value_name = "GROUP[:PORT]")]
    pub(crate) group: Vec<String>,
    /// PGM over UDP: of the groups named by --group all is said again downstream, under this host's address.
    #[arg(long, requires = "group")]
    pub(crate) udp: bool,
    /// Time to live of multicast with --udp.
    #[arg(help_heading = "Network", long, default_value_t = 1, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..=255))]
    pub(crate) ttl: u8,
    /// Kernel buffer for receiving; above the system's limit only with privileges.
    #[arg(help_heading = "Network", long, default_value = "16 MiB", value_name = "SIZE")]
    pub(crate) receive_buffer: Bytes,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
