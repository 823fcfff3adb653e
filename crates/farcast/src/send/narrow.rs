//! Ways that carry less than the first link, in words.

use std::net::SocketAddr;

use serde_json::{Value, json};

/// Says that datagrams leave in fragments, and which `option` avoids it.
pub(super) fn fragmenting(packet: usize, segment: usize, option: &str) -> String {
    format!(
        "the way carries packets of {packet} octets, and datagrams are longer: they leave in fragments, of which none may \
         be lost; {option} {segment} avoids that"
    )
}

/// The same for programs.
pub(super) fn fits(segment: usize) -> Value {
    json!({ "fits_bytes": segment })
}

/// A receiver that gets no long datagram.
pub(super) struct Narrow {
    /// Its address.
    pub(super) receiver: SocketAddr,
    /// Octets of datagrams that do not arrive there.
    pub(super) datagram: usize,
    /// Octets of the longest that leaves from now on.
    pub(super) limit: usize,
}

impl Narrow {
    /// Says that datagrams leave in pieces, and what avoids it: octets of a segment, and the option that sets them.
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

    /// The same for programs.
    pub(super) fn fields(&self, fits: Option<usize>) -> Value {
        json!({
            "address": self.receiver.ip().to_string(),
            "datagram_bytes": self.datagram,
            "pieces_bytes": self.limit,
            "fits_bytes": fits,
        })
    }
}
