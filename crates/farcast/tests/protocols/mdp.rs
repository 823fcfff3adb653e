//! Transfers by MDP: on the loopback interface, between hosts with losses both ways, after a kill, and as simulated.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use farcast_core::Run;
use farcast_delivery::Vouched;
use farcast_delivery::nack::quantise::Rtt;
use farcast_mdp::message::{About, Answer, Body, Data, Flags, FromSender, Head, Info, Message};
use farcast_mdp::{NodeId, wire};

use crate::common::{
    Hosts, Place, Running, kill_midway, member, noise, rounds_sent, wait_for_journal, wait_until,
};

const MDP: [&str; 2] = ["--protocol", "mdp"];
/// Round trip of this machine. Without the option the protocol assumes half a second.
const RTT: [&str; 2] = ["--rtt", "20 ms"];
const QUICK: [&str; 4] = ["--rtt", "20 ms", "--rate", "20 Mbit/s"];

fn receive(place: &Place, name: &str, args: &[&str]) -> Running {
    place.receive(name, &[&MDP[..], args].concat())
}

fn send(place: &Place, files: &[&Path], args: &[&str]) -> Running {
    place.send(files, &[&MDP[..], &QUICK[..], args].concat())
}

/// Sends at a rate that leaves time for a kill.
fn send_slowly(place: &Place, file: &Path, args: &[&str]) -> Running {
    place.send(&[file], &[&MDP[..], &RTT, &["--rate", "8 Mbit/s"], args].concat())
}

#[test]
fn files_arrive_repaired_by_parity() {
    let place = Place::new();
    let files = [("product.bin", 1_000_001)];
    let paths = files.map(|(name, size)| place.file(name, size));
    let receivers = ["ant", "bee"].map(|name| receive(&place, name, &["--simulate-loss", "10 %"]));
    let sent: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    let sent = send(&place, &sent, &["--receivers", "ant,bee"]).succeed().summary();
    assert_eq!((&sent["outcome"], &sent["exit_code"]), (&"acknowledged".into(), &0.into()), "{sent}");
    for receiver in receivers {
        let ended = receiver.succeed();
        let summaries = ended.all("summary");
        assert_eq!(summaries.len(), files.len(), "{}", ended.story());
        for got in summaries {
            assert_eq!((&got["vouched"], &got["complete"]), (&true.into(), &true.into()), "{got}");
            let digest = blake3::hash(&fs::read(&paths[0]).unwrap()).to_string();
            assert_eq!(got["digest"], digest.as_str(), "{got}");
        }
    }
    place.assert_received(&paths[0], &["ant", "bee"]);
}

#[test]
fn each_file_of_a_tree_is_an_object_and_may_be_empty() {
    let place = Place::new();
    place.file("tree/a.bin", 100_000);
    place.file("tree/b/c.bin", 1);
    place.file("tree/b/empty", 0);
    let receivers = ["ant", "bee"].map(|name| receive(&place, name, &["--simulate-loss", "10 %"]));
    send(&place, &[&place.path("tree")], &["--receivers", "ant,bee"]).succeed();
    for receiver in receivers {
        let ended = receiver.succeed();
        assert_eq!(ended.all("summary").len(), 3, "{}", ended.story());
    }
    place.assert_received(&place.path("tree"), &["ant", "bee"]);
}

#[test]
fn a_receiver_killed_midway_goes_on_with_what_it_has_kept() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    let killed = receive(&place, "ant", &[]);
    let other = receive(&place, "bee", &["--simulate-loss", "2 %"]);
    let sender = send_slowly(&place, &file, &["--receivers", "ant,bee"]);
    kill_midway(&place, killed);
    let got = receive(&place, "ant", &[]).succeed().summary();
    other.succeed();
    let sent = sender.succeed().summary();
    place.assert_received(&file, &["ant", "bee"]);
    let held = got["segments_held_before"].as_u64().unwrap();
    assert!(held > 0 && got["vouched"] == true, "nothing was kept: {got}");
    // 2,930 segments; what was kept is not asked for again, and what lacks at most twice over.
    let again = rounds_sent(&sent) - 2_930;
    assert!(again <= 2 * (2_930 - held) && again < 2_930 / 2, "{held} kept: {sent}");
}

