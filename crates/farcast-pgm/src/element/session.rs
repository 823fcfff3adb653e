//! A session as an element knows it (RFC 3208 §7.1).

use core::net::{IpAddr, SocketAddr};

use farcast_core::Time;

use super::parity::Groups;
use super::polls::Polled;
use super::state::{States, Way};
use crate::message::{Sqn, Tsi};
use crate::receiver::Lacking;
use crate::sqn::Place;

/// Somebody to whom NAKs go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Neighbour {
    pub(crate) port: u32,
    pub(crate) address: SocketAddr,
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) tsi: Tsi,
    pub(crate) port: u16,
    /// The source's address, from which what goes down comes.
    pub(crate) source: SocketAddr,
    pub(crate) group: SocketAddr,
    /// The last SPM.
    pub(crate) spm: Sqn,
    pub(crate) upstream: Neighbour,
    /// A repairer further up that has told of itself.
    pub(crate) redirected: Option<SocketAddr>,
    /// A repairer beside the tree.
    pub(crate) beside: Option<Neighbour>,
    /// The oldest number that can be repaired, and one past the newest that it was told of.
    pub(crate) trail: Place,
    pub(crate) lead: Place,
    pub(super) states: States,
    pub(super) groups: Groups,
    /// Of a repairer: what it lacks itself.
    pub(crate) lacking: Option<Lacking>,
    /// Whether anything stands behind its SPMs: content, or what confirms, acknowledges or repairs it.
    pub(crate) used: bool,
    /// When something was heard of it last.
    pub(crate) heard: Time,
    /// When an SPM was last asked for.
    pub(super) asked_spm: Option<Time>,
    /// When repairers are sought next, and how often that was done.
    pub(super) next_poll: Time,
    pub(super) polls: u32,
    pub(super) polled: Option<Polled>,
    /// When its repairer told of itself last.
    pub(crate) told: Option<Time>,
    /// TPDUs that its repairer has kept, and sent.
    pub(crate) kept: u64,
    pub(crate) served: u64,
}

impl Session {
    pub(crate) fn source_ip(&self) -> IpAddr {
        self.source.ip()
    }

    /// Where NAKs go that are sent in `way`.
    pub(super) fn neighbour(&self, way: Way) -> Neighbour {
        match way {
            Way::Neighbour => self.upstream,
            Way::Redirected => {
                Neighbour { address: self.redirected.unwrap_or(self.upstream.address), ..self.upstream }
            }
            Way::Beside => self.beside.unwrap_or(self.upstream),
        }
    }

    /// How a NAK that came by `port` is forwarded (§9.5.3): a repairer further up is preferred to one beside the tree,
    /// and the latter is not asked for what is lost on its own port.
    pub(super) fn way(&self, port: u32) -> Way {
        match (self.redirected, self.beside) {
            (Some(_), _) => Way::Redirected,
            (None, Some(beside)) if beside.port != port => Way::Beside,
            _ => Way::Neighbour,
        }
    }
}
