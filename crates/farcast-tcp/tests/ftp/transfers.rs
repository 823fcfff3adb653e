//! Received data equals sent data: octet for octet, from the beginning or from the middle, with lists and sizes.

use farcast_core::{Span, Time};
use farcast_tcp::Failure;
use farcast_tcp::ftp::{
    Access, Client, ClientConfig, DataReport, Mode, Operation, Representation, ServerConfig, SessionError,
    User,
};

use crate::world::{Wired, World, client_config, contents, get, put, server_config};

#[test]
fn files_go_both_ways_and_are_what_they_were() {
    for mode in [Mode::Active, Mode::Passive] {
        let files = [("/down", 123_456), ("/empty", 0)];
        let operations =
            vec![get("/down"), put("/up", 98_765), get("/empty"), put("/nothing", 0), get("/up")];
        let world = World::clean((client_config(mode), server_config()), &files, operations).run();
        assert_eq!(world.notes.borrow().ended, Some(Ok(())));
        assert_eq!(world.arrived(0), contents("/down", 123_456));
        assert_eq!(world.shelf.borrow().files["/up"], contents("/up", 98_765));
        assert_eq!(world.arrived(2), []);
        assert_eq!(world.notes.borrow().report(2).octets, 0);
        assert_eq!(world.shelf.borrow().files["/nothing"], []);
        assert_eq!(world.arrived(4), contents("/up", 98_765));
        assert_eq!(world.network.engine(world.client).gone, 0);
        assert_eq!(world.network.engine(world.server).gone, 0);
        assert_eq!(world.shelf.borrow().closed, 1);
        assert!(world.shelf.borrow().transfers.iter().all(Result::is_ok));
        // Nothing is left of any connection once those that lingered are forgotten.
        assert!(world.network.engine(world.client).engine.endpoint().is_empty());
        assert!(world.network.engine(world.server).engine.endpoint().is_empty());
    }
}

#[test]
fn transfers_are_resumed_in_the_middle() {
    let operations = vec![
        Operation::Retrieve { path: "/down".into(), offset: 50_000 },
        Operation::Store { path: "/half".into(), size: 30_000, offset: 20_000 },
        Operation::Retrieve { path: "/down".into(), offset: 123_456 },
    ];
    let files = [("/down", 123_456), ("/half", 20_000)];
    let world = World::clean((client_config(Mode::Passive), server_config()), &files, operations).run();
    let arrived = world.arrived(0);
    assert_eq!(arrived[50_000..], contents("/down", 123_456)[50_000..]);
    assert!(arrived[..50_000].iter().all(|&octet| octet == 0));
    assert_eq!(world.shelf.borrow().files["/half"], contents("/half", 30_000));
    assert_eq!(world.notes.borrow().report(1).octets, 10_000);
    assert_eq!(world.notes.borrow().report(2).octets, 0);
}

#[test]
fn a_server_is_asked_for_more_than_files() {
    let operations = vec![
        Operation::Size { path: "b".into() },
        Operation::Directory,
        Operation::Enter { path: "sub".into() },
        Operation::Directory,
        get("c"),
        Operation::Enter { path: "..".into() },
        Operation::List { path: None },
        Operation::Names { path: Some("/".into()) },
        Operation::Delete { path: "/b".into() },
        Operation::Noop,
    ];
    let files = [("/b", 77), ("/sub/c", 1_234)];
    let world = World::clean((client_config(Mode::Passive), server_config()), &files, operations);
    world.shelf.borrow_mut().directories.push("/sub".into());
    let world = world.run();
    let notes = world.notes.borrow();
    assert_eq!(notes.reply(0), (213, "77".into()));
    assert_eq!(notes.reply(1).0, 257);
    assert!(notes.reply(3).1.starts_with("\"/sub\""), "{:?}", notes.reply(3));
    assert_eq!(world.arrived(4), contents("/sub/c", 1_234));
    for list in [6, 7] {
        assert_eq!(world.arrived(list), b"/b\r\n/sub/c\r\n");
    }
    assert_eq!((notes.reply(8).0, notes.reply(9).0), (250, 200));
    assert!(!world.shelf.borrow().files.contains_key("/b"));
    assert_eq!(notes.ended, Some(Ok(())));
}

