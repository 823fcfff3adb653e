//! What is counted in a tree.

use std::collections::BTreeMap;

use farcast_core::{Run, Span, Time};
use farcast_delivery::ObjectId;

/// What has passed in one replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TreeTally {
    /// NAKs that reached the sender after the round that follows the one they answer had begun.
    pub naks_late: u64,
    /// NAKs that the sender took in time for the round behind the one they answer.
    pub naks_used: u64,
    /// Packets that came to a node whose address they bore and where nobody hears them, or that bore an address of
    /// nobody.
    pub unheard: u64,
    /// Packets that no node was allowed to send on any more.
    pub expired: u64,
    /// Events of the simulation.
    pub events: u64,
}

/// Packets of one kind in one direction of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KindCount {
    /// Packets that entered.
    pub packets: u64,
    /// Their octets with all headers.
    pub octets: u64,
}

impl KindCount {
    /// Counts a run of `segments` packets of which all but the last have `full` octets.
    pub(super) fn count(&mut self, segments: u32, full: u64, last: u64) {
        self.packets += u64::from(segments);
        self.octets += full * u64::from(segments - 1) + last;
    }
}

/// What a receiver has heard of content, packet by packet.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Heard {
    /// Octets of content that were new.
    pub useful_octets: u64,
    /// Octets of content that brought nothing new.
    pub useless_octets: u64,
    /// Packets with content that were new and came behind a later one: what filled gaps.
    pub repairs: u64,
    /// From when a gap was seen, because something behind it came, until it was filled: the sum over the gaps'
    /// segments.
    pub repair_time: Span,
    /// The longest of these times.
    pub longest_repair: Span,
    /// By object: the segment behind the last that came, and those missing before it with the time at which that was
    /// seen.
    objects: BTreeMap<ObjectId, (u32, BTreeMap<u32, Time>)>,
    /// Octets of the message at hand that have not been stored.
    arrived: u64,
}

/// Gaps that are remembered for each object: beyond, latencies are those of the first ones only.
const MOST_GAPS: usize = 1 << 16;

impl Heard {
    /// A message with so many octets of content comes.
    pub(crate) fn arrives(&mut self, octets: u64) {
        self.arrived = octets;
    }

    /// These segments of an object, or none of it but parity, are new.
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

    /// The message at hand has been dealt with.
    pub(crate) fn is_over(&mut self) {
        self.useless_octets += std::mem::take(&mut self.arrived);
    }
}
