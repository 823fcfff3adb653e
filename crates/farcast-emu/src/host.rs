//! A host behind a link: a network namespace, and in it the device that leads to the link.

use std::net::{IpAddr, Ipv4Addr};

use crate::EmuError;
use crate::namespace::Namespace;
use crate::network::Network;
use crate::route::{HUB, terminal_address};
use crate::tun::{Tun, TunConfig};

/// Name of every host's device.
pub const DEVICE: &str = "farcast0";

/// Position of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostPosition {
    /// The hub.
    Hub,
    /// A terminal.
    Terminal(u32),
}

impl HostPosition {
    /// Returns the address of the host at this place.
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Self::Hub => HUB,
            Self::Terminal(number) => terminal_address(number),
        }
    }
}

/// A host. All packets of its programs leave by [`DEVICE`].
#[derive(Debug)]
pub struct Host {
    place: HostPosition,
    namespace: Namespace,
}

impl Host {
    /// Creates a host whose packets have at most `mtu` octets. The caller reads and writes its device.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn create(place: HostPosition, mtu: u16) -> Result<(Self, Tun), EmuError> {
        let namespace = Namespace::create()?;
        // The link carries packets of programs only: IPv6 has no neighbours and routers there. A kernel may have no
        // IPv6.
        let _ = namespace.set_parameter("net.ipv6.conf.all.disable_ipv6", "1");
        if place == HostPosition::Hub {
            // Terminals reach each other by way of the hub, whose redirects would be useless.
            namespace.set_parameter("net.ipv4.conf.all.send_redirects", "0")?;
            namespace.set_parameter("net.ipv4.conf.default.send_redirects", "0")?;
            namespace.set_parameter("net.ipv4.ip_forward", "1")?;
        }
        let tun = namespace.run(|| configure(place, mtu))??;
        Ok((Self { place, namespace }, tun))
    }

    /// Returns the place of the host.
    pub fn place(&self) -> HostPosition {
        self.place
    }

    /// Returns the address of the host.
    pub fn address(&self) -> Ipv4Addr {
        self.place.address()
    }

    /// Returns the number of packets that the kernel dropped because they were not read from the device in time.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn dropped_by_device(&self) -> Result<u64, EmuError> {
        let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
        let text = self.namespace.run(read)?.map_err(EmuError::when("read the counters of a device"))?;
        // The name is followed by eight columns of receiving. The fourth column of sending counts drops (proc_net(5)).
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'));
        Ok(line.and_then(|line| line.split_whitespace().nth(11)?.parse().ok()).unwrap_or(0))
    }

    /// Returns the namespace in which the host's programs run.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }
}

/// Creates and configures the device in the calling thread's namespace.
fn configure(place: HostPosition, mtu: u16) -> Result<Tun, EmuError> {
    let tun = Tun::open(&TunConfig { mtu, ..TunConfig::new(DEVICE) })?;
    let mut network = Network::open()?;
    network.set_up("lo")?;
    network.add_address(DEVICE, IpAddr::V4(place.address()), 32)?;
    network.set_up(DEVICE)?;
    network.add_route(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0, DEVICE)?;
    Ok(tun)
}
