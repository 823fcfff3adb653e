//! Several objects at once, without a manifest, over UDP and over IP itself, by a protocol outside our crates. Each
//! must arrive under a safe name with its own octets, whatever happens to the others.

mod receiver;
mod sender;
mod wire;

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use farcast_core::engine::Arrival;
use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_delivery::{Channel, FeedbackCounts, Geometry, Outcome, Protocol, TimedFeedback, Transport};
use farcast_files::{Options, Outgoing};
use farcast_net::{
    Changing, ListenNotice, ListenOptions, NetError, ReceiveJob, ReceiveNotice, ReceiveOptions,
    ReceiveReport, SendJob, SendOptions, SocketOptions,
};

use receiver::{Asks, Receiver};
use sender::Sender;
use wire::{Codec, Message};

/// The protocol, which nobody simulates.
#[derive(Debug)]
enum Parcels {}

impl Protocol for Parcels {
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

/// Protocol number for experiments (RFC 3692).
const EXPERIMENT: u8 = 253;
/// Environment variable that tells a test's process what to receive: transport, group and directory.
const RECEIVE: &str = "FARCAST_TEST_RECEIVE";

fn socket() -> SocketOptions {
    SocketOptions { interface: Some("lo".into()), ..SocketOptions::default() }
}

fn group(last: u8) -> SocketAddr {
    SocketAddr::new([239, 255, 78, last].into(), 20_000 + (std::process::id() % 20_000) as u16)
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut random = RandomStream::derive(seed, &[]);
    (0..len).map(|_| random.bits() as u8).collect()
}

/// Receives until `stop`. Returns the reports of all objects that ended.
fn receive(
    (group, transport): (SocketAddr, Transport),
    into: &Path,
    (plain, loss): (bool, f64),
    stop: &AtomicBool,
    (listening, ended): (&AtomicBool, &AtomicUsize),
) -> Result<Vec<Told>, NetError> {
    let options = ReceiveOptions {
        listen: ListenOptions {
            from: group,
            source: None,
            accept: Vec::new(),
            socket: socket(),
            silent: false,
            simulate_loss: Probability::new(loss).unwrap(),
            seed: 3,
        },
        into: into.into(),
        files: Options::default(),
        plain,
        once: false,
        discard: false,
        wait_for_room: Span::ZERO,
    };
    let mut told = Vec::new();
    let mut observer = |_: Time, _: &Receiver, notice: &ReceiveNotice<'_, Asks>| match notice {
        ReceiveNotice::Listen(ListenNotice::Listening { .. }) => listening.store(true, Ordering::SeqCst),
        ReceiveNotice::Ended(report) => {
            told.push(Told::of(report));
            ended.fetch_add(1, Ordering::SeqCst);
        }
        _ => {}
    };
    let make = |_| Ok::<_, Infallible>(Receiver::default());
    let job = ReceiveJob::<Parcels> { options: &options, codec: &Codec(transport), seal: None, stop };
    farcast_net::receive(job, make, &mut observer)?;
    Ok(told)
}

/// Content of a report.
#[derive(Debug)]
struct Told {
    complete: bool,
    vouched: bool,
    kept: bool,
    held: u32,
    have: u32,
    crowded: u64,
    stored: Option<(String, [u8; 32])>,
}

impl Told {
    fn of(report: &ReceiveReport<Asks>) -> Self {
        Self {
            complete: matches!(report.outcome, Outcome::Complete(_)),
            vouched: report.vouched,
            kept: report.kept,
            held: report.held,
            have: report.have,
            crowded: report.crowded,
            stored: report.plain.as_ref().map(|file| (file.path.clone(), file.digest)),
        }
    }
}

/// Object to send: name, content, and octets of a segment.
struct Parcel {
    name: Vec<u8>,
    content: Vec<u8>,
    segment: u32,
}

fn parcel(name: &[u8], seed: u64, len: usize, segment: u32) -> Parcel {
    Parcel { name: name.to_vec(), content: noise(seed, len), segment }
}