#[test]
fn a_receiver_that_comes_when_everything_was_sent_goes_on_too() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    let killed = receive(&place, "ant", &[]);
    let sender = send_slowly(&place, &file, &["--receivers", "ant", "--robust", "200"]);
    kill_midway(&place, killed);
    wait_until("everything sent", || sender.events().iter().any(|event| event["phase"] == "waiting"));
    let got = receive(&place, "ant", &[]).succeed().summary();
    let sent = sender.succeed().summary();
    place.assert_received(&file, &["ant"]);
    let held = got["segments_held_before"].as_u64().unwrap();
    assert!(held > 0, "nothing was kept: {got}");
    assert!(rounds_sent(&sent) <= 2_930 + (2_930 - held) + 40, "{held} kept: {sent}");
}

#[test]
fn a_killed_sender_goes_on_with_receivers_that_have_waited() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    let receiver = receive(&place, "ant", &[]);
    let sender = send_slowly(&place, &file, &["--receivers", "ant"]);
    wait_for_journal(&place.path("ant"));
    sender.kill9();
    let sent = send_slowly(&place, &file, &["--receivers", "ant"]).succeed().summary();
    assert_eq!(member(&sent, "ant")["complete"], true, "{sent}");
    let told = receiver.succeed().all("summary");
    assert!(told.last().unwrap()["segments_held_before"].as_u64().unwrap() > 0, "nothing was kept: {told:?}");
    place.assert_received(&file, &["ant"]);
}

/// Sender that the test drives by hand, to one receiver by unicast.
struct Hand {
    socket: UdpSocket,
    to: String,
    sequence: u16,
}

impl Hand {
    const NODE: NodeId = NodeId(7);

    fn says(&mut self, said: FromSender, payload: &[u8]) {
        let head = Head { sequence: self.sequence, grtt: Rtt::of(farcast_core::Span::from_millis(20)) };
        self.sequence += 1;
        let message = Message { source: Self::NODE, body: Body::Sender(head, said) };
        let mut datagram = Vec::new();
        wire::encode(&message, 0, &mut datagram);
        datagram.extend_from_slice(payload);
        self.socket.send_to(&datagram, &self.to).unwrap();
    }

    /// Asks the receiver whether it has everything, until an answer for which `is` returns `true`. Returns all answers.
    fn until(&mut self, is: impl Fn(&Answer) -> bool) -> Vec<Answer> {
        let (begun, mut answers) = (Instant::now(), Vec::new());
        while begun.elapsed() < Duration::from_secs(20) {
            self.says(FromSender::AckReq { object: 0, nodes: vec![NodeId(9)] }, &[]);
            let mut datagram = [0; 2000];
            let Ok(len) = self.socket.recv(&mut datagram) else { continue };
            let Body::Receiver(said) = wire::decode(&datagram[..len]).unwrap().message.body else { continue };
            answers.push(said.answer);
            if answers.last().is_some_and(&is) {
                return answers;
            }
        }
        panic!("{answers:?}");
    }
}

