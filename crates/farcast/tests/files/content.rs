//! Stored content when the path, the disk or the sender misbehaves.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use farcast_core::Run;
use farcast_mftp::message::DataKind;
use farcast_mftp::{Body, wire};
use socket2::{Domain, Protocol, Socket, Type};

use crate::common::{self, Ended, PATIENCE, Place, need_root};

/// Attacker on the path, who hears the group and sends in the sender's name.
struct Forger {
    hears: UdpSocket,
    speaks: Socket,
    group: SocketAddrV4,
}

impl Forger {
    fn new(place: &Place) -> Self {
        need_root("datagrams in another's name");
        let group: SocketAddrV4 = place.group.parse().unwrap();
        let hears = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        hears.set_reuse_address(true).unwrap();
        hears.bind(&SocketAddr::V4(group).into()).unwrap();
        hears.join_multicast_v4(group.ip(), &Ipv4Addr::LOCALHOST).unwrap();
        hears.set_read_timeout(Some(PATIENCE)).unwrap();
        let speaks = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)).unwrap();
        speaks.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        Self { hears: hears.into(), speaks, group }
    }

    /// Waits for data of the first pass, and sends forged data for the segments that come 100 DTUs later.
    fn forge(&self) {
        let mut buffer = [0; 2048];
        loop {
            let (len, from) = self.hears.recv_from(&mut buffer).unwrap();
            let Ok(mut packet) = wire::decode(&buffer[..len]) else { continue };
            let Body::Data(data) = &mut packet.message.body else { continue };
            if data.kind != DataKind::Source || data.pass > 1 || data.dtus.first() > 100 {
                continue;
            }
            data.dtus = Run::one(data.dtus.first() + 100);
            let mut lie = Vec::new();
            wire::encode(&packet.message, 0, &mut lie);
            lie.truncate(packet.payload.start);
            lie.resize(packet.payload.end, 0x5a);
            lie.extend_from_slice(&buffer[packet.payload.end..len]);
            return self.send(from.port(), &lie);
        }
    }

    /// Sends `payload` from the sender's `port`.
    fn send(&self, port: u16, payload: &[u8]) {
        // Source and destination port, length, and no checksum.
        let fields = [port, self.group.port(), 8 + payload.len() as u16, 0];
        let mut datagram: Vec<u8> = fields.iter().flat_map(|field| field.to_be_bytes()).collect();
        datagram.extend_from_slice(payload);
        self.speaks.send_to(&datagram, &SocketAddr::V4(self.group).into()).unwrap();
    }
}

#[test]
fn a_forged_datagram_costs_a_part_and_not_the_product() {
    let place = Place::new();
    let forger = Forger::new(&place);
    let file = place.file("product.bin", 5_000_000);
    let receivers = ["ant", "bee"].map(|name| place.receive(name, &[]));
    let args = ["--rate", "20 Mbit/s", "--receivers", "ant,bee"];
    let sender = place.send(&[&file], &args);
    forger.forge();
    for receiver in receivers {
        let ended = receiver.succeed();
        let damaged = ended.all("damaged");
        assert_eq!(damaged.len(), 1, "{}", ended.story());
        assert_eq!(damaged[0]["path"], "product.bin");
        // 1 MiB in DTUs of 1432 bytes, the first and the last shared with the neighbours.
        assert!((733..=734).contains(&damaged[0]["segments"].as_u64().unwrap()), "{}", damaged[0]);
    }
    let summary = sender.succeed().summary();
    let again = common::dtus_sent(&summary) - common::segments(&summary);
    // The part is sent again, and the first DTU, which goes twice in any case.
    assert!((734..=735).contains(&again), "{again} DTUs were sent again: {summary}");
    place.assert_received(&file, &["ant", "bee"]);
}

/// Returns the command for a receiver into a small file system of its own. The file `fill` in the place fills the file
/// system, and the file `empty` empties it. Received files are copied to `copy`.
fn receive_into_small_disk(place: &Place, size: &str, args: &[&str]) -> Command {
    let script = format!(
        "(
            until [ -e '{root}/fill' ]; do sleep 0.01; done
            dd if=/dev/zero of='{dir}/hog' bs=4k 2> /dev/null
            until [ -e '{root}/empty' ]; do sleep 0.01; done
            rm '{dir}/hog'
         ) &
         \"$@\"; code=$?
         mkdir '{root}/copy'; cp -a '{dir}/.' '{root}/copy'; exit $code",
        dir = place.path("ant").display(),
        root = place.root().display(),
    );
    let args = [&["--once", "--json"], args].concat();
    common::scripted_into_mount(place, &format!("size={size}"), &args, &script)
}

#[test]
fn a_disk_that_is_full_for_a_while() {
    for parity in [false, true] {
        let place = Place::new();
        let file = place.file("product.bin", 3_000_000);
        let receiver = place.start("ant", receive_into_small_disk(&place, "8m", &[]));
        receiver.until("listening");
        let other = place.receive("bee", &[]);
        let mut args = vec!["--rate", "4 Mbit/s", "--receivers", "ant,bee"];
        if parity {
            args.extend(["--parity", "50"]);
        }
        let sender = place.send(&[&file], &args);
        receiver.until("files");
        fs::write(place.path("fill"), "").unwrap();
        let told = receiver.until("no_room");
        assert!(told["error"].as_str().unwrap().contains("bytes are needed below"), "{told}");
        // All other receivers are served meanwhile.
        other.succeed();
        fs::write(place.path("empty"), "").unwrap();
        let ended = receiver.succeed();
        assert_eq!((ended.all("no_room").len(), ended.all("room").len()), (1, 1), "{}", ended.story());
        sender.succeed();
        common::assert_same(&file, &place.path("copy/product.bin"));
        assert_eq!(common::names(&place.path("copy")), ["product.bin"]);
        place.assert_received(&file, &["bee"]);
    }
}