/// Sends `parcels` for `rounds` rounds, or until `stop`.
fn send(
    (group, transport): (SocketAddr, Transport),
    parcels: &[Parcel],
    (megabits, rounds): (u64, usize),
    stop: &AtomicBool,
) -> Result<(), NetError> {
    let place = tempfile::tempdir().unwrap();
    let (mut objects, mut cut) = (Vec::new(), Vec::new());
    for (number, parcel) in parcels.iter().enumerate() {
        let path = place.path().join(number.to_string());
        fs::write(&path, &parcel.content).unwrap();
        objects.push(Outgoing::plain(&path, |_| {}).unwrap());
        let geometry = Geometry::new(parcel.content.len() as u64, parcel.segment, 1 << 30).unwrap();
        cut.push((parcel.name.clone(), geometry));
    }
    let rate = BitRate::from_bps(megabits * 1_000_000).unwrap();
    let make = |own| Ok::<_, Infallible>(Sender::new(cut, (own, group), rate, rounds));
    let options = SendOptions {
        to: group,
        socket: socket(),
        burst: Span::from_millis(1),
        changing: Changing::default(),
        look_again: false,
    };
    let (codec, start) = (Codec(transport), AtomicBool::new(false));
    let job =
        SendJob::<Parcels> { objects, codec: &codec, seal: None, options: &options, start: &start, stop };
    let report = farcast_net::send(job, make, &mut |_, _, _| {})?;
    report.error.map_or(Ok(()), Err)
}

/// Sends `parcels` to a receiver in this process, which stops after `count` ended objects. Returns the receiver's
/// reports.
fn deliver(
    to: (SocketAddr, Transport),
    parcels: &[Parcel],
    into: &Path,
    (plain, loss): (bool, f64),
    count: usize,
) -> Vec<Told> {
    let (stop, listening, ended) = (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(to, into, (plain, loss), &stop, (&listening, &ended)));
        while !listening.load(Ordering::SeqCst) && !receiver.is_finished() {
            thread::yield_now();
        }
        let sent = send(to, parcels, (40, 12), &AtomicBool::new(false));
        // The disk may take its time.
        let patience = Instant::now() + Duration::from_secs(30);
        while ended.load(Ordering::SeqCst) < count && Instant::now() < patience {
            thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::SeqCst);
        let told = receiver.join().unwrap().unwrap();
        sent.unwrap();
        told
    })
}

fn assert_arrived(told: &[Told], parcels: &[Parcel], names: &[&str], into: &Path) {
    assert_eq!(told.len(), parcels.len(), "{told:?}");
    for (parcel, name) in parcels.iter().zip(names) {
        assert!(fs::read(into.join(name)).unwrap() == parcel.content, "{name} differs");
        let of_it = |one: &&Told| one.stored.as_ref().is_some_and(|(path, _)| path == name);
        let one = told.iter().find(of_it).unwrap();
        assert!(one.complete && !one.vouched, "{one:?}");
        assert_eq!(one.stored.as_ref().unwrap().1, *blake3::hash(&parcel.content).as_bytes());
    }
    let found = fs::read_dir(into).unwrap().filter(|one| one.as_ref().unwrap().file_name() != ".farcast");
    assert_eq!(found.count(), names.len());
}

#[test]
fn several_objects_come_at_once_over_udp_and_hostile_names_are_made_safe() {
    let place = tempfile::tempdir().unwrap();
    let into = place.path().join("in");
    let parcels = [
        parcel(b"one.bin", 1, 300_000, 1000),
        parcel(b"../../etc/two\0", 2, 123_457, 1400),
        parcel(b"three", 3, 1, 700),
    ];
    let told = deliver((group(1), Transport::Udp), &parcels, &into, (true, 0.1), 3);
    assert_arrived(&told, &parcels, &["one.bin", "__/__/etc/two_", "three"], &into);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing beside the directory");
}

#[test]
fn over_ip_itself_they_come_too() {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test needs root for a raw socket; run `sudo -E cargo test`, or inside `unshare -Urn` with lo up"
    );
    let place = tempfile::tempdir().unwrap();
    let parcels = [parcel(b"one", 1, 200_000, 1000), parcel(b"two", 2, 50_000, 1400)];
    let told = deliver((group(2), Transport::Ip(EXPERIMENT)), &parcels, place.path(), (true, 0.05), 2);
    assert_arrived(&told, &parcels, &["one", "two"], place.path());
}

