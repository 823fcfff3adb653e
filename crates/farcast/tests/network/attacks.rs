//! Attacks on live processes. The enemy hears multicast and may claim any address, but sees no unicast of others. Each
//! attack ended a transfer, faked a success or drew floods before there were proofs.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use farcast_core::{Bitmap, Run};
use farcast_mftp::message::{
    Abort, Announce, AnnounceOptions, Completion, Data, DataKind, DeclineReason, Done, End, GroupModel, Nak,
    Quit, Registration, StatusRequest, StatusType, cancel,
};
use farcast_mftp::{Body, ClientId, Message, Proof, wire};
use socket2::{Domain, Protocol, Socket, Type};

use crate::common::{self, Place, Running, forged, member, need_root, pause, wait_until};

/// 1.5 MB, which take six seconds at 2 Mbit/s: time in which an attack can happen.
const LEN: usize = 1_500_000;
const RATE: [&str; 4] = ["--rate", "2 Mbit/s", "--silence", "3 s"];

fn args<'a>(receivers: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&RATE[..], &["--receivers", receivers], more].concat()
}

/// Enemy on the network.
struct Enemy {
    socket: UdpSocket,
    group: SocketAddr,
}

/// Content of an overheard announcement.
struct Seen {
    transmission: u32,
    announce: Announce,
}

impl Enemy {
    fn new(place: &Place) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        Self { socket, group: place.group.parse().unwrap() }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// Waits for an announcement to the group, and returns it.
    fn overhear(&self) -> Seen {
        let SocketAddr::V4(group) = self.group else { unreachable!() };
        let ears = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        ears.set_reuse_address(true).unwrap();
        ears.bind(&self.group.into()).unwrap();
        ears.join_multicast_v4(group.ip(), &Ipv4Addr::LOCALHOST).unwrap();
        let ears = UdpSocket::from(ears);
        let mut buffer = vec![0; 65_536];
        loop {
            let len = ears.recv(&mut buffer).unwrap();
            let Ok(packet) = wire::decode(&buffer[..len]) else { continue };
            if let Body::Announce(announce) = packet.message.body {
                return Seen { transmission: packet.message.transmission, announce: *announce };
            }
        }
    }

    /// Sends `message` to `to` from the enemy's own address. Returns the octets.
    fn say(&self, message: &Message, to: SocketAddr) -> usize {
        let datagram = encode(message);
        self.socket.send_to(&datagram, to).unwrap()
    }

    /// Multicasts `message` to the group with the forged source address `source`.
    fn claim(&self, message: &Message, source: SocketAddr) {
        need_root("datagrams in another's name");
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (source, self.group) else { unreachable!() };
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).unwrap();
        raw.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        raw.send_to(&forged::packet(from, to, &encode(message)), &self.group.into()).unwrap();
    }

    /// Returns the octets that come back within `time`.
    fn comes_back(&self, time: Duration) -> usize {
        let (end, mut octets, mut buffer) = (Instant::now() + time, 0, vec![0; 65_536]);
        while Instant::now() < end {
            octets += self.socket.recv(&mut buffer).unwrap_or(0);
        }
        octets
    }
}

fn encode(message: &Message) -> Vec<u8> {
    let mut datagram = Vec::new();
    wire::encode(message, 0, &mut datagram);
    datagram.resize(wire::encoded_len(message, 0), 0);
    datagram
}

fn done(seen: &Seen, name: &str) -> Message {
    let client = ClientId::from_name(name);
    let done = Done { round: None, server: seen.announce.server, client, naked_dtus: 0, duration_s: 1 };
    Message::new(seen.transmission, Body::Done(done))
}

fn registration(
    seen: &Seen,
    name: &str,
    response: Result<(), DeclineReason>,
    nonce: Option<Proof>,
) -> Message {
    let plain = Registration::new(seen.announce.server, ClientId::from_name(name), response);
    let body = Registration { name: Some(name.into()), nonce, ..plain };
    Message::new(seen.transmission, Body::Registration(body))
}

