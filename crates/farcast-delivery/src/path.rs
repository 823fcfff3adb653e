//! Properties of the path to receivers.

/// Properties of the path to receivers, as far as the sender knows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathLimits {
    /// Octets of IP and UDP headers: 28 or 48.
    pub headers: u16,
    /// Octets of IP packets that pass without fragmentation; `None` for Ethernet's 1500.
    pub mtu: Option<u32>,
    /// Octets that the link sends as one unit ([`RatePace`](crate::RatePace)).
    pub granule: u16,
}
