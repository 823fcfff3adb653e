//! Tables as a source of settings that are declared elsewhere.

use farcast_core::Span;
use farcast_core::setting::{Setting, SettingKind, SettingSource, SettingType, SettingValue};
use farcast_core::units::{BitRate, Bytes, Probability};

use super::error::Problem;
use super::kinds::{Flag, Integer, Kind, Text, WithUnit};
use super::suggestion::nearest;
use super::tree::{KeySource, Value, ValueNode, quoted, quoted_brief};
use super::{DocumentError, Reader};

type AnyKind = Box<dyn Kind<Value = SettingValue>>;

/// Returns the kind of value that a declaration asks for.
fn kind_of(kind: SettingKind) -> AnyKind {
    match kind {
        SettingKind::Rate => Box::new(As(WithUnit::<BitRate>::NEW)),
        SettingKind::RateOr(words) => Box::new(WordOr { words, kind: Some(kind_of(SettingKind::Rate)) }),
        SettingKind::Span => Box::new(As(WithUnit::<Span>::NEW)),
        SettingKind::Bytes => Box::new(As(WithUnit::<Bytes>::NEW)),
        SettingKind::Octets(least, most) => Box::new(Octets { least, most }),
        SettingKind::Probability => Box::new(As(WithUnit::<Probability>::NEW)),
        SettingKind::Integer(least, most) => Box::new(As(Integer(least..=most))),
        SettingKind::IntegerOr(least, most, words) => {
            Box::new(WordOr { words, kind: Some(kind_of(SettingKind::Integer(least, most))) })
        }
        SettingKind::Words(words) => Box::new(WordOr { words, kind: None }),
        SettingKind::Flag => Box::new(As(Flag)),
        SettingKind::Text => Box::new(As(Text)),
    }
}

/// Kind of another kind's values, as values of settings.
struct As<K>(K);

impl<K: Kind<Value: SettingType>> Kind for As<K> {
    type Value = SettingValue;

    fn read(&self, node: &ValueNode) -> Result<SettingValue, (KeySource, Problem)> {
        self.0.read(node).map(|value| value.to_value())
    }

    fn literal(&self, value: &SettingValue) -> String {
        let value = K::Value::from_value(value.clone());
        value.map_or_else(String::new, |value| self.0.literal(&value))
    }

    fn example(&self) -> String {
        self.0.example()
    }

    fn noun(&self) -> String {
        self.0.noun()
    }

    fn words(&self) -> Vec<String> {
        self.0.words()
    }
}

/// Kind of a number of octets within a range, as a size; an option of a command line may leave out the unit.
struct Octets {
    least: u64,
    most: u64,
}

impl Kind for Octets {
    type Value = SettingValue;

    fn read(&self, node: &ValueNode) -> Result<SettingValue, (KeySource, Problem)> {
        let octets = match (&node.value, node.source) {
            (Value::Integer(octets), KeySource::Assignment(_)) => u64::try_from(*octets).unwrap_or(u64::MAX),
            _ => match WithUnit::<Bytes>::NEW.read(node) {
                Ok(Bytes(octets)) => octets,
                Err((source, Problem::Quantity { value, noun, .. })) => {
                    return Err((source, Problem::Kind { value, noun, allowed: self.noun() }));
                }
                Err(error) => return Err(error),
            },
        };
        if (self.least..=self.most).contains(&octets) {
            return Ok(SettingValue::Integer(octets));
        }
        Err((node.source, Problem::Range { value: node.value.brief(), allowed: self.noun() }))
    }

    fn literal(&self, value: &SettingValue) -> String {
        let octets = u64::from_value(value.clone()).unwrap_or_default();
        WithUnit::<Bytes>::NEW.literal(&Bytes(octets))
    }

    fn example(&self) -> String {
        WithUnit::<Bytes>::NEW.literal(&Bytes(self.least))
    }

    fn noun(&self) -> String {
        format!("a size from {} B to {} B", self.least, self.most)
    }
}

/// Kind of a few words, or of another kind's values beside them.
struct WordOr {
    words: &'static [&'static str],
    kind: Option<AnyKind>,
}

impl Kind for WordOr {
    type Value = SettingValue;

    fn read(&self, node: &ValueNode) -> Result<SettingValue, (KeySource, Problem)> {
        let text = if let Value::Text(text) = &node.value { Some(text.as_str()) } else { None };
        if let Some(word) = self.words.iter().find(|word| Some(**word) == text) {
            return Ok(SettingValue::Word(word));
        }
        let suggestion = text.and_then(|text| nearest(text, self.words.iter().copied()));
        let mut known: Vec<String> = self.words.iter().map(|word| quoted_brief(word)).collect();
        if let Some(kind) = &self.kind {
            if suggestion.is_none() {
                return kind.read(node);
            }
            known.push(format!("a value such as {}", kind.example()));
        }
        let suggestion = suggestion.map(quoted_brief);
        Err((node.source, Problem::Choice { value: node.value.brief(), suggestion, known }))
    }

    fn literal(&self, value: &SettingValue) -> String {
        match (value, &self.kind) {
            (SettingValue::Word(word), _) => quoted(word),
            (value, Some(kind)) => kind.literal(value),
            (_, None) => String::new(),
        }
    }

    fn example(&self) -> String {
        let first = || quoted(self.words.first().copied().unwrap_or_default());
        self.kind.as_ref().map_or_else(first, |kind| kind.example())
    }

    fn noun(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        let kind = self.kind.as_ref().map(|kind| kind.noun());
        kind.map_or_else(|| words.join(", "), |noun| format!("{noun} or {}", words.join(" or ")))
    }

    fn words(&self) -> Vec<String> {
        let all = if self.kind.is_some() { &[] } else { self.words };
        all.iter().map(|word| quoted(word)).collect()
    }
}

impl SettingSource for Reader<'_> {
    type Error = DocumentError;

    fn value(
        &mut self,
        setting: &'static Setting,
        default: Option<SettingValue>,
    ) -> Result<Option<SettingValue>, DocumentError> {
        let kind = kind_of(setting.kind);
        let value = match default {
            Some(default) => self.or(setting.key, &*kind, default).map(Some),
            None => self.optional(setting.key, &*kind),
        };
        self.declare(setting);
        value
    }

    fn required_value(&mut self, setting: &'static Setting) -> Result<SettingValue, DocumentError> {
        let value = self.required(setting.key, &*kind_of(setting.kind));
        self.declare(setting);
        value
    }

    fn inner<T>(
        &mut self,
        table: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, DocumentError>,
    ) -> Result<T, DocumentError> {
        let mut inner = self.table_or_empty(table)?;
        let value = read(&mut inner)?;
        inner.finish()?;
        Ok(value)
    }

    fn refused(&self, setting: &'static Setting, wrong: &str, allowed: &str) -> DocumentError {
        self.refuse(setting.key, wrong, allowed)
    }
}
