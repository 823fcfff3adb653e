//! Hearing of a receiver, whatever its disk and the user's command do, and senders that it does not hear.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use farcast_core::{Run, engine::Message as _};
use farcast_mftp::message::{
    Announce, AnnounceOptions, Completion, Echo, End, GroupModel, StatusRequest, StatusType,
};
use farcast_mftp::{Body, Message, wire};
use rustix::process::Signal;

use crate::common::{self, Place, forged, member, need_root, pause, wait_until};

/// File system that can be frozen. A process that writes there then waits, and cannot be killed.
struct Disk {
    at: PathBuf,
}

impl Disk {
    fn new(place: &Place, name: &str) -> Self {
        need_root("a loop device");
        let (image, at) = (place.path("disk.img"), place.path(name));
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        fs::create_dir(&at).unwrap();
        common::run(Command::new("mkfs.ext4").arg("-q").arg(&image));
        common::run(Command::new("mount").args(["-o", "loop"]).args([&image, &at]));
        Self { at }
    }

    fn freeze(&self) {
        common::run(Command::new("fsfreeze").arg("--freeze").arg(&self.at));
    }

    fn thaw(&self) {
        common::run(Command::new("fsfreeze").arg("--unfreeze").arg(&self.at));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A frozen one cannot be left, and a busy one goes when its last file is closed.
        let _ = Command::new("fsfreeze").arg("--unfreeze").arg(&self.at).output();
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).output();
    }
}

#[test]
fn a_frozen_disk_does_not_make_a_receiver_deaf() {
    let place = Place::new();
    let disk = Disk::new(&place, "ant");
    let file = place.file("product.bin", 4_000_000);
    let receiver = place.receive("ant", &[]);
    let args = ["--rate", "8 Mbit/s", "--receivers", "ant", "--silence", "2 s", "--status-retries", "2"];
    let sender = place.send(&[&file], &args);
    receiver.until("files");
    disk.freeze();
    pause(Duration::from_secs(8));
    assert!(!sender.has("lost"), "{}", sender.stdout());
    disk.thaw();
    let sent = sender.succeed().summary();
    let got = receiver.succeed().summary();
    assert_eq!(member(&sent, "ant")["complete"], true, "{sent}");
    assert!(got["dtus_dropped_unstored"].as_u64().unwrap() > 0, "{got}");
    assert!(common::digest(&file) == common::digest(&disk.at.join("product.bin")));
}

/// A receiver that was stopped reads the offer of a file and half a megabyte of it by its first system call.
#[test]
fn what_comes_together_with_its_offer_is_stored() {
    for protocol in ["norm", "mdp", "pgm"] {
        let place = Place::new();
        let file = place.file("product.bin", 6_000_000);
        let receiver = place.receive("ant", &["--protocol", protocol, "--simulate-loss", "2 %"]);
        receiver.until("listening");
        receiver.signal(Signal::STOP);
        let args = ["--protocol", protocol, "--rate", "500 Mbit/s", "--receivers", "ant"];
        let sender = place.send(&[&file], &args);
        pause(Duration::from_millis(400));
        receiver.signal(Signal::CONT);
        let sent = sender.succeed().summary();
        receiver.succeed();
        place.assert_received(&file, &["ant"]);
        assert!(sent["wire_bytes_over_size"].as_f64().unwrap() < 1.5, "{protocol}: {sent}");
    }
}

#[test]
fn where_acknowledgements_set_the_pace_a_frozen_disk_does_not_stop_the_others() {
    let place = Place::new();
    let disk = Disk::new(&place, "ant");
    // In pieces so small that it takes a while.
    let file = place.file("product.bin", 40_000_000);
    let [frozen, other] = [place.receive("ant", &[]), place.receive("bee", &[])];
    let args = ["--rate", "max", "--receivers", "ant,bee", "--dtu-size", "200 B"];
    let sender = place.send(&[&file], &args);
    frozen.until("files");
    disk.freeze();
    // The receiver gets all of the file, while the one beside it can store nothing.
    other.until("file");
    assert!(!frozen.has("file"), "{}", frozen.stdout());
    disk.thaw();
    sender.succeed();
    other.succeed();
    let got = frozen.succeed().summary();
    assert!(got["dtus_dropped_unstored"].as_u64().unwrap() > 0, "{got}");
    assert!(common::digest(&file) == common::digest(&disk.at.join("product.bin")));
}

#[test]
fn a_receiver_whose_disk_is_frozen_can_be_stopped() {
    let place = Place::new();
    let disk = Disk::new(&place, "ant");
    let file = place.file("product.bin", 4_000_000);
    let receiver = place.receive("ant", &[]);
    let sender = place.send(&[&file], &["--rate", "4 Mbit/s", "--receivers", "ant"]);
    receiver.until("files");
    disk.freeze();
    pause(Duration::from_millis(500));
    receiver.terminate();
    // The kernel keeps a process that writes there, so the receiver prints its message before that.
    wait_until("what is left", || receiver.stderr().contains("does not answer"));
    disk.thaw();
    receiver.wait().assert_one_sentence(1, &["the disk of", "ant", "does not answer", "asked for again"]);
    drop(sender);
}

