//! A connection whose peer is the test.

use farcast_core::engine::{Arrival, Engine as _, Reject};
use farcast_core::{Span, Time};
use farcast_tcp::{Config, Connection, Event, Flags, Segment, State};

use super::{CLIENT, SERVER, address, initial};

/// One connection, and a test that plays its peer.
pub(crate) struct Lone {
    pub(crate) now: Time,
    pub(crate) connection: Connection,
    pub(crate) events: Vec<Event>,
}

impl Lone {
    /// A client whose SYN was answered with `answer`'s options and window; its own acknowledgment is taken.
    pub(crate) fn open(config: Config, round_trip: Span, answer: Segment) -> Self {
        let connection = Connection::connect(config, address(CLIENT), address(SERVER), initial(CLIENT));
        let mut lone =
            Self { now: Time::ZERO, connection: connection.expect("settings"), events: Vec::new() };
        let syn = lone.poll();
        assert!(syn.len() == 1 && syn[0].flags == Flags::SYN);
        lone.now += round_trip;
        let answer = Segment {
            flags: Flags::SYN.with(Flags::ACK),
            sequence: initial(SERVER),
            ..Self::peer(answer, 1)
        };
        lone.take(&answer).expect("it is an answer");
        lone.poll();
        assert_eq!(lone.connection.state(), State::Established);
        lone
    }

    /// A segment of the peer that acknowledges `acknowledged` positions.
    pub(crate) fn peer(segment: Segment, acknowledged: u32) -> Segment {
        Segment {
            source_port: address(SERVER).port(),
            destination_port: address(CLIENT).port(),
            acknowledgment: initial(CLIENT).plus(acknowledged),
            ..segment
        }
    }

    /// An empty acknowledgment of the peer's of `octets` octets, with a window of `window`.
    pub(crate) fn ack(octets: u32, window: u16) -> Segment {
        let bare =
            Segment { flags: Flags::ACK, sequence: initial(SERVER).plus(1), window, ..Segment::default() };
        Self::peer(bare, octets + 1)
    }

    pub(crate) fn take(&mut self, segment: &Segment) -> Result<(), Reject> {
        let from = Arrival::new(address(SERVER), address(CLIENT));
        let result = self.connection.handle(self.now, &from, segment);
        self.connection.check();
        result
    }

    /// Everything that leaves now.
    pub(crate) fn poll(&mut self) -> Vec<Segment> {
        let mut sent = Vec::new();
        loop {
            self.events.extend(std::iter::from_fn(|| self.connection.poll_event()));
            let Some(transmit) = self.connection.poll_transmit(self.now, Time::NEVER) else { break };
            sent.push(transmit.message);
            assert!(sent.len() < 100_000, "it sends without end");
        }
        self.connection.check();
        sent
    }

    /// Waits for the next deadline and serves it. Returns the segments that leave then.
    pub(crate) fn wait(&mut self) -> Vec<Segment> {
        let due = self.connection.poll_timeout().expect("something is due");
        self.now = due.at;
        self.connection.handle_timeout(self.now);
        self.poll()
    }

    /// Takes a segment after `later`. Returns the segments that leave then.
    pub(crate) fn after(&mut self, later: Span, segment: &Segment) -> Vec<Segment> {
        self.now += later;
        let _ = self.take(segment);
        self.poll()
    }
}
