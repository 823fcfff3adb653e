//! Arguments of a command line for the settings of protocols, made from their declarations.

use clap::builder::PossibleValuesParser;
use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use farcast_core::setting::{OptionForm, SettingKind, SettingOption};

use super::settings::{Declared, ProtocolOptions, declared, option_word};
use crate::ProtocolName;
use crate::headings::{MFTP_AND_NORM, MFTP_AND_PGM, NORM_AND_MDP, NORM_AND_PGM, NORM_MDP_AND_PGM};

/// Option of a command line, with the setting of each protocol that has it.
struct SharedOption {
    option: SettingOption,
    settings: Vec<(ProtocolName, Declared)>,
}

/// Returns the options of all protocols, each once, in the order of the protocols.
fn options() -> Vec<SharedOption> {
    let mut all: Vec<SharedOption> = Vec::new();
    for protocol in ProtocolName::ALL {
        for one in declared(protocol) {
            let Some(option) = one.setting.option else { continue };
            match all.iter_mut().find(|other| other.option.name == option.name) {
                Some(other) => other.settings.push((protocol, one)),
                None => all.push(SharedOption { option, settings: vec![(protocol, one)] }),
            }
        }
    }
    all
}

/// Returns the heading of options that these protocols have.
fn heading(protocols: &[ProtocolName]) -> &'static str {
    use ProtocolName::{Mdp, Mftp, Norm, Pgm};
    match protocols {
        [one] => one.title(),
        [Mftp, Norm] => MFTP_AND_NORM,
        [Mftp, Pgm] => MFTP_AND_PGM,
        [Norm, Mdp] => NORM_AND_MDP,
        [Norm, Pgm] => NORM_AND_PGM,
        [Norm, Mdp, Pgm] => NORM_MDP_AND_PGM,
        _ => "Protocol",
    }
}

/// Returns the words in a row, with "and" before the last.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

impl SharedOption {
    /// Returns the words that the option takes, if it takes nothing else.
    fn words(&self) -> Option<&'static [&'static str]> {
        let words = |(_, one): &(ProtocolName, Declared)| match one.setting.kind {
            SettingKind::Words(words) => Some(words),
            _ => None,
        };
        let first = self.settings.first().and_then(words)?;
        self.settings.iter().all(|one| words(one) == Some(first)).then_some(first)
    }

    /// Returns the default in words, with the protocols that have another one.
    fn default(&self) -> String {
        let mut defaults: Vec<(String, Vec<&str>)> = Vec::new();
        for (protocol, one) in &self.settings {
            let text = one.default_in_words();
            match defaults.iter_mut().find(|(other, _)| *other == text) {
                Some((_, titles)) => titles.push(protocol.title()),
                None => defaults.push((text, vec![protocol.title()])),
            }
        }
        let text = |(at, (text, titles)): (usize, (String, Vec<&str>))| match at {
            0 => text,
            _ => format!("{}: {text}", listed(&titles)),
        };
        defaults.into_iter().enumerate().map(text).collect::<Vec<_>>().join("; ")
    }

    /// Returns the sentence, which is that of the first protocol that has the option.
    fn sentence(&self) -> &'static str {
        self.settings.first().map_or("", |(_, one)| one.setting.meaning)
    }

    /// Returns the argument. It conflicts with the options in `all` whose keys it replaces.
    fn argument(&self, all: &[Self]) -> Arg {
        let SettingOption { name, form, replaces, requires } = self.option;
        let protocols: Vec<ProtocolName> = self.settings.iter().map(|(protocol, _)| *protocol).collect();
        let mut argument = Arg::new(name).long(name).help_heading(heading(&protocols));
        let replaced =
            |other: &&Self| other.settings.iter().any(|(_, one)| replaces.contains(&one.setting.key));
        for other in all.iter().filter(replaced) {
            argument = argument.conflicts_with(other.option.name);
        }
        if let Some(other) = requires {
            argument = argument.requires(other);
        }
        let OptionForm::Value(value) = form else {
            return argument.action(ArgAction::SetTrue).help(self.sentence());
        };
        let mut help = self.sentence().to_owned();
        let default = self.default();
        if !default.is_empty() {
            help = format!("{help} [default: {default}]");
        }
        match self.words() {
            Some(words) if words.iter().all(|word| !word.contains('_')) => {
                argument = argument.value_parser(PossibleValuesParser::new(words));
            }
            Some(words) => {
                let words: Vec<String> = words.iter().map(|word| option_word(word)).collect();
                help = format!("{help} [possible values: {}]", words.join(", "));
            }
            None => {}
        }
        argument.value_name(value).help(help)
    }
}

impl Args for ProtocolOptions {
    fn augment_args(command: Command) -> Command {
        let plan = Arg::new("plan")
            .long("plan")
            .help_heading("Protocol")
            .value_name("FILE")
            .value_parser(clap::value_parser!(std::path::PathBuf))
            .help(
                "Settings from this file: a TOML table \"protocol\" with the keys of a scenario. Its name selects the \
                 protocol, unless --protocol does. Options of the command line override it",
            );
        let all = options();
        command.args(all.iter().map(|one| one.argument(&all))).arg(plan)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ProtocolOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given = Self { plan: matches.get_one("plan").cloned(), ..Self::default() };
        for SharedOption { option, .. } in options() {
            let value = match option.form {
                OptionForm::Flag(value) => matches.get_flag(option.name).then(|| value.to_owned()),
                OptionForm::Value(_) => matches.get_one::<String>(option.name).cloned(),
            };
            given.options.extend(value.map(|value| (option.name.to_owned(), value)));
        }
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
