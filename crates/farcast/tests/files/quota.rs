//! Disk space that announcements of strangers take at a live receiver, and its release.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use farcast_core::Run;
use farcast_files::chunks::Chunks;
use farcast_files::{Entry, EntryKind, Manifest};
use farcast_mftp::message::{Abort, Announce, Data, DataKind};
use farcast_mftp::{Body, Message, wire};

use crate::common::{self, Place, Running, forged, names, noise, pause, wait_for_journal, wait_until};

const DTU: usize = 1400;
const BLOCK: u32 = 1024;

/// Attacker who says anything about a product of his own.
struct Forger {
    socket: UdpSocket,
    to: SocketAddr,
    transmission: u32,
    id: [u8; 32],
    /// Bytes of the product.
    size: u64,
}

impl Forger {
    fn new(place: &Place) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket2::SockRef::from(&socket).set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        Self { socket, to: place.group.parse().unwrap(), transmission: 0, id: [0; 32], size: 0 }
    }

    /// Announces a product, and waits until `receiver` takes part.
    fn offer(&mut self, id: [u8; 32], size: u64, receiver: &Running) {
        (self.transmission, self.id, self.size) = (self.transmission + 1, id, size);
        let offers = receiver.events().iter().filter(|event| event["event"] == "joined").count();
        let announce = Announce {
            block_size: BLOCK,
            data_rate_bps: u32::MAX,
            transfer_duration_s: 3600,
            dtu_size: DTU as u32,
            product_size: size,
            product_id: Some(id),
            ..forged::announcement(self.socket.local_addr().unwrap(), self.to.ip())
        };
        self.say(Body::Announce(announce.into()), &[]);
        receiver.until_nth("joined", offers + 1);
    }

    /// Sends `segments` of the product. `bytes` are its content from the first of these segments on.
    fn data(&self, segments: core::ops::Range<u32>, bytes: &[u8]) {
        for (n, segment) in segments.enumerate() {
            let payload = &bytes[n * DTU..bytes.len().min((n + 1) * DTU)];
            let len = payload.len() as u16;
            let dtus = Run::one(segment % BLOCK);
            let data =
                Data { pass: 1, block: segment / BLOCK, kind: DataKind::Source, dtus, len, last_len: len };
            self.say(Body::Data(data), payload);
            if n % 32 == 31 {
                pause(Duration::from_millis(2));
            }
        }
    }

    fn abort(&self) {
        self.say(Body::Abort(Abort { reason: 1, hosts: None, text: None }), &[]);
    }

    fn say(&self, body: Body, payload: &[u8]) {
        let message = Message::new(self.transmission, body);
        let mut datagram = Vec::new();
        wire::encode(&message, 0, &mut datagram);
        datagram.extend_from_slice(payload);
        datagram.resize(wire::encoded_len(&message, 0), 0);
        self.socket.send_to(&datagram, self.to).unwrap();
    }

    fn segments(&self) -> u32 {
        self.size.div_ceil(DTU as u64) as u32
    }
}

/// Starts a receiver that continues after one transmission.
fn receive(place: &Place, args: &[&str]) -> Running {
    let mut command = place.receive_command("ant", args);
    command.arg("--json");
    let running = place.start("ant", command);
    running.until("listening");
    running
}

/// Starts such a receiver into its own file system of `size`. Returns it with the path of that file system as seen from
/// here.
fn receive_into_mount(place: &Place, size: &str) -> (Running, PathBuf) {
    let command = common::into_mount(place, &format!("size={size}"), &["--json"]);
    let running = place.start("ant", command);
    running.until("listening");
    // A mount that only the receiver has is seen through one of its processes.
    let dir = place.path("ant").strip_prefix("/").unwrap().to_owned();
    let seen = Path::new("/proc").join(running.child.id().to_string()).join("root").join(dir);
    (running, seen)
}

/// Returns the bytes in use in the file system of `dir`.
fn used(dir: &Path) -> u64 {
    let stat = rustix::fs::statvfs(dir).unwrap();
    (stat.f_blocks - stat.f_bfree) * stat.f_frsize
}

fn entries_below(dir: &Path) -> usize {
    let below = |path: PathBuf| if path.is_dir() { entries_below(&path) } else { 0 };
    fs::read_dir(dir).map_or(0, |all| all.map(|entry| 1 + below(entry.unwrap().path())).sum())
}

