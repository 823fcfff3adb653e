//! Failures with a reply: logins, files, data connections, sessions.

use std::net::SocketAddr;

use farcast_core::{Span, Time};
use farcast_tcp::ftp::{
    Access, Client, ClientConfig, Code, Mode, Operation, OperationError, ServerConfig, SessionError,
    SubmitError, TransferError, User,
};
use farcast_tcp::{Failure, Flags};

use crate::world::{Packet, Wired, World, client_config, contents, get, put, server_config};

fn code(number: u16) -> Code {
    Code::new(number).expect("a code")
}

#[test]
fn a_wrong_password_ends_the_session() {
    let access = Access::Users(vec![User { name: "ann".into(), password: "right".into() }]);
    let client =
        ClientConfig { user: "ann".into(), password: "wrong".into(), ..client_config(Mode::Passive) };
    let world =
        World::clean((client, ServerConfig { access, ..server_config() }), &[], vec![get("/a")]).run();
    let notes = world.notes.borrow();
    assert_eq!(notes.ended, Some(Err(SessionError::Login(code(530)))));
    assert_eq!(notes.error(0), OperationError::NoSession);
    assert!(!notes.logged_in && world.shelf.borrow().users.is_empty());
}

#[test]
fn what_a_server_refuses_does_not_end_the_session() {
    let operations = vec![
        get("/missing"),
        put("/full", 1_000),
        Operation::Delete { path: "/missing".into() },
        Operation::Enter { path: "/missing".into() },
        Operation::Retrieve { path: "/a".into(), offset: 2_001 },
        get("/a"),
    ];
    for mode in [Mode::Active, Mode::Passive] {
        let configs = (client_config(mode), server_config());
        let world = World::clean(configs, &[("/a", 2_000)], operations.clone());
        world.shelf.borrow_mut().full.push("/full".into());
        let world = world.run();
        let notes = world.notes.borrow();
        for (number, refused) in [(0, 550), (1, 452), (2, 550), (3, 550), (4, 554)] {
            assert_eq!(notes.error(number), OperationError::Refused(code(refused)), "{mode:?} {number}");
        }
        assert_eq!(world.arrived(5), contents("/a", 2_000), "{mode:?}");
        assert_eq!(notes.ended, Some(Ok(())));
    }
}

/// Returns `true` if a packet opens a connection to a port that is not the server's.
fn opens_data(packet: &Packet) -> bool {
    packet.segment.flags == Flags::SYN && packet.segment.destination_port != 21
}

#[test]
fn a_data_connection_that_cannot_be_opened_fails_the_file_and_nothing_else() {
    for (mode, error, told) in [
        (Mode::Passive, OperationError::DataConnection(Failure::TimedOut), None),
        (Mode::Active, OperationError::Refused(code(425)), Some(Err(TransferError::NotOpened))),
    ] {
        let configs = (client_config(mode), server_config());
        let configs = (ClientConfig { patience: Span::from_secs(3_000), ..configs.0 }, configs.1);
        let tcp = farcast_tcp::Config { most_retries: 3, ..configs.0.tcp.clone() };
        let configs = (ClientConfig { tcp: tcp.clone(), ..configs.0 }, ServerConfig { tcp, ..configs.1 });
        let mut world = World::clean(configs, &[("/a", 2_000)], vec![get("/a"), Operation::Noop]);
        world.network.drop_if(|leg| opens_data(&leg.message));
        let world = world.run();
        assert_eq!(world.notes.borrow().error(0), error, "{mode:?}");
        assert_eq!(world.notes.borrow().reply(1).0, 200);
        assert_eq!(world.notes.borrow().ended, Some(Ok(())));
        assert_eq!(world.shelf.borrow().transfers.first().copied(), told);
    }
}

#[test]
fn a_server_that_is_not_there_or_falls_silent_is_given_up() {
    let patience = Span::from_secs(30);
    let client = || ClientConfig { patience, ..client_config(Mode::Passive) };
    let elsewhere = SocketAddr::new(client().server.ip(), 2121);
    let config = ClientConfig { server: elsewhere, ..client() };
    let world = World::clean((config, server_config()), &[], vec![]).run();
    let refused = SessionError::Connection(Failure::Refused);
    assert_eq!(world.notes.borrow().ended, Some(Err(refused)));

    let mut world = World::clean((client(), server_config()), &[("/a", 2_000)], vec![get("/a")]);
    world.network.vanish(Time::ZERO + Span::from_millis(2_000), world.server);
    let world = world.run();
    assert_eq!(world.notes.borrow().ended, Some(Err(SessionError::Silent)));
    assert_eq!(world.notes.borrow().error(0), OperationError::NoSession);
    // The last that was heard came after two seconds at most, and three of silence within the patience do no harm.
    let ended = world.network.engine(world.client).engine.session().ended.expect("it ended");
    assert!(ended >= Time::ZERO + patience && ended <= Time::ZERO + Span::from_millis(2_300) + patience);
}

