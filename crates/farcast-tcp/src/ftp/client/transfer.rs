//! Operations, and their data connections.

use core::net::SocketAddr;

use farcast_core::Time;

use super::{Client, ClientEvent, Completion, Operation, State, Timer};
use crate::endpoint::{Carries, ConnectionId};
use crate::ftp::reply::Reply;
use crate::ftp::report::FileReport;
use crate::ftp::{Command, FileId, Mode, OperationError, Representation, SessionError, host};
use crate::{Event, Failure};

/// Reply or connection that an operation waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClientStep {
    /// The reply to TYPE.
    Type,
    /// The reply to PASV, EPSV, PORT or EPRT.
    Arranging,
    /// The data connection that this side opens.
    Opening,
    /// The reply to REST.
    Rest,
    /// The first reply to the command itself.
    Command,
    /// The last reply to the command.
    Transfer,
    /// This many more replies after ABOR: that of the transfer, and that of ABOR.
    Aborting(u8),
}

/// The current operation.
#[derive(Clone, Debug)]
pub(super) struct ClientWork {
    pub(super) file: FileId,
    operation: Operation,
    step: ClientStep,
    /// Port at which the client awaits the server's connection.
    pub(super) port: Option<u16>,
    data: Option<ConnectionId>,
    /// The data connection is open.
    open: bool,
    /// Octets that are not written yet.
    unwritten: u64,
    /// The data has ended: all of it has arrived, or is written.
    data_ended: bool,
    failure: Option<OperationError>,
    /// The server has confirmed the end of the transfer.
    confirmed: bool,
    /// The owner has aborted the operation.
    cancelled: bool,
    report: FileReport,
    clock_runs: bool,
}

impl ClientWork {
    fn new(now: Time, file: FileId, operation: Operation) -> Self {
        let report = FileReport {
            octets: 0,
            requested: now,
            commanded: now,
            clock_started: now,
            clock_stopped: now,
            first_arrived: None,
            delivered: None,
            completed: now,
        };
        Self {
            file,
            unwritten: operation.sends().unwrap_or(0),
            operation,
            step: ClientStep::Command,
            port: None,
            data: None,
            open: false,
            data_ended: false,
            failure: None,
            confirmed: false,
            cancelled: false,
            report,
            clock_runs: false,
        }
    }

    /// Returns `true` if the operation sends data.
    const fn sends(&self) -> bool {
        self.operation.sends().is_some()
    }

    /// Returns the port of the listener, and the data connection unless its data has ended.
    pub(super) fn loose_ends(&self) -> (Option<u16>, Option<ConnectionId>) {
        (self.port, self.data.filter(|_| !self.data_ended))
    }
}

impl Client {
    pub(super) fn begin(&mut self, now: Time, file: FileId, operation: Operation) {
        let text = operation.lists() || self.config.representation == Representation::Ascii;
        let wanted = if text { Representation::Ascii } else { Representation::Image };
        let transfers = operation.transfers();
        let mut work = ClientWork::new(now, file, operation);
        if !transfers {
            self.say(&work.operation.command());
            self.work = Some(work);
        } else if wanted == self.representation {
            self.work = Some(work);
            self.arrange_data(now);
        } else {
            self.say(&Command::Type(wanted));
            work.step = ClientStep::Type;
            self.work = Some(work);
        }
    }

    fn arrange_data(&mut self, now: Time) {
        self.step(ClientStep::Arranging);
        self.arrange(now);
    }

    fn step(&mut self, step: ClientStep) {
        if let Some(work) = &mut self.work {
            work.step = step;
        }
    }

    /// Takes a reply about the current operation.
    pub(super) fn hear_of_work(&mut self, now: Time, reply: Reply) {
        let Some(work) = &mut self.work else { return };
        let code = reply.code;
        match work.step {
            ClientStep::Aborting(left) => {
                let left = left - u8::from(!code.is_preliminary());
                if left == 0 {
                    let error = work.failure.unwrap_or(OperationError::Aborted);
                    return self.finish(now, Err(error));
                }
                work.step = ClientStep::Aborting(left);
            }
            ClientStep::Command | ClientStep::Transfer => self.hear_of_command(now, reply),
            // A preliminary reply is not allowed here.
            _ if code.is_preliminary() => self.end(now, Err(SessionError::Unexpected(code))),
            _ if work.cancelled => self.finish(now, Err(OperationError::Aborted)),
            ClientStep::Rest if code.is_intermediate() => self.command(now),
            ClientStep::Type if code.is_completion() => {
                let other = self.representation == Representation::Ascii;
                self.representation = if other { Representation::Image } else { Representation::Ascii };
                self.arrange_data(now);
            }
            ClientStep::Arranging if code.is_completion() => self.hear_where(now, &reply),
            _ => self.finish(now, Err(OperationError::Refused(code))),
        }
    }

