//! Assignment of segments to connections, and answers to segments that belong to none.

use core::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine, Reject, Transmit};

use super::table::{ConnectionSlot, Pair};
use super::{Carries, ConnectionId, Endpoint, MOST_RESETS};
use crate::{Connection, Flags, Payload, Segment, SequenceNumber, State};

impl Endpoint {
    pub(super) fn take(
        &mut self,
        now: Time,
        from: &Arrival,
        segment: &Segment,
        octets: &[u8],
    ) -> Result<(), Reject> {
        if from.destination.ip() != self.config.address {
            return Err(Reject::OtherSession);
        }
        let remote = SocketAddr::new(from.source.ip(), segment.source_port);
        let pair = (segment.destination_port, remote);
        let known = self.table.find(pair).and_then(|id| self.table.get(id));
        if known.is_some_and(|slot| slot.connection.state() == State::Closed) {
            self.refuse(remote, segment);
            return Err(Reject::Stranger);
        }
        let keeps = known.is_some_and(|slot| slot.carries == Carries::Octets);
        if keeps && octets.len() != usize::from(segment.payload.len) {
            return Err(Reject::Inconsistent);
        }
        let id = match self.table.find(pair) {
            Some(id) => id,
            None => self.admit(now, pair, segment)?,
        };
        let Some(slot) = self.table.get_mut(id) else { return Err(Reject::Stranger) };
        let result = slot.connection.handle(now, from, segment);
        self.settle(id, octets);
        result
    }

    /// Creates a connection for the first segment between a pair of addresses, if that is a SYN to a listener.
    fn admit(&mut self, now: Time, pair: Pair, segment: &Segment) -> Result<ConnectionId, Reject> {
        let (port, remote) = pair;
        let opens = segment.flags.has(Flags::SYN)
            && segment.flags.0 & (Flags::ACK.0 | Flags::RST.0 | Flags::FIN.0) == 0;
        let Some(listener) = self.listener(port).filter(|_| opens) else {
            self.refuse(remote, segment);
            return Err(Reject::Stranger);
        };
        self.make_room().map_err(|_| Reject::Limit)?;
        let (local, initial) = (SocketAddr::new(self.config.address, port), self.initial(now, port, remote));
        let Ok(connection) = Connection::listen(self.config.tcp.clone(), local, initial) else {
            unreachable!("the settings were checked");
        };
        Ok(self.table.insert(ConnectionSlot::new(pair, connection, listener.carries, Some(port))))
    }

    /// Answers a segment that belongs to no connection (RFC 9293 section 3.10.7.1).
    fn refuse(&mut self, remote: SocketAddr, segment: &Segment) {
        if segment.flags.has(Flags::RST) || self.resets.len() == MOST_RESETS {
            return;
        }
        let (sequence, acknowledgment, flags) = if segment.flags.has(Flags::ACK) {
            (segment.acknowledgment, SequenceNumber::default(), Flags::RST)
        } else {
            let behind = segment.sequence.plus(segment.sequence_len());
            (SequenceNumber::default(), behind, Flags::RST.with(Flags::ACK))
        };
        let (source_port, destination_port) = (segment.destination_port, segment.source_port);
        let reset = Segment {
            source_port,
            destination_port,
            sequence,
            acknowledgment,
            flags,
            payload: Payload::default(),
            ..Segment::default()
        };
        let source = Some(SocketAddr::new(self.config.address, source_port));
        self.resets.push_back(Transmit { source, ..Transmit::new(reset, remote) });
    }
}