/// Starts a sender of a file of `LEN` bytes. Overhears its announcement, and waits until its data flows.
fn start(place: &Place, enemy: &Enemy, more: &[&str]) -> (std::path::PathBuf, Running, Seen) {
    let file = place.file("product.bin", LEN);
    let mut sender = None;
    let seen = std::thread::scope(|scope| {
        let seen = scope.spawn(|| enemy.overhear());
        // It must listen before the first announcement leaves.
        pause(Duration::from_millis(300));
        sender = Some(place.send(&[&file], &args("ant", more)));
        seen.join().unwrap()
    });
    let sender = sender.unwrap();
    sender.until("started");
    (file, sender, seen)
}

fn has(place: &Place, file: &Path, name: &str) -> bool {
    let got = place.path(name).join(file.file_name().unwrap());
    got.exists() && common::digest(file) == common::digest(&got)
}

#[test]
fn a_done_that_the_receiver_did_not_say() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let ant = place.receive("ant", &[]);
    let (file, sender, seen) = start(&place, &enemy, &[]);
    pause(Duration::from_millis(1500));
    ant.kill9();
    enemy.say(&done(&seen, "ant"), seen.announce.response);
    let forged = Message { proof: Some(Proof([5; 8])), ..done(&seen, "ant") };
    enemy.say(&forged, seen.announce.response);
    sender.wait().assert_failed(3, &["ant (no longer answers)"]);
    assert!(!has(&place, &file, "ant"));
    // The sender must not remember it either.
    let again = place.send(&[&file], &args("ant", &["--announce-time", "1 s"]));
    again.wait().assert_failed(1, &["nobody answered"]);
}

#[test]
fn a_receiver_that_does_not_exist() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let ant = place.receive("ant", &[]);
    let file = place.file("product.bin", LEN);
    let listening = std::thread::scope(|scope| {
        let seen = scope.spawn(|| enemy.overhear());
        pause(Duration::from_millis(300));
        let sender =
            place.send(&[&file], &["--rate", "2 Mbit/s", "--silence", "3 s", "--start-after", "2 s"]);
        (seen.join().unwrap(), sender)
    });
    let (seen, sender) = listening;
    for nonce in [None, Some(Proof([3; 8]))] {
        enemy.say(&registration(&seen, "ghost", Ok(()), nonce), seen.announce.response);
        pause(Duration::from_millis(200));
        enemy.say(&done(&seen, "ghost"), seen.announce.response);
    }
    let sent = sender.succeed().summary();
    ant.succeed();
    assert!(has(&place, &file, "ant"));
    let done = sent["receivers"].as_array().unwrap().iter().filter(|one| one["complete"] == true).count();
    assert_eq!(done, 1, "{sent}");
}

#[test]
fn alone_a_receiver_that_does_not_exist_is_no_success() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let file = place.file("product.bin", 10_000);
    let (seen, sender) = std::thread::scope(|scope| {
        let seen = scope.spawn(|| enemy.overhear());
        pause(Duration::from_millis(300));
        let args =
            ["--rate", "2 Mbit/s", "--silence", "1 s", "--start-after", "1 s", "--announce-time", "3 s"];
        let sender = place.send(&[&file], &args);
        (seen.join().unwrap(), sender)
    });
    for _ in 0..20 {
        enemy.say(&registration(&seen, "ghost", Ok(()), None), seen.announce.response);
        enemy.say(&done(&seen, "ghost"), seen.announce.response);
        pause(Duration::from_millis(100));
    }
    let ended = sender.wait();
    assert!(matches!(ended.code, Some(1 | 3)), "{}", ended.story());
}

