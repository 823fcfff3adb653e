//! The control connection: replies, login, the end of the session.

use core::net::SocketAddr;

use alloc::format;

use farcast_core::Time;

use super::{Client, ClientEvent, State, Timer};
use crate::Event;
use crate::endpoint::{Carries, EndpointEvent};
use crate::ftp::lines::LineOctets;
use crate::ftp::reply::{Reply, ReplyError};
use crate::ftp::{Code, Command, Mode, OperationError, SessionError};

impl Client {
    pub(super) fn open(&mut self, now: Time) {
        self.session.began = now;
        match self.endpoint.connect(now, None, self.config.server, Carries::Octets) {
            Ok(id) => {
                self.control = Some(id);
                self.state = State::Connecting;
            }
            Err(error) => self.end(now, Err(SessionError::Endpoint(error))),
        }
    }

    /// Takes an event of a connection.
    pub(super) fn note(&mut self, now: Time, event: EndpointEvent) {
        match event {
            EndpointEvent::Accepted { port, connection, peer } => {
                self.data_was_accepted(now, port, connection, peer);
            }
            EndpointEvent::Of(id, event) => {
                let is_control = self.control == Some(id);
                if is_control {
                    self.note_control(now, event);
                } else {
                    self.note_data(now, id, event);
                }
                if matches!(event, Event::Closed | Event::Failed(_)) {
                    if is_control {
                        self.session = self.session();
                        self.control = None;
                    }
                    let released = self.sources.remove(&self.endpoint, id);
                    self.events.extend(released.map(ClientEvent::Released));
                    self.endpoint.release(id);
                }
            }
        }
    }

    fn note_control(&mut self, now: Time, event: Event) {
        match event {
            Event::Connected => {
                self.session.connected = Some(now);
                self.state = State::Greeting;
            }
            Event::Readable => self.read(now),
            Event::PeerClosed => self.end(now, Err(SessionError::Closed)),
            Event::Failed(failure) => self.end(now, Err(SessionError::Connection(failure))),
            Event::Closed | Event::Store { .. } | Event::Writable => {}
        }
    }

    /// Takes the lines that have arrived.
    fn read(&mut self, now: Time) {
        while let Some(id) = self.control.filter(|_| self.state != State::Ended) {
            let LineOctets { octets: taken, complete } = self.lines.take(self.endpoint.readable(id));
            self.session.octets_received += taken as u64;
            self.endpoint.consume(id, taken as u64);
            if !complete {
                return;
            }
            let line = self.lines.line().map_err(ReplyError::from);
            match line.and_then(|line| self.replies.take(line)) {
                Ok(Some(reply)) => self.hear(now, reply),
                Ok(None) => {}
                Err(error) => self.end(now, Err(error.into())),
            }
        }
    }

    /// Sends a command.
    pub(super) fn say(&mut self, command: &Command) {
        if let Some(id) = self.control {
            let line = format!("{command}\r\n");
            self.session.commands += 1;
            self.session.octets_sent += line.len() as u64;
            self.endpoint.send(id, line.as_bytes());
        }
    }

    /// Takes a reply.
    fn hear(&mut self, now: Time, reply: Reply) {
        self.session.replies += 1;
        let code = reply.code;
        if code.number() == 421 {
            return self.end(now, Err(SessionError::Unavailable(code)));
        }
        match self.state {
            // 120: the service is ready in some minutes.
            State::Greeting if code.is_preliminary() => {}
            State::Greeting if code.is_completion() => {
                self.session.greeted = Some(now);
                self.say(&Command::User(self.config.user.clone()));
                self.state = State::User;
            }
            State::Greeting => self.end(now, Err(SessionError::Unavailable(code))),
            State::User if code.number() == 331 => {
                self.say(&Command::Pass(self.config.password.clone()));
                self.state = State::Pass;
            }
            State::User | State::Pass => self.hear_of_login(now, code),
            State::Syst => self.is_ready(now),
            State::Ready if self.work.is_some() => self.hear_of_work(now, reply),
            State::Quitting => self.end(now, Ok(())),
            _ => self.end(now, Err(SessionError::Unexpected(code))),
        }
    }

    fn hear_of_login(&mut self, now: Time, code: Code) {
        if !code.is_completion() {
            return self.end(now, Err(SessionError::Login(code)));
        }
        self.session.logged_in = Some(now);
        self.events.push_back(ClientEvent::LoggedIn);
        if self.config.syst {
            self.say(&Command::Syst);
            self.state = State::Syst;
        } else {
            self.is_ready(now);
        }
    }

    fn is_ready(&mut self, now: Time) {
        self.state = State::Ready;
        self.go_on(now);
    }

    /// Begins the next operation, or ends the session, if it is time.
    pub(super) fn go_on(&mut self, now: Time) {
        if self.state != State::Ready || self.work.is_some() || self.timers.is_set(Timer::Gap) {
            return;
        }
        if let Some((file, operation)) = self.waiting.pop_front() {
            self.begin(now, file, operation);
        } else if self.quit {
            self.say(&Command::Quit);
            self.state = State::Quitting;
        }
    }

    /// Ends the session.
    pub(super) fn end(&mut self, now: Time, result: Result<(), SessionError>) {
        if self.state == State::Ended {
            return;
        }
        self.state = State::Ended;
        self.session.ended = Some(now);
        self.timers = farcast_core::Timers::default();
        if let Some(work) = self.work.take() {
            let (port, data) = work.loose_ends();
            self.drop_data(port, data);
            self.tell(work.file, Err(OperationError::NoSession));
        }
        while let Some((file, _)) = self.waiting.pop_front() {
            self.tell(file, Err(OperationError::NoSession));
        }
        if let Some(id) = self.control {
            if result.is_ok() {
                self.endpoint.close(id);
            } else {
                self.endpoint.abort(id);
            }
        }
        self.events.push_back(ClientEvent::Ended(result));
    }

    /// Arranges the data connection: asks the server to listen, or tells it the port at which the client listens.
    pub(super) fn arrange(&mut self, now: Time) {
        let extended = self.config.extended;
        if self.config.mode == Mode::Passive {
            let command =
                if extended { Command::Epsv(crate::ftp::ExtendedPassive::Same) } else { Command::Pasv };
            return self.say(&command);
        }
        let port = match self.endpoint.listen(None, Carries::Ranges) {
            Ok(port) => port,
            Err(error) => return self.finish(now, Err(OperationError::Endpoint(error))),
        };
        if let Some(work) = &mut self.work {
            work.port = Some(port);
        }
        match SocketAddr::new(self.config.address, port) {
            SocketAddr::V4(address) if !extended => self.say(&Command::Port(address)),
            address => self.say(&Command::Eprt(address)),
        }
    }
}
