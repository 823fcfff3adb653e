//! Addresses of a world's hosts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Address of receiver 0; receiver n has the address that is higher by n.
pub(crate) const FIRST_RECEIVER: u32 = 0x0A40_0000;

/// First address behind those of terminals, where the multicast addresses begin.
const BEHIND_TERMINALS: u32 = 0xE000_0000;

/// Maximum number of receivers and flows together.
pub(crate) const MOST_TERMINALS: u32 = BEHIND_TERMINALS - FIRST_RECEIVER;

/// Returns the hub's address, from which flows send.
pub const fn hub_address() -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))
}

/// Returns the address that receiver `n` answers from. The terminal of flow `n` has the address that lies `n` behind
/// those of all receivers. The first four million addresses lie in 10.64.0.0/10. A star with more terminals uses the
/// addresses behind it; nothing else in the star has addresses there.
pub fn receiver_address(n: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(FIRST_RECEIVER.wrapping_add(n))), 5402)
}

/// Sender or addressee of a message of the transfer. It is one number, so that packets stay small; receivers are fewer
/// than the numbers that stand for other parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Party(u32);

impl Party {
    /// The sender, at the hub.
    pub const HUB: Self = Self(u32::MAX);
    /// All receivers. A receiver's message to this party reaches the sender as well.
    pub const GROUP: Self = Self(u32::MAX - 1);

    /// All receivers that have the content key, where content has a key of its own.
    pub const APART: Self = Self(u32::MAX - 2);

    /// Returns the party of receiver `n`.
    pub const fn receiver(n: u32) -> Self {
        Self(n)
    }

    /// Returns the receiver (of `receivers`) that has `address`, if one has.
    pub(crate) fn at(address: IpAddr, receivers: u32) -> Option<Self> {
        let IpAddr::V4(address) = address else { return None };
        let number = address.to_bits().checked_sub(FIRST_RECEIVER).filter(|&n| n < receivers);
        number.map(Self::receiver)
    }

    /// Returns the number of the receiver, if the party is one.
    pub fn as_receiver(self) -> Option<u32> {
        (self.0 < Self::APART.0).then_some(self.0)
    }

    /// Returns `true` if the party is all receivers together.
    pub(crate) fn is_group(self) -> bool {
        self == Self::GROUP || self == Self::APART
    }
}
