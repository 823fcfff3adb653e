//! Options of `send` and `receive` by protocol.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use farcast_transfer::ProtocolName;

/// Returns the protocols that have the options under this heading: those that it names, or none if it names none and
/// every protocol has them.
fn whose(heading: &str) -> Vec<ProtocolName> {
    let is_named = |one: &ProtocolName| heading.split(" and ").any(|part| part == one.title());
    ProtocolName::ALL.into_iter().filter(is_named).collect()
}

/// Returns `true` if `protocol` has the options under this heading: they are its own, or they belong to every protocol.
pub(crate) fn has(protocol: ProtocolName, heading: &str) -> bool {
    let whose = whose(heading);
    whose.is_empty() || whose.contains(&protocol)
}

/// Checks the options in `given` to `command`. The error tells which option belongs to another protocol.
pub(crate) fn check(protocol: ProtocolName, command: &Command, given: &ArgMatches) -> Result<(), String> {
    for arg in command.get_arguments() {
        let heading = arg.get_help_heading().unwrap_or_default();
        let said = given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        if let (true, Some(option)) = (said && !has(protocol, heading), arg.get_long()) {
            let whose: Vec<&str> = whose(heading).into_iter().map(ProtocolName::word).collect();
            return Err(format!(
                "--{option} goes with --protocol {}, and this is {protocol}",
                whose.join(" or ")
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_protocol_has_a_scenario_and_options_of_its_own() {
        let mut cli = Cli::command();
        cli.build();
        let send = cli.find_subcommand("send").unwrap();
        for protocol in ProtocolName::ALL {
            assert!(farcast_sim::scenario::NAMES.contains(&protocol.word()), "{protocol:?}");
            let own = |arg: &clap::Arg| arg.get_help_heading() == Some(protocol.title());
            assert!(send.get_arguments().any(own), "{protocol:?}");
        }
    }

    #[test]
    fn an_option_of_another_protocol_is_refused() {
        let read = |words: &[&str]| {
            let send = ["farcast", "send", "file", "--to", "239.1.1.1", "--rate", "1 Mbit/s"];
            Cli::read(send.iter().chain(words).map(Into::into)).map_err(|error| error.to_string())
        };
        assert!(read(&["--protocol", "norm", "--backoff", "2", "--parity", "8"]).is_ok());
        assert!(read(&["--protocol", "mdp", "--robust", "2", "--counts", "payload"]).is_ok());
        assert!(read(&["--dtu-size", "1 kB"]).is_ok());
        let wrong = read(&["--protocol", "norm", "--dtu-size", "1 kB"]).unwrap_err();
        assert!(wrong.contains("--dtu-size goes with --protocol mftp, and this is norm"), "{wrong}");
        let wrong = read(&["--protocol", "mdp", "--backoff", "2"]).unwrap_err();
        assert!(wrong.contains("--backoff goes with --protocol norm, and this is mdp"), "{wrong}");
        let wrong = read(&["--robust", "2"]).unwrap_err();
        assert!(wrong.contains("--robust goes with --protocol norm or mdp, and this is mftp"), "{wrong}");
        let wrong = read(&["--backoff", "2"]).unwrap_err();
        assert!(wrong.contains("--backoff goes with --protocol norm, and this is mftp"), "{wrong}");
    }
}
