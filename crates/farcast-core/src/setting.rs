//! Settings, each declared once and read from any source of values.
//!
//! A [`Setting`] holds the key, the range, the option and the sentence of one setting. A protocol declares its settings as
//! constants and reads them from a [`SettingSource`]. A table of TOML is such a source. Another source only collects the
//! declarations, from which options and their help are made.

use alloc::string::{String, ToString as _};
use core::fmt;

use crate::units::Bytes;
use crate::{BitRate, Probability, Span};

/// Declaration of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Key in a table.
    pub key: &'static str,
    /// Kind of its values, with their range.
    pub kind: SettingKind,
    /// Sentence about the setting, without its default and without a full stop at its end.
    pub meaning: &'static str,
    /// Default in words, for a value that follows from other settings; empty for a fixed default.
    pub otherwise: &'static str,
    /// Unit of an integer in a report, such as `segments`; empty for none.
    pub unit: &'static str,
    /// Option of a command line that sets it.
    pub option: Option<SettingOption>,
}

/// Option of a command line that sets a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SettingOption {
    /// Name, without its dashes.
    pub name: &'static str,
    /// Form of the option.
    pub form: OptionForm,
    /// Other keys that have no effect beside the option.
    pub replaces: &'static [&'static str],
    /// Option that has to be there too.
    pub requires: Option<&'static str>,
}

/// Form of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionForm {
    /// Option with a value, which help calls by this name.
    Value(&'static str),
    /// Option without a value, which stands for this one.
    Flag(&'static str),
}

/// Kind of a setting's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingKind {
    /// Bit rate.
    Rate,
    /// Bit rate, or one of these words.
    RateOr(&'static [&'static str]),
    /// Time.
    Span,
    /// Size in octets.
    Bytes,
    /// Number of octets within a datagram, from the first number to the second.
    Octets(u64, u64),
    /// Probability.
    Probability,
    /// Integer from the first number to the second.
    Integer(u64, u64),
    /// Integer from the first number to the second, or one of these words.
    IntegerOr(u64, u64, &'static [&'static str]),
    /// One of these words.
    Words(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// Text, which the protocol understands.
    Text,
}

/// Value of a setting.
#[derive(Clone, PartialEq, Debug)]
pub enum SettingValue {
    /// Bit rate.
    Rate(BitRate),
    /// Time.
    Span(Span),
    /// Size in octets.
    Bytes(Bytes),
    /// Probability.
    Probability(Probability),
    /// Integer, or number of octets.
    Integer(u64),
    /// Word of the declaration.
    Word(&'static str),
    /// `true` or `false`.
    Flag(bool),
    /// Text.
    Text(String),
}

impl Setting {
    /// Declares the setting `key`, without a sentence ([`settings`](crate::settings) adds it).
    pub const fn new(key: &'static str, kind: SettingKind) -> Self {
        Self { key, kind, meaning: "", otherwise: "", unit: "", option: None }
    }

    /// Sets another kind.
    #[must_use]
    pub const fn kind(self, kind: SettingKind) -> Self {
        Self { kind, ..self }
    }

    /// Sets the default in words.
    #[must_use]
    pub const fn otherwise(self, otherwise: &'static str) -> Self {
        Self { otherwise, ..self }
    }

    /// Sets the unit of an integer.
    #[must_use]
    pub const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// Adds an option whose value help calls `value`.
    #[must_use]
    pub const fn option(self, name: &'static str, value: &'static str) -> Self {
        self.set_by(name, OptionForm::Value(value))
    }

    /// Adds an option without a value, which stands for `value`.
    #[must_use]
    pub const fn flag(self, name: &'static str, value: &'static str) -> Self {
        self.set_by(name, OptionForm::Flag(value))
    }

    const fn set_by(self, name: &'static str, form: OptionForm) -> Self {
        Self { option: Some(SettingOption { name, form, replaces: &[], requires: None }), ..self }
    }

    /// Names keys that have no effect beside the option.
    #[must_use]
    pub const fn replaces(self, keys: &'static [&'static str]) -> Self {
        match self.option {
            Some(option) => Self { option: Some(SettingOption { replaces: keys, ..option }), ..self },
            None => self,
        }
    }

    /// Names an option that has to be there too.
    #[must_use]
    pub const fn requires(self, other: &'static str) -> Self {
        match self.option {
            Some(option) => Self { option: Some(SettingOption { requires: Some(other), ..option }), ..self },
            None => self,
        }
    }

    /// Returns the name in a report: that of the option, or the key.
    pub fn name(&self) -> &'static str {
        self.option.map_or(self.key, |option| option.name)
    }
}

impl SettingValue {
    /// Returns the value as text that is read back as the same value, in the largest unit of which it is a multiple.
    pub fn exact(&self) -> String {
        match self {
            Self::Rate(rate) => rate.exact(),
            Self::Span(span) => span.exact(),
            Self::Bytes(bytes) => bytes.exact(),
            other => other.to_string(),
        }
    }
}

