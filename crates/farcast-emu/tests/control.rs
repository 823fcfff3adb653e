//! The control socket as a client sees it: lines over a socket, read by nothing of farcast's own, and the client of
//! farcast's own against servers of the test's.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and has sockets, threads and a clock of its own"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use farcast_core::{BitRate, Span};
use farcast_emu::control::{
    Answer, AnswerLine, Bin, Change, Control, ControlCounters, ControlError, ControlServer, Count,
    Description, DirectionState, Handler, HostDescription, LONGEST_LINE, Lateness, LinkDirection,
    MOST_CONNECTIONS, ProgramPhase, ProgramState, Request, Snapshot, StageDescription, TerminalState,
    running, socket_name,
};
use farcast_emu::namespace::Namespace;
use proptest::prelude::*;
use rustix::process::Uid;
use serde_json::{Value, json};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// Calls of a handler.
#[derive(Clone, PartialEq, Debug)]
enum Told {
    Set(Change),
    Stop,
}

/// A second and a thousand octets pass from one snapshot to the next.
struct Fake {
    told: Sender<Told>,
    snapshots: u64,
}

fn count(packets: u64, octets: u64) -> Count {
    Count { packets, octets }
}

impl Handler for Fake {
    fn set(&mut self, change: Change) -> Result<(), String> {
        if change.stage.as_deref() == Some("nowhere") {
            return Err("there is no stage \"nowhere\"".into());
        }
        self.told.send(Told::Set(change)).unwrap();
        Ok(())
    }

    fn snapshot(&mut self) -> Snapshot {
        self.snapshots += 1;
        let entered = count(self.snapshots, 1000 * self.snapshots);
        Snapshot {
            time_s: self.snapshots as f64,
            forward: DirectionState {
                entered,
                delivered: count(0, 125),
                delay_s: Some(0.25),
                ..DirectionState::default()
            },
            terminals: vec![TerminalState { terminal: 0, delivered: count(1, 2), lost: count(3, 4) }],
            lateness: Lateness {
                valid: true,
                bins: vec![Bin { below_s: None, packets: 7 }],
                ..Lateness::default()
            },
            programs: vec![ProgramState {
                name: "curl".into(),
                host: "near".into(),
                phase: ProgramPhase::Ended,
                exit_code: Some(0),
                signal: None,
            }],
            ..Snapshot::default()
        }
    }

    fn describe(&mut self) -> Description {
        let settings = BTreeMap::from([("delay".to_owned(), "260 ms".to_owned())]);
        let address = "10.0.0.1".parse().unwrap();
        Description {
            version: "0.1.0".into(),
            pid: 7,
            link: "geo".into(),
            seed: u64::MAX,
            stages: vec![StageDescription {
                name: Some("pipe".into()),
                kind: "pipe".into(),
                way: Some(LinkDirection::Return),
                settings,
            }],
            changes: vec![Change { delay: Some(Span::from_millis(80)), ..Change::default() }],
            hosts: vec![HostDescription { name: "hub".into(), address, terminal: None }],
        }
    }

    fn stop(&mut self) {
        self.told.send(Told::Stop).unwrap();
    }
}

fn serve(name: &str) -> (ControlServer, Receiver<Told>) {
    let (told, hears) = channel();
    (ControlServer::start(name, Fake { told, snapshots: 0 }).unwrap(), hears)
}

/// Returns a name that is not in use.
fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("farcast/test/{}/{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A client that knows lines and JSON.
struct Raw {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Raw {
    fn connect(name: &str) -> Self {
        let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        Self { stream, lines }
    }

    fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).unwrap();
    }

    /// The next line; nothing at the end.
    fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        // A server that closes before it has read everything resets the connection behind its last line.
        let end = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
        match self.lines.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(line.strip_suffix('\n').unwrap()).unwrap()),
            Err(error) if end(&error) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn ask(&mut self, line: &str) -> Value {
        self.send(format!("{line}\n"));
        self.hear().unwrap()
    }

    fn refused(&mut self, line: &str) -> String {
        self.ask(line)["error"].as_str().unwrap().to_owned()
    }
}

