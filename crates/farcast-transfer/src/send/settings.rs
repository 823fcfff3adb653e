//! Settings of a protocol, from a plan, from keys and from options.
//!
//! Each protocol declares its settings in its own crate ([`farcast_core::setting`]). An option is a key in other clothes: it
//! is laid over the plan, and the protocol reads the result. The options of all protocols, and their help, are made from
//! the declarations.

use std::path::PathBuf;

use farcast_core::BitRate;
use farcast_core::setting::{OptionForm, Setting, SettingKind, SettingSource, SettingValue};
use farcast_delivery::settings::SendRate;
use farcast_scenario::{Document, DocumentError, Reader};

use super::SendJob;
use crate::{Error, ProtocolName};

/// Choices of the protocol's settings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProtocolOptions {
    /// File with settings: a TOML table "protocol" with the keys of a scenario.
    pub plan: Option<PathBuf>,
    /// Keys of that table with their values, as in `parity` and `16`. They go before the file.
    pub keys: Vec<(String, String)>,
    /// Options by their names without dashes, with their values, as in `parity` and `16`. They go before the keys. The
    /// value of an option that takes none is not read.
    pub options: Vec<(String, String)>,
}

impl ProtocolOptions {
    /// Returns the value of an option.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(option, _)| option == name).map(|(_, value)| value.as_str())
    }
}

/// Setting that a protocol has.
pub(super) struct Declared {
    /// Path of its key, as in `srt.n`.
    path: String,
    /// Its declaration.
    pub(super) setting: &'static Setting,
    /// Fixed default.
    #[cfg_attr(not(feature = "clap"), expect(dead_code, reason = "help alone shows it"))]
    default: Option<SettingValue>,
}

impl Declared {
    /// Returns `true` if the option called `name` sets it.
    fn is_set_by(&self, name: &str) -> bool {
        self.setting.option.is_some_and(|option| option.name == name)
    }

    /// Returns the default in words.
    #[cfg(feature = "clap")]
    pub(super) fn default_in_words(&self) -> String {
        match &self.default {
            Some(SettingValue::Word(word)) => option_word(word),
            Some(value) => value.exact(),
            None => self.setting.otherwise.into(),
        }
    }

    /// Returns the value of the key for which the option's value stands.
    fn value(&self, text: &str) -> String {
        match (self.setting.option.map(|option| option.form), self.setting.kind) {
            (Some(OptionForm::Flag(value)), _) => value.into(),
            (_, SettingKind::Text) => format!("{text:?}"),
            (_, SettingKind::Words(words)) => {
                let word = words.iter().find(|word| option_word(word) == text);
                word.map_or(text, |word| word).into()
            }
            _ => text.into(),
        }
    }
}

/// Returns a word of a key as options write it.
pub(super) fn option_word(word: &str) -> String {
    word.replace('_', "-")
}

/// Source that has no value, and notes what is asked for.
#[derive(Default)]
struct Declarations {
    all: Vec<Declared>,
    table: Option<&'static str>,
}

impl Declarations {
    fn note(&mut self, setting: &'static Setting, default: Option<SettingValue>) {
        let path = match self.table {
            Some(table) => format!("{table}.{}", setting.key),
            None => setting.key.into(),
        };
        if self.all.iter().all(|one| one.path != path) {
            self.all.push(Declared { path, setting, default });
        }
    }
}

impl SettingSource for Declarations {
    type Error = ();

    fn value(
        &mut self,
        setting: &'static Setting,
        default: Option<SettingValue>,
    ) -> Result<Option<SettingValue>, ()> {
        self.note(setting, default.clone());
        Ok(default)
    }

    fn required_value(&mut self, setting: &'static Setting) -> Result<SettingValue, ()> {
        self.note(setting, None);
        // Nothing but a rate has no default.
        BitRate::from_bps(1_000_000).map(SettingValue::Rate).ok_or(())
    }

    fn inner<T>(
        &mut self,
        table: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, ()>,
    ) -> Result<T, ()> {
        self.table = Some(table);
        let value = read(self);
        self.table = None;
        value
    }

