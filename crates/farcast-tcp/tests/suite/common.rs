//! Two connections, the octets of their streams, and a scripted path each way, in virtual time.

mod lone;
mod path;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use farcast_core::engine::{Arrival, Engine as _, Message as _, Reject};
use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};
use farcast_tcp::wire::{self, Addresses};
use farcast_tcp::{Config, Connection, DelayedAck, Event, Payload, Segment, SequenceNumber, State};

pub(crate) use lone::Lone;
pub(crate) use path::{Fate, Path, drop_data};

/// Index of one of the two ends.
pub(crate) type Side = usize;
pub(crate) const CLIENT: Side = 0;
pub(crate) const SERVER: Side = 1;

/// Octets of an IPv4 header, which a path with a rate carries too.
pub(crate) const IP_HEADER: usize = 20;

pub(crate) fn ms(milliseconds: u64) -> Span {
    Span::from_millis(milliseconds)
}

pub(crate) fn address(side: Side) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1 + side as u8)), [40_000, 80][side])
}

/// The first sequence numbers; the server's wraps within the first kilobyte.
pub(crate) fn initial(side: Side) -> SequenceNumber {
    SequenceNumber([1_000_000, u32::MAX - 700][side])
}

/// Settings that disable effects which a test is not about: every segment is acknowledged at once.
pub(crate) fn prompt() -> Config {
    Config { delayed_ack: DelayedAck::Off, ..Config::default() }
}

/// A segment that left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Time,
    pub(crate) from: Side,
    pub(crate) segment: Segment,
    /// The segment, or a copy of it, arrives.
    pub(crate) arrives: bool,
}

impl Sent {
    /// Its first octet and their number.
    pub(crate) fn range(&self) -> (u64, u64) {
        (self.segment.payload.offset, u64::from(self.segment.payload.len))
    }
}

/// State of a connection after it took a segment and before it sent anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sample {
    pub(crate) at: Time,
    pub(crate) side: Side,
    pub(crate) segment: Segment,
    pub(crate) window: u64,
    pub(crate) threshold: u64,
    pub(crate) flight: u64,
    /// Number of segments that both sides had sent before.
    pub(crate) sent: usize,
}

/// A connection and its owner.
pub(crate) struct End {
    pub(crate) connection: Connection,
    /// Stream that the end writes.
    pub(crate) stream: Vec<u8>,
    /// Octets of the stream that the owner has asked to write.
    wanted: u64,
    /// The owner closes once everything is written.
    closes: bool,
    /// Octets that arrived; the first `compared` of them were compared.
    pub(crate) arrived: Vec<u8>,
    compared: u64,
    /// The owner consumes octets that arrive.
    pub(crate) consumes: bool,
    pub(crate) events: Vec<(Time, Event)>,
    pub(crate) rejects: Vec<(Time, Reject)>,
}

impl End {
    fn new(connection: Connection, side: Side, length: usize) -> Self {
        let mut random = RandomStream::derive(0xF11E, &[side as u64]);
        let stream = (0..length.div_ceil(8)).flat_map(|_| random.bits().to_le_bytes()).take(length).collect();
        Self {
            connection,
            stream,
            wanted: 0,
            closes: false,
            arrived: Vec::new(),
            compared: 0,
            consumes: true,
            events: Vec::new(),
            rejects: Vec::new(),
        }
    }

    pub(crate) fn heard(&self, event: Event) -> bool {
        self.events.iter().any(|&(_, other)| other == event)
    }
}

/// Two ends, two paths, the clock, and a record of everything.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) ends: [End; 2],
    /// `paths[n]` leads away from side n.
    pub(crate) paths: [Path; 2],
    flying: BTreeMap<(Time, u64), (Side, Segment, Vec<u8>)>,
    entered: u64,
    pub(crate) sent: Vec<Sent>,
    pub(crate) samples: Vec<Sample>,
    /// Segments and events are recorded.
    pub(crate) records: bool,
}

impl World {
    /// A client that opens and a server that listens, `round_trip` apart; streams of up to `length` octets.
    pub(crate) fn new(client: Config, server: Config, round_trip: Span, length: usize) -> Self {
        let connect = Connection::connect(client, address(CLIENT), address(SERVER), initial(CLIENT));
        let listen = Connection::listen(server, address(SERVER), initial(SERVER));
        Self::of([connect.expect("settings"), listen.expect("settings")], round_trip, length)
    }

    pub(crate) fn of(connections: [Connection; 2], round_trip: Span, length: usize) -> Self {
        let [one, other] = connections;
        Self {
            now: Time::ZERO,
            ends: [End::new(one, CLIENT, length), End::new(other, SERVER, length)],
            paths: [Path::new(round_trip / 2), Path::new(round_trip / 2)],
            flying: BTreeMap::new(),
            entered: 0,
            sent: Vec::new(),
            samples: Vec::new(),
            records: true,
        }
    }

