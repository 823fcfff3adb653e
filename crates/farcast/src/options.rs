//! Options of a command with their values, for the settings on a page.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use farcast_transfer::ProtocolName;

use crate::protocols;

/// Most values of one option that are shown: a user may send a thousand paths.
const MOST_VALUES: usize = 8;

/// Option with its value on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chosen {
    name: String,
    /// Value, or `None` without a value on the command line and without a fixed default.
    value: Option<String>,
    /// Set if the command line has the option.
    said: bool,
}

/// Returns the options of `command` that apply to this protocol, with their values in `given`. Options about output are
/// no settings and are left out.
pub(crate) fn options(command: &Command, given: &ArgMatches, protocol: ProtocolName) -> Vec<Chosen> {
    let of_it = |arg: &&Arg| arg.get_help_heading().is_none_or(|heading| protocols::has(protocol, heading));
    let is_setting = |arg: &&Arg| {
        let id = arg.get_id().as_str();
        !arg.is_hide_set() && arg.get_help_heading() != Some("Output") && !["help", "version"].contains(&id)
    };
    // `--one-way` is shown as the protocol, and replications belong to a prediction.
    let is_no_matter = |arg: &&Arg| ["one_way", "replications"].contains(&arg.get_id().as_str());
    let shown = command.get_arguments().filter(of_it).filter(is_setting).filter(|arg| !is_no_matter(arg));
    let one = |arg: &Arg| {
        let id = arg.get_id().as_str();
        let mut said = given.value_source(id) == Some(ValueSource::CommandLine);
        let mut value = match arg.get_action() {
            ArgAction::SetTrue => Some(if given.get_flag(id) { "yes" } else { "no" }.to_owned()),
            _ => values(given, id),
        };
        if id == "speaks" {
            (said, value) = (said || protocol == ProtocolName::OneWay, Some(protocol.word().into()));
        }
        Chosen { name: arg.get_long().unwrap_or(id).to_owned(), value, said }
    };
    shown.map(one).collect()
}

fn values(given: &ArgMatches, id: &str) -> Option<String> {
    let values: Vec<_> = given.get_raw(id)?.map(|value| value.to_string_lossy().into_owned()).collect();
    let mut shown = values.iter().take(MOST_VALUES).cloned().collect::<Vec<_>>().join(", ");
    if values.len() > MOST_VALUES {
        shown = format!("{shown} and {} more", values.len() - MOST_VALUES);
    }
    Some(shown)
}

/// Returns the settings in effect. The values in `effective` come first, by the names of their options.
pub(crate) fn in_effect(options: &[Chosen], effective: &[(&'static str, String)]) -> Vec<(String, String)> {
    let has_plan = options.iter().any(|one| one.name == "plan" && one.said);
    let one = |option: &Chosen| {
        let found = effective.iter().find(|(name, _)| *name == option.name).map(|(_, value)| value.clone());
        // A plan says only what came into effect.
        let origin = match (option.said, has_plan && found.is_some()) {
            (true, _) => "",
            (false, true) => " (plan or default)",
            (false, false) => " (default)",
        };
        let value = found.or_else(|| option.value.clone())?;
        Some((option.name.clone(), format!("{value}{origin}")))
    };
    options.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};

    fn chosen(words: &[&str]) -> Vec<Chosen> {
        let cli = Cli::read(["farcast"].iter().chain(words).map(Into::into)).unwrap();
        match cli.command {
            Command::Send(args) => args.page.options,
            Command::Receive(args) => args.page.options,
            _ => panic!("{words:?}"),
        }
    }

    fn of<'a>(settings: &'a [(String, String)], name: &str) -> Option<&'a str> {
        settings.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn what_nobody_said_is_marked() {
        let send = ["send", "a", "b", "--to", "239.1.1.1", "--rate", "1 Mbit/s", "--parity", "auto"];
        let options = chosen(&[&send[..], &["--receivers", "ant,bee"]].concat());
        let effective =
            [("parity", "16 symbols of a block".to_owned()), ("block-size", "128 DTUs".to_owned())];
        let settings = in_effect(&options, &effective);
        for (name, value) in [
            ("paths", "a, b"),
            ("to", "239.1.1.1"),
            ("receivers", "ant, bee"),
            ("protocol", "mftp (default)"),
            ("parity", "16 symbols of a block"),
            ("block-size", "128 DTUs (default)"),
            ("ttl", "1 (default)"),
            ("unlimited", "no (default)"),
        ] {
            assert_eq!(of(&settings, name), Some(value), "{settings:?}");
        }
        // The settings have no option of another protocol, without a value, or about output.
        for name in ["backoff", "spread", "replications", "json", "report", "help"] {
            assert_eq!(of(&settings, name), None, "{settings:?}");
        }
    }

    #[test]
    fn a_plan_may_have_said_it() {
        let send = ["send", "a", "--to", "239.1.1.1", "--protocol", "norm", "--plan", "best.toml"];
        let settings = in_effect(&chosen(&send), &[("backoff", "4".to_owned())]);
        assert_eq!(of(&settings, "backoff"), Some("4 (plan or default)"));
        assert_eq!(of(&settings, "ttl"), Some("1 (default)"));
    }

    #[test]
    fn one_way_is_a_protocol() {
        let settings =
            in_effect(&chosen(&["receive", "--from", "239.1.1.1", "--into", "d", "--one-way"]), &[]);
        assert_eq!((of(&settings, "protocol"), of(&settings, "one-way")), (Some("one-way"), None));
        assert_eq!(of(&settings, "patience"), Some("120 s (default)"));
    }
}
