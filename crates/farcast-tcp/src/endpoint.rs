//! A host with TCP connections: a table of them by ports, listeners, ephemeral ports, initial sequence numbers.
//!
//! An [`Endpoint`] is an [`Engine`] whose messages are segments. It hands each segment to the connection that the
//! segment belongs to, and opens connections for listeners. It answers a segment that belongs to no connection with a
//! reset (RFC 9293 section 3.10.7.1).
//!
//! # Storage of the octets
//!
//! A connection knows its streams as ranges. Each connection of an endpoint [carries](Carries) either
//!
//! * **octets**, which the endpoint keeps, for text. The owner uses [`send`](Endpoint::send),
//!   [`readable`](Endpoint::readable) and [`consume`](Endpoint::consume).
//! * **ranges**, whose octets the owner keeps, for files. [`write`](Endpoint::write) says how many octets follow, and
//!   [`Event::Store`] says where arrived octets belong.
//!
//! The payload of a segment travels beside it. A driver that puts a segment of an octet stream on a wire takes its
//! payload from [`octets`](Endpoint::octets). It hands arrived payloads to [`handle_octets`](Endpoint::handle_octets).
//! In a simulation messages are segments alone: the driver that delivers a segment asks the sending endpoint for the
//! octets. The endpoint keeps octets until they are acknowledged. A segment whose octets are gone may be dropped: it
//! brings nothing that its receiver lacks, or comes from a connection that was aborted.
//!
//! # The life of a connection
//!
//! A connection lives from [`connect`](Endpoint::connect), or [`EndpointEvent::Accepted`], until the owner has
//! [released](Endpoint::release) it and it has closed, whichever comes last.

mod admission;
mod config;
mod numbers;
mod octets;
mod table;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use farcast_core::Time;
use farcast_core::engine::{Arrival, Deadline, Engine, Reject, RejectCounts, Transmit};

use crate::{ConfigError, Connection, Event, Segment, State};

pub use config::{Carries, EndpointConfig, EndpointError, EndpointEvent};
pub use table::ConnectionId;
use table::{ConnectionSlot, ConnectionTable};

/// Most resets that wait to be sent. Beyond, segments without a connection are dropped without a reset.
const MOST_RESETS: usize = 16;

/// A listener.
#[derive(Clone, Copy, Debug)]
struct Listener {
    port: u16,
    carries: Carries,
}

/// A host with TCP connections. The [module](self) documentation says how octets travel.
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    table: ConnectionTable,
    listeners: Vec<Listener>,
    /// Connections that may have something to send, in the order of their last change.
    stirred: VecDeque<ConnectionId>,
    deadlines: BTreeSet<(Time, ConnectionId)>,
    events: VecDeque<EndpointEvent>,
    resets: VecDeque<Transmit<Segment>>,
    rejects: RejectCounts,
    /// Offset of the next ephemeral port from the first.
    next_port: u16,
}

impl Endpoint {
    /// Creates a host without connections.
    ///
    /// # Errors
    /// A setting of its connections that cannot work.
    pub fn new(config: EndpointConfig) -> Result<Self, ConfigError> {
        config.tcp.check()?;
        Ok(Self {
            next_port: numbers::first_port(config.seed),
            config,
            table: ConnectionTable::default(),
            listeners: Vec::new(),
            stirred: VecDeque::new(),
            deadlines: BTreeSet::new(),
            events: VecDeque::new(),
            resets: VecDeque::new(),
            rejects: RejectCounts::default(),
        })
    }

    /// Accepts connections to `port`, or to a free ephemeral port if `port` is `None`. Returns the port.
    ///
    /// # Errors
    /// The port has a listener already, or no port is free.
    pub fn listen(&mut self, port: Option<u16>, carries: Carries) -> Result<u16, EndpointError> {
        let port = match port {
            Some(port) if self.listener(port).is_some() => return Err(EndpointError::InUse(port)),
            Some(port) => port,
            None => self.free_port(None)?,
        };
        self.listeners.push(Listener { port, carries });
        Ok(port)
    }

    /// Stops accepting connections to `port`. Open connections stay.
    pub fn stop_listening(&mut self, port: u16) {
        self.listeners.retain(|listener| listener.port != port);
    }