    /// The handshake is done, and nothing else has happened.
    pub(crate) fn open(client: Config, server: Config, round_trip: Span, length: usize) -> Self {
        let mut world = Self::new(client, server, round_trip, length);
        world.run_until(Time::ZERO + round_trip * 2);
        assert_eq!(world.states(), [State::Established; 2]);
        world.sent.clear();
        world.samples.clear();
        world
    }

    pub(crate) fn states(&self) -> [State; 2] {
        [self.ends[0].connection.state(), self.ends[1].connection.state()]
    }

    pub(crate) fn client(&mut self) -> &mut End {
        &mut self.ends[CLIENT]
    }

    pub(crate) fn server(&mut self) -> &mut End {
        &mut self.ends[SERVER]
    }

    /// Writes the next `octets` of a side's stream, now or as the send buffer has room.
    pub(crate) fn write(&mut self, side: Side, octets: u64) {
        self.ends[side].wanted += octets;
        assert!(self.ends[side].wanted <= self.ends[side].stream.len() as u64, "the stream is that long");
        self.write_more(side);
        self.drain(side);
    }

    /// Closes a side once it is open and has written everything that it was told to.
    pub(crate) fn close(&mut self, side: Side) {
        self.ends[side].closes = true;
        self.write_more(side);
        self.drain(side);
    }

    pub(crate) fn abort(&mut self, side: Side) {
        self.ends[side].connection.abort();
        self.drain(side);
    }

    pub(crate) fn consume(&mut self, side: Side, octets: u64) {
        self.ends[side].connection.consume(octets);
        self.drain(side);
    }

    fn write_more(&mut self, side: Side) {
        let end = &mut self.ends[side];
        let left = end.wanted.saturating_sub(end.connection.written());
        if left > 0 {
            end.connection.write(left);
        }
        // Closed before it is open, a connection is given up.
        if end.closes && end.connection.written() >= end.wanted && end.heard(Event::Connected) {
            end.connection.close();
        }
    }

    /// Hands a segment to a side now.
    pub(crate) fn hand(&mut self, side: Side, segment: &Segment, payload: &[u8]) -> Result<(), Reject> {
        let from = Arrival::new(address(1 - side), address(side));
        let end = &mut self.ends[side];
        let result = end.connection.handle(self.now, &from, segment);
        end.rejects.extend(result.err().map(|reason| (self.now, reason)));
        if self.records {
            self.samples.push(Sample {
                at: self.now,
                side,
                segment: *segment,
                window: end.connection.congestion_window(),
                threshold: end.connection.slow_start_threshold(),
                flight: end.connection.in_flight(),
                sent: self.sent.len(),
            });
        }
        self.store(side, payload);
        self.drain(side);
        result
    }

    /// Stores the data of the segment just handled, and answers the connection's events.
    fn store(&mut self, side: Side, payload: &[u8]) {
        while let Some(event) = self.ends[side].connection.poll_event() {
            let end = &mut self.ends[side];
            if let Event::Store { offset, skip, len } = event {
                let (offset, skip, len) = (offset as usize, usize::from(skip), usize::from(len));
                end.arrived.resize(end.arrived.len().max(offset + len), 0);
                end.arrived[offset..offset + len].copy_from_slice(&payload[skip..skip + len]);
            } else {
                end.events.push((self.now, event));
            }
            self.answer(side, event);
            self.ends[side].connection.check();
        }
    }

    /// Does the owner's action for an event.
    fn answer(&mut self, side: Side, event: Event) {
        match event {
            Event::Connected | Event::Writable => self.write_more(side),
            Event::Readable if self.ends[side].consumes => {
                let end = &mut self.ends[side];
                end.connection.consume(u64::MAX);
            }
            _ => {}
        }
    }

    /// Compares the octets that have arrived in order with those that were written.
    fn compare(&mut self, side: Side) {
        let received = self.ends[side].connection.received();
        let range = self.ends[side].compared as usize..received as usize;
        assert!(
            self.ends[side].arrived[range.clone()] == self.ends[1 - side].stream[range.clone()],
            "side {side} received other octets than were sent at {range:?}"
        );
        self.ends[side].compared = received;
    }

    /// Handles a side's events and sends its segments.
    pub(crate) fn drain(&mut self, side: Side) {
        for _ in 0..1_000_000 {
            self.store(side, &[]);
            let Some(transmit) = self.ends[side].connection.poll_transmit(self.now, Time::NEVER) else {
                self.compare(side);
                self.ends[side].connection.check();
                return;
            };
            assert_eq!((transmit.source, transmit.destination), (Some(address(side)), address(1 - side)));
            self.launch(side, &transmit.message);
        }
        panic!("side {side} sends without end at {:?}", self.now);
    }

