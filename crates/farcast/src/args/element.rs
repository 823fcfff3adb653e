//! The flags of `farcast element` and `farcast repair`.

use clap::Args;
use farcast_core::units::Bytes;

use super::OutputArgs;

/// Arguments of `farcast element`.
#[derive(Args, Debug)]
pub(crate) struct ElementArgs {
    /// Interfaces to connect, at least two.
    #[arg(long, required = true, value_name = "IFACE,IFACE[,...]", value_delimiter = ',', value_parser = farcast_transfer::names::trimmed)]
    pub(crate) interfaces: Vec<String>,
    /// Group to join at each interface, for switches and routers that forward only joined groups; may be given again.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Vec<String>,
    /// Size of the kernel's receive buffer; above the system's limit only with privileges.
    #[arg(help_heading = "Network", long, default_value = "16 MiB", value_name = "SIZE")]
    pub(crate) receive_buffer: Bytes,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `farcast repair`.
#[derive(Args, Debug)]
pub(crate) struct RepairArgs {
    /// Interface towards the source.
    #[arg(long, value_name = "IFACE")]
    pub(crate) upstream: String,
    /// Interface towards the receivers.
    #[arg(long, value_name = "IFACE")]
    pub(crate) downstream: String,
    /// Memory for passing data; the oldest data is discarded first.
    #[arg(long, default_value = "64 MiB", value_name = "SIZE")]
    pub(crate) cache: Bytes,
    /// Group to join at both interfaces, with its port if --udp is given; may be given again.
    #[arg(long, value_name = "GROUP[:PORT]")]
    pub(crate) group: Vec<String>,
    /// PGM over UDP: everything that is sent to the groups of --group is repeated downstream, from this host's address.
    #[arg(long, requires = "group")]
    pub(crate) udp: bool,
    /// Time to live of multicast with --udp.
    #[arg(help_heading = "Network", long, default_value_t = 1, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..=255))]
    pub(crate) ttl: u8,
    /// Size of the kernel's receive buffer; above the system's limit only with privileges.
    #[arg(help_heading = "Network", long, default_value = "16 MiB", value_name = "SIZE")]
    pub(crate) receive_buffer: Bytes,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
