//! The connections of an endpoint, by number and by addresses.

use alloc::collections::BTreeMap;
use core::net::SocketAddr;

use farcast_core::Time;

use super::octets::Octets;
use super::{Carries, EndpointEvent};
use crate::{Connection, Event};

/// Identifier of a connection of an [`Endpoint`](super::Endpoint). No number is used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(u64);

/// Local port, and peer address.
pub(super) type Pair = (u16, SocketAddr);

/// A connection, with the octets that it carries and the endpoint's state of it.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSlot {
    pair: Pair,
    pub(super) connection: Connection,
    pub(super) carries: Carries,
    /// Octets sent and not acknowledged; empty if the connection carries ranges.
    pub(super) outgoing: Octets,
    /// Octets that have arrived and are not consumed, with gaps; empty if the connection carries ranges.
    pub(super) incoming: Octets,
    /// The stream ends when all of `outgoing` is written.
    pub(super) closing: bool,
    /// The owner has given up its interest in the connection.
    pub(super) released: bool,
    /// The connection is in the queue of those that may have something to send.
    pub(super) stirred: bool,
    /// Next deadline of the connection.
    pub(super) due: Time,
    /// Port of the listener that accepted the connection, until the owner is told of the connection.
    unknown: Option<u16>,
}

impl ConnectionSlot {
    pub(super) fn new(pair: Pair, connection: Connection, carries: Carries, listener: Option<u16>) -> Self {
        Self {
            pair,
            connection,
            carries,
            outgoing: Octets::default(),
            incoming: Octets::default(),
            closing: false,
            released: false,
            stirred: false,
            due: Time::NEVER,
            unknown: listener,
        }
    }

    /// Writes as many waiting octets as the connection takes, and closes the stream behind the last.
    pub(super) fn push_on(&mut self) {
        let waiting = self.outgoing.end().saturating_sub(self.connection.written());
        let left = waiting - self.connection.write(waiting);
        if self.closing && left == 0 {
            self.connection.close();
        }
    }

    pub(super) fn consume(&mut self, octets: u64) {
        let octets = octets.min(self.connection.readable());
        self.connection.consume(octets);
        self.incoming.release(self.connection.received() - self.connection.readable());
    }

    /// Takes an event of the connection, and returns the event that is left for the owner. `octets` are the payload of
    /// the segment just handled.
    pub(super) fn note(&mut self, event: Event, octets: &[u8]) -> Option<Event> {
        match event {
            Event::Store { offset, skip, len } if self.carries == Carries::Octets => {
                let (skip, len) = (usize::from(skip), usize::from(len));
                self.incoming.store(offset, octets.get(skip..skip + len)?);
                return None;
            }
            Event::Writable if self.carries == Carries::Octets => {
                self.push_on();
                return None;
            }
            Event::Readable if self.released => self.consume(u64::MAX),
            // A connection that its owner never knew of ends without an event.
            Event::Closed | Event::Failed(_) if self.unknown.is_some() => self.released = true,
            _ => {}
        }
        (!self.released).then_some(event)
    }

    /// Returns the event that tells the owner of the open connection.
    pub(super) fn opened(&mut self, id: ConnectionId) -> EndpointEvent {
        match self.unknown.take().zip(self.connection.remote()) {
            Some((port, peer)) => EndpointEvent::Accepted { port, connection: id, peer },
            None => EndpointEvent::Of(id, Event::Connected),
        }
    }
}

/// Connections by number and by addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionTable {
    slots: BTreeMap<ConnectionId, ConnectionSlot>,
    pairs: BTreeMap<Pair, ConnectionId>,
    next: u64,
}

impl ConnectionTable {
    pub(super) fn insert(&mut self, slot: ConnectionSlot) -> ConnectionId {
        let id = ConnectionId(self.next);
        self.next += 1;
        self.pairs.insert(slot.pair, id);
        self.slots.insert(id, slot);
        id
    }

    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<ConnectionSlot> {
        let slot = self.slots.remove(&id)?;
        self.pairs.remove(&slot.pair);
        Some(slot)
    }

    pub(super) fn find(&self, pair: Pair) -> Option<ConnectionId> {
        self.pairs.get(&pair).copied()
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&ConnectionSlot> {
        self.slots.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut ConnectionSlot> {
        self.slots.get_mut(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the oldest connection for which `wanted` returns `true`.
    pub(super) fn first(&self, wanted: impl Fn(&ConnectionSlot) -> bool) -> Option<ConnectionId> {
        self.slots.iter().find(|(_, slot)| wanted(slot)).map(|(&id, _)| id)
    }
}
