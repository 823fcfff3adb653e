//! Commands (RFC 959 section 4.1).

use alloc::string::String;
use core::fmt;
use core::net::{SocketAddr, SocketAddrV4};

use super::Representation;
use super::host::{self, Extended};

/// A command that this crate supports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Name of the user.
    User(String),
    /// Password of the user.
    Pass(String),
    /// Asks for the server's system.
    Syst,
    /// Asks for the server's features beyond RFC 959 (RFC 2389).
    Feat,
    /// The representation of data.
    Type(Representation),
    /// File structure (STRU F), the only one.
    Stru,
    /// Stream mode (MODE S), the only one.
    Mode,
    /// Makes another directory the working directory.
    Cwd(String),
    /// Makes the parent the working directory.
    Cdup,
    /// Asks for the working directory.
    Pwd,
    /// Asks for the size of a file (RFC 3659).
    Size(String),
    /// Octet of the file at which the next transfer begins.
    Rest(u64),
    /// Fetches a file.
    Retr(String),
    /// Stores a file.
    Stor(String),
    /// Lists a directory, or a file, in human-readable form.
    List(Option<String>),
    /// Lists the names in a directory.
    Nlst(Option<String>),
    /// Deletes a file.
    Dele(String),
    /// Address at which the client waits for data connections.
    Port(SocketAddrV4),
    /// Address at which the client waits for data connections, extended form (RFC 2428).
    Eprt(SocketAddr),
    /// Asks for the address at which the server waits for a data connection.
    Pasv,
    /// Asks for the port at which the server waits for a data connection (RFC 2428).
    Epsv(ExtendedPassive),
    /// Ends the transfer.
    Abor,
    /// Does nothing.
    Noop,
    /// Ends the session.
    Quit,
}

/// The argument of EPSV (RFC 2428 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ExtendedPassive {
    /// The network protocol of the control connection.
    Same,
    /// Network protocol 1, IPv4.
    V4,
    /// Network protocol 2, IPv6.
    V6,
    /// Request that the other commands open no more data connections (section 4).
    All,
}

/// Reason for which a line is not a command that the server can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// There is no such command (500).
    #[error("the command is not known")]
    Unknown,
    /// A command of RFC 959 that this crate does not support (502).
    #[error("the command is not done here")]
    NotImplemented,
    /// The argument is missing or malformed (501).
    #[error("the argument is missing or makes no sense")]
    Argument,
    /// The value of the argument is not supported (504).
    #[error("the argument asks for what is not done here")]
    Parameter,
    /// The network protocol is not known (522).
    #[error("the network protocol is not known: 1 is IPv4, 2 is IPv6")]
    Protocol,
}

/// Commands of RFC 959 and RFC 1123 that this crate does not support.
const OTHERS: [&str; 13] =
    ["ACCT", "SMNT", "REIN", "STOU", "APPE", "ALLO", "RNFR", "RNTO", "RMD", "MKD", "SITE", "STAT", "HELP"];

impl Command {
    /// Reads a line. Commands may be in upper or lower case (RFC 959 section 5.3).
    ///
    /// # Errors
    /// The line is not a command, or not a supported one.
    pub fn read(line: &str) -> Result<Self, CommandError> {
        let (verb, argument) = match line.split_once(' ') {
            Some((verb, argument)) => (verb, argument),
            None => (line, ""),
        };
        let mut letters = [0; 4];
        let Some(letters) = letters.get_mut(..verb.len()) else { return Err(CommandError::Unknown) };
        letters.copy_from_slice(verb.as_bytes());
        letters.make_ascii_uppercase();
        let verb = core::str::from_utf8(letters).map_err(|_| CommandError::Unknown)?;
        Self::with_argument(verb, argument)
    }