#[test]
fn a_newcomer_under_the_name_of_a_member_that_pauses() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let ant = place.receive("ant", &[]);
    let (file, sender, _) = start(&place, &enemy, &[]);
    pause(Duration::from_secs(1));
    let pid = rustix::process::Pid::from_child(&ant.child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let args = ["receive", "--from", &place.group, "--interface", "127.0.0.1", "--name", "ant", "--json"];
    let mut command = place.farcast(args);
    command.arg("--into").arg(place.path("elsewhere")).env("XDG_STATE_HOME", place.path("other-state"));
    let newcomer = place.start("newcomer", command);
    pause(Duration::from_secs(3));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    let sent = sender.succeed().summary();
    assert!(has(&place, &file, "ant"), "success, and it lacks the file: {sent}");
    ant.succeed();
    drop(newcomer);
}

#[test]
fn a_farewell_that_the_receiver_did_not_say() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let ant = place.receive("ant", &[]);
    let (file, sender, seen) = start(&place, &enemy, &[]);
    let client = ClientId::from_name("ant");
    let quit = Body::Quit(Quit { reason: cancel::QUIT_APPLICATION, client: Some(client), text: None });
    let to = seen.announce.response;
    for _ in 0..5 {
        enemy.say(&Message::new(seen.transmission, quit.clone()), to);
        enemy.say(&registration(&seen, "ant", Err(DeclineReason::Disk), None), to);
        enemy.say(&registration(&seen, "ant", Err(DeclineReason::Disk), Some(Proof([1; 8]))), to);
        pause(Duration::from_millis(100));
    }
    sender.succeed();
    ant.succeed();
    assert!(has(&place, &file, "ant"));
}

#[test]
fn an_end_that_the_sender_did_not_say() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let ant = place.receive("ant", &[]);
    let (file, sender, seen) = start(&place, &enemy, &[]);
    let server = seen.announce.server;
    let bodies = [
        Body::Abort(Abort { reason: cancel::ABORT_SOURCE_CHANGED, hosts: None, text: None }),
        Body::Completion(Completion { turn: None, hosts: None }),
        Body::Completion(Completion { turn: None, hosts: Some(vec![ClientId::from_name("ant")]) }),
        Body::End(End { server, response: server }),
        Body::Abort(Abort {
            reason: cancel::ABORT_COLLISION,
            hosts: Some(vec![ClientId::from_name("ant")]),
            text: None,
        }),
    ];
    for proof in [None, seen.announce.commitment] {
        for body in &bodies {
            enemy.claim(&Message { transmission: seen.transmission, body: body.clone(), proof }, server);
            pause(Duration::from_millis(50));
        }
    }
    sender.succeed();
    let got = ant.succeed();
    assert_eq!(got.all("joined").len(), 1, "nothing interrupted it: {}", got.story());
    let forged = got.summary()["rejected_messages"].to_string();
    assert!(forged.contains("message without proof"), "they came: {forged}");
    assert!(has(&place, &file, "ant"));
}

/// Returns an offer of 1.4 GB with nothing behind it.
fn offer(enemy: &Enemy, proofs: bool) -> Announce {
    let base = forged::announcement(enemy.address(), enemy.group.ip());
    let options = AnnounceOptions {
        model: GroupModel::OpenLimited,
        stay_in_group: true,
        restart: true,
        ..base.options
    };
    Announce {
        announce_duration_s: 0,
        options,
        block_size: 11_000,
        data_rate_bps: u32::MAX,
        product_name: "bait".into(),
        dtu_size: 1432,
        product_size: 1_400_000_000,
        product_id: Some([9; 32]),
        commitment: proofs.then_some(Proof([8; 8])),
        ..base
    }
}

