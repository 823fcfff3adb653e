//! Keys that readers ask for, recorded to describe a schema.

use farcast_core::Setting;

use super::kinds::Kind;

/// A key that a reader asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Path of the key, as errors and assignments write it: `link.stages.uplink.rate`.
    pub path: String,
    /// Table of the key as its header in the file, without names of members: `link.stages`; empty for the top.
    pub table: String,
    /// Name of the key.
    pub key: &'static str,
    /// Kind of value that is asked for.
    pub asked: Asked,
    /// Behaviour if the key is absent.
    pub presence: Presence,
    /// True if the document has the key.
    pub given: bool,
    /// Declaration of the key, if it has one.
    pub setting: Option<&'static Setting>,
}

/// Kind of value that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// A value.
    Value {
        /// Description: "a bit rate", "an integer from 1 to 5".
        noun: String,
        /// All possible values, as TOML; empty if they cannot be listed.
        words: Vec<String>,
        /// Example value, as TOML.
        example: String,
    },
    /// A table.
    Table,
    /// A list of tables.
    Tables,
}

/// Behaviour if a key is absent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Presence {
    /// The key must be present.
    Required,
    /// The key has this value, as TOML.
    Default(String),
    /// The key has no value.
    Optional,
}

impl Asked {
    /// Describes a value of `kind`.
    pub(super) fn value<K: Kind + ?Sized>(kind: &K) -> Self {
        Self::Value { noun: kind.noun(), words: kind.words(), example: kind.example() }
    }
}
