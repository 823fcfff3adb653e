//! The client: a session with one server, and its operations one after the other.
//!
//! | file | contents |
//! |---|---|
//! | `control.rs` | the control connection: replies, login, the end |
//! | `operation.rs` | operations that an owner can submit |
//! | `transfer.rs` | data connections |

mod control;
mod operation;
mod transfer;

use alloc::collections::VecDeque;
use core::net::IpAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Reject, Transmit};
use farcast_core::{Time, Timers, timers};

use super::config::{ClientConfig, FtpConfigError, MOST_LINE};
use super::error::{OperationError, SessionError, SubmitError};
use super::lines::Lines;
use super::reply::{Reply, ReplyReader};
use super::report::{DataReport, FileReport, SessionReport};
use super::sources::Sources;
use super::{Contents, FileId, Representation};
use crate::endpoint::{ConnectionId, Endpoint, EndpointConfig};
use crate::{Failure, Segment};

pub use operation::Operation;
use transfer::ClientWork;

/// Most connections of a client. It has one control connection, one data connection, and lingering ones.
const MOST_CONNECTIONS: usize = 64;

/// Event of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientEvent {
    /// The login is complete.
    LoggedIn,
    /// Octets `skip..skip + len` of the payload just handled are to be stored at `offset` of a file, before anything
    /// else is handled.
    Store {
        /// File, named by its operation.
        file: FileId,
        /// Offset in the file.
        offset: u64,
        /// Number of octets of the payload before the range.
        skip: u16,
        /// Number of octets.
        len: u16,
    },
    /// An operation is over.
    Finished {
        /// The operation.
        file: FileId,
        /// Outcome of the operation.
        result: Result<Completion, OperationError>,
    },
    /// The octets of a file that was sent are no longer needed.
    Released(FileId),
    /// The session is over. Events for operations that were not done came before.
    Ended(Result<(), SessionError>),
}

/// Outcome of an operation that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Completion {
    /// A file or a list was transferred.
    File(FileReport),
    /// The server's reply, for an operation without a data connection.
    Reply(Reply),
}

/// State of the session, named by the reply or connection that the client awaits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unopened,
    /// The control connection.
    Connecting,
    /// 220.
    Greeting,
    /// The reply to USER.
    User,
    /// The reply to PASS.
    Pass,
    /// The reply to SYST.
    Syst,
    /// An operation's replies, or nothing if there is no operation.
    Ready,
    /// The reply to QUIT.
    Quitting,
    Ended,
}

timers! {
    /// The client's timers.
    enum Timer {
        /// The next operation may begin.
        Gap = "gap between operations",
        /// Nothing was heard from the server for a long time.
        Patience = "silence of the server",
    }
}

/// FTP client engine. It opens a session with [`connect`](Self::connect), does [submitted](Self::submit) operations in
/// order, and ends the session with [`quit`](Self::quit).
///
/// The [module](super) documentation says how the octets travel.
#[derive(Clone, Debug)]
pub struct Client {
    config: ClientConfig,
    endpoint: Endpoint,
    state: State,
    control: Option<ConnectionId>,
    lines: Lines,
    replies: ReplyReader,
    /// Representation that is set at the server.
    representation: Representation,
    waiting: VecDeque<(FileId, Operation)>,
    next_file: u64,
    work: Option<ClientWork>,
    sources: Sources,
    quit: bool,
    timers: Timers<Timer>,
    /// Time at which the client last heard from the server.
    heard_at: Time,
    session: SessionReport,
    received: u64,
    events: VecDeque<ClientEvent>,
}