/// Declares settings, each with its doc comment as its sentence.
#[macro_export]
macro_rules! settings {
    ($($(#[doc = $line:literal])+ $visible:vis $name:ident = $setting:expr;)+) => { $(
        $(#[doc = $line])+
        $visible const $name: $crate::Setting =
            $crate::Setting { meaning: concat!($($line),+).trim_ascii_start(), ..$setting };
    )+ };
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => rate.fmt(f),
            Self::Span(span) => span.fmt(f),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Probability(probability) => write!(f, "{} %", probability.get() * 100.0),
            Self::Integer(integer) => integer.fmt(f),
            Self::Word(word) => f.write_str(word),
            Self::Flag(flag) => flag.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Type of Rust in which a setting is read.
pub trait SettingType: Sized {
    /// Returns the value of a setting.
    fn to_value(&self) -> SettingValue;

    /// Returns the value in this type; `None` if the setting is of another kind.
    fn from_value(value: SettingValue) -> Option<Self>;
}

macro_rules! quantities {
    ($($type:ty => $variant:ident),+ $(,)?) => { $(
        impl SettingType for $type {
            fn to_value(&self) -> SettingValue {
                SettingValue::$variant(self.clone())
            }

            fn from_value(value: SettingValue) -> Option<Self> {
                if let SettingValue::$variant(value) = value { Some(value) } else { None }
            }
        }
    )+ };
}

macro_rules! integers {
    ($($type:ty),+) => { $(
        impl SettingType for $type {
            fn to_value(&self) -> SettingValue {
                SettingValue::Integer((*self).into())
            }

            fn from_value(value: SettingValue) -> Option<Self> {
                if let SettingValue::Integer(value) = value { value.try_into().ok() } else { None }
            }
        }
    )+ };
}

quantities! {
    BitRate => Rate,
    Span => Span,
    Bytes => Bytes,
    Probability => Probability,
    bool => Flag,
    String => Text,
}
integers! { u8, u16, u32, u64 }

/// Source of the values of settings.
pub trait SettingSource: Sized {
    /// Error in a value.
    type Error;

    /// Returns the value of a setting; `default` if there is none.
    ///
    /// # Errors
    /// The value is not of the setting's kind, or out of its range.
    fn value(
        &mut self,
        setting: &'static Setting,
        default: Option<SettingValue>,
    ) -> Result<Option<SettingValue>, Self::Error>;

    /// Returns the value of a setting that has no default.
    ///
    /// # Errors
    /// There is no value, or the errors of [`value`](Self::value).
    fn required_value(&mut self, setting: &'static Setting) -> Result<SettingValue, Self::Error>;

    /// Reads the settings of a table within this one, which is empty if it is absent.
    ///
    /// # Errors
    /// The error of `read`, or the table has a key that `read` does not ask for.
    fn inner<T>(
        &mut self,
        table: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, Self::Error>,
    ) -> Result<T, Self::Error>;

    /// Returns the error for a value that is of the right kind and of no use: its fault, and what is allowed.
    fn refused(&self, setting: &'static Setting, wrong: &str, allowed: &str) -> Self::Error;

    /// Returns the value of a setting; `default` if there is none.
    ///
    /// # Errors
    /// Those of [`value`](Self::value).
    fn get<T: SettingType>(&mut self, setting: &'static Setting, default: T) -> Result<T, Self::Error> {
        let value = self.value(setting, Some(default.to_value()))?;
        Ok(value.and_then(T::from_value).unwrap_or(default))
    }

    /// Returns the value of a setting, if there is one.
    ///
    /// # Errors
    /// Those of [`value`](Self::value).
    fn optional<T: SettingType>(&mut self, setting: &'static Setting) -> Result<Option<T>, Self::Error> {
        Ok(self.value(setting, None)?.and_then(T::from_value))
    }

    /// Returns the value of a setting that has no default.
    ///
    /// # Errors
    /// Those of [`required_value`](Self::required_value).
    fn required<T: SettingType>(&mut self, setting: &'static Setting) -> Result<T, Self::Error> {
        let value = self.required_value(setting)?;
        T::from_value(value)
            .ok_or_else(|| self.refused(setting, "it is of another kind", "the kind it is read as"))
    }

    /// Returns the one of `values` for which the setting's word stands; `default` if there is none. The values are in
    /// the order of the declaration's words.
    ///
    /// # Errors
    /// Those of [`value`](Self::value).
    fn choose<T: Copy + PartialEq>(
        &mut self,
        setting: &'static Setting,
        values: &[T],
        default: T,
    ) -> Result<T, Self::Error> {
        let words: &[&str] = if let SettingKind::Words(words) = setting.kind { words } else { &[] };
        let pairs = || words.iter().copied().zip(values.iter().copied());
        let word = pairs().find(|(_, value)| *value == default).map(|(word, _)| SettingValue::Word(word));
        let chosen = self.value(setting, word)?;
        let found = pairs().find(|&(word, _)| chosen == Some(SettingValue::Word(word)));
        Ok(found.map_or(default, |(_, value)| value))
    }
}
