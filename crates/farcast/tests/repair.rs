//! What stands on the way, for real: a source behind a link of a quarter of a second, an island of receivers that lose
//! packets, and between them a router that repairs, or only passes on what it is asked.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, open its own files, and wait"
)]

#[path = "repair/double.rs"]
mod double;
#[path = "repair/rig.rs"]
mod rig;

use std::convert::Infallible;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use farcast_core::engine::Arrival;
use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_delivery::{Channel, FeedbackCounts, Outcome, Protocol, TimedFeedback};
use farcast_files::{Options, Outgoing};
use farcast_net::{ElementNotice, ElementOptions, ReceiveNotice, ReceiveOptions, SendOptions, SocketOptions};
use farcast_pgm::{
    Codec, Gsi, Message, NodeId, Object, Receiver, ReceiverConfig, Sender, SenderConfig, SenderEvent,
    SenderOutcome, Sending, Tsi,
};

use double::Double;
use rig::{Process, Rig, host};

/// PGM, which nobody simulates here.
#[derive(Debug)]
enum Pgm {}

impl Protocol for Pgm {
    type Message = Message;
    type Sender = Sender;
    type Receiver = Receiver;
    type Population = Nobody;
    type Codec = Codec;
}

#[derive(Debug)]
enum Nobody {}

impl farcast_delivery::Population for Nobody {
    type Message = Message;
    type Merged = Infallible;

    fn handle(&mut self, _: Time, _: &Arrival, _: &Message, _: &mut Channel<'_>) -> u32 {
        match *self {}
    }

    fn handle_timeout(&mut self, _: Time) {
        match *self {}
    }

    fn poll_timeout(&self) -> Time {
        match *self {}
    }

    fn poll_feedback(&mut self) -> Option<TimedFeedback<Message, Infallible>> {
        match *self {}
    }

    fn completed(&self) -> &[Time] {
        match *self {}
    }

    fn counts(&self) -> &FeedbackCounts {
        match *self {}
    }
}

/// How the tests tell a process what it is to be, and where.
const ROLE: &str = "FARCAST_TEST_ROLE";
const RECEIVERS: usize = 4;
const GROUP: &str = "239.255.78.9:0";
const PATIENCE: Duration = Duration::from_secs(60);

fn socket(interface: &str) -> SocketOptions {
    SocketOptions { interface: Some(interface.into()), ttl: 8, ..SocketOptions::default() }
}

/// Receives one file into `into`, as number `node`.
fn receive(into: &Path, node: u32) {
    let options = ReceiveOptions {
        from: GROUP.parse().unwrap(),
        source: None,
        accept: Vec::new(),
        into: into.into(),
        files: Options::default(),
        plain: true,
        socket: socket("eth0"),
        once: true,
        discard: false,
        simulate_loss: Probability::new(0.0).unwrap(),
        seed: node.into(),
        wait_for_room: Span::ZERO,
    };
    let listening = into.join("listening");
    let mut observer = |_: Time, _: &Receiver, notice: &ReceiveNotice<'_, _>| match notice {
        ReceiveNotice::Listening { .. } => fs::write(&listening, "").unwrap(),
        ReceiveNotice::Ended(report) => assert!(matches!(report.outcome, Outcome::Complete(_))),
        _ => {}
    };
    let make = |_| {
        let mut config = ReceiverConfig::new(NodeId(node), options.from);
        config.seed = node.into();
        Receiver::new(config)
    };
    let codec = Codec { raw: true };
    farcast_net::receive::<Pgm, _>(&options, &codec, make, &AtomicBool::new(false), &mut observer).unwrap();
}

/// Sends `file` until all receivers have it.
fn send(file: &Path, megabits: u64) {
    let outgoing = Outgoing::plain(file, |_| {}).unwrap();
    let group: SocketAddr = GROUP.parse().unwrap();
    let size = fs::metadata(file).unwrap().len();
    let make = |own| {
        let tsi = Tsi { gsi: Gsi(*b"island"), port: 1 };
        let object = Object { size, name: b"file".to_vec(), vouched: None };
        let rate = BitRate::from_bps(megabits * 1_000_000).unwrap();
        let mut config = SenderConfig::new(tsi, Sending::Files(vec![object]), own, group, rate);
        config.router_alert = true;
        config.named = (1..=RECEIVERS as u32).map(NodeId).collect();
        // Longer than a round trip.
        config.holdoff = Span::from_millis(600);
        Sender::new(config)
    };
    let options = SendOptions { to: group, socket: socket("eth0"), burst: Span::from_millis(1) };
    let (start, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let codec = Codec { raw: true };
    let report = farcast_net::send::<Pgm, _>(
        vec![outgoing],
        &codec,
        &options,
        make,
        (&start, &stop),
        &mut |_, _, _| {},
    )
    .unwrap();
    assert!(report.error.is_none(), "{:?}", report.error);
    assert_eq!(report.end, SenderEvent::Ended(SenderOutcome::Acknowledged));
}

/// Stands on the way until it is killed.
fn stand(place: &Path, keeps: bool) {
    let options = ElementOptions {
        interfaces: vec!["up".into(), "down".into()],
        groups: Vec::new(),
        keep: 64 << 20,
        receive_buffer: 4 << 20,
        ttl: 8,
    };
    let make = |ports: &[farcast_net::Port]| {
        let ports = ports.iter().map(|port| IpAddr::V4(port.address)).collect();
        Ok::<_, Infallible>(Double::new(ports, keeps))
    };
    let mut observer = |_: Time, _: &Double, notice: ElementNotice<'_>| match notice {
        ElementNotice::Listening { .. } => fs::write(place.join("standing"), "").unwrap(),
        other => println!("{other:?}"),
    };
    let codec = Codec { raw: true };
    farcast_net::serve(&options, &codec, make, &AtomicBool::new(false), &mut observer).unwrap();
}

