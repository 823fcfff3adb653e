//! Network elements between live processes: a source behind a link of a quarter of a second, an island of receivers
//! that lose packets, and a router between them. The router repairs losses, or only passes requests on.

mod rig;

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use farcast_core::engine::Arrival;
use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_delivery::{Channel, FeedbackCounts, Outcome, Protocol, TimedFeedback};
use farcast_files::{Options, Outgoing};
use farcast_net::{
    Changing, ListenNotice, ListenOptions, ReceiveJob, ReceiveNotice, ReceiveOptions, SendJob, SendOptions,
    SocketOptions,
};
use farcast_pgm::{
    Codec, Gsi, Message, NodeId, Object, Receiver, ReceiverConfig, Sender, SenderConfig, SenderEvent,
    SenderOutcome, Sending, Tsi,
};

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

/// Environment variable that gives a test's process its role and place.
const ROLE: &str = "FARCAST_TEST_ROLE";
const RECEIVERS: usize = 4;
/// Groups over IP itself, and over UDP.
const GROUPS: [&str; 2] = ["239.255.78.9:0", "239.255.78.9:7500"];
const PATIENCE: Duration = Duration::from_mins(1);

fn socket(interface: &str) -> SocketOptions {
    SocketOptions { interface: Some(interface.into()), ttl: 8, ..SocketOptions::default() }
}

/// Receives into `into`, as node `node`, until it is killed.
fn receive(into: &Path, node: u32, raw: bool) {
    let options = ReceiveOptions {
        listen: ListenOptions {
            from: GROUPS[usize::from(!raw)].parse().unwrap(),
            source: None,
            accept: Vec::new(),
            socket: socket("eth0"),
            // Its source asks later whether it has everything.
            silent: false,
            simulate_loss: Probability::new(0.0).unwrap(),
            seed: node.into(),
        },
        into: into.into(),
        files: Options::default(),
        plain: true,
        once: false,
        discard: false,
        wait_for_room: Span::ZERO,
    };
    let listening = into.join("listening");
    let mut observer = |_: Time, _: &Receiver, notice: &ReceiveNotice<'_, _>| match notice {
        ReceiveNotice::Listen(ListenNotice::Listening { .. }) => fs::write(&listening, "").unwrap(),
        ReceiveNotice::Ended(report) => assert!(matches!(report.outcome, Outcome::Complete(_))),
        _ => {}
    };
    let make = |_| {
        let mut config = ReceiverConfig::new(NodeId(node), options.listen.from);
        config.seed = node.into();
        Receiver::new(config)
    };
    let codec = Codec { raw };
    let stop = AtomicBool::new(false);
    let job = ReceiveJob::<Pgm> { options: &options, codec: &codec, seal: None, stop: &stop };
    farcast_net::receive(job, make, &mut observer).unwrap();
}

/// Sends `file` until all receivers have it.
fn send(file: &Path, megabits: u64, raw: bool) {
    let outgoing = Outgoing::plain(file, |_| {}).unwrap();
    let group: SocketAddr = GROUPS[usize::from(!raw)].parse().unwrap();
    let size = fs::metadata(file).unwrap().len();
    let make = |own| {
        let tsi = Tsi { gsi: Gsi(*b"island"), port: 1 };
        let object = Object { size, name: b"file".to_vec(), vouched: None };
        let rate = BitRate::from_bps(megabits * 1_000_000).unwrap();
        let mut config = SenderConfig::new(tsi, Sending::Files(vec![object]), own, group, rate);
        config.router_alert = raw;
        config.named = (1..=RECEIVERS as u32).map(NodeId).collect();
        // Longer than a round trip.
        config.holdoff = Span::from_millis(600);
        Sender::new(config)
    };
    let options = SendOptions {
        to: group,
        socket: socket("eth0"),
        burst: Span::from_millis(1),
        changing: Changing::default(),
        look_again: false,
    };
    let (start, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let codec = Codec { raw };
    let job = SendJob::<Pgm> {
        objects: vec![outgoing],
        codec: &codec,
        seal: None,
        options: &options,
        start: &start,
        stop: &stop,
    };
    let report = farcast_net::send(job, make, &mut |_, _, _| {}).unwrap();
    assert!(report.error.is_none(), "{:?}", report.error);
    assert_eq!(report.end, SenderEvent::Ended(SenderOutcome::Acknowledged));
}

/// Runs in a process that a test has started. In the tests' own process it does nothing.
#[test]
fn a_process_of_another_test() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    match words[..] {
        ["receive", into, node, over] => receive(Path::new(into), node.parse().unwrap(), over == "ip"),
        ["send", file, megabits, over] => send(Path::new(file), megabits.parse().unwrap(), over == "ip"),
        _ => panic!("{role}"),
    }
}

