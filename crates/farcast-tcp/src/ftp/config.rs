//! The settings of clients and servers.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use farcast_core::Span;

use super::{Mode, Representation};
use crate::{Config, ConfigError};

/// The longest line that is sent or taken, in octets without its end. A path has less by its command.
pub(super) const MOST_LINE: usize = 512;

/// The port of a server's control connections (RFC 959 section 8).
const CONTROL_PORT: u16 = 21;

/// The settings of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientConfig {
    /// Its own address.
    pub address: IpAddr,
    /// Where the server waits.
    pub server: SocketAddr,
    /// The settings of its connections.
    pub tcp: Config,
    /// Who it is: 1 to 128 octets of one line.
    pub user: String,
    /// What proves it: at most 128 octets of one line.
    pub password: String,
    /// Who opens data connections.
    pub mode: Mode,
    /// Whether EPRT and EPSV are used instead of PORT and PASV. With IPv6 they have to be.
    pub extended: bool,
    /// Whether it asks for the server's system after the login, as most clients do.
    pub syst: bool,
    /// How files are represented. Lists are text in any case.
    pub representation: Representation,
    /// The time from the end of an operation to the beginning of the next one, if one waits then.
    pub gap: Span,
    /// How long nothing may be heard while it waits for something; above zero.
    pub patience: Span,
    /// How many operations may wait; at least 1.
    pub most_waiting: usize,
    /// The seed of port numbers and initial sequence numbers.
    pub seed: u64,
}

impl ClientConfig {
    /// An anonymous client at `address` of a server at port 21 of `server`: passive mode, images, no gap, a patience
    /// of 15 minutes.
    pub fn new(address: IpAddr, server: IpAddr) -> Self {
        Self {
            address,
            server: SocketAddr::new(server, CONTROL_PORT),
            tcp: Config::default(),
            user: "anonymous".into(),
            password: "farcast@".into(),
            mode: Mode::Passive,
            extended: address.is_ipv6(),
            syst: false,
            representation: Representation::Image,
            gap: Span::ZERO,
            patience: Span::from_secs(900),
            most_waiting: 1 << 16,
            seed: 0,
        }
    }

    /// Checks what the types do not.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), FtpConfigError> {
        self.tcp.check()?;
        if self.address.is_ipv4() != self.server.is_ipv4() {
            return Err(FtpConfigError::Family);
        }
        if self.address.is_ipv6() && !self.extended {
            return Err(FtpConfigError::NotExtended);
        }
        if !is_name(&self.user) || self.user.is_empty() {
            return Err(FtpConfigError::Name);
        }
        if !is_name(&self.password) {
            return Err(FtpConfigError::Password);
        }
        if self.patience.is_zero() {
            return Err(FtpConfigError::Zero("patience"));
        }
        if self.most_waiting == 0 {
            return Err(FtpConfigError::Zero("the number of operations that may wait"));
        }
        Ok(())
    }
}

/// Who may log in to a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// Anybody, with any password.
    Anybody,
    /// These, and nobody else.
    Users(Vec<User>),
}

/// A user of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// The name: 1 to 128 octets of one line.
    pub name: String,
    /// The password: at most 128 octets of one line.
    pub password: String,
}

/// The settings of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerConfig {
    /// Its own address.
    pub address: IpAddr,
    /// The port of control connections; active data connections come from the port before it (RFC 959 section 8). At
    /// least 2.
    pub port: u16,
    /// The settings of its connections.
    pub tcp: Config,
    /// Who may log in.
    pub access: Access,
    /// How long a session may be idle; above zero.
    pub idle_limit: Span,
    /// How many sessions there may be at once; at least 1. Who comes beyond is told 421.
    pub most_sessions: usize,
    /// The seed of port numbers and initial sequence numbers.
    pub seed: u64,
}

impl ServerConfig {
    /// A server at `address` for anybody: port 21, sessions that are idle for 15 minutes at most, 64 of them.
    pub fn new(address: IpAddr) -> Self {
        Self {
            address,
            port: CONTROL_PORT,
            tcp: Config::default(),
            access: Access::Anybody,
            idle_limit: Span::from_secs(900),
            most_sessions: 64,
            seed: 0,
        }
    }

    /// Checks what the types do not.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), FtpConfigError> {
        self.tcp.check()?;
        if self.port < 2 {
            return Err(FtpConfigError::Port);
        }
        if let Access::Users(users) = &self.access {
            if users.iter().any(|user| !is_name(&user.name) || user.name.is_empty()) {
                return Err(FtpConfigError::Name);
            }
            if users.iter().any(|user| !is_name(&user.password)) {
                return Err(FtpConfigError::Password);
            }
        }
        if self.idle_limit.is_zero() {
            return Err(FtpConfigError::Zero("the idle limit"));
        }
        if self.most_sessions == 0 {
            return Err(FtpConfigError::Zero("the number of sessions"));
        }
        Ok(())
    }
}

/// Whether a text can follow USER or PASS.
fn is_name(text: &str) -> bool {
    text.len() <= 128 && is_one_line(text)
}

/// Whether a text has nothing in it that ends a line.
pub(super) fn is_one_line(text: &str) -> bool {
    !text.contains(['\r', '\n', '\0'])
}

/// A setting that cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FtpConfigError {
    /// A setting of the connections.
    #[error(transparent)]
    Tcp(#[from] ConfigError),
    /// Client and server do not have addresses of one kind.
    #[error("the client and the server must both have IPv4 addresses, or both IPv6")]
    Family,
    /// IPv6 with commands that cannot write it.
    #[error("PORT and PASV know IPv4 only: with IPv6 set extended")]
    NotExtended,
    /// A name of a user.
    #[error("a user's name has 1 to 128 octets and no CR, LF or NUL")]
    Name,
    /// A password.
    #[error("a password has at most 128 octets and no CR, LF or NUL")]
    Password,
    /// The server's port.
    #[error("a server's port is at least 2: its data connections come from the port before it")]
    Port,
    /// Something must not be zero.
    #[error("{0} must be above zero")]
    Zero(&'static str),
}