#[test]
fn requests_do_not_make_a_receiver_a_weapon() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let ant = place.start("ant", place.receive_command("ant", &["--json"]));
    ant.until("listening");
    let own = {
        // A sender also sees the receiver's own port.
        let file = place.file("small.bin", 1000);
        let sent = place.send(&[&file], &args("ant", &[])).succeed();
        sent.all("registered")[0]["address"].as_str().unwrap().parse::<SocketAddr>().unwrap()
    };
    for proofs in [false, true] {
        let announce = offer(&enemy, proofs);
        let blocks = announce.product_size.div_ceil(1432).div_ceil(11_000) as u32;
        let transmission = 77 + u32::from(proofs);
        let mut sent = enemy.say(&Message::new(transmission, Body::Announce(announce.into())), enemy.group);
        pause(Duration::from_millis(500));
        for status in [StatusType::NakOnly, StatusType::All] {
            let (blocks, dtus) = (Run::new(0, blocks).unwrap(), Run::new(0, 11_000).unwrap());
            let request = StatusRequest { turn: None, pass: 1, blocks, dtus, status, hosts: None };
            for _ in 0..10 {
                let message = Message::new(transmission, Body::StatusRequest(request.clone()));
                sent += enemy.say(&message, enemy.group) + enemy.say(&message, own);
            }
        }
        let back = enemy.comes_back(Duration::from_secs(2));
        assert!(back <= 3 * sent + 8192, "{back} octets for {sent}, proofs {proofs}");
        pause(Duration::from_secs(11));
    }
}

#[test]
fn strangers_do_not_make_a_sender_a_weapon() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let ant = place.receive("ant", &[]);
    let (file, sender, seen) = start(&place, &enemy, &[]);
    let mut sent = 0;
    for n in 0..1000 {
        let name = format!("stranger-{n}");
        let nonce = (n % 2 == 0).then_some(Proof([n as u8; 8]));
        sent += enemy.say(&registration(&seen, &name, Ok(()), nonce), seen.announce.response);
        let mut missing = Bitmap::new(seen.announce.block_size.next_multiple_of(8));
        missing.insert(0);
        let client = ClientId::from_name("ant");
        let nak = Nak {
            server: seen.announce.server,
            client,
            pass: 1,
            block: 0,
            missing,
            parity_held: 0,
            unstored: 0,
        };
        sent += enemy.say(&Message::new(seen.transmission, Body::Nak(nak)), seen.announce.response);
    }
    let back = enemy.comes_back(Duration::from_secs(2));
    assert!(back <= sent, "{back} octets for {sent}");
    let summary = sender.succeed().summary();
    ant.succeed();
    assert!(has(&place, &file, "ant"));
    // The strangers' NAKs moved nothing, and their replies took next to nothing of the rate.
    assert!(summary["wire_bytes_over_size"].as_f64().unwrap() < 1.15, "{summary}");
}

#[test]
fn one_datagram_of_another_transmission_does_not_end_a_sender() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let file = place.file("product.bin", 10_000);
    let sender = place.send(&[&file], &args("ant", &[]));
    sender.until("progress");
    let data = Data { pass: 1, block: 0, kind: DataKind::Source, dtus: Run::one(0), len: 4, last_len: 4 };
    for _ in 0..3 {
        enemy.say(&Message::new(99, Body::Data(data.clone())), enemy.group);
    }
    pause(Duration::from_millis(500));
    let ant = place.receive("ant", &[]);
    sender.succeed();
    ant.succeed();
    assert!(has(&place, &file, "ant"));
}

#[test]
fn an_offer_with_nothing_behind_it_does_not_hold_a_receiver() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let ant = place.start("ant", place.receive_command("ant", &["--json"]));
    ant.until("listening");
    let file = place.file("product.bin", 100_000);
    let announce = offer(&enemy, true);
    let bait = Message::new(78, Body::Announce(announce.into()));
    enemy.say(&bait, enemy.group);
    pause(Duration::from_millis(500));
    let sender = place.send(&[&file], &args("ant", &["--announce-time", "60 s"]));
    let mut n = 0u8;
    let mut sender = sender;
    wait_until("the honest sender", || {
        // The enemy sends a forged offer each second, from its own address and from those of absent hosts.
        if n.is_multiple_of(100) {
            enemy.say(&bait, enemy.group);
            enemy.claim(&bait, SocketAddr::from(([127, 0, 1, n], 4000)));
        }
        n = n.wrapping_add(1);
        !sender.is_running()
    });
    sender.succeed();
    assert!(has(&place, &file, "ant"));
}