/// Starts a process with a role at host `name`.
fn start(rig: &Rig, name: &str, role: &str) -> Process {
    let own = std::env::current_exe().unwrap();
    let mut command = rig.at(name, own.to_str().unwrap());
    command.args(["--exact", "repair::a_process_of_another_test", "--nocapture"]).env(ROLE, role);
    Process(command.spawn().unwrap())
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Island with its receivers, and the content that is sent to it.
struct Island {
    place: tempfile::TempDir,
    rig: Rig,
    content: Vec<u8>,
    receivers: Vec<Process>,
    /// Transport of PGM: "ip" or "udp".
    over: &'static str,
}

impl Island {
    fn new(len: usize, over: &'static str) -> Self {
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
            receivers.push(start(&rig, &host(n), &format!("receive {} {n} {over}", into.display())));
        }
        for n in 1..=RECEIVERS {
            wait_for("a receiver", || place.path().join(host(n)).join("listening").exists());
        }
        Self { place, rig, content, receivers, over }
    }

    /// Starts the element in between: `farcast` with these words.
    fn stand(&self, words: &[&str]) -> Process {
        let log = self.place.path().join("standing");
        let mut command = self.rig.at("router", env!("CARGO_BIN_EXE_farcast"));
        command.args(words).arg("--json").stdout(fs::File::create(&log).unwrap());
        let process = Process(command.spawn().unwrap());
        wait_for("what stands on the way", || fs::read_to_string(&log).unwrap().contains("\"listening\""));
        process
    }

    /// Ends the element, and returns its summary.
    fn ended(&self, mut process: Process) -> serde_json::Value {
        let pid = rustix::process::Pid::from_child(&process.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        wait_for("the end of what stands on the way", || process.0.try_wait().unwrap().is_some());
        assert!(process.0.wait().unwrap().success());
        let said = fs::read_to_string(self.place.path().join("standing")).unwrap();
        let last: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        assert_eq!(last["event"], "summary", "{said}");
        last
    }

    /// Returns the router's tables of nftables.
    fn tables(&self) -> String {
        let out = self.rig.at("router", "nft").args(["list", "tables"]).output().unwrap();
        assert!(out.status.success());
        String::from_utf8(out.stdout).unwrap()
    }

    /// Starts the source.
    fn send(&self, megabits: u64) -> Process {
        let file = self.place.path().join("file");
        start(&self.rig, "source", &format!("send {} {megabits} {}", file.display(), self.over))
    }

    /// Waits until the source reports that all receivers have the file, and compares their files.
    fn assert_delivered(&mut self, mut source: Process) {
        wait_for("the end of the source", || source.0.try_wait().unwrap().is_some());
        assert!(source.0.wait().unwrap().success());
        for n in 1..=RECEIVERS {
            let got = fs::read(self.place.path().join(host(n)).join("file")).unwrap();
            assert!(got == self.content, "what receiver {n} has differs");
        }
        self.receivers.clear();
    }
}

const REPAIR: [&str; 5] = ["repair", "--upstream", "sat0", "--downstream", "isle0"];

#[test]
fn what_is_lost_on_the_island_is_repaired_there() {
    let mut island = Island::new(1_000_000, "ip");
    let repairer = island.stand(&REPAIR);
    let source = island.send(8);
    island.assert_delivered(source);
    let (carried, said) = (island.rig.carried(), island.ended(repairer));
    assert!(carried["down"]["odata"] >= 715, "{carried:?}");
    // The satellite loses nothing, so nothing is asked for or repaired over it.
    assert_eq!((carried["down"].get("rdata"), carried["up"].get("nak")), (None, None), "{carried:?} {said}");
    // Each of four receivers loses 5 % of 716 packets, and of their repairs. Some repairs serve several receivers.
    let served = said["served"].as_u64().unwrap();
    assert!((80..400).contains(&served), "{said}");
    assert_eq!(
        (&said["unsent"], &said["not_kept"], &said["malformed"]),
        (&0.into(), &0.into(), &0.into()),
        "{said}"
    );
}

#[test]
fn over_udp_a_repairer_needs_no_rights() {
    let mut island = Island::new(500_000, "udp");
    let repairer = island.stand(&[&REPAIR[..], &["--udp", "--group", "239.255.78.9"]].concat());
    let source = island.send(8);
    island.assert_delivered(source);
    let (carried, said) = (island.rig.carried(), island.ended(repairer));
    assert_eq!((carried["down"].get("rdata"), carried["up"].get("nak")), (None, None), "{carried:?} {said}");
    assert!(said["served"].as_u64().unwrap() > 20, "{said}");
}

#[test]
fn an_element_repairs_nothing_and_asks_the_source_once() {
    let mut island = Island::new(300_000, "ip");
    let element = island.stand(&["element", "--interfaces", "sat0,isle0"]);
    let source = island.send(8);
    island.assert_delivered(source);
    let (carried, said) = (island.rig.carried(), island.ended(element));
    let (repaired, asked) = (carried["down"]["rdata"], carried["up"]["nak"]);
    assert!(repaired > 0 && asked > 0, "{carried:?}");
    assert_eq!(said["forwarded"], asked, "{said} {carried:?}");
    // Most repairs reach a receiver that asked for them.
    assert!(said["repairs"].as_u64().unwrap() > repaired / 2, "{said} {carried:?}");
}

/// Kills the repairer with signal 9 when a good part of the file has passed. Until then, no repair may have crossed the
/// satellite.
fn kill_in_the_middle(island: &Island, mut repairer: Process) {
    let passed = |kind: &str| {
        island.rig.carried().get("down").and_then(|down| down.get(kind).copied()).unwrap_or_default()
    };
    wait_for("data over the satellite", || passed("odata") > 300);
    assert_eq!(passed("rdata"), 0, "a repair crossed the satellite while there was a repairer");
    repairer.0.kill().unwrap();
    repairer.0.wait().unwrap();
}

#[test]
fn the_file_outlives_who_repairs_it() {
    let mut island = Island::new(1_000_000, "ip");
    let repairer = island.stand(&REPAIR);
    let source = island.send(4);
    kill_in_the_middle(&island, repairer);
    island.assert_delivered(source);
    // No host on the island repairs the island's losses, so repairs cross the satellite.
    let carried = island.rig.carried();
    assert!(carried["down"]["rdata"] > 0 && carried["up"]["nak"] > 0, "{carried:?}");
    assert!(island.tables().contains("farcast/sat0/isle0"), "who forwards, then?");
}

#[test]
fn who_comes_after_one_that_was_killed_takes_over_and_tidies_up() {
    let mut island = Island::new(1_000_000, "ip");
    let repairer = island.stand(&REPAIR);
    let source = island.send(4);
    kill_in_the_middle(&island, repairer);
    let next = island.stand(&REPAIR);
    assert!(island.tables().contains("farcast/sat0/isle0/alive"), "the kernel would forward beside it");
    island.assert_delivered(source);
    let said = island.ended(next);
    assert!(said["served"].as_u64().unwrap() > 0, "{said}");
    assert!(!island.tables().contains("farcast"), "{}", island.tables());
}

/// Returns the exit code and standard error of `farcast` with these words.
fn refused(words: &[&str]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_farcast"));
    let out = command.args(words).output().unwrap();
    (out.status.code(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn what_cannot_be_is_said_in_one_sentence() {
    for (words, code, part) in [
        (&["element", "--interfaces", "lo"][..], 2, "two at least"),
        (&["element", "--interfaces", "lo,lo"], 2, "named twice"),
        (&["element", "--interfaces", "lo,nosuch0"], 1, "there is no interface nosuch0"),
        (&["element", "--interfaces", "a,b", "--group", "10.1.1.1"], 2, "no IPv4 multicast group"),
        (&["repair", "--upstream", "lo", "--downstream", "lo"], 2, "the same interface"),
        (&["repair", "--upstream", "lo", "--downstream", "b", "--cache", "0 B"], 2, "--cache is 0"),
    ] {
        let (got, said) = refused(words);
        assert_eq!(got, Some(code), "{words:?}: {said}");
        assert!(said.starts_with("farcast: ") && said.lines().count() == 1 && said.contains(part), "{said}");
    }
}

#[test]
fn without_rights_it_says_which_are_missing() {
    let place = tempfile::tempdir().unwrap();
    let rig = Rig::new(1, 0, place.path());
    let mut command = rig.at("router", "setpriv");
    command.args(["--bounding-set=-net_raw", "--inh-caps=-net_raw", env!("CARGO_BIN_EXE_farcast")]);
    let out = command.args(REPAIR).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!((out.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.starts_with("farcast: ") && said.contains("CAP_NET_RAW"), "{said}");
}
