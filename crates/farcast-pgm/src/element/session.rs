//! State that an element keeps of a session (RFC 3208 §7.1).

use core::net::{IpAddr, SocketAddr};

use farcast_core::Time;

use super::parity::Groups;
use super::polls::Polled;
use super::state::{States, Way};
use crate::message::{Sqn, Tsi};
use crate::receiver::Lacking;
use crate::sqn::Place;

/// A node to which NAKs go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Neighbour {
    pub(crate) port: u32,
    pub(crate) address: SocketAddr,
}

/// Origin of a request from below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestOrigin {
    /// Index of the session.
    pub(crate) at: usize,
    /// Port that the request came from; 0 for a repairer's own request.
    pub(crate) port: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) tsi: Tsi,
    pub(crate) port: u16,
    /// Address of the source, from which messages to those below are sent.
    pub(crate) source: SocketAddr,
    pub(crate) group: SocketAddr,
    /// Sequence number of the latest SPM.
    pub(crate) spm: Sqn,
    pub(crate) upstream: Neighbour,
    /// A repairer further up that has announced itself.
    pub(crate) redirected: Option<SocketAddr>,
    /// A repairer beside the tree.
    pub(crate) beside: Option<Neighbour>,
    /// Place of the oldest number that can be repaired, and the place behind the newest known number.
    pub(crate) trail: Place,
    pub(crate) lead: Place,
    pub(super) states: States,
    pub(super) groups: Groups,
    /// Missing numbers of a repairer that receives the session itself.
    pub(crate) lacking: Option<Lacking>,
    /// The session has shown content, or a message that confirms, acknowledges or repairs it; SPMs alone do not count.
    pub(crate) used: bool,
    /// Time of the latest message from upstream.
    pub(crate) heard: Time,
    /// Time of the latest request for an SPM.
    pub(super) asked_spm: Option<Time>,
    /// Time of the next search for repairers, and the number of searches so far.
    pub(super) next_poll: Time,
    pub(super) polls: u32,
    pub(super) polled: Option<Polled>,
    /// Time at which the repairer last announced itself to those below.
    pub(crate) told: Option<Time>,
    /// TPDUs that the repairer has stored, and those that it has sent.
    pub(crate) kept: u64,
    pub(crate) served: u64,
}

impl Session {
    pub(crate) fn source_ip(&self) -> IpAddr {
        self.source.ip()
    }

    /// Returns the neighbour to which NAKs in `way` go.
    pub(super) fn neighbour(&self, way: Way) -> Neighbour {
        match way {
            Way::Neighbour => self.upstream,
            Way::Redirected => {
                Neighbour { address: self.redirected.unwrap_or(self.upstream.address), ..self.upstream }
            }
            Way::Beside => self.beside.unwrap_or(self.upstream),
        }
    }

    /// Returns the destination of a NAK that came by `port` (§9.5.3). A repairer further up is preferred to one beside
    /// the tree. The latter is not asked for losses on its own port.
    pub(super) fn way(&self, port: u32) -> Way {
        match (self.redirected, self.beside) {
            (Some(_), _) => Way::Redirected,
            (None, Some(beside)) if beside.port != port => Way::Beside,
            _ => Way::Neighbour,
        }
    }
}
