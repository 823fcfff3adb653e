//! A session: its beginning, its commands, its end.

use alloc::format;
use alloc::string::String;
use core::net::SocketAddr;

use farcast_core::Time;

use super::request::Request;
use super::transfer::Transfer;
use super::{ConnectionOwner, Server, ServerEvent, SessionId};
use crate::Event;
use crate::endpoint::{ConnectionId, EndpointEvent};
use crate::ftp::config::MOST_LINE;
use crate::ftp::lines::{LineOctets, Lines};
use crate::ftp::{Command, CommandError, FileId, Representation, TransferError};

/// Octets of unacknowledged replies beyond which a session reads no more commands.
const MOST_UNREAD: u64 = 4096;

/// A session with a client.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) control: ConnectionId,
    pub(super) peer: SocketAddr,
    lines: Lines,
    /// A command that waits for the end of a transfer.
    held: Option<Result<Command, CommandError>>,
    /// Name of the user that is logging in, or has logged in.
    pub(super) user: Option<String>,
    pub(super) logged_in: bool,
    /// Logins that were refused.
    pub(super) refused_logins: u32,
    pub(super) representation: Representation,
    /// The working directory: absolute.
    pub(super) directory: String,
    /// Octet at which the next transfer begins.
    pub(super) rest: u64,
    /// The client has sent EPSV ALL.
    pub(super) extended_only: bool,
    pub(super) plan: Plan,
    pub(super) phase: SessionPhase,
    /// The current transfer.
    pub(super) transfer: Option<Transfer>,
    pub(super) heard_at: Time,
    /// Time at which the session is next checked for being idle.
    idle_at: Time,
}

/// Manner in which the next data connection is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Plan {
    /// The server opens it to the port of the control connection (RFC 959 section 3.2).
    #[default]
    Default,
    /// The server opens it to this address.
    Active(SocketAddr),
    /// The client opens it to this port, or has done so.
    Passive { port: u16, connection: Option<ConnectionId> },
    /// A connection was opened, and is lost or unusable.
    Lost,
}

/// Activity of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum SessionPhase {
    /// Waits for a command.
    #[default]
    Idle,
    /// Waits for the owner's answer.
    Asked { file: FileId, request: Request },
    /// Transfers a file or list.
    Transfer,
}

impl Session {
    fn new(now: Time, control: ConnectionId, peer: SocketAddr) -> Self {
        Self {
            control,
            peer,
            lines: Lines::new(MOST_LINE),
            held: None,
            user: None,
            logged_in: false,
            refused_logins: 0,
            representation: Representation::Ascii,
            directory: "/".into(),
            rest: 0,
            extended_only: false,
            plan: Plan::Default,
            phase: SessionPhase::Idle,
            transfer: None,
            heard_at: now,
            idle_at: now,
        }
    }
}

impl Server {
    /// Takes an event of a connection.
    pub(super) fn note(&mut self, now: Time, event: EndpointEvent) {
        match event {
            EndpointEvent::Accepted { port, connection, peer } if port == self.config.port => {
                self.begin_session(now, connection, peer);
            }
            EndpointEvent::Accepted { port, connection, peer } => {
                self.data_was_accepted(now, port, connection, peer);
            }
            EndpointEvent::Of(id, event) => {
                let over = matches!(event, Event::Closed | Event::Failed(_));
                let owner = self.owners.get(&id).copied();
                if over {
                    self.owners.remove(&id);
                    let released = self.sources.remove(&self.endpoint, id);
                    self.events.extend(released.map(ServerEvent::Released));
                }
                match owner {
                    Some(ConnectionOwner::Control(session)) => self.note_control(session, event),
                    Some(ConnectionOwner::Data(session)) => {
                        self.note_data(now, session, id, event);
                        // A command may have waited for the end of the transfer.
                        self.read(session);
                    }
                    None => {}
                }
                if over {
                    self.endpoint.release(id);
                }
            }
        }
    }