#[test]
fn a_disk_that_stays_full_is_given_up_and_what_came_is_kept() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    let args = ["--wait-for-room", "2 s"];
    let receiver = place.start("ant", receive_into_small_disk(&place, "8m", &args));
    receiver.until("listening");
    let sender = place.send(&[&file], &["--rate", "4 Mbit/s", "--receivers", "ant"]);
    receiver.until("files");
    fs::write(place.path("fill"), "").unwrap();
    receiver.wait().assert_failed(1, &["bytes are needed below", "make room and start again"]);
    assert_ne!(sender.wait().code, Some(0));
    let left = common::names(&place.path("copy"));
    assert!(left.contains(&".farcast".into()) && !left.contains(&"product.bin".into()), "{left:?}");
}

/// Returns the permission bits of `path`.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Sends `path` to one receiver with this umask. Returns the ends of the sender and the receiver.
fn send_to_umask(place: &Place, path: &Path, umask: &str, args: &[&str]) -> (Ended, Ended) {
    let receive = place.receive_command("ant", &[&["--once", "--json"], args].concat());
    let mut command = Command::new("sh");
    command.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
    command.arg(receive.get_program()).args(receive.get_args()).env("XDG_STATE_HOME", place.path("state"));
    let receiver = place.start("ant", command);
    receiver.until("listening");
    let sender = place.send(&[path], &["--rate", "20 Mbit/s", "--receivers", "ant"]);
    (sender.wait(), receiver.wait())
}

#[test]
fn what_exists_keeps_its_mode_and_what_is_new_obeys_the_umask() {
    let place = Place::new();
    for (name, bits) in [("open", 0o666), ("run", 0o777), ("none", 0o000), ("old", 0o777), ("same", 0o777)] {
        set_mode(&place.file(&format!("tree/kept/{name}"), 5000), bits);
    }
    place.file("tree/new/file", 5000);
    place.file("tree/closed/file", 5000);
    place.file("ant/tree/kept/old", 10);
    fs::copy(place.path("tree/kept/same"), place.path("ant/tree/kept/same")).unwrap();
    for (name, bits) in [("tree/kept", 0o777), ("tree/new", 0o777), ("tree/closed", 0o000), ("tree", 0o777)] {
        set_mode(&place.path(name), bits);
    }
    for (name, bits) in [("kept/old", 0o4640), ("kept/same", 0o604), ("kept", 0o711), ("", 0o750)] {
        set_mode(&place.path("ant/tree").join(name), bits);
    }
    let (sender, receiver) = send_to_umask(&place, &place.path("tree"), "027", &[]);
    assert_eq!((sender.code, receiver.code), (Some(0), Some(0)), "{}", receiver.story());
    let expected = [
        ("", 0o750),
        ("kept", 0o711),
        ("kept/old", 0o640),
        ("kept/same", 0o604),
        ("kept/open", 0o640),
        ("kept/run", 0o750),
        ("kept/none", 0o400),
        ("new", 0o750),
        ("closed", 0o700),
    ];
    let found = expected.map(|(name, _)| (name, mode(&place.path("ant/tree").join(name))));
    assert_eq!(
        found.map(|(name, bits)| format!("{name} {bits:o}")),
        expected.map(|(name, bits)| format!("{name} {bits:o}"))
    );
    assert!(common::digest(&place.path("ant/tree/kept/old")) == common::digest(&place.path("tree/kept/old")));
}

#[test]
fn hidden_names_are_received_only_when_asked_for() {
    let place = Place::new();
    let keys = place.file("tree/.ssh/authorized_keys", 100);
    let victim = place.file("ant/tree/.ssh/authorized_keys", 10);
    let before = common::digest(&victim);
    let (sender, receiver) = send_to_umask(&place, &place.path("tree"), "022", &[]);
    let parts = ["tree/.ssh", "leading dot", "--hidden"];
    receiver.assert_one_sentence(1, &parts);
    assert!(matches!(sender.code, Some(1 | 3)), "{}", sender.story());
    sender.assert_one_sentence(sender.code.unwrap(), &[&["ant"], &parts[..]].concat());
    assert!(common::digest(&victim) == before);
    let (sender, receiver) = send_to_umask(&place, &place.path("tree"), "022", &["--hidden"]);
    assert_eq!((sender.code, receiver.code), (Some(0), Some(0)), "{}", receiver.story());
    assert!(common::digest(&victim) == common::digest(&keys));
}

/// If the protocol cannot report the reason, the receiver prints it, and the sender points to the receiver's output.
#[test]
fn who_cannot_keep_it_says_why_and_its_sender_where_that_is_said() {
    let tries = ["norm", "mdp", "pgm"].map(|protocol| {
        let place = Place::new();
        let file = place.file("product.bin", 30_000);
        // A directory stands where the file is to be.
        fs::create_dir_all(place.path("7/product.bin")).unwrap();
        let receiver = place.receive("7", &["--protocol", protocol]);
        let args = ["--rate", "4 Mbit/s", "--protocol", protocol, "--receivers", "7"];
        let sender = place.send(&[&file], &args);
        (place, receiver, sender)
    });
    for (_place, receiver, sender) in tries {
        let ended = receiver.wait();
        assert!(ended.code != Some(0) && ended.stderr.contains("product.bin"), "{}", ended.story());
        sender.wait().assert_failed(3, &["7 did not acknowledge", "says why in its own output"]);
    }
}