    fn with_argument(verb: &str, argument: &str) -> Result<Self, CommandError> {
        let text = || if argument.is_empty() { Err(CommandError::Argument) } else { Ok(argument.into()) };
        Ok(match verb {
            "USER" => Self::User(text()?),
            // A password may be empty.
            "PASS" => Self::Pass(argument.into()),
            "CWD" => Self::Cwd(text()?),
            "SIZE" => Self::Size(text()?),
            "RETR" => Self::Retr(text()?),
            "STOR" => Self::Stor(text()?),
            "DELE" => Self::Dele(text()?),
            "LIST" => Self::List(text().ok()),
            "NLST" => Self::Nlst(text().ok()),
            "TYPE" => Self::Type(representation(argument)?),
            "STRU" => only(argument, "F", Self::Stru)?,
            "MODE" => only(argument, "S", Self::Mode)?,
            "REST" => Self::Rest(number(argument)?),
            "PORT" => Self::Port(host::read_host_port(argument.trim()).ok_or(CommandError::Argument)?),
            "EPRT" => Self::Eprt(host::read_extended(argument.trim()).map_err(|wrong| match wrong {
                Extended::Malformed => CommandError::Argument,
                Extended::Protocol => CommandError::Protocol,
            })?),
            "EPSV" => Self::Epsv(extended_passive(argument)?),
            _ => return Self::alone(verb),
        })
    }

    /// Reads a command without an argument. RFC 959 allows none here; one that follows is ignored.
    fn alone(verb: &str) -> Result<Self, CommandError> {
        Ok(match verb {
            "SYST" => Self::Syst,
            "FEAT" => Self::Feat,
            "CDUP" => Self::Cdup,
            "PWD" => Self::Pwd,
            "PASV" => Self::Pasv,
            "ABOR" => Self::Abor,
            "NOOP" => Self::Noop,
            "QUIT" => Self::Quit,
            other if OTHERS.contains(&other) => return Err(CommandError::NotImplemented),
            _ => return Err(CommandError::Unknown),
        })
    }
}

/// Reads A and I, with the only form and byte size that are supported (RFC 959 section 5.3.2).
fn representation(argument: &str) -> Result<Representation, CommandError> {
    if argument.is_empty() {
        return Err(CommandError::Argument);
    }
    let is = |text: &str| argument.eq_ignore_ascii_case(text);
    if is("A") || is("A N") {
        Ok(Representation::Ascii)
    } else if is("I") || is("L 8") {
        Ok(Representation::Image)
    } else {
        Err(CommandError::Parameter)
    }
}

fn only(argument: &str, known: &str, command: Command) -> Result<Command, CommandError> {
    match argument {
        "" => Err(CommandError::Argument),
        known_too if known_too.eq_ignore_ascii_case(known) => Ok(command),
        _ => Err(CommandError::Parameter),
    }
}

fn number(argument: &str) -> Result<u64, CommandError> {
    let digits = argument.bytes().all(|digit| digit.is_ascii_digit());
    argument.parse().ok().filter(|_| digits).ok_or(CommandError::Argument)
}

fn extended_passive(argument: &str) -> Result<ExtendedPassive, CommandError> {
    match argument {
        "" => Ok(ExtendedPassive::Same),
        "1" => Ok(ExtendedPassive::V4),
        "2" => Ok(ExtendedPassive::V6),
        all if all.eq_ignore_ascii_case("ALL") => Ok(ExtendedPassive::All),
        _ => Err(CommandError::Protocol),
    }
}

