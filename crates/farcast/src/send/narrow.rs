//! Messages of a sender about paths that carry shorter datagrams than the first link.

use std::net::SocketAddr;

use serde_json::{Value, json};

/// Returns the message that datagrams leave in fragments, with the `option` that avoids it.
pub(super) fn fragmenting(packet: usize, segment: usize, option: &str) -> String {
    format!(
        "the way carries packets of {packet} octets, and datagrams are longer: they leave in fragments, of which none may \
         be lost; {option} {segment} avoids that"
    )
}

/// Returns the message for programs.
pub(super) fn fits(segment: usize) -> Value {
    json!({ "fits_bytes": segment })
}

/// Receiver that gets no long datagram.
pub(super) struct Narrow {
    /// Address of the receiver.
    pub(super) receiver: SocketAddr,
    /// Size in octets of the datagrams that do not arrive there.
    pub(super) datagram: usize,
    /// Size in octets of the longest datagram that leaves from now on.
    pub(super) limit: usize,
}

impl Narrow {
    /// Returns the message that datagrams leave in pieces. `fits` is a segment size in octets that avoids it, with the
    /// option that sets it.
    pub(super) fn sentence(&self, fits: Option<(usize, &str)>) -> String {
        let Self { receiver, datagram, limit } = self;
        let avoids = fits
            .map_or_else(String::new, |(segment, option)| format!("; {option} {segment} needs no pieces"));
        format!(
            "{} gets no datagram of {datagram} octets, and short ones arrive: the way there carries less than the first \
             link; from now on long ones leave in pieces of {limit} octets at most{avoids}",
            receiver.ip()
        )
    }

    /// Returns the message for programs.
    pub(super) fn fields(&self, fits: Option<usize>) -> Value {
        json!({
            "address": self.receiver.ip().to_string(),
            "datagram_bytes": self.datagram,
            "pieces_bytes": self.limit,
            "fits_bytes": fits,
        })
    }
}
