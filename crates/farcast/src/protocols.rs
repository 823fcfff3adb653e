//! Options of `send` and `receive` by protocol.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use farcast_transfer::ProtocolName;
use farcast_transfer::headings::{MFTP_AND_PGM, NORM_AND_MDP, NORM_AND_PGM, NORM_MDP_AND_PGM};

/// Returns the headings of a protocol's options. The first heading is for options of this protocol alone, and the
/// others are shared with other protocols.
const fn headings(protocol: ProtocolName) -> &'static [&'static str] {
    match protocol {
        ProtocolName::Mftp => &["MFTP", MFTP_AND_PGM],
        ProtocolName::Norm => &["NORM", NORM_AND_MDP, NORM_MDP_AND_PGM, NORM_AND_PGM],
        ProtocolName::Mdp => &["MDP", NORM_AND_MDP, NORM_MDP_AND_PGM],
        ProtocolName::Pgm => &["PGM", NORM_MDP_AND_PGM, NORM_AND_PGM, MFTP_AND_PGM],
        ProtocolName::OneWay => &["One-way"],
    }
}

/// Returns `true` if `protocol` has the options under this heading: they are its own, or they belong to every protocol.
pub(crate) fn has(protocol: ProtocolName, heading: &str) -> bool {
    let of_one = ProtocolName::ALL.into_iter().any(|one| headings(one).contains(&heading));
    !of_one || headings(protocol).contains(&heading)
}

/// Checks the options in `given` to `command`. The error tells which option belongs to another protocol.
pub(crate) fn check(protocol: ProtocolName, command: &Command, given: &ArgMatches) -> Result<(), String> {
    for other in ProtocolName::ALL {
        let others = |heading| headings(other).contains(&heading) && !headings(protocol).contains(&heading);
        for arg in command.get_arguments().filter(|arg| arg.get_help_heading().is_some_and(others)) {
            let said = given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
            if let (true, Some(option)) = (said, arg.get_long()) {
                let heading = arg.get_help_heading().unwrap_or_default();
                let whose = ProtocolName::ALL.into_iter().filter(|one| headings(*one).contains(&heading));
                let whose: Vec<&str> = whose.map(ProtocolName::word).collect();
                let (own, whose) = (protocol.word(), whose.join(" or "));
                return Err(format!("--{option} goes with --protocol {whose}, and this is {own}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn each_protocol_has_a_scenario_and_options_of_its_own() {
        let mut cli = Cli::command();
        cli.build();
        let send = cli.find_subcommand("send").unwrap();
        for protocol in ProtocolName::ALL {
            assert!(farcast_sim::scenario::NAMES.contains(&protocol.word()), "{protocol:?}");
            for heading in headings(protocol) {
                let own = |arg: &clap::Arg| arg.get_help_heading() == Some(heading);
                assert!(send.get_arguments().any(own), "{protocol:?} {heading}");
            }
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
