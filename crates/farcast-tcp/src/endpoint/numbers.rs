//! Ports and initial sequence numbers.

use core::net::{IpAddr, SocketAddr};

use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};

use super::config::FIRST_EPHEMERAL;
use super::{Endpoint, EndpointError};
use crate::SequenceNumber;

/// Number of ephemeral ports.
const EPHEMERAL: u16 = u16::MAX - FIRST_EPHEMERAL + 1;

/// Time in which initial sequence numbers advance by one (RFC 6528 section 3).
const SEQUENCE_TICK: Span = Span::from_micros(4);

/// Labels of the random streams.
const PORTS: u64 = 1;
const SEQUENCES: u64 = 2;

/// Returns the offset of the first port that is given out from the first ephemeral port.
pub(super) fn first_port(seed: u64) -> u16 {
    RandomStream::derive(seed, &[PORTS]).below(u64::from(EPHEMERAL)) as u16
}

impl Endpoint {
    /// Returns the next ephemeral port that has no listener and no connection to `remote` yet.
    pub(super) fn free_port(&mut self, remote: Option<SocketAddr>) -> Result<u16, EndpointError> {
        for _ in 0..EPHEMERAL {
            let port = FIRST_EPHEMERAL + self.next_port;
            self.next_port = (self.next_port + 1) % EPHEMERAL;
            let taken = remote.is_some_and(|remote| self.table.find((port, remote)).is_some());
            if !taken && self.listener(port).is_none() {
                return Ok(port);
            }
        }
        Err(EndpointError::NoPort)
    }

    /// Returns an initial sequence number: a clock, and a function of the addresses and a secret (RFC 6528 section 3).
    /// The function is a random stream, not a cipher: an observer of many numbers may find the secret.
    pub(super) fn initial(&self, now: Time, port: u16, remote: SocketAddr) -> SequenceNumber {
        let [local, other] = [self.config.address, remote.ip()].map(|address| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        });
        let halves = |bits: u128| [bits as u64, (bits >> 64) as u64];
        let ([a, b], [c, d]) = (halves(local), halves(other));
        let ports = u64::from(port) << 16 | u64::from(remote.port());
        let offset = RandomStream::derive(self.config.seed, &[SEQUENCES, a, b, c, d, ports]).bits() as u32;
        let clock = (now.as_nanos() / SEQUENCE_TICK.as_nanos()) as u32;
        SequenceNumber(clock.wrapping_add(offset))
    }
}
