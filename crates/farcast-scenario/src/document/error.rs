//! Errors of documents.

use core::fmt;

use farcast_core::units::UnitError;
use thiserror::Error;

use super::tree::KeySource;

/// Error of a document: one sentence with the place, the key, what is wrong and what is allowed.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("{place}: {}{problem}", Prefix(.key))]
pub struct DocumentError {
    /// Place of the error.
    pub place: ErrorPosition,
    /// Path of the key; empty if the error concerns no key.
    pub key: String,
    /// Description of what is wrong.
    pub problem: Box<Problem>,
}

/// Place of an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ErrorPosition {
    /// The document itself.
    File {
        /// The name that the document was given.
        name: String,
        /// The line, from 1; `None` if something is missing at the top.
        line: Option<usize>,
    },
    /// The text of an assignment that was laid over the document.
    Setting(String),
    /// The option of a command line that made an assignment.
    Option(String),
}

/// Kind of error, with the details for its message.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text is not TOML.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// A key is given twice; TOML allows it once.
    #[error("this key is given twice; give it once")]
    DuplicateKey,
    /// Tables or lists lie too deep within each other.
    #[error("this lies too deep; at most {limit} tables and lists may lie within each other")]
    TooDeep {
        /// Number of levels that are allowed.
        limit: usize,
    },
    /// A TOML number that fits neither a 64-bit integer nor a double.
    #[error("{value} is too large; {allowed}")]
    TooLarge {
        /// The number.
        value: String,
        /// Range of numbers that fit.
        allowed: &'static str,
    },
    /// A key that the schema does not have.
    #[error("this key is unknown{}; {}", Suggestion(.suggestion), KnownKeys(.known))]
    UnknownKey {
        /// The known key that is most like it.
        suggestion: Option<String>,
        /// The keys that the schema has at this place.
        known: Vec<String>,
    },
    /// A key that the schema requires.
    #[error("this key is missing {}; add it, as in {example}", Where(.table))]
    MissingKey {
        /// The table that lacks it; empty for the top.
        table: String,
        /// Line to add, as an example.
        example: String,
    },
    /// A value of the wrong kind.
    #[error("{value} is not {noun}; it must be {allowed}")]
    Kind {
        /// The value.
        value: String,
        /// Name of the kind that is needed, with its article.
        noun: &'static str,
        /// Form in which such a value is written.
        allowed: String,
    },
    /// A number outside its range.
    #[error("{value} is out of range; it must be {allowed}")]
    Range {
        /// The number.
        value: String,
        /// The range.
        allowed: String,
    },
    /// A number where a quantity with a unit is needed.
    #[error("{value} has no unit; {error}")]
    NoUnit {
        /// The number.
        value: String,
        /// Error that lists the units.
        error: UnitError,
    },
    /// Text that is not a quantity of the kind that is needed.
    #[error("{value} is {}; {error}", NoQuantity(.noun, .error))]
    Quantity {
        /// The text.
        value: String,
        /// The kind of quantity.
        noun: &'static str,
        /// Error that says what such a quantity looks like.
        error: UnitError,
    },
    /// Text that is not one of the choices.
    #[error("{value} is not known{}; it must be one of {}", Suggestion(.suggestion), CommaList(.known))]
    Choice {
        /// The text.
        value: String,
        /// The choice that is most like it.
        suggestion: Option<String>,
        /// All choices.
        known: Vec<String>,
    },
    /// Two members of a list have one name.
    #[error("two members of this list are named {name}; each must have its own name")]
    SameName {
        /// The name.
        name: String,
    },
    /// An assignment to a member of a list that is not there.
    #[error("this list has no member of this name; {}", KnownMembers(.known))]
    NoMember {
        /// The names of its members.
        known: Vec<String>,
    },
    /// An assignment that would replace a whole member of a list.
    #[error("a member of a list cannot be replaced; set one of its keys")]
    WholeMember,
    /// Text that is not an assignment.
    #[error("this is no assignment; write KEY=VALUE, as in link.forward.per=0.005")]
    Assignment,
    /// A value that the schema refuses for a reason of its own.
    #[error("{wrong}; {allowed}")]
    Refused {
        /// Description of what is wrong.
        wrong: String,
        /// Description of what is allowed.
        allowed: String,
    },
}

/// A problem with its place, before the document's name is known.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Fault {
    pub(super) source: KeySource,
    pub(super) key: String,
    pub(super) problem: Problem,
}

impl fmt::Display for ErrorPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line: Some(line) } => write!(f, "{name}:{line}"),
            Self::File { name, line: None } => f.write_str(name),
            Self::Setting(assignment) => write!(f, "--set {assignment}"),
            Self::Option(option) => write!(f, "--{option}"),
        }
    }
}

/// Display of the key and the colon behind it.
struct Prefix<'a>(&'a str);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

struct Suggestion<'a>(&'a Option<String>);

impl fmt::Display for Suggestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |word| write!(f, ", did you mean {word}"))
    }
}

/// Display of words with commas between them.
struct CommaList<'a>(&'a [String]);

impl fmt::Display for CommaList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

struct KnownKeys<'a>(&'a [String]);

impl fmt::Display for KnownKeys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("there are no keys here"),
            keys => write!(f, "the keys here are {}", CommaList(keys)),
        }
    }
}

struct KnownMembers<'a>(&'a [String]);

impl fmt::Display for KnownMembers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("its members have no names"),
            names => write!(f, "its members are {}", CommaList(names)),
        }
    }
}

/// Display of the table that lacks a key.
struct Where<'a>(&'a str);

impl fmt::Display for Where<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("at the top") } else { write!(f, "in the table {}", self.0) }
    }
}

/// Display of the way in which a text is not a quantity: out of range, or not of the kind.
struct NoQuantity<'a>(&'a str, &'a UnitError);

impl fmt::Display for NoQuantity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            UnitError::Range { .. } => f.write_str("out of range"),
            _ => write!(f, "not {}", self.0),
        }
    }
}
