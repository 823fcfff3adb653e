//! Names of the protocols that carry transfers.

use std::fmt;
use std::str::FromStr;

/// Protocol of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ProtocolName {
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

impl ProtocolName {
    /// All protocols.
    pub const ALL: [Self; 5] = [Self::Mftp, Self::Norm, Self::Mdp, Self::Pgm, Self::OneWay];

    /// Returns the name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Mftp => "MFTP",
            Self::Norm => "NORM",
            Self::Mdp => "MDP",
            Self::Pgm => "PGM",
            Self::OneWay => "One-way",
        }
    }

    /// Returns the name in settings and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mftp => "mftp",
            Self::Norm => "norm",
            Self::Mdp => "mdp",
            Self::Pgm => "pgm",
            Self::OneWay => "one-way",
        }
    }
}

impl fmt::Display for ProtocolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for ProtocolName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|name| name.word() == text);
        found.ok_or_else(|| format!("{text:?} is no protocol: one of mftp, norm, mdp, pgm, one-way"))
    }
}
