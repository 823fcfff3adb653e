//! Peers that send anything at any time. Nothing panics, memory stays bounded, and every session ends.

use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Engine};
use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};
use farcast_tcp::Event;
use farcast_tcp::endpoint::{Carries, ConnectionId, Endpoint, EndpointConfig, EndpointEvent};
use farcast_tcp::ftp::{
    Answer, AnswerError, Client, ClientConfig, ClientEvent, Contents, Mode, Refusal, Server, ServerConfig,
    ServerEvent, SessionError,
};

use crate::world::{CLIENT, Ftp, SERVER, client_config, get, prompt, put, server_config};

/// Fragments of a hostile peer's text.
const WORDS: [&[u8]; 40] = [
    b"\r\n", b"\n", b" ", b"-", b"\xff", b"\xff\xf4\xff\xf2", b"\0", b"\xc3\x28", b"220 x\r\n", b"331 x\r\n", b"230 x\r\n",
    b"200 x\r\n", b"150 x\r\n", b"226 x\r\n", b"425 x\r\n", b"421 x\r\n", b"550-x\r\n", b"550 x\r\n", b"350 x\r\n",
    b"227 (192,0,2,3,200,1)\r\n", b"227 (0,0,0,0,0,0)\r\n", b"229 (|||51000|)\r\n", b"USER a\r\n", b"PASS a\r\n",
    b"PASV\r\n", b"EPSV\r\n", b"PORT 192,0,2,3,200,1\r\n", b"EPRT |1|192.0.2.3|51000|\r\n", b"RETR a\r\n", b"STOR a\r\n",
    b"LIST\r\n", b"REST 18446744073709551615\r\n", b"ABOR\r\n", b"CWD ../a\r\n", b"TYPE A\r\n", b"EPSV ALL\r\n", b"QUIT\r\n",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    b"DELE a\r\n", b"SIZE a\r\n",
];

/// A host that says anything.
struct Foe {
    endpoint: Endpoint,
    random: RandomStream,
    connections: Vec<ConnectionId>,
    /// Words that it has left.
    words: u32,
}

impl Foe {
    fn new(address: &str, seed: u64, listens: bool) -> Self {
        let address = address.parse().expect("an address");
        let config = EndpointConfig { address, tcp: prompt(), most_connections: 50, seed };
        let mut endpoint = Endpoint::new(config).expect("settings that work");
        let ports: &[u16] = if listens { &[21, 51_000, 51_201] } else { &[51_000, 51_201] };
        for &port in ports {
            endpoint.listen(Some(port), Carries::Octets).expect("a free port");
        }
        let random = RandomStream::derive(seed, &[1]);
        Self { endpoint, random, connections: Vec::new(), words: 400 }
    }

    /// Takes notice, and says something, or hangs up.
    fn act(&mut self, now: Time, peer: SocketAddr) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                EndpointEvent::Accepted { connection, .. } => self.connections.push(connection),
                EndpointEvent::Of(id, Event::Readable) => {
                    let octets = self.endpoint.readable(id).len() as u64;
                    self.endpoint.consume(id, octets);
                }
                EndpointEvent::Of(id, Event::Closed | Event::Failed(_)) => {
                    self.connections.retain(|&known| known != id);
                    self.endpoint.release(id);
                }
                EndpointEvent::Of(..) => {}
            }
        }
        if self.words == 0 || self.connections.is_empty() {
            return;
        }
        self.words -= 1;
        let one = self.connections[self.random.below(self.connections.len() as u64) as usize];
        match self.random.below(60) {
            0 => self.endpoint.close(one),
            1 => self.endpoint.abort(one),
            2 => {
                let port = 49_152 + self.random.below(16_384) as u16;
                let remote = SocketAddr::new(peer.ip(), port);
                self.connections.extend(self.endpoint.connect(now, None, remote, Carries::Octets));
            }
            _ => self.endpoint.send(one, WORDS[self.random.below(WORDS.len() as u64) as usize]),
        }
    }
}

