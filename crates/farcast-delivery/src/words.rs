//! Terms of a protocol for things that every protocol has.

/// Noun for something that is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noun {
    /// Singular: `pass`.
    pub one: &'static str,
    /// Plural, also for none: `passes`.
    pub many: &'static str,
}

impl Noun {
    /// Returns the form that follows this number.
    pub const fn after(self, count: u64) -> &'static str {
        if count == 1 { self.one } else { self.many }
    }
}

/// Terms that the specification of a protocol uses, for pages, tables and comments in traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Words {
    /// Round of sending.
    pub round: Noun,
    /// Smallest numbered piece of an object.
    pub segment: Noun,
    /// Receiver's request for repair.
    pub nak: Noun,
    /// Query by which the sender asks receivers which segments they miss.
    pub query: Noun,
    /// Name of the event that the sender awaits after a round, as in "the sender waits for the Status Retry Timer".
    pub answers: &'static str,
}

impl Words {
    /// Terms of a protocol that has none of its own.
    pub const COMMON: Self = Self {
        round: Noun { one: "round", many: "rounds" },
        segment: Noun { one: "segment", many: "segments" },
        nak: Noun { one: "NAK", many: "NAKs" },
        query: Noun { one: "query", many: "queries" },
        answers: "answers",
    };
}

impl Default for Words {
    fn default() -> Self {
        Self::COMMON
    }
}
