//! Choices that senders and receivers share.

use std::path::PathBuf;

use farcast_core::units::Bytes;
use farcast_net::SocketOptions;

/// Choices of the seal.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Seal"))]
pub struct SealOptions {
    /// Send and receive in the open, although this host has a key (farcast key). Every host that hears the group can
    /// then read the files, and no origin is proved.
    #[cfg_attr(feature = "clap", arg(long))]
    pub unsealed: bool,
    /// Seal with the key in this file, instead of the one of farcast key new.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", conflicts_with = "unsealed"))]
    pub key: Option<PathBuf>,
}

/// Options of sockets.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Network"))]
pub struct NetworkOptions {
    /// The interface for multicast, by name or address [default: the routing table's choice].
    #[cfg_attr(feature = "clap", arg(long, value_name = "IFACE"))]
    pub interface: Option<String>,
    /// UDP port of this host for answers, for firewalls. A sender sends from this port and receives answers at it. A
    /// receiver of a group answers from it [default: any free port].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..)))]
    pub answer_port: Option<u16>,
    /// Time to live (hop limit) of multicast; 1 stays on the local network.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 1, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(0..=255)))]
    pub ttl: u8,
    /// Differentiated services code point (DSCP) of sent packets.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 0, value_name = "0..63", value_parser = clap::value_parser!(u8).range(0..=63)))]
    pub dscp: u8,
    /// Size of the kernel's receive buffer; above the system's limit only with privileges.
    #[cfg_attr(feature = "clap", arg(long, default_value = "16 MiB", value_name = "SIZE"))]
    pub receive_buffer: Bytes,
    /// Send and receive datagrams one by one, without segmentation offload.
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_offload: bool,
}

impl Default for NetworkOptions {
    fn default() -> Self {
        Self {
            interface: None,
            answer_port: None,
            ttl: 1,
            dscp: 0,
            receive_buffer: Bytes(16 << 20),
            no_offload: false,
        }
    }
}

impl NetworkOptions {
    /// Returns the choices as the network driver takes them.
    pub fn socket(&self) -> SocketOptions {
        SocketOptions {
            interface: self.interface.clone(),
            port: self.answer_port.unwrap_or(0),
            ttl: u32::from(self.ttl),
            dscp: self.dscp,
            receive_buffer: usize::try_from(self.receive_buffer.0).unwrap_or(usize::MAX),
            offload: !self.no_offload,
            ..SocketOptions::default()
        }
    }
}
