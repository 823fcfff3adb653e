//! Meter of the octets in and out of one host.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farcast_core::engine::Arrival;
use farcast_mftp::Body;

use crate::parcel::Parcel;

/// Octets of one host, as datagrams' UDP payload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    /// Octets that came from honest hosts.
    pub(crate) honest_in: u64,
    /// Octets that came from attackers.
    pub(crate) forged_in: u64,
    /// Octets of DATA that left.
    pub(crate) data_out: u64,
    /// Octets of all other messages that left.
    pub(crate) control_out: u64,
    /// Octets that came from each claimed address, and octets that left for it.
    pub(crate) peers: BTreeMap<SocketAddr, (u64, u64)>,
}

impl Meter {
    pub(crate) fn hear(&mut self, from: &Arrival, parcel: &Parcel) {
        let octets = parcel.octets();
        if parcel.forged.is_some() {
            self.forged_in += octets;
        } else {
            self.honest_in += octets;
        }
        self.peers.entry(from.source).or_default().0 += octets;
    }

    pub(crate) fn send(&mut self, destination: SocketAddr, parcel: &Parcel) {
        let octets = parcel.octets();
        if matches!(parcel.message.body, Body::Data(_)) {
            self.data_out += octets;
        } else {
            self.control_out += octets;
        }
        self.peers.entry(destination).or_default().1 += octets;
    }

    pub(crate) fn out(&self) -> u64 {
        self.data_out + self.control_out
    }
}
