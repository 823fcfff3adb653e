//! What a protocol calls what every protocol has.

/// A word for something that is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noun {
    /// Of one: `pass`.
    pub one: &'static str,
    /// Of none and of many: `passes`.
    pub many: &'static str,
}

impl Noun {
    /// As it follows this number.
    pub const fn after(self, count: u64) -> &'static str {
        if count == 1 { self.one } else { self.many }
    }
}

/// The field's words of a protocol, for what is told of it: pages, tables, comments in traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Words {
    /// A round of sending.
    pub round: Noun,
    /// The smallest numbered piece of an object.
    pub segment: Noun,
    /// A receiver's request for repair.
    pub nak: Noun,
    /// By which the sender asks receivers what they miss.
    pub query: Noun,
    /// What the sender waits for behind a round, as in "the sender waits for the Status Retry Timer".
    pub answers: &'static str,
}

impl Words {
    /// The words of a protocol that has none of its own.
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