/// Carries segments between an engine and a foe until neither has any.
fn exchange<E: Ftp>(
    now: Time,
    engine: &mut E,
    address: SocketAddr,
    foe: &mut Foe,
    other: SocketAddr,
    mut heed: impl FnMut(&mut E, Time, E::Event),
) {
    for _ in 0..100_000 {
        while let Some(event) = engine.poll_event() {
            heed(engine, now, event);
        }
        if let Some(transmit) = engine.poll_transmit(now, now) {
            let segment = transmit.message;
            let octets = match engine.what(&segment, other.ip()) {
                Contents::Octets(octets) => octets.to_vec(),
                Contents::File { len, .. } => vec![7; usize::from(len)],
                Contents::Gone => continue,
            };
            let _ = foe.endpoint.handle_octets(now, &Arrival::new(address, other), &segment, &octets);
            foe.act(now, address);
        } else if let Some(transmit) = foe.endpoint.poll_transmit(now, now) {
            let segment = transmit.message;
            if let Some(octets) = foe.endpoint.octets(&segment, address.ip()) {
                let _ = engine.take(now, &Arrival::new(other, address), &segment, octets);
            }
        } else {
            return;
        }
    }
    panic!("segments without end");
}

fn address(host: &str) -> SocketAddr {
    SocketAddr::new(host.parse().expect("an address"), 0)
}

/// The time at which something is due next; a little later every time if nothing is.
fn next(now: Time, engine: &impl Engine, foe: &Foe) -> Time {
    let due = engine.poll_timeout().into_iter().chain(foe.endpoint.poll_timeout()).map(|due| due.at).min();
    let step = now + Span::from_millis(100);
    if foe.words > 0 { due.unwrap_or(step).min(step) } else { due.unwrap_or(Time::NEVER) }
}

#[test]
fn a_client_survives_any_server() {
    let mut ends = [0; 2];
    for seed in 0..300 {
        let mode = if seed % 2 == 0 { Mode::Active } else { Mode::Passive };
        let config = ClientConfig { extended: seed % 3 == 0, most_waiting: 8, ..client_config(mode) };
        let mut client = Client::new(config).expect("settings that work");
        let mut foe = Foe::new(SERVER, seed, true);
        let (here, there) = (address(CLIENT), address(SERVER));
        let mut now = Time::ZERO;
        client.connect(now);
        for operation in [get("/a"), put("/b", 100_000), get("/c")] {
            client.submit(now, operation).expect("an operation that can be done");
        }
        client.quit(now);
        let (mut finished, mut ended) = (0, Vec::new());
        // For half of the seeds it begins with a server's usual text.
        let mut polite = seed % 4 < 2;
        for _ in 0..5_000 {
            exchange(now, &mut client, here, &mut foe, there, |_, _, event| match event {
                ClientEvent::Finished { .. } => finished += 1,
                ClientEvent::Ended(result) => ended.push(result),
                _ => {}
            });
            if polite && !foe.connections.is_empty() {
                polite = false;
                foe.endpoint.send(foe.connections[0], b"220 a\r\n331 b\r\n230 c\r\n200 d\r\n");
            }
            foe.act(now, here);
            now = next(now, &client, &foe);
            if now == Time::NEVER {
                break;
            }
            client.handle_timeout(now);
            foe.endpoint.handle_timeout(now);
        }
        assert_eq!((finished, ended.len()), (3, 1), "seed {seed} at {now:?}");
        ends[usize::from(matches!(ended[0], Err(SessionError::Reply(_) | SessionError::Unexpected(_))))] += 1;
        assert!(client.endpoint().len() <= 64);
    }
    assert!(ends[0] > 10 && ends[1] > 10, "both kinds of ends come up: {ends:?}");
}

