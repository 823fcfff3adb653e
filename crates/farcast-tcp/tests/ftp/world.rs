//! A client and a server with files in virtual time. Segments travel with their octets, as on a wire.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::rc::Rc;

use farcast_core::engine::{Arrival, Deadline, Engine, Message, Reject, Transmit};
use farcast_core::{Span, Time};
use farcast_tcp::ftp::{
    Answer, Client, ClientConfig, ClientEvent, Completion, Contents, FileId, FileReport, Mode, Operation,
    OperationError, Refusal, Request, Server, ServerConfig, ServerEvent, SessionError, TransferError,
    TransferReport,
};
use farcast_tcp::{Config, DelayedAck, Segment};
use farcast_testkit::{Handle, Host, Link, Network, Setup};

pub(crate) const CLIENT: &str = "192.0.2.1";
pub(crate) const SERVER: &str = "192.0.2.2";

/// A segment with its payload.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Packet {
    pub(crate) segment: Segment,
    pub(crate) octets: Vec<u8>,
}

impl Message for Packet {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::MIN
    }
    fn split(self, _: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }
    fn wire_len(&self, segment: u32) -> usize {
        self.segment.wire_len(segment)
    }
}

/// Common interface of both engines.
pub(crate) trait Ftp: Engine<Message = Segment> {
    fn take(&mut self, now: Time, from: &Arrival, segment: &Segment, octets: &[u8]) -> Result<(), Reject>;
    fn what(&self, segment: &Segment, to: IpAddr) -> Contents<'_>;
    fn stored(event: &Self::Event) -> Option<(FileId, u64, u16, u16)>;
}

impl Ftp for Client {
    fn take(&mut self, now: Time, from: &Arrival, segment: &Segment, octets: &[u8]) -> Result<(), Reject> {
        self.handle_octets(now, from, segment, octets)
    }
    fn what(&self, segment: &Segment, to: IpAddr) -> Contents<'_> {
        self.contents(segment, to)
    }
    fn stored(event: &ClientEvent) -> Option<(FileId, u64, u16, u16)> {
        match *event {
            ClientEvent::Store { file, offset, skip, len } => Some((file, offset, skip, len)),
            _ => None,
        }
    }
}

impl Ftp for Server {
    fn take(&mut self, now: Time, from: &Arrival, segment: &Segment, octets: &[u8]) -> Result<(), Reject> {
        self.handle_octets(now, from, segment, octets)
    }
    fn what(&self, segment: &Segment, to: IpAddr) -> Contents<'_> {
        self.contents(segment, to)
    }
    fn stored(event: &ServerEvent) -> Option<(FileId, u64, u16, u16)> {
        match *event {
            ServerEvent::Store { file, offset, skip, len } => Some((file, offset, skip, len)),
            _ => None,
        }
    }
}

/// An engine that has its files' octets beside it.
pub(crate) struct Wired<E> {
    pub(crate) engine: E,
    /// Contents of the files that are sent.
    pub(crate) sending: BTreeMap<FileId, Vec<u8>>,
    /// Contents that have arrived.
    pub(crate) arrived: BTreeMap<FileId, Vec<u8>>,
    /// The payload of the packet at hand.
    at_hand: Vec<u8>,
    /// Segments whose contents were gone.
    pub(crate) gone: u32,
}

impl<E> Wired<E> {
    pub(crate) fn new(engine: E) -> Self {
        Self { engine, sending: BTreeMap::new(), arrived: BTreeMap::new(), at_hand: Vec::new(), gone: 0 }
    }
}

impl<E: Ftp> Engine for Wired<E> {
    type Message = Packet;
    type Event = E::Event;

    fn handle(&mut self, now: Time, from: &Arrival, packet: &Packet) -> Result<(), Reject> {
        self.at_hand.clone_from(&packet.octets);
        self.engine.take(now, from, &packet.segment, &packet.octets)
    }

    fn handle_timeout(&mut self, now: Time) {
        self.engine.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Packet>> {
        let Transmit { message: segment, destination, .. } = self.engine.poll_transmit(now, until)?;
        let octets = match self.engine.what(&segment, destination.ip()) {
            Contents::Octets(octets) => octets.to_vec(),
            Contents::File { file, offset, len } => {
                let start = usize::try_from(offset).expect("small");
                self.sending[&file][start..start + usize::from(len)].to_vec()
            }
            Contents::Gone => {
                self.gone += 1;
                vec![0; usize::from(segment.payload.len)]
            }
        };
        assert_eq!(octets.len(), usize::from(segment.payload.len));
        Some(Transmit::new(Packet { segment, octets }, host(destination.ip())))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.engine.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<E::Event> {
        let event = self.engine.poll_event()?;
        if let Some((file, offset, skip, len)) = E::stored(&event) {
            let (start, skip, len) =
                (usize::try_from(offset).expect("small"), usize::from(skip), usize::from(len));
            let octets = self.arrived.entry(file).or_default();
            octets.resize(octets.len().max(start + len), 0);
            octets[start..start + len].copy_from_slice(&self.at_hand[skip..skip + len]);
        }
        Some(event)
    }

    fn settled_until(&self) -> Time {
        self.engine.settled_until()
    }
}

/// The address by which the network knows a host; ports are in the segments.
pub(crate) fn host(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, 0)
}

/// Octets of a file that no other file has.
pub(crate) fn contents(path: &str, size: usize) -> Vec<u8> {
    let salt = path.bytes().fold(17u32, |salt, octet| salt.wrapping_mul(31).wrapping_add(octet.into()));
    (0..size as u32).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(salt) >> 24) as u8).collect()
}