fn file(path: &[u8], content: &[u8]) -> Entry {
    let kind = EntryKind::File { size: content.len() as u64, digest: *blake3::hash(content).as_bytes() };
    Entry {
        path: path.to_vec(),
        mode: 0o644,
        mtime_ns: 0,
        kind,
        parts: Box::default(),
        chunks: Chunks::default(),
    }
}

/// Returns `true` if this event reports a complete transmission.
fn complete(event: &serde_json::Value) -> bool {
    event["complete"] == true
}

#[test]
fn offers_leave_nothing() {
    let place = Place::new();
    let receiver = receive(&place, &[]);
    let mut forger = Forger::new(&place);
    for n in 0..30_u8 {
        forger.offer([n; 32], 1 << 37, &receiver);
        assert_eq!(names(&place.path("ant")), [""; 0], "an offer is no data");
        forger.abort();
        let summary = receiver.until_nth("summary", usize::from(n) + 1);
        assert_eq!(summary["kept"], false);
    }
    assert_eq!(names(&place.path("ant")), [""; 0]);
}

#[test]
fn a_product_that_nobody_can_know_takes_little_and_gives_it_back() {
    let place = Place::new();
    let (receiver, dir) = receive_into_mount(&place, "51m");
    let mut forger = Forger::new(&place);
    let noise = noise(1, 64 * DTU);
    for n in 1..=2_usize {
        forger.offer([n as u8; 32], 40_000_000, &receiver);
        let mut most = 0;
        for first in (1..forger.segments() - 64).step_by(64) {
            forger.data(first..first + 64, &noise);
            most = most.max(used(&dir));
        }
        wait_until("some data on disk", || {
            most = most.max(used(&dir));
            most > 10_000_000
        });
        // A quarter, and what the file system itself takes.
        assert!(most < 14_000_000, "{most} bytes");
        assert!(receiver.has("joined") && receiver.events().iter().all(|e| e["event"] != "error"));
        forger.abort();
        let summary = receiver.until_nth("summary", n);
        assert_eq!(summary["outcome"], "forged: the sender ended it with reason 1 (nothing of it is kept)");
        wait_until("the space that it took", || entries_below(&dir) == 0 && used(&dir) < 100_000);
    }
}

#[test]
fn what_a_killed_receiver_leaves_of_it_goes_when_it_starts_again() {
    let place = Place::new();
    let receiver = receive(&place, &[]);
    let mut forger = Forger::new(&place);
    forger.offer([9; 32], 4_000_000, &receiver);
    forger.data(1..1000, &noise(1, 1000 * DTU));
    wait_for_journal(&place.path("ant"));
    receiver.kill9();
    assert!(entries_below(&place.path("ant")) > 3);
    let _again = receive(&place, &[]);
    wait_until("an empty directory", || entries_below(&place.path("ant")) == 0);
}

#[test]
fn what_had_no_place_is_taken_when_it_comes_again() {
    let place = Place::new();
    let (receiver, dir) = receive_into_mount(&place, "51m");
    let content = noise(3, 20_000_000);
    let manifest = Manifest::new(vec![file(b"large", &content)]).unwrap();
    let product = [manifest.head(), content].concat();
    let mut forger = Forger::new(&place);
    forger.offer(*manifest.id().as_bytes(), product.len() as u64, &receiver);
    forger.data(1..forger.segments(), &product[DTU..]);
    wait_until("a full spool", || used(&dir) > 10_000_000);
    assert!(used(&dir) < 14_000_000, "{} bytes", used(&dir));
    // What is lost on the way is sent until it arrives.
    wait_until("a complete product", || {
        forger.data(0..forger.segments(), &product);
        receiver.events().iter().any(|event| event["event"] == "summary")
    });
    let summary = receiver.until("summary");
    assert!(complete(&summary), "{summary}");
    assert_eq!(names(&dir), ["large"]);
}

