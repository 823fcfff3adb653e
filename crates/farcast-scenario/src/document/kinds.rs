//! Kinds of values that a schema may ask for, with the way each is read and written.

use core::fmt::Display;
use core::marker::PhantomData;
use core::ops::RangeInclusive;
use core::str::FromStr;

use farcast_core::Span;
use farcast_core::units::{BitRate, Bytes, Probability, UnitError};

use super::error::Problem;
use super::suggestion::nearest;
use super::tree::{KeySource, Value, ValueNode, quoted, quoted_brief};

/// A kind of value.
pub(super) trait Kind {
    /// Rust type of the values.
    type Value;

    /// Reads a node; an error comes with its source, since a list may span lines.
    fn read(&self, node: &ValueNode) -> Result<Self::Value, (KeySource, Problem)>;

    /// Returns `value` as TOML.
    fn literal(&self, value: &Self::Value) -> String;

    /// Returns a value of this kind as TOML, for the message about a missing key.
    fn example(&self) -> String;

    /// Returns the name of this kind, with its article.
    fn noun(&self) -> String;

    /// Returns all values of this kind as TOML; empty if they cannot be listed.
    fn words(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A quantity with a unit.
pub(super) trait Quantity: FromStr<Err = UnitError> {
    /// Name of the kind, with its article.
    const NOUN: &'static str;
    /// Example value, as TOML.
    const EXAMPLE: &'static str;

    /// Returns the quantity as TOML, without loss.
    fn literal(&self) -> String;
}

impl Quantity for BitRate {
    const NOUN: &'static str = "a bit rate";
    const EXAMPLE: &'static str = "\"20 Mbit/s\"";

    fn literal(&self) -> String {
        quoted(&self.exact())
    }
}

impl Quantity for Span {
    const NOUN: &'static str = "a time";
    const EXAMPLE: &'static str = "\"250 ms\"";

    fn literal(&self) -> String {
        quoted(&self.exact())
    }
}

impl Quantity for Bytes {
    const NOUN: &'static str = "a size";
    const EXAMPLE: &'static str = "\"1 MiB\"";

    fn literal(&self) -> String {
        quoted(&self.exact())
    }
}

impl Quantity for Probability {
    const NOUN: &'static str = "a probability";
    const EXAMPLE: &'static str = "0.005";

    fn literal(&self) -> String {
        Value::Float(self.get()).literal()
    }
}

/// Kind of text that holds a quantity.
pub(super) struct WithUnit<Q>(PhantomData<Q>);

impl<Q> WithUnit<Q> {
    pub(super) const NEW: Self = Self(PhantomData);
}

impl<Q: Quantity> Kind for WithUnit<Q> {
    type Value = Q;

    fn read(&self, node: &ValueNode) -> Result<Q, (KeySource, Problem)> {
        let value = node.value.brief();
        let noun = Q::NOUN;
        let parsed = match &node.value {
            Value::Text(text) => text.parse(),
            // A quantity without units accepts a number; for others the error lists the units.
            Value::Integer(_) | Value::Float(_) => {
                if let Err(error @ UnitError::Unit { .. }) = "1".parse::<Q>() {
                    return Err((node.source, Problem::NoUnit { value, error }));
                }
                value.parse()
            }
            _ => "".parse(),
        };
        parsed.map_err(|error| (node.source, Problem::Quantity { value, noun, error }))
    }

    fn literal(&self, value: &Q) -> String {
        value.literal()
    }

    fn example(&self) -> String {
        Q::EXAMPLE.to_owned()
    }

    fn noun(&self) -> String {
        Q::NOUN.to_owned()
    }
}

/// Kind of a quantity, or of a word that stands for one.
pub(super) struct OrWord<'a, Q>(pub(super) (&'a str, Q));

impl<Q: Quantity + Clone + PartialEq> Kind for OrWord<'_, Q> {
    type Value = Q;

    fn read(&self, node: &ValueNode) -> Result<Q, (KeySource, Problem)> {
        let (word, value) = &self.0;
        match &node.value {
            Value::Text(text) if text == word => return Ok(value.clone()),
            Value::Text(text) if nearest(text, [*word]).is_some() => {
                let known = vec![quoted_brief(word), format!("{} such as {}", Q::NOUN, Q::EXAMPLE)];
                let suggestion = Some(quoted_brief(word));
                return Err((node.source, Problem::Choice { value: node.value.brief(), suggestion, known }));
            }
            _ => {}
        }
        WithUnit::NEW.read(node)
    }

    fn literal(&self, value: &Q) -> String {
        if *value == self.0.1 { quoted(self.0.0) } else { value.literal() }
    }

    fn example(&self) -> String {
        Q::EXAMPLE.to_owned()
    }

    fn noun(&self) -> String {
        format!("{} or {}", Q::NOUN, quoted(self.0.0))
    }
}

/// An integer within a range.
pub(super) struct Integer<T>(pub(super) RangeInclusive<T>);

impl<T: Copy + Display + PartialOrd + TryFrom<i64>> Kind for Integer<T> {
    type Value = T;