/// Files of a server, and the events that it was told.
#[derive(Default, Debug)]
pub(crate) struct Shelf {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) directories: Vec<String>,
    /// Paths that cannot be written.
    pub(crate) full: Vec<String>,
    pub(crate) users: Vec<String>,
    pub(crate) transfers: Vec<Result<TransferReport, TransferError>>,
    pub(crate) closed: u32,
    pub(crate) released: Vec<FileId>,
    /// Files that are received: their paths.
    receiving: BTreeMap<FileId, String>,
}

impl Shelf {
    /// The answer to a request, and the octets that follow from it.
    fn answer(&mut self, file: FileId, request: &Request, arrived: &[u8]) -> (Answer, Option<Vec<u8>>) {
        let missing = (Answer::Refused(Refusal::Missing), None);
        match request {
            Request::Retrieve { path, .. } => self
                .files
                .get(path)
                .map_or(missing, |octets| (Answer::Octets(octets.len() as u64), Some(octets.clone()))),
            Request::List { .. } | Request::Names { .. } => {
                let list: Vec<u8> =
                    self.files.keys().flat_map(|path| [path, "\r\n"].concat().into_bytes()).collect();
                (Answer::Octets(list.len() as u64), Some(list))
            }
            Request::Store { path, .. } if self.full.contains(path) => {
                (Answer::Refused(Refusal::NoRoom), None)
            }
            Request::Store { path, offset } => {
                self.receiving.insert(file, path.clone());
                let kept = self.files.get(path).map_or(0, Vec::len) as u64;
                assert!(*offset <= kept, "only what is there is resumed");
                (Answer::Done, None)
            }
            Request::Keep { octets } => {
                let path = self.receiving.remove(&file).expect("it was opened");
                let whole = self.files.entry(path).or_default();
                let first = arrived.len() - usize::try_from(*octets).expect("small");
                whole.truncate(first);
                whole.extend_from_slice(&arrived[first..]);
                (Answer::Done, None)
            }
            Request::Size { path } => {
                self.files.get(path).map_or(missing, |octets| (Answer::Octets(octets.len() as u64), None))
            }
            Request::Delete { path } => {
                if self.files.remove(path).is_some() {
                    (Answer::Done, None)
                } else {
                    missing
                }
            }
            Request::Enter { path } => {
                if path == "/" || self.directories.contains(path) {
                    (Answer::Done, None)
                } else {
                    missing
                }
            }
        }
    }

    /// The server's owner.
    pub(crate) fn heed(&mut self, server: &mut Wired<Server>, now: Time, event: ServerEvent) {
        match event {
            ServerEvent::Asked { session, file, request } => {
                let arrived = server.arrived.get(&file).map_or(&[][..], Vec::as_slice);
                let (answer, octets) = self.answer(file, &request, arrived);
                server.sending.extend(octets.map(|octets| (file, octets)));
                server.engine.answer(now, session, answer).expect("a fit answer");
            }
            ServerEvent::LoggedIn { user, .. } => self.users.push(user),
            ServerEvent::Transferred { result, .. } => self.transfers.push(result),
            ServerEvent::Released(file) => {
                server.sending.remove(&file);
                self.released.push(file);
            }
            ServerEvent::Closed { .. } => self.closed += 1,
            ServerEvent::Opened { .. } | ServerEvent::Store { .. } => {}
        }
    }
}

/// Events of a client.
#[derive(Default, Debug)]
pub(crate) struct Notes {
    pub(crate) results: Vec<(FileId, Result<Completion, OperationError>)>,
    pub(crate) ended: Option<Result<(), SessionError>>,
    pub(crate) logged_in: bool,
}

impl Notes {
    /// The report of the file that was operation `number`.
    pub(crate) fn report(&self, number: u64) -> FileReport {
        match self.results.iter().find(|(file, _)| file.0 == number) {
            Some((_, Ok(Completion::File(report)))) => *report,
            other => panic!("no file: {other:?}"),
        }
    }