#[test]
fn claims_to_announce_do_not_carry_receivers_off() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let ant = place.receive("ant", &[]);
    let (file, sender, seen) = start(&place, &enemy, &[]);
    let mut sender = sender;
    let mut n = 0u8;
    wait_until("the sender", || {
        if n.is_multiple_of(20) {
            // The enemy offers the same product from another address, under other numbers.
            let mut announce = seen.announce.clone();
            (announce.server, announce.response) = (enemy.address(), enemy.address());
            enemy.say(&Message::new(5, Body::Announce(announce.clone().into())), enemy.group);
            (announce.commitment, announce.hosts) = (Some(Proof([2; 8])), None);
            enemy.claim(&Message::new(6, Body::Announce(announce.into())), seen.announce.server);
        }
        n = n.wrapping_add(1);
        !sender.is_running()
    });
    let sent = sender.succeed().summary();
    ant.succeed();
    assert_eq!(member(&sent, "ant")["complete"], true);
    assert!(has(&place, &file, "ant"));
}

#[test]
fn a_hundred_thousand_names_do_not_keep_a_sender_deaf() {
    let place = Place::new();
    let enemy = Enemy::new(&place);
    let ant = place.receive("ant", &[]);
    let file = place.file("product.bin", LEN);
    let (sender, seen) = std::thread::scope(|scope| {
        let seen = scope.spawn(|| enemy.overhear());
        pause(Duration::from_millis(300));
        let sender = place.send(&[&file], &[&RATE[..], &["--wait-for", "1"]].concat());
        (sender, seen.join().unwrap())
    });
    sender.until("started");
    let began = Instant::now();
    for n in 0..100_000 {
        let message = registration(&seen, &format!("name {n}"), Ok(()), Some(Proof([9; 8])));
        enemy.say(&message, seen.announce.response);
        if n % 1000 == 0 {
            // The pace is the receiver's: most faster datagrams would be dropped before they do any harm.
            pause(Duration::from_millis(10));
        }
    }
    let sent = sender.succeed().summary();
    let took = began.elapsed();
    // The time is six seconds of data, and half a minute of waiting for claims.
    assert!(took < Duration::from_secs(45), "{took:?}: {sent}");
    assert!(has(&place, &file, "ant"));
    ant.succeed();
}

#[test]
fn one_that_hardly_ever_answers_does_not_hold_up_the_others() {
    let place = Place::new();
    let file = place.file("product.bin", 60_000_000);
    let (mut ant, bee) = (place.receive("ant", &["--no-sync"]), place.receive("bee", &["--no-sync"]));
    let mut sender = place.send(&[&file], &["--rate", "max", "--receivers", "ant,bee"]);
    sender.until("started");
    let began = Instant::now();
    let pid = rustix::process::Pid::from_child(&ant.child);
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    // The buffer of bee's kernel is emptied once in five seconds, for the time of the other transfer.
    let bee = std::thread::scope(|scope| {
        let bee = scope.spawn(|| {
            let ended = bee.succeed();
            (ended, began.elapsed())
        });
        while !bee.is_finished() {
            signal(rustix::process::Signal::STOP);
            let pause_end = Instant::now() + Duration::from_secs(5);
            while !bee.is_finished() && Instant::now() < pause_end {
                pause(Duration::from_millis(50));
            }
            signal(rustix::process::Signal::CONT);
            pause(Duration::from_millis(30));
        }
        bee.join().unwrap()
    });
    assert!(bee.1 < Duration::from_secs(30), "{:?}: {}", bee.1, bee.0.story());
    assert!(ant.is_running() && sender.is_running(), "the other is served after that");
    ant.succeed();
    sender.succeed();
}
