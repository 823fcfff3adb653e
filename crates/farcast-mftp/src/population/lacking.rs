//! Which receivers of a population lack which segments, kept by segment.

use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};

/// Who lacks one segment.
#[derive(Clone, Debug)]
enum Lack {
    /// Everyone: it was never sent.
    Everyone,
    /// These, ascending.
    Few(Vec<u32>),
    /// These: more than one in 32, so that a bit for each receiver is shorter than their list.
    Many(Bitmap),
}

/// The gaps of all receivers of a population: a receiver costs its losses, not its segments.
#[derive(Clone, Debug)]
pub(super) struct Lacking {
    receivers: u32,
    segments: Vec<Lack>,
    /// Segments that everyone lacks.
    unsent: u32,
    /// Of each receiver, how many of the other segments it lacks.
    gaps: Vec<u32>,
}

impl Lacking {
    pub(super) fn new(receivers: u32, segments: u32) -> Self {
        Self {
            receivers,
            segments: alloc::vec![Lack::Everyone; segments as usize],
            unsent: segments,
            gaps: alloc::vec![0; receivers as usize],
        }
    }

    /// Whether everyone lacks `segment`.
    pub(super) fn is_unsent(&self, segment: u32) -> bool {
        matches!(self.segments[segment as usize], Lack::Everyone)
    }

    /// Segments that everyone lacks.
    pub(super) fn unsent(&self) -> u32 {
        self.unsent
    }

    /// Segments that `receiver` lacks.
    pub(super) fn count(&self, receiver: u32) -> u32 {
        self.unsent + self.gaps[receiver as usize]
    }

    /// Whether `receiver` lacks `segment`.
    pub(super) fn lacks(&self, segment: u32, receiver: u32) -> bool {
        match &self.segments[segment as usize] {
            Lack::Everyone => true,
            Lack::Few(list) => list.binary_search(&receiver).is_ok(),
            Lack::Many(bits) => bits.contains(receiver),
        }
    }

    /// Whether nobody lacks `segment`.
    pub(super) fn is_settled(&self, segment: u32) -> bool {
        match &self.segments[segment as usize] {
            Lack::Everyone => false,
            Lack::Few(list) => list.is_empty(),
            Lack::Many(bits) => bits.is_empty(),
        }
    }

    /// Those who lack `segment`, ascending, into `list`.
    pub(super) fn who(&self, segment: u32, list: &mut Vec<u32>) {
        list.clear();
        match &self.segments[segment as usize] {
            Lack::Everyone => list.extend(0..self.receivers),
            Lack::Few(few) => list.extend_from_slice(few),
            Lack::Many(bits) => list.extend(bits.iter_runs().flat_map(Run::segments)),
        }
    }

    /// Calls `each` with those who lack `segment`, ascending.
    pub(super) fn for_each(&self, segment: u32, mut each: impl FnMut(u32)) {
        match &self.segments[segment as usize] {
            Lack::Everyone => (0..self.receivers).for_each(each),
            Lack::Few(few) => few.iter().copied().for_each(each),
            Lack::Many(bits) => bits.iter_runs().flat_map(Run::segments).for_each(&mut each),
        }
    }

    /// Whether `test` holds for anyone who lacks `segment`.
    pub(super) fn any(&self, segment: u32, test: impl FnMut(u32) -> bool) -> bool {
        match &self.segments[segment as usize] {
            Lack::Everyone => (0..self.receivers).any(test),
            Lack::Few(few) => few.iter().copied().any(test),
            Lack::Many(bits) => bits.iter_runs().flat_map(Run::segments).any(test),
        }
    }

    /// `segment` was sent for the first time: only `lacking`, ascending, still lack it.
    pub(super) fn sent_first(&mut self, segment: u32, lacking: &[u32]) {
        self.unsent -= 1;
        for &receiver in lacking {
            self.gaps[receiver as usize] += 1;
        }
        self.put(segment, lacking);
    }

    /// `segment` was sent again: `got` have it now, and `lacking`, ascending, still lack it.
    pub(super) fn sent_again(&mut self, segment: u32, got: &[u32], lacking: &[u32]) {
        for &receiver in got {
            self.gaps[receiver as usize] -= 1;
        }
        self.put(segment, lacking);
    }

    fn put(&mut self, segment: u32, lacking: &[u32]) {
        let dense = lacking.len() > (self.receivers / 32) as usize && lacking.len() > 64;
        let place = &mut self.segments[segment as usize];
        match place {
            // A list in place keeps its allocation.
            Lack::Few(list) if !dense => {
                list.clear();
                list.extend_from_slice(lacking);
            }
            _ if dense => {
                let mut bits = Bitmap::new(self.receivers);
                for &receiver in lacking {
                    bits.insert(receiver);
                }
                *place = Lack::Many(bits);
            }
            _ => *place = Lack::Few(lacking.to_vec()),
        }
    }
}
