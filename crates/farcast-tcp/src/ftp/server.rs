//! The server: sessions, each with its own control connection.
//!
//! | file | what |
//! |---|---|
//! | `commands.rs` | what commands do |
//! | `request.rs` | what the owner is asked, and its answers |
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

/// A session of a server. No number is used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(u64);

/// What a server tells its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerEvent {
    /// A session has begun.
    Opened {
        /// Which.
        session: SessionId,
        /// With whom.
        peer: SocketAddr,
    },
    /// Somebody has logged in.
    LoggedIn {
        /// Where.
        session: SessionId,
        /// Who.
        user: String,
    },
    /// The owner is to [answer](Server::answer). Until then, the session does nothing.
    Asked {
        /// Which session asks.
        session: SessionId,
        /// What the file is called from now on, if the request is about one that is transferred.
        file: FileId,
        /// What it asks.
        request: Request,
    },
    /// Octets `skip..skip + len` of the payload just handled are to be stored at `offset` of a file, before anything
    /// else is handled.
    Store {
        /// Which file.
        file: FileId,
        /// Where in it.
        offset: u64,
        /// How many octets of the payload come before.
        skip: u16,
        /// How many.
        len: u16,
    },
    /// A transfer is over. What was sent may not have arrived yet.
    Transferred {
        /// Whose.
        session: SessionId,
        /// Which file.
        file: FileId,
        /// How it went.
        result: Result<TransferReport, TransferError>,
    },
    /// Octets of a file that was sent are asked for no more.
    Released(FileId),
    /// A session is over.
    Closed {
        /// Which.
        session: SessionId,
    },
}

/// To whom a connection belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Control(SessionId),
    Data(SessionId),
}

/// A server: an engine that waits for clients, and asks its owner about files.
///
/// The [module](super) says how the octets travel.
#[derive(Clone, Debug)]
pub struct Server {
    config: ServerConfig,
    endpoint: Endpoint,
    sessions: BTreeMap<SessionId, Session>,
    owners: BTreeMap<ConnectionId, Owner>,
    /// Who waits for a data connection at which port.
    ports: BTreeMap<u16, SessionId>,
    sources: Sources,
    /// When sessions may have been idle for too long.
    idle: BTreeSet<(Time, SessionId)>,
    next_session: u64,
    next_file: u64,
    received: u64,
    events: VecDeque<ServerEvent>,
}

impl Server {
    /// A server that waits for clients.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(config: ServerConfig) -> Result<Self, FtpConfigError> {
        config.check()?;
        let mut endpoint = Endpoint::new(EndpointConfig {
            address: config.address,
            tcp: config.tcp.clone(),
            // A control and a data connection for each session, and others that linger.
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

    /// Answers what a session has asked.
    ///
    /// # Errors
    /// It has asked nothing, or something that cannot be answered so; nothing happens.
    pub fn answer(&mut self, now: Time, session: SessionId, answer: Answer) -> Result<(), AnswerError> {
        self.take_answer(now, session, answer)?;
        self.read(session);
        self.react(now);
        Ok(())
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Octets of files that have arrived in order, in all sessions so far.
    pub const fn octets_received(&self) -> u64 {
        self.received
    }

    /// What the connections on which it sends files and lists have counted.
    pub fn data_report(&self) -> DataReport {
        self.sources.report(&self.endpoint)
    }

    /// The connections.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What the payload of a segment is that the server sends or has sent to `destination`.
    pub fn contents(&self, segment: &Segment, destination: IpAddr) -> Contents<'_> {
        self.sources.contents(&self.endpoint, segment, destination)
    }

    /// A segment to `destination` that was polled found no room in the queue of this host ([`Endpoint::refused`]).
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
        if let Some(&(Owner::Control(session) | Owner::Data(session))) = owner
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

    /// Takes a segment without its payload: enough for a file's, whose octets the owner has.
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
