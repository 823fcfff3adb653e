//! Sequence numbers: 32 bits, circular (RFC 3208 §3.2).

use core::fmt;

/// A sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sqn(pub u32);

impl Sqn {
    /// The number `count` places on.
    #[must_use]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// The number `count` places before.
    #[must_use]
    pub const fn minus(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count))
    }

    /// How far this lies behind `earlier`; negative where it lies before.
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }

    /// The next number.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }
}

impl fmt::Debug for Sqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sqn {}", self.0)
    }
}

/// Where a sequence number lies among all that there have been: what a number of the wire means beside one that is
/// known. An origin of 2^32 leaves room before the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place(pub(crate) u64);

impl Place {
    /// Of the first number that was heard.
    pub(crate) const fn first(sqn: Sqn) -> Self {
        Self((1 << 32) | sqn.0 as u64)
    }

    /// Of `sqn`, which is within 2^31 of this one.
    pub(crate) const fn near(self, sqn: Sqn) -> Self {
        let by = sqn.since(self.sqn());
        Self(self.0.saturating_add_signed(by as i64))
    }

    pub(crate) const fn sqn(self) -> Sqn {
        Sqn(self.0 as u32)
    }

    pub(crate) const fn plus(self, count: u32) -> Self {
        Self(self.0 + count as u64)
    }

    pub(crate) const fn next(self) -> Self {
        self.plus(1)
    }

    /// Where the transmission group of `size`, a power of two, begins that this is of.
    pub(crate) const fn group(self, size: u32) -> Self {
        Self(self.0 & !(size as u64 - 1))
    }

    /// What a request for parity means by this number, of such groups: where its group begins, and how many packets of it
    /// are asked for (RFC 3208 §11.4).
    pub(crate) const fn wanted(self, size: u32) -> (Self, u32) {
        let base = self.group(size);
        (base, (self.0 - base.0) as u32 + 1)
    }

    /// The first place from here on where such a group begins.
    pub(crate) const fn align(self, size: u32) -> Self {
        self.plus(size - 1).group(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_round() {
        let (low, high) = (Sqn(2), Sqn(u32::MAX));
        assert_eq!((low.since(high), high.since(low)), (3, -3));
        assert_eq!((high.next(), low.minus(3)), (Sqn(0), high));
        assert_eq!(Sqn(1 << 31).since(Sqn(0)), i32::MIN);
    }

    #[test]
    fn a_place_follows_its_number_round() {
        let before = Place::first(Sqn(u32::MAX));
        let after = before.near(Sqn(4));
        assert_eq!((after.0 - before.0, after.sqn()), (5, Sqn(4)));
        assert_eq!(after.near(Sqn(u32::MAX)), before);
        // There is room before the first.
        assert_eq!(Place::first(Sqn(0)).near(Sqn(u32::MAX)).next(), Place::first(Sqn(0)));
    }
}