    /// Takes the reply that arranges the data connection, and opens the connection if that is the client's part.
    fn hear_where(&mut self, now: Time, reply: &Reply) {
        if self.config.mode == Mode::Active {
            return self.restart_or_command(now);
        }
        let port = if self.config.extended {
            host::find_port(&reply.text)
        } else {
            host::find_host_port(&reply.text).map(|address| address.port())
        };
        let Some(port) = port.filter(|&port| port > 0) else {
            return self.end(now, Err(SessionError::Unexpected(reply.code)));
        };
        // RFC 2577 section 3: data goes to the server of the control connection, even if the reply names another
        // address.
        let server = SocketAddr::new(self.config.server.ip(), port);
        match self.endpoint.connect(now, None, server, Carries::Ranges) {
            Ok(id) => {
                self.step(ClientStep::Opening);
                self.use_data(id);
            }
            Err(error) => self.finish(now, Err(OperationError::Endpoint(error))),
        }
    }

    fn use_data(&mut self, id: ConnectionId) {
        if let Some(work) = &mut self.work {
            work.data = Some(id);
            if work.sends() {
                self.sources.insert(id, work.file, work.operation.offset());
            }
        }
    }

    /// Takes a connection that the server has opened to `port`.
    pub(super) fn data_was_accepted(&mut self, now: Time, port: u16, id: ConnectionId, peer: SocketAddr) {
        let wanted = |work: &ClientWork| work.port == Some(port) && work.data.is_none();
        if !self.work.as_ref().is_some_and(wanted) || peer.ip() != self.config.server.ip() {
            return self.endpoint.abort(id);
        }
        self.endpoint.stop_listening(port);
        self.use_data(id);
        self.data_is_open(now);
    }

    fn data_is_open(&mut self, now: Time) {
        let Some(work) = &mut self.work else { return };
        work.open = true;
        if work.step == ClientStep::Opening {
            self.restart_or_command(now);
        } else {
            self.start_clock(now);
        }
    }

    fn restart_or_command(&mut self, now: Time) {
        let Some(work) = &mut self.work else { return };
        match work.operation.offset() {
            0 => self.command(now),
            offset => {
                work.step = ClientStep::Rest;
                self.say(&Command::Rest(offset));
            }
        }
    }

    fn command(&mut self, now: Time) {
        let Some(work) = &mut self.work else { return };
        work.report.commanded = now;
        work.step = ClientStep::Command;
        let command = work.operation.command();
        self.say(&command);
    }

    /// Takes a reply to the command itself.
    fn hear_of_command(&mut self, now: Time, reply: Reply) {
        let Some(work) = &mut self.work else { return };
        let code = reply.code;
        let transfers = work.operation.transfers();
        if code.is_preliminary() && transfers && work.step == ClientStep::Command {
            work.step = ClientStep::Transfer;
            self.start_clock(now);
        } else if !transfers && code.is_completion() {
            self.finish(now, Ok(Completion::Reply(reply)));
        } else if code.is_completion() && work.step == ClientStep::Transfer {
            work.confirmed = true;
            if work.sends() && !work.data_ended {
                work.failure.get_or_insert(OperationError::CutShort);
            }
            self.finish_if_done(now);
        } else if code.is_completion() || code.is_preliminary() {
            self.end(now, Err(SessionError::Unexpected(code)));
        } else {
            // The data connection's error says more than the server's reply about it (425, 426).
            let error = work.failure.unwrap_or(OperationError::Refused(code));
            self.finish(now, Err(error));
        }
    }

    /// Starts the client's clock once the data connection is open and the preliminary reply has come.
    fn start_clock(&mut self, now: Time) {
        let Some(work) = &mut self.work else { return };
        if !work.open || work.step != ClientStep::Transfer || work.clock_runs {
            return;
        }
        work.clock_runs = true;
        work.report.clock_started = now;
        // Data that came before the reply counts as arriving with the reply.
        work.report.clock_stopped = now;
        self.write(now);
    }

    /// Writes as many octets as the send buffer takes. The stream ends behind the last octet.
    fn write(&mut self, now: Time) {
        let Some(work) = &mut self.work else { return };
        let Some(id) = work.data.filter(|_| work.sends() && work.clock_runs && !work.data_ended) else {
            return;
        };
        let taken = self.endpoint.write(id, work.unwritten);
        work.unwritten -= taken;
        work.report.octets += taken;
        if work.unwritten == 0 {
            work.data_ended = true;
            work.report.clock_stopped = now;
            self.endpoint.close(id);
        }
    }

