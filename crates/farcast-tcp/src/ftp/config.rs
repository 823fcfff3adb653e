//! Settings of clients and servers.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use farcast_core::Span;

use super::{Mode, Representation};
use crate::{Config, ConfigError};

/// Longest line that is sent or accepted, in octets without its end. A path has fewer because of its command.
pub(super) const MOST_LINE: usize = 512;

/// The port of a server's control connections (RFC 959 section 8).
const CONTROL_PORT: u16 = 21;

/// The settings of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientConfig {
    /// Address of the client.
    pub address: IpAddr,
    /// Address of the server.
    pub server: SocketAddr,
    /// Settings of the client's connections.
    pub tcp: Config,
    /// Name of the user: 1 to 128 octets of one line.
    pub user: String,
    /// Password: at most 128 octets of one line.
    pub password: String,
    /// Side that opens data connections.
    pub mode: Mode,
    /// Use of EPRT and EPSV instead of PORT and PASV. Required with IPv6.
    pub extended: bool,
    /// Query for the server's system (SYST) after the login, as most clients send.
    pub syst: bool,
    /// Representation of files. Lists are text in any case.
    pub representation: Representation,
    /// The time from the end of an operation to the beginning of the next one, if one waits then.
    pub gap: Span,
    /// Longest silence of the server while the client waits for it; above zero.
    pub patience: Span,
    /// Most operations that may wait; at least 1.
    pub most_waiting: usize,
    /// The seed of port numbers and initial sequence numbers.
    pub seed: u64,
}

impl ClientConfig {
    /// Returns the settings of an anonymous client at `address` of a server at port 21 of `server`: passive mode,
    /// images, no gap, a patience of 15 minutes.
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

    /// Checks the settings for values that the types allow and that cannot work.
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

/// Users that may log in to a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// Anybody, with any password.
    Anybody,
    /// These users only.
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
    /// Address of the server.
    pub address: IpAddr,
    /// The port of control connections; active data connections come from the port before it (RFC 959 section 8). At
    /// least 2.
    pub port: u16,
    /// Settings of the server's connections.
    pub tcp: Config,
    /// Users that may log in.
    pub access: Access,
    /// Longest time for which a session may be idle; above zero.
    pub idle_limit: Span,
    /// Most sessions at once; at least 1. A client beyond the limit gets a reply of 421.
    pub most_sessions: usize,
    /// The seed of port numbers and initial sequence numbers.
    pub seed: u64,
}

impl ServerConfig {
    /// Returns the settings of a server at `address` for anybody: port 21, at most 64 sessions, each idle for at most
    /// 15 minutes.
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

    /// Checks the settings for values that the types allow and that cannot work.
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

/// Returns `true` if a text can follow USER or PASS.
fn is_name(text: &str) -> bool {
    text.len() <= 128 && is_one_line(text)
}

/// Returns `true` if a text has no character that ends a line.
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
    /// Client and server have addresses of different families.
    #[error("the client and the server must both have IPv4 addresses, or both IPv6")]
    Family,
    /// IPv6 with commands that cannot express it.
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
    /// A setting that must not be zero.
    #[error("{0} must be above zero")]
    Zero(&'static str),
}
