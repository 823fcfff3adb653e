//! The server: sessions, each with its own control connection.
//!
//! | file | contents |
//! |---|---|
//! | `commands.rs` | the server's commands |
//! | `request.rs` | requests to the owner, and its answers |
//! | `session.rs` | a session, its beginning and its end |
//! | `transfer.rs` | data connections |

mod commands;
mod request;
mod session;
mod transfer;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use core::net::{IpAddr, SocketAddr};

use farcast_core::Time;
use farcast_core::engine::{Arrival, Deadline, Engine, Reject, Transmit};

use super::config::{FtpConfigError, ServerConfig};
use super::error::TransferError;
use super::report::{DataReport, TransferReport};
use super::sources::Sources;
use super::{Contents, FileId};
use crate::Segment;
use crate::endpoint::{Carries, ConnectionId, Endpoint, EndpointConfig};

pub use request::{Answer, AnswerError, Refusal, Request};
use session::Session;

/// Identifier of a session of a server. No number is used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(u64);

/// Event of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerEvent {
    /// A session has begun.
    Opened {
        /// The session.
        session: SessionId,
        /// Address of the client.
        peer: SocketAddr,
    },
    /// A user has logged in.
    LoggedIn {
        /// The session.
        session: SessionId,
        /// Name of the user.
        user: String,
    },
    /// The owner must [answer](Server::answer) a request. Until then, the session does nothing.
    Asked {
        /// Session that asks.
        session: SessionId,
        /// Identifier of the file from now on, if the request is about a file to transfer.
        file: FileId,
        /// The request.
        request: Request,
    },
    /// Octets `skip..skip + len` of the payload just handled are to be stored at `offset` of a file, before anything
    /// else is handled.
    Store {
        /// The file.
        file: FileId,
        /// Offset in the file.
        offset: u64,
        /// Number of octets of the payload before the range.
        skip: u16,
        /// Number of octets.
        len: u16,
    },
    /// A transfer is over. Octets that were sent may not have arrived yet.
    Transferred {
        /// Session of the transfer.
        session: SessionId,
        /// The file.
        file: FileId,
        /// Outcome of the transfer.
        result: Result<TransferReport, TransferError>,
    },
    /// The octets of a file that was sent are no longer needed.
    Released(FileId),
    /// A session is over.
    Closed {
        /// The session.
        session: SessionId,
    },
}

/// Session to which a connection belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConnectionOwner {
    Control(SessionId),
    Data(SessionId),
}

/// FTP server engine. It waits for clients, and asks its owner about files.
///
/// The [module](super) documentation says how the octets travel.
#[derive(Clone, Debug)]
pub struct Server {
    config: ServerConfig,
    endpoint: Endpoint,
    sessions: BTreeMap<SessionId, Session>,
    owners: BTreeMap<ConnectionId, ConnectionOwner>,
    /// Sessions that wait for a data connection, by port.
    ports: BTreeMap<u16, SessionId>,
    sources: Sources,
    /// Times at which sessions may have been idle for too long.
    idle: BTreeSet<(Time, SessionId)>,
    next_session: u64,
    next_file: u64,
    received: u64,
    events: VecDeque<ServerEvent>,
}

impl Server {
    /// Creates a server that waits for clients.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(config: ServerConfig) -> Result<Self, FtpConfigError> {
        config.check()?;
        let mut endpoint = Endpoint::new(EndpointConfig {
            address: config.address,
            tcp: config.tcp.clone(),
            // A control and a data connection for each session, and lingering ones.
            most_connections: config.most_sessions.saturating_mul(4).saturating_add(60),
            seed: config.seed,
        })?;
        // A new endpoint has no other listener.
        let _ = endpoint.listen(Some(config.port), Carries::Octets);
        Ok(Self {
            config,
            endpoint,
            sessions: BTreeMap::new(),
            owners: BTreeMap::new(),
            ports: BTreeMap::new(),
            sources: Sources::default(),
            idle: BTreeSet::new(),
            next_session: 0,
            next_file: 0,
            received: 0,
            events: VecDeque::new(),
        })
    }

    /// Answers the request of a session.
    ///
    /// # Errors
    /// The session has asked nothing, or the answer does not fit the request; nothing happens.
    pub fn answer(&mut self, now: Time, session: SessionId, answer: Answer) -> Result<(), AnswerError> {
        self.take_answer(now, session, answer)?;
        self.read(session);
        self.react(now);
        Ok(())
    }

    /// Returns the number of sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the number of octets of files that have arrived in order, in all sessions so far.
    pub const fn octets_received(&self) -> u64 {
        self.received
    }

    /// Returns the counters of the connections on which the server sends files and lists.
    pub fn data_report(&self) -> DataReport {
        self.sources.report(&self.endpoint)
    }

    /// Returns the endpoint with the server's connections.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the payload of a segment that the server sends or has sent to `destination`.
    pub fn contents(&self, segment: &Segment, destination: IpAddr) -> Contents<'_> {
        self.sources.contents(&self.endpoint, segment, destination)
    }

    /// Notes that a segment to `destination` was polled and found no room in the queue of this host
    /// ([`Endpoint::refused`]).
    pub fn refused(&mut self, now: Time, segment: &Segment, destination: IpAddr) {
        self.endpoint.refused(now, segment, destination);
    }

    /// Takes a segment with its payload; the payload of a file may be absent.
    ///
    /// # Errors
    /// As [`Endpoint::handle_octets`].
    pub fn handle_octets(
        &mut self,
        now: Time,
        from: &Arrival,
        segment: &Segment,
        octets: &[u8],
    ) -> Result<(), Reject> {
        let result = self.endpoint.handle_octets(now, from, segment, octets);
        self.react(now);
        let remote = SocketAddr::new(from.source.ip(), segment.source_port);
        let owner = self.endpoint.find(segment.destination_port, remote).and_then(|id| self.owners.get(&id));
        if let Some(&(ConnectionOwner::Control(session) | ConnectionOwner::Data(session))) = owner
            && result.is_ok()
        {
            if let Some(session) = self.sessions.get_mut(&session) {
                session.heard_at = now;
            }
            // An acknowledgment may have made room for replies.
            self.read(session);
            self.react(now);
        }
        result
    }

    fn react(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            self.note(now, event);
        }
    }
}

impl Engine for Server {
    type Message = Segment;
    type Event = ServerEvent;

    /// Takes a segment without its payload, which suffices for a file's segments: the owner has their octets.
    fn handle(&mut self, now: Time, from: &Arrival, segment: &Segment) -> Result<(), Reject> {
        self.handle_octets(now, from, segment, &[])
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        self.react(now);
        while let Some(&(at, session)) = self.idle.first()
            && at <= now
        {
            self.idle.pop_first();
            self.idleness_ends(now, session);
            self.react(now);
        }
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Segment>> {
        let transmit = self.endpoint.poll_transmit(now, until);
        if transmit.is_none() {
            self.react(now);
        }
        transmit
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let idle = self.idle.first().map(|&(at, _)| Deadline { at, timer: "idle session" });
        self.endpoint.poll_timeout().into_iter().chain(idle).min_by_key(|deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::ZERO // any acknowledgment may alter what leaves
    }
}
