//! The server's commands (RFC 959 sections 4.1 and 5.4).

use alloc::format;
use alloc::string::String;
use core::net::SocketAddr;

use super::request::Request;
use super::session::{Plan, SessionPhase};
use super::{Server, ServerEvent, SessionId};
use crate::endpoint::Carries;
use crate::ftp::config::Access;
use crate::ftp::{Command, CommandError, ExtendedPassive, Representation, TransferError, host};

/// Number of refused logins that end a session (RFC 2577 section 5).
const MOST_LOGINS: u32 = 5;

/// Lowest client port to which the server connects (RFC 2577 section 3).
const FIRST_CLIENT_PORT: u16 = 1024;

/// The longest absolute path in octets.
const MOST_PATH: usize = 4096;

/// Features of the server beyond RFC 959 (RFC 2389 section 3.2).
const FEATURES: &str = "211-Features:\r\n EPRT\r\n EPSV\r\n REST STREAM\r\n SIZE\r\n211 End\r\n";

impl Server {
    /// Does a command.
    pub(super) fn command(&mut self, id: SessionId, command: Result<Command, CommandError>) {
        let Some(session) = self.sessions.get(&id) else { return };
        let logged_in = session.logged_in;
        match command {
            Err(error) => self.refuse(id, error),
            Ok(Command::User(name)) => self.user(id, name),
            Ok(Command::Pass(password)) => self.pass(id, &password),
            Ok(Command::Quit) => {
                self.reply(id, 221, "Goodbye.");
                self.end_session(id);
            }
            Ok(Command::Noop) => self.reply(id, 200, "Done."),
            Ok(Command::Syst) => self.reply(id, 215, "UNIX Type: L8"),
            Ok(Command::Feat) => self.say(id, FEATURES),
            Ok(_) if !logged_in => self.reply(id, 530, "Please log in with USER and PASS."),
            Ok(command) => self.command_of_user(id, command),
        }
    }

    fn refuse(&mut self, id: SessionId, error: CommandError) {
        match error {
            CommandError::Unknown => self.reply(id, 500, "Command not understood."),
            CommandError::NotImplemented => self.reply(id, 502, "Command not implemented."),
            CommandError::Argument => self.reply(id, 501, "Syntax error in the argument."),
            CommandError::Parameter => self.reply(id, 504, "Command not implemented for that parameter."),
            CommandError::Protocol => self.refuse_protocol(id),
        }
    }

