//! Bulk transfer: one TCP connection that carries octets one way, either without end or up to a size.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine};
use farcast_tcp::{Config, ConfigError, Connection, Event, SequenceNumber};

use super::{Counts, End, Flow, FlowMessage, FlowReport, TcpReport};
use crate::address::{hub_address, receiver_address};

/// Settings of a [`Bulk`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BulkConfig {
    /// TCP settings of both ends.
    pub config: Config,
    /// Number of octets to send; without one, the flow does not end.
    pub size: Option<u64>,
    /// End that sends the octets. It opens the connection.
    pub source: End,
    /// Number of the flow's terminal, which decides the address.
    pub terminal: u32,
    /// Initial sequence numbers: the source's, and the other end's.
    pub initial: [SequenceNumber; 2],
}

/// Port of the source.
const SOURCE_PORT: u16 = 49_152;
/// Port of the sink.
const SINK_PORT: u16 = 5_001;

/// Bulk transfer over TCP. The owner of the sink consumes arriving octets at once.
///
/// When the flow stops, the connection is reset. Then only what is under way remains on the links.
#[derive(Clone, Debug)]
pub struct Bulk {
    source: Side,
    sink: Side,
    /// End at which the source is.
    at: End,
    size: Option<u64>,
    /// Octets that had arrived when the flow stopped.
    stopped: Option<u64>,
    completed: Option<Time>,
}

/// One end of the connection.
#[derive(Clone, Debug)]
struct Side {
    connection: Connection,
    /// Addresses of all segments that arrive at this end.
    arrival: Arrival,
    /// Time at which the connection wants to be woken.
    due: Time,
    /// `true` if the connection may have something to send.
    stirred: bool,
    /// Octets that the owner has yet to write.
    unwritten: u64,
}

impl Side {
    fn new(connection: Connection, peer: SocketAddr) -> Self {
        let arrival = Arrival::new(peer, connection.local());
        Self { connection, arrival, due: Time::NEVER, stirred: false, unwritten: 0 }
    }

    fn handle(&mut self, now: Time, message: &FlowMessage) {
        if let FlowMessage::Tcp(segment) = message {
            // The connection counts what it refuses.
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

    /// Returns the next segment that leaves. If there is none, no segment follows until one arrives or the timer is
    /// due.
    fn poll_transmit(&mut self, now: Time) -> Option<FlowMessage> {
        if !self.stirred {
            return None;
        }
        while self.stirred {
            if let Some(segment) = self.connection.poll_segment(now) {
                return Some(FlowMessage::Tcp(segment));
            }
            // Polling may cause an event for the owner, and the owner's reaction may let another segment leave.
            self.stirred = self.drain_events();
        }
        self.due = self.connection.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        None
    }

    /// Handles the connection's events: the owner consumes everything at once, writes as soon as there is room, and
    /// closes when the peer has closed. Returns `true` if there was any event.
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

    /// Writes as many octets as there is room for, and closes the stream behind the last octet.
    fn write(&mut self) {
        self.stirred = true;
        self.unwritten -= self.connection.write(self.unwritten);
        if self.unwritten == 0 {
            self.connection.close();
        }
    }
}

impl Bulk {
    /// Makes a flow that has not started.
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

    /// Returns the side that is at `end`.
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