#[test]
fn the_command_for_a_complete_product_keeps_nobody_waiting() {
    let place = Place::new();
    let go = place.path("go");
    let hook = format!("until [ -e '{}' ]; do sleep 0.05; done", go.display());
    let receiver = place.start("ant", place.receive_command("ant", &["--json", "--on-complete", &hook]));
    receiver.until("listening");
    for (n, name) in (1..).zip(["one.bin", "two.bin"]) {
        let file = place.file(name, 200_000);
        let args = ["--rate", "20 Mbit/s", "--receivers", "ant", "--announce-time", "20 s"];
        place.send(&[&file], &args).succeed();
        receiver.until_nth("file", n);
    }
    assert!(!receiver.has("on_complete"), "{}", receiver.stdout());
    fs::write(&go, "").unwrap();
    receiver.until_nth("on_complete", 2);
    receiver.terminate();
    receiver.succeed();
}

#[test]
fn with_once_the_end_comes_after_the_command() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let done = place.path("done");
    let hook = format!("sleep 1; touch '{}'", done.display());
    let receiver = place.receive("ant", &["--on-complete", &hook]);
    place.send(&[&file], &["--rate", "20 Mbit/s", "--receivers", "ant"]).succeed();
    let ended = receiver.succeed();
    assert!(done.exists() && ended.all("on_complete").len() == 1, "{}", ended.story());
}

#[test]
fn only_senders_that_are_accepted_are_heard() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let chosen = place.receive("ant", &["--accept", "10.9.9.9,127.0.0.0/8"]);
    let deaf = place.receive("bee", &["--accept", "10.9.9.9,192.0.2.0/24"]);
    place.send(&[&file], &["--rate", "20 Mbit/s", "--wait-for", "1"]).succeed();
    assert_eq!(chosen.succeed().summary()["datagrams_not_accepted"], 0);
    place.assert_received(&file, &["ant"]);
    assert_eq!(deaf.until("not_accepted")["source"], "127.0.0.1");
    assert!(!deaf.has("joined"), "{}", deaf.stdout());
}

/// Returns an announcement of an invented product, from `server`.
fn announcement(server: SocketAddr, group: IpAddr) -> Body {
    let base = forged::announcement(server, group);
    let options = AnnounceOptions { model: GroupModel::OpenLimited, stay_in_group: true, ..base.options };
    let announce = Announce { options, ..base };
    Body::Announce(announce.into())
}

/// Sends `body` to `to`, and waits until the receiver there has processed it: it answers an ECHO that follows.
fn say(socket: &UdpSocket, to: SocketAddr, body: Body) {
    let echo = Body::Echo(Echo { sequence: 5, data: None, hosts: None });
    for (transmission, body) in [(9, body), (0, echo)] {
        let mut datagram = Vec::new();
        wire::encode(&Message::new(transmission, body), 0, &mut datagram);
        socket.send_to(&datagram, to).unwrap();
    }
    let mut buffer = [0; 2000];
    loop {
        let len = socket.recv(&mut buffer).unwrap();
        let answer = wire::decode(&buffer[..len]).unwrap().message;
        if matches!(answer.body, Body::EchoResponse(_)) {
            return;
        }
    }
}

#[test]
fn what_is_for_the_group_is_not_taken_by_unicast() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let receiver = place.start("ant", place.receive_command("ant", &["--json"]));
    receiver.until("listening");
    let registered = |sender: common::Ended| sender.all("registered")[0]["address"].clone();
    let args = ["--rate", "20 Mbit/s", "--receivers", "ant"];
    let own: SocketAddr =
        registered(place.send(&[&file], &args).succeed()).as_str().unwrap().parse().unwrap();
    receiver.until("summary");

    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let server = socket.local_addr().unwrap();
    let group: SocketAddr = place.group.parse().unwrap();
    let run = Run::new(0, 1).unwrap();
    let request =
        StatusRequest { turn: None, pass: 1, blocks: run, dtus: run, status: StatusType::All, hosts: None };
    say(&socket, own, announcement(server, group.ip()));
    say(&socket, own, Body::StatusRequest(request));
    say(&socket, own, Body::Completion(Completion { turn: None, hosts: None }));
    say(&socket, own, Body::End(End { server, response: server }));
    // Nor does the group's port hear what is sent to the host.
    let mut datagram = Vec::new();
    let forged = Message::new(9, announcement(server, group.ip()));
    wire::encode(&forged, 0, &mut datagram);
    socket.send_to(&datagram, (own.ip(), place.port)).unwrap();
    assert!(forged.wire_len(0) == datagram.len());
    assert_eq!(receiver.events().iter().filter(|event| event["event"] == "joined").count(), 1);

    let other = place.file("other.bin", 100_000);
    place.send(&[&other], &args).succeed();
    let got = receiver.until_nth("summary", 2);
    assert_eq!(got["product"], "other.bin", "{got}");
    assert_eq!(got["datagrams_misdirected"], 4, "{got}");
}
