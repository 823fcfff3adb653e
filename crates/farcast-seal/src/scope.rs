//! Purpose of a session, and how its content is sealed. The session's identifier, and so all its keys, depend on both.

use core::net::{IpAddr, SocketAddr};

use sha2::{Digest as _, Sha256};

/// Purpose of a session: a protocol, and the destination group. A receiver takes part in sessions of its own scopes
/// only, so that keys of one scope are invalid in another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Scope(pub(crate) [u8; 8]);

impl Scope {
    /// Creates the scope of `protocol`, a name on which both ends agree, and a multicast group. A session to a single
    /// host is for no group, because the host's address may look different at the other end.
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

/// Sealing of content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Contents {
    /// Content is sealed with the key that all receivers have.
    Together = 0,
    /// Content is sealed with a separate key, which a receiver gets only in reply to its answer, and which nobody keeps
    /// after the session. Suits protocols whose receivers answer before content leaves.
    Apart = 1,
    /// Content is sealed as with [`Together`](Self::Together), and signed, so that no member can forge any. Each
    /// datagram costs 64 octets and a signature. Needed where forged content is not detected, or cannot be requested
    /// again.
    Signed = 2,
}

impl Contents {
    pub(crate) fn of(octet: u8) -> Option<Self> {
        [Self::Together, Self::Apart, Self::Signed].into_iter().find(|one| *one as u8 == octet)
    }
}
