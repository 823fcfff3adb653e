//! Sets of an element's ports.

/// A set of ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ports(u64);

impl Ports {
    pub(crate) const NONE: Self = Self(0);

    /// Returns the set of port `number` alone, from 1; the empty set for 0.
    pub(crate) const fn one(number: u32) -> Self {
        Self(if number == 0 { 0 } else { 1 << (number - 1) })
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the numbers of the ports, from 1.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u32> {
        (1..=u64::BITS).filter(move |number| self.0 >> (number - 1) & 1 == 1)
    }
}
