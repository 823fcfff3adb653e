//! Groups of four bits, most significant first: everything in a status report is a multiple of these.

/// Reader of groups of four bits.
pub(super) struct NibbleReader<'a> {
    octets: &'a [u8],
    /// Number of groups that have been read.
    at: usize,
}

impl<'a> NibbleReader<'a> {
    /// Creates a reader of `octets` from group `at` on.
    pub(super) const fn new(octets: &'a [u8], at: usize) -> Self {
        Self { octets, at }
    }

    /// Returns `true` if nothing is left.
    pub(super) const fn is_at_end(&self) -> bool {
        self.at >= 2 * self.octets.len()
    }

    /// Returns the number in the next `groups` groups, up to eight of them; `None` if there are not that many.
    pub(super) fn take(&mut self, groups: usize) -> Option<u32> {
        let end = self.at.checked_add(groups).filter(|&end| end <= 2 * self.octets.len())?;
        let group = |at: usize| u32::from(self.octets[at / 2] >> (4 * (1 - at % 2)) & 0xF);
        let number = (self.at..end).fold(0, |number, at| number << 4 | group(at));
        self.at = end;
        Some(number)
    }
}

/// Writer of groups of four bits over octets that are zero.
pub(super) struct NibbleWriter<'a> {
    octets: &'a mut [u8],
    at: usize,
}

impl<'a> NibbleWriter<'a> {
    /// Creates a writer to the front of `octets`.
    pub(super) const fn new(octets: &'a mut [u8]) -> Self {
        Self { octets, at: 0 }
    }

    /// Puts the low bits of `number`, as many as `groups` groups hold. Groups beyond the end of the octets are left
    /// out: the caller has checked the length.
    pub(super) fn put(&mut self, number: impl Into<u32>, groups: usize) {
        let number = number.into();
        for group in (0..groups).rev() {
            if let Some(octet) = self.octets.get_mut(self.at / 2) {
                *octet |= ((number >> (4 * group) & 0xF) as u8) << (4 * (1 - self.at % 2));
            }
            self.at += 1;
        }
    }
}