    fn read(&self, node: &ValueNode) -> Result<T, (KeySource, Problem)> {
        let allowed = || self.noun();
        let Value::Integer(integer) = node.value else {
            return Err((node.source, kind(&node.value, "an integer", allowed())));
        };
        let fitting = T::try_from(integer).ok().filter(|value| self.0.contains(value));
        fitting
            .ok_or_else(|| (node.source, Problem::Range { value: integer.to_string(), allowed: allowed() }))
    }

    fn literal(&self, value: &T) -> String {
        value.to_string()
    }

    fn example(&self) -> String {
        self.0.start().to_string()
    }

    fn noun(&self) -> String {
        format!("an integer from {} to {}", self.0.start(), self.0.end())
    }
}

/// A number within a range.
pub(super) struct Number(pub(super) RangeInclusive<f64>);

impl Kind for Number {
    type Value = f64;

    fn read(&self, node: &ValueNode) -> Result<f64, (KeySource, Problem)> {
        let allowed = || self.noun();
        let number = match node.value {
            Value::Integer(integer) => integer as f64,
            Value::Float(float) => float,
            _ => return Err((node.source, kind(&node.value, "a number", allowed()))),
        };
        if self.0.contains(&number) {
            return Ok(number);
        }
        Err((node.source, Problem::Range { value: node.value.literal(), allowed: allowed() }))
    }

    fn literal(&self, value: &f64) -> String {
        Value::Float(*value).literal()
    }

    fn example(&self) -> String {
        Value::Float(*self.0.start()).literal()
    }

    fn noun(&self) -> String {
        format!("a number from {} to {}", self.0.start(), self.0.end())
    }
}

/// Kind of any text.
pub(super) struct Text;

impl Kind for Text {
    type Value = String;

    fn read(&self, node: &ValueNode) -> Result<String, (KeySource, Problem)> {
        match &node.value {
            Value::Text(text) => Ok(text.clone()),
            other => Err((node.source, kind(other, "text", "text in quotes".to_owned()))),
        }
    }

    fn literal(&self, value: &String) -> String {
        quoted(value)
    }

    fn example(&self) -> String {
        "\"...\"".to_owned()
    }

    fn noun(&self) -> String {
        "text".to_owned()
    }
}

/// Kind of `true` and `false`.
pub(super) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, node: &ValueNode) -> Result<bool, (KeySource, Problem)> {
        match node.value {
            Value::Flag(flag) => Ok(flag),
            ref other => Err((node.source, kind(other, "a flag", self.noun()))),
        }
    }

    fn literal(&self, value: &bool) -> String {
        value.to_string()
    }

    fn example(&self) -> String {
        "true".to_owned()
    }

    fn noun(&self) -> String {
        "true or false".to_owned()
    }

    fn words(&self) -> Vec<String> {
        [true, false].map(|flag| self.literal(&flag)).to_vec()
    }
}

/// Kind of a few words, each of which stands for a value.
pub(super) struct Choice<'a, T>(pub(super) &'a [(&'a str, T)]);

impl<T: Clone + PartialEq> Kind for Choice<'_, T> {
    type Value = T;

    fn read(&self, node: &ValueNode) -> Result<T, (KeySource, Problem)> {
        let words = || self.0.iter().map(|(word, _)| *word);
        let chosen = match &node.value {
            Value::Text(text) => self.0.iter().find(|(word, _)| word == text),
            _ => None,
        };
        let problem = || Problem::Choice {
            value: node.value.brief(),
            suggestion: match &node.value {
                Value::Text(text) => nearest(text, words()).map(quoted_brief),
                _ => None,
            },
            known: words().map(quoted_brief).collect(),
        };
        chosen.map(|(_, value)| value.clone()).ok_or_else(|| (node.source, problem()))
    }

    fn literal(&self, value: &T) -> String {
        let word = self.0.iter().find(|(_, other)| other == value).map_or("", |(word, _)| *word);
        quoted(word)
    }

    fn example(&self) -> String {
        quoted(self.0.first().map_or("", |(word, _)| *word))
    }

    fn noun(&self) -> String {
        self.words().join(", ")
    }

    fn words(&self) -> Vec<String> {
        self.0.iter().map(|(word, _)| quoted(word)).collect()
    }
}

/// Kind of a list of values of one kind.
pub(super) struct List<K>(pub(super) K);

impl<K: Kind> Kind for List<K> {
    type Value = Vec<K::Value>;

    fn read(&self, node: &ValueNode) -> Result<Self::Value, (KeySource, Problem)> {
        match &node.value {
            Value::List(nodes) => nodes.iter().map(|node| self.0.read(node)).collect(),
            other => Err((node.source, kind(other, "a list", format!("a list, as in {}", self.example())))),
        }
    }

    fn literal(&self, value: &Self::Value) -> String {
        format!("[{}]", value.iter().map(|value| self.0.literal(value)).collect::<Vec<_>>().join(", "))
    }

    fn example(&self) -> String {
        format!("[{}]", self.0.example())
    }

    fn noun(&self) -> String {
        format!("a list, each of them {}", self.0.noun())
    }
}

/// Returns the problem of a value that is of another kind.
pub(super) fn kind(value: &Value, noun: &'static str, allowed: String) -> Problem {
    Problem::Kind { value: value.brief(), noun, allowed }
}
