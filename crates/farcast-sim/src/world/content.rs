//! Content that a receiver hears.

use std::collections::BTreeMap;

use farcast_core::{Run, Span, Time};
use farcast_delivery::ObjectId;

/// Counters of the content that a receiver has heard, packet by packet.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReceivedContent {
    /// Octets of content that were new.
    pub useful_octets: u64,
    /// Octets of content that brought nothing new.
    pub useless_octets: u64,
    /// Packets with new content that came behind a later segment, and so filled gaps.
    pub repairs: u64,
    /// Time from the detection of a gap, when a later segment came, until the gap was filled: the sum over all missing
    /// segments.
    pub repair_time: Span,
    /// Longest time from the detection of a gap until it was filled.
    pub longest_repair: Span,
    /// State of each object: the segment behind the last that came, and the missing segments before it with the time at
    /// which the gap was seen.
    objects: BTreeMap<ObjectId, (u32, BTreeMap<u32, Time>)>,
    /// Octets of the message at hand that have not been stored.
    arrived: u64,
}

/// Maximum number of gaps to remember for each object. Beyond it, repair times are those of the first gaps only.
const MOST_GAPS: usize = 1 << 16;

impl ReceivedContent {
    /// Notes a message with `octets` of content.
    pub(crate) fn arrives(&mut self, octets: u64) {
        self.arrived = octets;
    }

    /// Counts new content of an object: these segments, or parity if `segments` is `None`.
    pub(crate) fn stores(&mut self, now: Time, object: ObjectId, segments: Option<Run>) {
        self.useful_octets += std::mem::take(&mut self.arrived);
        let Some(segments) = segments else { return };
        let (next, gaps) = self.objects.entry(object).or_default();
        for segment in segments.first()..segments.end() {
            if segment < *next {
                self.repairs += 1;
                if let Some(seen) = gaps.remove(&segment) {
                    let took = now.since(seen);
                    self.repair_time = self.repair_time + took;
                    self.longest_repair = self.longest_repair.max(took);
                }
                continue;
            }
            for missing in *next..segment {
                if gaps.len() == MOST_GAPS {
                    break;
                }
                gaps.insert(missing, now);
            }
            *next = segment + 1;
        }
    }

    /// Counts octets of the message at hand that were not stored as useless.
    pub(crate) fn is_over(&mut self) {
        self.useless_octets += std::mem::take(&mut self.arrived);
    }
}
