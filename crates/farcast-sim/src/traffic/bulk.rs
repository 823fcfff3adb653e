//! One TCP connection that carries octets one way: as many as the connection takes, or a size.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine};
use farcast_tcp::{Config, ConfigError, Connection, Event, SequenceNumber};

use super::{Counts, End, Flow, FlowMessage, FlowReport, TcpReport};
use crate::star::{hub_address, receiver_address};

/// The settings of a [`Bulk`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BulkConfig {
    /// Both ends' settings.
    pub config: Config,
    /// How many octets; without, it goes on.
    pub size: Option<u64>,
    /// The end that sends them. It opens the connection.
    pub source: End,
    /// The number of its terminal, which decides the address.
    pub terminal: u32,
    /// Where the ends begin to number: the source's, and the other's.
    pub initial: [SequenceNumber; 2],
}

/// The port at which the source is called.
const SOURCE_PORT: u16 = 49_152;
/// The port at which the other end is called.
const SINK_PORT: u16 = 5_001;

/// A bulk transfer over TCP. The owner of the sink takes what has arrived at once.
///
/// When it stops, the connection is reset: nothing of it is left on the links but what is under way.
#[derive(Clone, Debug)]
pub struct Bulk {
    source: Side,
    sink: Side,
    /// The end at which the source is.
    at: End,
    size: Option<u64>,
    /// What had arrived when it stopped.
    stopped: Option<u64>,
    completed: Option<Time>,
}

/// An end of the connection.
#[derive(Clone, Debug)]
struct Side {
    connection: Connection,
    /// How everything arrives there.
    arrival: Arrival,
    /// When it wants to be woken.
    due: Time,
    /// Whether it may have something to say.
    stirred: bool,
    /// Octets that its owner has yet to write.
    unwritten: u64,
}

impl Side {
    fn new(connection: Connection, peer: SocketAddr) -> Self {
        let arrival = Arrival::new(peer, connection.local());
        Self { connection, arrival, due: Time::NEVER, stirred: false, unwritten: 0 }
    }

    fn handle(&mut self, now: Time, message: &FlowMessage) {
        if let FlowMessage::Tcp(segment) = message {
            // What a connection turns down is counted there.
            let _ = self.connection.handle(now, &self.arrival, segment);
            self.drain_events();
            self.stirred = true;
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.due <= now {
            self.connection.handle_timeout(now);
            self.drain_events();
            self.stirred = true;
        }
    }

    /// The next segment that leaves. When there is none, it is quiet until it hears something or its timer is due.
    fn poll_transmit(&mut self, now: Time) -> Option<FlowMessage> {
        if !self.stirred {
            return None;
        }
        while self.stirred {
            if let Some(segment) = self.connection.poll_segment(now) {
                return Some(FlowMessage::Tcp(segment));
            }
            // What is polled may tell the owner something, and the owner's answer may let something leave.
            self.stirred = self.drain_events();
        }
        self.due = self.connection.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        None
    }

    /// The owner takes everything at once, writes as soon as there is room, and closes when the peer has. Whether there
    /// was anything.
    fn drain_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.connection.poll_event() {
            any = true;
            match event {
                Event::Readable => self.connection.consume(self.connection.readable()),
                Event::Writable => self.write(),
                Event::PeerClosed => self.connection.close(),
                _ => {}
            }
        }
        any
    }

    /// Writes what there is room for; behind the last octet the stream ends.
    fn write(&mut self) {
        self.stirred = true;
        self.unwritten -= self.connection.write(self.unwritten);
        if self.unwritten == 0 {
            self.connection.close();
        }
    }
}

impl Bulk {
    /// A flow that has not started.
    ///
    /// # Errors
    /// A setting of the connection that cannot work.
    pub fn new(config: BulkConfig) -> Result<Self, ConfigError> {
        let BulkConfig { config, size, source: at, terminal, initial } = config;
        let ip = |end| if end == End::Hub { hub_address() } else { receiver_address(terminal).ip() };
        let source = SocketAddr::new(ip(at), SOURCE_PORT);
        let sink = SocketAddr::new(ip(at.other()), SINK_PORT);
        let connection = Connection::connect(config.clone(), source, sink, initial[0])?;
        Ok(Self {
            source: Side { unwritten: size.unwrap_or(u64::MAX), ..Side::new(connection, sink) },
            sink: Side::new(Connection::listen(config, sink, initial[1])?, source),
            at,
            size,
            stopped: None,
            completed: None,
        })
    }

    /// The side that is at `end`.
    fn side(&mut self, end: End) -> &mut Side {
        if end == self.at { &mut self.source } else { &mut self.sink }
    }
}

impl Flow for Bulk {
    fn start(&mut self, _now: Time) {
        self.source.write();
    }

    fn stop(&mut self, _now: Time) {
        if self.stopped.is_none() && self.completed.is_none() {
            self.stopped = Some(self.sink.connection.received());
        }
        self.source.connection.abort();
        self.source.stirred = true;
    }

    fn handle(&mut self, now: Time, end: End, message: &FlowMessage) {
        self.side(end).handle(now, message);
        if self.completed.is_none() && self.stopped.is_none() {
            let received = self.sink.connection.received();
            self.completed = self.size.filter(|&size| received >= size).map(|_| now);
        }
    }

    fn refused(&mut self, now: Time, end: End, message: &FlowMessage) {
        if let FlowMessage::Tcp(segment) = message {
            let side = self.side(end);
            side.connection.refused(now, segment);
            side.stirred = true;
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.source.handle_timeout(now);
        self.sink.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(End, FlowMessage)> {
        if let Some(message) = self.source.poll_transmit(now) {
            return Some((self.at, message));
        }
        self.sink.poll_transmit(now).map(|message| (self.at.other(), message))
    }

    fn poll_timeout(&self) -> Time {
        self.source.due.min(self.sink.due)
    }

    fn has_end(&self) -> bool {
        self.size.is_some()
    }

    fn completed(&self) -> Option<Time> {
        self.completed
    }

    fn report(&self) -> FlowReport {
        let stats = self.source.connection.stats();
        let counts = TcpReport {
            segments: stats.data_segments_sent,
            retransmits: stats.retransmits,
            timeouts: stats.timeouts,
        };
        let octets = self.stopped.unwrap_or_else(|| self.sink.connection.received());
        FlowReport { octets, counts: Counts::Tcp(counts) }
    }
}