#[test]
fn a_server_survives_any_client() {
    let (mut asked, mut transferred, mut logged_in) = (0, 0, 0);
    for seed in 0..300 {
        let mut server =
            Server::new(ServerConfig { most_sessions: 3, ..server_config() }).expect("settings that work");
        let mut foe = Foe::new("192.0.2.3", seed, false);
        let (here, there) = (address(SERVER), address("192.0.2.3"));
        let mut random = RandomStream::derive(seed, &[2]);
        let mut now = Time::ZERO;
        let control = SocketAddr::new(here.ip(), 21);
        for _ in 0..4 {
            let id = foe.endpoint.connect(now, None, control, Carries::Octets).expect("a free port");
            foe.endpoint.send(id, b"USER a\r\nPASS b\r\n");
            foe.connections.push(id);
        }
        let mut heed = |server: &mut Server, now, event| match event {
            ServerEvent::Asked { session, .. } => {
                asked += 1;
                let answers =
                    [Answer::Done, Answer::Octets(random.below(50_000)), Answer::Refused(Refusal::Failed)];
                // One of the three fits, unless the session has ended since.
                let first = random.below(3) as usize;
                let mut results = (0..3).map(|n| server.answer(now, session, answers[(first + n) % 3]));
                assert!(results.any(|result| result != Err(AnswerError::Unfit)));
            }
            ServerEvent::Transferred { .. } => transferred += 1,
            ServerEvent::LoggedIn { .. } => logged_in += 1,
            _ => {}
        };
        for _ in 0..5_000 {
            exchange(now, &mut server, here, &mut foe, there, &mut heed);
            assert!(server.sessions() <= 3 && server.endpoint().len() <= 72);
            foe.act(now, here);
            now = next(now, &server, &foe);
            if now == Time::NEVER {
                break;
            }
            server.handle_timeout(now);
            foe.endpoint.handle_timeout(now);
        }
        assert_eq!(server.sessions(), 0, "seed {seed} at {now:?}");
    }
    assert!(asked > 1_000 && transferred > 300 && logged_in > 500, "{asked} {transferred} {logged_in}");
}

#[test]
fn replies_wait_for_a_client_that_does_not_read_them() {
    // A client with a window of one segment of 64 octets that consumes nothing, and asks on and on.
    let mut server = Server::new(server_config()).expect("settings that work");
    let window = farcast_tcp::ReceiveWindow { size: farcast_tcp::Window::Octets(64), first: None };
    let tcp = farcast_tcp::Config { mss: 64, timestamps: None, receive_window: window, ..prompt() };
    let config = EndpointConfig { address: address(CLIENT).ip(), tcp, most_connections: 1, seed: 0 };
    let mut foe = Foe::new(CLIENT, 0, false);
    foe.endpoint = Endpoint::new(config).expect("settings that work");
    foe.words = 0;
    let control = SocketAddr::new(address(SERVER).ip(), 21);
    let id = foe.endpoint.connect(Time::ZERO, None, control, Carries::Octets).expect("a free port");
    foe.endpoint.send(id, &b"SYST\r\n".repeat(20_000));
    let mut now = Time::ZERO;
    for _ in 0..200 {
        // The foe's events are not looked at, so nothing is consumed.
        for _ in 0..10_000 {
            if let Some(transmit) = server.poll_transmit(now, now) {
                let Contents::Octets(octets) = server.contents(&transmit.message, address(CLIENT).ip())
                else {
                    panic!("not its own octets");
                };
                let from = Arrival::new(address(SERVER), address(CLIENT));
                let _ = foe.endpoint.handle_octets(now, &from, &transmit.message, octets);
            } else if let Some(transmit) = foe.endpoint.poll_transmit(now, now) {
                let octets =
                    foe.endpoint.octets(&transmit.message, address(SERVER).ip()).expect("its octets");
                let from = Arrival::new(address(CLIENT), address(SERVER));
                let _ = server.handle_octets(now, &from, &transmit.message, octets);
            } else {
                break;
            }
        }
        now += Span::from_secs(2);
        server.handle_timeout(now);
        foe.endpoint.handle_timeout(now);
    }
    let connection = foe.endpoint.connection(id).expect("it is open");
    let asked = connection.acknowledged() / 6;
    let heard = connection.received();
    assert!(heard <= 64, "{heard}");
    // Replies of 21 octets up to 4 KiB and one, and the contents of the server's receive window of 4 MB.
    assert!(asked > 1_000, "{asked}");
    let server_end =
        server.endpoint().find(21, SocketAddr::new(address(CLIENT).ip(), connection.local().port()));
    let waiting = server.endpoint().unacknowledged(server_end.expect("it is open"));
    assert!(waiting > 4_096 && waiting < 4_096 + 64, "{waiting}");
}
