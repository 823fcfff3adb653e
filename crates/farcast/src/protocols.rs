//! Protocols that `send` and `receive` speak. Each has an entry here, and a module in each of the two commands.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, ValueEnum};

/// By which protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Speaks {
    /// MFTP: receivers register, and the sender knows of each what it has.
    #[default]
    Mftp,
    /// NORM (RFC 5740): nobody registers; what is lost is asked for and repaired by coding. With farcast, and with all
    /// that speak NORM.
    Norm,
    /// MDP version 2 (draft-macker-rmt-mdp), from which NORM grew: the same in its own words.
    Mdp,
    /// PGM (RFC 3208): nobody registers; receivers ask for the datagrams that they lack. Files with farcast, streams with
    /// all that speak PGM.
    Pgm,
    /// One way: receivers cannot answer, and nobody can tell who has received it. Symbols of a large code, of which any
    /// do.
    OneWay,
}

/// Heading of options that NORM and MDP share.
pub(crate) const NORM_AND_MDP: &str = "NORM and MDP";
/// Heading of options that NORM, MDP and PGM share.
pub(crate) const NORM_MDP_AND_PGM: &str = "NORM and MDP and PGM";
/// Heading of options that NORM and PGM share.
pub(crate) const NORM_AND_PGM: &str = "NORM and PGM";
/// Heading of options that MFTP and PGM share.
pub(crate) const MFTP_AND_PGM: &str = "MFTP and PGM";

impl Speaks {
    /// Returns the headings of this protocol's options. The first heading is for options of this protocol alone, and
    /// the others are shared with other protocols.
    const fn headings(self) -> &'static [&'static str] {
        match self {
            Self::Mftp => &["MFTP", MFTP_AND_PGM],
            Self::Norm => &["NORM", NORM_AND_MDP, NORM_MDP_AND_PGM, NORM_AND_PGM],
            Self::Mdp => &["MDP", NORM_AND_MDP, NORM_MDP_AND_PGM],
            Self::Pgm => &["PGM", NORM_MDP_AND_PGM, NORM_AND_PGM, MFTP_AND_PGM],
            Self::OneWay => &["One-way"],
        }
    }

    /// Returns `true` if this protocol has the options under this heading: they are its own, or they belong to every
    /// protocol.
    pub(crate) fn has(self, heading: &str) -> bool {
        let of_one = Self::value_variants().iter().any(|one| one.headings().contains(&heading));
        !of_one || self.headings().contains(&heading)
    }

    /// Returns the protocol's name for people, which is also the heading of its own options.
    pub(crate) const fn heading(self) -> &'static str {
        self.headings()[0]
    }

    /// Returns the protocol's name on the command line.
    pub(crate) fn name(self) -> String {
        self.heading().to_lowercase()
    }

    /// Checks the options in `given` to `command`. The error tells which option belongs to another protocol.
    pub(crate) fn check(self, command: &Command, given: &ArgMatches) -> Result<(), String> {
        for other in Self::value_variants() {
            let others = |heading| other.headings().contains(&heading) && !self.headings().contains(&heading);
            for arg in command.get_arguments().filter(|arg| arg.get_help_heading().is_some_and(others)) {
                let said = given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
                if let (true, Some(option)) = (said, arg.get_long()) {
                    let heading = arg.get_help_heading().unwrap_or_default();
                    let whose = Self::value_variants().iter().filter(|one| one.headings().contains(&heading));
                    let whose: Vec<String> = whose.map(|one| one.name()).collect();
                    let (own, whose) = (self.name(), whose.join(" or "));
                    return Err(format!("--{option} goes with --protocol {whose}, and this is {own}"));
                }
            }
        }
        Ok(())
    }
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
        for speaks in Speaks::value_variants() {
            assert!(farcast_sim::scenario::NAMES.contains(&speaks.name().as_str()), "{speaks:?}");
            for heading in speaks.headings() {
                let own = |arg: &clap::Arg| arg.get_help_heading() == Some(heading);
                assert!(send.get_arguments().any(own), "{speaks:?} {heading}");
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