/// What a process that a test has started does; in the tests' own process nothing.
#[test]
fn a_process_of_another_test() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    match words[..] {
        ["receive", into, node] => receive(Path::new(into), node.parse().unwrap()),
        ["send", file, megabits] => send(Path::new(file), megabits.parse().unwrap()),
        ["stand", place, keeps] => stand(Path::new(place), keeps == "keeps"),
        _ => panic!("{role}"),
    }
}

/// Starts one of these at host `name`.
fn start(rig: &Rig, name: &str, role: &str) -> Process {
    let own = std::env::current_exe().unwrap();
    let mut command = rig.at(name, own.to_str().unwrap());
    command.args(["--exact", "a_process_of_another_test", "--nocapture"]).env(ROLE, role);
    Process(command.spawn().unwrap())
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// An island with its receivers, and what is sent to it.
struct Island {
    place: tempfile::TempDir,
    rig: Rig,
    content: Vec<u8>,
    receivers: Vec<Process>,
}

impl Island {
    fn new(len: usize) -> Self {
        let place = tempfile::tempdir().unwrap();
        let rig = Rig::new(RECEIVERS, 250, place.path());
        let mut random = RandomStream::derive(7, &[]);
        let content: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
        fs::write(place.path().join("file"), &content).unwrap();
        let mut receivers = Vec::new();
        for n in 1..=RECEIVERS {
            rig.lose(n, 5);
            let into = place.path().join(host(n));
            fs::create_dir(&into).unwrap();
            receivers.push(start(&rig, &host(n), &format!("receive {} {n}", into.display())));
        }
        for n in 1..=RECEIVERS {
            wait_for("a receiver", || place.path().join(host(n)).join("listening").exists());
        }
        Self { place, rig, content, receivers }
    }

    /// Starts what stands on the way.
    fn stand(&self, keeps: &str) -> Process {
        let _ = fs::remove_file(self.place.path().join("standing"));
        let process = start(&self.rig, "router", &format!("stand {} {keeps}", self.place.path().display()));
        wait_for("what stands on the way", || self.place.path().join("standing").exists());
        process
    }

    /// Starts the source.
    fn send(&self, megabits: u64) -> Process {
        let file = self.place.path().join("file");
        start(&self.rig, "source", &format!("send {} {megabits}", file.display()))
    }

    /// Waits until everybody, and the source, says that the file is there, and looks.
    fn assert_delivered(&mut self, mut source: Process) {
        for process in self.receivers.iter_mut().chain([&mut source]) {
            wait_for("the end of a process", || process.0.try_wait().unwrap().is_some());
            assert!(process.0.wait().unwrap().success());
        }
        for n in 1..=RECEIVERS {
            let got = fs::read(self.place.path().join(host(n)).join("file")).unwrap();
            assert!(got == self.content, "what receiver {n} has differs");
        }
    }
}

#[test]
fn what_is_lost_on_the_island_is_repaired_there() {
    let mut island = Island::new(1_000_000);
    let _repairer = island.stand("keeps");
    let source = island.send(8);
    island.assert_delivered(source);
    let carried = island.rig.carried();
    assert!(carried["down"]["odata"] >= 715, "{carried:?}");
    assert_eq!((carried["down"].get("rdata"), carried["up"].get("nak")), (None, None), "{carried:?}");
}

#[test]
fn without_a_store_the_source_repairs() {
    let mut island = Island::new(300_000);
    let _element = island.stand("passes");
    let source = island.send(8);
    island.assert_delivered(source);
    let carried = island.rig.carried();
    assert!(carried["down"]["rdata"] > 0 && carried["up"]["nak"] > 0, "{carried:?}");
}

#[test]
fn the_file_outlives_who_repairs_it() {
    let mut island = Island::new(1_000_000);
    let mut repairer = island.stand("keeps");
    let source = island.send(4);
    let have = |island: &Island| {
        let spool = island.place.path().join("r1/.farcast");
        fs::read_dir(spool).is_ok_and(|mut all| all.next().is_some())
    };
    wait_for("data on the island", || have(&island));
    std::thread::sleep(Duration::from_millis(700));
    repairer.0.kill().unwrap();
    repairer.0.wait().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let _next = island.stand("keeps");
    island.assert_delivered(source);
    assert!(island.rig.carried()["down"]["rdata"] > 0, "nobody else had what came meanwhile");
}