impl Client {
    /// Creates a client that has not opened its session.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(config: ClientConfig) -> Result<Self, FtpConfigError> {
        config.check()?;
        let endpoint = Endpoint::new(EndpointConfig {
            address: config.address,
            tcp: config.tcp.clone(),
            most_connections: MOST_CONNECTIONS,
            seed: config.seed,
        })?;
        Ok(Self {
            config,
            endpoint,
            state: State::Unopened,
            control: None,
            lines: Lines::new(MOST_LINE),
            replies: ReplyReader::default(),
            representation: Representation::Ascii,
            waiting: VecDeque::new(),
            next_file: 0,
            work: None,
            sources: Sources::default(),
            quit: false,
            timers: Timers::default(),
            heard_at: Time::ZERO,
            session: SessionReport::default(),
            received: 0,
            events: VecDeque::new(),
        })
    }

    /// Opens the session. A second call does nothing.
    pub fn connect(&mut self, now: Time) {
        if self.state == State::Unopened {
            self.open(now);
            self.react(now);
        }
    }

    /// Does `operation` after all those submitted before. Returns the identifier that events use for it, which counts
    /// from 0.
    ///
    /// # Errors
    /// The operation cannot be done, too many wait, or the session is over.
    pub fn submit(&mut self, now: Time, operation: Operation) -> Result<FileId, SubmitError> {
        operation.check()?;
        if self.quit || self.state == State::Ended {
            return Err(SubmitError::Over);
        }
        if self.waiting.len() >= self.config.most_waiting {
            return Err(SubmitError::Full(self.config.most_waiting));
        }
        let file = FileId(self.next_file);
        self.next_file += 1;
        self.waiting.push_back((file, operation));
        self.go_on(now);
        self.react(now);
        Ok(file)
    }

    /// Ends the session when all submitted operations are done.
    pub fn quit(&mut self, now: Time) {
        self.quit = true;
        self.go_on(now);
        self.react(now);
    }

    /// Ends the current operation (ABOR), and returns `true` if there was one. The operation's event reports it as
    /// aborted once the server has agreed, or with its outcome if that was known before.
    pub fn abort(&mut self, now: Time) -> bool {
        let aborts = self.work.is_some();
        self.abort_work(now);
        self.react(now);
        aborts
    }

    /// Ends the session at once: its connections are reset, and operations not done are reported as such.
    pub fn disconnect(&mut self, now: Time) {
        self.end(now, Err(SessionError::Connection(Failure::Aborted)));
        self.react(now);
    }

    /// Returns the report of the session so far.
    pub fn session(&self) -> SessionReport {
        let connection = self.control.and_then(|id| self.endpoint.connection(id));
        let control = connection.map_or(self.session.control, |connection| *connection.stats());
        SessionReport { control, ..self.session }
    }

    /// Returns the number of octets of files and lists that have arrived in order, in the whole session so far.
    pub const fn octets_received(&self) -> u64 {
        self.received
    }

    /// Returns the counters of the connections on which the client sends files.
    pub fn data_report(&self) -> DataReport {
        self.sources.report(&self.endpoint)
    }

    /// Returns the endpoint with the client's connections.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the payload of a segment that the client sends or has sent to `destination`.
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
        if result.is_ok() {
            self.heard_at = now;
        }
        self.react(now);
        result
    }

    /// Returns `true` if the client awaits something that may never come.
    fn waits(&self) -> bool {
        match self.state {
            State::Unopened | State::Ended => false,
            State::Ready => self.work.is_some(),
            _ => true,
        }
    }

    /// Takes all events of the connections, then starts or stops the patience timer.
    fn react(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            self.note(now, event);
        }
        if !self.waits() {
            self.timers.stop(Timer::Patience);
        } else if !self.timers.is_set(Timer::Patience) {
            self.heard_at = now;
            self.timers.set(Timer::Patience, now + self.config.patience);
        }
    }

    fn patience_ends(&mut self, now: Time) {
        // The timer is not reset with each segment: it is checked when it is due.
        let due = self.heard_at + self.config.patience;
        if due > now {
            self.timers.set(Timer::Patience, due);
        } else {
            self.end(now, Err(SessionError::Silent));
        }
    }
}

impl Engine for Client {
    type Message = Segment;
    type Event = ClientEvent;

    /// Takes a segment without its payload, which suffices for a file's segments: the owner has their octets.
    fn handle(&mut self, now: Time, from: &Arrival, segment: &Segment) -> Result<(), Reject> {
        self.handle_octets(now, from, segment, &[])
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        self.react(now);
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                Timer::Gap => self.go_on(now),
                Timer::Patience => self.patience_ends(now),
            }
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
        let deadlines = self.endpoint.poll_timeout().into_iter().chain(self.timers.next());
        deadlines.min_by_key(|deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::ZERO // any acknowledgment may alter what leaves
    }
}
