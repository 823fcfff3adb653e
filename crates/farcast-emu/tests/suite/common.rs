//! A kernel behind a TUN device, in a network namespace of its own that is gone when the test ends, and our host
//! beyond.

use std::net::{IpAddr, SocketAddr};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use farcast_core::random::RandomStream;
use farcast_core::{Losses, Probability, Span, Time};
use farcast_emu::Clock;
use farcast_emu::driver::Driver;
use farcast_emu::namespace::Namespace;
use farcast_emu::network::Network;
use farcast_emu::tun::{Tun, TunConfig};
use farcast_link::losses::Bernoulli;
use farcast_tcp::endpoint::{Carries, ConnectionId, Endpoint, EndpointConfig, EndpointEvent};
use farcast_tcp::{Config, Connection, Event, Failure};

/// Longer than anything here takes.
pub(crate) const PATIENCE: Span = Span::from_secs(60);

/// The kernel's addresses, and those at which we are.
pub(crate) const KERNEL: &str = "10.77.0.1";
pub(crate) const OURS: &str = "10.77.0.2";
pub(crate) const KERNEL_6: &str = "fd77::1";
pub(crate) const OURS_6: &str = "fd77::2";

pub(crate) fn ip(address: &str) -> IpAddr {
    address.parse().unwrap()
}

pub(crate) fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(ip(address), port)
}

pub(crate) fn patience() -> Duration {
    Duration::from_nanos(PATIENCE.as_nanos())
}

/// Random octets.
pub(crate) fn octets(len: usize) -> Vec<u8> {
    let mut random = RandomStream::derive(len as u64, &[]);
    (0..len).map(|_| random.bits() as u8).collect()
}

/// Makes a namespace whose kernel has one way out: the device.
pub(crate) fn kernel(mtu: u16) -> (Namespace, Tun) {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test needs root for network namespaces; run `sudo -E cargo test`"
    );
    let namespace = Namespace::create().unwrap();
    let tun = namespace.run(|| device("tun0", mtu)).unwrap();
    (namespace, tun)
}

/// A device with both addresses, in this thread's namespace.
fn device(name: &str, mtu: u16) -> Tun {
    let tun = Tun::open(&TunConfig { mtu, ..TunConfig::new(name) }).unwrap();
    let mut network = Network::open().unwrap();
    network.set_up("lo").unwrap();
    network.add_address(name, ip(KERNEL), 24).unwrap();
    // IPv6 needs packets of 1280 octets (RFC 8200 section 5).
    if mtu >= 1280 {
        network.add_address(name, ip(KERNEL_6), 64).unwrap();
    }
    network.set_up(name).unwrap();
    tun
}

/// Our host, and its events.
#[derive(Debug)]
pub(crate) struct Ours {
    pub(crate) driver: Driver<Endpoint>,
    events: Vec<EndpointEvent>,
}

impl Ours {
    pub(crate) fn new(tun: Tun, address: &str, tcp: Config) -> Self {
        let config = EndpointConfig { address: ip(address), tcp, most_connections: 10, seed: 7 };
        Self { driver: Driver::new(tun, Endpoint::new(config).unwrap()), events: Vec::new() }
    }

    /// Loses packets in both directions with probability `p`.
    pub(crate) fn lose(&mut self, p: f64) {
        let process = |label| -> Box<dyn Losses> {
            let stream = RandomStream::derive(3, &[label]);
            Box::new(Bernoulli::new(Probability::new(p).unwrap(), 1, stream))
        };
        self.driver.lose(process(1), process(2));
    }

    pub(crate) fn host(&mut self) -> &mut Endpoint {
        self.driver.host_mut()
    }

    pub(crate) fn connect(&mut self, remote: SocketAddr) -> ConnectionId {
        let now = self.driver.now();
        self.host().connect(now, None, remote, Carries::Octets).unwrap()
    }

    pub(crate) fn listen(&mut self, port: u16) {
        assert_eq!(self.host().listen(Some(port), Carries::Octets), Ok(port));
    }

    /// The next connection that a peer has opened, once there is one.
    pub(crate) fn accept(&mut self) -> ConnectionId {
        self.turn_until(|ours| ours.accepted().next().is_some());
        let id = self.accepted().next().unwrap();
        self.events.retain(
            |event| !matches!(event, EndpointEvent::Accepted { connection, .. } if *connection == id),
        );
        id
    }

    fn accepted(&self) -> impl Iterator<Item = ConnectionId> {
        self.events.iter().filter_map(|event| match event {
            EndpointEvent::Accepted { connection, .. } => Some(*connection),
            EndpointEvent::Of(..) => None,
        })
    }

    pub(crate) fn happened(&self, id: ConnectionId, event: Event) -> bool {
        self.events.contains(&EndpointEvent::Of(id, event))
    }

    /// Returns the outcome of the connection, if it has ended.
    pub(crate) fn outcome(&self, id: ConnectionId) -> Option<Result<(), Failure>> {
        self.events.iter().find_map(|event| match event {
            EndpointEvent::Of(of, Event::Closed) if *of == id => Some(Ok(())),
            EndpointEvent::Of(of, Event::Failed(failure)) if *of == id => Some(Err(*failure)),
            _ => None,
        })
    }

    /// Moves arrived octets to `sink`.
    pub(crate) fn read_to(&mut self, id: ConnectionId, sink: &mut Vec<u8>) {
        let readable = self.driver.host().readable(id);
        sink.extend_from_slice(readable);
        let octets = readable.len() as u64;
        self.host().consume(id, octets);
    }

    /// Turns until `done` says so.
    pub(crate) fn turn_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let clock = Clock::start();
        while !done(self) {
            assert!(clock.now().since(Time::ZERO) < PATIENCE, "it hangs: {:?}", self.events);
            let Self { driver, events } = self;
            driver.turn(Span::from_millis(100), |_, _, event| events.push(event)).unwrap();
        }
    }

    /// Turns until the connection has ended; how.
    pub(crate) fn ended(&mut self, id: ConnectionId) -> Result<(), Failure> {
        self.turn_until(|ours| ours.outcome(id).is_some());
        self.outcome(id).unwrap()
    }

    /// Turns until `thread` is through. Returns the thread's result.
    pub(crate) fn joined<T>(&mut self, thread: ScopedJoinHandle<'_, T>) -> T {
        self.turn_until(|_| thread.is_finished());
        thread.join().unwrap()
    }

    /// Receives until the peer has closed, closes too, and waits for the end. Returns the octets that arrived.
    pub(crate) fn read_to_end(&mut self, id: ConnectionId) -> Result<Vec<u8>, Failure> {
        let mut received = Vec::new();
        self.turn_until(|ours| {
            ours.read_to(id, &mut received);
            ours.happened(id, Event::PeerClosed) || ours.outcome(id).is_some()
        });
        self.read_to(id, &mut received);
        self.host().close(id);
        self.ended(id).map(|()| received)
    }

    pub(crate) fn connection(&self, id: ConnectionId) -> &Connection {
        self.driver.host().connection(id).unwrap()
    }
}