    /// Takes an event of a connection that is not the control connection.
    pub(super) fn note_data(&mut self, now: Time, id: ConnectionId, event: Event) {
        let Some(work) = self.work.as_mut().filter(|work| work.data == Some(id)) else {
            if event == Event::PeerClosed {
                self.endpoint.close(id);
            }
            return;
        };
        match event {
            Event::Connected => self.data_is_open(now),
            Event::Store { offset, skip, len } if !work.sends() => {
                let (file, offset) = (work.file, work.operation.offset().saturating_add(offset));
                self.events.push_back(ClientEvent::Store { file, offset, skip, len });
            }
            Event::Readable => self.data_arrived(now, id),
            Event::Writable => self.write(now),
            Event::PeerClosed => self.peer_has_closed(now, id),
            Event::Failed(failure) if !work.data_ended || (work.sends() && !work.confirmed) => {
                self.data_has_failed(now, OperationError::DataConnection(failure));
            }
            _ => {}
        }
    }

    fn data_arrived(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.endpoint.connection(id) else { return };
        let (received, readable) = (connection.received(), connection.readable());
        self.endpoint.consume(id, readable);
        if let Some(work) = self.work.as_mut().filter(|work| !work.sends()) {
            self.received += readable;
            work.report.octets = received;
            work.report.first_arrived.get_or_insert(now);
            work.report.delivered = Some(now);
        }
    }

    fn peer_has_closed(&mut self, now: Time, id: ConnectionId) {
        let Some(work) = &mut self.work else { return };
        if work.sends() {
            if !work.data_ended {
                self.endpoint.abort(id);
                self.data_has_failed(now, OperationError::CutShort);
            }
            return;
        }
        work.data_ended = true;
        work.report.delivered.get_or_insert(now);
        work.report.clock_stopped = now;
        self.endpoint.close(id);
        self.finish_if_done(now);
    }

    /// Handles a data connection that could not be opened, or is lost. If the server was asked for data, its reply
    /// decides.
    fn data_has_failed(&mut self, now: Time, error: OperationError) {
        let Some(work) = &mut self.work else { return };
        work.failure.get_or_insert(error);
        match work.step {
            ClientStep::Command | ClientStep::Transfer if work.confirmed => self.finish_if_done(now),
            // The server may not know of a timeout. It has seen any other end, and sends a reply.
            ClientStep::Command | ClientStep::Transfer if error == TIMED_OUT => self.say_abort(),
            ClientStep::Command | ClientStep::Transfer | ClientStep::Aborting(_) | ClientStep::Rest => {}
            _ => self.finish(now, Err(error)),
        }
    }

    fn finish_if_done(&mut self, now: Time) {
        let Some(work) = &mut self.work else { return };
        if !work.confirmed {
            return;
        }
        let report = FileReport { completed: now, ..work.report };
        match work.failure {
            Some(error) => self.finish(now, Err(error)),
            None if work.data_ended => self.finish(now, Ok(Completion::File(report))),
            None => {}
        }
    }

    /// Ends the current operation and begins the next one.
    pub(super) fn finish(&mut self, now: Time, result: Result<Completion, OperationError>) {
        let Some(work) = self.work.take() else { return };
        let (port, data) = work.loose_ends();
        self.drop_data(port, data);
        self.tell(work.file, result);
        if self.state == State::Ready && !self.config.gap.is_zero() && !self.waiting.is_empty() {
            self.timers.set(Timer::Gap, now + self.config.gap);
        }
        self.go_on(now);
    }

    pub(super) fn tell(&mut self, file: FileId, result: Result<Completion, OperationError>) {
        self.events.push_back(ClientEvent::Finished { file, result });
    }

    /// Drops an operation's listener and data connection. A connection whose data has ended stays until the data is
    /// delivered.
    pub(super) fn drop_data(&mut self, port: Option<u16>, data: Option<ConnectionId>) {
        if let Some(port) = port {
            self.endpoint.stop_listening(port);
        }
        if let Some(id) = data {
            self.endpoint.abort(id);
        }
    }

    /// Aborts the current operation.
    pub(super) fn abort_work(&mut self, now: Time) {
        let Some(work) = &mut self.work else { return };
        match work.step {
            ClientStep::Aborting(_) => {}
            ClientStep::Opening => self.finish(now, Err(OperationError::Aborted)),
            ClientStep::Command | ClientStep::Transfer if work.operation.transfers() => {
                work.failure.get_or_insert(OperationError::Aborted);
                self.say_abort();
            }
            _ => work.cancelled = true,
        }
    }

    /// Asks the server to end the transfer, and drops the data connection.
    fn say_abort(&mut self) {
        let Some(work) = &mut self.work else { return };
        work.step = ClientStep::Aborting(if work.confirmed { 1 } else { 2 });
        let (port, data) = work.loose_ends();
        self.drop_data(port, data);
        self.say(&Command::Abor);
    }
}

/// Error of a data connection whose peer answers no more.
const TIMED_OUT: OperationError = OperationError::DataConnection(Failure::TimedOut);