#[test]
fn a_known_user_logs_in_and_text_needs_no_change_of_type() {
    let user = User { name: "ann".into(), password: "secret word".into() };
    let client = ClientConfig {
        user: user.name.clone(),
        password: user.password.clone(),
        representation: Representation::Ascii,
        ..client_config(Mode::Passive)
    };
    let server = ServerConfig { access: Access::Users(vec![user]), ..server_config() };
    let world = World::clean((client, server), &[("/a", 5_000)], vec![get("/a")]).run();
    assert_eq!(world.shelf.borrow().users, ["ann"]);
    // A server begins with text (RFC 959 section 5.1): one round trip less than the eight of an image.
    let report = world.notes.borrow().report(0);
    assert_eq!(report.first_arrived, Some(Time::ZERO + world.round_trip() * 7));
}

#[test]
fn ipv6_needs_the_extended_commands() {
    for mode in [Mode::Active, Mode::Passive] {
        let [client, server] =
            ["2001:db8::1", "2001:db8::2"].map(|address| address.parse().expect("an address"));
        let plain = client_config(mode);
        let client = ClientConfig { tcp: plain.tcp, mode, ..ClientConfig::new(client, server) };
        let server = ServerConfig { address: server, ..server_config() };
        let world =
            World::clean((client, server), &[("/a", 40_000)], vec![get("/a"), put("/b", 40_000)]).run();
        assert_eq!(world.arrived(0), contents("/a", 40_000));
        assert_eq!(world.shelf.borrow().files["/b"], contents("/b", 40_000));
    }
}

#[test]
fn a_long_session_leaves_no_more_connections_than_the_settings_allow() {
    let operations = vec![get("/a"); 300];
    let mut world = World::clean((client_config(Mode::Active), server_config()), &[("/a", 10)], operations);
    world.network.forget();
    let world = world.run();
    assert_eq!(world.notes.borrow().ended, Some(Ok(())));
    assert_eq!(world.notes.borrow().results.iter().filter(|(_, result)| result.is_ok()).count(), 300);
}

#[test]
fn a_session_that_is_cut_off_leaves_nothing_behind() {
    let operations = vec![get("/a"), put("/b", 900_000)];
    let mut world =
        World::clean((client_config(Mode::Passive), server_config()), &[("/a", 900_000)], operations);
    let at = Time::ZERO + Span::from_secs(6);
    world.network.at(at, world.client, |client: &mut Wired<Client>, now| client.engine.disconnect(now));
    let world = world.run();
    let aborted = SessionError::Connection(Failure::Aborted);
    assert_eq!(world.notes.borrow().ended, Some(Err(aborted)));
    assert_eq!(world.notes.borrow().results.len(), 2);
    assert_eq!(world.shelf.borrow().closed, 1);
    assert_eq!(world.network.engine(world.server).engine.endpoint().len(), 0);
    // Arrived octets are counted in order, and none twice.
    let client = &world.network.engine(world.client).engine;
    let arrived = world.arrived(0);
    assert!(!arrived.is_empty() && arrived.len() as u64 == client.octets_received());
    assert_eq!(arrived, contents("/a", 900_000)[..arrived.len()]);
}

#[test]
fn what_data_connections_count_is_added_up() {
    let operations = vec![get("/a"), put("/b", 10_000), get("/c"), put("/d", 3_000)];
    let files = [("/a", 20_000), ("/c", 1_448)];
    let world = World::clean((client_config(Mode::Passive), server_config()), &files, operations).run();
    let (client, server) =
        (&world.network.engine(world.client).engine, &world.network.engine(world.server).engine);
    // Segments of 1448 octets, with timestamps: 14 and 1 from the server, 7 and 3 from the client.
    let segments = |segments| DataReport { segments, ..DataReport::default() };
    assert_eq!((server.data_report(), client.data_report()), (segments(15), segments(10)));
    assert_eq!((server.octets_received(), client.octets_received()), (13_000, 21_448));
}