#[test]
fn a_list_of_files_makes_no_directories() {
    let place = Place::new();
    let receiver = receive(&place, &[]);
    let mut forger = Forger::new(&place);
    // 98 kB that need 49,104 directories.
    let deep = |n: u8| file(&[&[b'a' + n, b'/'], b"x/".repeat(2045).as_slice(), b"x"].concat(), b"content");
    let manifest = Manifest::new((0..24).map(deep).collect()).unwrap();
    let head = manifest.head();
    forger.offer(*manifest.id().as_bytes(), manifest.product_size(), &receiver);
    let mut padded = head.clone();
    padded.resize(manifest.product_size() as usize, 0);
    forger.data(0..forger.segments(), &padded);
    let summary = receiver.until_nth("summary", 1);
    let said = summary["outcome"].as_str().unwrap();
    assert!(said.contains("needs 49104 directories that it does not list"), "{said}");
    wait_until("an empty directory", || entries_below(&place.path("ant")) == 0);
    // A list of directories with one file, of which nothing comes.
    let directory = |n: u32| Entry {
        kind: EntryKind::Directory,
        mode: 0o755,
        ..file(format!("d{n:04}").as_bytes(), b"")
    };
    let content = noise(4, 100_000);
    let entries = (0..5000).map(directory).chain([file(b"file", &content)]);
    let manifest = Manifest::new(entries.collect()).unwrap();
    let head = manifest.head();
    forger.offer(*manifest.id().as_bytes(), manifest.product_size(), &receiver);
    let whole = head.len() / DTU + 1;
    let product = [head, content].concat();
    forger.data(0..whole as u32, &product[..whole * DTU]);
    receiver.until_nth("files", 1);
    assert!(entries_below(&place.path("ant")) < 10, "{:?}", names(&place.path("ant")));
    forger.abort();
    receiver.until_nth("summary", 2);
    wait_until("an empty directory", || entries_below(&place.path("ant")) == 0);
}

#[test]
fn what_does_not_decompress_to_what_is_listed_leaves_nothing() {
    let place = Place::new();
    let receiver = receive(&place, &[]);
    let mut forger = Forger::new(&place);
    let stored = noise(5, 200_000);
    let stored_digest = *blake3::hash(&stored).as_bytes();
    let kind = EntryKind::Compressed { size: 1 << 20, digest: [1; 32], stored: 200_000, stored_digest };
    let manifest = Manifest::new(vec![Entry { kind, ..file(b"bomb", b"") }]).unwrap();
    let product = [manifest.head(), stored].concat();
    forger.offer(*manifest.id().as_bytes(), product.len() as u64, &receiver);
    wait_until("an end of it", || {
        forger.data(0..forger.segments(), &product);
        receiver.has("summary")
    });
    let summary = receiver.until("summary");
    let said = summary["outcome"].as_str().unwrap();
    assert!(said.contains("does not decompress to what its sender lists"), "{said}");
    assert_eq!((&summary["complete"], &summary["kept"]), (&false.into(), &false.into()), "{summary}");
    wait_until("an empty directory", || entries_below(&place.path("ant")) == 0);
}