#[test]
fn what_is_not_what_was_vouched_for_gets_no_name_and_no_acknowledgement() {
    let place = Place::with_group(|port| format!("127.0.0.1:{port}"));
    let receiver = receive(&place, "9", &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut hand = Hand { socket, to: place.group.clone(), sequence: 0 };
    let (right, wrong) = (noise(1, 700), noise(2, 700));
    let flags = Flags::FILE.with(Flags::INFO);
    let about = About { object: 0, size: 700, ndata: 20, nparity: 0, flags };
    let vouched = Some(Vouched { digest: *blake3::hash(&right).as_bytes(), mode: 0o644, mtime_ns: 0 });
    hand.says(
        FromSender::Info(Info { about, segment_size: 700, content: b"product.bin".to_vec(), vouched }),
        &[],
    );
    let data = || {
        FromSender::Data(Data {
            about,
            block: 0,
            symbols: Run::one(0),
            parity: false,
            segment_size: 700,
            len: 700,
            ends_block: true,
        })
    };
    hand.says(data(), &wrong);
    // The receiver requests all of the data again, and acknowledges nothing until then.
    let answers = hand.until(|answer| matches!(answer, Answer::Nack(_)));
    assert!(!answers.iter().any(|answer| matches!(answer, Answer::Object(_))), "{answers:?}");
    assert!(!place.path("9").join("product.bin").exists());
    hand.says(data(), &right);
    hand.until(|answer| matches!(answer, Answer::Object(0)));
    hand.says(FromSender::Flush { eot: true, object: 0 }, &[]);
    let got = receiver.succeed().summary();
    assert_eq!((&got["vouched"], &got["complete"]), (&true.into(), &true.into()), "{got}");
    assert!(fs::read(place.path("9").join("product.bin")).unwrap() == right);
}

#[test]
fn a_name_alone_is_received_and_nothing_vouches_for_it() {
    let place = Place::new();
    let file = place.file("product.bin", 10_000);
    let receiver = receive(&place, "ant", &[]);
    send(&place, &[&file], &["--receivers", "ant", "--names-alone"]).succeed();
    let got = receiver.succeed().summary();
    assert_eq!((&got["vouched"], &got["complete"]), (&false.into(), &true.into()), "{got}");
    assert!(fs::read(place.path("ant").join("product.bin")).unwrap() == fs::read(&file).unwrap());
}

#[test]
fn a_plan_is_followed_and_what_it_takes_predicted() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let plan = place.path("plan.toml");
    fs::write(&plan, "[protocol]\nname = \"mdp\"\nrate = \"1 Mbit/s\"\nround_trip = \"600 ms\"\n").unwrap();
    let mut command = place.send_command(&[&file], &MDP);
    command.arg("--plan").arg(&plan).args(["--receivers", "ant,bee", "--predict", "geo", "--json"]);
    let ended = place.start("sender", command).succeed();
    let predicted = ended.all("prediction").remove(0);
    assert_eq!((&predicted["receivers"], &predicted["unfinished"]), (&2.into(), &0.into()), "{predicted}");
    // 98 segments of at most 1,076 octets, and half of 500 ms.
    let took = predicted["completion_time_s"]["mean"].as_f64().unwrap();
    assert!(took > 0.8 && took < 3.0, "{predicted}");
    assert!(!place.path("ant").exists(), "nothing was sent");
    let mut command = place.send_command(&[&file], &["--protocol", "norm"]);
    command.arg("--plan").arg(&plan);
    place.run("sender", command).assert_failed(2, &["plans a transfer by mdp", "--protocol says norm"]);
    let refused = |args: &[&str], parts: &[&str]| {
        let mut command = place.send_command(&[&file], &MDP);
        command.args(args);
        place.run("sender", command).assert_one_sentence(2, parts);
    };
    refused(&[], &["--rate is missing"]);
    refused(&["--rate", "max"], &["--rate max is MFTP's"]);
    refused(&["--rate", "1 Mbit/s", "--predict", "geo"], &["--predict has to know how many receive"]);
    refused(&["--rate", "1 Mbit/s", "--parity", "255"], &["--parity: 255 is out of range", "254"]);
}

#[test]
fn a_named_receiver_that_is_not_there_is_missed() {
    let place = Place::new();
    let file = place.file("product.bin", 10_000);
    let ant = receive(&place, "ant", &[]);
    let ended = send(&place, &[&file], &["--receivers", "ant,bee"]).wait();
    assert_eq!(ended.code, Some(3), "{}", ended.story());
    assert!(ended.stderr.contains("bee did not acknowledge"), "{}", ended.story());
    ant.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn one_host_by_unicast_that_loses_both_ways() {
    let hosts = Hosts::new(2);
    let place = Place::with_group(|port| format!("10.77.0.2:{port}"));
    let file = place.file("product.bin", 500_000);
    hosts.lose(1, 5);
    hosts.lose(2, 5);
    let mut command = place.farcast(["receive", "--from", &place.group, "--once", "--json"]);
    command.args(MDP).args(["--interface", "eth0", "--into"]).arg(place.path("host2"));
    let receiver = place.start("host2", hosts.at(2, &command));
    receiver.until("listening");
    let mut command = place.farcast(["send", "--to", &place.group, "--json", "--interface", "eth0"]);
    command.arg(&file).args(MDP).args(QUICK).args(["--receivers", "10.77.0.2"]);
    place.start("sender", hosts.at(1, &command)).succeed();
    receiver.succeed();
    place.assert_received(&file, &["host2"]);
}
