//! Cost of sealing on this machine: octets and time, by datagram and by receiver.
//!
//!     cargo run --release -p farcast-seal --example speed [RECEIVERS]
//!
//! The measurement runs first with receivers without hybrid keys, then with hybrid keys only.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures, and prints what it measures"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use farcast_core::Time;
use farcast_seal::{
    Contents, HEADER, History, Identity, KEYS_ENTRIES, Listed, Receiver, ReceiverConfig, Scope, Sender,
    SenderConfig, Suite, TAG,
};

/// Octets of a datagram after the headers of IPv4 and UDP, as large as farcast's are.
const DATAGRAM: usize = 1432;
const CONTENTS: u32 = 200_000;
const LARGE: f64 = 1e6;

fn main() {
    let receivers = std::env::args().nth(1).map_or(10_000, |n| n.parse().expect("a number of receivers"));
    content();
    for suite in [Suite::X25519, Suite::Hybrid] {
        println!("\n{suite:?}");
        print(&handshake(suite, receivers), receivers);
    }
}

fn seed(n: u32) -> [u8; 32] {
    let mut seed = [1; 32];
    seed[..4].copy_from_slice(&n.to_be_bytes());
    seed
}

fn scope() -> Scope {
    Scope::of("any", address(1))
}

fn identity(n: u32) -> Identity {
    Identity::from_seed(seed(n))
}

fn listed(identity: &Identity) -> Listed {
    Listed { name: String::new(), key: identity.public().clone() }
}

fn session(receivers: &[Identity]) -> Sender {
    let receivers = receivers.iter().map(listed).collect();
    let config = SenderConfig {
        identity: identity(0),
        receivers,
        began_ms: 1,
        scope: scope(),
        contents: Contents::Apart,
        datagram: 1472,
    };
    Sender::new(config, [7; 32])
}

fn receiver(of: &Identity) -> Receiver {
    let config =
        ReceiverConfig { identity: of.clone(), senders: vec![listed(&identity(0))], scopes: vec![scope()] };
    Receiver::new(config, History::default(), [8; 32])
}

fn address(n: usize) -> SocketAddr {
    SocketAddr::from(((n as u32).to_be_bytes(), 5402))
}

/// Measures the sealing and opening of content, in MB/s.
fn content() {
    let one = [identity(1)];
    let (mut ann, mut bob) = (session(&one), receiver(&one[0]));
    let (mut answer, mut key) = (Vec::new(), Vec::new());
    bob.open(Time::ZERO, address(0), &mut ann.keys(true)[0]).expect("its keys");
    bob.seal_answer(address(0), &mut answer).expect("an answer");
    ann.open(address(1), &mut answer).expect("its answer");
    ann.seal_to(address(1), &mut key).expect("a key");
    bob.open(Time::ZERO, address(0), &mut key).expect("its key");
    let (mut sealing, mut opening) = (Duration::ZERO, Duration::ZERO);
    let mut datagram = vec![0; DATAGRAM];
    for _ in 0..CONTENTS {
        let begun = Instant::now();
        ann.seal_content(&mut datagram).expect("room");
        let sealed = Instant::now();
        bob.open(Time::ZERO, address(0), &mut datagram).expect("content");
        sealing += sealed - begun;
        opening += sealed.elapsed();
    }
    let said = (DATAGRAM - HEADER - TAG) as f64 * f64::from(CONTENTS) / 1e6;
    for (what, time) in [("content sealed", sealing), ("content opened", opening)] {
        println!("{what:<38}{:>7.0} MB/s", said / time.as_secs_f64());
    }
}

/// Step of the handshake: its time for all receivers, and the octets that left.
struct Step(&'static str, Duration, usize);

impl Step {
    fn since(begun: Instant, what: &'static str, said: &[Vec<u8>]) -> Self {
        Self(what, begun.elapsed(), said.iter().map(Vec::len).sum())
    }
}

/// Runs a handshake until all receivers have the content key.
fn handshake(suite: Suite, receivers: u32) -> Vec<Step> {
    let (made, together): (fn(u32) -> Identity, usize) = match suite {
        Suite::X25519 => (identity, KEYS_ENTRIES),
        Suite::Hybrid => (|n| Identity::hybrid_from_seed(seed(n)), 1),
    };
    let begun = Instant::now();
    let all: Vec<_> = (1..=receivers).map(made).collect();
    let mut steps = vec![Step::since(begun, "once: makes a key", &[])];
    let begun = Instant::now();
    let mut ann = session(&all);
    steps.push(Step::since(begun, "sender: wraps keys", &[]));
    let begun = Instant::now();
    let keys = ann.keys(true);
    steps.push(Step::since(begun, "sender: signs KEYS", &keys));

    let mut those: Vec<_> = all.iter().map(receiver).collect();
    let mut answers = vec![Vec::new(); those.len()];
    let begun = Instant::now();
    for (n, one) in those.iter_mut().enumerate() {
        one.open(Time::ZERO, address(0), &mut keys[n / together].clone()).expect("its keys");
    }
    steps.push(Step::since(begun, "receiver: opens its KEYS", &[]));
    let begun = Instant::now();
    for (one, answer) in those.iter_mut().zip(&mut answers) {
        one.seal_answer(address(0), answer).expect("an answer");
    }
    steps.push(Step::since(begun, "receiver: seals its first answer", &answers));
    let begun = Instant::now();
    for (n, answer) in answers.iter_mut().enumerate() {
        ann.open(address(n + 1), answer).expect("its answer");
    }
    steps.push(Step::since(begun, "sender: opens first answers", &[]));
    let begun = Instant::now();
    let mut given = vec![Vec::new(); those.len()];
    for (n, key) in given.iter_mut().enumerate() {
        ann.seal_to(address(n + 1), key).expect("a key");
    }
    steps.push(Step::since(begun, "sender: gives the key of content", &given));
    steps
}

fn print(steps: &[Step], receivers: u32) {
    let n = f64::from(receivers);
    println!("{:<38}{:>12}{:>10}{:>22}{:>22}", "", "each", "", format!("{receivers}"), "1000000, reckoned");
    let row = |what: &str, seconds: f64, octets: f64| {
        let all = |n: f64| format!("{:.2} s {:>8.2} MB", seconds * n, octets * n / 1e6);
        println!("{what:<38}{:>9.1} us{octets:>8.1} B{:>22}{:>22}", seconds * 1e6, all(n), all(LARGE));
    };
    for Step(what, time, octets) in steps {
        row(what, time.as_secs_f64() / n, *octets as f64 / n);
    }
    let of_sender = steps.iter().filter(|Step(what, ..)| what.starts_with("sender"));
    let seconds: f64 = of_sender.map(|Step(_, time, _)| time.as_secs_f64()).sum();
    let octets: usize = steps.iter().map(|Step(.., octets)| octets).sum();
    row("sender: all, and octets of both", seconds / n, octets as f64 / n);
}
