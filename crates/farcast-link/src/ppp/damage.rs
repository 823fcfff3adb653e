//! Damage to the octets of a frame on a line.

use alloc::vec::Vec;
use core::ops::Range;

use smallvec::SmallVec;

/// Places at which a line has damaged a frame, so that its octets can be damaged alike.
///
/// Octets are counted from the first that was sent, a leading flag included. Of several errors in one
/// [pass](Self::pass) only the first is noted: a line that draws the distance to the next error does not know the
/// others.
#[derive(Clone, Debug, Default)]
pub(super) struct Damage {
    /// `true` if the frame began with a flag of its own.
    leading: bool,
    /// The octets that were cut off, ascending.
    cut: SmallVec<[Range<u64>; 1]>,
    /// Bits in error, ascending, counted over the octets that were not cut off.
    errors: SmallVec<[u64; 3]>,
    /// Octets so far that were not cut off.
    passed: u64,
}

impl Damage {
    /// Begins a new frame.
    pub(super) fn begin(&mut self, leading: bool) {
        self.leading = leading;
        self.cut.clear();
        self.errors.clear();
        self.passed = 0;
    }

    /// Returns `true` if the frame began with a flag of its own.
    pub(super) const fn leading(&self) -> bool {
        self.leading
    }

    /// Notes octets that are cut off.
    pub(super) fn cut(&mut self, octets: Range<u64>) {
        self.cut.push(octets);
    }

    /// Notes `octets` octets that pass, with an error at bit `error`, counted from the first of them.
    pub(super) fn pass(&mut self, octets: u64, error: Option<u64>) {
        if let Some(bit) = error {
            self.errors.push(self.passed.saturating_mul(8).saturating_add(bit));
        }
        self.passed = self.passed.saturating_add(octets);
    }

    /// Turns the octets that were sent into those that were received. The lowest bit of each octet is sent first.
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
