//! Data connections.

use core::net::SocketAddr;

use farcast_core::Time;

use super::request::Request;
use super::session::{Plan, SessionPhase};
use super::{ConnectionOwner, Server, ServerEvent, SessionId};
use crate::Event;
use crate::endpoint::{Carries, ConnectionId};
use crate::ftp::report::TransferReport;
use crate::ftp::{FileId, TransferError};

/// The current transfer of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) file: FileId,
    /// Octet of the file at which the transfer begins.
    first: u64,
    /// Octets that are not written yet; `None` if the server receives.
    unwritten: Option<u64>,
    pub(super) data: Option<ConnectionId>,
    /// The data connection is open, and the preliminary reply sent.
    open: bool,
    report: TransferReport,
}

impl Server {
    /// Begins to send `octets`, or to receive.
    pub(super) fn begin_transfer(
        &mut self,
        now: Time,
        id: SessionId,
        file: FileId,
        first: u64,
        octets: Option<u64>,
    ) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let plan = core::mem::take(&mut session.plan);
        let report = TransferReport { file, octets: 0, opened: now, delivered: None, completed: now };
        session.phase = SessionPhase::Transfer;
        session.transfer = Some(Transfer { file, first, unwritten: octets, data: None, open: false, report });
        let remote = match plan {
            Plan::Passive { connection: Some(connection), .. } => {
                self.use_data(id, connection);
                return self.data_is_open(now, id);
            }
            Plan::Passive { .. } => {
                session.plan = plan;
                return;
            }
            Plan::Lost => return self.not_opened(id),
            Plan::Active(remote) => remote,
            Plan::Default => session.peer,
        };
        match self.endpoint.connect(now, Some(self.config.port - 1), remote, Carries::Ranges) {
            Ok(connection) => self.use_data(id, connection),
            Err(_) => self.not_opened(id),
        }
    }

    fn use_data(&mut self, id: SessionId, connection: ConnectionId) {
        self.owners.insert(connection, ConnectionOwner::Data(id));
        if let Some(transfer) = self.transfer(id) {
            transfer.data = Some(connection);
            if transfer.unwritten.is_some() {
                let (file, first) = (transfer.file, transfer.first);
                self.sources.insert(connection, file, first);
            }
        }
    }

    fn transfer(&mut self, id: SessionId) -> Option<&mut Transfer> {
        self.sessions.get_mut(&id)?.transfer.as_mut()
    }

    fn not_opened(&mut self, id: SessionId) {
        self.end_transfer(id, Err(TransferError::NotOpened), 425, "Can't open data connection.");
    }

    /// Takes a connection that a client has opened to a session's data port.
    pub(super) fn data_was_accepted(
        &mut self,
        now: Time,
        port: u16,
        connection: ConnectionId,
        peer: SocketAddr,
    ) {
        let owner = self.ports.get(&port).copied();
        let session = owner.and_then(|id| self.sessions.get_mut(&id));
        let Some((id, session)) = owner.zip(session).filter(|(_, session)| session.peer.ip() == peer.ip())
        else {
            return self.endpoint.abort(connection);
        };
        let waits = session.transfer.is_some_and(|transfer| transfer.data.is_none());
        session.plan =
            if waits { Plan::Default } else { Plan::Passive { port, connection: Some(connection) } };
        self.owners.insert(connection, ConnectionOwner::Data(id));
        self.stop_listening(port);
        if waits {
            self.use_data(id, connection);
            self.data_is_open(now, id);
        }
    }

    fn stop_listening(&mut self, port: u16) {
        self.endpoint.stop_listening(port);
        self.ports.remove(&port);
    }

    /// Forgets the arrangement of the next data connection.
    pub(super) fn drop_plan(&mut self, id: SessionId) {
        self.replan(id, Plan::Default);
    }

    pub(super) fn replan(&mut self, id: SessionId, plan: Plan) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Plan::Passive { port, connection } = core::mem::replace(&mut session.plan, plan) {
            self.stop_listening(port);
            self.endpoint_abort(connection);
        }
    }

    fn data_is_open(&mut self, now: Time, id: SessionId) {
        self.reply(id, 150, "Opening data connection.");
        if let Some(transfer) = self.transfer(id) {
            transfer.open = true;
            transfer.report.opened = now;
        }
        self.write(now, id);
    }

    /// Writes as many octets as the send buffer takes. Behind the last octet the stream and the transfer end.
    fn write(&mut self, now: Time, id: SessionId) {
        let Some(transfer) = self.sessions.get_mut(&id).and_then(|session| session.transfer.as_mut()) else {
            return;
        };
        let (Some(connection), Some(unwritten)) =
            (transfer.data.filter(|_| transfer.open), transfer.unwritten)
        else {
            return;
        };
        let taken = self.endpoint.write(connection, unwritten);
        transfer.report.octets += taken;
        transfer.unwritten = Some(unwritten - taken);
        if taken == unwritten {
            self.endpoint.close(connection);
            let report = TransferReport { completed: now, ..transfer.report };
            self.end_transfer(id, Ok(report), 226, "Transfer complete.");
        }
    }

    /// Takes an event of a data connection.
    pub(super) fn note_data(&mut self, now: Time, id: SessionId, connection: ConnectionId, event: Event) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if matches!(session.plan, Plan::Passive { connection: Some(planned), .. } if planned == connection) {
            return self.planned_was_touched(id, connection);
        }
        let Some(transfer) = session.transfer.as_mut().filter(|transfer| transfer.data == Some(connection))
        else {
            if event == Event::PeerClosed {
                self.endpoint.close(connection);
            }
            return;
        };
        match event {
            Event::Connected => self.data_is_open(now, id),
            Event::Store { offset, skip, len } if transfer.unwritten.is_none() => {
                let (file, offset) = (transfer.file, transfer.first.saturating_add(offset));
                self.events.push_back(ServerEvent::Store { file, offset, skip, len });
            }
            Event::Readable => self.data_arrived(now, id, connection),
            Event::Writable => self.write(now, id),
            Event::PeerClosed => self.peer_has_closed(now, id, connection),
            Event::Failed(_) if !transfer.open => self.not_opened(id),
            Event::Failed(failure) if session.phase == SessionPhase::Transfer => {
                let result = Err(TransferError::DataConnection(failure));
                self.end_transfer(id, result, 426, "Connection closed; transfer aborted.");
            }
            _ => {}
        }
    }

    /// Discards a data connection that was lost, or brought data, before a transfer needed it.
    fn planned_was_touched(&mut self, id: SessionId, connection: ConnectionId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.plan = Plan::Lost;
        }
        self.endpoint.abort(connection);
    }

    fn data_arrived(&mut self, now: Time, id: SessionId, connection: ConnectionId) {
        let Some(engine) = self.endpoint.connection(connection) else { return };
        let (received, readable) = (engine.received(), engine.readable());
        self.endpoint.consume(connection, readable);
        let session = self.sessions.get_mut(&id).and_then(|session| session.transfer.as_mut());
        if let Some(transfer) = session.filter(|transfer| transfer.unwritten.is_none()) {
            self.received += readable;
            transfer.report.octets = received;
            transfer.report.delivered = Some(now);
        }
    }

    fn peer_has_closed(&mut self, now: Time, id: SessionId, connection: ConnectionId) {
        let Some(transfer) = self.transfer(id) else { return };
        if transfer.unwritten.is_some() {
            self.endpoint.abort(connection);
            let result = Err(TransferError::CutShort);
            return self.end_transfer(id, result, 426, "Connection closed; transfer aborted.");
        }
        transfer.report.delivered.get_or_insert(now);
        let (file, octets) = (transfer.file, transfer.report.octets);
        self.endpoint.close(connection);
        self.ask_about(id, file, Request::Keep { octets });
    }

    /// Ends a transfer whose file the owner has kept.
    pub(super) fn was_kept(&mut self, now: Time, id: SessionId) {
        if let Some(transfer) = self.transfer(id) {
            let report = TransferReport { completed: now, ..transfer.report };
            self.end_transfer(id, Ok(report), 226, "Transfer complete.");
        }
    }

    /// Ends the transfer, and tells the client and the owner.
    pub(super) fn end_transfer(
        &mut self,
        id: SessionId,
        result: Result<TransferReport, TransferError>,
        code: u16,
        text: &str,
    ) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(transfer) = session.transfer.take() else { return };
        session.phase = SessionPhase::Idle;
        if result.is_err() {
            self.endpoint_abort(transfer.data);
            self.drop_plan(id);
        }
        self.reply(id, code, text);
        self.events.push_back(ServerEvent::Transferred { session: id, file: transfer.file, result });
    }
}