    /// Returns the error with which operation `number` failed.
    pub(crate) fn error(&self, number: u64) -> OperationError {
        match self.results.iter().find(|(file, _)| file.0 == number) {
            Some((_, Err(error))) => *error,
            other => panic!("no failure: {other:?}"),
        }
    }

    /// Code and text of the reply to operation `number`.
    pub(crate) fn reply(&self, number: u64) -> (u16, String) {
        match self.results.iter().find(|(file, _)| file.0 == number) {
            Some((_, Ok(Completion::Reply(reply)))) => (reply.code.number(), reply.text.clone()),
            other => panic!("no reply: {other:?}"),
        }
    }
}

/// A client and a server that has files.
pub(crate) struct World {
    pub(crate) network: Network<Packet>,
    pub(crate) client: Handle<Wired<Client>>,
    pub(crate) server: Handle<Wired<Server>>,
    pub(crate) shelf: Rc<RefCell<Shelf>>,
    pub(crate) notes: Rc<RefCell<Notes>>,
}

/// TCP with which everything takes exactly its round trips: acknowledgments at once.
pub(crate) fn prompt() -> Config {
    Config { delayed_ack: DelayedAck::Off, ..Config::default() }
}

pub(crate) fn client_config(mode: Mode) -> ClientConfig {
    let [client, server] = [CLIENT, SERVER].map(|address| address.parse().expect("an address"));
    ClientConfig { tcp: prompt(), mode, ..ClientConfig::new(client, server) }
}

pub(crate) fn server_config() -> ServerConfig {
    ServerConfig { tcp: prompt(), ..ServerConfig::new(SERVER.parse().expect("an address")) }
}

impl World {
    /// The client connects at 0, does `operations` and quits.
    pub(crate) fn new(
        setup: Setup,
        link: Link,
        (client, server): (ClientConfig, ServerConfig),
        files: &[(&str, usize)],
        operations: Vec<Operation>,
    ) -> Self {
        let shelf = Rc::new(RefCell::new(Shelf::default()));
        shelf
            .borrow_mut()
            .files
            .extend(files.iter().map(|&(path, size)| (path.to_string(), contents(path, size))));
        let notes = Rc::new(RefCell::new(Notes::default()));
        let (client_address, server_address) = (host(client.address), host(server.address));
        let mut network = Network::new("ftp", setup);
        network.links(link);
        let heard = notes.clone();
        let owner = move |_: &mut Wired<Client>, _: Time, event| match event {
            ClientEvent::Finished { file, result } => heard.borrow_mut().results.push((file, result)),
            ClientEvent::Ended(result) => heard.borrow_mut().ended = Some(result),
            ClientEvent::LoggedIn => heard.borrow_mut().logged_in = true,
            ClientEvent::Store { .. } | ClientEvent::Released(_) => {}
        };
        let engine = Wired::new(Client::new(client).expect("settings that work"));
        let client = network.add(client_address, &[], Host::new(engine, owner));
        let keeper = shelf.clone();
        let owner =
            move |server: &mut Wired<Server>, now, event| keeper.borrow_mut().heed(server, now, event);
        let engine = Wired::new(Server::new(server).expect("settings that work"));
        let server = network.add(server_address, &[], Host::new(engine, owner));
        network.at(Time::ZERO, client, move |client: &mut Wired<Client>, now| {
            client.engine.connect(now);
            for operation in operations {
                let sent = match &operation {
                    Operation::Store { path, size, .. } => {
                        Some(contents(path, usize::try_from(*size).expect("small")))
                    }
                    _ => None,
                };
                let file = client.engine.submit(now, operation).expect("an operation that can be done");
                client.sending.extend(sent.map(|octets| (file, octets)));
            }
            client.engine.quit(now);
        });
        Self { network, client, server, shelf, notes }
    }

    /// The same over clean links with 300 ms one way.
    pub(crate) fn clean(
        configs: (ClientConfig, ServerConfig),
        files: &[(&str, usize)],
        operations: Vec<Operation>,
    ) -> Self {
        Self::new(Setup::plain(1), Link::clean(Span::from_millis(300)), configs, files, operations)
    }

    /// Runs until nothing is left to happen.
    pub(crate) fn run(mut self) -> Self {
        self.network.run();
        self
    }

    /// The round trip.
    pub(crate) fn round_trip(&self) -> Span {
        self.network.delay(self.client, self.server) + self.network.delay(self.server, self.client)
    }

    /// Returns the octets of operation `number` that have arrived at the client.
    pub(crate) fn arrived(&self, number: u64) -> Vec<u8> {
        self.network.engine(self.client).arrived.get(&FileId(number)).cloned().unwrap_or_default()
    }
}

pub(crate) fn get(path: &str) -> Operation {
    Operation::Retrieve { path: path.into(), offset: 0 }
}

pub(crate) fn put(path: &str, size: u64) -> Operation {
    Operation::Store { path: path.into(), size, offset: 0 }
}
