//! Receivers of a population that lack each segment.

use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};

/// Number of receivers that fit where a list would have its pointer.
const HANDFUL: usize = 5;

/// Receivers that lack one segment.
#[derive(Clone, Debug)]
enum LackingReceivers {
    /// A number of receivers, in ascending order. This most common case needs no allocation.
    Handful(u8, [u32; HANDFUL]),
    /// A list of receivers, in ascending order.
    Few(Vec<u32>),
    /// A bitmap of receivers, if more than one in 32 lack the segment, so that a bit for each is shorter than a list.
    Many(Bitmap),
}

/// Gaps of all receivers of a population. The cost of a receiver depends on its losses, not on its segments.
#[derive(Clone, Debug)]
pub(super) struct ReceiverGaps {
    receivers: u32,
    segments: Vec<LackingReceivers>,
    /// Segments that any receiver lacks.
    open: Bitmap,
    /// Segments that were never sent; every receiver lacks them, regardless of `segments`.
    unsent: Bitmap,
    /// Number of the other segments that each receiver lacks.
    gaps: Vec<u32>,
}

impl ReceiverGaps {
    pub(super) fn new(receivers: u32, segments: u32) -> Self {
        Self {
            receivers,
            segments: alloc::vec![LackingReceivers::Handful(0, [0; HANDFUL]); segments as usize],
            open: Bitmap::full(segments),
            unsent: Bitmap::full(segments),
            gaps: alloc::vec![0; receivers as usize],
        }
    }

    /// Returns `true` if `segment` was never sent, so that every receiver lacks it.
    pub(super) fn is_unsent(&self, segment: u32) -> bool {
        self.unsent.contains(segment)
    }

    /// Returns the number of segments that were never sent.
    pub(super) fn unsent(&self) -> u32 {
        self.unsent.count()
    }

    /// Returns the number of consecutive segments from `first` on, at most `most`, that were never sent.
    pub(super) fn unsent_from(&self, first: u32, most: u32) -> u32 {
        self.unsent.next_clear(first).map_or(most, |sent| (sent - first).min(most))
    }

    /// Records that `run` was sent for the first time and reached every receiver.
    pub(super) fn sent_to_all(&mut self, run: Run) {
        self.unsent.remove_run(run);
        self.open.remove_run(run);
    }

    /// Returns the number of segments that `receiver` lacks.
    pub(super) fn count(&self, receiver: u32) -> u32 {
        self.unsent.count() + self.gaps[receiver as usize]
    }

    /// Returns `true` if `receiver` lacks `segment`.
    pub(super) fn lacks(&self, segment: u32, receiver: u32) -> bool {
        match &self.segments[segment as usize] {
            _ if self.is_unsent(segment) => true,
            LackingReceivers::Handful(n, list) => list[..usize::from(*n)].contains(&receiver),
            LackingReceivers::Few(list) => list.binary_search(&receiver).is_ok(),
            LackingReceivers::Many(bits) => bits.contains(receiver),
        }
    }

