//! Limits of queues: how they are read, and which one a queue has of which nothing is said.

use farcast_core::Span;
use farcast_core::units::{BitRate, Bytes};
use farcast_link::pipe::QueueLimit;

use crate::document::{DocumentError, Reader};

/// The least queue, in octets, that [`Links::default_queues`](super::Links::default_queues) gives: ten packets of 1500.
pub const LEAST_QUEUE: u64 = 15_000;

/// A queue of which nothing was said, and which was given a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefaultQueue {
    /// Where it is: `forward`, `return`, or the name of one of `link.stages`; of a stage that carries both ways with
    /// the way behind it, as in `serial.forward`.
    pub stage: String,
    /// The key that would say another limit, as in `link.stages.serial.forward.queue`.
    pub key: String,
    /// Its limit in octets.
    pub octets: u64,
}

impl DefaultQueue {
    /// Whether its limit is one bandwidth-delay product; else that is less, and the limit is [`LEAST_QUEUE`].
    pub const fn is_product(&self) -> bool {
        self.octets > LEAST_QUEUE
    }
}

/// A queue as a link's or a stage's settings have it.
pub(super) struct Queue<'a> {
    /// What it is emptied by; without a rate nothing waits.
    pub(super) rate: Option<BitRate>,
    pub(super) limit: &'a mut QueueLimit,
    /// Whether anything was said of its limit.
    pub(super) said: &'a mut bool,
}

impl Queue<'_> {
    /// Limits a queue with a rate of which nothing was said to what passes in `round_trip`, at least [`LEAST_QUEUE`];
    /// the limit in octets.
    pub(super) fn limit_by_default(self, round_trip: Span) -> Option<u64> {
        let rate = self.rate.filter(|_| !*self.said)?;
        let octets = u128::from(rate.as_bps()) * u128::from(round_trip.as_nanos()) / 8_000_000_000;
        let octets = u64::try_from(octets).unwrap_or(u64::MAX).max(LEAST_QUEUE);
        *self.limit = QueueLimit::Octets(octets);
        *self.said = true;
        Some(octets)
    }
}

/// `queue` or `queue_packets`; `None` if nothing is said.
pub(super) fn queue(table: &mut Reader<'_>) -> Result<Option<QueueLimit>, DocumentError> {
    queue_of(table, "queue", "queue_packets")
}

/// The same by these keys. No limit in octets may stand beside one in packets.
pub(super) fn queue_of(
    table: &mut Reader<'_>,
    key: &'static str,
    key_packets: &'static str,
) -> Result<Option<QueueLimit>, DocumentError> {
    // Larger than any size that can be written.
    const UNLIMITED: Bytes = Bytes(u64::MAX);
    let octets = table.optional_bytes_or(key, ("unlimited", UNLIMITED))?;
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
