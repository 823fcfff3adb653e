//! Messages of a receiver about a path that carries shorter datagrams than its first link.

use std::net::IpAddr;

use serde_json::{Value, json};

/// Most octets of a datagram that do not belong to its segment: the protocol's headers and a seal.
const AROUND: usize = 48;

/// Sender whose long datagrams do not arrive.
pub(super) struct Narrow {
    /// Address of the sender.
    pub(super) source: IpAddr,
    /// Size in octets of the datagrams that do not arrive.
    pub(super) datagram: usize,
    /// Size in octets of datagrams that pass everywhere.
    pub(super) passes: usize,
    /// Set if the sender is told that its datagrams are too long.
    pub(super) told: bool,
}

impl Narrow {
    /// Returns the message for people, with the options that the sender may set.
    pub(super) fn sentence(&self) -> String {
        let Self { source, datagram, .. } = self;
        let help =
            if self.told { "it is told to send shorter ones" } else { "it must send shorter segments" };
        format!(
            "short datagrams of {source} arrive, and none of {datagram} octets does: the way carries less; {help} (segments \
             of {} octets pass everywhere: --symbol-size one way, --dtu-size by MFTP, --segment-size by others)",
            self.fits()
        )
    }

    /// Returns the message for programs.
    pub(super) fn fields(&self) -> Value {
        json!({
            "source": self.source.to_string(),
            "datagram_bytes": self.datagram,
            "fits_bytes": self.fits(),
            "told": self.told,
        })
    }

    fn fits(&self) -> usize {
        self.passes.saturating_sub(AROUND)
    }
}
