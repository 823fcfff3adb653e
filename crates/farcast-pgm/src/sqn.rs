//! Sequence numbers: 32 bits, circular (RFC 3208 §3.2).

use core::fmt;

/// A sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sqn(pub u32);

impl Sqn {
    /// Returns the number `count` places on.
    #[must_use]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// Returns the number `count` places before.
    #[must_use]
    pub const fn minus(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count))
    }

    /// Returns the distance from `earlier` to this number; negative if this number is older.
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }

    /// Returns the next number.
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

/// Position of a sequence number among all numbers of a session, in 64 bits. A number from the wire becomes a place
/// relative to a known place. An origin of 2^32 leaves room before the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place(pub(crate) u64);

impl Place {
    /// Returns the place of the first number that was heard.
    pub(crate) const fn first(sqn: Sqn) -> Self {
        Self((1 << 32) | sqn.0 as u64)
    }

    /// Returns the place of `sqn`, which is within 2^31 of this one.
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

    /// Returns the first place of the transmission group that contains this place; `size` is a power of two.
    pub(crate) const fn group(self, size: u32) -> Self {
        Self(self.0 & !(size as u64 - 1))
    }

    /// Decodes this number in a request for parity in groups of `size` (RFC 3208 §11.4).
    pub(crate) const fn wanted(self, size: u32) -> GroupWant {
        let base = self.group(size);
        GroupWant { base, count: (self.0 - base.0) as u32 + 1 }
    }

    /// Returns the first place, from this one on, at which a group of `size` begins.
    pub(crate) const fn align(self, size: u32) -> Self {
        self.plus(size - 1).group(size)
    }
}

/// Request for parity of a transmission group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupWant {
    /// First place of the group.
    pub(crate) base: Place,
    /// Number of packets.
    pub(crate) count: u32,
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