impl fmt::Display for Command {
    /// Writes the line without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(f, "USER {name}"),
            Self::Pass(password) => write!(f, "PASS {password}"),
            Self::Syst => f.write_str("SYST"),
            Self::Feat => f.write_str("FEAT"),
            Self::Type(Representation::Ascii) => f.write_str("TYPE A"),
            Self::Type(Representation::Image) => f.write_str("TYPE I"),
            Self::Stru => f.write_str("STRU F"),
            Self::Mode => f.write_str("MODE S"),
            Self::Cwd(path) => write!(f, "CWD {path}"),
            Self::Cdup => f.write_str("CDUP"),
            Self::Pwd => f.write_str("PWD"),
            Self::Size(path) => write!(f, "SIZE {path}"),
            Self::Rest(offset) => write!(f, "REST {offset}"),
            Self::Retr(path) => write!(f, "RETR {path}"),
            Self::Stor(path) => write!(f, "STOR {path}"),
            Self::List(Some(path)) => write!(f, "LIST {path}"),
            Self::List(None) => f.write_str("LIST"),
            Self::Nlst(Some(path)) => write!(f, "NLST {path}"),
            Self::Nlst(None) => f.write_str("NLST"),
            Self::Dele(path) => write!(f, "DELE {path}"),
            Self::Port(address) => write!(f, "PORT {}", host::write_host_port(*address)),
            Self::Eprt(address) => write!(f, "EPRT {}", host::write_extended(*address)),
            Self::Pasv => f.write_str("PASV"),
            Self::Epsv(ExtendedPassive::Same) => f.write_str("EPSV"),
            Self::Epsv(ExtendedPassive::V4) => f.write_str("EPSV 1"),
            Self::Epsv(ExtendedPassive::V6) => f.write_str("EPSV 2"),
            Self::Epsv(ExtendedPassive::All) => f.write_str("EPSV ALL"),
            Self::Abor => f.write_str("ABOR"),
            Self::Noop => f.write_str("NOOP"),
            Self::Quit => f.write_str("QUIT"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn commands_are_read() {
        let path = || "a file.txt".to_string();
        let host = "192.0.2.1:257".parse().expect("an address");
        for (line, command) in [
            ("USER anonymous", Command::User("anonymous".into())),
            ("pass", Command::Pass(String::new())),
            ("PASS a b ", Command::Pass("a b ".into())),
            ("Retr a file.txt", Command::Retr(path())),
            ("LIST", Command::List(None)),
            ("NLST a file.txt", Command::Nlst(Some(path()))),
            ("TYPE a n", Command::Type(Representation::Ascii)),
            ("TYPE L 8", Command::Type(Representation::Image)),
            ("STRU F", Command::Stru),
            ("REST 18446744073709551615", Command::Rest(u64::MAX)),
            ("PORT 192,0,2,1,1,1", Command::Port(host)),
            ("EPRT |1|192.0.2.1|257|", Command::Eprt(SocketAddr::V4(host))),
            ("EPSV all", Command::Epsv(ExtendedPassive::All)),
            ("NOOP with an argument", Command::Noop),
            ("cdup", Command::Cdup),
        ] {
            assert_eq!(Command::read(line), Ok(command), "{line}");
        }
    }

    #[test]
    fn what_is_none_is_told_apart() {
        for (line, error) in [
            ("", CommandError::Unknown),
            (" NOOP", CommandError::Unknown),
            ("NOOPS", CommandError::Unknown),
            ("XYZZY 1", CommandError::Unknown),
            ("é", CommandError::Unknown),
            ("ACCT x", CommandError::NotImplemented),
            ("APPE x", CommandError::NotImplemented),
            ("RETR", CommandError::Argument),
            ("RETR ", CommandError::Argument),
            ("REST x", CommandError::Argument),
            ("REST +1", CommandError::Argument),
            ("REST 18446744073709551616", CommandError::Argument),
            ("PORT 1,2,3", CommandError::Argument),
            ("TYPE", CommandError::Argument),
            ("TYPE E", CommandError::Parameter),
            ("MODE B", CommandError::Parameter),
            ("STRU R", CommandError::Parameter),
            ("EPRT |3|x|1|", CommandError::Protocol),
            ("EPSV 7", CommandError::Protocol),
        ] {
            assert_eq!(Command::read(line), Err(error), "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_taken_or_turned_down_and_what_is_taken_is_written_again(
            line in "([A-Za-z]{3,4} )?\\PC{0,40}",
        ) {
            if let Ok(command) = Command::read(&line) {
                prop_assert_eq!(Command::read(&command.to_string()), Ok(command));
            }
        }
    }
}