#[test]
fn raw_sockets_are_for_ipv4() {
    let to = "[ff15::77]:0".parse().unwrap();
    let stop = AtomicBool::new(false);
    let sent = send((to, Transport::Ip(EXPERIMENT)), &[parcel(b"x", 1, 9, 9)], (1, 1), &stop);
    assert!(matches!(sent, Err(NetError::RawOverIpv6(EXPERIMENT) | NetError::NoAddress { .. })), "{sent:?}");
}

#[test]
fn they_are_declined_where_nobody_asked_for_them() {
    let place = tempfile::tempdir().unwrap();
    let told =
        deliver((group(3), Transport::Udp), &[parcel(b"one", 1, 9000, 1000)], place.path(), (false, 0.0), 0);
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn no_more_are_received_at_once_than_may_be() {
    let place = tempfile::tempdir().unwrap();
    // Their labels come at the beginning, before any can be complete.
    let parcels: Vec<Parcel> =
        (0..40_u64).map(|n| parcel(format!("{n}").as_bytes(), n, 3000, 1000)).collect();
    let told = deliver((group(4), Transport::Udp), &parcels, place.path(), (true, 0.0), 32);
    let complete = told.iter().filter(|one| one.complete).count();
    assert_eq!(complete, 32, "{told:?}");
    assert_eq!(told.last().unwrap().crowded, 8);
}

#[test]
fn one_that_cannot_be_stored_does_not_hold_up_the_others() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("taken")).unwrap();
    let parcels = [parcel(b"taken", 1, 50_000, 1000), parcel(b"free", 2, 50_000, 1000)];
    let told = deliver((group(5), Transport::Udp), &parcels, place.path(), (true, 0.0), 2);
    assert_eq!(told.iter().map(|one| one.complete).collect::<Vec<_>>(), [false, true]);
    assert_eq!(fs::read(place.path().join("free")).unwrap(), parcels[1].content);
}

/// Runs in a process that [`receiving`] starts. In the tests' own process it does nothing.
#[test]
fn a_process_that_receives() {
    let Ok(what) = std::env::var(RECEIVE) else { return };
    let (group, into) = what.split_once(' ').unwrap();
    let (stop, listening, ended) = (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while ended.load(Ordering::SeqCst) < 2 {
                thread::sleep(Duration::from_millis(10));
            }
            stop.store(true, Ordering::SeqCst);
        });
        let to = (group.parse().unwrap(), Transport::Udp);
        let told = receive(to, Path::new(into), (true, 0.0), &stop, (&listening, &ended)).unwrap();
        for one in told.iter().filter(|one| one.complete) {
            println!("held {} of {}, kept {}", one.held, one.have, one.kept);
        }
    });
}

fn receiving(group: SocketAddr, into: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "parcels::a_process_that_receives", "--nocapture"])
        .env(RECEIVE, format!("{group} {}", into.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_receiver_killed_midway_goes_on_with_the_same_object() {
    let place = tempfile::tempdir().unwrap();
    let into = place.path().join("in");
    let to = group(6);
    // More than three seconds a round, and each has its journal after one.
    let parcels = [parcel(b"one", 1, 2_000_000, 1000), parcel(b"two", 2, 2_000_000, 1000)];
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| send((to, Transport::Udp), &parcels, (10, 20), &stop));
        let mut killed = receiving(to, &into);
        let journals = || {
            let states = fs::read_dir(into.join(".farcast")).ok()?;
            Some(states.filter(|one| one.as_ref().unwrap().path().join("journal").exists()).count())
        };
        while journals() != Some(2) {
            assert!(killed.try_wait().unwrap().is_none(), "it ended before there were two journals");
            thread::sleep(Duration::from_millis(10));
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        assert!(!into.join("one").exists(), "it was killed too late");
        let said = receiving(to, &into).wait_with_output().unwrap();
        stop.store(true, Ordering::SeqCst);
        sender.join().unwrap().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let held: u32 = said.split_once("held ").unwrap().1.split_once(' ').unwrap().0.parse().unwrap();
        assert!(held > 0, "{said}");
    });
    assert!(fs::read(into.join("one")).unwrap() == parcels[0].content);
    assert!(fs::read(into.join("two")).unwrap() == parcels[1].content);
}