/// Returns the output of `farcast partials` for a receiver's directory.
fn partials(place: &Place, args: &[&str]) -> serde_json::Value {
    let mut command = place.farcast(["partials", "--json"]);
    command.arg(place.path("ant")).args(args);
    let ended = place.run("partials", command);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn partials_are_shown_and_removed() {
    let place = Place::new();
    let product = place.file("product.bin", 3_000_000);
    let receiver = receive(&place, &[]);
    let sender = place.send(&[&product], &["--rate", "8 Mbit/s", "--receivers", "ant"]);
    wait_until("a checkpoint", || {
        partials(&place, &[])["partials"][0]["held_bytes"].as_u64().is_some_and(|held| held > 500_000)
    });
    let shown = partials(&place, &[]);
    let one = &shown["partials"][0];
    assert_eq!((&one["name"], &one["in_use"]), (&"product.bin".into(), &true.into()), "{shown}");
    let id = one["id"].as_str().unwrap().to_owned();
    let mut remove = place.farcast(["partials", "--remove", &id[..6]]);
    remove.arg(place.path("ant"));
    place.run("remove", remove).assert_one_sentence(1, &["another process is receiving this product"]);
    assert_eq!(partials(&place, &["--all"])["removed"].as_array().unwrap().len(), 0);
    sender.kill9();
    receiver.terminate();
    receiver.wait();
    let shown = partials(&place, &[]);
    let one = &shown["partials"][0];
    assert_eq!((&one["verified"], &one["in_use"]), (&true.into(), &false.into()), "{shown}");
    let (held, disk) = (one["held_bytes"].as_u64().unwrap(), one["disk_bytes"].as_u64().unwrap());
    assert!(held > 500_000 && held < 3_000_000 && disk > held && disk < held + 300_000, "{shown}");
    assert_eq!(one["size_bytes"].as_u64().unwrap() / 1000, 3000);
    let kept = one["expires_unix_s"].as_f64().unwrap() - one["last_data_unix_s"].as_f64().unwrap();
    assert!((kept - 14.0 * 86_400.0).abs() < 1.0, "{kept} s");
    assert!(partials(&place, &["--expired"])["removed"].as_array().unwrap().is_empty());
    // Dated by a clock that is two centuries ahead, it is kept for no longer.
    let state = place.path("ant/.farcast").join(&id);
    for path in [state.join("journal"), state.join("spool"), state.join("lock")] {
        let ahead = std::time::UNIX_EPOCH + Duration::from_hours(230 * 365 * 24);
        fs::File::options().write(true).open(path).unwrap().set_modified(ahead).unwrap();
    }
    let mut text = place.farcast(["partials"]);
    text.arg(place.path("ant"));
    let text = place.run("text", text).stdout;
    assert!(
        text.contains("for 14 d 0 h of a receiver's running") || text.contains("for 13 d 23 h of a"),
        "{text}"
    );
    let gone = partials(&place, &["--remove", &id[..6]]);
    assert_eq!(gone["removed"][0], id.as_str());
    assert_eq!(entries_below(&place.path("ant")), 0);
}

#[test]
fn what_is_too_old_goes_when_a_receiver_starts() {
    let place = Place::new();
    let product = place.file("product.bin", 3_000_000);
    let receiver = receive(&place, &[]);
    let sender = place.send(&[&product], &["--rate", "8 Mbit/s", "--receivers", "ant"]);
    wait_for_journal(&place.path("ant"));
    sender.kill9();
    receiver.kill9();
    let again = receive(&place, &["--keep-partials", "1 d"]);
    pause(Duration::from_millis(500));
    assert_eq!(partials(&place, &[])["partials"].as_array().unwrap().len(), 1);
    again.kill9();
    let last = receive(&place, &["--keep-partials", "10 ms"]);
    wait_until("an empty directory", || entries_below(&place.path("ant")) == 0);
    let removed = last.until("removed");
    assert_eq!(
        (&removed["name"], &removed["reason"]),
        (&"product.bin".into(), &"too_old".into()),
        "{removed}"
    );
    assert!(removed["held_bytes"].as_u64().unwrap() > 0, "{removed}");
}

#[test]
fn a_quota_is_kept() {
    let place = Place::new();
    let product = place.file("product.bin", 300_000);
    let receiver = place.receive("ant", &["--quota", "200 kB"]);
    let args = ["--rate", "8 Mbit/s", "--receivers", "ant"];
    let sender = place.run("sender", place.send_command(&[&product], &args));
    receiver.wait().assert_one_sentence(1, &["bytes are needed", "the quota leaves", "farcast partials"]);
    assert!(matches!(sender.code, Some(1 | 3)), "{}", sender.story());
    assert_eq!(entries_below(&place.path("ant")), 0);
}

/// Returns the options for a protocol's transfer of a second or two.
fn sending(protocol: &'static str) -> Vec<&'static str> {
    let mut args = vec!["--protocol", protocol, "--rate", "8 Mbit/s"];
    if protocol != "one-way" {
        args.extend(["--receivers", "7", "--rtt", "20 ms"]);
    }
    if ["norm", "mdp"].contains(&protocol) {
        args.extend(["--robust", "3"]);
    }
    args
}

/// An object that is refused for lack of room ends `--once`, when its content shows that it was no mere offer.
#[test]
fn once_ends_where_there_is_no_room() {
    for protocol in ["one-way", "norm", "mdp", "pgm"] {
        let place = Place::new();
        let file = place.file("product.bin", 1_000_000);
        let receiver = place.receive("7", &["--protocol", protocol, "--quota", "200 kB"]);
        let sender = place.send(&[&file], &sending(protocol));
        receiver.wait().assert_one_sentence(1, &["the quota leaves", "farcast partials"]);
        sender.kill9();
    }
}

/// A receiver that can never complete an object ends when its sender has ended, and reports that.
#[test]
fn once_ends_when_the_sender_has() {
    for protocol in ["one-way", "pgm"] {
        let place = Place::new();
        let file = place.file("product.bin", 1_000_000);
        let mut args = vec!["--protocol", protocol, "--simulate-loss", "30 %"];
        if protocol == "pgm" {
            args.extend(["--silent", "--patience", "4 s"]);
        }
        let receiver = place.receive("7", &args);
        let sender = place.send(&[&file], &sending(protocol));
        receiver.wait().assert_one_sentence(
            1,
            &["product.bin: the sender has ended", "did not arrive", "is here and kept"],
        );
        sender.kill9();
    }
}
