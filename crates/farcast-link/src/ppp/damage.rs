//! What befell the octets of a frame on a line.

use alloc::vec::Vec;
use core::ops::Range;

use smallvec::SmallVec;

/// Where a frame was damaged, so that its octets can be damaged alike.
///
/// Octets are counted from the first that was sent, a leading flag included. Of several errors between two flags the
/// first is noted: what is behind it is not known of a line that draws how far the next error is.
#[derive(Clone, Debug, Default)]
pub(super) struct Damage {
    /// Whether the frame began with a flag of its own.
    leading: bool,
    /// The octets that were cut off, ascending.
    cut: SmallVec<[Range<u64>; 1]>,
    /// Bits in error, ascending, counted over the octets that were not cut off.
    errors: SmallVec<[u64; 3]>,
    /// Octets so far that were not cut off.
    passed: u64,
}

impl Damage {
    /// A frame begins.
    pub(super) fn begin(&mut self, leading: bool) {
        self.leading = leading;
        self.cut.clear();
        self.errors.clear();
        self.passed = 0;
    }

    /// Whether the frame began with a flag of its own.
    pub(super) const fn leading(&self) -> bool {
        self.leading
    }

    /// Octets are cut off.
    pub(super) fn cut(&mut self, octets: Range<u64>) {
        self.cut.push(octets);
    }

    /// So many octets pass, of which one has an error at a bit, counted from the first of them.
    pub(super) fn pass(&mut self, octets: u64, error: Option<u64>) {
        if let Some(bit) = error {
            self.errors.push(self.passed.saturating_mul(8).saturating_add(bit));
        }
        self.passed = self.passed.saturating_add(octets);
    }

    /// Makes of the octets that were sent those that were received. Of each octet the lowest bit is sent first.
    pub(super) fn inflict(&self, octets: &mut Vec<u8>) {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        for range in self.cut.iter().rev() {
            let end = place(range.end).min(octets.len());
            octets.drain(place(range.start).min(end)..end);
        }
        for &bit in &self.errors {
            if let Some(octet) = octets.get_mut(place(bit / 8)) {
                *octet ^= 1 << (bit % 8);
            }
        }
    }
}