    fn begin_session(&mut self, now: Time, control: ConnectionId, peer: SocketAddr) {
        if self.sessions.len() >= self.config.most_sessions {
            self.endpoint.send(control, b"421 Too many sessions.\r\n");
            self.endpoint.close(control);
            return self.endpoint.release(control);
        }
        let id = SessionId(self.next_session);
        self.next_session += 1;
        let mut session = Session::new(now, control, peer);
        session.idle_at = now + self.config.idle_limit;
        self.idle.insert((session.idle_at, id));
        self.sessions.insert(id, session);
        self.owners.insert(control, ConnectionOwner::Control(id));
        self.events.push_back(ServerEvent::Opened { session: id, peer });
        self.reply(id, 220, "farcast FTP server ready.");
    }

    fn note_control(&mut self, id: SessionId, event: Event) {
        match event {
            Event::Readable => self.read(id),
            Event::PeerClosed | Event::Failed(_) => self.end_session(id),
            _ => {}
        }
    }

    /// Takes commands that have arrived and may be done now.
    pub(super) fn read(&mut self, id: SessionId) {
        loop {
            let Some(session) = self.sessions.get_mut(&id) else { return };
            if matches!(session.phase, SessionPhase::Asked { .. })
                || self.endpoint.unacknowledged(session.control) > MOST_UNREAD
            {
                return;
            }
            let command = match session.held.take() {
                Some(held) => held,
                None => match self.next_command(id) {
                    Some(command) => command,
                    None => return,
                },
            };
            let Some(session) = self.sessions.get_mut(&id) else { return };
            if session.phase == SessionPhase::Transfer && command != Ok(Command::Abor) {
                session.held = Some(command);
                return;
            }
            self.command(id, command);
        }
    }

    /// Returns the next command that has arrived completely.
    fn next_command(&mut self, id: SessionId) -> Option<Result<Command, CommandError>> {
        let session = self.sessions.get_mut(&id)?;
        let control = session.control;
        let LineOctets { octets: taken, complete } = session.lines.take(self.endpoint.readable(control));
        let command = complete.then(|| match session.lines.line() {
            Ok(line) => Command::read(line),
            Err(_) => Err(CommandError::Unknown),
        });
        self.endpoint.consume(control, taken as u64);
        command
    }

    /// Sends a reply of one line.
    pub(super) fn reply(&mut self, id: SessionId, code: u16, text: &str) {
        self.say(id, &format!("{code} {text}\r\n"));
    }

    pub(super) fn say(&mut self, id: SessionId, lines: &str) {
        if let Some(session) = self.sessions.get(&id) {
            self.endpoint.send(session.control, lines.as_bytes());
        }
    }

    /// Ends a session that has been idle for too long.
    pub(super) fn idleness_ends(&mut self, now: Time, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let due = session.heard_at + self.config.idle_limit;
        if due > now {
            session.idle_at = due;
            self.idle.insert((due, id));
            return;
        }
        self.reply(id, 421, "Timeout.");
        self.end_session(id);
    }

    /// Ends a session. Replies that were sent are still delivered.
    pub(super) fn end_session(&mut self, id: SessionId) {
        self.drop_plan(id);
        let Some(session) = self.sessions.remove(&id) else { return };
        self.idle.remove(&(session.idle_at, id));
        if let Some(transfer) = session.transfer {
            self.endpoint_abort(transfer.data);
            let result = Err(TransferError::NoSession);
            self.events.push_back(ServerEvent::Transferred { session: id, file: transfer.file, result });
        }
        self.owners.remove(&session.control);
        self.endpoint.close(session.control);
        self.endpoint.release(session.control);
        self.events.push_back(ServerEvent::Closed { session: id });
    }

    pub(super) fn endpoint_abort(&mut self, connection: Option<ConnectionId>) {
        if let Some(id) = connection {
            self.endpoint.abort(id);
        }
    }
}
