//! NORM with NRL's library, in both directions, over the loopback interface.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and be a driver of its own"
)]

mod driver;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Bitmap};
use farcast_delivery::{ObjectId, Vouched};
use farcast_norm::{
    NodeId, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome, Sender, SenderConfig, SenderEvent,
    SenderOutcome,
};

use driver::{Object, Place};

/// Octets of what is sent: 215 segments of 1400 octets, in blocks of 54 and 53.
const SIZE: usize = 300_000;
const LOSS: f64 = 0.05;

/// The library as a program, compiled into `dir`.
fn peer(dir: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/norm_peer.c");
    let header = Path::new("/usr/include/normApi.h");
    assert!(header.exists(), "this test needs the Debian package libnorm-dev; run scripts/setup");
    let program = dir.join("norm_peer");
    let compiled = Command::new("c++")
        .args(["-x", "c++", "-O1", "-o"])
        .arg(&program)
        .args([source, "-lnorm"])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}

/// A running program, which ends with the test.
struct Running(Child);

impl Running {
    fn start(program: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(program);
        Self(command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// The next line that it prints.
    fn line(lines: &mut impl BufRead) -> String {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        line.trim().into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn noise(len: usize) -> Vec<u8> {
    let mut random = RandomStream::derive(40, &[]);
    (0..len).map(|_| random.bits() as u8).collect()
}

/// A port that no other test of this machine uses now.
fn port(offset: u16) -> u16 {
    20_000 + (std::process::id() % 20_000) as u16 + offset
}

#[test]
fn libnorm_receives_what_we_send() {
    let dir = tempfile::tempdir().unwrap();
    let (program, port) = (peer(dir.path()), port(0));
    let mut place = Place::new(port, LOSS, 1);
    let into = dir.path().join("inbox");
    fs::create_dir(&into).unwrap();
    let group = place.group.ip().to_string();
    let words = ["receive", &group, &port.to_string(), "lo", "2", into.to_str().unwrap(), "got.bin"];
    let mut receiver = Running::start(&program, &words);
    let mut lines = BufReader::new(receiver.0.stdout.take().unwrap());
    assert_eq!(Running::line(&mut lines), "listening");

    let content = noise(SIZE);
    let rate = BitRate::from_bps(4_000_000).unwrap();
    let mut config = SenderConfig::new(NodeId(1), SIZE as u64, place.address(), place.group, rate);
    config.objects[0].info = b"got.bin".to_vec();
    config.grtt = farcast_core::Span::from_millis(50);
    config.ackers = vec![NodeId(2)];
    // It passes over what it does not know.
    config.objects[0].vouched = Some(Vouched { digest: [7; 32], mode: 0o644, mtime_ns: 1 });
    let mut sender = Sender::new(config).unwrap();
    let mut object = Object::new(content.clone(), *sender.geometry(ObjectId::FIRST).unwrap(), 16);
    sender.open(farcast_core::Time::ZERO);
    let mut outcome = None;
    place.drive(&mut sender, &mut object, |_, _, _, event, _| {
        if let SenderEvent::Ended(how) = event {
            outcome = Some(how);
        }
        outcome.is_some()
    });
    assert_eq!(outcome, Some(SenderOutcome::Acknowledged));
    assert!(sender.sent_per_round().len() > 1, "with losses it takes more than a round");
    assert_eq!(Running::line(&mut lines), "complete");
    assert!(fs::read(into.join("got.bin")).unwrap() == content);
}

#[test]
fn we_receive_what_libnorm_sends() {
    let dir = tempfile::tempdir().unwrap();
    let (program, port) = (peer(dir.path()), port(1));
    let mut place = Place::new(port, LOSS, 2);
    let content = noise(SIZE);
    let file = dir.path().join("sent.bin");
    fs::write(&file, &content).unwrap();
    let group = place.group.ip().to_string();
    let mut receiver = Receiver::new(ReceiverConfig::new(NodeId(2), place.group)).unwrap();
    let words = ["send", &group, &port.to_string(), "lo", "4e6", file.to_str().unwrap(), "1"];
    let mut sender = Running::start(&program, &words);

    // How it is cut is known with the offer.
    let mut object: Option<Object> = None;
    let mut none = Object::new(vec![0], farcast_delivery::Geometry::new(1, 1, 1).unwrap(), 1);
    let mut complete = false;
    place.drive(&mut receiver, &mut none, |engine, _, now, event, payload| {
        match event {
            ReceiverEvent::Offered(offer) => {
                assert_eq!(offer.name, b"sent.bin");
                object = Some(Object::new(Vec::new(), offer.geometry, offer.parity_symbols));
                engine.accept(offer.object, &Bitmap::new(0));
            }
            ReceiverEvent::Store { segments, .. } => {
                object.as_mut().unwrap().store(segments.first(), payload);
            }
            ReceiverEvent::StoreParity { block, symbols, .. } => {
                object.as_mut().unwrap().keep(block, symbols.first(), payload);
            }
            ReceiverEvent::Decode { object: id, block } => {
                let have = engine.have(id).unwrap().clone();
                object.as_mut().unwrap().rebuild(block, &have);
                engine.decoded(id, block, true);
            }
            ReceiverEvent::Complete(object) => {
                complete = true;
                engine.verified(now, object);
            }
            ReceiverEvent::Ended(_, outcome) => assert!(matches!(outcome, ReceiverOutcome::Complete(_))),
            ReceiverEvent::Named(_) | ReceiverEvent::Command { .. } => {}
        }
        // Until the sender has heard the acknowledgement, and is gone.
        complete && sender.0.try_wait().unwrap().is_some()
    });
    assert!(object.unwrap().content() == content);
    assert!(receiver.naks() > 0, "with losses it has to ask");
    assert!(sender.0.wait().unwrap().success(), "it has the acknowledgement");
}