    fn launch(&mut self, side: Side, segment: &Segment) {
        let from = segment.payload.offset as usize;
        let payload = self.ends[side].stream[from..from + usize::from(segment.payload.len)].to_vec();
        let segment_there = through_the_wire(segment, side, &payload);
        let arrivals = self.paths[side].carry(self.now, segment);
        for at in arrivals.into_iter().flatten() {
            self.entered += 1;
            self.flying.insert((at, self.entered), (1 - side, segment_there, payload.clone()));
        }
        if self.records {
            let arrives = arrivals[0].is_some();
            self.sent.push(Sent { at: self.now, from: side, segment: *segment, arrives });
        }
    }

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Option<Time> {
        let timers = self.ends.iter().filter_map(|end| end.connection.poll_timeout()).map(|due| due.at);
        timers.chain(self.flying.keys().next().map(|key| key.0)).min()
    }

    /// Does everything that happens up to and at `end`.
    pub(crate) fn run_until(&mut self, end: Time) {
        for side in [CLIENT, SERVER] {
            self.drain(side);
        }
        while self.next().is_some_and(|next| next <= end) {
            self.step();
        }
        self.now = end;
    }

    /// Runs until nothing is left to happen, for at most a month; when the last thing happened.
    pub(crate) fn run(&mut self) -> Time {
        assert!(self.try_run(), "not at rest: {}", self.describe());
        self.now
    }

    /// Runs until no event is left, for at most a month. Returns `true` if it came to rest.
    pub(crate) fn try_run(&mut self) -> bool {
        for side in [CLIENT, SERVER] {
            self.drain(side);
        }
        while let Some(next) = self.next() {
            if next > Time::ZERO + Span::from_secs(30 * 24 * 3600) {
                return false;
            }
            self.step();
        }
        true
    }

    /// Runs until `done`; when that was.
    pub(crate) fn run_to(&mut self, done: impl Fn(&Self) -> bool) -> Time {
        for side in [CLIENT, SERVER] {
            self.drain(side);
        }
        while !done(self) {
            assert!(self.next().is_some(), "at rest before it is done: {:?}", self.describe());
            self.step();
        }
        self.now
    }

    /// Runs until a side has received `octets`; when that was.
    pub(crate) fn run_to_receipt(&mut self, side: Side, octets: u64) -> Time {
        self.run_to(|world| world.ends[side].connection.received() >= octets)
    }

    pub(crate) fn describe(&self) -> String {
        let told = |end: &End| {
            let c = &end.connection;
            format!("{:?} {:?} received {} {:?}", c.state(), c.poll_timeout(), c.received(), c.stats())
        };
        format!("at {:?}: {} / {}", self.now, told(&self.ends[0]), told(&self.ends[1]))
    }

    /// Handles the next event.
    pub(crate) fn step(&mut self) {
        let Some(next) = self.next() else { return };
        self.now = self.now.max(next);
        // At one instant, arrivals come before timers.
        if self.flying.keys().next().is_some_and(|key| key.0 <= next) {
            if let Some((_, (side, segment, payload))) = self.flying.pop_first() {
                let _ = self.hand(side, &segment, &payload);
            }
            return;
        }
        for side in [CLIENT, SERVER] {
            let due = self.ends[side].connection.poll_timeout();
            if due.is_some_and(|due| due.at <= self.now) {
                self.ends[side].connection.handle_timeout(self.now);
                self.drain(side);
                let after = self.ends[side].connection.poll_timeout();
                assert!(after.is_none_or(|after| after.at > self.now), "{due:?} is due for ever");
            }
        }
    }

    /// The data segments that a side has sent.
    pub(crate) fn data(&self, side: Side) -> Vec<Sent> {
        self.sent.iter().filter(|s| s.from == side && s.segment.payload.len > 0).copied().collect()
    }

    /// Returns the segments of `smss` octets that a side has sent, with their times in milliseconds after `begin`.
    pub(crate) fn schedule(&self, side: Side, smss: u64, begin: Time) -> Vec<(u64, u64)> {
        let data = self.data(side);
        data.iter()
            .map(|sent| (sent.at.since(begin).as_millis(), sent.segment.payload.offset / smss))
            .collect()
    }

    /// The same, only of what was sent before.
    pub(crate) fn repetitions(&self, side: Side, smss: u64, begin: Time) -> Vec<(u64, u64)> {
        let mut seen = Vec::new();
        let mut again = Vec::new();
        for (at, segment) in self.schedule(side, smss, begin) {
            if seen.contains(&segment) {
                again.push((at, segment));
            }
            seen.push(segment);
        }
        again
    }
}

/// Writes a segment as octets and reads it again: nothing is lost, and its length is the claimed one.
fn through_the_wire(segment: &Segment, from: Side, payload: &[u8]) -> Segment {
    let addresses = Addresses::new(address(from).ip(), address(1 - from).ip()).expect("one family");
    let mut octets = vec![0; wire::MAX_HEADER_LEN];
    let len = wire::encode(segment, addresses, &[payload], &mut octets).expect("it has an encoding");
    octets.truncate(len);
    octets.extend_from_slice(payload);
    assert_eq!(octets.len(), segment.wire_len(0));
    let (read, data) = wire::decode(&octets, addresses).expect("what we write can be read");
    assert_eq!(data, payload);
    let payload = Payload { offset: 0, ..segment.payload };
    assert_eq!(read, Segment { payload, ..*segment });
    read
}
