//! The client: a session with one server, and the operations of it one after the other.
//!
//! | file | what |
//! |---|---|
//! | `control.rs` | the control connection: replies, login, the end |
//! | `operation.rs` | what a client can be asked for |
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
use transfer::Work;

/// Connections that a client may have. One has one control and one data connection, and those that linger.
const MOST_CONNECTIONS: usize = 64;

/// What a client tells its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientEvent {
    /// The login is through.
    LoggedIn,
    /// Octets `skip..skip + len` of the payload just handled are to be stored at `offset` of a file, before anything
    /// else is handled.
    Store {
        /// Which file: the operation.
        file: FileId,
        /// Where in it.
        offset: u64,
        /// How many octets of the payload come before.
        skip: u16,
        /// How many.
        len: u16,
    },
    /// An operation is over.
    Finished {
        /// Which.
        file: FileId,
        /// How.
        result: Result<Completion, OperationError>,
    },
    /// Octets of a file that was sent are asked for no more.
    Released(FileId),
    /// The session is over. Operations that were not done have been told of before.
    Ended(Result<(), SessionError>),
}

/// What an operation came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Completion {
    /// A file or a list was transferred.
    File(FileReport),
    /// The server has said this.
    Reply(Reply),
}

/// Where the session stands: what is awaited.
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
    /// An operation, or nothing if there is none.
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
        /// Nothing was heard for long.
        Patience = "silence of the server",
    }
}

/// A client: an engine that opens a session with [`connect`](Self::connect), does what is
/// [submitted](Self::submit) in order, and ends it with [`quit`](Self::quit).
///
/// The [module](super) says how the octets travel.
#[derive(Clone, Debug)]
pub struct Client {
    config: ClientConfig,
    endpoint: Endpoint,
    state: State,
    control: Option<ConnectionId>,
    lines: Lines,
    replies: ReplyReader,
    /// What the server takes data to be.
    representation: Representation,
    waiting: VecDeque<(FileId, Operation)>,
    next_file: u64,
    work: Option<Work>,
    sources: Sources,
    quit: bool,
    timers: Timers<Timer>,
    /// When anything was heard of the server last.
    heard_at: Time,
    session: SessionReport,
    received: u64,
    events: VecDeque<ClientEvent>,
}

impl Client {
    /// A client that has not opened its session.
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

    /// Opens the session. Called again, it does nothing.
    pub fn connect(&mut self, now: Time) {
        if self.state == State::Unopened {
            self.open(now);
            self.react(now);
        }
    }

    /// Does `operation` after those that were submitted before; the name by which events call it, which counts from 0.
    ///
    /// # Errors
    /// It cannot be done, or no more now.
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

    /// Ends the session when all that was submitted is done.
    pub fn quit(&mut self, now: Time) {
        self.quit = true;
        self.go_on(now);
        self.react(now);
    }

    /// Ends the operation at hand (ABOR). It is told of as aborted once the server has agreed, or as what it came to
    /// where that was known before. Whether there was one.
    pub fn abort(&mut self, now: Time) -> bool {
        let aborts = self.work.is_some();
        self.abort_work(now);
        self.react(now);
        aborts
    }

    /// Ends the session at once: its connections are reset, and what was not done is told of as that.
    pub fn disconnect(&mut self, now: Time) {
        self.end(now, Err(SessionError::Connection(Failure::Aborted)));
        self.react(now);
    }

    /// The session so far.
    pub fn session(&self) -> SessionReport {
        let connection = self.control.and_then(|id| self.endpoint.connection(id));
        let control = connection.map_or(self.session.control, |connection| *connection.stats());
        SessionReport { control, ..self.session }
    }

    /// Octets of files and lists that have arrived in order, in the whole session so far.
    pub const fn octets_received(&self) -> u64 {
        self.received
    }

    /// What the connections on which it sends files have counted.
    pub fn data_report(&self) -> DataReport {
        self.sources.report(&self.endpoint)
    }

    /// The connections.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What the payload of a segment is that the client sends or has sent to `destination`.
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
        if result.is_ok() {
            self.heard_at = now;
        }
        self.react(now);
        result
    }

    /// Whether something is awaited that may never come.
    fn waits(&self) -> bool {
        match self.state {
            State::Unopened | State::Ended => false,
            State::Ready => self.work.is_some(),
            _ => true,
        }
    }

    /// Takes what the connections tell, until they tell no more, and lets its patience begin or end.
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
        // The timer is not moved with each segment; it looks when it is due.
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

    /// Takes a segment without its payload: enough for a file's, whose octets the owner has.
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
