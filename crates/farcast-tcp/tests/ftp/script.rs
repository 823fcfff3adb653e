//! Clients and servers against scripts: the lines of RFC 959 and its successors, written out by hand.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use farcast_core::engine::{Arrival, Deadline, Engine, Reject, Transmit};
use farcast_core::{Span, Time};
use farcast_tcp::Event;
use farcast_tcp::endpoint::{Carries, ConnectionId, Endpoint, EndpointConfig, EndpointEvent};
use farcast_tcp::ftp::{
    Access, Client, ClientConfig, ClientEvent, Completion, FileId, Mode, Operation, Server, ServerConfig,
    User,
};
use farcast_testkit::{Host, Link, Network, Setup};

use crate::world::{
    CLIENT, Packet, SERVER, Shelf, Wired, client_config, contents, host, prompt, put, server_config,
};

/// A step of a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// This text comes next on the control connection; `*` at its end stands for the rest of the line.
    Hear(&'static str),
    /// This is said there.
    Say(&'static str),
    /// A data connection to this port is awaited from now on.
    Listen(u16),
    /// A data connection to the port that the peer told last is opened.
    CallBack,
    /// These octets leave on the data connection, and its end.
    Send(&'static [u8]),
    /// These octets come on the data connection, and its end.
    Receive(&'static [u8]),
}

use Step::{CallBack, Hear, Listen, Receive, Say, Send};

/// A peer that follows a script. Every stream is kept as octets.
pub(crate) struct Scripted {
    endpoint: Endpoint,
    peer: SocketAddr,
    /// Opens the control connection; otherwise it waits for it.
    calls: bool,
    steps: VecDeque<Step>,
    control: Option<ConnectionId>,
    data: Option<ConnectionId>,
    /// Octets that have come on the data connection; `data_ended` if they are all.
    received: Vec<u8>,
    data_ended: bool,
    /// The port that the peer told last.
    told: u16,
    done: Rc<Cell<bool>>,
}

impl Scripted {
    pub(crate) fn new(address: &str, peer: &str, calls: bool, steps: &[Step], done: Rc<Cell<bool>>) -> Self {
        let config = EndpointConfig {
            address: address.parse().expect("an address"),
            tcp: prompt(),
            most_connections: 10,
            seed: 5,
        };
        let mut endpoint = Endpoint::new(config).expect("settings that work");
        if !calls {
            endpoint.listen(Some(21), Carries::Octets).expect("a free port");
        }
        Self {
            endpoint,
            peer: SocketAddr::new(peer.parse().expect("an address"), 21),
            calls,
            steps: steps.iter().copied().collect(),
            control: None,
            data: None,
            received: Vec::new(),
            data_ended: false,
            told: 0,
            done,
        }
    }

    fn note(&mut self, event: EndpointEvent) {
        match event {
            EndpointEvent::Accepted { port: 21, connection, .. } => self.control = Some(connection),
            EndpointEvent::Accepted { connection, .. } => self.data = Some(connection),
            EndpointEvent::Of(id, Event::Readable) if self.data == Some(id) => {
                let octets = self.endpoint.readable(id).to_vec();
                self.endpoint.consume(id, octets.len() as u64);
                self.received.extend(octets);
            }
            EndpointEvent::Of(id, Event::PeerClosed) => {
                self.data_ended |= self.data == Some(id);
                self.endpoint.close(id);
            }
            EndpointEvent::Of(id, Event::Closed | Event::Failed(_)) => self.endpoint.release(id),
            EndpointEvent::Of(..) => {}
        }
    }

    /// Goes on with the script as far as it goes.
    fn go_on(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            self.note(event);
        }
        while let Some(step) = self.steps.front().copied() {
            if !self.step(now, step) {
                return;
            }
            self.steps.pop_front();
        }
        self.done.set(true);
    }

    /// Does a step. Returns `true` once it is done.
    fn step(&mut self, now: Time, step: Step) -> bool {
        match (step, self.control, self.data) {
            (Hear(line), Some(control), _) => self.hear(control, line),
            (Say(text), Some(control), _) => {
                self.endpoint.send(control, text.as_bytes());
                true
            }
            (Listen(port), ..) => self.endpoint.listen(Some(port), Carries::Octets).is_ok(),
            (CallBack, ..) => self.call(now, self.told),
            (Send(octets), _, Some(data)) => {
                self.endpoint.send(data, octets);
                self.endpoint.close(data);
                self.data = None;
                true
            }
            (Receive(octets), _, Some(_)) if self.data_ended => {
                assert_eq!(self.received, octets);
                self.received.clear();
                self.data_ended = false;
                self.data = None;
                true
            }
            _ => false,
        }
    }

    fn call(&mut self, now: Time, port: u16) -> bool {
        let remote = SocketAddr::new(self.peer.ip(), port);
        self.data = Some(self.endpoint.connect(now, None, remote, Carries::Octets).expect("a free port"));
        true
    }

    fn hear(&mut self, control: ConnectionId, line: &str) -> bool {
        let octets = self.endpoint.readable(control);
        let Some(end) = octets.iter().position(|&octet| octet == b'\n') else { return false };
        let heard = String::from_utf8(octets[..=end].to_vec()).expect("text");
        match line.strip_suffix('*') {
            Some(beginning) => assert!(heard.starts_with(beginning), "{heard:?} instead of {line:?}"),
            None => assert_eq!(heard, format!("{line}\r\n")),
        }
        self.endpoint.consume(control, end as u64 + 1);
        if ["227", "229", "PORT", "EPRT"].iter().any(|tells| heard.starts_with(tells)) {
            self.told = port_in(&heard);
        }
        true
    }
}

/// The port at the end of a line: one number, or two behind commas.
fn port_in(line: &str) -> u16 {
    let numbers: Vec<u16> =
        line.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [.., high, low] if !line.contains('|') => high * 256 + low,
        [.., port] => port,
        [] => panic!("{line:?} tells no port"),
    }
}

impl Engine for Scripted {
    type Message = Packet;
    type Event = ();

    fn handle(&mut self, now: Time, from: &Arrival, packet: &Packet) -> Result<(), Reject> {
        let result = self.endpoint.handle_octets(now, from, &packet.segment, &packet.octets);
        self.go_on(now);
        result
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        self.go_on(now);
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Packet>> {
        if self.calls && self.control.is_none() {
            self.control = self.endpoint.connect(now, None, self.peer, Carries::Octets).ok();
        }
        let Transmit { message: segment, destination, .. } = self.endpoint.poll_transmit(now, until)?;
        let octets = self.endpoint.octets(&segment, destination.ip()).expect("its octets").to_vec();
        Some(Transmit::new(Packet { segment, octets }, host(destination.ip())))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.endpoint.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn settled_until(&self) -> Time {
        self.endpoint.settled_until()
    }
}

/// Returns the events of a client, and the data of its operations, against a server that follows a script.
fn client_with(
    config: ClientConfig,
    operations: Vec<Operation>,
    steps: &[Step],
) -> (Vec<ClientEvent>, Vec<Vec<u8>>) {
    let done = Rc::new(Cell::new(false));
    let mut network = Network::new("a scripted server", Setup::plain(0));
    network.links(Link::clean(Span::from_millis(10)));
    let events = Rc::new(std::cell::RefCell::new(Vec::new()));
    let heard = events.clone();
    let files = operations.len() as u64;
    let owner = move |_: &mut Wired<Client>, _: Time, event| {
        if !matches!(event, ClientEvent::Store { .. } | ClientEvent::Released(_)) {
            heard.borrow_mut().push(event);
        }
    };
    let engine = Wired::new(Client::new(config).expect("settings that work"));
    let client = network.add(host(CLIENT.parse().expect("an address")), &[], Host::new(engine, owner));
    let scripted = Scripted::new(SERVER, CLIENT, false, steps, done.clone());
    network.add(host(SERVER.parse().expect("an address")), &[], Host::alone(scripted));
    network.at(Time::ZERO, client, move |client: &mut Wired<Client>, now| {
        client.engine.connect(now);
        for operation in operations {
            let file = client.engine.submit(now, operation.clone()).expect("an operation that can be done");
            if let Operation::Store { path, size, .. } = operation {
                client.sending.insert(file, contents(&path, usize::try_from(size).expect("small")));
            }
        }
        client.engine.quit(now);
    });
    network.run();
    assert!(done.get(), "the script did not end");
    let arrived = |n| network.engine(client).arrived.get(&FileId(n)).cloned().unwrap_or_default();
    let arrived = (0..files).map(arrived).collect();
    (events.take(), arrived)
}

/// Runs a server that has a file against a client that follows a script.
fn server_with(config: ServerConfig, steps: &[Step]) -> Shelf {
    let done = Rc::new(Cell::new(false));
    let mut network = Network::new("a scripted client", Setup::plain(0));
    network.links(Link::clean(Span::from_millis(10)));
    let mut shelf = Shelf::default();
    shelf.files.insert("/dir/a file".into(), b"first line\r\nsecond\r\n".to_vec());
    shelf.directories.push("/dir".into());
    let shelf = Rc::new(std::cell::RefCell::new(shelf));
    let keeper = shelf.clone();
    let owner = move |server: &mut Wired<Server>, now, event| keeper.borrow_mut().heed(server, now, event);
    let engine = Wired::new(Server::new(config).expect("settings that work"));
    network.add(host(SERVER.parse().expect("an address")), &[], Host::new(engine, owner));
    let scripted = Scripted::new(CLIENT, SERVER, true, steps, done.clone());
    network.add(host(CLIENT.parse().expect("an address")), &[], Host::alone(scripted));
    network.run();
    assert!(done.get(), "the script did not end");
    shelf.take()
}

#[test]
fn a_client_says_what_rfc_959_has_it_say() {
    let config = ClientConfig { syst: true, ..client_config(Mode::Passive) };
    let steps = [
        Say("220-Welcome.\r\n 220 is not the end\r\n221 nor is this\r\n220 Ready.\r\n"),
        Hear("USER anonymous"),
        Say("331 Guest login ok\r\n"),
        Hear("PASS farcast@"),
        Say("230-\r\n230 In.\r\n"),
        Hear("SYST"),
        Say("502 No.\r\n"),
        Hear("TYPE I"),
        Say("200\r\n"),
        Hear("PASV"),
        Listen(5_001),
        Say("227 Entering Passive Mode (10,9,8,7,19,137)\r\n"),
        Hear("REST 3"),
        Say("350 Go on.\r\n"),
        Hear("RETR /x"),
        Say("125 Data connection already open\r\n"),
        Send(b"defghi"),
        Say("250 Done.\r\n"),
        Hear("TYPE A"),
        Say("200 ok\r\n"),
        Hear("PASV"),
        Listen(5_002),
        Say("227 =192,0,2,2,19,138\r\n"),
        Hear("LIST dir"),
        Say("150 Here it comes.\r\n"),
        Send(b"x\r\n"),
        Say("226-And\r\n226 gone.\r\n"),
        Hear("PWD"),
        Say("257 \"/a \"\"b\"\"\" created\r\n"),
        Hear("QUIT"),
        Say("221 Bye\r\n"),
    ];
    let operations = vec![
        Operation::Retrieve { path: "/x".into(), offset: 3 },
        Operation::List { path: Some("dir".into()) },
        Operation::Directory,
    ];
    let (events, arrived) = client_with(config, operations, &steps);
    assert_eq!(arrived[..2], [b"\0\0\0defghi".to_vec(), b"x\r\n".to_vec()]);
    assert!(matches!(&events[..], [ClientEvent::LoggedIn, .., ClientEvent::Ended(Ok(()))]), "{events:?}");
    let ClientEvent::Finished { result: Ok(Completion::Reply(reply)), .. } = &events[3] else {
        panic!("{events:?}");
    };
    assert_eq!(reply.quoted().as_deref(), Some("/a \"b\""));
}

#[test]
fn a_client_in_active_mode_tells_its_port_and_stores() {
    for (extended, hear) in [(false, "PORT 192,0,2,1,*"), (true, "EPRT |1|192.0.2.1|*")] {
        let config = ClientConfig { extended, user: "ann".into(), ..client_config(Mode::Active) };
        let steps = [
            Say("220 \r\n"),
            Hear("USER ann"),
            Say("230 No password is needed.\r\n"),
            Hear("TYPE I"),
            Say("200 \r\n"),
            Hear(hear),
            Say("200 \r\n"),
            Hear("STOR /x"),
            Say("150 \r\n"),
            CallBack,
            Receive(b""),
            Say("226 \r\n"),
            Hear("QUIT"),
            Say("221 \r\n"),
        ];
        let (events, _) = client_with(config, vec![put("/x", 0)], &steps);
        assert!(
            matches!(
                &events[..],
                [
                    ClientEvent::LoggedIn,
                    ClientEvent::Finished { result: Ok(_), .. },
                    ClientEvent::Ended(Ok(()))
                ]
            ),
            "{events:?}"
        );
    }
}

#[test]
fn a_server_answers_with_the_codes_of_rfc_959() {
    let steps = [
        Hear("220 *"),
        Say("NOOP\r\n"),
        Hear("200 *"),
        Say("RETR x\r\n"),
        Hear("530 *"),
        Say("PASS x\r\n"),
        Hear("503 *"),
        Say("USER ann\r\nPASS wrong\r\n"),
        Hear("331 *"),
        Hear("530 *"),
        Say("user ann\r\npass let me in\r\n"),
        Hear("331 *"),
        Hear("230 *"),
        Say("SYST\r\nFEAT\r\n"),
        Hear("215 UNIX Type: L8"),
        Hear("211-*"),
        Hear(" EPRT"),
        Hear(" EPSV"),
        Hear(" REST STREAM"),
        Hear(" SIZE"),
        Hear("211 *"),
        Say("PWD\r\nCWD dir\r\nPWD\r\nCWD nowhere\r\nCDUP\r\nPWD\r\n"),
        Hear("257 \"/\"*"),
        Hear("250 *"),
        Hear("257 \"/dir\"*"),
        Hear("550 *"),
        Hear("250 *"),
        Hear("257 \"/\"*"),
        Say("TYPE I\r\nTYPE E\r\nMODE S\r\nMODE B\r\nSTRU F\r\nSTRU P\r\nALLO 5\r\nXXXX\r\nREST x\r\n"),
        Hear("200 *"),
        Hear("504 *"),
        Hear("200 *"),
        Hear("504 *"),
        Hear("200 *"),
        Hear("504 *"),
        Hear("502 *"),
        Hear("500 *"),
        Hear("501 *"),
        Say("SIZE dir/a file\r\nSIZE no\r\nDELE no\r\nABOR\r\n"),
        Hear("213 20"),
        Hear("550 *"),
        Hear("550 *"),
        Hear("226 *"),
        // Only to the client itself, and to no port of a service (RFC 2577).
        Say("PORT 192,0,2,9,19,137\r\nPORT 192,0,2,1,0,25\r\nEPRT |3|x|5001|\r\nEPSV 2\r\n"),
        Hear("504 *"),
        Hear("504 *"),
        Hear("522 Network protocol not supported, use (1)"),
        Hear("522 Network protocol not supported, use (1)"),
        Say("QUIT\r\n"),
        Hear("221 *"),
    ];
    let access = Access::Users(vec![User { name: "ann".into(), password: "let me in".into() }]);
    let shelf = server_with(ServerConfig { access, ..server_config() }, &steps);
    assert_eq!((shelf.users, shelf.closed), (vec!["ann".to_string()], 1));
}

#[test]
fn a_server_transfers_in_every_mode() {
    const LOGIN: [Step; 4] = [Hear("220 *"), Say("USER a\r\nPASS b\r\n"), Hear("331 *"), Hear("230 *")];
    const FILE: &[u8] = b"first line\r\nsecond\r\n";
    let transfers = [
        // Active, and resumed.
        Listen(5_001),
        Say("PORT 192,0,2,1,19,137\r\nREST 12\r\nRETR dir/a file\r\n"),
        Hear("200 *"),
        Hear("350 *"),
        Hear("150 *"),
        Hear("226 *"),
        Receive(b"second\r\n"),
        // Passive, with the next command sent ahead.
        Say("PASV\r\n"),
        Hear("227 *"),
        CallBack,
        Say("RETR /dir/a file\r\nNOOP\r\n"),
        Hear("150 *"),
        Hear("226 *"),
        Hear("200 *"),
        Receive(FILE),
        // Stored.
        Say("EPSV\r\n"),
        Hear("229 *"),
        CallBack,
        Say("STOR new\r\n"),
        Hear("150 *"),
        Send(b"what is new"),
        Hear("226 *"),
        // A list, with the options of some clients.
        Say("EPSV ALL\r\nPASV\r\nEPSV 1\r\n"),
        Hear("200 *"),
        Hear("503 *"),
        Hear("229 *"),
        CallBack,
        Say("LIST -al\r\n"),
        Hear("150 *"),
        Hear("226 *"),
        Receive(b"/dir/a file\r\n/new\r\n"),
        // No connection is opened to a port without a listener.
        Say("EPSV\r\n"),
        Hear("229 *"),
        CallBack,
        Say("RETR nothing\r\n"),
        Hear("550 *"),
        Say("QUIT\r\n"),
        Hear("221 *"),
    ];
    let steps: Vec<Step> = LOGIN.into_iter().chain(transfers).collect();
    let shelf = server_with(server_config(), &steps);
    assert_eq!(shelf.files["/new"], b"what is new");
    assert_eq!(shelf.transfers.iter().filter(|result| result.is_ok()).count(), 4);
    let refused: Vec<Step> = LOGIN
        .into_iter()
        .chain([
            Say("PORT 192,0,2,1,19,140\r\nRETR /dir/a file\r\n"),
            Hear("200 *"),
            Hear("425 *"),
            Say("QUIT\r\n"),
            Hear("221 *"),
        ])
        .collect();
    assert_eq!(server_with(server_config(), &refused).transfers.len(), 1);
}