    /// Returns the segments of `run` that any receiver lacks, in order.
    pub(super) fn open_in(&self, run: Run) -> impl Iterator<Item = u32> + '_ {
        let from = move |first| self.open.next_set(first).filter(|&segment| segment < run.end());
        core::iter::successors(from(run.first()), move |&last| from(last + 1))
    }

    /// Copies the receivers that lack `segment` into `list`, in ascending order.
    pub(super) fn who(&self, segment: u32, list: &mut Vec<u32>) {
        list.clear();
        match &self.segments[segment as usize] {
            _ if self.is_unsent(segment) => list.extend(0..self.receivers),
            LackingReceivers::Handful(n, few) => list.extend_from_slice(&few[..usize::from(*n)]),
            LackingReceivers::Few(few) => list.extend_from_slice(few),
            LackingReceivers::Many(bits) => list.extend(bits.iter()),
        }
    }

    /// Collects into `who`, in ascending order, the receivers that lack any segment of `run`, and counts those segments
    /// in `counts`. `counts` has an entry for each receiver and must be all 0 before.
    pub(super) fn count_in(&self, run: Run, counts: &mut [u32], who: &mut Vec<u32>) {
        who.clear();
        for segment in self.open_in(run) {
            self.for_each(segment, |receiver| {
                let count = &mut counts[receiver as usize];
                if *count == 0 {
                    who.push(receiver);
                }
                *count += 1;
            });
        }
        // If most receivers lost a segment, a pass over all receivers is faster than sorting.
        if who.len() > self.receivers as usize / 16 {
            who.clear();
            who.extend((0..self.receivers).filter(|&receiver| counts[receiver as usize] > 0));
        } else {
            who.sort_unstable();
        }
    }

    /// Calls `each` with the receivers that lack `segment`, in ascending order.
    pub(super) fn for_each(&self, segment: u32, each: impl FnMut(u32)) {
        match &self.segments[segment as usize] {
            _ if self.is_unsent(segment) => (0..self.receivers).for_each(each),
            LackingReceivers::Handful(n, few) => few[..usize::from(*n)].iter().copied().for_each(each),
            LackingReceivers::Few(few) => few.iter().copied().for_each(each),
            LackingReceivers::Many(bits) => bits.iter().for_each(each),
        }
    }

    /// Returns `true` if `test` holds for any receiver that lacks `segment`.
    pub(super) fn any(&self, segment: u32, test: impl FnMut(u32) -> bool) -> bool {
        match &self.segments[segment as usize] {
            _ if self.is_unsent(segment) => (0..self.receivers).any(test),
            LackingReceivers::Handful(n, few) => few[..usize::from(*n)].iter().copied().any(test),
            LackingReceivers::Few(few) => few.iter().copied().any(test),
            LackingReceivers::Many(bits) => bits.iter().any(test),
        }
    }

    /// Records that `segment` was sent for the first time: only the receivers in `lacking`, in ascending order, still
    /// lack it.
    pub(super) fn sent_first(&mut self, segment: u32, lacking: &[u32]) {
        self.unsent.remove(segment);
        for &receiver in lacking {
            self.gaps[receiver as usize] += 1;
        }
        self.put(segment, lacking);
    }

    /// Records that `segment` was sent again: the receivers in `got` have it now, and those in `lacking`, in ascending
    /// order, still lack it.
    pub(super) fn sent_again(&mut self, segment: u32, got: &[u32], lacking: &[u32]) {
        for &receiver in got {
            self.gaps[receiver as usize] -= 1;
        }
        self.put(segment, lacking);
    }

    /// Turns segments of `run` that were never sent into ordinary gaps of every receiver.
    pub(super) fn give_up_unsent(&mut self, run: Run) {
        while let Some(segment) = self.unsent.next_set(run.first()).filter(|&segment| segment < run.end()) {
            self.unsent.remove(segment);
            self.gaps.iter_mut().for_each(|gaps| *gaps += 1);
            self.segments[segment as usize] = LackingReceivers::Many(Bitmap::full(self.receivers));
        }
    }

    /// Records that `receiver` has rebuilt this many segments; [`strike`](Self::strike) removes it from their lists.
    pub(super) fn rebuilt(&mut self, receiver: u32, segments: u32) {
        self.gaps[receiver as usize] -= segments;
    }

    /// Removes from the lists of `run` the `receivers` that have rebuilt the segments that they lacked of it.
    pub(super) fn strike(&mut self, run: Run, receivers: &Bitmap) {
        let mut left = Vec::new();
        let mut next = run.first();
        while let Some(segment) = self.open.next_set(next).filter(|&segment| segment < run.end()) {
            left.clear();
            self.for_each(segment, |receiver| {
                if !receivers.contains(receiver) {
                    left.push(receiver);
                }
            });
            self.put(segment, &left);
            next = segment + 1;
        }
    }

    fn put(&mut self, segment: u32, lacking: &[u32]) {
        let dense = lacking.len() > (self.receivers / 32) as usize && lacking.len() > 64;
        let place = &mut self.segments[segment as usize];
        if lacking.is_empty() {
            self.open.remove(segment);
        }
        if lacking.len() <= HANDFUL {
            let mut few = [0; HANDFUL];
            few[..lacking.len()].copy_from_slice(lacking);
            *place = LackingReceivers::Handful(lacking.len() as u8, few);
        } else if dense {
            let mut bits = Bitmap::new(self.receivers);
            for &receiver in lacking {
                bits.insert(receiver);
            }
            *place = LackingReceivers::Many(bits);
        } else if let LackingReceivers::Few(list) = place {
            // An existing list keeps its allocation.
            list.clear();
            list.extend_from_slice(lacking);
        } else {
            *place = LackingReceivers::Few(lacking.to_vec());
        }
    }
}
