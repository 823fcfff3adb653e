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
use farcast_norm::{
    NodeId, Pacing, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig, SenderEvent, SenderOutcome,
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
    we_send(Pacing::Fixed, port(0));
}

#[test]
fn libnorm_receives_what_we_send_as_fast_as_it_says() {
    we_send(Pacing::NormCc { least: BitRate::from_bps(8000).unwrap() }, port(2));
}

fn we_send(pacing: Pacing, port: u16) {
    let dir = tempfile::tempdir().unwrap();
    let program = peer(dir.path());
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
    config.info = b"got.bin".to_vec();
    config.grtt = farcast_core::Span::from_millis(50);
    config.ackers = vec![NodeId(2)];
    config.pacing = pacing;
    let mut sender = Sender::new(config).unwrap();
    let mut object = Object::new(content.clone(), *sender.geometry(), 16);
    sender.open(farcast_core::Time::ZERO);
    let (mut outcome, mut limiting) = (None, None);
    place.drive(&mut sender, &mut object, |sender, _, _, event, _| {
        limiting = limiting.or(sender.limiting());
        if let SenderEvent::Ended(how) = event {
            outcome = Some(how);
        }
        outcome.is_some()
    });
    assert_eq!(outcome, Some(SenderOutcome::Acknowledged));
    assert!(sender.sent_per_round().len() > 1, "with losses it takes more than a round");
    assert_eq!(limiting, (pacing != Pacing::Fixed).then_some(NodeId(2)));
    assert_eq!(Running::line(&mut lines), "complete");
    assert!(fs::read(into.join("got.bin")).unwrap() == content);
}

#[test]
fn we_receive_what_libnorm_sends() {
    libnorm_sends("4e6", port(1));
}

#[test]
fn we_receive_what_libnorm_sends_as_fast_as_we_say() {
    libnorm_sends("-4e6", port(3));
}

/// The library sends at `rate`, as its program takes it.
fn libnorm_sends(rate: &str, port: u16) {
    let dir = tempfile::tempdir().unwrap();
    let program = peer(dir.path());
    let mut place = Place::new(port, LOSS, 2);
    let content = noise(SIZE);
    let file = dir.path().join("sent.bin");
    fs::write(&file, &content).unwrap();
    let group = place.group.ip().to_string();
    let mut receiver = Receiver::new(ReceiverConfig::new(NodeId(2), place.group)).unwrap();
    let words = ["send", &group, &port.to_string(), "lo", rate, file.to_str().unwrap(), "1"];
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
                engine.accept(Bitmap::new(offer.geometry.segments()));
            }
            ReceiverEvent::Store { segments, .. } => {
                object.as_mut().unwrap().store(segments.first(), payload);
            }
            ReceiverEvent::StoreParity { block, symbols, .. } => {
                object.as_mut().unwrap().keep(block, symbols.first(), payload);
            }
            ReceiverEvent::Decode { block } => {
                let have = engine.have().unwrap().clone();
                object.as_mut().unwrap().rebuild(block, &have);
                engine.decoded(block, true);
            }
            ReceiverEvent::Complete => {
                complete = true;
                engine.verified(now);
            }
            ReceiverEvent::Ended(_) => return true,
        }
        // Until the sender has heard the acknowledgement, and is gone.
        complete && sender.0.try_wait().unwrap().is_some()
    });
    assert!(object.unwrap().content() == content);
    assert!(receiver.received().naks > 0, "with losses it has to ask");
    assert!(sender.0.wait().unwrap().success(), "it has the acknowledgement");
}