    fn refused(&self, _setting: &'static Setting, _wrong: &str, _allowed: &str) {}
}

/// Returns the settings that a protocol has, in the order in which it reads them.
pub(super) fn declared(protocol: ProtocolName) -> Vec<Declared> {
    let mut all = Declarations::default();
    let source = &mut all;
    // Defaults are right.
    let _ = match protocol {
        ProtocolName::Mftp => farcast_mftp::Settings::read(source).map(drop),
        ProtocolName::Norm => farcast_norm::Settings::read(source).map(drop),
        ProtocolName::Mdp => farcast_mdp::Settings::read(source).map(drop),
        ProtocolName::Pgm => farcast_pgm::Settings::read(source).map(drop),
        ProtocolName::OneWay => farcast_oneway::settings::Settings::read(source).map(drop),
    };
    all.all
}

/// Returns the settings that `job` asks for, as `read` reads them. Options override keys, keys override a plan, and a plan
/// overrides defaults.
///
/// # Errors
/// The first mistake, with the option or the place in the plan.
pub(super) fn read<S>(
    job: &SendJob,
    read: impl FnOnce(&mut Reader<'_>) -> Result<S, DocumentError>,
) -> Result<S, Error> {
    let protocol = job.protocol_name();
    check_rate(job, protocol)?;
    let document = document(job, protocol)?;
    let settings = || {
        let mut top = document.root();
        let mut table = top.table("protocol")?;
        let word = protocol.word();
        match protocol {
            ProtocolName::Mftp => table.choice_or("name", &[(word, ())], ())?,
            _ => table.choice("name", &[(word, ())])?,
        }
        let settings = read(&mut table)?;
        table.finish()?;
        top.finish()?;
        Ok(settings)
    };
    settings().map_err(|error: DocumentError| Error::wrong(error))
}

/// Refuses a job without a rate, and one whose receivers cannot set the pace.
fn check_rate(job: &SendJob, protocol: ProtocolName) -> Result<(), Error> {
    let ProtocolOptions { plan, keys, .. } = &job.protocol;
    let local = match (job.rate, protocol) {
        (None, _) if plan.is_some() || !keys.is_empty() => return Ok(()),
        (None, ProtocolName::Mftp) => ", or --rate max on a local network, where receivers set the pace",
        (None, _) => "",
        (Some(SendRate::Max), protocol) if protocol != ProtocolName::Mftp => {
            return Err(Error::usage(format!(
                "--rate max is MFTP's, where receivers set the pace: by {} give a rate, as in --rate \"20 Mbit/s\"",
                protocol.title()
            )));
        }
        (Some(_), _) => return Ok(()),
    };
    Err(Error::usage(format!(
        "--rate is missing: give what the slowest link on the way carries, such as --rate \"20 Mbit/s\" for a satellite \
         carrier of 20 Mbit/s (everything above it is lost in its queue){local}"
    )))
}

/// Returns the document with the plan of `job`, its keys and its options.
fn document(job: &SendJob, protocol: ProtocolName) -> Result<Document, Error> {
    let ProtocolOptions { plan, keys, options } = &job.protocol;
    let mut document = match plan {
        Some(path) => {
            let unreadable = |error| Error::usage(format!("{}: {error}", path.display()));
            let text = farcast_scenario::document::text_of(path).map_err(unreadable)?;
            Document::parse(&path.display().to_string(), &text)
        }
        None => Document::parse("settings", &format!("[protocol]\nname = \"{protocol}\"\n")),
    }
    .map_err(Error::wrong)?;
    for (key, value) in keys {
        document.set(&format!("protocol.{key}={value}")).map_err(Error::wrong)?;
    }
    let rate = job.rate.map(|rate| match rate {
        SendRate::Max => "max".to_owned(),
        SendRate::Limit(rate) => rate.exact(),
    });
    if let Some(rate) = rate {
        document.set_by_option("rate", "protocol.rate", &rate).map_err(Error::wrong)?;
    }
    let declared = declared(protocol);
    for (name, text) in options {
        let one = declared.iter().find(|one| one.is_set_by(name)).ok_or_else(|| foreign(name, protocol))?;
        for key in one.setting.option.map_or(&[][..], |option| option.replaces) {
            document.remove(&format!("protocol.{key}"));
        }
        let key = format!("protocol.{}", one.path);
        document.set_by_option(name, &key, &one.value(text)).map_err(Error::wrong)?;
    }
    Ok(document)
}

/// Returns the error for an option that the protocol does not have.
fn foreign(option: &str, protocol: ProtocolName) -> Error {
    let has = |one: &ProtocolName| declared(*one).iter().any(|one| one.is_set_by(option));
    let whose: Vec<&str> = ProtocolName::ALL.into_iter().filter(has).map(ProtocolName::word).collect();
    Error::usage(match &whose[..] {
        [] => format!("there is no option --{option} for a setting"),
        whose => format!("--{option} goes with --protocol {}, and this is {protocol}", whose.join(" or ")),
    })
}

/// Returns the values that came into effect, by the names of their options.
pub(super) fn in_effect(values: Vec<(&'static Setting, SettingValue)>) -> Vec<(&'static str, String)> {
    let has_option = |setting: &Setting| setting.option.is_some() || setting.key == "rate";
    let shown = values.into_iter().filter(|(setting, _)| has_option(setting));
    let text = |(setting, value): (&'static Setting, SettingValue)| {
        let unit = if setting.unit.is_empty() { "" } else { " " };
        (setting.name(), format!("{value}{unit}{}", setting.unit))
    };
    shown.map(text).collect()
}
