//! What a session is for, and how its content is sealed: both follow from its name, as all its keys do.

use core::net::{IpAddr, SocketAddr};

use sha2::{Digest as _, Sha256};

/// What a session is for: a protocol, and the group that it is sent to. A receiver takes part in no other, so that keys
/// of one are none for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Scope(pub(crate) [u8; 8]);

impl Scope {
    /// That of `protocol`, by whatever name both ends call it, to a multicast group. What goes to one host is for no
    /// group: how its address looks at the other end is up to the way.
    pub fn of(protocol: &str, to: SocketAddr) -> Self {
        let digest = Sha256::new().chain_update(b"farcast seal 1 scope").chain_update(protocol);
        let port = to.port().to_be_bytes();
        let digest = match to.ip() {
            IpAddr::V4(group) if group.is_multicast() => {
                digest.chain_update([0]).chain_update(group.octets()).chain_update(port)
            }
            IpAddr::V6(group) if group.is_multicast() => {
                digest.chain_update([0]).chain_update(group.octets()).chain_update(port)
            }
            _ => digest,
        };
        let digest = digest.finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        Self(first)
    }
}

/// How content is sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Contents {
    /// Under the key that all have.
    Together = 0,
    /// Under a key that a receiver gets only in answer to its answer, and that nobody has after the session: where
    /// receivers answer before content leaves.
    Apart = 1,
    /// As [`Together`](Self::Together), and signed: no member can make any up, which costs 64 octets and a signature for
    /// each datagram. Where what is spoilt is not noticed, or cannot be asked for again, nothing else will do.
    Signed = 2,
}

impl Contents {
    pub(crate) fn of(octet: u8) -> Option<Self> {
        [Self::Together, Self::Apart, Self::Signed].into_iter().find(|one| *one as u8 == octet)
    }
}
