//! Which object.

use core::fmt;

/// One of the objects of a delivery that are under way at the same time.
///
/// At a sender it counts the objects that its owner was given, from 0. At a receiver the engine chooses it: no two
/// objects that it has offered and that have not ended share one, whoever sends them. It is not on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(u32);

impl ObjectId {
    /// The first, and the only one of a protocol that delivers one object at a time.
    pub const FIRST: Self = Self(0);

    /// The object of this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}", self.0)
    }
}
