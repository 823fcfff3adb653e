//! Limits of queues: reading them, and the default limit of a queue.

use farcast_core::Span;
use farcast_core::units::{BitRate, Bytes};
use farcast_link::pipe::QueueLimit;

use crate::document::{DocumentError, Reader};

/// Least default limit in octets, given by [`Links::default_queues`](super::Links::default_queues): ten packets of
/// 1500.
pub const LEAST_QUEUE: u64 = 15_000;

/// A queue that was given a default limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefaultQueue {
    /// Place of the queue: `forward`, `return`, or the name of one of `link.stages`. The name of a stage that carries
    /// both ways is followed by the direction, as in `serial.forward`.
    pub stage: String,
    /// The key that would set another limit, as in `link.stages.serial.forward.queue`.
    pub key: String,
    /// The limit in octets.
    pub octets: u64,
}

impl DefaultQueue {
    /// Returns `true` if the limit is one bandwidth-delay product; otherwise the product is less, and the limit is
    /// [`LEAST_QUEUE`].
    pub const fn is_product(&self) -> bool {
        self.octets > LEAST_QUEUE
    }
}

/// A queue in the settings of a link or a stage.
pub(super) struct Queue<'a> {
    /// Rate at which the queue is emptied; without a rate no packet waits.
    pub(super) rate: Option<BitRate>,
    pub(super) limit: &'a mut QueueLimit,
    /// True if the limit was given.
    pub(super) said: &'a mut bool,
}

impl Queue<'_> {
    /// Limits a queue that has a rate and no given limit to the octets that pass in `round_trip`, at least
    /// [`LEAST_QUEUE`]. Returns the limit in octets.
    pub(super) fn limit_by_default(self, round_trip: Span) -> Option<u64> {
        let rate = self.rate.filter(|_| !*self.said)?;
        let octets = u128::from(rate.as_bps()) * u128::from(round_trip.as_nanos()) / 8_000_000_000;
        let octets = u64::try_from(octets).unwrap_or(u64::MAX).max(LEAST_QUEUE);
        *self.limit = QueueLimit::Octets(octets);
        *self.said = true;
        Some(octets)
    }
}

/// Reads `queue` or `queue_packets`; `None` if neither is given.
pub(super) fn queue(table: &mut Reader<'_>) -> Result<Option<QueueLimit>, DocumentError> {
    queue_of(table, "queue", "queue_packets")
}

/// Reads the limit from these two keys. A limit in octets excludes one in packets.
pub(super) fn queue_of(
    table: &mut Reader<'_>,
    key: &'static str,
    key_packets: &'static str,
) -> Result<Option<QueueLimit>, DocumentError> {
    // Larger than any size that can be written.
    const UNLIMITED: Bytes = Bytes(u64::MAX);
    let octets = table.optional_bytes_or(key, "unlimited", UNLIMITED)?;
    let packets = table.optional_integer(key_packets, 1..=u32::MAX)?;
    match (octets, packets) {
        (None, None) => Ok(None),
        (Some(UNLIMITED), None) => Ok(Some(QueueLimit::Unbounded)),
        (None | Some(UNLIMITED), Some(packets)) => Ok(Some(QueueLimit::Packets(packets))),
        (Some(Bytes(0)), None) => Err(table.refuse(key, "nothing could ever be sent", "at least 1 B")),
        (Some(Bytes(octets)), None) => Ok(Some(QueueLimit::Octets(octets))),
        (Some(_), Some(_)) => {
            Err(table.refuse(key_packets, format!("{key} limits the queue already"), "one of the two"))
        }
    }
}

#[cfg(test)]
mod tests;