#[test]
fn a_session_that_is_idle_is_ended_by_the_server() {
    let server = ServerConfig { idle_limit: Span::from_secs(60), ..server_config() };
    let gap = Span::from_secs(100);
    let client = ClientConfig { gap, ..client_config(Mode::Passive) };
    let world = World::clean((client, server), &[("/a", 10)], vec![get("/a"), get("/a")]).run();
    let notes = world.notes.borrow();
    assert_eq!(notes.report(0).octets, 10);
    assert_eq!(notes.error(1), OperationError::NoSession);
    assert_eq!(notes.ended, Some(Err(SessionError::Unavailable(code(421)))));
    assert_eq!(world.shelf.borrow().closed, 1);
}

#[test]
fn more_clients_than_sessions_are_turned_away() {
    let server = ServerConfig { most_sessions: 1, ..server_config() };
    let mut world = World::clean((client_config(Mode::Passive), server), &[("/a", 500_000)], vec![get("/a")]);
    let second =
        ClientConfig { address: "192.0.2.3".parse().expect("an address"), ..client_config(Mode::Passive) };
    let address = crate::world::host(second.address);
    let second = Wired::new(Client::new(second).expect("settings that work"));
    let second = world.network.add(address, &[], farcast_testkit::Host::alone(second));
    world.network.at(Time::ZERO + Span::from_secs(1), second, |client: &mut Wired<Client>, now| {
        client.engine.connect(now);
    });
    let mut world = world.run();
    assert_eq!(world.arrived(0), contents("/a", 500_000));
    let log = world.network.take_log();
    let told: Vec<_> = log.events.iter().filter(|event| event.host == second.index()).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].text.contains("Ended(Err(Unavailable(Code(421))))"), "{}", told[0].text);
}

#[test]
fn a_transfer_is_aborted_and_the_session_goes_on() {
    // 40 MB would take minutes in a window of 64 KiB.
    for (mode, operation, delay) in [
        (Mode::Passive, get("/a"), 7_000),
        (Mode::Active, get("/a"), 7_000),
        (Mode::Passive, put("/b", 40_000_000), 7_000),
        // Before the data connection is open, and before the command has left.
        (Mode::Passive, get("/a"), 3_700),
        (Mode::Active, get("/a"), 3_700),
        (Mode::Passive, get("/a"), 2_500),
    ] {
        let window = farcast_tcp::ReceiveWindow { size: farcast_tcp::Window::Octets(65_535), first: None };
        let tcp = farcast_tcp::Config { receive_window: window, ..client_config(mode).tcp };
        let configs = (
            ClientConfig { tcp: tcp.clone(), ..client_config(mode) },
            ServerConfig { tcp, ..server_config() },
        );
        let context = format!("{mode:?} {operation:?} {delay}");
        let operations = vec![operation, get("/c")];
        let mut world = World::clean(configs, &[("/a", 40_000_000), ("/c", 3_000)], operations);
        world.network.forget();
        let at = Time::ZERO + Span::from_millis(delay);
        world.network.at(at, world.client, |client: &mut Wired<Client>, now| {
            assert!(client.engine.abort(now));
        });
        let world = world.run();
        assert_eq!(world.notes.borrow().error(0), OperationError::Aborted, "{context}");
        assert_eq!(world.notes.borrow().ended, Some(Ok(())), "{context}");
        assert!(world.arrived(1) == contents("/c", 3_000), "{context}: {:?}", world.notes.borrow());
        assert!(world.notes.borrow().report(1).completed < Time::ZERO + Span::from_secs(15), "{context}");
    }
}

#[test]
fn operations_that_make_no_sense_are_not_taken() {
    let mut client =
        Client::new(ClientConfig { most_waiting: 1, ..client_config(Mode::Passive) }).expect("settings");
    let now = Time::ZERO;
    for path in ["", "a\r\nDELE b", "a\0", &"x".repeat(508)] {
        assert_eq!(client.submit(now, get(path)), Err(SubmitError::Path(507)), "{path:?}");
    }
    let behind = Operation::Store { path: "a".into(), size: 5, offset: 6 };
    assert_eq!(client.submit(now, behind), Err(SubmitError::Offset { offset: 6, size: 5 }));
    assert!(client.submit(now, get(&"x".repeat(507))).is_ok());
    assert_eq!(client.submit(now, get("a")), Err(SubmitError::Full(1)));
    client.quit(now);
    assert_eq!(client.submit(now, get("a")), Err(SubmitError::Over));
}
