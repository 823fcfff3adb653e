//! Choices that users of several protocols make, and properties of the path.

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

/// Number of parity symbols of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parity<N = u32> {
    /// A number that suits the block, the receivers and their losses.
    Auto,
    /// A fixed number; 0 for none.
    Symbols(N),
}