/// Waits until the server has the expected counts.
fn wait_for(server: &ControlServer, reached: impl Fn(&ControlCounters) -> bool) {
    let start = Instant::now();
    while !reached(&server.counters()) {
        assert!(start.elapsed() < PATIENCE, "{:?}", server.counters());
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_request_is_done_and_answered_in_order() {
    let name = fresh_name();
    let (server, hears) = serve(&name);
    let mut client = Raw::connect(&name);
    client.send(
        "{\"set\":{\"way\":\"forward\",\"rate\":\"2 Mbit/s\"}}\n\n \r\n{\"describe\":{}}\n{\"stop\":{}}\n",
    );
    assert_eq!(client.hear().unwrap(), json!({"ok": {}}));
    let description = json!({"ok": {"description": {
        "version": "0.1.0",
        "pid": 7,
        "link": "geo",
        "seed": u64::MAX,
        "stages": [{"name": "pipe", "kind": "pipe", "way": "return", "settings": {"delay": "260 ms"}}],
        "changes": [{"delay": "80000000 ns"}],
        "hosts": [{"name": "hub", "address": "10.0.0.1", "terminal": null}],
    }}});
    assert_eq!(client.hear().unwrap(), description);
    assert_eq!(client.hear().unwrap(), json!({"ok": {}}));
    let rate = BitRate::from_bps(2_000_000);
    let change = Change { way: Some(LinkDirection::Forward), rate, ..Change::default() };
    assert_eq!(hears.recv().unwrap(), Told::Set(change));
    assert_eq!(hears.recv().unwrap(), Told::Stop);
    assert_eq!(
        client.ask(r#"{"set":{"stage":"nowhere","per":0}}"#),
        json!({"error": "there is no stage \"nowhere\""})
    );
    let unknown = client.refused(r#"{"set":{"speed":0}}"#);
    assert!(unknown.contains("`speed`") && unknown.contains("`rate`"), "{unknown}");
    drop(client);
    let counters = server.counters();
    assert_eq!((counters.accepted, counters.requests, counters.malformed), (1, 4, 1));
}

#[test]
fn a_snapshot_says_all_that_the_protocol_names() {
    let name = fresh_name();
    let (_server, _hears) = serve(&name);
    let mut client = Raw::connect(&name);
    let nothing = json!({"packets": 0, "octets": 0});
    let way = |entered: u64, entered_bps: f64, delivered: u64, delivered_bps: f64, delay: Value| {
        json!({
            "entered": {"packets": entered, "octets": 1000 * entered},
            "delivered": {"packets": 0, "octets": delivered},
            "lost": nothing, "given_up": nothing, "dropped": nothing, "inside": nothing,
            "queue_octets": null, "entered_bps": entered_bps, "delivered_bps": delivered_bps,
            "rate_bps": null, "delay_s": delay, "queue_limit_octets": null, "per": null, "outage_s": null,
        })
    };
    let first = json!({
        "time_s": 1.0,
        "interval_s": 1.0,
        "forward": way(1, 8000.0, 125, 1000.0, json!(0.25)),
        "return": way(0, 0.0, 0, 0.0, Value::Null),
        "terminals": [
            {"terminal": 0, "delivered": {"packets": 1, "octets": 2}, "lost": {"packets": 3, "octets": 4}},
        ],
        "lateness": {
            "packets": 0, "p50_s": 0.0, "p99_s": 0.0, "p999_s": 0.0, "max_s": 0.0, "valid": true,
            "limit_s": null, "bins": [{"below_s": null, "packets": 7}],
        },
        "programs": [{"name": "curl", "host": "near", "phase": "ended", "exit_code": 0, "signal": null}],
    });
    assert_eq!(client.ask(r#"{"snapshot":{}}"#), json!({"ok": {"snapshot": first}}));
    // Each client's rates are over its own time: another one asks meanwhile, and the first one's interval is 2 s.
    let mut other = Raw::connect(&name);
    let others = other.ask(r#"{"snapshot":{}}"#);
    assert_eq!(others["ok"]["snapshot"]["forward"]["entered_bps"], json!(2000.0 * 8.0 / 2.0));
    let second = &client.ask(r#"{"snapshot":{}}"#)["ok"]["snapshot"];
    assert_eq!(second["interval_s"], json!(2.0));
    assert_eq!(second["forward"], way(3, 8000.0, 125, 0.0, json!(0.25)));
}

#[test]
fn a_watch_goes_on_at_its_pace_beside_requests() {
    let name = fresh_name();
    let (server, _hears) = serve(&name);
    let mut client = Raw::connect(&name);
    let start = Instant::now();
    assert_eq!(client.ask(r#"{"watch":{"every":"100 ms"}}"#), json!({"ok": {}}));
    for number in 1..=4 {
        assert_eq!(client.hear().unwrap()["snapshot"]["time_s"], json!(f64::from(number)));
    }
    // The first comes at once, the fourth three tenths of a second later: never earlier.
    assert!(start.elapsed() >= Duration::from_millis(300));
    // Requests are answered between, and a new watch takes the old one's place.
    client.send("{\"watch\":{\"every\":\"1 h\"}}\n");
    while client.hear().unwrap() != json!({"ok": {}}) {}
    assert!(client.hear().unwrap()["snapshot"].is_object());
    client.stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut octet = [0];
    assert!(client.stream.read(&mut octet).is_err(), "no snapshot is due for an hour");
    // The end of the emulation is the end of the connection.
    client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    drop(server);
    assert_eq!(client.hear(), None);
}

#[test]
fn a_client_may_close_its_way_and_is_answered_all_the_same() {
    let name = fresh_name();
    let (server, hears) = serve(&name);
    // The last line needs no end.
    let mut client = Raw::connect(&name);
    client.send(r#"{"describe":{}}"#);
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.hear().unwrap()["ok"]["description"]["link"], "geo");
    assert_eq!(client.hear(), None);
    // Who watches goes on listening.
    let mut client = Raw::connect(&name);
    client.send(r#"{"watch":{"every":"100 ms"}}"#);
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.hear().unwrap(), json!({"ok": {}}));
    for _ in 0..3 {
        assert!(client.hear().unwrap()["snapshot"].is_object());
    }
    drop(client);
    // Who has gone is obeyed yet, to the last line.
    let mut client = Raw::connect(&name);
    client.send("{\"describe\":{}}\n{\"set\":{\"outage\":\"1 s\"}}\n{\"stop\":{}}\n");
    drop(client);
    let outage = Change { outage: Some(Span::from_secs(1)), ..Change::default() };
    assert_eq!(hears.recv_timeout(PATIENCE).unwrap(), Told::Set(outage));
    assert_eq!(hears.recv_timeout(PATIENCE).unwrap(), Told::Stop);
    // All three have left: there is room for as many as ever.
    let clients: Vec<Raw> = (0..MOST_CONNECTIONS).map(|_| Raw::connect(&name)).collect();
    wait_for(&server, |counters| counters.accepted == 3 + MOST_CONNECTIONS as u64);
    assert_eq!(server.counters().too_many, 0);
    drop(clients);
}

#[test]
fn no_more_than_sixteen_at_once() {
    let name = fresh_name();
    let (server, _hears) = serve(&name);
    let mut clients: Vec<Raw> = (0..MOST_CONNECTIONS).map(|_| Raw::connect(&name)).collect();
    for client in &mut clients {
        assert!(client.ask(r#"{"describe":{}}"#)["ok"].is_object());
    }
    let mut late = Raw::connect(&name);
    let sentence = "16 clients are connected already: close one of them";
    assert_eq!(late.hear().unwrap(), json!({"error": sentence}));
    assert_eq!(late.hear(), None);
    assert_eq!((server.counters().accepted, server.counters().too_many), (16, 1));
    assert!(clients[15].ask(r#"{"describe":{}}"#)["ok"].is_object());
    // A client leaves, and there is room again.
    clients.pop();
    let start = Instant::now();
    while Raw::connect(&name).ask(r#"{"describe":{}}"#)["ok"].is_null() {
        assert!(start.elapsed() < PATIENCE);
    }
}

#[test]
fn a_line_has_four_thousand_and_ninety_six_octets_at_most() {
    let name = fresh_name();
    let (server, _hears) = serve(&name);
    let padded = |len: usize| format!("{:<len$}", r#"{"describe":{}}"#);
    let mut client = Raw::connect(&name);
    assert!(client.ask(&padded(LONGEST_LINE))["ok"].is_object());
    assert!(client.refused(&padded(LONGEST_LINE + 1)).starts_with("a line of more than 4096 octets"));
    assert_eq!(client.hear(), None);
    // A line without an end does not grow memory: the connection ends while the client is still sending.
    let mut endless = Raw::connect(&name);
    let zeros = vec![0; 1 << 20];
    let error = (0..1024).find_map(|_| endless.stream.write_all(&zeros).err());
    assert_eq!(error.unwrap().kind(), std::io::ErrorKind::BrokenPipe);
    wait_for(&server, |counters| counters.long_line == 2);
}

#[test]
fn lines_may_come_in_pieces() {
    let name = fresh_name();
    let (_server, _hears) = serve(&name);
    let mut client = Raw::connect(&name);
    for octet in b"{\"describe\":{}}\n{\"desc" {
        client.send([*octet]);
    }
    assert!(client.hear().unwrap()["ok"].is_object());
    client.send("ribe\":{}}\n");
    assert!(client.hear().unwrap()["ok"].is_object());
}

#[test]
fn a_name_that_is_taken_or_too_long_is_refused() {
    let name = fresh_name();
    let (server, hears) = serve(&name);
    let start = |name: &str| {
        let (told, _hears) = channel();
        ControlServer::start(name, Fake { told, snapshots: 0 }).map(|_| ()).unwrap_err().to_string()
    };
    let taken = start(&name);
    assert!(taken.starts_with(&format!("cannot listen at the control socket {name}: ")), "{taken}");
    assert!(start(&"x".repeat(108)).starts_with("cannot listen at the control socket xxx"));
    // It is free again with the server's end.
    drop((server, hears));
    let (_server, _hears) = serve(&name);
}

/// Does `work` as the user nobody, on a thread of its own: on Linux a thread has its own credentials (credentials(7)).
fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test needs root to become somebody else; run `sudo -E cargo test`"
    );
    let nobody = Uid::from_raw(65_534);
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn another_user_is_refused_and_root_is_not() {
    let name = fresh_name();
    let (server, hears) = serve(&name);
    let said = as_nobody(|| {
        let mut client = Raw::connect(&name);
        // The server may close before this can be sent.
        let _ = client.stream.write_all(b"{\"stop\":{}}\n");
        (client.hear(), client.hear())
    });
    assert_eq!(said, (Some(json!({"error": "this emulation belongs to another user"})), None));
    assert_eq!((server.counters().other_user, server.counters().accepted), (1, 0));
    drop(server);
    assert!(hears.recv().is_err(), "nothing was done");
    // The server belongs to the user nobody; nobody and root are served.
    let (_theirs, answer) = as_nobody(|| {
        // The server's thread starts with its parent's user: nobody.
        let server = serve(&name);
        (server, Raw::connect(&name).ask(r#"{"describe":{}}"#))
    });
    assert!(answer["ok"].is_object());
    assert!(Raw::connect(&name).ask(r#"{"describe":{}}"#)["ok"].is_object());
}

/// Does `work` in a network namespace of its own, without other sockets.
fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    Namespace::create().unwrap().run(work).unwrap()
}

#[test]
fn a_client_finds_the_only_emulation_and_lists_several() {
    alone(|| {
        assert!(running().is_empty());
        let none = Control::connect(None).unwrap_err();
        assert_eq!(
            none.to_string(),
            "no emulation of yours is running here: start one with `farcast emulate`"
        );
        assert_eq!(
            Control::connect(Some(5)).unwrap_err().to_string(),
            "process 5 runs no emulation here, and no other does"
        );
        let first = serve(&socket_name(4711));
        assert_eq!(Control::connect(None).unwrap().pid(), 4711);
        let second = serve(&socket_name(12));
        assert_eq!(running(), [12, 4711]);
        assert_eq!(
            Control::connect(None).unwrap_err().to_string(),
            "several emulations are running: give the process id of one of 12, 4711"
        );
        assert_eq!(
            Control::connect(Some(5)).unwrap_err().to_string(),
            "process 5 runs no emulation here; there are 12, 4711"
        );
        assert_eq!(Control::connect(Some(12)).unwrap().pid(), 12);
        // Another user's is not there for them, and they are told why.
        as_nobody(|| {
            assert!(matches!(Control::connect(None), Err(ControlError::NoneRunning)));
            assert!(matches!(Control::connect(Some(12)), Err(ControlError::OtherUser { pid: 12 })));
        });
        drop((first, second));
        assert!(running().is_empty());
    });
}

#[test]
fn the_client_asks_and_watches() {
    alone(|| {
        let (server, hears) = serve(&socket_name(1));
        let mut control = Control::connect(None).unwrap();
        assert_eq!(control.request(&Request::Stop).unwrap(), Answer::Done);
        assert_eq!(hears.recv().unwrap(), Told::Stop);
        let Answer::Description(description) = control.request(&Request::Describe).unwrap() else { panic!() };
        assert_eq!((description.seed, description.stages[0].way), (u64::MAX, Some(LinkDirection::Return)));
        let nowhere = Change { stage: Some("nowhere".into()), outage: Some(Span::ZERO), ..Change::default() };
        let refused = control.request(&Request::Set(nowhere)).unwrap_err();
        assert_eq!(refused.to_string(), "there is no stage \"nowhere\"");
        // Lines before the awaited answer are not lost.
        let (every, patience) = (Span::from_secs(3600), Span::from_secs(60));
        control.send(&Request::Watch { every }).unwrap();
        control.send(&Request::Describe).unwrap();
        let Answer::Snapshot(asked) = control.request(&Request::Snapshot).unwrap() else { panic!() };
        assert_eq!(control.next(patience).unwrap(), Some(AnswerLine::Ok(Answer::Done)));
        // The first snapshot of a watch comes at its own time, before or after the answers to later requests.
        let two = [(); 2].map(|()| control.next(patience).unwrap().unwrap());
        assert!(two.contains(&AnswerLine::Ok(Answer::Description(description))), "{two:?}");
        let ([AnswerLine::Snapshot(watched), _] | [_, AnswerLine::Snapshot(watched)]) = two else {
            panic!("{two:?}")
        };
        assert!((watched.time_s - asked.time_s).abs() > 0.5, "it is another: {watched:?}");
        assert_eq!(control.next(Span::ZERO).unwrap(), None);
        let mut watch = control.watch(Span::from_millis(100)).unwrap();
        let (one, two) = (watch.next().unwrap().unwrap(), watch.next().unwrap().unwrap());
        assert!((two.time_s - one.time_s - 1.0).abs() < 1e-9);
        drop(server);
        for snapshot in watch.by_ref() {
            assert!(snapshot.unwrap().time_s > two.time_s);
        }
        assert!(watch.next().is_none());
    });
}

/// A server of the test, which sends `answer` to every client and reads one line.
fn impostor(answer: &'static [u8]) -> thread::JoinHandle<()> {
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(socket_name(1)).unwrap()).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        stream.write_all(answer).unwrap();
    })
}

#[test]
fn the_client_survives_what_a_server_says() {
    let asked = |answer: &'static [u8]| {
        alone(|| {
            let server = impostor(answer);
            let asked = Control::connect(Some(1)).unwrap().request(&Request::Describe);
            server.join().unwrap();
            asked
        })
    };
    assert!(matches!(asked(b""), Err(ControlError::Ended)));
    assert!(matches!(asked(b"{\"ok\":{}"), Err(ControlError::Ended)));
    for answer in [b"\n".as_slice(), b"\xff\n", b"{}\n", b"{\"ok\":[[[[\n", b"{\"ok\":{\"snapshot\":{}}}\n"] {
        assert!(matches!(asked(answer), Err(ControlError::Malformed(_))));
    }
    // A newer server may say more.
    assert!(matches!(asked(b"{\"ok\":{\"news\":1}}\n"), Ok(Answer::Done)));
    assert!(matches!(asked(b"{\"error\":\"no\"}\n"), Err(ControlError::Refused(no)) if no == "no"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any octets of one client, the server answers others, and every line that it sends is JSON.
    #[test]
    fn no_octets_harm_the_server(octets in proptest::collection::vec(any::<u8>(), 0..6000)) {
        let name = fresh_name();
        let (server, _hears) = serve(&name);
        let mut hostile = Raw::connect(&name);
        // Behind a line beyond the limit the server reads nothing more.
        let _ = hostile.stream.write_all(&octets);
        let _ = hostile.stream.shutdown(Shutdown::Write);
        while let Some(line) = hostile.hear() {
            prop_assert!(line["error"].is_string(), "{}", line);
        }
        let answer = Raw::connect(&name).ask(r#"{"describe":{}}"#);
        prop_assert!(answer["ok"].is_object());
        prop_assert_eq!(server.counters().requests, 1);
    }
}
