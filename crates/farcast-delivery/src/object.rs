//! Identifiers of objects.

use core::fmt;

/// Identifier of an object that is under way.
///
/// A sender counts the objects that its owner gave it, from 0. At a receiver the engine chooses the number: no two
/// objects that were offered and have not ended share one, even from different senders. The number is not on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(u32);

impl ObjectId {
    /// The first object, and the only one of a protocol that delivers one object at a time.
    pub const FIRST: Self = Self(0);

    /// Creates the identifier with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}", self.0)
    }
}