    fn user(&mut self, id: SessionId, name: String) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.user = Some(name);
        session.logged_in = false;
        self.reply(id, 331, "Password required.");
    }

    fn pass(&mut self, id: SessionId, password: &str) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(user) = session.user.clone().filter(|_| !session.logged_in) else {
            return self.reply(id, 503, "Log in with USER first.");
        };
        let known = match &self.config.access {
            Access::Anybody => true,
            Access::Users(users) => {
                users.iter().any(|known| known.name == user && known.password == password)
            }
        };
        if known {
            session.logged_in = true;
            self.events.push_back(ServerEvent::LoggedIn { session: id, user });
            return self.reply(id, 230, "Logged in.");
        }
        session.user = None;
        session.refused_logins += 1;
        if session.refused_logins < MOST_LOGINS {
            return self.reply(id, 530, "Login incorrect.");
        }
        self.reply(id, 421, "Too many logins were refused.");
        self.end_session(id);
    }

    fn command_of_user(&mut self, id: SessionId, command: Command) {
        match command {
            Command::Type(representation) => self.set_type(id, representation),
            Command::Stru => self.reply(id, 200, "Structure set to F."),
            Command::Mode => self.reply(id, 200, "Mode set to S."),
            Command::Rest(offset) => self.set_rest(id, offset),
            Command::Pwd => self.tell_directory(id),
            Command::Port(address) => self.set_port(id, SocketAddr::V4(address)),
            Command::Eprt(address) => self.set_port(id, address),
            Command::Pasv => self.passive(id),
            Command::Epsv(argument) => self.extended_passive(id, argument),
            Command::Abor => self.abort_transfer(id),
            Command::Cwd(path) => self.ask_for(id, &path, |path| Request::Enter { path }),
            Command::Cdup => self.ask_for(id, "..", |path| Request::Enter { path }),
            Command::Size(path) => self.ask_for(id, &path, |path| Request::Size { path }),
            Command::Dele(path) => self.ask_for(id, &path, |path| Request::Delete { path }),
            Command::Retr(path) => {
                let offset = self.take_rest(id);
                self.ask_for(id, &path, |path| Request::Retrieve { path, offset });
            }
            Command::Stor(path) => {
                let offset = self.take_rest(id);
                self.ask_for(id, &path, |path| Request::Store { path, offset });
            }
            Command::List(path) => {
                self.ask_for(id, without_options(path.as_ref()), |path| Request::List { path });
            }
            Command::Nlst(path) => {
                self.ask_for(id, without_options(path.as_ref()), |path| Request::Names { path });
            }
            // These commands, allowed before the login, are done already.
            Command::User(_)
            | Command::Pass(_)
            | Command::Syst
            | Command::Feat
            | Command::Noop
            | Command::Quit => {}
        }
    }

    fn set_type(&mut self, id: SessionId, representation: Representation) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.representation = representation;
        let letter = if representation == Representation::Ascii { 'A' } else { 'I' };
        self.reply(id, 200, &format!("Type set to {letter}."));
    }

    fn set_rest(&mut self, id: SessionId, offset: u64) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.rest = offset;
        self.reply(id, 350, &format!("Restarting at {offset}. Send STOR or RETR."));
    }

    fn take_rest(&mut self, id: SessionId) -> u64 {
        self.sessions.get_mut(&id).map_or(0, |session| core::mem::take(&mut session.rest))
    }

    fn tell_directory(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        let path = session.directory.replace('"', "\"\"");
        self.reply(id, 257, &format!("\"{path}\" is the working directory."));
    }

    /// Asks the owner about a path, which is relative to the working directory.
    fn ask_for(&mut self, id: SessionId, path: &str, request: impl FnOnce(String) -> Request) {
        let Some(session) = self.sessions.get(&id) else { return };
        let path = absolute(&session.directory, path);
        if path.len() > MOST_PATH {
            return self.reply(id, 553, "The path is too long.");
        }
        self.ask(id, request(path));
    }

    fn set_port(&mut self, id: SessionId, address: SocketAddr) {
        let Some(session) = self.sessions.get(&id) else { return };
        if session.extended_only {
            return self.reply(id, 503, "Only EPSV after EPSV ALL.");
        }
        if address.ip() != session.peer.ip() || address.port() < FIRST_CLIENT_PORT {
            return self.reply(id, 504, "Data goes to unprivileged ports of the client only.");
        }
        self.replan(id, Plan::Active(address));
        self.reply(id, 200, "Port set.");
    }

    fn passive(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        if session.extended_only {
            return self.reply(id, 503, "Only EPSV after EPSV ALL.");
        }
        let address = self.config.address;
        let Some(port) = self.listen_for(id) else { return };
        match SocketAddr::new(address, port) {
            SocketAddr::V4(address) => {
                let text = host::write_host_port(address);
                self.reply(id, 227, &format!("Entering Passive Mode ({text})."));
            }
            SocketAddr::V6(_) => {
                self.drop_plan(id);
                self.reply(id, 425, "Use EPSV with IPv6.");
            }
        }
    }

    fn extended_passive(&mut self, id: SessionId, argument: ExtendedPassive) {
        let four = self.config.address.is_ipv4();
        match argument {
            ExtendedPassive::V4 if !four => return self.refuse_protocol(id),
            ExtendedPassive::V6 if four => return self.refuse_protocol(id),
            ExtendedPassive::All => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.extended_only = true;
                }
                return self.reply(id, 200, "Only EPSV from now on.");
            }
            _ => {}
        }
        if let Some(port) = self.listen_for(id) {
            self.reply(id, 229, &format!("Entering Extended Passive Mode (|||{port}|)"));
        }
    }

    /// Refuses a network protocol. The text names the supported one (RFC 2428 section 2).
    fn refuse_protocol(&mut self, id: SessionId) {
        let known = if self.config.address.is_ipv4() { 1 } else { 2 };
        self.reply(id, 522, &format!("Network protocol not supported, use ({known})"));
    }

    /// Listens for a data connection. Returns the port.
    fn listen_for(&mut self, id: SessionId) -> Option<u16> {
        let Ok(port) = self.endpoint.listen(None, Carries::Ranges) else {
            self.reply(id, 425, "No port is free.");
            return None;
        };
        self.replan(id, Plan::Passive { port, connection: None });
        self.ports.insert(port, id);
        Some(port)
    }

    /// Aborts a transfer (ABOR). RFC 959 section 4.1.3 requires two replies if a transfer is aborted.
    fn abort_transfer(&mut self, id: SessionId) {
        let transfers = self.sessions.get(&id).is_some_and(|session| session.phase == SessionPhase::Transfer);
        if transfers {
            self.end_transfer(id, Err(TransferError::Aborted), 426, "Transfer aborted.");
        }
        self.reply(id, 226, "Abort done.");
    }
}

/// Returns the path of LIST or NLST without options. Some clients send them, because servers used to run a command.
fn without_options(path: Option<&String>) -> &str {
    match path.map_or("", String::as_str) {
        options if options.starts_with('-') => options.split_once(' ').map_or("", |(_, path)| path),
        path => path,
    }
}

/// Returns the absolute path for `path` relative to `directory`, without "." and "..". A ".." at the root has no
/// effect.
fn absolute(directory: &str, path: &str) -> String {
    let base = if path.starts_with('/') { "" } else { directory };
    let mut whole = String::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => whole.truncate(whole.rfind('/').unwrap_or(0)),
            part => {
                whole.push('/');
                whole.push_str(part);
            }
        }
    }
    if whole.is_empty() { "/".into() } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        for (directory, path, whole) in [
            ("/", "a", "/a"),
            ("/", "", "/"),
            ("/a/b", "../c", "/a/c"),
            ("/a/b", "/c/./d//", "/c/d"),
            ("/a/b", "../../../../etc/passwd", "/etc/passwd"),
            ("/a", "..", "/"),
            ("/a", "...", "/a/..."),
            ("/a", "b/../..", "/"),
        ] {
            assert_eq!(absolute(directory, path), whole, "{path} in {directory}");
        }
    }
}
