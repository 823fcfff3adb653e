//! The seal around a scenario's transfer, whatever protocol it goes by.

use farcast_core::BitRate;
use farcast_scenario::receivers::Group as Receivers;
use farcast_seal::{CONTENT_OVERHEAD, CONTROL_OVERHEAD, Suite, keys_together};

use crate::star::SealConfig;

/// Octets of Ethernet's packets.
pub(super) const MTU: u32 = 1500;

/// How a protocol is sealed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Whether each datagram with content is signed, as all others for the group are.
    pub(super) signs_content: bool,
    /// Whether content has a key of its own: where receivers answer before it leaves.
    pub(super) apart: bool,
}

impl Manner {
    /// Octets that a datagram with content grows by.
    pub(super) const fn content(self) -> u16 {
        (if self.signs_content { CONTROL_OVERHEAD } else { CONTENT_OVERHEAD }) as u16
    }
}

/// For whom is sealed, and in how large datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// Receivers on the sender's list, of whom those that are simulated are the first.
    pub listed: u32,
    /// Octets that a KEYS datagram may have, without headers of UDP and IP.
    pub datagram: usize,
}

impl Sealed {
    /// For all of `groups`, in datagrams of so many octets, if that is said, and else in what packets have room for
    /// besides so many octets of `headers`.
    pub(super) fn to(groups: &[Receivers], datagram: Option<usize>, headers: u16) -> Self {
        let listed = groups.iter().map(|group| group.receivers).sum();
        let room = (MTU as usize).saturating_sub(headers.into());
        Self { listed, datagram: datagram.map_or(room, |datagram| datagram.min(room)) }
    }

    /// The seal around a transfer that is sealed in this `manner`, whose keys leave at `rate`; where receivers set the
    /// rate, there is none.
    pub(super) fn config(self, manner: Manner, rate: Option<BitRate>) -> SealConfig {
        SealConfig {
            listed: self.listed,
            together: keys_together(Suite::X25519, self.datagram) as u32,
            rate,
            content: manner.content(),
            apart: manner.apart,
        }
    }
}
