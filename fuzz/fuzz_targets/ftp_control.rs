//! Any octets from the other end of a control connection: neither a client nor a server panics, what they keep stays
//! bounded, and a session comes to an end.
#![no_main]

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine, Reject};
use farcast_tcp::endpoint::{Carries, ConnectionId, Endpoint, EndpointConfig, EndpointEvent};
use farcast_tcp::ftp::{
    Answer, AnswerError, Client, ClientConfig, ClientEvent, Command, Contents, Mode, Operation, Server,
    ServerConfig, ServerEvent,
};
use farcast_tcp::{Config, Event, Segment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&kind, octets)) = input.split_first() else { return };
    if let Ok(line) = core::str::from_utf8(octets)
        && let Ok(command) = Command::read(line)
    {
        assert_eq!(Command::read(&command.to_string()), Ok(command));
    }
    if kind % 2 == 0 { client(kind, octets) } else { server(octets) }
});

/// Host at the other end. It sends its octets piece by piece, one each time that it acts.
struct Other {
    endpoint: Endpoint,
    control: Option<ConnectionId>,
    pieces: Vec<Vec<u8>>,
}

impl Other {
    fn new(host: &str, octets: &[u8]) -> Self {
        let address = host.parse().unwrap();
        let config = EndpointConfig { address, tcp: Config::default(), most_connections: 20, seed: 0 };
        let mut endpoint = Endpoint::new(config).unwrap();
        for port in [21, 5001] {
            endpoint.listen(Some(port), Carries::Octets).unwrap();
        }
        let mut pieces: Vec<Vec<u8>> =
            octets.split_inclusive(|&octet| octet == b'\n').map(<[u8]>::to_vec).collect();
        pieces.reverse();
        Self { endpoint, control: None, pieces }
    }

    fn act(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                EndpointEvent::Accepted { port: 21, connection, .. } => self.control = Some(connection),
                // A data connection says a word and hangs up.
                EndpointEvent::Accepted { connection, .. } => {
                    self.endpoint.send(connection, b"data");
                    self.endpoint.close(connection);
                }
                EndpointEvent::Of(id, Event::Readable) => {
                    self.endpoint.consume(id, self.endpoint.readable(id).len() as u64);
                }
                EndpointEvent::Of(id, Event::PeerClosed) => self.endpoint.close(id),
                EndpointEvent::Of(..) => {}
            }
        }
        if let Some((control, piece)) = self.control.zip(self.pieces.pop()) {
            self.endpoint.send(control, &piece);
        }
    }
}

/// Common functions of client and server.
trait Ftp: Engine<Message = Segment> {
    fn take(&mut self, now: Time, from: &Arrival, segment: &Segment, octets: &[u8]) -> Result<(), Reject>;
    fn what(&self, segment: &Segment, to: &SocketAddr) -> Contents<'_>;
}

impl Ftp for Client {
    fn take(&mut self, now: Time, from: &Arrival, segment: &Segment, octets: &[u8]) -> Result<(), Reject> {
        self.handle_octets(now, from, segment, octets)
    }
    fn what(&self, segment: &Segment, to: &SocketAddr) -> Contents<'_> {
        self.contents(segment, to.ip())
    }
}

impl Ftp for Server {
    fn take(&mut self, now: Time, from: &Arrival, segment: &Segment, octets: &[u8]) -> Result<(), Reject> {
        self.handle_octets(now, from, segment, octets)
    }
    fn what(&self, segment: &Segment, to: &SocketAddr) -> Contents<'_> {
        self.contents(segment, to.ip())
    }
}

/// Lets both ends exchange segments until nothing more happens.
fn talk<E: Ftp>(
    engine: &mut E,
    hosts: [&str; 2],
    other: &mut Other,
    mut heed: impl FnMut(&mut E, Time, E::Event),
) {
    let [here, there] = hosts.map(|host| SocketAddr::new(host.parse().unwrap(), 0));
    let mut now = Time::ZERO;
    for _ in 0..20_000 {
        while let Some(event) = engine.poll_event() {
            heed(engine, now, event);
        }
        if let Some(transmit) = engine.poll_transmit(now, now) {
            let octets = match engine.what(&transmit.message, &there) {
                Contents::Octets(octets) => octets.to_vec(),
                Contents::File { len, .. } => vec![0; usize::from(len)],
                Contents::Gone => continue,
            };
            let _ = other.endpoint.handle_octets(now, &Arrival::new(here, there), &transmit.message, &octets);
            other.act();
        } else if let Some(transmit) = other.endpoint.poll_transmit(now, now) {
            if let Some(octets) = other.endpoint.octets(&transmit.message, here.ip()) {
                let _ = engine.take(now, &Arrival::new(there, here), &transmit.message, octets);
            }
        } else if let Some(control) = other.control.filter(|_| !other.pieces.is_empty()) {
            let piece = other.pieces.pop().unwrap_or_default();
            other.endpoint.send(control, &piece);
        } else {
            let deadlines = engine.poll_timeout().into_iter().chain(other.endpoint.poll_timeout());
            let Some(due) = deadlines.map(|deadline| deadline.at).min() else { return };
            now = due;
            engine.handle_timeout(now);
            other.endpoint.handle_timeout(now);
        }
    }
    panic!("it does not end");
}

fn client(kind: u8, octets: &[u8]) {
    let [here, there] = ["192.0.2.1", "192.0.2.2"];
    let mode = if kind & 2 == 0 { Mode::Active } else { Mode::Passive };
    let plain = ClientConfig::new(here.parse().unwrap(), there.parse().unwrap());
    let mut client = Client::new(ClientConfig { mode, extended: kind & 4 == 0, ..plain }).unwrap();
    client.connect(Time::ZERO);
    for operation in [
        Operation::Retrieve { path: "a".into(), offset: 5 },
        Operation::Store { path: "b".into(), size: 10_000, offset: 0 },
        Operation::Directory,
    ] {
        client.submit(Time::ZERO, operation).unwrap();
    }
    client.quit(Time::ZERO);
    let (mut finished, mut ended) = (0, 0);
    talk(&mut client, [here, there], &mut Other::new(there, octets), |_, _, event| match event {
        ClientEvent::Finished { .. } => finished += 1,
        ClientEvent::Ended(_) => ended += 1,
        _ => {}
    });
    assert_eq!((finished, ended), (3, 1));
}

fn server(octets: &[u8]) {
    let [here, there] = ["192.0.2.1", "192.0.2.2"];
    let mut server = Server::new(ServerConfig::new(here.parse().unwrap())).unwrap();
    let mut other = Other::new(there, octets);
    let control = SocketAddr::new(here.parse().unwrap(), 21);
    let id = other.endpoint.connect(Time::ZERO, None, control, Carries::Octets).unwrap();
    other.endpoint.send(id, b"USER a\r\nPASS b\r\n");
    other.control = Some(id);
    talk(&mut server, [here, there], &mut other, |server, now, event| {
        if let ServerEvent::Asked { session, .. } = event
            && server.answer(now, session, Answer::Octets(3000)) == Err(AnswerError::Unfit)
        {
            server.answer(now, session, Answer::Done).unwrap();
        }
    });
    assert_eq!(server.sessions(), 0);
}