    /// Opens a connection to `remote`, from `port` or from a free ephemeral one; the SYN leaves with the next poll.
    ///
    /// # Errors
    /// There are too many connections, or the port is not free.
    pub fn connect(
        &mut self,
        now: Time,
        port: Option<u16>,
        remote: SocketAddr,
        carries: Carries,
    ) -> Result<ConnectionId, EndpointError> {
        let port = match port {
            Some(port) if self.table.find((port, remote)).is_some() => {
                return Err(EndpointError::InUse(port));
            }
            Some(port) => port,
            None => self.free_port(Some(remote))?,
        };
        self.make_room()?;
        let (local, initial) = (SocketAddr::new(self.config.address, port), self.initial(now, port, remote));
        let Ok(connection) = Connection::connect(self.config.tcp.clone(), local, remote, initial) else {
            unreachable!("the settings were checked");
        };
        let id = self.table.insert(ConnectionSlot::new((port, remote), connection, carries, None));
        self.stir(id);
        Ok(id)
    }

    /// Returns the connection `id`, for its counters and state; `None` once it is forgotten.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.table.get(id).map(|slot| &slot.connection)
    }

    /// Returns the connection between `port` and `remote`.
    pub fn find(&self, port: u16, remote: SocketAddr) -> Option<ConnectionId> {
        self.table.find((port, remote))
    }

    /// Returns the number of connections, lingering ones included.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns `true` if there are no connections.
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    /// Returns counts of the segments that the endpoint and its connections have turned down, by reason.
    pub const fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }

    /// Appends `octets` to the outgoing stream of a connection that carries octets. The endpoint keeps all of them,
    /// without limit, until the peer has acknowledged them. [`unacknowledged`](Self::unacknowledged) returns the number
    /// that waits.
    pub fn send(&mut self, id: ConnectionId, octets: &[u8]) {
        if let Some(slot) = self.table.get_mut(id) {
            slot.outgoing.extend(octets);
            slot.push_on();
            self.stir(id);
        }
    }

    /// Returns the number of octets that were sent on a connection that carries octets, and are not acknowledged.
    pub fn unacknowledged(&self, id: ConnectionId) -> u64 {
        self.table.get(id).map_or(0, |slot| slot.outgoing.all().len() as u64)
    }

    /// Appends `octets` octets to the outgoing stream of a connection that carries ranges. Returns the number that the
    /// send buffer took. If it took fewer, [`Event::Writable`] tells when there is room.
    pub fn write(&mut self, id: ConnectionId, octets: u64) -> u64 {
        let Some(slot) = self.table.get_mut(id) else { return 0 };
        let taken = slot.connection.write(octets);
        self.stir(id);
        taken
    }

    /// Returns the octets that have arrived in order on a connection that carries octets.
    pub fn readable(&self, id: ConnectionId) -> &[u8] {
        self.table.get(id).map_or(&[], |slot| {
            // Behind the readable octets there may be a gap, which takes room but holds no data.
            &slot.incoming.all()[..(slot.connection.readable() as usize).min(slot.incoming.all().len())]
        })
    }

    /// Notes that the owner has taken the next `octets` that arrived in order.
    pub fn consume(&mut self, id: ConnectionId, octets: u64) {
        if let Some(slot) = self.table.get_mut(id) {
            slot.consume(octets);
            self.stir(id);
        }
    }

    /// Ends the outgoing stream behind everything that was written. The peer may go on.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(slot) = self.table.get_mut(id) {
            slot.closing = true;
            slot.push_on();
            self.settle(id, &[]);
        }
    }

    /// Ends a connection at once, and sends a reset to the peer.
    pub fn abort(&mut self, id: ConnectionId) {
        if let Some(slot) = self.table.get_mut(id) {
            slot.connection.abort();
            self.settle(id, &[]);
        }
    }

    /// Gives up the owner's interest in a connection: no further event tells of it. Data that still arrives on it is
    /// thrown away. The connection is forgotten once it has closed.
    pub fn release(&mut self, id: ConnectionId) {
        if let Some(slot) = self.table.get_mut(id) {
            slot.released = true;
            slot.consume(u64::MAX);
            self.stir(id);
        }
    }

    /// Returns the octets of a segment that this endpoint sends or has sent to `destination`, as long as the endpoint
    /// keeps them. Returns `None` for a connection that carries ranges, and no octets for any segment without data.
    pub fn octets(&self, segment: &Segment, destination: IpAddr) -> Option<&[u8]> {
        if segment.payload.len == 0 {
            return Some(&[]);
        }
        let remote = SocketAddr::new(destination, segment.destination_port);
        let slot = self.table.get(self.table.find((segment.source_port, remote))?)?;
        if slot.carries == Carries::Ranges {
            return None;
        }
        slot.outgoing.of(segment.payload)
    }

    /// Notes that a segment to `destination` was polled and has not left: the queue of this host's device had no room
    /// for it ([`Connection::refused`]).
    pub fn refused(&mut self, now: Time, segment: &Segment, destination: IpAddr) {
        let remote = SocketAddr::new(destination, segment.destination_port);
        if let Some(id) = self.table.find((segment.source_port, remote))
            && let Some(slot) = self.table.get_mut(id)
        {
            slot.connection.refused(now, segment);
            self.stir(id);
        }
    }

    /// Takes a segment with its payload. If the connection carries ranges, `octets` may be empty.
    ///
    /// # Errors
    /// The segment belongs to no connection and opens none, the connection turned it down, or its octets are missing.
    pub fn handle_octets(
        &mut self,
        now: Time,
        from: &Arrival,
        segment: &Segment,
        octets: &[u8],
    ) -> Result<(), Reject> {
        let result = self.take(now, from, segment, octets);
        self.rejects.note(result)
    }

    fn listener(&self, port: u16) -> Option<Listener> {
        self.listeners.iter().find(|listener| listener.port == port).copied()
    }

    /// Makes room for one connection more, if need be by dropping the oldest released one in TIME-WAIT.
    fn make_room(&mut self) -> Result<(), EndpointError> {
        if self.table.len() < self.config.most_connections {
            return Ok(());
        }
        let oldest = self.table.first(|slot| slot.released && slot.connection.state() == State::TimeWait);
        match oldest {
            Some(id) => self.forget(id),
            None => return Err(EndpointError::Full(self.table.len())),
        }
        Ok(())
    }

    fn forget(&mut self, id: ConnectionId) {
        if let Some(slot) = self.table.remove(id) {
            self.deadlines.remove(&(slot.due, id));
        }
    }

    /// Notes that a connection may have something to send.
    fn stir(&mut self, id: ConnectionId) {
        if let Some(slot) = self.table.get_mut(id)
            && !core::mem::replace(&mut slot.stirred, true)
        {
            self.stirred.push_back(id);
        }
    }

    /// Takes the events of a connection after a change; `octets` are the payload of the segment just handled.
    fn settle(&mut self, id: ConnectionId, octets: &[u8]) {
        let Some(slot) = self.table.get_mut(id) else { return };
        let before = self.events.len();
        while let Some(event) = slot.connection.poll_event() {
            match slot.note(event, octets) {
                // Data may come with the segment that opens the connection: the event of opening goes first.
                Some(Event::Connected) => {
                    let opened = slot.opened(id);
                    self.events.insert(before, opened);
                }
                Some(event) => self.events.push_back(EndpointEvent::Of(id, event)),
                None => {}
            }
        }
        slot.outgoing.release(slot.connection.acknowledged());
        self.stir(id);
    }

    /// Notes that a connection has nothing to send: records its next deadline, or forgets the connection.
    fn come_to_rest(&mut self, id: ConnectionId) {
        let Some(slot) = self.table.get_mut(id) else { return };
        slot.stirred = false;
        if slot.released && slot.connection.state() == State::Closed {
            return self.forget(id);
        }
        let due = slot.connection.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        let before = core::mem::replace(&mut slot.due, due);
        if before != due {
            self.deadlines.remove(&(before, id));
            if due != Time::NEVER {
                self.deadlines.insert((due, id));
            }
        }
    }
}

impl Engine for Endpoint {
    type Message = Segment;
    type Event = EndpointEvent;

    /// Takes a segment without its payload, which suffices if the connection carries ranges.
    fn handle(&mut self, now: Time, from: &Arrival, segment: &Segment) -> Result<(), Reject> {
        self.handle_octets(now, from, segment, &[])
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(&(at, id)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            if let Some(slot) = self.table.get_mut(id) {
                slot.due = Time::NEVER;
                slot.connection.handle_timeout(now);
                self.settle(id, &[]);
            }
        }
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Segment>> {
        if let Some(reset) = self.resets.pop_front() {
            return Some(reset);
        }
        while let Some(&id) = self.stirred.front() {
            let slot = self.table.get_mut(id);
            let transmit = slot.and_then(|slot| slot.connection.poll_transmit(now, until));
            if transmit.is_some() {
                return transmit;
            }
            self.stirred.pop_front();
            self.come_to_rest(id);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let &(_, id) = self.deadlines.first()?;
        self.connection(id)?.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::ZERO // any acknowledgment may alter what leaves
    }
}
