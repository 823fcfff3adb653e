//! A way that carries less than its first link, as a receiver sees it, in words.

use std::net::IpAddr;

use serde_json::{Value, json};

/// Octets of a datagram, at most, that are not of its segment: the headers of a protocol, and a seal.
const AROUND: usize = 48;

/// A sender whose long datagrams do not come.
pub(super) struct Narrow {
    /// The sender.
    pub(super) source: IpAddr,
    /// Octets of datagrams that do not come.
    pub(super) datagram: usize,
    /// Octets of datagrams that pass everywhere.
    pub(super) passes: usize,
    /// Whether the sender is told of it.
    pub(super) told: bool,
}

impl Narrow {
    /// Says so, and what its sender may set.
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

    /// The same for programs.
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
