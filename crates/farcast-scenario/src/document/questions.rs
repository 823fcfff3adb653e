//! What readers ask for, kept for whoever describes a schema.

use super::kinds::Kind;

/// A key that a reader asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Where it would be, as errors and assignments write it: `link.stages.uplink.rate`.
    pub path: String,
    /// Its table as a header in the file has it, without names of members: `link.stages`; empty for the top.
    pub table: String,
    /// Its name.
    pub key: &'static str,
    /// What it may be.
    pub asked: Asked,
    /// What holds where it is absent.
    pub presence: Presence,
    /// Whether it was there.
    pub given: bool,
}

/// What a value may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// A value.
    Value {
        /// In words: "a bit rate", "an integer from 1 to 5".
        noun: String,
        /// All that it may be, as TOML, where that can be listed.
        words: Vec<String>,
        /// One, as TOML.
        example: String,
    },
    /// A table.
    Table,
    /// A list of tables.
    Tables,
}

/// What holds where a key is absent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It must be there.
    Required,
    /// This value, as TOML.
    Default(String),
    /// Nothing.
    Optional,
}

impl Asked {
    /// A value of this kind.
    pub(super) fn value<K: Kind>(kind: &K) -> Self {
        Self::Value { noun: kind.noun(), words: kind.words(), example: kind.example() }
    }
}
