//! Seal around a scenario's transfer, for any protocol.

use farcast_core::BitRate;
use farcast_scenario::receivers::Group as Receivers;
use farcast_seal::{CONTENT_OVERHEAD, CONTROL_OVERHEAD, Suite, keys_together};

use crate::star::SealConfig;

/// Maximum octets of an IP packet on Ethernet.
pub(super) const MTU: u32 = 1500;

/// Seal of a protocol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// `true` if each datagram with content is signed, as all other datagrams for the group are.
    pub(super) signs_content: bool,
    /// `true` if content has a key of its own, for protocols whose receivers answer before content leaves.
    pub(super) apart: bool,
}

impl Manner {
    /// Returns the octets that the seal adds to a datagram with content.
    pub(super) const fn content(self) -> u16 {
        (if self.signs_content { CONTROL_OVERHEAD } else { CONTENT_OVERHEAD }) as u16
    }
}

/// Size of a sealed transfer: its listed receivers, and its KEYS datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// Receivers on the sender's list. The simulated receivers are the first of them.
    pub listed: u32,
    /// Maximum octets of a KEYS datagram, without headers of UDP and IP.
    pub datagram: usize,
}

impl Sealed {
    /// Seals for all receivers of `groups`. KEYS datagrams have at most `datagram` octets, and at most what a packet
    /// has room for besides `headers` octets.
    pub(super) fn to(groups: &[Receivers], datagram: Option<usize>, headers: u16) -> Self {
        let listed = groups.iter().map(|group| group.receivers).sum();
        let room = (MTU as usize).saturating_sub(headers.into());
        Self { listed, datagram: datagram.map_or(room, |datagram| datagram.min(room)) }
    }

    /// Returns the configuration of the seal. Keys leave at `rate`; where receivers set the rate, there is none.
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
